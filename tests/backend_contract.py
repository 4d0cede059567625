"""What every place of a shared cache must do, whatever is behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

from pytest_ragmetrics.cache.remote import Backend

TTL = 0.3


def key() -> str:
    """Return a key that nobody has used."""
    return uuid4().hex + uuid4().hex


async def parcels(backend: Backend) -> None:
    """Read many at once; the first who writes wins, unless a parcel is to be replaced."""
    keys = [key() for _ in range(40)]
    assert await backend.get(keys) == {}
    assert await backend.put(keys[0], b"first\n\x00", replace=False)
    assert not await backend.put(keys[0], b"second", replace=False)
    assert await backend.put(keys[1], b"other", replace=True)
    assert await backend.get(keys) == {keys[0]: b"first\n\x00", keys[1]: b"other"}
    assert await backend.put(keys[0], b"third", replace=True)
    assert await backend.get(keys[:1]) == {keys[0]: b"third"}
    assert set(keys[:2]) <= set(await backend.sample(100))


async def one_holder(backend: Backend) -> None:
    """Give a lease to one of many, again to who holds it, and to another once it is given back."""
    name = key()
    nonces = [f"holder{number}" for number in range(8)]
    taken = await asyncio.gather(*(backend.lease(name, nonce, 30) for nonce in nonces))
    assert sum(taken) == 1
    holder = nonces[taken.index(True)]
    assert await backend.lease(name, holder, 30)
    assert not await backend.lease(name, "late", 30)
    await backend.release(name, holder)
    assert await backend.lease(name, "late", 30)
    await backend.release(name, "late")
    await backend.release(name, "late")


async def a_dead_holder(backend: Backend, other: Backend) -> None:
    """Give the lease of who does not renew it to one of those who wait; the first holder cannot take it back."""
    name = key()
    assert await backend.lease(name, "dead", TTL)
    taken = False
    for _ in range(40):
        taken = await other.lease(name, "next", TTL)
        if taken:
            break
        await asyncio.sleep(TTL / 5)
    assert taken
    await backend.renew(name, "dead", TTL)
    await other.renew(name, "next", TTL)
    assert not await backend.lease(name, "dead", TTL)
    await other.release(name, "next")


async def a_living_holder(backend: Backend, other: Backend) -> None:
    """Keep a lease that is renewed, for longer than its time to live."""
    name = key()
    assert await backend.lease(name, "alive", TTL)
    for _ in range(15):
        await asyncio.sleep(TTL / 6)
        await backend.renew(name, "alive", TTL)
        assert not await other.lease(name, "next", TTL)
    await backend.release(name, "alive")
    assert await other.lease(name, "next", TTL)


def kept(connect: Callable[[], Backend], *checks: Callable[..., Awaitable[None]]) -> None:
    """Run checks, each with as many connections as it takes."""

    async def run() -> None:
        for check in checks:
            backends = [connect() for _ in range(check.__code__.co_argcount)]
            await check(*backends)
            for backend in backends:
                await backend.aclose()

    asyncio.run(asyncio.wait_for(run(), 60))


ALL = (parcels, one_holder, a_dead_holder, a_living_holder)
