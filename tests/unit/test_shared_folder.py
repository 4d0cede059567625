"""Folders that the processes of a run share: gone with the run, or with the next one after a run that was killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_ragmetrics.files.shared_folder import SharedFolder, remove_abandoned

HOLDING = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from pytest_ragmetrics.files.shared_folder import SharedFolder
folder = SharedFolder()
(folder.path / "rows").mkdir()
(folder.path / "rows" / "a").write_text("a row")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a folder for temporary files that no other run uses."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@contextmanager
def another_run() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that has a folder, and return both."""
    command = [sys.executable, "-c", HOLDING, tempfile.gettempdir()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_folder_is_private_and_goes_with_its_run(tmp_path: Path) -> None:
    """Whatever is in it."""
    folder = SharedFolder()
    assert folder.path.parent == tmp_path
    if sys.platform != "win32":
        assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "file").write_text("")
    folder.close()
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_is_removed_by_the_next() -> None:
    """And not before the run is dead, however many others begin meanwhile."""
    with another_run() as (process, left):
        first = SharedFolder()
        assert (left / "rows" / "a").exists()
        process.kill()
        process.wait()
        second = SharedFolder()
        assert not left.exists()
        assert first.path.exists()
        first.close()
        second.close()


def test_what_may_belong_to_somebody_else_stays(tmp_path: Path) -> None:
    """A folder without a lock, a link to one with a lock, and a file are none of ours."""
    (tmp_path / "ragmetrics-notes").mkdir()
    (tmp_path / "ragmetrics-file").write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "run.lock").write_text("")
    (tmp_path / "ragmetrics-link").symlink_to(tmp_path / "elsewhere")
    remove_abandoned()
    assert len(list(tmp_path.iterdir())) == 4
    assert (tmp_path / "elsewhere" / "run.lock").exists()
