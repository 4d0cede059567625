"""The local store: every answer this machine has paid for, in one SQLite file.

SQLite is not safe on network file systems; a cassette is the way to share answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import WeakSet

from pytest_ragmetrics.cache.disk import text_cache
from pytest_ragmetrics.cache.entry import CacheUnavailableError, Entry
from pytest_ragmetrics.cache.folder import DATABASE, LOCKS, is_read_only, prepare, refuse_strangers
from pytest_ragmetrics.cache.rows import Fault, Reader, find_faults, remove_faults
from pytest_ragmetrics.files.modes import PRIVATE_FILE

if TYPE_CHECKING:
    import diskcache
    from typing_extensions import Self

T = TypeVar("T")

# How long several processes that start at once wait for one another, and a statement for another's transaction.
_PATIENCE = 60
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
        self._reader: Reader | None = None
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

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key."""
        return self.get_many((key,)).get(key)

    def put(self, entry: Entry) -> None:
        """Store an entry in place of the one of its key."""
        self.put_many((entry,))

    def get_many(self, keys: Sequence[str], *, run: str | None = None) -> dict[str, Entry]:
        """Return the entries of those keys that have one; with ``run`` only those that this run has put."""
        with self._turn:
            return self._guard(lambda: self._reading().read(keys, run=run))

    def put_many(self, entries: Iterable[Entry], *, run: str = "") -> None:
        """Store entries, all or none."""
        puts = tuple(_put(entry, run) for entry in entries)
        self._submit(lambda: self._write(puts)).result()

    async def aput_many(self, entries: Sequence[Entry], *, run: str = "") -> None:
        """Do as :meth:`put_many`, without keeping the loop; once begun it is carried out, also when cancelled."""
        waiting = _Waiting(puts=[_put(entry, run) for entry in entries])
        self._waiting.append(waiting)
        self._submit(self._write_waiting)
        await asyncio.shield(asyncio.wrap_future(waiting.written))

    def count(self) -> int:
        """Return how many entries there are."""
        with self._turn:
            return self._guard(lambda: self._reading().count())

    def __iter__(self) -> Iterator[Entry]:
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

    def _reading(self) -> Reader:
        if self._reader is None:
            if is_read_only(self.folder):
                refuse_strangers(self.folder)
            else:
                self._submit(self._opened).result()
            self._reader = Reader(self.database)
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
    with FileLock(folder / LOCKS / "open.lock", mode=PRIVATE_FILE, timeout=_PATIENCE):
        try:
            return text_cache()(
                str(folder),
                timeout=_PATIENCE,
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


def _put(entry: Entry, run: str) -> _Put:
    # Escaped throughout: a text with half a surrogate pair in it could not be stored.
    return _Put(key=entry.key, text=json.dumps(entry.to_row(), allow_nan=False), run=run)
