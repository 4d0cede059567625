"""Metrics of two ratings: the same is asked in two ways at the same time, and the mean is the score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pytest_ragmetrics.judges.tasks import (
    RateAgreement,
    RateContexts,
    RateGroundedness,
    Rating,
    ReviewContexts,
    ReviewGroundedness,
    Task,
)
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.together import together
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample


class DualRating(JudgedMetric):
    """The mean of two ratings, each brought to [0, 1]; without one of them there is no score."""

    rounds: ClassVar[int] = 1
    may_be_empty: ClassVar[tuple[str, ...]] = ()
    #: The field that is rated.
    rated: ClassVar[str] = "response"

    @abstractmethod
    def tasks(self, sample: Sample) -> tuple[Task[Rating], Task[Rating]]:
        """Return what is asked, in the two ways."""

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the mean of both ratings."""
        ratings = await together(ask(task) for task in self.tasks(sample))
        text: str = getattr(sample, self.rated)
        place = (0, len(text)) if self.rated == "response" else (None, None)
        verdicts = [
            Verdict(text=text, ok=rating.value == 1, start=place[0], end=place[1], reason=rating.reason or None)
            for rating in ratings
        ]
        return ask.result(mean_of(ratings), reason=_told(ratings), verdicts=verdicts)


class ContextRelevance(DualRating):
    """How far the contexts hold what the question asks for, rated 0, 1 or 2 by two differently worded requests.

    Takes ``user_input`` and ``retrieved_contexts``. Both requests at the same time; each rating is halved, and the
    score is their mean. After the context relevance of Nvidia in Ragas, without its special cases.

    >>> judge = lambda prompt: '{"reason": "Half of it.", "rating": 1}'
    >>> ContextRelevance(judge=judge).score(user_input="Who, when?", retrieved_contexts=["In May."]).value
    0.5
    """

    name = "context_relevance"
    aliases: ClassVar[tuple[str, ...]] = ("nv_context_relevance",)
    requires: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts")
    rated: ClassVar[str] = "user_input"

    def tasks(self, sample: Sample) -> tuple[Task[Rating], Task[Rating]]:
        """Return both wordings."""
        question, contexts = sample.user_input or "", tuple(sample.retrieved_contexts or ())
        return RateContexts(question=question, contexts=contexts), ReviewContexts(question=question, contexts=contexts)


class ResponseGroundedness(DualRating):
    """How far the contexts bear the response out, rated 0, 1 or 2 by two differently worded requests.

    Takes ``response`` and ``retrieved_contexts``. Both requests at the same time; each rating is halved, and the
    score is their mean. After the response groundedness of Nvidia in Ragas, without its special cases.

    >>> judge = lambda prompt: '{"reason": "All of it.", "rating": 2}'
    >>> metric = ResponseGroundedness(judge=judge)
    >>> metric.score(response="Moths fly.", retrieved_contexts=["Moths fly at night."]).value
    1.0
    """

    name = "response_groundedness"
    aliases: ClassVar[tuple[str, ...]] = ("nv_response_groundedness",)
    requires: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")

    def tasks(self, sample: Sample) -> tuple[Task[Rating], Task[Rating]]:
        """Return both wordings."""
        said, contexts = sample.response or "", tuple(sample.retrieved_contexts or ())
        return RateGroundedness(response=said, contexts=contexts), ReviewGroundedness(response=said, contexts=contexts)


class AnswerAccuracy(DualRating):
    """How far response and reference agree as answers to the question, rated 0, 2 or 4 both ways round.

    Takes ``user_input``, ``response`` and ``reference``. Two requests at the same time, the second with the answers
    swapped; the score is the mean of the ratings, divided by 4. After the answer accuracy of Nvidia in Ragas.

    >>> judge = lambda prompt: '{"reason": "A part of it.", "rating": 2}'
    >>> AnswerAccuracy(judge=judge).score(user_input="When?", response="In May.", reference="In May 1903.").value
    0.5
    """

    name = "answer_accuracy"
    aliases: ClassVar[tuple[str, ...]] = ("nv_accuracy",)
    requires: ClassVar[tuple[str, ...]] = ("user_input", "response", "reference")

    def tasks(self, sample: Sample) -> tuple[Task[Rating], Task[Rating]]:
        """Return the question with the answers in both orders."""
        question, response, reference = sample.user_input or "", sample.response or "", sample.reference or ""
        return (
            RateAgreement(question=question, first=response, second=reference),
            RateAgreement(question=question, first=reference, second=response),
        )


def mean_of(ratings: Sequence[Rating]) -> float:
    """Return the mean of ratings.

    >>> mean_of([Rating(value=1.0, reason=""), Rating(value=0.5, reason="")])
    0.75
    """
    return sum(rating.value for rating in ratings) / len(ratings)


def _told(ratings: Sequence[Rating]) -> str:
    return f"rated {' and '.join(f'{rating.value:.2f}' for rating in ratings)}"
