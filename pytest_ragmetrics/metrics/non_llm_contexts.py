"""Whether the passages retrieved are those of the reference, told by how alike their characters are: no judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pytest_ragmetrics.metrics.context_precision import average_precision
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.parameters import check_choice, check_number
from pytest_ragmetrics.result import Evidence, MetricResult, Nearest, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.likeness import MEASURES, Measure, likeness


class LikeContexts(Metric):
    """A metric over ``retrieved_contexts`` (may be empty) and ``reference_contexts``, compared two by two.

    Two passages are the same if their likeness is at least ``threshold``; ``measure`` is levenshtein, indel, hamming,
    jaro or jaro_winkler, brought to [0, 1] by the length of the texts.
    """

    requires: ClassVar[tuple[str, ...]] = ("retrieved_contexts", "reference_contexts")

    def __init__(self, *, threshold: float = 0.5, measure: Measure = "levenshtein") -> None:
        self.threshold = check_number("threshold", threshold, most=1)
        self.alike_by: Measure = check_choice("measure", measure, MEASURES)

    def _nearest(self, text: str, others: Sequence[str]) -> tuple[int, float]:
        """Return which of the others is most alike to a text, and how much."""
        compare = likeness(self.alike_by)
        scores = [compare(text, other) for other in others]
        best = max(range(len(others)), key=lambda index: scores[index])
        return best, scores[best]


class NonLLMContextPrecision(LikeContexts):
    """The average precision of the contexts, those being of use that are alike to a reference context.

    The mean, over these, of the share of such contexts down to their rank; 0.0 when there is none.

    >>> NonLLMContextPrecision().score(
    ...     retrieved_contexts=["Whales sing.", "Moths fly at night"], reference_contexts=["Moths fly at night."]
    ... ).value
    0.5
    """

    name = "non_llm_context_precision"
    aliases: ClassVar[tuple[str, ...]] = (
        "NonLLMContextPrecisionWithReference",
        "non_llm_context_precision_with_reference",
    )

    def measure(self, sample: Sample) -> MetricResult:
        """Return the average precision."""
        contexts, references = sample.retrieved_contexts or (), sample.reference_contexts or ()
        verdicts = [self._verdict(index, context, references) for index, context in enumerate(contexts)]
        alike = [verdict.ok for verdict in verdicts]
        reason = f"{sum(alike)} of {len(alike)} contexts alike to one of the reference"
        return MetricResult(average_precision(alike), metric=self.name, reason=reason, verdicts=verdicts)

    def _verdict(self, index: int, context: str, references: Sequence[str]) -> Verdict:
        best, score = self._nearest(context, references)
        ok = score >= self.threshold
        evidence = (Evidence(context=index, start=0, end=len(context), text=context),) if ok else ()
        reason = f"{score:.0%} alike to reference_contexts[{best}], the nearest"
        return Verdict(text=context, ok=ok, reason=reason, evidence=evidence)


class NonLLMContextRecall(LikeContexts):
    """The share of the reference contexts to which one of the contexts is alike; the nearest is shown for the others.

    >>> NonLLMContextRecall().score(
    ...     retrieved_contexts=["Moths fly at night"], reference_contexts=["Moths fly at night.", "Whales sing."]
    ... ).value
    0.5
    """

    name = "non_llm_context_recall"

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share found."""
        contexts = sample.retrieved_contexts or ()
        verdicts = [self._verdict(reference, contexts) for reference in sample.reference_contexts or ()]
        found = sum(verdict.ok for verdict in verdicts)
        reason = f"{found} of {len(verdicts)} reference contexts retrieved"
        return MetricResult(found / len(verdicts), metric=self.name, reason=reason, verdicts=verdicts)

    def _verdict(self, reference: str, contexts: Sequence[str]) -> Verdict:
        if not contexts:
            return Verdict(text=reference, ok=False, reason="nothing was retrieved")
        best, score = self._nearest(reference, contexts)
        text = contexts[best]
        if score >= self.threshold:
            evidence = Evidence(context=best, start=0, end=len(text), text=text)
            return Verdict(text=reference, ok=True, reason=f"{score:.0%} alike", evidence=(evidence,))
        return Verdict(
            text=reference,
            ok=False,
            reason=f"no context is {self.threshold:.0%} alike",
            nearest=Nearest(context=best, start=0, end=len(text), text=text, similarity=score),
        )
