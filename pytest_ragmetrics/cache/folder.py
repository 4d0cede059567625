"""The folder of a store: private, out of the way of git and backups, and refused where others can write."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.core.files import PRIVATE_FOLDER

FOLDER = ".ragmetrics"
VARIABLE = "RAGMETRICS_CACHE_DIR"
#: The folder of the lock files in it.
LOCKS = "locks"

_TAG = "CACHEDIR.TAG"
_OWN_FILES = {
    ".gitignore": "# Made by pytest-ragmetrics. Commit a cassette (--rag-cassette=FILE) instead.\n*\n",
    _TAG: "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of pytest-ragmetrics; https://bford.info/cachedir/\n",
}


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
