"""Short scales, asked about in two ways that check each other, and scales of the author's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pytest_ragmetrics.judges.blocks import Block, show_contexts
from pytest_ragmetrics.judges.schema import Schema
from pytest_ragmetrics.judges.tasks.critique import show_fields
from pytest_ragmetrics.judges.tasks.ratings import Rate, scale


@dataclass(frozen=True, kw_only=True, slots=True)
class RateContexts(Rate):
    """Rate whether the contexts hold what a question asks for."""

    prompt: ClassVar[str] = "rate_contexts"
    form: ClassVar[Schema] = scale(0, 1, 2)
    question: str
    contexts: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the contexts and the question."""
        return (show_contexts(self.contexts), Block(label="question", text=self.question))


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewContexts(RateContexts):
    """Rate the same in other words."""

    prompt: ClassVar[str] = "review_contexts"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateGroundedness(Rate):
    """Rate whether the contexts bear a response out as a whole."""

    prompt: ClassVar[str] = "rate_groundedness"
    form: ClassVar[Schema] = scale(0, 1, 2)
    response: str
    contexts: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the contexts and the response."""
        return (show_contexts(self.contexts), Block(label="response", text=self.response))


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewGroundedness(RateGroundedness):
    """Rate the same in other words."""

    prompt: ClassVar[str] = "review_groundedness"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateAgreement(Rate):
    """Rate how far one answer to a question agrees with another, whichever of them is the right one."""

    prompt: ClassVar[str] = "rate_agreement"
    form: ClassVar[Schema] = scale(0, 2, 4)
    question: str
    first: str
    second: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the question and both answers."""
        answers = (Block(label="first answer", text=self.first), Block(label="second answer", text=self.second))
        return (Block(label="question", text=self.question), *answers)


@dataclass(frozen=True, kw_only=True, slots=True)
class RateByRubric(Rate):
    """Choose the step, from 1 on, whose description fits a submission best."""

    prompt: ClassVar[str] = "rate_by_rubric"
    steps: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the fields."""
        return show_fields(self.fields)

    def fill(self) -> Mapping[str, str]:
        """Give the steps, which the author of the test wrote."""
        lines = (f"{step}: {' '.join(description.split())}" for step, description in enumerate(self.steps, start=1))
        return {"steps": "\n".join(lines)}

    def schema(self) -> Schema:
        """Return a form whose rating is one of the steps."""
        return scale(*range(1, len(self.steps) + 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class RateByCriteria(Rate):
    """Give a submission a whole number from 0 to ``highest`` by a definition of what the numbers mean."""

    prompt: ClassVar[str] = "rate_by_criteria"
    definition: str
    highest: int
    fields: tuple[tuple[str, str], ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the fields."""
        return show_fields(self.fields)

    def fill(self) -> Mapping[str, str]:
        """Give the definition, which the author of the test wrote, and the best number."""
        return {"definition": self.definition, "highest": str(self.highest)}

    def schema(self) -> Schema:
        """Return a form whose rating is one of the numbers."""
        return scale(*range(self.highest + 1))
