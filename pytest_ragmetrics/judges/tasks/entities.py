"""Entities: what a text names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_ragmetrics.judges.blocks import Block, show_contexts
from pytest_ragmetrics.judges.schema import TEXT, Schema, distinct, list_of, record
from pytest_ragmetrics.judges.tasks.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class ListEntities(Task[tuple[str, ...]]):
    """List the entities that some contexts name, each once."""

    prompt: ClassVar[str] = "list_entities"
    form: ClassVar[Schema] = record(entities=list_of(TEXT))
    contexts: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the contexts."""
        return (show_contexts(self.contexts),)

    def _settle(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct(answer["entities"], "entity")
