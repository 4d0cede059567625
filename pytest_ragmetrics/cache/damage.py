"""What may be wrong with the file of a store as a whole, and moving such a file aside.

A row that cannot be used is no damage: it is refused where it is read, and ``Store.verify`` finds it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

from pytest_ragmetrics.core.files import PRIVATE_FILE
from pytest_ragmetrics.text.unicode import printable

#: What the name of a file that was moved aside ends with, before its number.
ASIDE = ".broken"
#: What each row of a store has.
COLUMNS = ("key", "raw", "mode", "filename", "value", "tag")
# What SQLite keeps beside a database.
_WAL, _SHM = "-wal", "-shm"
# Those of diskcache; it makes them one after the other, and may have been killed in between.
_TABLES = {"Cache", "Settings"}


def is_damage(error: Exception) -> bool:
    """Tell whether an error of SQLite is about the content of the file, and not about a lock, the disk or a query.

    >>> is_damage(sqlite3.DatabaseError("malformed")), is_damage(sqlite3.OperationalError("database is locked"))
    (True, False)
    """
    # Python has a subclass for every other kind; SQLite's message may repeat a name that is no text.
    return type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeDecodeError)


def damage(database: Path, connect: Callable[[Path], sqlite3.Connection], *, thorough: bool = False) -> str | None:
    """Return what keeps a file from being the database of a store, ``None`` if nothing does.

    Everything in it is looked at only if ``thorough``. Raises ``OSError`` and ``sqlite3.Error`` for one that cannot be
    looked at now.
    """
    if not database.exists():
        return None
    if not database.is_file():
        return "it is a folder" if database.is_dir() else "it is no file"
    if not database.stat().st_size:
        return "it is empty"
    if not os.access(database, os.R_OK):
        return f"its permissions are {stat.S_IMODE(database.stat().st_mode):03o}"
    # SQLite fills up a last page that is cut. While there is a log, the file may be shorter; connecting makes one.
    size = None if _beside(database, _WAL).exists() else database.stat().st_size
    try:
        with closing(connect(database)) as connection:
            return _damage_in(connection, size, thorough=thorough)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        return str(error)


def _damage_in(connection: sqlite3.Connection, size: int | None, *, thorough: bool) -> str | None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    columns = {row[1] for row in connection.execute("PRAGMA table_info(Cache)")}
    if tables - _TABLES if "Cache" not in tables else not columns.issuperset(COLUMNS):
        return "it is the database of another program"
    pages, length = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if size is not None and size < pages * length:
        return "it is cut short"
    if thorough:
        answers = [answer for (answer,) in connection.execute("PRAGMA integrity_check(3)")]
        return None if answers == ["ok"] else f"it is malformed ({printable(answers[-1])})"
    return None


def set_aside(database: Path) -> Path:
    """Move a file and its log aside and return its new path; raise ``OSError`` if that fails."""
    names = (database.with_name(f"{database.name}{ASIDE}-{number}") for number in count(1))
    aside = next(path for path in names if not os.path.lexists(path))
    database.replace(aside)
    with suppress(FileNotFoundError):
        _beside(database, _WAL).replace(_beside(aside, _WAL))
    # Made anew from the log.
    _beside(database, _SHM).unlink(missing_ok=True)
    return aside


def made_usable(database: Path) -> str:
    """Give a file of ours that cannot be read and written the permissions of a new one; return what was done."""
    before = stat.S_IMODE(database.stat().st_mode)
    try:
        database.chmod(PRIVATE_FILE)
    except PermissionError:
        return ""
    return f"{database}: its permissions were {before:03o}; they are {PRIVATE_FILE:03o} now"


def remove_log(database: Path, *, if_empty: bool = False) -> None:
    """Remove what a deleted database left beside it: SQLite would take it for that of the new one."""
    log = _beside(database, _WAL)
    if not if_empty or (log.exists() and not log.stat().st_size):
        log.unlink(missing_ok=True)
        _beside(database, _SHM).unlink(missing_ok=True)


def files_aside(database: Path) -> list[Path]:
    """Return the files that were moved aside."""
    return sorted(database.parent.glob(f"{database.name}{ASIDE}*"))


def readable(rows: Iterator[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Yield rows up to the first that cannot be read."""
    with suppress(sqlite3.Error, UnicodeDecodeError):
        yield from rows


def _beside(database: Path, ending: str) -> Path:
    return database.with_name(database.name + ending)
