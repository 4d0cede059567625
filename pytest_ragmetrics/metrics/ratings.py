"""Metrics of one request: the judge rates, or decides on each context."""

from __future__ import annotations

from typing import ClassVar, Literal

from pytest_ragmetrics.judges.tasks import JudgeContexts, RateCorrectness, RateRelevance, Rating
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_choice
from pytest_ragmetrics.metrics.provided import JudgeLike
from pytest_ragmetrics.metrics.strings import token_f1
from pytest_ragmetrics.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.sample import Sample

# On a scale of five steps, what is better than the middle or the middle.
_PASSABLE = 0.5


class Relevance(JudgedMetric):
    """How well the response addresses the question, on a scale of five steps brought to [0, 1].

    Takes ``user_input`` and ``response``; one request.

    >>> judge = lambda prompt: '{"reason": "It answers half of it.", "rating": 2}'
    >>> Relevance(judge=judge).score(user_input="Who and when?", response="Ada.").value
    0.5
    """

    name = "relevance"
    requires: ClassVar[tuple[str, ...]] = ("user_input", "response")

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the rating."""
        task = RateRelevance(question=sample.user_input or "", response=sample.response or "")
        return _rated(sample, await ask(task), ask)


class Correctness(JudgedMetric):
    """How far the response says what the reference says, on a scale of five steps brought to [0, 1].

    Takes ``response`` and ``reference``; one request. Asked for by ``method="token_f1"``, and never by itself, it
    needs no judge: the F1 of the words that both have, each as often as it stands there, as in SQuAD. That form takes
    blank texts too: two without words score 1.0, one without words 0.0.

    >>> Correctness(method="token_f1").score(response="In May 1903.", reference="May 1903").value
    0.8
    """

    name = "correctness_rating"
    requires: ClassVar[tuple[str, ...]] = ("response", "reference")

    def __init__(self, *, method: Literal["judge", "token_f1"] = "judge", judge: JudgeLike | None = None) -> None:
        super().__init__(judge=judge)
        self.method = check_choice("method", method, ("judge", "token_f1"))

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` naming a text that is missing, or blank where a judge would be asked."""
        if self.method == "judge" or sample.response is None or sample.reference is None:
            super().require(sample)

    def measure(self, sample: Sample) -> MetricResult:
        """Score without a judge if asked to."""
        return self._token_f1(sample) if self.method == "token_f1" else super().measure(sample)

    async def ameasure(self, sample: Sample) -> MetricResult:
        """Score without a judge if asked to."""
        return self._token_f1(sample) if self.method == "token_f1" else await super().ameasure(sample)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the rating."""
        task = RateCorrectness(response=sample.response or "", reference=sample.reference or "")
        return _rated(sample, await ask(task), ask)

    def _token_f1(self, sample: Sample) -> MetricResult:
        return token_f1(sample.response or "", sample.reference or "", metric=self.name)


class ContextPrecisionProportion(JudgedMetric):
    """The share of the contexts that help to answer the question, whatever their order.

    Takes ``user_input`` and ``retrieved_contexts``; one request.

    >>> judge = lambda prompt: '{"verdicts": [{"number": 1, "reason": "On topic.", "verdict": "relevant"}]}'
    >>> metric = ContextPrecisionProportion(judge=judge)
    >>> metric.score(user_input="Do moths fly?", retrieved_contexts=["Moths fly at night."]).value
    1.0
    """

    name = "context_precision_proportion"
    requires: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts")
    may_be_empty: ClassVar[tuple[str, ...]] = ()

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return relevant contexts / contexts."""
        contexts = tuple(sample.retrieved_contexts or ())
        judgements = await ask(JudgeContexts(question=sample.user_input or "", contexts=contexts))
        verdicts = [
            Verdict(
                text=text,
                ok=judgement.ok,
                reason=judgement.reason or None,
                evidence=(Evidence(context=index, start=0, end=len(text), text=text),) if judgement.ok else (),
            )
            for index, (text, judgement) in enumerate(zip(contexts, judgements, strict=True))
        ]
        return ask.share(verdicts, "contexts relevant")


def _rated(sample: Sample, rating: Rating, ask: Ask) -> MetricResult:
    response = sample.response or ""
    verdict = Verdict(
        text=response, ok=rating.value >= _PASSABLE, start=0, end=len(response), reason=rating.reason or None
    )
    return ask.result(rating.value, reason=rating.reason or None, verdicts=[verdict])
