"""What a judge was asked and what it replied, noted beside a scoring so that somebody can look into it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One request and its reply, ``None`` where none came; ``vote`` numbers independent replies to one question.

    ``asked`` returns the prompt: of the many that nobody looks into none is kept.
    """

    task: str
    vote: int
    asked: Callable[[], str]
    reply: str | None
    cached: bool

    def to_row(self) -> dict[str, Any]:
        """Return it with its prompt, as JSON builtins."""
        prompt = self.asked()
        return {"task": self.task, "vote": self.vote, "prompt": prompt, "reply": self.reply, "cached": self.cached}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Exchange:
        """Return what :meth:`to_row` made a row of.

        >>> row = {"task": "list_claims", "vote": 0, "prompt": "Which?", "reply": "{}", "cached": False}
        >>> Exchange.from_row(row).to_row() == row
        True
        """
        prompt: str = row["prompt"]
        return cls(task=row["task"], vote=row["vote"], asked=lambda: prompt, reply=row["reply"], cached=row["cached"])


_notes: ContextVar[list[Exchange] | None] = ContextVar("exchanges", default=None)


@contextmanager
def noting() -> Iterator[None]:
    """Note what judges are asked inside the block, in whatever tasks and threads it is done there."""
    token = _notes.set([])
    try:
        yield
    finally:
        _notes.reset(token)


def note(exchange: Exchange) -> None:
    """Note an exchange, if anybody asked for it."""
    notes = _notes.get()
    if notes is not None:
        notes.append(exchange)


def noted() -> tuple[Exchange, ...]:
    """Return what was noted so far in the innermost block, as it came."""
    return tuple(_notes.get() or ())
