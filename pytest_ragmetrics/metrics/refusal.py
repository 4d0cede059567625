"""Whether the response refuses when it should, and only then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pytest_ragmetrics.judges.tasks import JudgeRefusal, SelectSentences
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.together import both
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.sentences import sentence_table


class RefusalCorrectness(JudgedMetric):
    """1.0 when the response refuses exactly if the contexts cannot answer the question, else 0.0.

    Takes ``user_input``, ``response`` and ``retrieved_contexts``. Two requests at the same time: whether the response
    refuses, and which context sentences answer the question, if any. Without contexts the right thing is to refuse.

    >>> judge = lambda prompt: (
    ...     '{"reason": "It says so.", "verdict": "refuses"}' if "<<<response" in prompt else '{"sentences": []}'
    ... )
    >>> fields = {"user_input": "Who owns the mill?", "response": "The texts do not say."}
    >>> RefusalCorrectness(judge=judge).score(**fields, retrieved_contexts=["The mill burned down."]).value
    1.0
    """

    name = "refusal_correctness"
    requires: ClassVar[tuple[str, ...]] = ("user_input", "response", "retrieved_contexts")
    rounds: ClassVar[int] = 1

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return whether refusing and being able to answer exclude each other."""
        question, response = sample.user_input or "", sample.response or ""
        refusal, chosen = await both(
            ask(JudgeRefusal(question=question, response=response)), self._answering(sample, ask)
        )
        table = sentence_table(sample.retrieved_contexts or ())
        right = refusal.ok != bool(chosen)
        reason = f"it {_REFUSES[refusal.ok]}, and the contexts {_ANSWERABLE[bool(chosen)]}"
        verdict = Verdict(
            text=response,
            ok=right,
            start=0,
            end=len(response),
            reason=refusal.reason or None,
            evidence=tuple(table[index] for index in chosen),
        )
        return ask.result(float(right), reason=reason, verdicts=[verdict])

    async def _answering(self, sample: Sample, ask: Ask) -> Sequence[int]:
        contexts = tuple(sample.retrieved_contexts or ())
        if not sentence_table(contexts):
            return ()
        return await ask(SelectSentences(question=sample.user_input or "", contexts=contexts))


_REFUSES = {True: "refuses", False: "gives an answer"}
_ANSWERABLE = {True: "can answer the question", False: "cannot answer the question"}
