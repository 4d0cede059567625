"""Lock files have one holder; the shared folder of a run is removed with it, or after a kill by a later run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ragmetrics.core import locks as module
from pytest_ragmetrics.core.locks import LockFile, SharedFolder, folder_of, lock_file, remove_abandoned

Kind = Callable[[Path], LockFile]
KINDS = [
    module._PortableLock,
    pytest.param(module._FlockFile, marks=pytest.mark.skipif(sys.platform == "win32", reason="fcntl")),
]
RUN = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from pytest_ragmetrics.core.locks import SharedFolder
folder = SharedFolder()
(folder.path / "rows.sqlite").write_text("a row")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_a_lock_has_one_holder(tmp_path: Path, first: Kind, second: Kind) -> None:
    """Releasing a lock that is not held, or twice, changes nothing."""
    path = tmp_path / "made" / "on" / "demand" / "a.lock"
    one, other = first(path), second(path)
    other.release()
    assert [one.take(), other.take()] == [True, False]
    other.release()
    assert not other.take()
    one.release()
    one.release()
    assert [other.take(), one.take()] == [True, False]
    other.release()
    assert one.take()
    one.release()


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_below_a_file_cannot_be_locked(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "file").write_text("")
    lock = kind(tmp_path / "file" / "a.lock")
    with pytest.raises(OSError, match="file"):
        lock.take()
    lock.release()


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and modes")
def test_a_lock_file_is_private_and_no_link(tmp_path: Path) -> None:
    """Others can neither open it nor have another file opened in its place."""
    lock = lock_file(tmp_path / "a.lock")
    assert lock.take()
    lock.release()
    assert (tmp_path / "a.lock").stat().st_mode & 0o777 == 0o600
    (tmp_path / "b.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"b\.lock"):
        lock_file(tmp_path / "b.lock").take()
    assert not (tmp_path / "elsewhere").exists()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_private_and_removed_with_its_run(temporary: Path) -> None:
    folder = SharedFolder()
    assert folder.path.parent == temporary
    if sys.platform != "win32":
        assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "file").write_text("")
    folder.close()
    assert not list(temporary.iterdir())


def age(folder: Path) -> None:
    for path in (*folder.iterdir(), folder):
        os.utime(path, (0, time.time() - 90_000))


def test_the_folder_of_a_killed_run_is_removed_by_the_next(temporary: Path) -> None:
    command = [sys.executable, "-c", RUN, str(temporary)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        age(left)
        first = SharedFolder()
        assert (left / "rows.sqlite").exists()
        process.kill()
    second = SharedFolder()
    assert (left.exists(), first.path.exists()) == (False, True)
    first.close()
    second.close()


@pytest.mark.skipif(sys.platform == "win32", reason="fcntl")
def test_a_folder_that_another_run_removes_before_it_is_locked_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = module._FlockFile._opened

    def removed(lock: module._FlockFile) -> int:
        file = opened(lock)
        monkeypatch.setattr(module._FlockFile, "_opened", opened)
        remove_abandoned()
        assert not list(temporary.iterdir())
        return file

    monkeypatch.setattr(module._FlockFile, "_opened", removed)
    folder = SharedFolder()
    remove_abandoned()
    assert folder.path.exists()
    folder.close()


def test_the_locks_of_a_living_run_are_not_taken(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that begins would find its own taken, and others would think that it has ended."""
    living = SharedFolder()
    (living.path / "gw0-17.lock").write_text("")
    taken: list[str] = []

    def noted(path: Path) -> LockFile:
        taken.append(path.name)
        return lock_file(path)

    monkeypatch.setattr(module, "lock_file", noted)
    monkeypatch.setattr(Path, "glob", lambda path, pattern, glob=Path.glob: sorted(glob(path, pattern)))
    remove_abandoned()
    assert taken == ["run.lock"]
    living.close()


def test_folders_of_others_stay(temporary: Path) -> None:
    """Without a lock, with a folder or other files in it, a link, a file, another name: not a folder of a run."""
    own = folder_of("").name
    others = "ragmetrics-trial/uv.lock", "pytest-ragmetrics-trial/uv.lock", "elsewhere/run.lock"
    like_ours = "trial/uv.lock", "trial/notes.md", "deep/run.lock", "deep/more.lock/file", "file"
    for file in (*others, *(f"{own}{each}" for each in like_ours)):
        (temporary / file).parent.mkdir(parents=True, exist_ok=True)
        (temporary / file).write_text("")
    (temporary / f"{own}empty").mkdir()
    (temporary / f"{own}link").symlink_to(temporary / "elsewhere")
    for folder in temporary.iterdir():
        os.utime(folder, (0, 0), follow_symlinks=False)
    before = sorted(temporary.rglob("*"))
    # One that has only the files of workers, of an earlier version, is one after a day.
    left = folder_of("abc")
    left.mkdir()
    for file in ("gw0-17.lock", "gw1-18.lock", "rows.sqlite", "rows.sqlite-wal", "rows.sqlite-shm"):
        (left / file).write_text("")
    remove_abandoned()
    assert left.exists()
    age(left)
    remove_abandoned()
    assert sorted(temporary.rglob("*")) == before
