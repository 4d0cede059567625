"""Yes or no: whether something holds of a submission."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_ragmetrics.judges.blocks import Block
from pytest_ragmetrics.judges.schema import TEXT, Schema, one_of, record
from pytest_ragmetrics.judges.tasks.task import Judgement, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Critique(Task[Judgement]):
    """Decide whether a definition applies to a submission, given as ``(name, text)`` fields; ok when it does."""

    prompt: ClassVar[str] = "critique"
    form: ClassVar[Schema] = record(reason=TEXT, verdict=one_of("yes", "no"))
    definition: str
    fields: tuple[tuple[str, str], ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the fields, contexts among them first."""
        return show_fields(self.fields)

    def fill(self) -> Mapping[str, str]:
        """Give the definition, which the author of the test wrote."""
        return {"definition": self.definition}

    def _settle(self, answer: Mapping[str, Any]) -> Judgement:
        return Judgement(ok=answer["verdict"] == "yes", reason=answer["reason"].strip())


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRefusal(Task[Judgement]):
    """Decide whether a response declines to answer the question; ok when it does."""

    prompt: ClassVar[str] = "judge_refusal"
    form: ClassVar[Schema] = record(reason=TEXT, verdict=one_of("refuses", "answers"))
    question: str
    response: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the question and the response."""
        return (Block(label="question", text=self.question), Block(label="response", text=self.response))

    def _settle(self, answer: Mapping[str, Any]) -> Judgement:
        return Judgement(ok=answer["verdict"] == "refuses", reason=answer["reason"].strip())


def show_fields(fields: Iterable[tuple[str, str]]) -> tuple[Block, ...]:
    """Return a block for each ``(name, text)``, contexts first."""
    ordered = sorted(fields, key=lambda field: "context" not in field[0])
    return tuple(Block(label=name, text=text) for name, text in ordered)
