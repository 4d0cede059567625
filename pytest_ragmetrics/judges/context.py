"""What surrounds a scoring: the session, who judges, how many votes, who records it, and its usage.

Metrics work without pytest. Where a session runs it records every scoring, and has the judge, the embedder and the
transport that metrics use unless they were given their own. All of it is one context variable, which tasks and the
threads of ``asyncio.to_thread`` inherit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.core.running import innermost

if TYPE_CHECKING:
    from pytest_ragmetrics.core.errors import UnscoredError
    from pytest_ragmetrics.core.result import Direction, MetricResult, ThresholdCheck
    from pytest_ragmetrics.core.sample import Sample
    from pytest_ragmetrics.judges.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
    from pytest_ragmetrics.judges.transports.values import Transport


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One request to a judge and its reply, ``None`` where none came.

    ``prompt`` is the message of the user; the system message is the same everywhere. ``vote`` numbers independent
    replies to one question. ``cached`` replies were paid for earlier; ``judge`` is who was asked.
    """

    task: str
    vote: int
    prompt: str
    reply: str | None
    cached: bool
    judge: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Scoring:
    """One metric applied to one sample: its result or the reason why there is none, and what the judge was asked."""

    metric: str
    sample: Sample
    outcome: MetricResult | UnscoredError
    better: Direction = "higher"
    #: The comparison with the bound that the marker of its test declares.
    declared: ThresholdCheck | None = None
    exchanges: tuple[Exchange, ...] = ()
    #: How many replies to it name which model, by judge and model.
    served: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Without that of the scorings inside of it; ``None`` where the outcome has it.
    own_usage: Usage | None = None
    #: Whether the sample is a labelled one that the judge is held to, and none of the application.
    calibration: bool = False
    #: Whether it is a part of another score.
    part: bool = False
    #: What makes a score of the metric besides its judge, as :func:`~pytest_ragmetrics.metrics.base.rule_of` says it.
    rule: str | None = None
    #: How many answers its conversation has, where the last alone was scored; else 0.
    answers: int = 0

    @property
    def usage(self) -> Usage:
        """Its usage; the scorings inside of it record theirs."""
        return self.own_usage or self.outcome.usage or Usage()

    @property
    def comparison(self) -> ThresholdCheck | None:
        """What the score was compared with: the declared bound, unless it meets that and missed one of the test."""
        own: ThresholdCheck | None = getattr(self.outcome, "comparison", None)
        if self.declared is None or (self.declared.held and own is not None and not own.held):
            return own
        return self.declared


@dataclass(kw_only=True, slots=True)
class ScoringLog:
    """The exchanges and usage of one scoring so far, and whether it has other scorings inside."""

    usage: Usage = field(default_factory=Usage)
    exchanges: list[Exchange] = field(default_factory=list)
    served: Counter[tuple[str, str]] = field(default_factory=Counter)
    is_composite: bool = False
    is_part: bool = False

    def own_usage(self, total: Usage | None) -> Usage:
        """Return the usage of the scoring itself; the ``total`` of its outcome may include that of its parts."""
        return self.usage if self.is_composite or total is None else total


@dataclass(kw_only=True, slots=True)
class Replies:
    """The replies that are kept of what is asked inside a ``with`` block, and when each was made (ISO 8601).

    ``fresh`` ones are asked for again where they are stored, once a run; not in replay, nor in batches.
    """

    fresh: bool = False
    made: list[str] = field(default_factory=list)


class ScoringRecorder(Protocol):
    """Takes scorings."""

    def scored(self, scoring: Scoring) -> None:
        """Record a scoring."""


class Session(ScoringRecorder, Protocol):
    """What a running session offers to the metrics."""

    def used(self, metric: Any, scoring: Scoring) -> None:
        """Note the metric that made a scoring, which may have to make others like it."""

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
    def batched(self) -> bool:
        """Whether requests wait for others, so that all scores may be under way at once."""

    @property
    def asks_once(self) -> bool:
        """Whether what several ask alike is asked once: where replies are kept nowhere, each asks by itself."""

    #: How many rows an application is answering, which may lead to requests.
    answering: int

    @property
    def votes(self) -> int:
        """How many independent judgements make a score, unless a call says otherwise."""

    @property
    def dry_run(self) -> bool:
        """Whether requests are forecast and none is made, so that no score decides anything."""

    @property
    def metrics(self) -> Sequence[Any]:
        """The metrics that plugins registered, instances or classes; of two of one name the last counts."""

    @property
    def module(self) -> Mapping[str, Any]:
        """The names in the module of the running test, among which may be metrics of its own."""

    @property
    def baseline(self) -> Any:
        """The file with the scores of an earlier run to compare this one with, or several runs."""

    @property
    def clusters(self) -> Literal["passages", "named"]:
        """Which rows are dependent where two runs are compared."""

    @property
    def columns(self) -> str:
        """Which columns stand for which fields in data sets that do not say so themselves."""

    @property
    def transport(self) -> Transport:
        """Where requests to judges and embedders are sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What applies to the scorings inside a ``with`` block; what is ``None`` is left to the session."""

    #: The session of one evaluation alone, which others of the same process must not see; else the running one.
    private: Session | None = None
    #: The test that asks, where it is not the one that runs: that of a row which is scored ahead.
    test: str | None = None
    #: Who records the scorings instead of the session.
    recorder: ScoringRecorder | None = None
    #: The spec of the judge of metrics that were given none.
    judge: str | None = None
    votes: int | None = None
    #: The number of a single judgement, from 1 on where it is one more on the same claims.
    vote: int = 0
    #: The names of the metrics of the row, and those metrics that may ask together.
    row: Sequence[str] = ()
    beside: Sequence[Any] = ()
    #: The metric that the bounds ``least`` and ``most`` of its score are for.
    bounded: object = None
    least: float | None = None
    most: float | None = None
    #: Whether the samples are labelled ones that the judge is held to, and none of the application.
    calibration: bool = False
    replies: Replies | None = None
    #: Stops asking providers that do not answer while many rows wait.
    breaker: CircuitBreaker | None = None
    log: ScoringLog | None = None

    @property
    def session(self) -> Session | None:
        """The innermost session."""
        running: Session | None = innermost()
        return self.private or running

    def wanted_votes(self) -> int:
        """Return how many votes make a score."""
        session = self.session
        return self.votes or (1 if session is None else session.votes)

    def record(self, scoring: Scoring) -> None:
        """Pass a scoring on to the recorder or the session, if there is one."""
        recorder = self.recorder or self.session
        if recorder is not None:
            part = self.log is not None and self.log.is_part
            recorder.scored(replace(scoring, calibration=self.calibration, part=part))


_NOTHING = Context()
_context: ContextVar[Context] = ContextVar("pytest_ragmetrics", default=_NOTHING)


def current() -> Context:
    """Return the context of the caller."""
    return _context.get()


@contextmanager
def changed(**changes: Any) -> Iterator[Context]:
    """Replace these fields of the :class:`Context` for the tasks and threads that are started inside."""
    context = replace(_context.get(), **changes)
    token = _context.set(context)
    try:
        yield context
    finally:
        _context.reset(token)


@contextmanager
def scoring() -> Iterator[ScoringLog]:
    """Log exchanges and usage of the scoring inside the block, in its tasks and in threads that inherit its context."""
    context = _context.get()
    if context.log is not None:
        context.log.is_composite = True
    log = ScoringLog(is_part=context.log is not None)
    with changed(log=log):
        yield log
