"""Stops asking providers that do not answer, while many rows wait: in evaluations and in scoring rows ahead."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.transport import AnyRequest, JudgeOutageError, JudgeUnavailableError, Reply, Transport

# With few requests in flight, a few questions that take too long are not yet an outage.
_FEWEST = 3
#: Seconds between two attempts to ask again a provider that was given up.
RETRY_AFTER = 60.0


class CircuitBreaker:
    """Gives up a provider whose next request will fail as well, so that rows do not fail one by one after long retries.

    At once where no request can succeed (no credit, wrong key); after as many requests in a row that got no answer as
    ``width`` may be in flight, and three at least. Stored replies are found all the same.
    """

    def __init__(self, width: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        #: How many requests in a row must go unanswered.
        self.most = max(_FEWEST, width)
        self._clock = clock
        self._unanswered: Counter[tuple[str, str]] = Counter()
        self._given_up: dict[tuple[str, str], JudgeError] = {}
        self._next_try = clock()

    @property
    def is_open(self) -> bool:
        """Whether a provider was given up."""
        return bool(self._given_up)

    async def send(self, request: AnyRequest, following: Transport) -> Reply:
        """Pass a request on; raise what it raises, or why its provider was given up before."""
        provider = request.kind, request.model
        if provider in self._given_up:
            raise self._given_up[provider]
        try:
            reply = await following.send(request)
        except (JudgeUnavailableError, JudgeOutageError) as error:
            self._failed(provider, error)
            raise
        del self._unanswered[provider]
        return reply

    def half_open(self) -> None:
        """Ask providers that were given up once more each, at most every ``RETRY_AFTER`` seconds."""
        if self._clock() >= self._next_try and self._given_up:
            self._next_try = self._clock() + RETRY_AFTER
            self._unanswered.update(dict.fromkeys(self._given_up, self.most))
            self._given_up.clear()

    def _failed(self, provider: tuple[str, str], error: JudgeError) -> None:
        self._unanswered[provider] += 1
        if isinstance(error, JudgeUnavailableError):
            self._given_up.setdefault(provider, error)
        elif self._unanswered[provider] >= self.most:
            msg = f"not asked any more, as {self.most} requests in a row went unanswered; the last: {error}"
            self._given_up.setdefault(provider, JudgeOutageError(msg))


class CircuitBreakers:
    """Sends each request through the breaker that is ``current`` where it is made, if there is one."""

    def __init__(self, following: Transport, current: Callable[[], CircuitBreaker | None]) -> None:
        self._following = following
        self._current = current

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; raise as :meth:`CircuitBreaker.send`."""
        breaker = self._current()
        return await (self._following.send(request) if breaker is None else breaker.send(request, self._following))
