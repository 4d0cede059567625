"""What every place of a shared cache must do, whatever is behind it."""

from __future__ import annotations

from uuid import uuid4

from pytest_ragmetrics.cache.remote import Backend


def key() -> str:
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
    await backend.probe()
    assert set(keys[:2]) <= set(await backend.sample(100)) <= set(keys)
    await backend.aclose()
