"""The links next to the provider: requests in flight are bounded and sent at a pace, and the provider is asked."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.prices import estimated_tokens
from pytest_ragmetrics.judges.providers.addresses import is_private
from pytest_ragmetrics.judges.transports.pace import ANSWER_TOKENS, Allowance, Pace
from pytest_ragmetrics.judges.transports.values import AnyRequest, Repair, Reply, Request, Transport

if TYPE_CHECKING:
    from typing_extensions import Self

#: How many requests are in flight unless someone says otherwise.
WIDTH = 32
# How many of them at first to a server of one's own, which often answers one at a time.
_AT_HOME = 4
# The share of the time-out that a reply may take at most where one more request is let in flight.
_SOON = 0.5
# Seconds after "too many requests" before the limiter widens again.
_COOL_DOWN = 5.0
# Seconds in which all such answers narrow the limiter once.
_ONE_OVERLOAD = 1.0


class Place:
    """A request's place among those that a limiter lets in flight, as a context; taken anew for a further attempt."""

    def __init__(self, limiter: Limiter, request: AnyRequest | None = None) -> None:
        self._limiter = limiter
        self._since: float | None = None
        self._answered = 0
        # What has limits of its own at a provider; a judge that costs nothing has none.
        self._model, self._tokens, self._marks = "", 0, dict[str, float]()
        if request is not None and request.provider is not None and request.provider.is_paid:
            self._model = f"{request.kind}:{request.model} {request.url or ''}"
            self._tokens = estimated_tokens(*request.texts) + ANSWER_TOKENS * isinstance(request, Request)

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._since is not None:
            self._limiter.widen(self._since)
        self._give()

    async def ready(self, *, again: bool = False) -> None:
        """Wait until the pace allows a request; raise ``JudgeError`` once the run has ended."""
        if self._model:
            await self._limiter.pace.ready(self._model, self._tokens, self._limiter.check_open, again=again)
            self._since = self._limiter.clock()

    def take(self) -> None:
        """Count a request that is sent."""
        if self._model:
            self._marks = self._limiter.pace.take(self._model, self._tokens)

    def used(self, tokens: int) -> None:
        """Count the tokens that a request took in place of those expected, if they are known."""
        if self._model and tokens:
            self._limiter.pace.used(tokens - self._tokens)

    def hear(self, said: Iterable[Allowance]) -> None:
        """Take in what a response says of the provider's limits."""
        if self._marks:
            self._limiter.pace.hear(self._model, said, self._marks)

    async def attempt(self, *, timeout: float | None, is_first: bool) -> None:
        """Count an attempt, once there is a place for it; raise ``JudgeError`` once the run has ended."""
        if not is_first:
            self._give()
            await self._take(first=True)
            await self.ready(again=True)
            self.take()
        self._limiter.check_open()
        self._limiter.sent += 1
        self._limiter.timeout = timeout
        self._answered = self._limiter.answered

    def too_many(self, pause: float | None) -> bool:
        """Narrow the limiter after "too many requests"; tell whether all wait for the seconds that are asked for."""
        self._limiter.narrow()
        if not self._marks or pause is None:
            return False
        self._limiter.pace.pause(self._model, pause)
        return True

    def timed_out(self, *, is_crowded: bool) -> None:
        """Count an attempt that was given up; in a crowd, let as many in flight as were answered meanwhile."""
        self._limiter.given_up += 1
        if is_crowded:
            self._limiter.is_slow = True
            self._limiter.narrow(self._limiter.answered - self._answered)

    async def _take(self, *, first: bool = False) -> None:
        await self._limiter.enter(first=first)
        self._since = self._limiter.clock()

    def _give(self) -> None:
        # It is not held where the wait for it was cancelled.
        if self._since is not None:
            self._since = None
            self._limiter.leave()


#: The place of the request that is made; none where no limiter bounds it.
current_place: ContextVar[Place | None] = ContextVar("current_place", default=None)


@contextmanager
def holding(place: Place | None) -> Iterator[None]:
    """Hold a place for what is asked inside; none for several requests at once, or on another loop."""
    before = current_place.set(place)
    try:
        yield
    finally:
        current_place.reset(before)


class Providers:
    """The last link: asks the judge or the embedder of the request."""

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply of the provider."""
        provider: Any = request.provider
        place = current_place.get()
        if place is not None:
            place.take()
        reply: Reply = await provider.complete(request)
        if place is not None:
            place.used(reply.prompt_tokens + reply.completion_tokens)
        return reply


#: Asks the provider and validates; without cache, limits and budget.
DIRECT: Transport = Repair(Providers())


class Limiter:
    """Bounds the requests in flight; narrows on "too many requests" and on time-outs, and widens again later.

    ``at_home`` are in flight at first to a server of one's own, and one that may be slow gets more as long as its
    replies come within half of their time-out. First come, first served, but a further attempt before all. Those in
    flight are sent at a ``pace``. Belongs to one event loop. Raises ``ValueError`` for a ``width`` below 1.
    """

    def __init__(
        self,
        width: int,
        following: Transport | None = None,
        *,
        at_home: int | None = None,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if width < 1:
            raise ValueError(f"at least 1 request must be allowed in flight, not {width}")
        self._following = following or Providers()
        self._full = width
        #: The number of requests that may be in flight now.
        self.width = width
        #: Whether requests are sent; set to False in any thread, it lets those in flight end and sends no other.
        self.is_open = True
        #: The attempts that were made, those that were given up after their time-out, and the requests answered.
        self.sent = self.given_up = self.answered = 0
        #: The time-out of an attempt in seconds, and whether replies may wait for one another at a server.
        self.timeout: float | None = None
        self.is_slow = False
        self._at_home = at_home or width
        self._homes: set[str] = set()
        self._busy = 0
        self._again: deque[asyncio.Future[None]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.clock = clock
        #: How fast they are sent.
        self.pace = pace or Pace()
        self._narrowed = -math.inf
        in_child(self, _busy=int, _again=deque, _waiting=deque)

    async def send(self, request: AnyRequest) -> Reply:
        """Send a request when fewer than ``width`` are in flight."""
        if request.url is not None and request.url not in self._homes and is_private(request.url):
            self._homes.add(request.url)
            self.is_slow, self.width = True, min(self.width, self._at_home)
        async with Place(self, request) as place:
            with holding(place):
                await place.ready()
                self.check_open()
                request.started()
                reply = await self._following.send(request)
                self.answered += 1
                return reply

    def check_open(self) -> None:
        """Raise ``JudgeError`` once the run has ended."""
        if not self.is_open:
            raise JudgeError("the run has ended, and nothing more is asked")

    def narrow(self, most: int | None = None) -> None:
        """Halve the width, at most once a second, to at ``most`` so many."""
        now = self.clock()
        if now - self._narrowed >= _ONE_OVERLOAD:
            self._narrowed = now
            half = self.width // 2
            self.width = max(1, half if most is None else min(half, most))

    def widen(self, since: float) -> None:
        """Let one more in flight after a reply that was waited for since some time."""
        seconds = self.clock() - since
        if self.width >= self._full or self.clock() - self._narrowed < _COOL_DOWN:
            return
        # Where replies wait for one another, each takes as many times longer as there are more.
        longest = seconds * (self.width + 1) / self.width
        is_soon = self.timeout is None or (self._busy >= self.width and longest <= _SOON * self.timeout)
        if is_soon or not self.is_slow:
            self.width += 1

    async def enter(self, *, first: bool = False) -> None:
        """Wait until fewer than ``width`` are in flight; see :class:`Place`."""
        if self._busy < self.width:
            # The queue is empty: a free place goes to the next in it at once.
            self._busy += 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._again if first else self._waiting).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Let the next in flight."""
        self._busy -= 1
        while (queue := self._again or self._waiting) and self._busy < self.width:
            turn = queue.popleft()
            # One whose wait was cancelled is still there.
            if not turn.done():
                self._busy += 1
                turn.set_result(None)


def at_home(concurrency: int, workers: int = 1) -> int:
    """Return how many requests a process has in flight at first to a server of one's own; all, if someone says so.

    >>> at_home(32, workers=2), at_home(64)
    (2, 64)
    """
    return max(1, (_AT_HOME if concurrency == WIDTH else concurrency) // workers)
