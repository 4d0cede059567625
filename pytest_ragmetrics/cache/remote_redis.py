"""Parcels and leases as keys of a Redis server, through redis-py.

What the server evicts or forgets costs money, never truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pytest_ragmetrics.cache.entry import CacheReadOnlyError, CacheUnavailableError

_ANSWER, _LEASE = "ragmetrics:1:answer:", "ragmetrics:1:lease:"
# Both change a lease only if it is still held: it may have expired, and be another's.
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
_RENEW = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
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
        self._scripts = {text: self._redis.register_script(text) for text in (_RELEASE, _RENEW)}

    async def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the parcels of those keys that have one."""
        with self._guard():
            found = await self._redis.mget([_ANSWER + key for key in keys])
        return {key: parcel for key, parcel in zip(keys, found, strict=True) if parcel is not None}

    async def put(self, key: str, parcel: bytes, *, replace: bool) -> bool:
        """Put a parcel down and return True; return False where there is one, unless it is to be replaced."""
        with self._guard(writing=True):
            return bool(await self._redis.set(_ANSWER + key, parcel, nx=not replace))

    async def lease(self, key: str, nonce: str, ttl: float) -> bool:
        """Take the lease of a key, and return whether ``nonce`` holds it; the server ends it after ``ttl`` seconds."""
        with self._guard(writing=True):
            taken = await self._redis.set(_LEASE + key, nonce, nx=True, px=int(ttl * 1000))
            # A retry after a lost answer finds the lease that it took.
            return bool(taken) or await self._redis.get(_LEASE + key) == nonce.encode()

    async def renew(self, key: str, nonce: str, ttl: float) -> None:
        """Hold a lease for ``ttl`` seconds more, if it is still held."""
        with self._guard(writing=True):
            await self._scripts[_RENEW](keys=[_LEASE + key], args=[nonce, int(ttl * 1000)])

    async def release(self, key: str, nonce: str) -> None:
        """Give a lease back, if it is still held."""
        with self._guard(writing=True):
            await self._scripts[_RELEASE](keys=[_LEASE + key], args=[nonce])

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
