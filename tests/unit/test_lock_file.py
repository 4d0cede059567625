"""Lock files: held once, by whichever of the two ways, and free when they are given back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ragmetrics import locks as module
from pytest_ragmetrics.locks import LockFile, lock_file

KINDS = [
    module._PortableLock,
    pytest.param(module._FlockFile, marks=pytest.mark.skipif(sys.platform == "win32", reason="fcntl")),
]


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_a_lock_is_held_by_one_at_a_time(
    tmp_path: Path, first: Callable[[Path], LockFile], second: Callable[[Path], LockFile]
) -> None:
    """Whoever comes second gets it when it is given back, however each of them locks."""
    path = tmp_path / "made" / "on" / "demand" / "a.lock"
    one, other = first(path), second(path)
    assert one.take()
    assert not other.take()
    one.release()
    assert other.take()
    assert not one.take()
    other.release()
    assert one.take()
    one.release()


@pytest.mark.parametrize("kind", KINDS)
def test_giving_back_what_is_not_held_changes_nothing(tmp_path: Path, kind: Callable[[Path], LockFile]) -> None:
    """Neither before it was taken, nor twice, nor from somebody else who holds it."""
    path = tmp_path / "a.lock"
    one, other = kind(path), kind(path)
    one.release()
    assert other.take()
    assert not one.take()
    one.release()
    assert not one.take()
    other.release()
    other.release()


@pytest.mark.parametrize("kind", KINDS)
def test_where_no_file_can_be_the_system_says_so(tmp_path: Path, kind: Callable[[Path], LockFile]) -> None:
    """And nothing is held."""
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
