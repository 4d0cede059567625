"""A lock between processes, which the system frees when its holder is killed.

Where ``fcntl`` is, the two calls that matter are made here: the locks of ``filelock`` are the same to all others, and
take ten times as long, which is felt when thousands of answers are fetched. Elsewhere it is ``filelock``.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from pytest_ragmetrics.files.modes import PRIVATE_FILE, PRIVATE_FOLDER


class LockFile(Protocol):
    """A lock that is held once at most, here or elsewhere."""

    def take(self) -> bool:
        """Try once to take it; return whether it is held now. Raises ``OSError`` where files cannot be locked."""

    def release(self) -> None:
        """Give it back, if it is held."""


def lock_file(path: Path) -> LockFile:
    """Return the lock of a file, which is made when it is taken."""
    return _Plain(path) if find_spec("fcntl") else _Portable(path)


class _Plain:
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


class _Portable:
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
