"""Reading the rows of a store's database past diskcache: from any thread, and without believing any of them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pytest_ragmetrics.cache.disk import RAW, checked, problem_of
from pytest_ragmetrics.cache.entry import CacheError, Entry

# How long a statement waits for another process's transaction.
_PATIENCE = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A row that cannot be used, and why."""

    rowid: int
    key: str
    problem: str


class Reader:
    """A connection for all threads, one at a time; diskcache has one a thread, which only that thread can close.

    All methods raise ``sqlite3.Error``, and :class:`CacheError` for a row that was tampered with.
    """

    def __init__(self, database: Path) -> None:
        """Connect to a database, which must exist."""
        self._connection = _connected(database)

    def read(self, keys: Iterable[str], *, run: str | None = None) -> dict[str, Entry]:
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


def entry_of(key: str, mode: object, filename: object, value: object) -> Entry:
    """Return the entry in a row; raise :class:`CacheError` if it is not one as this package writes them."""
    _, text = checked(raw=1, mode=mode, filename=filename, key=key, value=value)
    try:
        entry = Entry.from_row(json.loads(text))
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
