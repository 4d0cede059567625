"""The board where workers share rows: many begin at once, and one that cannot be used leaves nothing behind."""

from __future__ import annotations

import gc
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from pytest_ragmetrics.locks import lock_file
from pytest_ragmetrics.prefetch.sharing import SharedResults


def test_a_board_that_cannot_be_read_leaves_nothing_open(tmp_path: Path) -> None:
    """Neither a connection nor the lock of a worker that uses no board."""
    (tmp_path / "rows.sqlite").write_text("No database, but longer than a header of one has to be. " * 20)
    with pytest.raises(sqlite3.DatabaseError):
        SharedResults(tmp_path, "gw0-1")
    lock = lock_file(tmp_path / "gw0-1.lock")
    assert lock.take()
    lock.release()
    # Python 3.13 and later warn of a connection that nobody closed, once it is collected.
    gc.collect()


def test_workers_that_begin_at_the_same_time_share_one_board(tmp_path: Path) -> None:
    """One of them has each row."""
    workers = ["gw0", "gw1", "gw2", "gw3"]
    with ThreadPoolExecutor(len(workers)) as threads:
        boards = list(threads.map(SharedResults, [tmp_path] * len(workers), workers))
    assert [board.claim("test_it") for board in boards] == [True, False, False, False]
    for board in boards:
        board.close()


def test_a_worker_waits_for_another_that_makes_the_database(tmp_path: Path) -> None:
    """SQLite refuses at once to switch a database to WAL that another is writing; a refused worker shares nothing."""
    lock = FileLock(tmp_path / "open.lock", thread_local=False)
    lock.acquire()
    other = sqlite3.connect(tmp_path / "rows.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def end() -> None:
        other.close()
        lock.release()

    timer = threading.Timer(0.2, end)
    timer.start()
    SharedResults(tmp_path, "gw0").close()
    timer.join()


def test_a_worker_waits_for_a_run_that_takes_its_folder_for_abandoned(tmp_path: Path) -> None:
    """Such a run holds the lock for a moment and removes the folder; the worker has it again, and its lock in it."""
    folder = tmp_path / "run"
    removing = lock_file(folder / "gw0-1.lock")
    assert removing.take()

    def remove() -> None:
        shutil.rmtree(folder)
        removing.release()

    timer = threading.Timer(0.1, remove)
    timer.start()
    board = SharedResults(folder, "gw0-1")
    timer.join()
    assert not lock_file(folder / "gw0-1.lock").take()
    assert board.claim("test_it")
    board.close()
