"""Ratings: the steps of a scale, enumerated so that none can lie beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_ragmetrics.judges.blocks import Block
from pytest_ragmetrics.judges.schema import TEXT, Schema, one_of, record
from pytest_ragmetrics.judges.tasks.task import Rating, Task

#: The best rating a judge may give; its steps are enumerated, and divided by this one here.
TOP_RATING = 4


def scale(*steps: int) -> Schema:
    """Return the form of a rating that is one of these steps, the lowest first."""
    return record(reason=TEXT, rating=one_of(*steps))


_RATED = scale(*range(TOP_RATING + 1))


class Rate(Task[Rating]):
    """A task whose answer is a step of a scale."""

    __slots__ = ()

    def _settle(self, answer: Mapping[str, Any]) -> Rating:
        steps = self.schema()["properties"]["rating"]["enum"]
        step: int = answer["rating"]
        return Rating(value=(step - steps[0]) / (steps[-1] - steps[0]), reason=answer["reason"].strip(), step=step)


@dataclass(frozen=True, kw_only=True, slots=True)
class RateRelevance(Rate):
    """Rate how well a response addresses the question."""

    prompt: ClassVar[str] = "rate_relevance"
    form: ClassVar[Schema] = _RATED
    question: str
    response: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the question and the response."""
        return (Block(label="question", text=self.question), Block(label="response", text=self.response))


@dataclass(frozen=True, kw_only=True, slots=True)
class RateCorrectness(Rate):
    """Rate how far a response says what the reference says."""

    prompt: ClassVar[str] = "rate_correctness"
    form: ClassVar[Schema] = _RATED
    response: str
    reference: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the reference and the response."""
        return (Block(label="reference", text=self.reference), Block(label="response", text=self.response))
