"""Single flight: what many ask for at the same time is fetched once.

Within an event loop those who come later wait for the one that fetches. Between loops and processes a lock file
decides who fetches; whoever gets the lock looks again first. The system frees the lock of a process that is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from asyncio import AbstractEventLoop
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from pytest_ragmetrics.locks import LockFile, lock_file

V = TypeVar("V")

STRIPES = 256

# Between two looks at a lock that another process holds.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.05

#: Finds what is there of some keys.
Look = Callable[[Sequence[str]], Awaitable[Mapping[str, V]]]
#: Fetches all of some keys, and stores what it fetched before it returns. It calls what it is handed at the moment
#: from which on it costs something: until then it is cancelled if everybody who waited for it has gone.
Fetch = Callable[[Sequence[str], Callable[[], None]], Awaitable[Mapping[str, V]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched(Generic[V]):
    """A value, and whether fetching it was this caller's doing."""

    value: V
    fetched: bool


class _Start:
    """Called by a fetch at the moment from which on it costs something."""

    def __init__(self) -> None:
        self.past = False

    def __call__(self) -> None:
        self.past = True


@dataclass(eq=False, kw_only=True, slots=True)
class _InFlight(Generic[V]):
    """One fetch of some keys, and how many wait for it."""

    keys: tuple[str, ...]
    task: asyncio.Task[dict[str, Fetched[V]]]
    departure: _Start
    waiting: int = 0

    async def landing(self, *, own: bool) -> dict[str, Fetched[V]]:
        """Wait for the fetch, without passing a cancellation on to it."""
        await asyncio.wait((self.task,))
        landed = self.task.result()
        return landed if own else {key: Fetched(value=kept.value, fetched=False) for key, kept in landed.items()}


@dataclass(eq=False, kw_only=True, slots=True)
class _Stripe:
    """One lock file, which the trips of one loop hold together."""

    entrance: asyncio.Lock = field(default_factory=asyncio.Lock)
    holders: int = 0
    lock: LockFile | None = None


class _LoopState(Generic[V]):
    """What is in flight on one loop."""

    def __init__(self, width: int) -> None:
        self.gate = asyncio.Semaphore(width)
        self.trips: dict[str, _InFlight[V]] = {}
        self.stripes: defaultdict[int, _Stripe] = defaultdict(_Stripe)

    def forget(self, trip: _InFlight[V]) -> None:
        for key in trip.keys:
            if self.trips.get(key) is trip:
                del self.trips[key]


class SingleFlight(Generic[V]):
    """Shares fetches by key.

    ``locks`` is the folder of the lock files, ``None`` to share within this process only. ``width`` bounds the trips
    under way at once, so that no process keeps the locks of requests it has no time for; it should be the number of
    requests allowed in flight. After ``lease`` seconds of waiting for another process a value is fetched regardless.
    """

    def __init__(self, locks: Path | None = None, *, width: int = 32, lease: float = 120.0) -> None:
        self._locks = locks
        self._width = width
        self._lease = lease
        self._airs: WeakKeyDictionary[AbstractEventLoop, _LoopState[V]] = WeakKeyDictionary()
        self._changing = threading.Lock()

    async def share(self, keys: Sequence[str], look: Look[V], fetch: Fetch[V]) -> dict[str, Fetched[V]]:
        """Return the values of all keys, fetching together those that nobody has or is fetching.

        Cancelling a caller does not cancel a fetch that others wait for or that has begun. Raises what ``look`` and
        ``fetch`` raise, to everybody who waits.
        """
        air = self._air()
        unclaimed = tuple(key for key in dict.fromkeys(keys) if key not in air.trips)
        own = self._launch(air, unclaimed, look, fetch) if unclaimed else None
        trips = list(dict.fromkeys(air.trips[key] for key in keys))
        for trip in trips:
            trip.waiting += 1
        try:
            landed: dict[str, Fetched[V]] = {}
            for trip in trips:
                landed |= await trip.landing(own=trip is own)
        finally:
            for trip in trips:
                _leave(air, trip)
        return {key: landed[key] for key in keys}

    async def settle(self, patience: float = 30.0) -> None:
        """Call off what has not begun on this loop, and wait for what has: it is paid for."""
        trips = set(self._air().trips.values())
        for trip in trips:
            if not trip.departure.past:
                trip.task.cancel()
        if trips:
            await asyncio.wait([trip.task for trip in trips], timeout=patience)

    def _air(self) -> _LoopState[V]:
        with self._changing:
            return self._airs.setdefault(asyncio.get_running_loop(), _LoopState(self._width))

    def _launch(self, air: _LoopState[V], keys: tuple[str, ...], look: Look[V], fetch: Fetch[V]) -> _InFlight[V]:
        departure = _Start()
        task = asyncio.ensure_future(self._fly(air, keys, look, lambda missing: fetch(missing, departure)))
        trip = _InFlight(keys=keys, task=task, departure=departure)
        air.trips.update(dict.fromkeys(keys, trip))
        task.add_done_callback(lambda _: _landed(air, trip))
        return trip

    async def _fly(
        self,
        air: _LoopState[V],
        keys: tuple[str, ...],
        look: Look[V],
        fetch: Callable[[Sequence[str]], Awaitable[Mapping[str, V]]],
    ) -> dict[str, Fetched[V]]:
        async with air.gate, self._held(air, keys):
            landed = {key: Fetched(value=value, fetched=False) for key, value in (await look(keys)).items()}
            missing = [key for key in keys if key not in landed]
            if missing:
                fetched = await fetch(missing)
                landed |= {key: Fetched(value=fetched[key], fetched=True) for key in missing}
            return landed

    @contextlib.asynccontextmanager
    async def _held(self, air: _LoopState[V], keys: Sequence[str]) -> AsyncIterator[None]:
        """Hold the locks of keys; everybody takes locks in the same order, so nobody waits in a circle."""
        held: list[_Stripe] = []
        try:
            if self._locks is not None:
                for number in sorted({int(key[:2], 16) % STRIPES for key in keys}):
                    await self._enter(air.stripes[number], self._locks / f"{number:02x}.lock")
                    held.append(air.stripes[number])
            yield
        finally:
            for stripe in held:
                _exit(stripe)

    async def _enter(self, stripe: _Stripe, path: Path) -> None:
        async with stripe.entrance:
            if stripe.holders == 0:
                stripe.lock = stripe.lock or lock_file(path)
                await self._take(stripe.lock)
            stripe.holders += 1

    async def _take(self, lock: LockFile) -> None:
        """Take a lock; one that cannot be had, in time or at all, is gone without."""
        deadline = time.monotonic() + self._lease
        pause = _SHORTEST_PAUSE
        with contextlib.suppress(OSError):
            # To try takes a hundredth of the time it takes to have a thread try.
            while not lock.take() and time.monotonic() <= deadline:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)


def _exit(stripe: _Stripe) -> None:
    stripe.holders -= 1
    if stripe.holders == 0 and stripe.lock is not None:
        stripe.lock.release()


def _leave(air: _LoopState[V], trip: _InFlight[V]) -> None:
    trip.waiting -= 1
    if trip.waiting == 0 and not trip.departure.past and not trip.task.done():
        # Whoever asks from now on must not be handed the cancellation of this one.
        air.forget(trip)
        trip.task.cancel()


def _landed(air: _LoopState[V], trip: _InFlight[V]) -> None:
    air.forget(trip)
    if not trip.task.cancelled():
        # Everybody who waited may have gone; then its error is nobody's.
        trip.task.exception()
