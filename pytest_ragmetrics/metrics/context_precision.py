"""Whether the contexts of use stand before the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import ClassVar

from pytest_ragmetrics.judges.tasks import Judgement, JudgeUsefulness
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.together import together
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.sentences import sentence_table

_NO_SENTENCE = Judgement(ok=False, reason="It has no sentence.")


class ContextPrecision(JudgedMetric):
    """The average precision of the contexts in their order: 1.0 when all that are of use stand first.

    Takes ``user_input``, ``reference`` and ``retrieved_contexts``. One small request a context, all at the same time,
    whether it is of use to arrive at the reference answer; contexts in another order cost nothing new. Average
    precision is the mean, over the contexts of use, of the share of useful ones down to their rank. 0.0 when none is,
    and without a request when there is no context. After Ragas' context precision.

    >>> judge = lambda prompt: '{"reason": "It says so.", "sentences": [1], "verdict": "useful"}'
    >>> metric = ContextPrecision(judge=judge)
    >>> fields = {"user_input": "When do moths fly?", "reference": "At night."}
    >>> metric.score(**fields, retrieved_contexts=["Moths fly at night.", "Night is when moths fly."]).value
    1.0
    """

    name = "context_precision"
    aliases: ClassVar[tuple[str, ...]] = (
        "LLMContextPrecisionWithReference",
        "llm_context_precision_with_reference",
        "ContextPrecisionWithReference",
        "ContextualPrecision",
        "contextual_precision",
        "ContextualPrecisionMetric",
    )
    requires: ClassVar[tuple[str, ...]] = ("user_input", "reference", "retrieved_contexts")
    rounds: ClassVar[int] = 1

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the average precision of the verdicts in rank order."""
        contexts = sample.retrieved_contexts or ()
        if not contexts:
            return ask.result(0.0, reason="there is no context")
        judgements = await together(self._useful(context, sample, ask) for context in contexts)
        verdicts = [_verdict(*ranked) for ranked in zip(range(len(contexts)), contexts, judgements, strict=True)]
        useful = [judgement.ok for judgement in judgements]
        reason = f"{sum(useful)} of {len(useful)} contexts of use"
        return ask.result(average_precision(useful), reason=reason, verdicts=verdicts)

    async def _useful(self, context: str, sample: Sample, ask: Ask) -> Judgement:
        if not sentence_table((context,)):
            return _NO_SENTENCE
        return await ask(
            JudgeUsefulness(question=sample.user_input or "", answer=self._answer(sample), context=context)
        )

    def _answer(self, sample: Sample) -> str:
        return sample.reference or ""


class ContextUtilization(ContextPrecision):
    """The average precision of the contexts by their use for the ``response``, where there is no reference.

    Takes ``user_input``, ``response`` and ``retrieved_contexts``; otherwise like :class:`ContextPrecision`.

    >>> judge = lambda prompt: '{"reason": "It does not say.", "sentences": [], "verdict": "useless"}'
    >>> fields = {"user_input": "When do moths fly?", "response": "At noon."}
    >>> ContextUtilization(judge=judge).score(**fields, retrieved_contexts=["Moths fly at night."]).value
    0.0
    """

    name = "context_utilization"
    aliases: ClassVar[tuple[str, ...]] = (
        "LLMContextPrecisionWithoutReference",
        "llm_context_precision_without_reference",
        "ContextPrecisionWithoutReference",
    )
    requires: ClassVar[tuple[str, ...]] = ("user_input", "response", "retrieved_contexts")

    def _answer(self, sample: Sample) -> str:
        return sample.response or ""


def average_precision(useful: Sequence[bool]) -> float:
    """Return the mean over the useful items of the share of useful ones down to their rank; 0.0 when none is.

    >>> average_precision([False, True, True])
    0.5833333333333333
    """
    counted = enumerate(accumulate(useful), start=1)
    shares = [so_far / rank for (rank, so_far), is_useful in zip(counted, useful, strict=True) if is_useful]
    return sum(shares) / len(shares) if shares else 0.0


def _verdict(index: int, context: str, judgement: Judgement) -> Verdict:
    table = sentence_table((context,))
    cited = tuple(replace(table[number], context=index) for number in judgement.sentences) if judgement.ok else ()
    return Verdict(text=context, ok=judgement.ok, reason=judgement.reason or None, evidence=cited)
