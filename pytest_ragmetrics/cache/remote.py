"""The cache that a team shares: a tier behind the local store, read and written through, on a server or in a folder.

An answer lies there under its key, in a parcel: one line that names its form and its signature, then its row as JSON.
What arrives is checked before it is used. Two machines that ask the same at the same time both pay: the first answer
that arrives is kept. Nothing here fails a test: a place that cannot be used costs one warning, and the run goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import warnings
import zlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

from pytest_ragmetrics.cache.entry import CacheEntry, CacheReadOnlyError, CacheUnavailableError
from pytest_ragmetrics.core import loop

T = TypeVar("T")
#: ``read`` writes no answers.
RemoteMode = Literal["read", "readwrite"]
#: Says what is wrong with an entry that arrived, as the answer to a request; ``None`` if nothing is.
Check = Callable[[CacheEntry], str | None]

#: The package that each kind of URL needs, and the extra that brings it.
_OBJECTS, _REDIS = ("obstore", "remote"), ("redis", "redis")
_PACKAGES = {
    **dict.fromkeys(("s3", "gs", "az", "file", "https", "http"), _OBJECTS),
    **dict.fromkeys(("redis", "rediss"), _REDIS),
}
_WEB = ("https", "http")

_MAGIC = b"ragmetrics/1"
_PLAIN, _PACKED = b"json", b"zlib"
_UNSIGNED = b"-"
# Bytes from which packing saves more than it takes, and that a parcel and what is in it may have.
_WORTH_PACKING = 4_096
_LARGEST = 32 * 2**20

# Seconds between two looks at an operation, and after how many looks it is slow and is given up. Looks are counted, not
# seconds: while this process waits for its own processor there is only one.
_LOOK, _SLOW, _DEADLINE = 0.5, 2, 10
# After how many slow operations in a row the cache is not asked, one given up being two, and for how many seconds.
_SLOW_IN_A_ROW = 5
_REST = 60.0
# Seconds that writing may take at the end of a run.
_FLUSH = 5.0
# How many operations run at once, and how many of them read.
_AT_ONCE, _READS = 16, 4


def check_cache_url(text: str) -> str:
    """Return the URL of a cache; raise ``ValueError`` for one that cannot be used, and for a missing extra.

    >>> check_cache_url("file:///shared/answers")
    'file:///shared/answers'
    """
    url = text.strip()
    scheme, _, rest = url.partition("://")
    if scheme not in _PACKAGES or not rest:
        kinds = "s3://BUCKET/FOLDER, gs://, az://, file:///FOLDER, https:// (read only), redis://HOST or rediss://"
        raise ValueError(f"{shown_url(url)!r} is none of {kinds}")
    package, extra = _PACKAGES[scheme]
    if find_spec(package) is None:
        raise ValueError(f'{scheme}:// needs the package {package}: pip install "pytest-ragmetrics[{extra}]"')
    if scheme == "file" and not rest.startswith("/"):
        raise ValueError(f"{url!r} has no absolute path: write file:///FOLDER with three slashes")
    try:
        _ = urlsplit(url).port
    except ValueError:
        escaped = "write %40, %2F, %3F and %23 for @, /, ? and # in a password"
        raise ValueError(f"{shown_url(url)!r} has no valid host and port: {escaped}") from None
    return url


def shown_url(url: str) -> str:
    """Return a URL without its user, password and query; of one that may have them elsewhere, no more than its kind.

    >>> shown_url("redis://ci:secret@cache.example:6379/0?password=secret")
    'redis://cache.example:6379/0'
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return re.split(r"[?#]|:(?=.*@)", url, maxsplit=1)[0]
    place, *query = re.split(r"[?#]", rest, maxsplit=1)
    host, slash, path = place.partition("/")
    is_bucket = _PACKAGES.get(scheme) == _OBJECTS and scheme not in _WEB
    # A password with one of /?# that is not escaped ends behind it.
    if "@" in "".join(query) or ("@" in path and not is_bucket):
        return f"{scheme}://***"
    name, colon, port = host.rpartition("@")[2].rpartition(":")
    # A host without its @ is a user, and its port the password.
    shown = port if not colon else f"{name}:{port}" if port.isdigit() or port.endswith("]") else f"{name}:***"
    return f"{scheme}://{shown}{slash}{path}"


def is_written(url: str, mode: RemoteMode) -> bool:
    """Return whether answers are put there: a web server is only read."""
    return mode == "readwrite" and urlsplit(url).scheme not in _WEB


class Backend(Protocol):
    """A place of parcels, for one event loop.

    All methods raise :class:`CacheUnavailableError`, those that write :class:`CacheReadOnlyError` where that is not
    allowed; messages name no password.
    """

    #: How many keys are read at once.
    many: int

    async def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the parcels of those keys that have one."""

    async def put(self, key: str, parcel: bytes, *, replace: bool) -> bool:
        """Put a parcel down and return True; return False where there is one, unless it is to be replaced."""

    async def probe(self) -> None:
        """Write something that nobody reads."""

    async def sample(self, count: int) -> list[str]:
        """Return some keys."""

    async def aclose(self) -> None:
        """Close the connections."""


def backend_of(url: str) -> Backend:
    """Return the place of a URL that :func:`check_cache_url` accepts; raise :class:`CacheUnavailableError`."""
    if _PACKAGES[urlsplit(url).scheme] == _REDIS:
        from pytest_ragmetrics.cache.remote_redis import RedisBackend

        return RedisBackend(url, shown_url(url))
    from pytest_ragmetrics.cache.remote_objects import ObjectBackend

    return ObjectBackend(url, shown_url(url))


def pack(entry: CacheEntry, secret: str = "") -> bytes:
    """Return the parcel of an entry, signed if there is a secret."""
    # ASCII only: UTF-8 has no lone surrogates.
    body, form = json.dumps(entry.to_row(), allow_nan=False).encode("ascii"), _PLAIN
    if len(body) > _WORTH_PACKING:
        body, form = zlib.compress(body, 1), _PACKED
    return b" ".join((_MAGIC, form, _signature(entry.key, form, body, secret))) + b"\n" + body


def unpack(key: str, parcel: bytes, secret: str = "") -> CacheEntry:
    """Return the entry in a parcel that arrived under a key; raise ``ValueError`` saying why it is refused.

    With a secret, nothing of an unsigned or forged parcel is read.
    """
    head, _, body = parcel.partition(b"\n")
    magic, _, rest = head.partition(b" ")
    form, _, signature = rest.partition(b" ")
    if magic != _MAGIC or form not in (_PLAIN, _PACKED) or len(parcel) > _LARGEST:
        raise ValueError("not a parcel of this version")
    if secret and not hmac.compare_digest(signature, _signature(key, form, body, secret)):
        raise ValueError("unsigned, or not signed with RAGMETRICS_CACHE_SECRET")
    try:
        entry = CacheEntry.from_row(json.loads(_unpacked(body) if form == _PACKED else body))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"truncated or no answer: {error}") from error
    if entry.key != key:
        raise ValueError("stored under another key")
    return entry


def is_sound(key: str, parcel: bytes, secret: str = "") -> bool:
    """Return whether a parcel would not be refused, its key computed anew."""
    try:
        return unpack(key, parcel, secret).problem() is None
    except ValueError:
        return False


def _signature(key: str, form: bytes, body: bytes, secret: str) -> bytes:
    if not secret:
        return _UNSIGNED
    signed = b"\n".join((key.encode("ascii"), form, body))
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode("ascii")


def _unpacked(body: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(body, _LARGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not stream.eof:
        raise ValueError("its end is missing")
    return text


@dataclass(kw_only=True, slots=True)
class RemoteCounts:
    """Answers found in the shared cache, added to it and refused, and the first thing that went wrong."""

    found: int = 0
    added: int = 0
    refused: int = 0
    problem: str = ""


def counts_line(url: str, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the line of the summary on the :meth:`RemoteCache.final_counts` of all processes.

    >>> counts_line("redis://cache", [{"found": 1200, "added": 3, "refused": 0, "problem": ""}])
    ['shared cache redis://cache: 1,200 answers found, 3 added']
    """
    counts = [RemoteCounts(**row) for row in rows]
    found, added, refused = (sum(getattr(each, name) for each in counts) for name in ("found", "added", "refused"))
    problem = next((f"; {each.problem}" for each in counts if each.problem), "")
    if not (found or added or refused or problem):
        return []
    doubtful = f", {refused:,} refused (forged, unsigned or damaged)" if refused else ""
    answers = "answer" if found == 1 else "answers"
    return [f"shared cache {shown_url(url)}: {found:,} {answers} found, {added:,} added{doubtful}{problem}"]


class _NoAnswerError(CacheUnavailableError):
    """One operation has no answer, which says nothing of the next one."""


class RemoteCache:
    """The shared cache as a run uses it, on one event loop at a time.

    ``connect`` makes the backend when it is first needed, ``shown`` is its name in messages. Without ``writes`` nothing
    is put there. ``secret`` signs what is written, and what is read must be signed with it. ``warn`` is called at most
    once. A place is not asked for a minute where an operation fails, five in a row take longer than a second, or three
    longer than five.
    """

    def __init__(
        self,
        connect: Callable[[], Backend],
        *,
        shown: str,
        writes: bool = True,
        secret: str = "",
        warn: Callable[[str], None] = warnings.warn,
    ) -> None:
        self.counts = RemoteCounts()
        self.shown = shown
        self._connect = connect
        self._writes = writes
        self._secret = secret
        self._warn = warn
        #: Slow operations in a row, when the last of them ended, and when the place is asked again.
        self._slow = 0
        self._slow_until = self._rests_until = 0.0
        #: Keys whose parcel was refused, and of these those whose parcel is replaced.
        self._refused: set[str] = set()
        self._bad: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        self._home: asyncio.AbstractEventLoop | None = None
        self._backend: Backend | None = None
        self._asked: dict[str, asyncio.Future[bytes | None]] = {}
        self._unread: list[str] = []
        self._reading: set[asyncio.Task[None]] = set()
        self._writing: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(_AT_ONCE)

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for an answer from here."""
        return bool(self._asked)

    async def look(self, keys: Sequence[str], check: Check) -> dict[str, CacheEntry]:
        """Return the entries of those keys that have one here that passes a check."""
        parcels = await self._parcels(keys)
        found = {key: entry for key, parcel in parcels.items() if (entry := self._read(key, parcel, check))}
        self.counts.found += len(found)
        return found

    def write(self, entries: Iterable[CacheEntry], *, replace: bool = False) -> None:
        """Put entries down in the background."""
        for entry in entries:
            task = asyncio.ensure_future(self._put(entry, replace=replace or entry.key in self._bad))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    def final_counts(self) -> dict[str, Any]:
        """Return the counts as JSON builtins, once everything is written; from any thread but the loop's."""
        loop.run(self.flush())
        return asdict(self.counts)

    async def flush(self, timeout: float = _FLUSH) -> None:
        """Wait until everything is written, and say how much is not by then."""
        if self._writing and self._home is asyncio.get_running_loop():
            _, late = await asyncio.wait(tuple(self._writing), timeout=timeout)
            for task in late:
                task.cancel()
            if late:
                self._failed(CacheReadOnlyError(f"answers could not be written within {timeout:g} s: {len(late):,}"))

    async def aclose(self) -> None:
        """Flush, and close the connections; the next use opens them again."""
        if self._home is not asyncio.get_running_loop():
            return
        await self.flush()
        backend, tasks = self._backend, [*self._writing, *self._reading]
        self._begin()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if backend is not None:
            with suppress(CacheUnavailableError, TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(backend.aclose(), _FLUSH)

    def _place(self) -> Backend:
        self._at_home()
        if self._backend is None:
            try:
                self._backend = self._connect()
            except CacheUnavailableError:
                raise
            except Exception as error:  # noqa: BLE001 - raised on, it would leave whoever waits for an answer waiting
                # What other errors say may have the URL with its password.
                detail = f": {error}" if isinstance(error, ImportError) else ""
                raise CacheUnavailableError(f"it cannot be used: {type(error).__name__}{detail}") from None
        return self._backend

    def _at_home(self) -> asyncio.AbstractEventLoop:
        """Return the running loop; begin anew on another, where nothing of the first can be closed or awaited."""
        running = asyncio.get_running_loop()
        if self._home is not running:
            self._begin()
            self._home = running
        return running

    async def _bounded(self, work: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """Return the result of an operation; raise :class:`CacheUnavailableError` for what fails or takes too long."""
        async with self._turn:
            if self._rests:
                raise _NoAnswerError("it is not asked for now")
            clock, looks = asyncio.get_running_loop().time, 0
            start, operation = clock(), asyncio.ensure_future(work(self._place()))
            try:
                while looks < _DEADLINE and not operation.done():
                    await asyncio.wait((operation,), timeout=_LOOK)
                    looks += not operation.done()
                late = f"no answer within {_DEADLINE * _LOOK:g} s" if looks == _DEADLINE else ""
                if looks < _SLOW:
                    self._slow = 0
                elif start >= self._slow_until:  # of several at the same time one counts
                    self._slow, self._slow_until = self._slow + 1 + bool(late), clock()
                if self._slow >= _SLOW_IN_A_ROW:
                    # The first that is slow after the rest begins another.
                    self._slow = _SLOW_IN_A_ROW - 1
                    self._failed(CacheUnavailableError(late or "too slow: again and again longer than 1 s"))
                if late:
                    raise _NoAnswerError(late)
                return operation.result()
            finally:
                operation.cancel()
                await asyncio.gather(operation, return_exceptions=True)

    @property
    def _rests(self) -> bool:
        return asyncio.get_running_loop().time() < self._rests_until

    def _failed(self, error: CacheUnavailableError) -> None:
        """Write there no more, or do not ask it for a while if reading may fail too; say so the first time."""
        if isinstance(error, _NoAnswerError):
            return
        rest = f"with the local cache alone and asks it again after {_REST:g} s"
        if isinstance(error, CacheReadOnlyError):
            self._writes, rest = False, "and adds nothing to it"
        else:
            self._rests_until = asyncio.get_running_loop().time() + _REST
        if self.counts.problem:
            return
        self.counts.problem = f"{error}; the run went on {rest.replace('asks', 'asked')}"
        # Where warnings are errors this one must not fail the test that happens to ask.
        with suppress(Warning):
            self._warn(f"shared cache {self.shown}: {error}; this run goes on {rest}")

    # Reading: what is asked for at the same time is read together.

    async def _parcels(self, keys: Sequence[str]) -> dict[str, bytes]:
        running = self._at_home()
        if self._rests:
            return {}
        for key in keys:
            if key not in self._asked:
                self._asked[key] = running.create_future()
                self._unread.append(key)
        wanted = {key: self._asked[key] for key in keys}
        running.call_soon(self._read_on)
        await asyncio.wait(wanted.values())
        return {key: parcel for key, future in wanted.items() if (parcel := future.result()) is not None}

    def _read_on(self, done: asyncio.Task[None] | None = None) -> None:
        if done is not None:
            self._reading.discard(done)
        while self._unread and len(self._reading) < _READS:
            many = len(self._unread)
            try:
                many = self._place().many
            except CacheUnavailableError as error:
                self._failed(error)
            keys, self._unread = self._unread[:many], self._unread[many:]
            task = asyncio.ensure_future(self._read_many(keys))
            self._reading.add(task)
            task.add_done_callback(self._read_on)

    async def _read_many(self, keys: Sequence[str]) -> None:
        parcels: dict[str, bytes] = {}
        try:
            parcels = await self._bounded(lambda backend: backend.get(keys))
        except CacheUnavailableError as error:
            self._failed(error)
        finally:
            for key in keys:
                future = self._asked.pop(key, None)
                if future is not None and not future.done():
                    future.set_result(parcels.get(key))

    def _read(self, key: str, parcel: bytes, check: Check) -> CacheEntry | None:
        entry = None
        with suppress(ValueError):
            entry = unpack(key, parcel, self._secret)
            if check(entry) is None:
                return entry
        self._refused.add(key)
        self.counts.refused = len(self._refused)
        # Others may be able to use a redacted one.
        if entry is None or not entry.redacted:
            self._bad.add(key)
        return None

    async def _put(self, entry: CacheEntry, *, replace: bool) -> None:
        if self._writes:
            parcel = pack(entry, self._secret)
            try:
                is_new = await self._bounded(lambda backend: backend.put(entry.key, parcel, replace=replace))
                self.counts.added += is_new
                self._bad.discard(entry.key)
            except CacheUnavailableError as error:
                self._failed(error)


def open_remote(url: str, *, mode: RemoteMode = "readwrite", **options: Any) -> RemoteCache:
    """Return the shared cache of a URL, with options of :class:`RemoteCache`; nothing is connected yet."""
    return RemoteCache(lambda: backend_of(url), shown=shown_url(url), writes=is_written(url, mode), **options)
