"""The link that lets requests over the same contexts read them from the provider's prompt cache.

A provider bills what it writes into its cache above the ordinary price (1.25 of it), and what it reads there far below
(0.1). So a beginning is marked for it only where another request is known that will read it: the first request with a
beginning that nobody wrote is sent, and the others wait for its reply.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.prices import estimated_tokens
from pytest_ragmetrics.judges.rendering import SYSTEM, render_data
from pytest_ragmetrics.judges.transports.values import AnyRequest, EmbeddingRequest, Reply, Request, Transport

# Seconds after which a beginning counts as forgotten: Anthropic keeps it for 300 after it was last read.
_KEPT = 240.0
# Seconds after a reply in which the request comes that it leads to.
_FOLLOWS = 1.0
_OPENED = re.compile(r"<<<contexts ([0-9]+)\n")


@dataclass(kw_only=True, slots=True, eq=False)
class _Beginning:
    """How many requests are to come that read it, the end of the one that writes it, and until when it is kept.

    ``due`` are the times until which those are expected whose leading request is answered.
    """

    key: int
    expected: int = 0
    due: list[float] = field(default_factory=list)
    writing: asyncio.Event | None = None
    until: float = 0.0

    def is_awaited(self, now: float) -> bool:
        return self.expected > 0 or any(until > now for until in self.due)


class Prefixes:
    """Marks where the cached part of a request ends, and lets readers wait. Belongs to one event loop."""

    def __init__(self, following: Transport, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._following = following
        self._clock = clock
        self._known: dict[int, _Beginning] = {}
        in_child(self, _known=dict)

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; a request whose beginning is being written is sent when that one is answered."""
        least: int | None = getattr(request.provider, "cached_from", None)
        if isinstance(request, EmbeddingRequest) or least is None:
            return await self._following.send(request)
        mine = {end: self._beginning(key) for end, key in _beginnings(request, least)}
        turn = _Turn(mine, [self._beginning(key) for key in _led_to(request, least)], self._clock)

        def started() -> None:
            turn.start()
            request.started()

        try:
            await turn.come()
            reply = await self._following.send(replace(request, started=started, marks=lambda: tuple(turn.marks)))
            for known in turn.written:
                known.until = self._clock() + _KEPT
            return reply
        finally:
            turn.end()
            # Most requests have beginnings of their own.
            now = self._clock()
            for known in (*mine.values(), *tuple(islice(self._known.values(), 2))):
                if not (known.writing or known.until > now or known.is_awaited(now)):
                    self._known.pop(known.key, None)

    def _beginning(self, key: int) -> _Beginning:
        return self._known.setdefault(key, _Beginning(key=key))


class _Turn:
    """A request on its way: its beginnings by where they end, and those of the request that it leads to."""

    def __init__(self, mine: dict[int, _Beginning], leads_to: list[_Beginning], clock: Callable[[], float]) -> None:
        self._mine, self._leads_to, self._clock = mine, leads_to, clock
        self._unsent = [*mine.values()]
        self._ended = asyncio.Event()
        self.marks: list[int] = []
        self.written: list[_Beginning] = []
        for known in (*self._unsent, *leads_to):
            known.expected += 1
        for known in self._unsent:
            # It may be one of those.
            del known.due[:1]

    async def come(self) -> None:
        """Wait until nobody else writes a beginning that is not kept; those asked at the same time become known."""
        await asyncio.sleep(0)
        for known in self._mine.values():
            while known.writing is not None and known.until <= self._clock():
                await known.writing.wait()
            if known.until <= self._clock():
                known.writing = self._ended

    def start(self) -> None:
        """Mark the beginnings that can be read, and those that are to be written because readers are known."""
        while self._unsent:
            self._unsent.pop().expected -= 1
        now = self._clock()
        for end, known in self._mine.items():
            if known.until > now:
                known.until = now + _KEPT
            elif known.is_awaited(now):
                self.written.append(known)
            else:
                continue
            self.marks.append(end)
        if not self.written:
            self._release()

    def end(self) -> None:
        self._release()
        for known in (*self._unsent, *self._leads_to):
            known.expected -= 1
        for known in self._leads_to:
            known.due.append(self._clock() + _FOLLOWS)

    def _release(self) -> None:
        """Let others go on that wait for this one."""
        for known in self._mine.values():
            if known.writing is self._ended:
                known.writing = None
        self._ended.set()


def _beginnings(request: Request, least: int) -> Iterator[tuple[int, int]]:
    """Yield where the contexts end in the second message and where it ends, each with a key of all before it.

    Only those with as many tokens as are cached at least.
    """
    system, user = (message["content"] for message in request.messages[:2])
    form = json.dumps(request.shared_schema)
    if estimated_tokens(form, system, user) >= least:
        mark, end = _contexts(user)
        key = hash((id(request.provider), form, system, mark))
        if end and estimated_tokens(form, system, user[:end]) >= least:
            yield end, key
        yield len(user), hash((key, user[end:]))


def _led_to(request: Request, least: int) -> Iterator[int]:
    """Yield the key of the contexts in the request that the reply leads to, if they are cached."""
    if request.then is not None:
        data = render_data(request.then)
        form = json.dumps(request.then.envelope or request.then.schema())
        mark, end = _contexts(data)
        if end and estimated_tokens(form, SYSTEM, data[:end]) >= least:
            yield hash((id(request.provider), form, SYSTEM, mark))


def _contexts(text: str) -> tuple[str, int]:
    """Return the digest of the contexts with which a message begins, and where they end; 0 where it has none."""
    opened = _OPENED.match(text)
    if opened is None:
        return "", 0
    close = f"\n{opened[1]} contexts>>>"
    # What stands behind them is short.
    return opened[1], text.rindex(close) + len(close)
