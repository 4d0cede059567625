"""The folder of a store and the file in it: private, refused where others can write, moved aside where it is damaged.

A row that cannot be used is no damage: it is refused where it is read, and ``Store.verify`` finds it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.core.files import PRIVATE_FILE, PRIVATE_FOLDER
from pytest_ragmetrics.text.unicode import printable

FOLDER = ".ragmetrics"
VARIABLE = "RAGMETRICS_CACHE_DIR"
#: The folder of the lock files in it.
LOCKS = "locks"
#: What the name of a file that was moved aside ends with, before its number.
ASIDE = ".broken"
#: What each row of a store has.
COLUMNS = ("key", "raw", "mode", "filename", "value", "tag")
#: Seconds that processes which start at once, and a statement of one of them, wait for another.
TIMEOUT = 60

_TAG = "CACHEDIR.TAG"
_OWN_FILES = {
    ".gitignore": "# Made by pytest-ragmetrics. Commit a cassette (--rag-cassette=FILE) instead.\n*\n",
    _TAG: "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of pytest-ragmetrics; https://bford.info/cachedir/\n",
}
# What SQLite keeps beside a database.
_WAL, _SHM = "-wal", "-shm"
# Those of diskcache; it makes them one after the other, and may have been killed in between.
_TABLES = {"Cache", "Settings"}


def default_folder() -> Path:
    """Return the folder named in the environment, else the nearest ``.ragmetrics`` here or above, else one here."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    here = Path.cwd()
    return next((place / FOLDER for place in (here, *here.parents) if (place / FOLDER).is_dir()), here / FOLDER)


def prepare(folder: Path) -> None:
    """Create the folder, readable by its owner alone."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    refuse_foreign(folder)
    # An existing folder with other files in it keeps its mode, and git does not ignore it. One that was deleted in use
    # may have locks again.
    if (folder / _TAG).exists() or {path.name for path in folder.iterdir()} <= {LOCKS}:
        restrict(folder, PRIVATE_FOLDER)
        for name, text in _OWN_FILES.items():
            if not (folder / name).exists():
                (folder / name).write_text(text, encoding="utf-8")
    (folder / LOCKS).mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def restrict(path: Path, mode: int) -> None:
    """Take away the permissions of a file or folder that ``mode`` does not have."""
    now = stat.S_IMODE(path.stat().st_mode)
    if now & ~mode:
        # On a shared volume a file may be writable for us and belong to another account.
        with suppress(PermissionError):
            path.chmod(now & mode)


def refuse_foreign(folder: Path) -> None:
    """Raise :class:`CacheUnavailableError` for another account's folder in a place where everybody can create one."""
    if not hasattr(os, "geteuid") or folder.stat().st_uid == os.geteuid():
        return
    if any(place.stat().st_mode & stat.S_IWOTH for place in (folder, folder.resolve().parent)):
        raise CacheUnavailableError(f"{folder}: it belongs to another account, in a place where everybody can write")


def is_own(database: Path) -> bool:
    """Tell whether a database can be written, also once it is mended; one that was deleted in use is made again."""
    if not os.access(database.parent, os.W_OK):
        return not database.parent.exists()
    is_mine = database.exists() and hasattr(os, "geteuid") and database.stat().st_uid == os.geteuid()
    return os.access(database, os.W_OK) or not os.access(database, os.R_OK) or is_mine


def read_only(database: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing; raises ``sqlite3.Error``."""
    # In a read-only folder SQLite cannot create -wal and -shm: open immutable, unless another account writes there.
    immutable = "" if os.access(database.parent, os.W_OK) or _beside(database, _WAL).exists() else "&immutable=1"
    return sqlite3.connect(f"{database.as_uri()}?mode=ro{immutable}", uri=True, timeout=TIMEOUT)


def is_damage(error: Exception) -> bool:
    """Tell whether an error of SQLite is about the content of the file, and not about a lock, the disk or a query.

    >>> is_damage(sqlite3.DatabaseError("malformed")), is_damage(sqlite3.OperationalError("database is locked"))
    (True, False)
    """
    # Python has a subclass for every other kind; SQLite's message may repeat a name that is no text.
    return type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeDecodeError)


def damage(database: Path, *, thorough: bool = False) -> str | None:
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
        with closing(read_only(database)) as connection:
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


def _beside(database: Path, ending: str) -> Path:
    return database.with_name(database.name + ending)
