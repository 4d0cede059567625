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

_RATED = record(reason=TEXT, rating=one_of(*range(TOP_RATING + 1)))


@dataclass(frozen=True, kw_only=True, slots=True)
class RateRelevance(Task[Rating]):
    """Rate how well a response addresses the question."""

    prompt: ClassVar[str] = "rate_relevance"
    form: ClassVar[Schema] = _RATED
    question: str
    response: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the question and the response."""
        return (Block(label="question", text=self.question), Block(label="response", text=self.response))

    def _settle(self, answer: Mapping[str, Any]) -> Rating:
        return _rating(answer)


@dataclass(frozen=True, kw_only=True, slots=True)
class RateCorrectness(Task[Rating]):
    """Rate how far a response says what the reference says."""

    prompt: ClassVar[str] = "rate_correctness"
    form: ClassVar[Schema] = _RATED
    response: str
    reference: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the reference and the response."""
        return (Block(label="reference", text=self.reference), Block(label="response", text=self.response))

    def _settle(self, answer: Mapping[str, Any]) -> Rating:
        return _rating(answer)


def _rating(answer: Mapping[str, Any]) -> Rating:
    return Rating(value=answer["rating"] / TOP_RATING, reason=answer["reason"].strip(), step=answer["rating"])
