"""The folder of the local store: private, ignored by git and by backups, and never a stranger's."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.files.modes import PRIVATE_FILE, PRIVATE_FOLDER

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
