"""Lock files, and the private folders that the processes of one run share.

The system frees the lock of a killed process; the folders of killed runs are removed by the next run.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from pytest_ragmetrics.core.files import PRIVATE_FILE, PRIVATE_FOLDER, RUN_FOLDERS


class LockFile(Protocol):
    """A lock that at most one holder has, in this process or another."""

    def take(self) -> bool:
        """Try once, and return whether it was taken; raise ``OSError`` if files cannot be locked."""

    def release(self) -> None:
        """Release it, if it is held."""


def lock_file(path: Path) -> LockFile:
    """Return the lock of a file, which is created when the lock is taken."""
    return _FlockFile(path) if find_spec("fcntl") else _PortableLock(path)


class _FlockFile:
    # filelock takes 0.2 ms where this takes 0.014, and 50 ms to import.
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self) -> bool:
        import fcntl

        try:
            file = self._opened()
        except FileNotFoundError:
            self._path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            file = self._opened()
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
            # A child forked meanwhile has the file open too: closing it would not release the lock.
            fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)

    def _opened(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE)


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


@contextmanager
def written_alone(path: Path, refusal: Exception) -> Iterator[None]:
    """Hold ``.NAME.lock`` beside a file that is written, in a folder that is made; raises ``refusal`` if another does.

    The lock file is removed at the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f".{path.name}.lock")
    lock = lock_file(file)
    if not lock.take():
        raise refusal
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open
            file.unlink()
        lock.release()


# The names of the only files in our folders, and that of the lock which a run holds while it lives.
_FILES = re.compile(r"[\w-]+\.(lock|sqlite(-\w+)?)")
_RUN_LOCK = "run.lock"
# Seconds without a change after which a folder without that lock is abandoned. The locks of workers do not tell: none
# is held between the end of the first worker and the first row of the next.
_ABANDONED = 86_400.0
# How often a run tries to lock its folder; to remove one takes another run some milliseconds.
_TRIES = 100


class SharedFolder:
    """A private folder for ``*.sqlite`` files, locked while this process lives and removed by :meth:`close`.

    Raises ``OSError``.
    """

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=RUN_FOLDERS))
        self._lock = run_lock(self.path)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def folder_of(run: str) -> Path:
    """Return the shared folder of a run; it need not exist."""
    return Path(tempfile.gettempdir(), f"{RUN_FOLDERS}{run}")


def run_lock(folder: Path) -> LockFile:
    """Take the lock that says that the run of a folder lives, and return it; the folder is made if there is none."""
    lock = lock_file(folder / _RUN_LOCK)
    for _ in range(_TRIES):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        if lock.take() and (folder / _RUN_LOCK).exists():
            break
        # Another run took the file that was made but not locked yet for one of a killed run.
        lock.release()
        time.sleep(0.01)
    return lock


def remove_abandoned() -> None:
    """Remove the folders of killed runs: no lock in them is held, and one is that of the run, or they are a day old."""
    for folder in Path(tempfile.gettempdir()).glob(f"{RUN_FOLDERS}*"):
        # Another process may be removing it.
        with suppress(OSError), ExitStack() as held:
            if _may_be_abandoned(folder) and _locked(folder, held):
                shutil.rmtree(folder, ignore_errors=True)


def _may_be_abandoned(folder: Path) -> bool:
    """Tell whether a folder is one of ours, and has the lock of its run or has not changed for a day."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != getattr(os, "geteuid", lambda: found.st_uid)():
        return False
    files = list(folder.iterdir())
    if not all(_FILES.fullmatch(file.name) and not file.is_dir() for file in files):
        return False
    if any(file.name == _RUN_LOCK for file in files):
        return True
    return time.time() - max(path.lstat().st_mtime for path in (folder, *files)) > _ABANDONED


def _locked(folder: Path, held: ExitStack) -> bool:
    """Take all locks in a folder; return False if it has none or one is held."""
    # That of the run first: while it lives no worker may find its own lock taken, as if it had ended.
    paths = sorted(folder.glob("*.lock"), key=lambda path: path.name != _RUN_LOCK)
    for lock in map(lock_file, paths):
        if not lock.take():
            return False
        held.callback(lock.release)
    return bool(paths)
