"""Files appear whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ragmetrics.core.files import write_atomically


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "er" / "file.txt"
    write_atomically(file, "one\n")
    ordinary = file.with_name("ordinary")
    ordinary.touch()
    assert file.stat().st_mode == ordinary.stat().st_mode
    file.chmod(0o600)
    write_atomically(file, "zwei: ä\r\n")
    assert file.read_bytes() == "zwei: ä\r\n".encode()
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == ["file.txt", "ordinary"]


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    file, folder = tmp_path / "file.txt", tmp_path / "folder"
    file.write_text("old")
    folder.mkdir()
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "new \ud800")
    with pytest.raises(OSError, match="folder"):
        write_atomically(folder, "text")
    assert file.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [file, folder]


def test_a_stream_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    script = (
        "from pathlib import Path; from pytest_ragmetrics.core.files import write_atomically;"
        "write_atomically(Path('%s'), 'two')"
    )
    with out.open("w") as stream:
        stream.write("one ")
        stream.flush()
        subprocess.run([sys.executable, "-c", script % "/dev/stdout"], stdout=stream, check=True)
    assert out.read_text() == "one two"
    assert Path("/dev/stdout").is_symlink()
    piped = subprocess.run([sys.executable, "-c", script % "/dev/fd/1"], capture_output=True, check=True)
    assert piped.stdout == b"two"
