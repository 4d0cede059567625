"""Folders that the processes of a run share: gone with the run, or with the next one after a run that was killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_ragmetrics.locks import SharedFolder, folder_of, remove_abandoned

HOLDING = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from pytest_ragmetrics.locks import SharedFolder
folder = SharedFolder()
(folder.path / "rows.sqlite").write_text("a row")
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
        assert (left / "rows.sqlite").exists()
        process.kill()
        process.wait()
        second = SharedFolder()
        assert not left.exists()
        assert first.path.exists()
        first.close()
        second.close()


@pytest.mark.parametrize("name", ["ragmetrics-trial", "pytest-ragmetrics-trial", "pytest-ragmetrics-run-trial"])
def test_the_folder_of_somebody_else_stays(name: str, tmp_path: Path) -> None:
    """A project that was tried out there has a lock too, that of its packages."""
    project = tmp_path / name
    project.mkdir()
    (project / "uv.lock").write_text("")
    (project / "notes.md").write_text("mine")
    remove_abandoned()
    assert sorted(file.name for file in project.iterdir()) == ["notes.md", "uv.lock"]


def test_what_may_belong_to_somebody_else_stays(tmp_path: Path) -> None:
    """A folder without a lock, one with a folder in it, a link to one with a lock, and a file are none of ours."""
    name = folder_of("")
    Path(f"{name}empty").mkdir()
    Path(f"{name}file").write_text("")
    Path(f"{name}deep", "more.lock").mkdir(parents=True)
    Path(f"{name}deep", "run.lock").write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "run.lock").write_text("")
    Path(f"{name}link").symlink_to(tmp_path / "elsewhere")
    remove_abandoned()
    assert len(list(tmp_path.iterdir())) == 5
    assert (tmp_path / "elsewhere" / "run.lock").exists()
    assert Path(f"{name}deep", "run.lock").exists()


def test_a_folder_with_nothing_but_what_a_run_left_is_removed() -> None:
    """That is also what the workers of a run made, in the folder that its name stands for."""
    left = folder_of("abc")
    left.mkdir()
    for file in ("gw0-17.lock", "gw1-18.lock", "rows.sqlite", "rows.sqlite-wal", "rows.sqlite-shm"):
        (left / file).write_text("")
    remove_abandoned()
    assert not left.exists()
