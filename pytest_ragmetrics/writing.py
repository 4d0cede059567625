"""Writing files whole or not at all."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path


def write_atomically(file: Path, text: str) -> None:
    """Write a file as UTF-8 so that readers see the old content or the new, never a part; raises ``OSError``.

    Folders on the way are made. A file that is replaced keeps its mode, a new one is as public as any of the user's.
    """
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
