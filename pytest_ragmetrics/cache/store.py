"""The local store: every reply this machine has paid for, in one SQLite file of diskcache's layout.

``CacheTiers`` reads and writes entries here, ``ragmetrics cache`` maintains them. Writing goes through diskcache, whose
``Disk`` is replaced by one that refuses pickles and files. Reading has one connection for all threads: diskcache opens
one a thread, which no other thread can close; on a thread of its own it takes 4 to 5 times as long a key
(``tests/benchmarks/store.py``).
SQLite is not safe on network file systems; cassettes are the way to share replies.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sqlite3
import stat
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from pytest_ragmetrics.cache.entry import CacheEntry, CacheError, CacheUnavailableError
from pytest_ragmetrics.files import PRIVATE_FILE, PRIVATE_FOLDER

if TYPE_CHECKING:
    import diskcache
    from typing_extensions import Self

T = TypeVar("T")

DATABASE = "cache.db"
LOCKS = "locks"

# The only mode that is read: the value is in the row, as text.
_RAW = 1
# Seconds that processes which start at once wait for one another, and a statement for another process's transaction.
_TIMEOUT = 60
# How many entries an iteration keeps in memory.
_PAGE = 200


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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Writes:
    """Key, text and run of rows that are written together, all or none."""

    rows: Sequence[tuple[str, str, str]]
    written: Future[None] = field(default_factory=Future)


class Store:
    """Entries in a folder, for any thread of any number of processes.

    The folder need not exist, and only writing creates it; a read-only folder is read. All methods raise
    :class:`CacheUnavailableError` if the folder or the database cannot be used, and :class:`CacheError` for a row that
    was tampered with. Close it after use.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.database = self.folder / DATABASE
        self.locks = self.folder / LOCKS
        # Only the thread that opened a diskcache connection can close it: one thread of our own writes.
        self._writer: ThreadPoolExecutor | None = None
        self._cache: diskcache.Cache | None = None
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        self._queue: deque[_Writes] = deque()
        _stores.add(self)

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

    async def aput_many(self, entries: Sequence[CacheEntry], *, run: str = "") -> None:
        """Store entries without blocking the loop; a write that has begun is completed even if cancelled."""
        batch = _Writes(rows=[_row(entry, run) for entry in entries])
        self._queue.append(batch)
        self._submit(self._write_queue)
        await asyncio.shield(asyncio.wrap_future(batch.written))

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
        """Delete all entries; return how many."""
        return self._delete(self._keys())

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
            size=sum(file.stat().st_size for file in self.folder.glob(f"{DATABASE}*")),
            oldest=min(times, default=None),
            newest=max(times, default=None),
            prompt_tokens=tokens["prompt_tokens"],
            completion_tokens=tokens["completion_tokens"],
            kinds=dict(sorted(kinds.items())),
        )

    def verify(self) -> list[Fault]:
        """Check the database and every row; raise :class:`CacheUnavailableError` if SQLite finds it corrupt."""

        def check() -> list[Fault]:
            if not self.database.exists():
                return []
            with closing(_connect(self.database)) as connection:
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                answers = [answer for (answer,) in connection.execute("PRAGMA integrity_check")]
                if answers != ["ok"]:
                    raise sqlite3.DatabaseError("; ".join(answers[:3]))
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
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.submit(self._close_cache).result()
                writer.shutdown()

    def _guard(self, work: Callable[[], T]) -> T:
        """Convert errors of the system and of SQLite to one that names the folder."""
        try:
            return work()
        except (OSError, sqlite3.Error) as error:
            raise CacheUnavailableError(f"{self.folder}: the cache cannot be used: {error}") from error

    def _read(self, query: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Return the result of a query; ``nothing`` where there is no database, which reading does not create."""

        def read() -> T:
            if self._connection is None and not self.database.exists():
                return nothing
            return query(self._connected())

        with self._lock:
            return self._guard(read)

    def _keys(self) -> list[str]:
        def read(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute("SELECT key, raw FROM Cache ORDER BY key")
            return [_checked(raw, _RAW, None, "", key) for key, raw in rows]

        return self._read(read, [])

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            if os.access(self.folder, os.W_OK) and os.access(self.database, os.W_OK):
                self._submit(self._opened).result()
            else:
                _refuse_foreign(self.folder)
            self._connection = _connect(self.database)
        return self._connection

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._writer is None:
                self._writer = ThreadPoolExecutor(1, thread_name_prefix="ragmetrics-store")
            return self._writer.submit(self._guard, work)

    def _opened(self) -> diskcache.Cache:
        if self._cache is None:
            _prepare(self.folder)
            self._cache = _open(self.folder)
        return self._cache

    def _close_cache(self) -> None:
        cache, self._cache = self._cache, None
        if cache is not None:
            cache.close()

    @contextmanager
    def _transaction(self) -> Iterator[diskcache.Cache]:
        import diskcache

        cache = self._opened()
        try:
            with cache.transact():
                yield cache
        except diskcache.Timeout as error:
            msg = f"{self.folder}: another process has locked the database for {_TIMEOUT} s"
            raise CacheUnavailableError(msg) from error

    def _write(self, rows: Iterable[tuple[str, str, str]]) -> None:
        with self._transaction() as cache:
            for key, text, run in rows:
                cache.set(key, text, tag=run)

    def _write_queue(self) -> None:
        # One transaction for all waiting batches takes little longer than one batch.
        batches = [self._queue.popleft() for _ in range(len(self._queue))]
        if not batches:
            return
        try:
            self._guard(lambda: self._write(row for batch in batches for row in batch.rows))
        except Exception as error:  # noqa: BLE001 - raised by every aput_many() that waits for it
            for batch in batches:
                batch.written.set_exception(error)
        else:
            for batch in batches:
                batch.written.set_result(None)

    def _delete(self, keys: Sequence[str]) -> int:
        def delete() -> int:
            with self._transaction() as cache:
                return sum(cache.delete(key) for key in keys)

        return self._submit(delete).result()


_stores: WeakSet[Store] = WeakSet()
_paused: list[Store] = []
_forking = threading.Lock()


def _pause_all() -> None:
    """Close all stores, and keep other threads from opening them until the fork is made."""
    _forking.acquire()
    for store in tuple(_stores):
        store._lock.acquire()  # noqa: SLF001 - of this module
        _paused.append(store)
        store.close()


def _resume_all() -> None:
    while _paused:
        _paused.pop()._lock.release()  # noqa: SLF001 - of this module
    _forking.release()


if hasattr(os, "register_at_fork"):
    # A forked child inherits SQLite's idea of its file locks, which is wrong there: both would overwrite each other.
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
        return _entry(str(key), mode, filename, value).problem()
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


def _open(folder: Path) -> diskcache.Cache:
    import diskcache
    from filelock import FileLock

    class TextCache(diskcache.Cache):  # type: ignore[misc]  # diskcache has no annotations
        def __init__(self, directory: str, **settings: object) -> None:
            try:
                super().__init__(directory, disk=text_disk(), **settings)
            except BaseException:
                # diskcache leaves its connection open.
                self.close()
                raise

    # SQLite does not wait when two processes create the same database.
    with FileLock(folder / LOCKS / "open.lock", mode=PRIVATE_FILE, timeout=_TIMEOUT):
        try:
            return TextCache(
                str(folder),
                timeout=_TIMEOUT,
                eviction_policy="none",
                cull_limit=0,
                size_limit=sys.maxsize,
                statistics=0,
                tag_index=0,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # diskcache trusts the settings that the database contains.
            raise CacheUnavailableError(f"{folder}: the settings in the database are not ours: {error}") from error


def _connect(database: Path) -> sqlite3.Connection:
    # In a read-only folder SQLite cannot create -wal and -shm: open immutable, unless another account writes there.
    wal = database.with_name(f"{database.name}-wal")
    immutable = "" if os.access(database.parent, os.W_OK) or wal.exists() else "&immutable=1"
    uri = f"{database.as_uri()}?mode=ro{immutable}"
    return sqlite3.connect(uri, uri=True, timeout=_TIMEOUT, check_same_thread=False)


_TAG = "CACHEDIR.TAG"
_OWN_FILES = {
    ".gitignore": "# Made by pytest-ragmetrics. Commit a cassette (--rag-cassette=FILE) instead.\n*\n",
    _TAG: "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of pytest-ragmetrics; https://bford.info/cachedir/\n",
}


def _prepare(folder: Path) -> None:
    """Create the folder and the database file, readable by their owner alone."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    is_new = not folder.exists()
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    _refuse_foreign(folder)
    # An existing folder with other files in it keeps its mode, and git does not ignore it.
    if is_new or (folder / _TAG).exists() or not any(folder.iterdir()):
        _restrict(folder, PRIVATE_FOLDER)
        for name, text in _OWN_FILES.items():
            if not (folder / name).exists():
                (folder / name).write_text(text, encoding="utf-8")
    (folder / LOCKS).mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    # SQLite creates -wal and -shm with the mode of the database.
    os.close(os.open(folder / DATABASE, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    _restrict(folder / DATABASE, PRIVATE_FILE)


def _restrict(path: Path, mode: int) -> None:
    now = stat.S_IMODE(path.stat().st_mode)
    if now & ~mode:
        # On a shared volume a file may be writable for us and belong to another account.
        with suppress(PermissionError):
            path.chmod(now & mode)


def _refuse_foreign(folder: Path) -> None:
    """Raise :class:`CacheUnavailableError` for another account's folder in a place where everybody can create one."""
    if not hasattr(os, "geteuid") or folder.stat().st_uid == os.geteuid():
        return
    if any(place.stat().st_mode & stat.S_IWOTH for place in (folder, folder.resolve().parent)):
        raise CacheUnavailableError(f"{folder}: it belongs to another account, in a place where everybody can write")
