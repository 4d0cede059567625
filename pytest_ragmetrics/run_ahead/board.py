"""The board: where the workers of one machine see which rows are taken, and what came of them.

It is a database in a private folder that the controller makes for one run. A worker holds a lock for as long as it
lives, which the system frees when it is killed: whoever waits for one of its rows takes the row over then.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pytest_ragmetrics.files.lock_file import lock_file

_PATIENCE = 60.0
_TABLE = "CREATE TABLE IF NOT EXISTS rows (test TEXT PRIMARY KEY, worker TEXT NOT NULL, outcome TEXT) WITHOUT ROWID"


class Board:
    """The board as one worker sees it; belongs to one thread. Raises ``sqlite3.Error`` and ``OSError``."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._worker = worker
        self._own = lock_file(self._lock_of(worker))
        self._own.take()
        # Each statement stands alone; what a crash of the machine would lose is of no use after it.
        self._rows = sqlite3.connect(
            folder / "rows.sqlite", timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=OFF")
        self._rows.execute(_TABLE)

    def claim(self, test: str) -> bool:
        """Take the row of a test, unless another worker that lives has it; tell whether it is ours now."""
        owner = self._owner(test)
        if owner is None:
            self._rows.execute("INSERT OR IGNORE INTO rows VALUES (?, ?, NULL)", (test, self._worker))
            owner = self._owner(test)
        if owner not in (None, self._worker) and not self._lives(owner):
            took_over = "UPDATE rows SET worker = ? WHERE test = ? AND worker = ? AND outcome IS NULL"
            self._rows.execute(took_over, (self._worker, test, owner))
            owner = self._owner(test)
        return owner == self._worker

    def publish(self, test: str, outcome: str) -> None:
        """Show what came of a row of ours."""
        self._rows.execute("UPDATE rows SET outcome = ? WHERE test = ?", (outcome, test))

    def outcome(self, test: str) -> str | None:
        """Return what came of a row, once somebody published it."""
        found = self._rows.execute("SELECT outcome FROM rows WHERE test = ?", (test,)).fetchone()
        return None if found is None else found[0]

    def close(self) -> None:
        """Give back what was not finished."""
        self._rows.execute("DELETE FROM rows WHERE worker = ? AND outcome IS NULL", (self._worker,))
        self._rows.close()
        self._own.release()

    def _owner(self, test: str) -> str | None:
        found = self._rows.execute("SELECT worker FROM rows WHERE test = ?", (test,)).fetchone()
        return None if found is None else found[0]

    def _lives(self, worker: str) -> bool:
        lock = lock_file(self._lock_of(worker))
        if lock.take():
            lock.release()
            return False
        return True

    def _lock_of(self, worker: str) -> Path:
        return self._folder / f"{worker}.lock"
