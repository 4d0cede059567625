"""Parcels as objects: a bucket of S3, Google or Azure, a web server, or a folder, through obstore.

Conditional puts decide who writes first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from pytest_ragmetrics.cache.entry import CacheReadOnlyError, CacheUnavailableError

_ANSWERS, _PROBE = "v1/answers", "v1/probe"
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

    async def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the parcels of those keys that have one."""
        found = await asyncio.gather(*(self._got(_answer(key)) for key in keys))
        return {key: parcel for key, parcel in zip(keys, found, strict=True) if parcel is not None}

    async def put(self, key: str, parcel: bytes, *, replace: bool) -> bool:
        """Put a parcel down and return True; return False where there is one, unless it is to be replaced."""
        return await self._put(_answer(key), parcel, replace=replace)

    async def probe(self) -> None:
        """Write an object that is no answer."""
        await self._put(_PROBE, b"", replace=True)

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

    async def _got(self, place: str) -> bytes | None:
        import obstore

        try:
            with self._guard():
                return bytes(await (await obstore.get_async(self._store, place)).bytes_async())
        except FileNotFoundError as error:
            if _NO_BUCKET.search(str(error)):
                raise CacheUnavailableError("there is no such bucket or container") from None
            return None

    async def _put(self, place: str, body: bytes, *, replace: bool) -> bool:
        """Put an object; return False where there is one that is not to be replaced."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            with self._guard(writing=True):
                await obstore.put_async(self._store, place, body, mode="overwrite" if replace else "create")
        except (AlreadyExistsError, PreconditionError):
            return False
        except FileNotFoundError:
            raise CacheUnavailableError("there is no such bucket, container or folder") from None
        return True

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


def _detail(error: Exception) -> str:
    """Return what an error says, without the address and its own source: both may hold what nobody is to see."""
    text = str(error)
    found = [match[1].strip() for match in (_STATUS.search(text), _CAUSE.search(text)) if match]
    first = text.partition("\n")[0].rpartition(" - ")[2] if not found else ", ".join(dict.fromkeys(found))
    return f": {re.sub(r'[a-z]+://[^ ]+', 'the address', first)[:_SHOWN]}"
