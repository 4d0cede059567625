"""The pace of requests: how many, and how many tokens, are sent a minute, as the run is told or as a provider says.

The state is one for all workers of a run, since one of them may have most of the rows. Nothing is reserved: who waits
looks again, so that a pause which a provider asks for holds for those too that wait already.
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from pytest_ragmetrics.core import database, progress
from pytest_ragmetrics.core.loop import in_child

#: What is limited.
KINDS = ("requests", "tokens")
#: The tokens of an answer that is not there yet.
ANSWER_TOKENS = 150
#: The longest pause in seconds; after a longer one SDKs do not ask again.
LONGEST_PAUSE = 120.0
_MINUTE = 60.0
# Requests of one minute may arrive within less: the network does not take equally long for each.
_SPARE = 1.05
# Seconds that a request may be late without delaying the next: no timer is exact.
_LATE = 0.25
# Seconds between two looks at what others did, and at whether the run has ended.
_GLANCE = 0.5
_SCHEMA = "CREATE TABLE IF NOT EXISTS pace (id INTEGER PRIMARY KEY, state TEXT)"
_START = "INSERT OR IGNORE INTO pace VALUES (1, '{}')"


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowance:
    """What a provider says is left of a limit of ``most``; all of it is there again after some ``seconds``."""

    kind: str
    left: float
    most: float
    seconds: float


@dataclass(kw_only=True, slots=True)
class _Window:
    """What a provider still takes of one kind, by its last word.

    At ``end`` of all that was ``sent`` nothing is left ``until`` a time; then it is ``most`` for ``period`` seconds.
    The word came with the reply to what was sent as number ``heard``: those that come later may be older.
    """

    sent: float = 0.0
    end: float = math.inf
    until: float = -math.inf
    most: float = math.inf
    period: float = 0.0
    heard: float = 0.0

    def wait(self, number: float, now: float) -> float:
        return self.until - now if self.end - self.sent < min(number, self.most) else 0.0

    def send(self, number: float, now: float) -> None:
        if self.until <= now:
            self.end, self.until = self.sent + self.most, now + self.period
        self.sent += number

    def hear(self, said: Allowance, mark: float, now: float) -> None:
        if mark > self.heard:
            self.end, self.until, self.heard = mark + said.left, now + said.seconds, mark
            self.most, self.period = max(said.most, 1.0), said.seconds

    def pause(self, seconds: float, now: float) -> None:
        self.end, self.heard, self.until = self.sent, self.sent, max(self.until, now + seconds)


class Pace:
    """At most so many ``requests`` and ``tokens`` a minute, ``None`` for no limit, and what providers say of theirs.

    Requests are spread evenly, so that no minute has more of them, wherever it begins; those of all processes that have
    the ``file``, without which each of the ``workers`` has its share. What a provider says counts for its model: where
    nothing is left, the next request waits until there is. Those of one model wait in turn, attempts anew beside them.
    Belongs to one event loop.
    """

    def __init__(
        self,
        requests: float | None = None,
        tokens: float | None = None,
        *,
        file: Path | None = None,
        workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given = zip(KINDS, (requests, tokens), strict=True)
        #: The limits of a minute, by kind.
        self.limits = {kind: limit for kind, limit in given if limit is not None}
        #: The seconds in which something was waited for, by what it was.
        self.waits: defaultdict[str, float] = defaultdict(float)
        self._clock = clock
        self._workers = workers
        self._file = file
        if file is None:
            self._part()
        self._connection: sqlite3.Connection | None = None
        self._memory: dict[str, Any] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._noted = -math.inf
        in_child(self, _connection=lambda: None, _turns=lambda: defaultdict(asyncio.Lock))

    @property
    def width(self) -> float:
        """How many requests may be in flight: as many as a minute has, for they hold locks while they wait."""
        return max(1.0, self.limits.get("requests", math.inf))

    async def ready(self, model: str, tokens: float, check: Callable[[], None], *, again: bool = False) -> None:
        """Wait until a request may be sent, calling ``check`` now and then; one made ``again`` has no turn to wait for.

        It must be taken before anything else is awaited.
        """
        async with nullcontext() if again else self._turns[model]:
            while (left := self.wait(model, tokens))[0] > 0:
                seconds, reason = left
                began = self._clock()
                progress.waits(f"waits for {reason}")
                try:
                    await asyncio.sleep(min(seconds, _GLANCE))
                finally:
                    # Several may wait at the same time.
                    self.waits[reason] += max(0.0, self._clock() - max(began, self._noted))
                    self._noted = self._clock()
                    progress.waits("")
                check()

    def wait(self, model: str, tokens: float) -> tuple[float, str]:
        """Return for how many seconds a request must wait, 0 or less for none, and for what."""
        with self._shared() as state:
            now, found = self._clock(), [(0.0, "")]
            for kind, limit in self.limits.items():
                found.append((state.get(kind, now) - now, f"the limit of {_counted(limit, kind)} a minute"))
            for kind, number in zip(KINDS, (1.0, tokens), strict=True):
                window = _window(state, model, kind)
                limit_ = "limit" if math.isinf(window.most) else f"limit of {_counted(window.most, kind)}"
                found.append((window.wait(number, now), f"the provider's {limit_}"))
        return max(found, key=itemgetter(0))

    def take(self, model: str, tokens: float) -> dict[str, float]:
        """Count a request that is sent; return its mark for :meth:`hear`."""
        marks = {}
        with self._shared() as state:
            now = self._clock()
            for kind, number in zip(KINDS, (1.0, max(tokens, 1.0)), strict=True):
                if limit := self.limits.get(kind):
                    # As many as fit into a minute are spread over it.
                    seconds = _MINUTE * _SPARE / (limit // number or limit / number)
                    state[kind] = max(state.get(kind, -math.inf), now - _LATE) + seconds
                window = _window(state, model, kind)
                window.send(number, now)
                marks[kind] = window.sent
        return marks

    def used(self, more: float) -> None:
        """Count so many tokens more than a request was taken for, or with a number below 0 less."""
        if (limit := self.limits.get("tokens")) and more:
            with self._shared() as state:
                state["tokens"] = state.get("tokens", self._clock()) + _MINUTE * _SPARE * more / limit

    def hear(self, model: str, said: Iterable[Allowance], marks: Mapping[str, float]) -> None:
        """Take in what the reply to a request says of the limits of its model."""
        if said := tuple(said):
            with self._shared() as state:
                for each in said:
                    _window(state, model, each.kind).hear(each, marks[each.kind], self._clock())

    def pause(self, model: str, seconds: float) -> None:
        """Send a model nothing for some seconds."""
        with self._shared() as state:
            _window(state, model, "requests").pause(seconds, self._clock())

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _part(self) -> None:
        """Keep a share of the limits, without the file."""
        self._file, self.limits = None, {kind: limit / self._workers for kind, limit in self.limits.items()}

    @contextmanager
    def _shared(self) -> Iterator[dict[str, Any]]:
        """Give the state to read and change, which no other process does meanwhile."""
        if self._file is None:
            yield self._memory
            return
        try:
            if self._connection is None:
                self._connection = database.opened(self._file, _SCHEMA, _START)
            self._connection.execute("BEGIN IMMEDIATE")
            before = self._connection.execute("SELECT state FROM pace").fetchone()[0]
        except (sqlite3.Error, OSError):
            self.close()
            self._part()
            yield self._memory
            return
        state = json.loads(before, object_hook=lambda it: _Window(**it) if "sent" in it else it)
        # A disk may be full; the transaction ends in any case.
        with suppress(sqlite3.Error), self._connection:
            yield state
            if (after := json.dumps(state, default=asdict)) != before:
                self._connection.execute("UPDATE pace SET state = ?", (after,))


def _window(state: dict[str, Any], model: str, kind: str) -> _Window:
    window: _Window = state.setdefault(model, {}).setdefault(kind, _Window())
    return window


def _counted(number: float, kind: str) -> str:
    return f"{number:,.0f} {kind.removesuffix('s') if number == 1 else kind}"
