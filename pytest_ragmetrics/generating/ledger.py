"""Which rows a golden set ever had, so that those somebody deleted from it do not come back."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from pytest_ragmetrics.generating.documents import ROW_ID

_ID = re.compile(ROW_ID)


class Ledger:
    """The ids of all rows that a file was given, in a hidden file beside it; without it every row is a new one."""

    def __init__(self, file: Path) -> None:
        self._path = file.with_name(f".{file.name}.written")
        self.ids: set[str] = set()

    @property
    def name(self) -> str:
        """The name of the hidden file."""
        return self._path.name

    def read(self) -> None:
        """Take in what was noted."""
        with contextlib.suppress(OSError):
            # After a power cut a line may be a piece of one, which is no id.
            self.ids.update(_ID.findall(self._path.read_text(encoding="utf-8", errors="replace")))

    def note(self, ids: Iterable[str]) -> None:
        """Note the ids of rows that are in the file; on a full disk they are not."""
        new = [row_id for row_id in ids if row_id not in self.ids and _ID.fullmatch(row_id)]
        if new:
            self.ids.update(new)
            with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8", newline="\n") as stream:
                stream.write("".join(f"{row_id}\n" for row_id in new))

    def forget(self) -> None:
        """Begin anew, as where the file itself is gone."""
        with contextlib.suppress(OSError):
            self._path.unlink()
