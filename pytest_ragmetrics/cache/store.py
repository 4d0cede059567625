"""The local store: every reply this machine has paid for, in one SQLite file of diskcache's layout.

``CacheTiers`` reads and writes entries here, ``ragmetrics cache`` maintains them. Writing goes through diskcache, whose
``Disk`` is replaced by one that refuses pickles and files. Reading has one connection for all threads: diskcache opens
one a thread, which no other thread can close; on a thread of its own it takes 4 to 5 times as long a key
(``tests/benchmarks/store.py``).
A file that is damaged or not ours is moved aside, and one that is deleted in use is made again; both keep what can be
read of it. SQLite is not safe on network file systems; cassettes are the way to share replies.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import sqlite3
import sys
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from pytest_ragmetrics.cache.damage import (
    COLUMNS,
    damage,
    files_aside,
    is_damage,
    made_usable,
    readable,
    remove_log,
    set_aside,
)
from pytest_ragmetrics.cache.entry import CacheEntry, CacheUnavailableError
from pytest_ragmetrics.cache.folder import LOCKS, prepare, refuse_foreign, restrict
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import CacheError
from pytest_ragmetrics.core.files import PRIVATE_FILE

if TYPE_CHECKING:
    import diskcache
    from typing_extensions import Self

T = TypeVar("T")

DATABASE = "cache.db"

# The only mode that is read: the value is in the row, as text.
_RAW = 1
# Seconds that processes which start at once wait for one another, and a statement for another process's transaction.
_TIMEOUT = 60
# SQLite's limit of 512 on Unix, without the name of the database and the longest ending of what is beside it.
_LONGEST = 512 - len("/cache.db-journal")
# How many entries an iteration keeps in memory.
_PAGE = 200
# How many rows one statement writes, as diskcache's set() would one by one: at the begin and the end of each statement
# this thread and that of the loop hand the interpreter over, which takes longer than the statement.
_AT_ONCE = 100
_INSERT = (
    "INSERT INTO Cache (key, value, tag, store_time, access_time, raw, mode, expire_time, access_count, size, filename)"
)
_VALUES = f"(?, ?, ?, ?, ?, 1, {_RAW}, NULL, 0, 0, NULL)"
_OR_UPDATE = "ON CONFLICT (key, raw) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}"
    for name in ("value", "tag", "store_time", "access_time", "mode", "expire_time", "access_count", "size", "filename")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A row that cannot be used, and why."""

    rowid: int
    key: str
    problem: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What a store contains: entries by task and model, bytes on disk, times and tokens of the replies."""

    entries: int
    size: int
    oldest: datetime | None
    newest: datetime | None
    prompt_tokens: int
    completion_tokens: int
    kinds: dict[tuple[str, str], int]


#: Device and inode of a file.
_Identity = tuple[int, int]


def _identity(path: Path) -> _Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_mine(path: Path) -> bool:
    return path.exists() and hasattr(os, "geteuid") and path.stat().st_uid == os.geteuid()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Writes:
    """Key, text and run of rows that are written together, all or none."""

    rows: Sequence[tuple[str, str, str]]
    written: Future[None] = field(default_factory=Future)


class Store:
    """Entries in a folder, for any thread of any number of processes.

    The folder need not exist, and only writing creates it; a read-only folder is read. All methods raise
    :class:`CacheUnavailableError` if the folder or the database cannot be used, and :class:`CacheError` for a row that
    was tampered with. ``warn`` is called for a database that was damaged or deleted in use, and mended. Close it after
    use.
    """

    def __init__(self, folder: Path, *, warn: Callable[[str], None] = warnings.warn) -> None:
        self.folder = folder.absolute()
        self.database = self.folder / DATABASE
        self.locks = self.folder / LOCKS
        # Only the thread that opened a diskcache connection can close it: one thread of our own writes.
        self._writer: ThreadPoolExecutor | None = None
        self._cache: diskcache.Cache | None = None
        self._connection: sqlite3.Connection | None = None
        # Which file the cache and the connection have open.
        self._written: _Identity | None = None
        self._read_from: _Identity | None = None
        self._warn = warn
        self._untold: deque[str] = deque()
        self._lock = threading.RLock()
        self._queue: deque[_Writes] = deque()
        _stores.add(self)
        _watch_forks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def exists(self) -> bool:
        """Return whether the store has a database."""
        return self._guard(self.database.exists)

    def get(self, key: str) -> CacheEntry | None:
        """Return the entry of a key."""
        return self.get_many((key,)).get(key)

    def put(self, entry: CacheEntry) -> None:
        """Store an entry, replacing the one of its key."""
        self.put_many((entry,))

    def get_many(self, keys: Sequence[str], *, run: str | None = None) -> dict[str, CacheEntry]:
        """Return the entries of those keys that have one; with ``run`` only those that this run stored."""
        query = "SELECT mode, filename, value, tag FROM Cache WHERE key = ? AND raw = 1"

        def read(connection: sqlite3.Connection) -> dict[str, CacheEntry]:
            rows = ((key, connection.execute(query, (key,)).fetchone()) for key in keys)
            return {key: _entry(key, *row[:3]) for key, row in rows if row is not None and run in (None, row[3])}

        return self._read(read, {})

    def put_many(self, entries: Iterable[CacheEntry], *, run: str = "") -> None:
        """Store entries, all or none."""
        rows = [_row(entry, run) for entry in entries]
        self._submit(lambda: self._write(rows)).result()
        self._tell()

    async def aput_many(self, entries: Sequence[CacheEntry], *, run: str = "") -> None:
        """Store entries without blocking the loop; a write that has begun is completed even if cancelled."""
        batch = _Writes(rows=[_row(entry, run) for entry in entries])
        self._queue.append(batch)
        self._submit(self._write_queue)
        await asyncio.shield(asyncio.wrap_future(batch.written))
        self._tell()

    def count(self) -> int:
        """Return the number of entries."""
        return self._read(lambda connection: int(connection.execute("SELECT COUNT(*) FROM Cache").fetchone()[0]), 0)

    def __iter__(self) -> Iterator[CacheEntry]:
        """Iterate over all entries in the order of their keys."""
        keys = iter(self._keys())
        while page := tuple(islice(keys, _PAGE)):
            yield from self.get_many(page).values()

    def prune(self, older_than: datetime) -> int:
        """Delete the entries made before a time; return how many."""
        return self._delete([entry.key for entry in self if entry.made_at < older_than])

    def clear(self) -> int:
        """Delete all entries, and the files that were moved aside; return how many entries."""
        count = self._delete(self._keys())

        def drop() -> None:
            for file in self.aside():
                shutil.rmtree(file) if file.is_dir() else file.unlink()

        self._guard(drop)
        return count

    def aside(self) -> list[Path]:
        """Return the files that were moved aside because they were damaged or not ours."""
        return files_aside(self.database)

    def damage(self) -> str | None:
        """Return what is wrong with the database as a whole, ``None`` if nothing is; it stays as it is."""
        return self._guard(lambda: damage(self.database, _connect, thorough=True))

    def mend(self) -> None:
        """Do now what reading and writing do by themselves: move a damaged database aside, and make a new one."""
        self._submit(lambda: self._opened(is_suspect=True)).result()
        self._tell()

    def contents(self) -> Contents:
        """Return figures about all entries."""
        tokens: Counter[str] = Counter()
        kinds: Counter[tuple[str, str]] = Counter()
        times = []
        for entry in self:
            kinds[entry.task, str(entry.request.get("model", ""))] += 1
            tokens.update({name: count for name, count in entry.reply.items() if isinstance(count, int)})
            times.append(entry.made_at)
        return Contents(
            entries=len(times),
            size=sum(file.stat().st_size for file in {*self.folder.glob(f"{DATABASE}*")}.difference(self.aside())),
            oldest=min(times, default=None),
            newest=max(times, default=None),
            prompt_tokens=tokens["prompt_tokens"],
            completion_tokens=tokens["completion_tokens"],
            kinds=dict(sorted(kinds.items())),
        )

    def verify(self) -> list[Fault]:
        """Check the database and every row; raise :class:`CacheUnavailableError` if it is damaged as a whole."""

        def check() -> list[Fault]:
            if not self.database.exists():
                return []
            if problem := damage(self.database, _connect, thorough=True):
                to_do = "`ragmetrics cache verify --remove` moves it aside, as the next run does"
                raise CacheUnavailableError(f"{self.database}: {problem}; {to_do}")
            with closing(_connect(self.database)) as connection:
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                rows = connection.execute("SELECT rowid, key, raw, mode, filename, value FROM Cache ORDER BY key")
                return [
                    Fault(rowid=rowid, key=str(row[0]), problem=problem)
                    for rowid, *row in rows
                    if (problem := _fault(*row)) is not None
                ]

        return self._guard(check)

    def remove(self, faults: Iterable[Fault]) -> None:
        """Delete the rows that :meth:`verify` returned."""

        def delete() -> None:
            with closing(sqlite3.connect(self.database, timeout=_TIMEOUT)) as connection, connection:
                connection.executemany("DELETE FROM Cache WHERE rowid = ?", [(fault.rowid,) for fault in faults])

        self._guard(delete)

    def close(self) -> None:
        """Close the thread and the connections; the next use opens them again."""
        with self._lock:
            self._disconnect()
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.submit(self._close_cache).result()
                writer.shutdown()

    def _guard(self, work: Callable[[], T]) -> T:
        """Convert errors of the system and of SQLite to one that names the folder."""
        try:
            return work()
        except (OSError, sqlite3.Error) as error:
            raise CacheUnavailableError(f"{self.folder}: the cache cannot be used: {self._reason(error)}") from error

    def _reason(self, error: Exception) -> str:
        length = len(os.fsencode(self.folder))
        if length <= _LONGEST:
            return str(error)
        return f"the path has {length} bytes, and SQLite opens no longer one than {_LONGEST}: name a shorter one"

    def _read(self, query: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Return the result of a query; ``nothing`` where there is no database, which reading does not create."""

        def read() -> T:
            if self._connection is None and self._written is None and not self.database.exists():
                return nothing
            try:
                return query(self._connected())
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                msg = f"a row of the cache is not text: {error}; `ragmetrics cache verify --remove` drops it"
                raise CacheError(msg) from error
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not is_damage(error) or not self._is_own():
                    raise
            self._disconnect()
            self._submit(lambda: self._opened(is_suspect=True)).result()
            return query(self._connected())

        with self._lock:
            found = self._guard(read)
        self._tell()
        return found

    def _keys(self) -> list[str]:
        def read(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute("SELECT key, raw FROM Cache ORDER BY key")
            return [_checked(raw, _RAW, None, "", key) for key, raw in rows]

        return self._read(read, [])

    def _connected(self) -> sqlite3.Connection:
        if self._read_from is not None and self._read_from != _identity(self.database):
            self._disconnect()
        if self._connection is None:
            if self._is_own():
                self._submit(self._opened).result()
                self._read_from = self._written
            else:
                refuse_foreign(self.folder)
            self._connection = _connect(self.database)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection, self._read_from = self._connection, None, None
        if connection is not None:
            connection.close()

    def _is_own(self) -> bool:
        """Tell whether the database can be written, also once it is mended."""
        if not os.access(self.folder, os.W_OK):
            # One that was deleted in use is made again.
            return not self.folder.exists()
        return os.access(self.database, os.W_OK) or not os.access(self.database, os.R_OK) or _is_mine(self.database)

    def _tell(self) -> None:
        while self._untold:
            # Where warnings are errors, no test must fail and no answer be lost for it.
            with suppress(Warning):
                self._warn(self._untold.popleft())

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._writer is None:
                self._writer = ThreadPoolExecutor(1, thread_name_prefix="ragmetrics-store")
            return self._writer.submit(self._guard, work)

    def _opened(self, *, is_suspect: bool = False) -> diskcache.Cache:
        """Return the cache, open; one that was deleted in use, or is damaged where it ``is_suspect``, is mended."""
        # SQLite goes on in a deleted file, where no other process and no later run finds anything.
        if self._cache is None or is_suspect or self._written != _identity(self.database):
            before, lost = self._written, self._cache
            is_deleted = lost is not None and not self.database.exists()
            try:
                prepare(self.folder)
                self._cache, told = _open(self.folder, is_suspect=is_suspect)
                self._written = _identity(self.database)
                if lost is not None and before != self._written:
                    kept = _take_over(self._cache, lost._sql)  # noqa: SLF001 - the file has no name any more
                    if is_deleted:
                        told = f"{self.database} was deleted while in use; it is made again, with its {kept} answers"
            finally:
                if lost is not None:
                    lost.close()
            if told:
                self._untold.append(told)
        return self._cache

    def _close_cache(self) -> None:
        cache, self._cache, self._written = self._cache, None, None
        if cache is not None:
            cache.close()

    def _transact(self, work: Callable[[diskcache.Cache], T]) -> T:
        """Return the result of work on the cache, all of it done or none; what is found damaged is mended first."""
        import diskcache

        def attempt() -> T:
            try:
                cache = self._opened()
                with cache.transact():
                    return work(cache)
            except diskcache.Timeout as error:
                msg = f"{self.folder}: another process has locked the database for {_TIMEOUT} s"
                raise CacheUnavailableError(msg) from error

        try:
            return attempt()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
        self._opened(is_suspect=True)
        return attempt()

    def _write(self, rows: Sequence[tuple[str, str, str]]) -> None:
        def write(cache: diskcache.Cache) -> None:
            now = time.time()
            for first in range(0, len(rows), _AT_ONCE):
                part = [(*row, now, now) for row in rows[first : first + _AT_ONCE]]
                statement = f"{_INSERT} VALUES {', '.join([_VALUES] * len(part))} {_OR_UPDATE}"
                cache._sql(statement, list(chain.from_iterable(part)))  # noqa: SLF001 - set() makes two for each row

        self._transact(write)

    def _write_queue(self) -> None:
        # One transaction for all waiting batches takes little longer than one batch.
        batches = [self._queue.popleft() for _ in range(len(self._queue))]
        if not batches:
            return
        try:
            self._guard(lambda: self._write([row for batch in batches for row in batch.rows]))
        except Exception as error:  # noqa: BLE001 - raised by every aput_many() that waits for it
            for batch in batches:
                batch.written.set_exception(error)
        else:
            for batch in batches:
                batch.written.set_result(None)

    def _delete(self, keys: Sequence[str]) -> int:
        def delete() -> int:
            return self._transact(lambda cache: sum(bool(cache.delete(key)) for key in keys))

        count = self._submit(delete).result()
        self._tell()
        return count


_stores: WeakSet[Store] = WeakSet()
_paused: list[Store] = []
_forking = threading.Lock()


def _pause_all() -> None:
    """Close all stores, and keep other threads from opening them until the fork is made."""
    _forking.acquire()
    # First: it may be about to take the lock of a store.
    loop.pause()
    for store in tuple(_stores):
        store._lock.acquire()  # noqa: SLF001 - of this module
        _paused.append(store)
        store.close()


def _resume_all() -> None:
    while _paused:
        _paused.pop()._lock.release()  # noqa: SLF001 - of this module
    _forking.release()


@functools.cache
def _watch_forks() -> None:
    """Close stores before a fork: a child inherits SQLite's idea of its file locks, and would overwrite the parent."""
    # Its hook runs after this one then, and the thread that writes is not kept waiting.
    import filelock  # noqa: F401

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_pause_all, after_in_parent=_resume_all, after_in_child=_resume_all)


def _row(entry: CacheEntry, run: str) -> tuple[str, str, str]:
    # ASCII only: SQLite cannot store a lone surrogate.
    return entry.key, json.dumps(entry.to_row(), allow_nan=False), run


def _entry(key: str, mode: object, filename: object, value: object) -> CacheEntry:
    """Return the entry of a row; raise :class:`CacheError` for a row that this package did not write."""
    text = _checked(1, mode, filename, key, value)
    try:
        entry = CacheEntry.from_row(json.loads(text))
    except (ValueError, RecursionError) as error:
        msg = f"entry {key} of the cache cannot be read: {error}; `ragmetrics cache verify --remove` drops it"
        raise CacheError(msg) from error
    if entry.key != key:
        msg = f"entry {key} of the cache is stored under another key; `ragmetrics cache verify --remove` drops it"
        raise CacheError(msg)
    return entry


def _fault(key: object, raw: object, mode: object, filename: object, value: object) -> str | None:
    problem = _problem(raw, mode, filename, key, value)
    if problem is not None:
        return problem
    try:
        return _entry(str(key), mode, filename, value).problem(strict=True)
    except CacheError as error:
        return str(error.__cause__ or "it is stored under another key")


def _problem(raw: object, mode: object, filename: object, key: object, value: object) -> str | None:
    if raw != 1 or mode != _RAW or filename is not None:
        return "it asks to be unpickled or read from a file"
    return None if isinstance(key, str) and isinstance(value, str) else "it is not text"


def _checked(raw: object, mode: object, filename: object, key: object, value: object) -> str:
    """Return the value of a row; raise :class:`CacheError` if key or value are unsafe to read."""
    problem = _problem(raw, mode, filename, key, value)
    if problem is not None:
        raise CacheError(f"a row of the cache was tampered with: {problem}; `ragmetrics cache verify` names it")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the cache stores text, not {type(value).__name__}")
    return value


@functools.cache
def text_disk() -> type[diskcache.Disk]:
    """Return the ``Disk`` of the store: text under text, in the database; pickles and files are refused."""
    import diskcache

    class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no annotations
        def put(self, key: object) -> tuple[str, bool]:
            return _text(key), True

        def get(self, key: object, raw: object) -> str:
            return _checked(raw, _RAW, None, "", key)

        def store(self, value: object, read: object, key: object = None) -> tuple[int, int, None, str]:  # noqa: ARG002 - diskcache's signature
            return 0, _RAW, None, _text(value)

        def fetch(self, mode: object, filename: object, value: object, read: object) -> str:  # noqa: ARG002 - diskcache's signature
            return _checked(1, mode, filename, "", value)

        def remove(self, file_path: object) -> None:
            """Delete no file: a tampered row may name any."""

    return TextDisk


def _open(folder: Path, *, is_suspect: bool = False) -> tuple[diskcache.Cache, str]:
    """Return the cache of a folder, and what was done to mend it, if anything; looks at all of it if it is suspect."""
    from filelock import FileLock

    database = folder / DATABASE
    # SQLite does not wait when two processes create the same database.
    with FileLock(folder / LOCKS / "open.lock", mode=PRIVATE_FILE, timeout=_TIMEOUT):
        told = ""
        if not database.exists():
            remove_log(database)
            return _made(folder), told
        if database.is_file() and not os.access(database, os.R_OK | os.W_OK):
            told = made_usable(database)
        problem = damage(database, _connect, thorough=is_suspect)
        if problem is None:
            try:
                return _made(folder), told
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                # diskcache trusts the settings that the database contains.
                problem = f"its settings are not ours: {error}"
        aside = set_aside(database)
        cache = _made(folder)
        kept = 0
        with suppress(sqlite3.Error), closing(_connect(aside)) as connection:
            kept = _take_over(cache, connection.execute)
        remove_log(aside, if_empty=True)
        return cache, f"{database}: {problem}; it is moved to {aside.name}, and a new one has {kept} answers of it"


def _take_over(cache: diskcache.Cache, execute: Callable[[str], Iterator[Any]]) -> int:
    """Add the sound rows of another database that are missing, as far as it can be read; return how many."""
    with suppress(sqlite3.Error, UnicodeDecodeError), cache.transact(retry=True):
        rows = readable(execute(f"SELECT {', '.join(COLUMNS)} FROM Cache"))  # noqa: S608 - names of our own
        return sum(bool(cache.add(row[0], row[4], tag=row[5])) for row in rows if _fault(*row[:5]) is None)
    return 0


def _made(folder: Path) -> diskcache.Cache:
    """Return the cache of a folder, whose database is created if there is none."""
    import diskcache

    class TextCache(diskcache.Cache):  # type: ignore[misc]  # diskcache has no annotations
        def __init__(self, directory: str, **settings: object) -> None:
            try:
                super().__init__(directory, disk=text_disk(), **settings)
            except BaseException:
                # diskcache leaves its connection open.
                self.close()
                raise

    # SQLite creates -wal and -shm with the mode of the database.
    os.close(os.open(folder / DATABASE, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    restrict(folder / DATABASE, PRIVATE_FILE)
    return TextCache(
        str(folder),
        timeout=_TIMEOUT,
        eviction_policy="none",
        cull_limit=0,
        size_limit=sys.maxsize,
        statistics=0,
        tag_index=0,
    )


def _connect(database: Path) -> sqlite3.Connection:
    # In a read-only folder SQLite cannot create -wal and -shm: open immutable, unless another account writes there.
    wal = database.with_name(f"{database.name}-wal")
    immutable = "" if os.access(database.parent, os.W_OK) or wal.exists() else "&immutable=1"
    uri = f"{database.as_uri()}?mode=ro{immutable}"
    return sqlite3.connect(uri, uri=True, timeout=_TIMEOUT, check_same_thread=False)
