"""Whether the response answers the question that was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pytest_ragmetrics.judges.tasks import WriteQuestions
from pytest_ragmetrics.metrics.cosine import cosines
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_choice, check_count
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample

Rule = Literal["all", "any", "majority"]


class AnswerRelevancy(JudgedMetric):
    """How close the question is to questions that the response answers, as the mean of cosine similarities.

    Takes ``user_input`` and ``response``. One request for ``strictness`` different questions that the response
    answers, each with whether it is noncommittal; then one embedding of all. 0.0 when ``noncommittal`` ("all", "any" or
    the "majority") of them are. In [-1, 1], and rarely below 0. After Es et al., "RAGAS" (2023).

    >>> judge = lambda prompt: '{"questions": [{"question": "Do moths fly?", "noncommittal": false}]}'
    >>> metric = AnswerRelevancy(strictness=1, judge=judge, embedder="local")
    >>> metric.score(user_input="Do moths fly?", response="They do.").value
    1.0
    """

    name = "answer_relevancy"
    aliases: ClassVar[tuple[str, ...]] = ("ResponseRelevancy", "response_relevancy")
    requires: ClassVar[tuple[str, ...]] = ("user_input", "response")
    scale: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    # The questions, the vectors asked for before, and its own.
    rounds: ClassVar[int] = 3

    def __init__(
        self,
        *,
        strictness: int = 3,
        noncommittal: Rule = "all",
        judge: JudgeLike | None = None,
        embedder: EmbedderLike | None = None,
    ) -> None:
        super().__init__(judge=judge, embedder=embedder)
        self.strictness = check_count("strictness", strictness)
        self.noncommittal = check_choice("noncommittal", noncommittal, ("all", "any", "majority"))

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the mean cosine similarity of the question and the generated questions."""
        asked = sample.user_input or ""
        written = await ask(WriteQuestions(response=sample.response or "", count=self.strictness))
        flags = [flag for _, flag in written]
        if self._rules_out(flags):
            verdicts = [Verdict(text=question, ok=not flag) for question, flag in written]
            return ask.result(0.0, reason=f"the response is noncommittal: {_counted(flags)}", verdicts=verdicts)
        vectors = await ask.embed([asked, *(question for question, _ in written)])
        likeness = [float(value) for value in cosines(vectors[:1], vectors[1:])[0]]
        verdicts = [
            Verdict(text=question, ok=not flag, reason=f"cosine similarity {value:.2f} to the question")
            for (question, flag), value in zip(written, likeness, strict=True)
        ]
        mean = sum(likeness) / len(likeness)
        least = min(zip(likeness, written, strict=True))
        reason = f'mean similarity of {len(likeness)} generated questions; the least alike is "{least[1][0]}"'
        return ask.result(mean, reason=reason, verdicts=verdicts)

    def _rules_out(self, flags: Sequence[bool]) -> bool:
        if self.noncommittal == "majority":
            return sum(flags) * 2 > len(flags)
        return any(flags) if self.noncommittal == "any" else all(flags)


def _counted(flags: Sequence[bool]) -> str:
    return f"{sum(flags)} of {len(flags)} generated questions say so"
