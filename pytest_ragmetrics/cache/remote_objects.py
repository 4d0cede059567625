"""Parcels and leases as objects: a bucket of S3, Google or Azure, a web server, or a folder, through obstore.

Only conditional puts decide who writes first and who holds a lease. Whether a lease has expired is told by no clock of
another machine: it has if nobody renewed it for its time to live, as measured here.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from pytest_ragmetrics.cache.entry import CacheReadOnlyError, CacheUnavailableError

_ANSWERS, _LEASES = "v1/answers", "v1/leases"
_SHOWN = 160
# What a server says besides "not found" when it is the bucket that is missing.
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_STATUS = re.compile(r"status code: (\d+ [A-Za-z ]+)")
_CAUSE = re.compile(r"(?:<Code>|message: \")(\w[\w ]*)")
# A server that answers so to a put, or a disk, takes no more; it can still be read.
_REFUSED = re.compile(r"status code: (4\d\d|507)|No space left|Read-only file system")
# Without these a refused connection takes minutes; the timeout is beyond that of whoever asks, who does not count the
# time for which a process waits for its processor. A plain endpoint is plain because somebody said so.
_OPTIONS: dict[str, Any] = {
    "client_options": {"timeout": "30s", "connect_timeout": "2s", "allow_http": True},
    "retry_config": {
        "max_retries": 2,
        "retry_timeout": timedelta(seconds=4),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
    },
}


class ObjectBackend:
    """A :class:`~pytest_ragmetrics.cache.remote.Backend` of objects; ``shown`` is its URL in messages."""

    many = 16

    def __init__(self, url: str, shown: str) -> None:
        from obstore.store import from_url

        self._shown = shown
        with self._guard():
            # A folder that is missing may be a share that is not mounted: it is not made.
            self._store: Any = from_url(url, **({} if url.startswith("file:") else _OPTIONS))
        #: The version of each lease that is held, and how often it was written.
        self._held: dict[str, tuple[dict[str, str], int]] = {}
        #: The leases of others: what they said when they were last seen to change, and when that was.
        self._seen: dict[str, tuple[bytes, float]] = {}

    async def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the parcels of those keys that have one."""
        found = await asyncio.gather(*(self._got(_answer(key)) for key in keys))
        return {key: item[0] for key, item in zip(keys, found, strict=True) if item is not None}

    async def put(self, key: str, parcel: bytes, *, replace: bool) -> bool:
        """Put a parcel down and return True; return False where there is one, unless it is to be replaced."""
        return await self._put(_answer(key), parcel, "overwrite" if replace else "create") is not None

    async def lease(self, key: str, nonce: str, ttl: float) -> bool:
        """Take the lease of a key: a new one, or one that nobody has renewed for its time to live."""
        place = f"{_LEASES}/{key}"
        version = await self._put(place, _lease(nonce, 0), "create")
        if version is None:
            found = await self._got(place)
            if found is None:
                return False
            body, version = found
            # Where an answer was lost on its way and asked for again, the lease that was there is our own.
            if not body.startswith(nonce.encode()):
                version = await self._taken_over(place, nonce, ttl, found)
        if version is not None:
            self._held[key] = version, 0
        return version is not None

    async def renew(self, key: str, nonce: str, ttl: float) -> None:  # noqa: ARG002 - ttl: as its readers measure it
        """Change a lease that is held, so that others see it renewed."""
        held = self._held.get(key)
        if held is not None:
            version = await self._replaced(f"{_LEASES}/{key}", _lease(nonce, held[1] + 1), held[0])
            if version is None:
                self._held.pop(key, None)
            elif key in self._held:
                self._held[key] = version, held[1] + 1

    async def release(self, key: str, nonce: str) -> None:  # noqa: ARG002 - nonce: it is remembered what is held
        """Delete a lease that is still held."""
        if self._held.pop(key, None) is not None:
            await self._delete(f"{_LEASES}/{key}")

    async def sample(self, count: int) -> list[str]:
        """Return some keys; a web server does not list any."""
        import obstore

        keys: list[str] = []
        with self._guard(), suppress(obstore.exceptions.NotSupportedError, NotImplementedError):
            async for page in obstore.list(self._store, _ANSWERS, chunk_size=count):
                keys += [item["path"].rpartition("/")[2] for item in page]
                if len(keys) >= count:
                    break
        return keys[:count]

    async def aclose(self) -> None:
        """Do nothing: connections close with the store."""

    async def _taken_over(
        self, place: str, nonce: str, ttl: float, found: tuple[bytes, dict[str, str]]
    ) -> dict[str, str] | None:
        body, version = found
        seen, since = self._seen.get(place, (b"", 0.0))
        if body != seen:
            self._seen[place] = body, time.monotonic()
            return None
        return await self._replaced(place, _lease(nonce, 0), version) if time.monotonic() - since > ttl else None

    async def _replaced(self, place: str, body: bytes, version: dict[str, str]) -> dict[str, str] | None:
        """Replace an object that has not changed and return its new version, else ``None``."""
        try:
            return await self._put(place, body, version)
        except NotImplementedError:
            pass
        # A folder has no such condition: who makes a file named after the version may replace it.
        claim = f"{place}.{re.sub(r'[^0-9a-zA-Z-]', '', ''.join(version.values()))}"
        if await self._put(claim, b"", "create") is None:
            return None
        found = await self._got(place)
        is_same = found is not None and found[1] == version
        replaced = await self._put(place, body, "overwrite") if is_same else None
        await self._delete(claim)
        return replaced

    async def _got(self, place: str) -> tuple[bytes, dict[str, str]] | None:
        import obstore

        try:
            with self._guard():
                result = await obstore.get_async(self._store, place)
                return bytes(await result.bytes_async()), _version(result.meta)
        except FileNotFoundError as error:
            if _NO_BUCKET.search(str(error)):
                raise CacheUnavailableError("there is no such bucket or container") from None
            return None

    async def _put(self, place: str, body: bytes, mode: Any) -> dict[str, str] | None:
        """Put an object and return its version; return ``None`` if the condition does not hold."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            with self._guard(writing=True):
                return _version(await obstore.put_async(self._store, place, body, mode=mode))
        except (AlreadyExistsError, PreconditionError):
            return None
        except FileNotFoundError:
            if isinstance(mode, dict):
                return None
            raise CacheUnavailableError("there is no such bucket, container or folder") from None

    async def _delete(self, place: str) -> None:
        import obstore

        with suppress(FileNotFoundError), self._guard(writing=True):
            await obstore.delete_async(self._store, place)

    @contextmanager
    def _guard(self, *, writing: bool = False) -> Iterator[None]:
        """Raise what obstore raises as an error of the cache, except what says how an object stands."""
        from obstore.exceptions import (
            AlreadyExistsError,
            BaseError,
            PermissionDeniedError,
            PreconditionError,
            UnauthenticatedError,
        )

        try:
            yield
        except (AlreadyExistsError, PreconditionError, FileNotFoundError, NotImplementedError):
            raise
        except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
            forbidden = CacheReadOnlyError if writing else CacheUnavailableError
            what = "writing" if writing else "reading (a missing answer too, without the right to list)"
            raise forbidden(f"{what} is forbidden{_detail(error)}") from None
        except (BaseError, OSError, ValueError) as error:
            refused = writing and _REFUSED.search(str(error))
            raise (CacheReadOnlyError if refused else CacheUnavailableError)(
                f"it cannot be {'written' if writing else 'read'}{_detail(error)}"
            ) from None
        except Exception as error:  # noqa: BLE001 - nothing of the cache may fail a test
            raise CacheUnavailableError(f"it cannot be used: {type(error).__name__}") from None


def _answer(key: str) -> str:
    return f"{_ANSWERS}/{key[:2]}/{key}"


def _lease(nonce: str, number: int) -> bytes:
    return f"{nonce} {number}".encode()


def _version(meta: Any) -> dict[str, str]:
    """Return what names the version of an object in a condition."""
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name)}


def _detail(error: Exception) -> str:
    """Return what an error says, without the address and its own source: both may hold what nobody is to see."""
    text = str(error)
    found = [match[1].strip() for match in (_STATUS.search(text), _CAUSE.search(text)) if match]
    first = text.partition("\n")[0].rpartition(" - ")[2] if not found else ", ".join(dict.fromkeys(found))
    return f": {re.sub(r'[a-z]+://[^ ]+', 'the address', first)[:_SHOWN]}"
