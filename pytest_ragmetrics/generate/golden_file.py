"""The file of a golden set while it is made: rows that are there are kept, new ones are safe as soon as they are in."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_ragmetrics.files import write_atomically
from pytest_ragmetrics.generate.documents import ROW_ID, ArgumentError, row_id
from pytest_ragmetrics.locks import LockFile, lock_file

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


_ATTEMPTS = 3
# No place: rows that somebody else wrote stand behind all others.
_LAST = "\U0010ffff"


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenLine:
    """A row as it stands in the file, and what it says."""

    text: str
    row: Mapping[str, Any]

    @property
    def is_ours(self) -> bool:
        """Whether it is of the kind that is written here."""
        row, metadata = self.row, self.row.get("metadata")
        return (
            all(isinstance(row.get(name), str) for name in ("id", "user_input", "reference"))
            and isinstance(metadata, dict)
            and {"file", "judge", "support"} <= set(metadata)
        )

    @property
    def place(self) -> tuple[str, int]:
        """Where its passage stands."""
        metadata = self.row["metadata"] if self.is_ours else {}
        at = next((metadata[name] for name in ("start", "line") if type(metadata.get(name)) is int), 0)
        return str(metadata.get("file", _LAST)), at


class GoldenFile:
    """The rows of a file, which nobody else may write meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        #: Which rows it ever had.
        self.ledger = Ledger(path)
        self._lines: list[GoldenLine] = []
        # After an interrupt a row may still come in while the others are sorted.
        self._turn = threading.Lock()
        #: Whether the file ended in the middle of a row, as after a power cut; that piece is left out.
        self.was_cut = False

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """The rows in the file."""
        return [line.row for line in self._lines]

    @property
    def row_ids(self) -> set[str]:
        """The ids of the rows, also of those that somebody gave another: the id that their passage stands for."""
        ids = {row["id"] for row in self.rows if isinstance(row.get("id"), str)}
        contexts = (row.get("reference_contexts") for row in self.rows)
        texts = (context[0] for context in contexts if isinstance(context, list) and len(context) == 1)
        return ids | {row_id(text) for text in texts if isinstance(text, str)}

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row at the end of the file; raises ``OSError``."""
        line = GoldenLine(text=json.dumps(row, ensure_ascii=False, allow_nan=False), row=row)
        with self._turn:
            # What is written anew is also made, and whatever is no row goes.
            anew = self.was_cut or not self._lines
            # Until the whole row is in, a part of it may be.
            self.was_cut = True
            if anew:
                self._write([*self._lines, line])
            else:
                with self._path.open("ab") as stream:
                    stream.write(f"{line.text}\n".encode())
            self.was_cut = False
            self._lines.append(line)
            self.ledger.note([row["id"]])

    def sort(self) -> None:
        """Bring the rows into the order of files and places."""
        with self._turn:
            ordered = sorted(self._lines, key=lambda line: line.place)
            if ordered != self._lines or (self.was_cut and ordered):
                self._write(ordered)
                self._lines, self.was_cut = ordered, False

    def read(self) -> None:
        """Read what is there; raise :class:`ArgumentError` unless there is nothing, or a golden set made here."""
        if not self._path.exists():
            self.ledger.forget()
            return
        try:
            text = self._path.read_bytes().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{self._path} cannot be read, so it is left as it is: {error}"
            raise ArgumentError(msg) from error
        *whole, last = text.split("\n")
        self._lines = [self._line(number, line) for number, line in enumerate(whole, start=1) if line.strip()]
        if last.strip():
            self._read_last(len(whole) + 1, last)
        if self._lines and not any(line.is_ours for line in self._lines):
            msg = (
                f"{self._path} holds no row that `ragmetrics generate` wrote, so it is left as it is: name another file"
            )
            raise ArgumentError(msg)
        self.ledger.read()
        self.ledger.note(self.row_ids)

    def _read_last(self, number: int, text: str) -> None:
        """Read the last line, which has no end: cut short, or written by an editor that ends none."""
        try:
            self._lines.append(self._line(number, text))
        except ArgumentError:
            if not any(line.is_ours for line in self._lines):
                raise
        self.was_cut = True

    def _line(self, number: int, text: str) -> GoldenLine:
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            msg = f"{self._path}:{number}: is no row of a golden set, so the file is left as it is: name another file"
            raise ArgumentError(msg)
        return GoldenLine(text=text.strip("\r"), row=row)

    def _write(self, lines: list[GoldenLine]) -> None:
        write_atomically(self._path, "".join(f"{line.text}\n" for line in lines))


@contextmanager
def golden_file(path: Path) -> Iterator[GoldenFile]:
    """Open the file of a golden set for this process alone, and sort it in the end, whatever happened.

    Raises :class:`ArgumentError` if it cannot be written, is written by another process, or holds anything else.
    """
    # A link is followed, not replaced.
    path = path.resolve()
    if path.exists() and not (stat.S_ISREG(path.stat().st_mode) and os.access(path, os.W_OK)):
        msg = f"{path} is no file that may be written: name another"
        raise ArgumentError(msg)
    with _held(path):
        file = GoldenFile(path)
        file.read()
        try:
            yield file
        finally:
            # On a full disk they stay in the order in which they came; a further run sorts them.
            with contextlib.suppress(OSError):
                file.sort()


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which lies beside it meanwhile."""
    place = path.with_name(f".{path.name}.lock")
    lock = lock_file(place)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        taken = _take(lock, place)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}: {error.filename!r}"
        raise ArgumentError(msg) from error
    if not taken:
        msg = f"{path} is being written by another process: wait for it, or name another file"
        raise ArgumentError(msg)
    try:
        yield
    finally:
        # Not on Windows, where it is open; it does no harm there.
        with contextlib.suppress(OSError):
            place.unlink()
        lock.release()


def _take(lock: LockFile, place: Path) -> bool:
    """Take a lock; one that its last holder was just removing is taken anew."""
    for _ in range(_ATTEMPTS):
        if not lock.take():
            return False
        if place.exists():
            return True
        lock.release()
    return False
