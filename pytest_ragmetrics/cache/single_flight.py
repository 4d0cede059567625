"""Single flight: concurrent requests for the same key are fetched once.

Within an event loop later callers wait for the first one's task. Between loops and processes a lock file decides who
fetches, and the cache is read again after the lock is taken. The system frees the lock of a process that is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from asyncio import AbstractEventLoop
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from pytest_ragmetrics.core.locks import LockFile, lock_file

V = TypeVar("V")

STRIPES = 256

# Seconds between two attempts at a lock that another process holds.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.05

#: Returns the stored values of those keys that have one.
Look = Callable[[Sequence[str]], Mapping[str, V]]
#: Fetches and stores the values of all keys. It calls its second argument when it begins to cost something: before
#: that it is cancelled when its last caller is.
Fetch = Callable[[Sequence[str], Callable[[], None]], Awaitable[Mapping[str, V]]]


@dataclass(eq=False, kw_only=True, slots=True)
class _InFlight(Generic[V]):
    """A running fetch, the number of its callers, and whether it costs something already."""

    keys: tuple[str, ...]
    #: Returns the values, and the keys of those that were not stored.
    task: asyncio.Task[tuple[dict[str, V], frozenset[str]]] = field(init=False)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0


@dataclass(eq=False, kw_only=True, slots=True)
class _Stripe:
    """A lock file, shared by all fetches of one loop whose keys map to it."""

    entry: asyncio.Lock = field(default_factory=asyncio.Lock)
    holders: int = 0
    lock: LockFile | None = None


class _LoopState(Generic[V]):
    """The running fetches of one loop."""

    def __init__(self, width: int) -> None:
        self.semaphore = asyncio.Semaphore(width)
        self.in_flight: dict[str, _InFlight[V]] = {}
        self.stripes: defaultdict[int, _Stripe] = defaultdict(_Stripe)

    def forget(self, flight: _InFlight[V]) -> None:
        for key in flight.keys:
            if self.in_flight.get(key) is flight:
                del self.in_flight[key]


class SingleFlight(Generic[V]):
    """Shares fetches by key.

    ``locks`` is the folder of the lock files, ``None`` to share within this process only. ``width`` bounds the
    concurrent fetches, so that no process holds the locks of requests that it cannot send yet; it should be the number
    of requests allowed in flight. After ``lease`` seconds of waiting for another process a value is fetched anyway.
    """

    def __init__(self, locks: Path | None = None, *, width: int = 32, lease: float = 120.0) -> None:
        self._locks = locks
        self._width = width
        self._lease = lease
        self._states: WeakKeyDictionary[AbstractEventLoop, _LoopState[V]] = WeakKeyDictionary()

    async def share(self, keys: Sequence[str], look: Look[V], fetch: Fetch[V]) -> tuple[dict[str, V], frozenset[str]]:
        """Return the values of all keys, and which of them this caller fetched: those neither stored nor in flight.

        A fetch is not cancelled while other callers wait for it or once it has started. Errors of ``look`` and
        ``fetch`` are raised in every caller.
        """
        state = self._state()
        unclaimed = tuple(key for key in dict.fromkeys(keys) if key not in state.in_flight)
        own = self._start(state, unclaimed, look, fetch) if unclaimed else None
        in_flight = list(dict.fromkeys(state.in_flight[key] for key in keys))
        for flight in in_flight:
            flight.waiting += 1
        try:
            found: dict[str, V] = {}
            fetched: frozenset[str] = frozenset()
            for flight in in_flight:
                # The task is not cancelled with its caller.
                values, new = await asyncio.shield(flight.task)
                found |= values
                fetched = new if flight is own else fetched
        finally:
            for flight in in_flight:
                flight.waiting -= 1
                if flight.waiting == 0 and not flight.started.is_set() and not flight.task.done():
                    # Later callers must start a fetch of their own.
                    state.forget(flight)
                    flight.task.cancel()
        return {key: found[key] for key in keys}, fetched

    async def settle(self, timeout: float = 30.0) -> None:
        """Cancel the fetches of this loop that have not started, and wait for the others: they are paid for."""
        in_flight = set(self._state().in_flight.values())
        for flight in in_flight:
            if not flight.started.is_set():
                flight.task.cancel()
        if in_flight:
            await asyncio.wait([flight.task for flight in in_flight], timeout=timeout)

    def _state(self) -> _LoopState[V]:
        running = asyncio.get_running_loop()
        return self._states.get(running) or self._states.setdefault(running, _LoopState(self._width))

    def _start(self, state: _LoopState[V], keys: tuple[str, ...], look: Look[V], fetch: Fetch[V]) -> _InFlight[V]:
        flight: _InFlight[V] = _InFlight(keys=keys)

        async def run() -> tuple[dict[str, V], frozenset[str]]:
            async with state.semaphore, self._held(state, keys):
                found = dict(look(keys))
                missing = [key for key in keys if key not in found]
                if missing:
                    found |= await fetch(missing, flight.started.set)
                return found, frozenset(missing)

        def end(task: asyncio.Task[object]) -> None:
            state.forget(flight)
            if not task.cancelled():
                # Retrieve the error: without callers asyncio would log it as never retrieved.
                task.exception()

        flight.task = asyncio.ensure_future(run())
        flight.task.add_done_callback(end)
        state.in_flight.update(dict.fromkeys(keys, flight))
        return flight

    @contextlib.asynccontextmanager
    async def _held(self, state: _LoopState[V], keys: Sequence[str]) -> AsyncIterator[None]:
        """Hold the locks of keys, taken in ascending order so that processes cannot deadlock."""
        held: list[_Stripe] = []
        try:
            if self._locks is not None:
                for number in sorted({int(key[:2], 16) % STRIPES for key in keys}):
                    stripe = state.stripes[number]
                    async with stripe.entry:
                        if stripe.holders == 0:
                            stripe.lock = stripe.lock or lock_file(self._locks / f"{number:02x}.lock")
                            await self._take(stripe.lock)
                        stripe.holders += 1
                    held.append(stripe)
            yield
        finally:
            for stripe in held:
                stripe.holders -= 1
                if stripe.holders == 0 and stripe.lock is not None:
                    stripe.lock.release()

    async def _take(self, lock: LockFile) -> None:
        """Take a lock; after the lease, or where files cannot be locked, go on without it."""
        deadline = time.monotonic() + self._lease
        pause = _SHORTEST_PAUSE
        with contextlib.suppress(OSError):
            # An attempt takes a hundredth of the time that a thread for it would.
            while not lock.take() and time.monotonic() <= deadline:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
