"""The local store: every answer this machine has paid for, in one SQLite file.

SQLite is not safe on network file systems; a cassette is the way to share answers.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import WeakSet

from pytest_ragmetrics.cache.entry import CacheEntry, CacheError, CacheUnavailableError
from pytest_ragmetrics.files import PRIVATE_FILE, PRIVATE_FOLDER

if TYPE_CHECKING:
    import diskcache
    from typing_extensions import Self

#: The only mode a row may have: the value is in the row, as it is.
RAW = 1


def problem_of(*, raw: object, mode: object, filename: object, key: object, value: object) -> str | None:
    """Say what makes a row unsafe to read; ``None`` for a row as this package writes them.

    >>> problem_of(raw=1, mode=4, filename=None, key="k", value=b"...")
    'it asks to be unpickled or read from a file'
    """
    if raw != 1 or mode != RAW or filename is not None:
        return "it asks to be unpickled or read from a file"
    if not isinstance(key, str) or not isinstance(value, str):
        return "it is not text"
    return None


def checked(*, raw: object, mode: object, filename: object, key: object, value: object) -> tuple[str, str]:
    """Return the key and the value of a row that is safe to read; raise :class:`CacheError` for any other."""
    problem = problem_of(raw=raw, mode=mode, filename=filename, key=key, value=value)
    if problem is not None:
        msg = f"a row of the cache was tampered with: {problem}; `ragmetrics cache verify` names it"
        raise CacheError(msg)
    return _text(key), _text(value)


@functools.cache
def text_disk() -> type[diskcache.Disk]:
    """Return the class to open a cache with."""
    import diskcache

    class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no annotations
        """Stores texts under texts, in the database, and touches nothing else."""

        def put(self, key: object) -> tuple[str, bool]:
            return _text(key), True

        def get(self, key: object, raw: object) -> str:
            return checked(raw=raw, mode=RAW, filename=None, key=key, value="")[0]

        def store(self, value: object, read: object, key: object = None) -> tuple[int, int, None, str]:  # noqa: ARG002 - as diskcache calls it
            return 0, RAW, None, _text(value)

        def fetch(self, mode: object, filename: object, value: object, read: object) -> str:  # noqa: ARG002 - as diskcache calls it
            return checked(raw=1, mode=mode, filename=filename, key="", value=value)[1]

        def remove(self, file_path: object) -> None:
            """Delete no file, whatever a row names."""

    return TextDisk


@functools.cache
def text_cache() -> type[diskcache.Cache]:
    """Return the class of a cache on :func:`text_disk` that leaves no connection open when it cannot be opened."""
    import diskcache

    class TextCache(diskcache.Cache):  # type: ignore[misc]  # diskcache has no annotations
        """Gives its connection back before it raises."""

        def __init__(self, directory: str, **settings: object) -> None:
            try:
                super().__init__(directory, disk=text_disk(), **settings)
            except BaseException:
                self.close()
                raise

    return TextCache


def _text(value: object) -> str:
    if not isinstance(value, str):
        msg = f"the cache holds text, not {type(value).__name__}"
        raise TypeError(msg)
    return value


DATABASE = "cache.db"
LOCKS = "locks"

_TAG = "CACHEDIR.TAG"
_OWN_FILES = {
    ".gitignore": "# Made by pytest-ragmetrics. Commit a cassette (--rag-cassette=FILE) instead.\n*\n",
    _TAG: "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of pytest-ragmetrics; https://bford.info/cachedir/\n",
}


def prepare(folder: Path) -> None:
    """Make the folder and the database file in it, readable by their owner alone.

    A folder that holds other things already is used, but neither closed to others nor hidden from git.
    Raises ``OSError``, and :class:`CacheUnavailableError` for a folder that somebody else could have prepared.
    """
    made_here = _make(folder)
    refuse_strangers(folder)
    if made_here or (folder / _TAG).exists() or not any(folder.iterdir()):
        _own(folder)
    (folder / LOCKS).mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    # SQLite gives the files beside a database the mode of the database.
    os.close(os.open(folder / DATABASE, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    _restrict(folder / DATABASE, PRIVATE_FILE)


def _make(folder: Path) -> bool:
    """Make the folder; say whether it was this call that did, of all processes that start at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=PRIVATE_FOLDER)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    return True


def _own(folder: Path) -> None:
    _restrict(folder, PRIVATE_FOLDER)
    for name, text in _OWN_FILES.items():
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")


def _restrict(path: Path, mode: int) -> None:
    """Take away what others may do; what the owner may not do stays so."""
    now = stat.S_IMODE(path.stat().st_mode)
    if now & ~mode:
        # On a shared volume a file may be writable by us and belong to another account.
        with contextlib.suppress(PermissionError):
            path.chmod(now & mode)


def is_read_only(folder: Path) -> bool:
    """Say whether there is a database in a folder to which nothing can be added."""
    database = folder / DATABASE
    return database.exists() and not (os.access(folder, os.W_OK) and os.access(database, os.W_OK))


def refuse_strangers(folder: Path) -> None:
    """Raise :class:`CacheUnavailableError` for a folder of another account where everybody could have put one."""
    if not hasattr(os, "geteuid") or folder.stat().st_uid == os.geteuid():
        return
    if any(place.stat().st_mode & stat.S_IWOTH for place in (folder, folder.resolve().parent)):
        msg = f"{folder}: it belongs to another account, in a place where everybody can write"
        raise CacheUnavailableError(msg)


# How long a statement waits for another process's transaction.
_PATIENCE = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A row that cannot be used, and why."""

    rowid: int
    key: str
    problem: str


class StoreReader:
    """A connection for all threads, one at a time; diskcache has one a thread, which only that thread can close.

    All methods raise ``sqlite3.Error``, and :class:`CacheError` for a row that was tampered with.
    """

    def __init__(self, database: Path) -> None:
        """Connect to a database, which must exist."""
        self._connection = _connected(database)

    def read(self, keys: Iterable[str], *, run: str | None = None) -> dict[str, CacheEntry]:
        """Return the entries of those keys that have one; with ``run`` only those that this run has put."""
        query = "SELECT mode, filename, value, tag FROM Cache WHERE key = ? AND raw = 1"
        rows = ((key, self._connection.execute(query, (key,)).fetchone()) for key in keys)
        return {key: entry_of(key, *row[:3]) for key, row in rows if row is not None and run in (None, row[3])}

    def keys(self) -> list[str]:
        """Return all keys, sorted."""
        rows = self._connection.execute("SELECT key, raw FROM Cache ORDER BY key")
        return [checked(raw=raw, mode=RAW, filename=None, key=key, value="")[0] for key, raw in rows]

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._connection.execute("SELECT COUNT(*) FROM Cache").fetchone()[0])

    def close(self) -> None:
        """Give back the connection."""
        self._connection.close()


def _connected(database: Path) -> sqlite3.Connection:
    """Connect to a database to read it, in whatever thread."""
    # SQLite makes files beside a database to read it. Where it cannot nobody else writes either, unless they are there.
    beside = database.with_name(f"{database.name}-wal")
    immutable = "" if os.access(database.parent, os.W_OK) or beside.exists() else "&immutable=1"
    uri = f"{database.as_uri()}?mode=ro{immutable}"
    return sqlite3.connect(uri, uri=True, timeout=_PATIENCE, check_same_thread=False)


def entry_of(key: str, mode: object, filename: object, value: object) -> CacheEntry:
    """Return the entry in a row; raise :class:`CacheError` if it is not one as this package writes them."""
    _, text = checked(raw=1, mode=mode, filename=filename, key=key, value=value)
    try:
        entry = CacheEntry.from_row(json.loads(text))
    except (ValueError, RecursionError) as error:
        msg = f"entry {key} of the cache cannot be read: {error}; `ragmetrics cache verify --remove` drops it"
        raise CacheError(msg) from error
    if entry.key != key:
        msg = f"entry {key} of the cache stands under another's key; `ragmetrics cache verify --remove` drops it"
        raise CacheError(msg)
    return entry


def find_faults(database: Path) -> list[Fault]:
    """Check a database and every row of it; raise ``sqlite3.DatabaseError`` if it is broken as a whole."""
    with closing(_connected(database)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        answers = [answer for (answer,) in connection.execute("PRAGMA integrity_check")]
        if answers != ["ok"]:
            raise sqlite3.DatabaseError("; ".join(answers[:3]))
        rows = connection.execute("SELECT rowid, key, raw, mode, filename, value FROM Cache ORDER BY key")
        return [fault for row in rows if (fault := _fault(row)) is not None]


def remove_faults(database: Path, faults: Iterable[Fault]) -> None:
    """Delete the rows of faults."""
    with closing(sqlite3.connect(database, timeout=_PATIENCE)) as connection, connection:
        connection.executemany("DELETE FROM Cache WHERE rowid = ?", [(fault.rowid,) for fault in faults])


def _fault(row: tuple[int, object, object, object, object, object]) -> Fault | None:
    rowid, key, raw, mode, filename, value = row
    problem = problem_of(raw=raw, mode=mode, filename=filename, key=key, value=value)
    if problem is None:
        try:
            problem = entry_of(str(key), mode, filename, value).problem()
        except CacheError as error:
            problem = str(error.__cause__ or "it stands under another's key")
    return None if problem is None else Fault(rowid=rowid, key=str(key), problem=problem)


T = TypeVar("T")

# How long several processes that start at once wait for one another, and a statement for another's transaction.
_STORE_PATIENCE = 60
# How many entries are in memory at once when all are gone through.
_PAGE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What a store holds: entries by task and model, the size on disk, the times and the tokens of the answers."""

    entries: int
    size: int
    oldest: datetime | None
    newest: datetime | None
    prompt_tokens: int
    completion_tokens: int
    kinds: dict[tuple[str, str], int]


class _Put(NamedTuple):
    key: str
    text: str
    run: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Waiting:
    """Rows that wait to be written, all or none."""

    puts: Sequence[_Put]
    written: Future[None] = field(default_factory=Future)


class Store:
    """Entries in a folder of their own, for any thread of any number of processes.

    Nothing is opened or made before the first use; a folder where nothing can be made is read all the same. All methods
    raise :class:`CacheUnavailableError` where the folder or the database cannot be used, and :class:`CacheError` for a
    row that was tampered with. Close it after use.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder; it need not exist."""
        self.folder = folder.absolute()
        self.database = self.folder / DATABASE
        self.locks = self.folder / LOCKS
        # What diskcache opens can only be closed by the thread that opened it: so writing has a thread of its own.
        self._thread: ThreadPoolExecutor | None = None
        self._cache: diskcache.Cache | None = None
        self._reader: StoreReader | None = None
        self._turn = threading.RLock()
        self._waiting: deque[_Waiting] = deque()
        _stores.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def exists(self) -> bool:
        """Say whether anything was ever stored here."""
        return self._guard(self.database.exists)

    def get(self, key: str) -> CacheEntry | None:
        """Return the entry of a key."""
        return self.get_many((key,)).get(key)

    def put(self, entry: CacheEntry) -> None:
        """Store an entry in place of the one of its key."""
        self.put_many((entry,))

    def get_many(self, keys: Sequence[str], *, run: str | None = None) -> dict[str, CacheEntry]:
        """Return the entries of those keys that have one; with ``run`` only those that this run has put."""
        with self._turn:
            return self._guard(lambda: self._reading().read(keys, run=run))

    def put_many(self, entries: Iterable[CacheEntry], *, run: str = "") -> None:
        """Store entries, all or none."""
        puts = tuple(_put(entry, run) for entry in entries)
        self._submit(lambda: self._write(puts)).result()

    async def aput_many(self, entries: Sequence[CacheEntry], *, run: str = "") -> None:
        """Do as :meth:`put_many`, without keeping the loop; once begun it is carried out, also when cancelled."""
        waiting = _Waiting(puts=[_put(entry, run) for entry in entries])
        self._waiting.append(waiting)
        self._submit(self._write_waiting)
        await asyncio.shield(asyncio.wrap_future(waiting.written))

    def count(self) -> int:
        """Return how many entries there are."""
        with self._turn:
            return self._guard(lambda: self._reading().count())

    def __iter__(self) -> Iterator[CacheEntry]:
        """Go through all entries in the order of their keys."""
        keys = iter(self._keys())
        while page := tuple(islice(keys, _PAGE)):
            yield from self.get_many(page).values()

    def prune(self, older_than: datetime) -> int:
        """Drop the entries made before a time; return how many."""
        return self._drop([entry.key for entry in self if entry.made_at < older_than])

    def clear(self) -> int:
        """Drop everything; return how many entries there were."""
        return self._drop(self._keys())

    def contents(self) -> Contents:
        """Return what the store holds."""
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
        """Check the database and every row of it; raises if the database as a whole is broken."""
        return self._guard(lambda: find_faults(self.database))

    def remove(self, faults: Iterable[Fault]) -> None:
        """Drop the rows that :meth:`verify` found."""
        self._guard(lambda: remove_faults(self.database, faults))

    def close(self) -> None:
        """Give back the threads and connections; the store opens again when it is used again."""
        with self._turn:
            reader, self._reader = self._reader, None
            if reader is not None:
                reader.close()
            thread, self._thread = self._thread, None
            if thread is not None:
                thread.submit(self._shut).result()
                thread.shutdown()

    def pause(self) -> None:
        """Close, and let nobody open until :meth:`resume` is called by the same thread."""
        self._turn.acquire()
        self.close()

    def resume(self) -> None:
        """Undo :meth:`pause`."""
        self._turn.release()

    def _keys(self) -> list[str]:
        with self._turn:
            return self._guard(lambda: self._reading().keys())

    def _shut(self) -> None:
        cache, self._cache = self._cache, None
        if cache is not None:
            cache.close()

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        with self._turn:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="ragmetrics-store")
            return self._thread.submit(self._guard, work)

    def _reading(self) -> StoreReader:
        if self._reader is None:
            if is_read_only(self.folder):
                refuse_strangers(self.folder)
            else:
                self._submit(self._opened).result()
            self._reader = StoreReader(self.database)
        return self._reader

    def _guard(self, work: Callable[[], T]) -> T:
        """Do the work, and name the folder in whatever the system says against it."""
        try:
            return work()
        except (OSError, sqlite3.Error) as error:
            msg = f"{self.folder}: the cache cannot be used: {error}"
            raise CacheUnavailableError(msg) from error

    def _opened(self) -> diskcache.Cache:
        if self._cache is None:
            prepare(self.folder)
            self._cache = _open(self.folder)
        return self._cache

    @contextmanager
    def _transaction(self) -> Iterator[diskcache.Cache]:
        import diskcache

        cache = self._opened()
        try:
            with cache.transact():
                yield cache
        except diskcache.Timeout as error:
            msg = f"{self.folder}: another process does not let go of the database"
            raise CacheUnavailableError(msg) from error

    def _write(self, puts: Iterable[_Put]) -> None:
        with self._transaction() as cache:
            for put in puts:
                cache.set(put.key, put.text, tag=put.run)

    def _write_waiting(self) -> None:
        """Write all that waits in one transaction, which takes little longer than for one of them."""
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not batch:
            return
        try:
            self._guard(lambda: self._write(put for waiting in batch for put in waiting.puts))
        except Exception as error:  # noqa: BLE001 - it is raised where the writing is awaited
            for waiting in batch:
                waiting.written.set_exception(error)
        else:
            for waiting in batch:
                waiting.written.set_result(None)

    def _drop(self, keys: Iterable[str]) -> int:
        return self._submit(lambda: self._delete(tuple(keys))).result()

    def _delete(self, keys: Sequence[str]) -> int:
        with self._transaction() as cache:
            return sum(cache.delete(key) for key in keys)


_stores: WeakSet[Store] = WeakSet()
_paused: list[Store] = []
_forking = threading.Lock()


def _pause_all() -> None:
    _forking.acquire()
    for store in tuple(_stores):
        try:
            store.pause()
        finally:
            _paused.append(store)


def _resume_all() -> None:
    while _paused:
        _paused.pop().resume()
    _forking.release()


if hasattr(os, "register_at_fork"):
    # What SQLite remembers of locks is wrong in a forked child: both sides would overwrite what the other writes.
    os.register_at_fork(before=_pause_all, after_in_parent=_resume_all, after_in_child=_resume_all)


def _open(folder: Path) -> diskcache.Cache:
    from filelock import FileLock

    # Two that create the same database at once get in each other's way.
    with FileLock(folder / LOCKS / "open.lock", mode=PRIVATE_FILE, timeout=_STORE_PATIENCE):
        try:
            return text_cache()(
                str(folder),
                timeout=_STORE_PATIENCE,
                eviction_policy="none",
                cull_limit=0,
                size_limit=sys.maxsize,
                statistics=0,
                tag_index=0,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # diskcache takes the settings in the database at their word.
            msg = f"{folder}: the settings in the database are not ours: {error}"
            raise CacheUnavailableError(msg) from error


def _put(entry: CacheEntry, run: str) -> _Put:
    # Escaped throughout: a text with half a surrogate pair in it could not be stored.
    return _Put(key=entry.key, text=json.dumps(entry.to_row(), allow_nan=False), run=run)
