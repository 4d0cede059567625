"""Folders that the processes of one run share, and what runs that were killed left of theirs."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from pytest_ragmetrics.files import PRIVATE_FILE, PRIVATE_FOLDER


class LockFile(Protocol):
    """A lock that is held once at most, here or elsewhere."""

    def take(self) -> bool:
        """Try once to take it; return whether it is held now. Raises ``OSError`` where files cannot be locked."""

    def release(self) -> None:
        """Give it back, if it is held."""


def lock_file(path: Path) -> LockFile:
    """Return the lock of a file, which is made when it is taken."""
    return _FlockFile(path) if find_spec("fcntl") else _PortableLock(path)


class _FlockFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self) -> bool:
        import fcntl

        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except OSError:
            os.close(file)
            raise
        self._file = file
        return True

    def release(self) -> None:
        import fcntl

        file, self._file = self._file, None
        if file is not None:
            # A child that was forked meanwhile has the file open too, so that to close it would not be enough.
            fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)

    def _open(self) -> int:
        try:
            return os.open(self._path, _FLAGS, PRIVATE_FILE)
        except FileNotFoundError:
            self._path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            return os.open(self._path, _FLAGS, PRIVATE_FILE)


class _PortableLock:
    def __init__(self, path: Path) -> None:
        from filelock import FileLock

        self._path = path
        self._lock = FileLock(path, mode=PRIVATE_FILE, thread_local=False)

    def take(self) -> bool:
        from filelock import Timeout

        try:
            self._path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def release(self) -> None:
        self._lock.release()


_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


# What the names of the folders begin with, and what the files in them are called, which nothing else is next to.
_PREFIX = "pytest-ragmetrics-run-"
_FILES = re.compile(r"[\w-]+\.(lock|sqlite(-\w+)?)")


class SharedFolder:
    """A private folder for files ``*.sqlite``, locked as long as this process lives and gone when it is closed.

    Raises ``OSError``.
    """

    def __init__(self) -> None:
        remove_abandoned()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            file = self.path / "run.lock"
            self._lock = lock_file(file)
            # Another run may take the folder for abandoned before it is locked.
            if self._lock.take() and file.exists():
                return
            self._lock.release()

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def folder_of(run: str) -> Path:
    """Return the folder of the processes that know the name of their run; it need not be there."""
    return Path(tempfile.gettempdir(), f"{_PREFIX}{run}")


def remove_abandoned() -> None:
    """Remove the folders of runs that were killed: the system has freed all the locks in them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Somebody else may be removing it.
        with suppress(OSError), ExitStack() as held:
            if _is_own(folder) and _locked(folder, held):
                shutil.rmtree(folder, ignore_errors=True)


def _is_own(folder: Path) -> bool:
    """Say whether a folder is this user's and holds nothing but what a run puts there."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != getattr(os, "geteuid", lambda: found.st_uid)():
        return False
    return all(_FILES.fullmatch(file.name) and not file.is_dir() for file in folder.iterdir())


def _locked(folder: Path, held: ExitStack) -> bool:
    """Take all the locks in a folder, if it has any and nobody holds one."""
    locks = [lock_file(path) for path in folder.glob("*.lock")]
    for lock in locks:
        if not lock.take():
            return False
        held.callback(lock.release)
    return bool(locks)
