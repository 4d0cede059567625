"""Whether the response contradicts what it was given."""

from __future__ import annotations

from typing import ClassVar

from pytest_ragmetrics.judges.tasks import FindContradictions
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.sentences import sentence_table


class Hallucination(JudgedMetric):
    """The share of the contexts that the response does not contradict: 1.0 is free of hallucination, higher is better.

    Takes ``response`` and ``retrieved_contexts``. One request: which contexts are contradicted, and which of their
    sentences. 1 - contradicted / contexts. What the contexts do not mention contradicts none of them; that is the
    business of :class:`Faithfulness`. After DeepEval's hallucination metric, which has had either direction.

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "By night.", "sentences": [1], "verdict": "contradicted"}]}'
    ... )
    >>> Hallucination(judge=judge).score(response="Moths fly by day.", retrieved_contexts=["They fly by night."]).value
    0.0
    """

    name = "hallucination"
    aliases: ClassVar[tuple[str, ...]] = ("HallucinationMetric",)
    requires: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")
    may_be_empty: ClassVar[tuple[str, ...]] = ()

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return contexts not contradicted / contexts."""
        contexts = tuple(sample.retrieved_contexts or ())
        judgements = await ask(FindContradictions(response=sample.response or "", contexts=contexts))
        table = sentence_table(contexts)
        verdicts = [
            Verdict(
                text=context,
                ok=not judgement.ok,
                reason=judgement.reason or None,
                evidence=tuple(table[index] for index in judgement.sentences) if judgement.ok else (),
            )
            for context, judgement in zip(contexts, judgements, strict=True)
        ]
        return ask.share(verdicts, "contexts not contradicted")
