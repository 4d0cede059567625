"""The SQLite files that the processes of one run share: the rows that are done, and what was used of the budget."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pytest_ragmetrics.core.files import PRIVATE_FILE

# Seconds that processes wait for one another; each takes a fraction of a millisecond.
_TIMEOUT = 60.0


def opened(file: Path | None, *statements: str) -> sqlite3.Connection:
    """Return a connection to a database, which ``statements`` make if it is new; without a file it is in memory.

    Each statement is a transaction, and any thread may execute one, one at a time. Raises ``sqlite3.Error`` and
    ``OSError``.
    """
    from filelock import FileLock

    place = ":memory:" if file is None else file
    connection = sqlite3.connect(place, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        if file is not None:
            # SQLite does not wait when two switch a new database to WAL at once: one of them gets "database is locked".
            with FileLock(file.with_name("open.lock"), mode=PRIVATE_FILE, timeout=_TIMEOUT):
                connection.execute("PRAGMA journal_mode = WAL")
        # A machine that loses its power takes the run along.
        connection.execute("PRAGMA synchronous = OFF")
        for statement in statements:
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection
