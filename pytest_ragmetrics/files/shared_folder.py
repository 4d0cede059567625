"""Folders that the processes of one run share, and what runs that were killed left of theirs."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from pytest_ragmetrics.files.lock_file import lock_file

#: What the names of the folders begin with, in the folder for temporary files.
PREFIX = "ragmetrics-"


class SharedFolder:
    """A private folder, locked as long as this process lives and gone when it is closed; raises ``OSError``."""

    def __init__(self) -> None:
        remove_abandoned()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            file = self.path / "run.lock"
            self._lock = lock_file(file)
            # Another run may take the folder for abandoned before it is locked.
            if self._lock.take() and file.exists():
                return

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def remove_abandoned() -> None:
    """Remove the folders of runs that were killed: the system has freed all the locks in them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # Somebody else may be removing it.
        with suppress(OSError), ExitStack() as held:
            if _is_own(folder) and _locked(folder, held):
                shutil.rmtree(folder, ignore_errors=True)


def _is_own(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == getattr(os, "geteuid", lambda: found.st_uid)()


def _locked(folder: Path, held: ExitStack) -> bool:
    """Take all the locks in a folder, if it has any and nobody holds one."""
    locks = [lock_file(path) for path in folder.glob("*.lock")]
    for lock in locks:
        if not lock.take():
            return False
        held.callback(lock.release)
    return bool(locks)
