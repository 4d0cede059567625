"""The link that lets requests over the same contexts read them from the provider's prompt cache.

A provider bills what it writes into its cache above the ordinary price (1.25 of it), and what it reads there far below
(0.1). So a beginning is marked for it only where another request is known that will read it, and a reader waits for the
writer only while other requests take the places: none is empty for its sake.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.prices import estimated_tokens
from pytest_ragmetrics.judges.rendering import SYSTEM, render_data
from pytest_ragmetrics.judges.transports.values import (
    AnyRequest,
    EmbeddingRequest,
    Limiter,
    Reply,
    Request,
    Transport,
)

# Seconds after which a beginning counts as forgotten: Anthropic keeps it for 300 after it was last read.
_KEPT = 240.0
# Schemas and their texts.
_SCHEMAS: dict[int, tuple[Mapping[str, Any], str]] = {}
_MOST_SCHEMAS = 64
_OPENED = re.compile(r"<<<contexts ([0-9]+)\n")


@dataclass(kw_only=True, slots=True, eq=False)
class _Beginning:
    """How many requests with this beginning have no place yet, and the number of the one that writes or wrote it.

    ``coming`` requests without a place, and ``leading`` ones in flight, lead to a request with this beginning.
    """

    key: int
    waiting: dict[_Turn, None] = field(default_factory=dict)
    coming: int = 0
    leading: int = 0
    writer: int | None = None
    is_written: bool = False
    used: float = 0.0
    _changed: asyncio.Future[None] | None = None

    async def change(self) -> None:
        """Wait until it may be readable, or nothing leads to a reader any more."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._changed})

    def notify(self) -> None:
        """Have go on what waits for a change."""
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None


@dataclass(slots=True, eq=False)
class _Account:
    """The requests to one judge: the highest number of those that are answered."""

    answered: int = 0


class Prefixes:
    """Marks where the cached part of a request ends, and lets readers wait; comes before the ``limiter``.

    A provider can serve a beginning once it begins to answer the request that writes it. That it does so is known when
    this request, or one that was sent later, is answered. Belongs to one event loop.
    """

    def __init__(self, following: Transport, limiter: Limiter, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._following = following
        self._limiter = limiter
        self._clock = clock
        self._known: dict[int, _Beginning] = {}
        self._accounts: WeakKeyDictionary[Any, _Account] = WeakKeyDictionary()
        self._numbers = 0
        #: How many requests that lead to others have no place yet.
        self._leads = 0
        in_child(self, _known=dict, _accounts=WeakKeyDictionary, _leads=int)

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; a request whose beginning is being written is sent after others that have no place yet."""
        least: int | None = getattr(request.provider, "cached_from", None)
        if isinstance(request, EmbeddingRequest) or least is None:
            return await self._following.send(request)
        account = self._accounts.setdefault(request.provider, _Account())
        turn = _Turn(
            mine=[(end, self._beginning(key)) for end, key in _beginnings(request, least)],
            following=[self._beginning(key) for key in _led_to(request, least)],
        )
        self._enter(turn)
        try:
            await self._line_up(turn)
            for _, known in turn.mine:
                # No score waits longer for it than for those that lead to readers too.
                while self._is_known(known) and not known.is_written and (known.coming or known.leading):
                    await known.change()

            def started() -> None:
                self._start(turn, account)
                request.started()

            def replied() -> None:
                account.answered = max(account.answered, turn.number)
                for known in turn.written:
                    known.is_written = True
                    known.notify()
                request.replied()

            return await self._following.send(
                replace(
                    request,
                    started=started,
                    replied=replied,
                    marks=lambda: tuple(turn.marks),
                    waits=lambda: self._waits(turn),
                )
            )
        except BaseException:
            for known in turn.written:
                known.writer = None
                known.notify()
            raise
        finally:
            self._leave(turn)

    def _enter(self, turn: _Turn) -> None:
        self._leads += bool(turn.following)
        turn.is_reader = any(known.waiting for _, known in turn.mine)
        for _, known in turn.mine:
            known.waiting[turn] = None
        for known in turn.following:
            known.coming += 1

    async def _line_up(self, turn: _Turn) -> None:
        """Let all that ask at the same time become known, and those that write go first.

        Only where there are places for what leads to readers as well: it takes two requests after one another.
        """
        if turn.mine or turn.following:
            await asyncio.sleep(0)
            others_first = 1 if turn.following else 3 if turn.is_reader else 2 * (self._limiter.free <= self._leads)
            for _ in range(others_first):
                await asyncio.sleep(0)

    def _start(self, turn: _Turn, account: _Account) -> None:
        """Mark the beginnings that can be read, and those that are to be written because readers are known."""
        self._numbers += 1
        turn.number = self._numbers
        self._leads -= bool(turn.following)
        for known in turn.following:
            known.coming -= 1
            known.leading += 1
        for end, known in turn.mine:
            del known.waiting[turn]
            is_known = self._is_known(known)
            if is_known and (known.is_written or (known.writer or 0) <= account.answered):
                turn.marks.append(end)
            # What leads to a reader and is sent later than this is answered later.
            elif not is_known and (known.coming or (known.waiting and not self._limiter.free) or self._is_late(known)):
                turn.marks.append(end)
                turn.written.append(known)
                known.writer, known.is_written = turn.number, False
            known.used = self._clock()

    def _is_late(self, known: _Beginning) -> bool:
        """Tell whether a reader that comes at any time will find enough others before it."""
        return bool(known.leading) and self._limiter.waiting >= self._limiter.width

    def _leave(self, turn: _Turn) -> None:
        for known in turn.following:
            if turn.number:
                known.leading -= 1
            else:
                known.coming -= 1
            known.notify()
        if not turn.number:
            self._leads -= bool(turn.following)
            for _, known in turn.mine:
                del known.waiting[turn]
        self._forget(*turn.following, *(known for _, known in turn.mine), *tuple(islice(self._known.values(), 2)))

    def _waits(self, turn: _Turn) -> bool:
        """Tell whether a request will be able to read what is being written, or what another one will write first."""
        for _, known in turn.mine:
            if not known.is_written if self._is_known(known) else next(iter(known.waiting)) is not turn:
                return True
        return False

    def _is_known(self, known: _Beginning) -> bool:
        return known.writer is not None and self._clock() - known.used < _KEPT

    def _beginning(self, key: int) -> _Beginning:
        return self._known.setdefault(key, _Beginning(key=key))

    def _forget(self, *beginnings: _Beginning) -> None:
        """Drop those that are of no use to others: most requests have beginnings of their own."""
        for known in beginnings:
            if not (known.waiting or known.coming or known.leading or self._is_known(known)):
                self._known.pop(known.key, None)


@dataclass(kw_only=True, slots=True, eq=False)
class _Turn:
    """A request on its way: its beginnings and where they end, and those of the request that it leads to."""

    mine: list[tuple[int, _Beginning]]
    following: list[_Beginning]
    is_reader: bool = False
    #: Its number among all that were sent, 0 before it is.
    number: int = 0
    marks: list[int] = field(default_factory=list)
    written: list[_Beginning] = field(default_factory=list)


def _beginnings(request: Request, least: int) -> Iterator[tuple[int, int]]:
    """Yield where the contexts end in the second message and where it ends, each with a key of all before it.

    Only those with as many tokens as are cached at least.
    """
    system, user = (message["content"] for message in request.messages[:2])
    form = _written(request.shared_schema)
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
        form = _written(request.then.envelope or request.then.schema())
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


def _written(schema: Mapping[str, Any]) -> str:
    """Return the JSON text of a schema: a task has one for all its requests."""
    found = _SCHEMAS.get(id(schema))
    if found is None:
        if len(_SCHEMAS) >= _MOST_SCHEMAS:
            _SCHEMAS.clear()
        # Held, so that no other one has the identity.
        found = _SCHEMAS[id(schema)] = schema, json.dumps(schema)
    return found[1]
