"""Writing files whole or not at all."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path

_STREAMS = (Path("/dev"), Path("/dev/fd"))


def write_atomically(file: Path, text: str) -> None:
    """Write a file as UTF-8 so that readers see the old content or the new, never a part; raises ``OSError``.

    Folders on the way are made. A file that is replaced keeps its mode, a new one is as public as any of the user's.
    What is no file, a device or a pipe, is written to as it is.
    """
    if _is_stream(file):
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        if file.exists():
            part.chmod(stat.S_IMODE(file.stat().st_mode))
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _is_stream(file: Path) -> bool:
    # /dev/stdout is a file where the output goes into one, and must not be replaced all the same.
    return file.parent in _STREAMS or (file.exists() and not (file.is_file() or file.is_dir()))
