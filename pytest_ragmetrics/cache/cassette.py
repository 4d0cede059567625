"""The cassette: a file of answers to commit, one JSON object a line, sorted by key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_ragmetrics.cache.credentials import find_credential
from pytest_ragmetrics.cache.entry import CacheError, Entry
from pytest_ragmetrics.cache.nearest import Nearest, Neighbours
from pytest_ragmetrics.files.writing import write_atomically

# What git leaves in a file that it could not merge.
_CONFLICT = re.compile(r"<{7}|={7}$|>{7}|\|{7}")
# Characters that a reader of the file would not see, or that would end the line for some readers of it.
_INVISIBLE = re.compile("[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")


class CassetteError(CacheError):
    """A cassette cannot be read; says the file and, where it is one line's fault, the line."""

    def __init__(self, message: str, *, file: Path, line: int | None = None) -> None:
        self.file = file
        self.line = line
        place = str(file) if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {message}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An entry that was not written because it seems to hold a secret."""

    key: str
    task: str
    test: str | None
    found: str

    def __str__(self) -> str:
        asker = f"{self.test}: " if self.test else ""
        return f"{asker}the {self.task} answer {self.key[:8]} was not recorded, it seems to hold {self.found}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """What writing a cassette did; ``written`` is false when the file is already as it should be."""

    written: bool
    entries: int
    added: int
    dropped: int
    refused: tuple[Refusal, ...] = ()


class Cassette:
    """The entries in a file; a file that does not exist holds none.

    The file is read when it is first needed. Lines may stand in any order, and a key may stand twice, as after a
    merge: the entry made last counts. Raises :class:`CassetteError` for a file or line that cannot be read.
    """

    def __init__(self, file: Path) -> None:
        """Take the file; it need not exist."""
        self.file = file
        self._entries: dict[str, Entry] | None = None
        self._neighbours: dict[str, Neighbours] = {}

    @classmethod
    def sent(cls, file: Path, rows: Iterable[Mapping[str, Any]]) -> Cassette:
        """Return the cassette of another machine, whose entries were sent as JSON builtins; nothing is read."""
        cassette = cls(file)
        cassette._entries = {entry.key: entry for entry in map(Entry.from_row, rows)}
        return cassette

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All entries by key."""
        if self._entries is None:
            self._entries = _read(self.file)
        return self._entries

    def pick(self, keys: Iterable[str]) -> dict[str, Entry]:
        """Return the entries of those keys that have one."""
        return {key: self.entries[key] for key in keys if key in self.entries}

    def nearest(self, request: Mapping[str, Any]) -> Nearest | None:
        """Return the entry nearest to a request of the same task, with the difference; ``None`` without any."""
        task = request["task"]
        if task not in self._neighbours:
            self._neighbours[task] = Neighbours(entry for entry in self.entries.values() if entry.task == task)
        return self._neighbours[task].nearest(request)

    def save(
        self, used: Mapping[str, Entry], *, complete: bool, keep: bool = False, tests: Mapping[str, str] | None = None
    ) -> Saved:
        """Write the entries that a run used, whole or not at all; raises ``OSError`` if it cannot.

        Entries that nothing used are dropped after a ``complete`` run, unless ``keep``, and kept after any other; a
        run that used nothing at all says nothing about them. An entry that seems to hold a secret is refused, with
        the test that asked for it, looked up by key in ``tests``.
        """
        # Somebody may have changed the file since it was read.
        before = _read(self.file)
        refused = _refusals(used, before, tests or {})
        barred = {refusal.key for refusal in refused}
        allowed = {key: entry for key, entry in used.items() if key not in barred}
        after = allowed if complete and not keep and used else {**before, **allowed}
        text = "".join(f"{line_of(after[key])}\n" for key in sorted(after))
        written = after != before or (bool(before) and text != _text(self.file))
        if written:
            write_atomically(self.file, text)
        self._entries, self._neighbours = after, {}
        added, dropped = len(after.keys() - before.keys()), len(before.keys() - after.keys())
        return Saved(written=written, entries=len(after), added=added, dropped=dropped, refused=refused)


def line_of(entry: Entry) -> str:
    """Return an entry as one line of readable JSON, without its line break."""
    text = json.dumps(entry.to_row(), ensure_ascii=False, allow_nan=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _read(file: Path) -> dict[str, Entry]:
    try:
        lines = file.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CassetteError(error.strerror or str(error), file=file) from error
    entries: dict[str, Entry] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            entry = _read_line(line, file, number)
            entries[entry.key] = max(entries.get(entry.key, entry), entry, key=_precedence)
    return entries


def _read_line(line: bytes, file: Path, number: int) -> Entry:
    try:
        text = line.decode("utf-8").strip()
        if _CONFLICT.match(text):
            msg = f"a merge was left unresolved ({text[:7]}): keep the lines of both sides and delete this one"
            raise CassetteError(msg, file=file, line=number)
        return Entry.from_row(json.loads(text))
    except (ValueError, RecursionError) as error:
        msg = f"not an entry of a cassette: {error}"
        raise CassetteError(msg, file=file, line=number) from error


def _precedence(entry: Entry) -> tuple[Any, str]:
    """Order the entries of one key: the last made is the greatest, whatever side of a merge it comes from."""
    return entry.made_at, line_of(entry)


def _refusals(used: Mapping[str, Entry], before: Mapping[str, Entry], tests: Mapping[str, str]) -> tuple[Refusal, ...]:
    # What stands in the file already is no news to whoever can read it.
    news = (entry for key, entry in sorted(used.items()) if entry != before.get(key))
    return tuple(
        Refusal(key=entry.key, task=entry.task, test=tests.get(entry.key), found=found)
        for entry in news
        if (found := _credential_in(entry)) is not None
    )


def _credential_in(entry: Entry) -> str | None:
    texts = list(_texts(entry.request))
    # By chance a long vector spells anything.
    texts += [text for name, text in entry.reply.items() if name != "vector" and isinstance(text, str)]
    return next((found for text in texts if (found := find_credential(text)) is not None), None)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
