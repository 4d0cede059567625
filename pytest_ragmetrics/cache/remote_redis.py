"""Parcels as keys of a Redis server, through redis-py.

What the server evicts or forgets costs money, never truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pytest_ragmetrics.cache.entry import CacheReadOnlyError, CacheUnavailableError

_ANSWER, _PROBE = "ragmetrics:1:answer:", "ragmetrics:1:probe"
_CONNECTIONS = 16
# Seconds: to connect, as a run should not wait longer for a server that is away, and for a reply, beyond the time that
# whoever asks waits, who does not count the time for which a process waits for its processor.
_CONNECTING, _TIMEOUT = 2.0, 30.0


class RedisBackend:
    """A :class:`~pytest_ragmetrics.cache.remote.Backend` of keys; ``shown`` is its URL in messages."""

    many = 500

    def __init__(self, url: str, shown: str) -> None:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import ExponentialBackoff

        self._shown = shown
        with self._guard():
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=_CONNECTIONS,
                timeout=_TIMEOUT,
                socket_timeout=_TIMEOUT,
                socket_connect_timeout=_CONNECTING,
                retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 2),
            )
        self._redis: Any = Redis.from_pool(pool)

    async def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the parcels of those keys that have one."""
        with self._guard():
            found = await self._redis.mget([_ANSWER + key for key in keys])
        return {key: parcel for key, parcel in zip(keys, found, strict=True) if parcel is not None}

    async def put(self, key: str, parcel: bytes, *, replace: bool) -> bool:
        """Put a parcel down and return True; return False where there is one, unless it is to be replaced."""
        with self._guard(writing=True):
            return bool(await self._redis.set(_ANSWER + key, parcel, nx=not replace))

    async def probe(self) -> None:
        """Write a key that is no answer, and that the server drops."""
        with self._guard(writing=True):
            await self._redis.set(_PROBE, b"", px=1)

    async def sample(self, count: int) -> list[str]:
        """Return some keys."""
        names: list[str] = []
        with self._guard():
            async for name in self._redis.scan_iter(match=f"{_ANSWER}*", count=count):
                names.append(name.decode("ascii", "replace").removeprefix(_ANSWER))
                if len(names) >= count:
                    break
        return names

    async def aclose(self) -> None:
        """Close the connections."""
        with suppress(CacheUnavailableError), self._guard():
            await self._redis.aclose()
            await self._redis.connection_pool.disconnect()

    @contextmanager
    def _guard(self, *, writing: bool = False) -> Iterator[None]:
        """Raise what redis-py raises as an error of the cache that names no password."""
        from redis import exceptions

        try:
            yield
        except exceptions.AuthenticationError:
            raise CacheUnavailableError("the server refuses the user or the password") from None
        except exceptions.NoPermissionError:
            forbidden = CacheReadOnlyError if writing else CacheUnavailableError
            raise forbidden(f"{'writing' if writing else 'reading'} is forbidden") from None
        except (exceptions.ReadOnlyError, exceptions.OutOfMemoryError) as error:
            full = "full" if isinstance(error, exceptions.OutOfMemoryError) else "read-only"
            raise CacheReadOnlyError(f"it is {full}") from None
        except (exceptions.RedisError, OSError) as error:
            raise CacheUnavailableError(f"it cannot be reached: {type(error).__name__}") from None
        except Exception as error:  # noqa: BLE001 - an option of the URL that redis-py does not know is a TypeError
            what = f"redis-py takes no such URL, check its options: {type(error).__name__}"
            raise CacheUnavailableError(what) from None
