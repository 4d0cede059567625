"""Whether the contexts hold what the reference answer says."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pytest_ragmetrics.judges.tasks import ListClaims, VerifyClaims
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_choice, check_if_empty
from pytest_ragmetrics.metrics.provided import JudgeLike
from pytest_ragmetrics.metrics.support import supported_verdicts, unsupported_verdicts
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.sentences import sentence_table, split_sentences


class ContextRecall(JudgedMetric):
    """The share of the reference's sentences that can be attributed to the contexts.

    Takes ``reference`` (a text, or a list of texts that are joined), ``retrieved_contexts`` and optionally
    ``user_input``. One request; with ``unit="claims"`` two in a row, the first splits the reference into claims. Empty
    contexts score 0.0 without a request. Raises ``UnscoredError`` for a reference without claims, unless ``if_empty``
    is its score. After Es et al., "RAGAS" (2023).

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}]}'
    ... )
    >>> ContextRecall(judge=judge).score(reference="Moths fly.", retrieved_contexts=["Moths fly at night."]).value
    1.0
    """

    name = "context_recall"
    aliases: ClassVar[tuple[str, ...]] = ("LLMContextRecall", "ContextualRecallMetric", "contextual_recall")
    requires: ClassVar[tuple[str, ...]] = ("reference", "retrieved_contexts")

    def __init__(
        self,
        *,
        unit: Literal["sentences", "claims"] = "sentences",
        if_empty: float | None = None,
        judge: JudgeLike | None = None,
    ) -> None:
        super().__init__(judge=judge)
        self.unit = check_choice("unit", unit, ("sentences", "claims"))
        self.if_empty = check_if_empty(if_empty, self.scale)

    def sample_of(self, inputs: dict[str, Any]) -> Sample:
        """Return the sample, the references joined if there are several."""
        if "reference" in inputs:
            inputs = {**inputs, "reference": joined(inputs["reference"])}
        return super().sample_of(inputs)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return attributed sentences / sentences."""
        reference, contexts = sample.reference or "", tuple(sample.retrieved_contexts or ())
        texts = tuple(reference[start:end] for start, end in split_sentences(reference))
        if not sentence_table(contexts):
            return ask.share(unsupported_verdicts(texts or (reference,)), f"{self._counted}: there is no context")
        if self.unit == "claims":
            texts = await ask(ListClaims(text=reference, question=sample.user_input))
        if not texts:
            return ask.nothing(f"the reference has no {self.unit}", if_empty=self.if_empty)
        judgements = await ask(VerifyClaims(claims=texts, contexts=contexts))
        return ask.share(supported_verdicts(texts, judgements, contexts), self._counted)

    @property
    def _counted(self) -> str:
        return f"{self.unit} of the reference found in the contexts"


def joined(reference: Any) -> Any:
    r"""Return several references as one text, each a paragraph of its own; anything else as it is.

    >>> joined(["Moths fly.", "Bats too."])
    'Moths fly.\n\nBats too.'
    """
    several = isinstance(reference, (list, tuple)) and all(isinstance(text, str) for text in reference)
    return "\n\n".join(reference) if several else reference
