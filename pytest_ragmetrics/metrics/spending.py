"""What a scoring spends by itself: what the scorings inside of it spend, they tell of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from pytest_ragmetrics.result import Usage


@dataclass(kw_only=True, slots=True)
class Spending:
    """What was asked of a judge inside of one scoring, and whether it has other scorings inside."""

    asked: Usage = field(default_factory=Usage)
    is_composite: bool = False

    def own(self, told: Usage | None) -> Usage:
        """Return what a scoring spent by itself, where its outcome tells a sum that may hold that of its parts."""
        return self.asked if self.is_composite or told is None else told


_innermost: ContextVar[Spending | None] = ContextVar("spending", default=None)


@contextmanager
def spending() -> Iterator[Spending]:
    """Add up what the scoring inside the block spends, in its tasks and in threads that have its context.

    Those of ``asyncio.to_thread`` have; to others the block gives it by ``contextvars.copy_context().run``.
    """
    around = _innermost.get()
    if around is not None:
        around.is_composite = True
    spent = Spending()
    token = _innermost.set(spent)
    try:
        yield spent
    finally:
        _innermost.reset(token)


def spend(usage: Usage) -> None:
    """Add to what the scoring around spends, if there is one."""
    spent = _innermost.get()
    if spent is not None:
        spent.asked += usage
