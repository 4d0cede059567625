"""The local store: every reply this machine has paid for, in one SQLite file of diskcache's layout.

``CacheTiers`` reads and writes entries here, ``ragmetrics cache`` maintains them. All goes through one diskcache, whose
``Disk`` is replaced by one that refuses pickles and files, on one thread: diskcache opens a connection for each thread,
which no other thread can close. With the way to that thread and back reading a key takes 60 us instead of 12
(``tests/benchmarks/store.py``), of 1.9 ms that a score takes all of whose answers are found.
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
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from weakref import WeakSet

from pytest_ragmetrics.cache import folder as files
from pytest_ragmetrics.cache.entry import CacheEntry, CacheUnavailableError
from pytest_ragmetrics.cache.folder import COLUMNS, LOCKS, TIMEOUT, damage, is_damage, is_own
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import CacheError
from pytest_ragmetrics.core.files import PRIVATE_FILE, exists

if TYPE_CHECKING:
    import diskcache
    from typing_extensions import Self

T = TypeVar("T")

DATABASE = "cache.db"

# The only mode that is read: the value is in the row, as text.
_RAW = 1
# SQLite's limit of 512 on Unix, without the name of the database and the longest ending of what is beside it.
_LONGEST = 512 - len("/cache.db-journal")
# How many entries an iteration keeps in memory.
_PAGE = 200
_ROWS = f"SELECT {', '.join(COLUMNS)} FROM Cache"  # noqa: S608 - names of our own
_DROPS = "`ragmetrics cache verify --remove` drops it"
# Nothing is evicted, and reading writes nothing.
_SETTINGS = {"eviction_policy": "none", "cull_limit": 0, "size_limit": sys.maxsize, "statistics": 0, "tag_index": 0}


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
        # Used on the thread alone: the cache, and device and inode of the file that it has open.
        self._cache: diskcache.Cache | _ReadOnly | None = None
        self._opened_file: tuple[int, int] | None = None
        self._warn = warn
        self._unsaid: deque[str] = deque()
        self._thread: ThreadPoolExecutor | None = None
        self._lock = threading.RLock()
        _stores.add(self)
        _watch_forks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def exists(self) -> bool:
        """Return whether the store has a database."""
        with self._guard():
            return exists(self.database)

    def get(self, key: str) -> CacheEntry | None:
        """Return the entry of a key."""
        return self.get_many((key,)).get(key)

    def put(self, entry: CacheEntry) -> None:
        """Store an entry, replacing the one of its key."""
        self.put_many((entry,))

    def get_many(self, keys: Sequence[str], *, run: str | None = None) -> dict[str, CacheEntry]:
        """Return the entries of those keys that have one; with ``run`` only those that this run stored."""
        found: dict[str, tuple[str | None, str]] = self._read(
            lambda cache: {key: cache.get(key, tag=True) for key in keys}, {}
        )
        return {key: _entry(key, text) for key, (text, tag) in found.items() if text is not None and run in (None, tag)}

    def put_many(self, entries: Iterable[CacheEntry], *, run: str = "") -> None:
        """Store entries, all or none."""
        self._change(_put(entries, run)).result()
        self._tell()

    async def aput_many(self, entries: Sequence[CacheEntry], *, run: str = "") -> None:
        """Store entries without blocking the loop; the write is completed even if this is cancelled."""
        await asyncio.shield(asyncio.wrap_future(self._change(_put(entries, run))))
        self._tell()

    def count(self) -> int:
        """Return the number of entries."""
        return self._read(len, 0)

    def __iter__(self) -> Iterator[CacheEntry]:
        """Iterate over all entries in the order of their keys."""
        keys: Iterator[str] = iter(self._read(sorted, []))
        while page := tuple(islice(keys, _PAGE)):
            yield from self.get_many(page).values()

    def prune(self, older_than: datetime) -> int:
        """Delete the entries made before a time; return how many."""
        return self._delete([entry.key for entry in self if entry.made_at < older_than])

    def clear(self) -> int:
        """Delete all entries, and the files that were moved aside; return how many entries."""
        count = self._delete(self._read(sorted, []))
        with self._guard():
            for file in self.aside():
                shutil.rmtree(file) if file.is_dir() else file.unlink()
        return count

    def aside(self) -> list[Path]:
        """Return the files that were moved aside because they were damaged or not ours."""
        return sorted(self.folder.glob(f"{DATABASE}{files.ASIDE}*"))

    def damage(self) -> str | None:
        """Return what is wrong with the database as a whole, ``None`` if nothing is; it stays as it is."""
        with self._guard():
            return damage(self.database, thorough=True)

    def mend(self) -> None:
        """Do now what reading and writing do by themselves: move a damaged database aside, and make a new one."""
        self._submit(lambda: self._open(is_suspect=True)).result()
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
        with self._guard():
            if not exists(self.database):
                return []
            if problem := damage(self.database, thorough=True):
                to_do = "`ragmetrics cache verify --remove` moves it aside, as the next run does"
                raise CacheUnavailableError(f"{self.database}: {problem}; {to_do}")
            with closing(files.read_only(self.database)) as connection:
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                rows = connection.execute(f"{_ROWS.replace(' key', ' rowid, key', 1)} ORDER BY key")
                return [
                    Fault(rowid=rowid, key=str(row[0]), problem=problem)
                    for rowid, *row, _ in rows
                    if (problem := _fault(*row)) is not None
                ]

    def remove(self, faults: Iterable[Fault]) -> None:
        """Delete the rows that :meth:`verify` returned."""
        with self._guard(), closing(sqlite3.connect(self.database, timeout=TIMEOUT)) as connection, connection:
            connection.executemany("DELETE FROM Cache WHERE rowid = ?", [(fault.rowid,) for fault in faults])

    def close(self) -> None:
        """Close the file and the thread; the next use opens them again."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                # At the exit of the interpreter the thread has ended, and its connection with it.
                with suppress(RuntimeError):
                    thread.submit(self._close).result()
                thread.shutdown()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Convert errors of the system and of SQLite to one that names the folder."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            length, reason = len(os.fsencode(self.folder)), str(error)
            if length > _LONGEST:
                reason = f"the path has {length} bytes, and SQLite opens no longer one than {_LONGEST}"
                reason += ": name a shorter one"
            raise CacheUnavailableError(f"{self.folder}: the cache cannot be used: {reason}") from error

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="ragmetrics-store")
            return self._thread.submit(self._guard()(work))

    def _read(self, work: Callable[[diskcache.Cache], T], nothing: T) -> T:
        """Return what is read of the cache; ``nothing`` where there is no database, which reading does not create."""
        found = self._submit(
            lambda: self._mended(work) if self._cache is not None or exists(self.database) else nothing
        ).result()
        self._tell()
        return found

    def _delete(self, keys: Sequence[str]) -> int:
        count = self._change(lambda cache: sum(bool(cache.delete(key)) for key in keys)).result()
        self._tell()
        return count

    def _change(self, work: Callable[[diskcache.Cache], T]) -> Future[T]:
        """Have the thread change the cache, all or none."""

        def change(cache: diskcache.Cache) -> T:
            import diskcache

            try:
                with cache.transact():
                    return work(cache)
            except diskcache.Timeout as error:
                msg = f"{self.folder}: another process has locked the database for {TIMEOUT} s"
                raise CacheUnavailableError(msg) from error

        return self._submit(lambda: self._mended(change))

    def _mended(self, work: Callable[[diskcache.Cache], T]) -> T:
        """Return the result of work on the cache; what is found damaged is mended first."""
        try:
            return work(self._open())
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
            raise CacheError(f"a row of the cache is not text: {error}; {_DROPS}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error) or not is_own(self.database):
                raise
        return work(self._open(is_suspect=True))

    def _open(self, *, is_suspect: bool = False) -> Any:
        """Return the cache, open; one that was deleted in use, or is damaged where it ``is_suspect``, is mended."""
        # SQLite goes on in a deleted file, where no other process and no later run finds anything.
        if self._cache is not None and not is_suspect and self._opened_file == _identity(self.database):
            return self._cache
        before, lost, self._cache = self._opened_file, self._cache, None
        is_deleted, writes, mended = lost is not None and not self.database.exists(), is_own(self.database), ""
        try:
            if writes:
                files.prepare(self.folder)
                self._cache, mended = _opened(self.folder, is_suspect=is_suspect)
            else:
                files.refuse_foreign(self.folder)
                self._cache = _ReadOnly(self.database)
            self._opened_file = _identity(self.database)
            if writes and lost is not None and before != self._opened_file:
                kept = _take_over(self._cache, lost._sql)  # noqa: SLF001 - the file has no name any more
                if is_deleted:
                    mended = f"{self.database} was deleted while in use; it is made again, with its {kept} answers"
        finally:
            if lost is not None:
                lost.close()
        if mended:
            self._unsaid.append(mended)
        return self._cache

    def _close(self) -> None:
        cache, self._cache, self._opened_file = self._cache, None, None
        if cache is not None:
            cache.close()

    def _tell(self) -> None:
        while self._unsaid:
            # Where warnings are errors, no test must fail and no answer be lost for it.
            with suppress(Warning):
                self._warn(self._unsaid.popleft())


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
    # Its hook runs after this one then, and the thread is not kept waiting.
    import filelock  # noqa: F401

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_pause_all, after_in_parent=_resume_all, after_in_child=_resume_all)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _put(entries: Iterable[CacheEntry], run: str) -> Callable[[diskcache.Cache], None]:
    # ASCII only: SQLite cannot store a lone surrogate.
    rows = [(entry.key, json.dumps(entry.to_row(), allow_nan=False)) for entry in entries]

    def put(cache: diskcache.Cache) -> None:
        for key, text in rows:
            cache.set(key, text, tag=run)

    return put


def _entry(key: str, text: str) -> CacheEntry:
    """Return the entry in a row; raise :class:`CacheError` for a row that this package did not write."""
    try:
        entry = CacheEntry.from_row(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise CacheError(f"entry {key} of the cache cannot be read: {error}; {_DROPS}") from error
    if entry.key != key:
        raise CacheError(f"entry {key} of the cache is stored under another key; {_DROPS}")
    return entry


def _fault(key: object, raw: object, mode: object, filename: object, value: object) -> str | None:
    if problem := _problem(raw, mode, filename, key, value):
        return problem
    try:
        return _entry(str(key), str(value)).problem(strict=True)
    except CacheError as error:
        return str(error.__cause__ or "it is stored under another key")


def _problem(raw: object, mode: object, filename: object, *texts: object) -> str | None:
    if raw != 1 or mode != _RAW or filename is not None:
        return "it asks to be unpickled or read from a file"
    return None if all(isinstance(text, str) for text in texts) else "it is not text"


def _checked(raw: object, mode: object, filename: object, text: object) -> str:
    """Return the text of a row; raise :class:`CacheError` if it is unsafe to read."""
    if problem := _problem(raw, mode, filename, text):
        raise CacheError(f"a row of the cache was tampered with: {problem}; `ragmetrics cache verify` names it")
    return str(text)


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
            return _checked(raw, _RAW, None, key)

        def store(self, value: object, read: object, key: object = None) -> tuple[int, int, None, str]:  # noqa: ARG002 - diskcache's signature
            return 0, _RAW, None, _text(value)

        def fetch(self, mode: object, filename: object, value: object, read: object) -> str:  # noqa: ARG002 - diskcache's signature
            return _checked(1, mode, filename, value)

        def remove(self, file_path: object) -> None:
            """Delete no file: a tampered row may name any."""

    return TextDisk


class _ReadOnly:
    """What is read of a database that cannot be changed, which diskcache does when it opens one."""

    def __init__(self, database: Path) -> None:
        self._folder = database.parent
        self._connection = files.read_only(database)
        self._sql = self._connection.execute
        self.close = self._connection.close

    def get(self, key: str, *, tag: bool) -> tuple[str | None, str]:  # noqa: ARG002 - as diskcache's
        row = self._sql(f"{_ROWS} WHERE key = ? AND raw = 1", (key,)).fetchone()
        return (None, "") if row is None else (_checked(*row[1:5]), row[5])

    def transact(self) -> NoReturn:
        raise CacheUnavailableError(f"{self._folder}: the cache is read-only")

    def __iter__(self) -> Iterator[str]:
        for key, raw in self._sql("SELECT key, raw FROM Cache"):
            yield _checked(raw, _RAW, None, key)

    def __len__(self) -> int:
        return int(self._sql("SELECT COUNT(*) FROM Cache").fetchone()[0])


def _opened(folder: Path, *, is_suspect: bool) -> tuple[diskcache.Cache, str]:
    """Return the cache of a folder, and what was done to mend it, if anything; looks at all of it if it is suspect."""
    from filelock import FileLock

    database = folder / DATABASE
    # SQLite does not wait when two processes create the same database.
    with FileLock(folder / LOCKS / "open.lock", mode=PRIVATE_FILE, timeout=TIMEOUT):
        if not database.exists():
            files.remove_log(database)
            return _made(folder), ""
        is_usable = not database.is_file() or os.access(database, os.R_OK | os.W_OK)
        done = "" if is_usable else files.made_usable(database)
        problem = damage(database, thorough=is_suspect)
        if problem is None:
            try:
                return _made(folder), done
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                # diskcache trusts the settings that the database contains.
                problem = f"its settings are not ours: {error}"
        aside = files.set_aside(database)
        cache, kept = _made(folder), 0
        with suppress(sqlite3.Error), closing(files.read_only(aside)) as connection:
            kept = _take_over(cache, connection.execute)
        files.remove_log(aside, if_empty=True)
        return cache, f"{database}: {problem}; it is moved to {aside.name}, and a new one has {kept} answers of it"


def _take_over(cache: Any, execute: Callable[[str], Iterable[Any]]) -> int:
    """Add the sound rows of another database that are missing, as far as it can be read; return how many."""
    with suppress(sqlite3.Error, UnicodeDecodeError), cache.transact(retry=True):
        rows = (row for row in _readable(execute(_ROWS)) if _fault(*row[:5]) is None)
        return sum(bool(cache.add(row[0], row[4], tag=row[5])) for row in rows)
    return 0


def _readable(rows: Iterable[T]) -> Iterator[T]:
    with suppress(sqlite3.Error, UnicodeDecodeError):
        yield from rows


def _made(folder: Path) -> diskcache.Cache:
    """Return the cache of a folder, whose database is created if there is none."""
    import diskcache

    # SQLite creates -wal and -shm with the mode of the database.
    os.close(os.open(folder / DATABASE, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    files.restrict(folder / DATABASE, PRIVATE_FILE)
    cache = diskcache.Cache.__new__(diskcache.Cache)
    try:
        cache.__init__(str(folder), timeout=TIMEOUT, disk=text_disk(), **_SETTINGS)
    except BaseException:
        # diskcache leaves its connection open.
        cache.close()
        raise
    return cache
