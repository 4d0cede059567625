"""Tasks about the claims and entities of a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_ragmetrics.judges.schema import NUMBER, TEXT, Schema, distinct, in_order, list_of, one_of, record
from pytest_ragmetrics.judges.tasks.task import Judgement, Task, cited
from pytest_ragmetrics.text.sentences import sentence_table


@dataclass(frozen=True, kw_only=True, slots=True)
class ListClaims(Task[tuple[str, ...]]):
    """List the claims of a text, each understandable alone; the question helps to resolve its pronouns."""

    prompt: ClassVar[str] = "list_claims"
    shown: ClassVar[tuple[str, ...]] = ("question", "text")
    form: ClassVar[Schema] = record(claims=list_of(TEXT))
    text: str
    question: str | None = None

    def _parse(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct(answer["claims"], "claim")


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyClaims(Task[tuple[Judgement, ...]]):
    """Decide which claims the contexts support, and by which of their sentences; one judgement a claim, in order."""

    prompt: ClassVar[str] = "verify_claims"
    shown: ClassVar[tuple[str, ...]] = ("contexts", "claims")
    form: ClassVar[Schema] = record(
        verdicts=list_of(
            record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of("supported", "unsupported"))
        )
    )
    claims: tuple[str, ...]
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        last = len(sentence_table(self.contexts))
        verdicts = in_order(answer["verdicts"], len(self.claims), "claim")
        return tuple(
            cited(verdict, "supported", last=last, subject=f"claim {verdict['number']}") for verdict in verdicts
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ListEntities(Task[tuple[str, ...]]):
    """List the entities that some contexts name, each once."""

    prompt: ClassVar[str] = "list_entities"
    shown: ClassVar[tuple[str, ...]] = ("contexts",)
    form: ClassVar[Schema] = record(entities=list_of(TEXT))
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct(answer["entities"], "entity")
