"""The running pytest session, as far as metrics need to know of it.

Metrics work without pytest; where a session runs, it wants to hear of every scoring, and it has the judge, the
embedder and the desk that metrics use unless they were given their own. Sessions form a stack because a test may
run pytest inside pytest, in one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pytest_ragmetrics.result import Usage

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from pytest_ragmetrics.embedders.embedder import Embedder
    from pytest_ragmetrics.errors import UnscoredError
    from pytest_ragmetrics.judges.judge import Judge, Transport
    from pytest_ragmetrics.metrics.base import Metric
    from pytest_ragmetrics.result import Direction, MetricResult
    from pytest_ragmetrics.sample import Sample


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One request to a judge and its reply, ``None`` where none came.

    ``prompt`` is the message of the user; the system message is the same everywhere. ``vote`` numbers independent
    replies to one question. ``cached`` replies were paid for earlier.
    """

    task: str
    vote: int
    prompt: str
    reply: str | None
    cached: bool


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Scoring:
    """One metric applied to one sample: its result or the reason why there is none, and what the judge was asked."""

    metric: str
    sample: Sample
    outcome: MetricResult | UnscoredError
    better: Direction = "higher"
    exchanges: tuple[Exchange, ...] = ()
    #: What it spent by itself, where that is known apart from what its outcome says.
    spent: Usage | None = None

    @property
    def usage(self) -> Usage:
        """What it spent; the scorings inside of it tell of theirs."""
        from pytest_ragmetrics.result import Usage

        return self.spent or self.outcome.usage or Usage()


class EmbeddingTransport(Protocol):
    """Where texts are handed in that need vectors."""

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, shape (n, d)."""


class Session(Protocol):
    """What a running session offers to the metrics."""

    def scored(self, scoring: Scoring) -> None:
        """Take note of a scoring."""

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return the judge of a spec, or of the session; raise ``JudgeNotConfiguredError`` if it has none.

        A judge that is given is the one returned, once the session knows it.
        """

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        """Return an embedder as :meth:`judge` returns a judge."""

    @property
    def concurrency(self) -> int:
        """How many requests may be in flight."""

    @property
    def votes(self) -> int:
        """How many independent judgements make a score, unless a call says otherwise."""

    @property
    def dry_run(self) -> bool:
        """Whether requests are forecast and none is made, so that no score decides anything."""

    @property
    def metrics(self) -> Sequence[Metric | type[Metric]]:
        """The metrics that others registered, known by their names from then on; the last of a name counts."""

    @property
    def baseline(self) -> Path | None:
        """The file with the scores of an earlier run, to hold those of this one against."""

    @property
    def desk(self) -> Transport:
        """Where requests to a judge are handed in."""

    @property
    def embedding_desk(self) -> EmbeddingTransport:
        """Where texts to embed are handed in."""


_running: list[Session] = []
# A session of one evaluation alone, which others of the same process must not see.
_private: ContextVar[Session | None] = ContextVar("private session", default=None)


def enter(session: Session) -> None:
    """Make this the running session."""
    _running.append(session)


def leave(session: Session) -> None:
    """End this session; the one around it, if any, runs again."""
    _running.remove(session)


@contextmanager
def within(session: Session) -> Iterator[None]:
    """Make this the running session for the tasks and threads that are started inside, and for no other."""
    token = _private.set(session)
    try:
        yield
    finally:
        _private.reset(token)


def current() -> Session | None:
    """Return the innermost running session."""
    return _private.get() or (_running[-1] if _running else None)
