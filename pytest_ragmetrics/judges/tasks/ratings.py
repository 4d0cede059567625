"""Tasks that rate on a scale: the metrics' own, in two wordings that check each other, and scales of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics.judges.schema import TEXT, Schema, one_of, record
from pytest_ragmetrics.judges.tasks.task import Judgement, Rating, Task, decided


@dataclass(frozen=True, kw_only=True, slots=True)
class Critique(Task[Judgement]):
    """Decide whether a definition applies to a submission of ``(name, text)`` fields; ok when it does."""

    prompt = "critique"
    shown = ("fields",)
    filled = ("definition",)
    form = record(reason=TEXT, verdict=one_of("yes", "no"))
    definition: str
    fields: tuple[tuple[str, str], ...]

    def _parse(self, answer: Mapping[str, Any]) -> Judgement:
        return decided(answer, "yes")


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRefusal(Task[Judgement]):
    """Decide whether a response declines to answer the question; ok when it does."""

    prompt = "judge_refusal"
    shown = ("earlier", "question", "response")
    form = record(reason=TEXT, verdict=one_of("refuses", "answers"))
    question: str
    response: str
    earlier: tuple[str, ...] | None = None

    def _parse(self, answer: Mapping[str, Any]) -> Judgement:
        return decided(answer, "refuses")


#: The best rating a judge may give; its steps are enumerated, and divided by this one here.
TOP_RATING = 4


def scale(*steps: int) -> Schema:
    """Return the form of a rating that is one of these steps, the lowest first."""
    return record(reason=TEXT, rating=one_of(*steps))


_RATED = scale(*range(TOP_RATING + 1))


class Rate(Task[Rating]):
    """A task whose answer is a step of a scale."""

    __slots__ = ()

    def _parse(self, answer: Mapping[str, Any]) -> Rating:
        steps = self.schema()["properties"]["rating"]["enum"]
        step: int = answer["rating"]
        return Rating(value=(step - steps[0]) / (steps[-1] - steps[0]), reason=answer["reason"].strip(), step=step)


@dataclass(frozen=True, kw_only=True, slots=True)
class RateRelevance(Rate):
    """Rate how well a response addresses the question."""

    prompt = "rate_relevance"
    shown = ("earlier", "question", "response")
    form = _RATED
    question: str
    response: str
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RateCorrectness(Rate):
    """Rate how far a response says what the reference says; after earlier turns the question is shown."""

    prompt = "rate_correctness"
    shown = ("earlier", "question", "reference", "response")
    form = _RATED
    response: str
    reference: str
    question: str | None = None
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RateContexts(Rate):
    """Rate whether the contexts answer a question."""

    prompt = "rate_contexts"
    shown = ("contexts", "earlier", "question")
    form = scale(0, 1, 2)
    question: str
    contexts: tuple[str, ...]
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewContexts(RateContexts):
    """Rate as :class:`RateContexts`, in other words."""

    prompt = "review_contexts"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateGroundedness(Rate):
    """Rate whether the contexts support a response as a whole; after earlier turns the question is shown."""

    prompt = "rate_groundedness"
    shown = ("contexts", "earlier", "question", "response")
    on_earlier = (
        f"{Task.on_earlier} Thanks, greetings and offers of help need no context: a response that says nothing else is "
        "rated 2."
    )
    form = scale(0, 1, 2)
    response: str
    contexts: tuple[str, ...]
    question: str | None = None
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewGroundedness(RateGroundedness):
    """Rate as :class:`RateGroundedness`, in other words."""

    prompt = "review_groundedness"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateAgreement(Rate):
    """Rate how far two answers to a question agree, whichever is right."""

    prompt = "rate_agreement"
    shown = ("earlier", "question", "first", "second")
    form = scale(0, 2, 4)
    question: str
    first: str
    second: str
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RateByRubric(Rate):
    """Choose the step, from 1 on, that fits a submission best."""

    prompt = "rate_by_rubric"
    shown = ("fields",)
    steps: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]

    def fill(self) -> Mapping[str, str]:
        """Give the steps, which the author of the test wrote."""
        lines = (f"{step}: {' '.join(description.split())}" for step, description in enumerate(self.steps, start=1))
        return {"steps": "\n".join(lines)}

    def schema(self) -> Schema:
        """Return a form whose rating is one of the steps."""
        return scale(*range(1, len(self.steps) + 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class RateByCriteria(Rate):
    """Rate a submission from 0 to ``highest`` by a definition."""

    prompt = "rate_by_criteria"
    shown = ("fields",)
    filled = ("definition", "highest")
    definition: str
    highest: int
    fields: tuple[tuple[str, str], ...]

    def schema(self) -> Schema:
        """Return a form whose rating is one of the numbers."""
        return scale(*range(self.highest + 1))
