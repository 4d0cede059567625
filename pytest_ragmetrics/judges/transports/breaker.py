"""Stops asking providers that do not answer: in tables, while many rows wait, and in tests that ask one by one."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.transports.values import (
    AnyRequest,
    JudgeOutageError,
    JudgeUnavailableError,
    Reply,
    Transport,
)

# With few requests in flight, a few questions that take too long are not yet an outage.
_FEWEST = 3
#: Seconds between two attempts to ask again a provider that was given up.
RETRY_AFTER = 60.0
# Seconds after the first probe without an answer.
_FIRST_PAUSE = 1.0


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
        #: Why providers were given up, by kind and model.
        self.given_up: dict[tuple[str, str], JudgeError] = {}
        self._next_try = clock()

    def give_up(self, others: Mapping[tuple[str, str], JudgeError]) -> None:
        """Give up what other processes did."""
        self.given_up = {**others, **self.given_up}

    @property
    def is_open(self) -> bool:
        """Whether a provider was given up."""
        return bool(self.given_up)

    async def send(self, request: AnyRequest, following: Transport) -> Reply:
        """Pass a request on; raise what it raises, or why its provider was given up before."""
        provider = request.kind, request.model
        if provider in self.given_up:
            raise self.given_up[provider]
        try:
            reply = await following.send(request)
        except (JudgeUnavailableError, JudgeOutageError) as error:
            self._unanswered[provider] += 1
            if isinstance(error, JudgeUnavailableError):
                self.given_up.setdefault(provider, error)
            elif self._unanswered[provider] >= self.most:
                msg = f"not asked any more, as {self.most} requests in a row went unanswered; the last: {error}"
                self.given_up.setdefault(provider, JudgeOutageError(msg))
            raise
        del self._unanswered[provider]
        return reply

    def half_open(self) -> None:
        """Ask providers that were given up once more each, at most every ``RETRY_AFTER`` seconds."""
        if self._clock() >= self._next_try and self.given_up:
            self._next_try = self._clock() + RETRY_AFTER
            self._unanswered.update(dict.fromkeys(self.given_up, self.most))
            self.given_up.clear()


@dataclass(kw_only=True, slots=True)
class _Provider:
    """How a provider answers: the attempts in a row that it left unanswered, and since when."""

    in_flight: int = 0
    widest: int = 0
    unanswered: int = 0
    since: str = ""
    failure: JudgeOutageError | None = None
    is_probed: bool = False
    next_probe: float = 0.0
    pause: float = 0.0


class ProbingBreaker:
    """Gives up a provider that answers nothing, and asks it again with one request at a time, without retries.

    For requests that nobody counts beforehand, as those of single tests. A provider is given up after as many attempts
    in a row without an answer as requests were in flight at once, and three at least; a question that took too long
    counts as one attempt. The next request is a probe. After one without an answer there is none for a second, after
    each further one for twice as long, up to a minute; what is asked meanwhile fails at once. Any answer ends this.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._providers: defaultdict[tuple[str, str, str | None], _Provider] = defaultdict(_Provider)
        in_child(self, _providers=lambda: defaultdict(_Provider))

    async def send(self, request: AnyRequest, following: Transport) -> Reply:
        """Pass a request on; raise what it raises, or ``JudgeOutageError`` with the time of the last answer."""
        provider = self._providers[request.kind, request.model, request.url]
        is_probe = provider.failure is not None
        if is_probe and (provider.is_probed or self._clock() < provider.next_probe):
            name = request.model if request.provider is None else request.provider.name
            raise JudgeOutageError(
                f"{name} is not asked: no answer since {provider.since}; the last: {provider.failure}"
            )
        provider.is_probed |= is_probe
        provider.in_flight += 1
        provider.widest = max(provider.widest, provider.in_flight)
        began = time.strftime("%H:%M:%S")
        try:
            reply = await following.send(replace(request, is_single=True) if is_probe else request)
        except JudgeOutageError as error:
            if not provider.unanswered:
                provider.since = began
            provider.unanswered += error.attempts
            if provider.unanswered >= max(_FEWEST, provider.widest):
                provider.failure = error
            if not is_probe:
                raise
            provider.pause = min(2 * provider.pause, RETRY_AFTER) or _FIRST_PAUSE
            provider.next_probe = self._clock() + provider.pause
            raise JudgeOutageError(f"{error}; no answer since {provider.since}") from error
        except JudgeError:
            # A refusal is an answer.
            self._answered(provider)
            raise
        else:
            self._answered(provider)
            return reply
        finally:
            provider.in_flight -= 1
            provider.is_probed = provider.is_probed and not is_probe

    def _answered(self, provider: _Provider) -> None:
        provider.failure, provider.unanswered, provider.widest, provider.pause = None, 0, provider.in_flight, 0.0


Breaker = CircuitBreaker | ProbingBreaker


class CircuitBreakers:
    """Sends each request through the breaker that is ``current`` where it is made, if there is one."""

    def __init__(self, following: Transport, current: Callable[[], Breaker | None]) -> None:
        self._following = following
        self._current = current

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; raise as :meth:`CircuitBreaker.send`."""
        breaker = self._current()
        return await (self._following.send(request) if breaker is None else breaker.send(request, self._following))
