"""The cassette: a JSON Lines file of replies to commit, one entry a line, sorted by key.

Entries come from ``CacheTiers`` at the end of a run; strings that look like secrets are not written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_ragmetrics.cache.entry import CacheEntry
from pytest_ragmetrics.core.credentials import find_credential
from pytest_ragmetrics.core.errors import CacheError
from pytest_ragmetrics.core.files import STRICT_JSON, write_atomically
from pytest_ragmetrics.text.unicode import FORMATS

# The conflict markers of git.
_CONFLICT = re.compile(r"<{7}|={7}$|>{7}|\|{7}")
# Characters that are invisible, or that some programs take for the end of a line: written as \u escapes.
_INVISIBLE = re.compile(f"[\x7f-\x9f{FORMATS}\ud800-\udfff]")
_BOM = b"\xef\xbb\xbf"
_BEGINNING = re.compile(rb'\{"key": "([0-9a-f]{64})", "created": "')
#: The number of a line, and where it begins and ends in the file.
_Place = tuple[int, int, int]


class CassetteError(CacheError):
    """A cassette cannot be read; names the file and, if one line is wrong, the line."""

    def __init__(self, message: str, *, file: Path, line: int | None = None) -> None:
        self.file = file
        self.line = line
        place = str(file) if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {message}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An entry that was not written because it seems to contain a secret."""

    key: str
    task: str
    test: str | None
    found: str

    def __str__(self) -> str:
        asker = f"{self.test}: " if self.test else ""
        return f"{asker}the {self.task} answer {self.key[:8]} was not recorded, it seems to hold {self.found}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """The result of writing a cassette; ``written`` is false if the file was up to date."""

    written: bool
    entries: int
    added: int
    dropped: int
    refused: tuple[Refusal, ...] = ()


class Cassette:
    """The entries in a file; a file that does not exist has none.

    The file is read when it is first needed, and a line when its entry is. Lines may be in any order, and a key may
    occur twice, as after a merge: the latest entry counts. Raises :class:`CassetteError` for a file that cannot be
    read, and for a line that is no sound entry: where it is used, where the file is written, and in :meth:`verify`.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._read: _Lines | None = None

    @classmethod
    def sent(cls, file: Path, rows: Iterable[Mapping[str, Any]]) -> Cassette:
        """Return a cassette of entries sent by another machine as JSON builtins; no file is read."""
        cassette = cls(file)
        cassette._read = _Lines(file)
        cassette._read.parsed = {entry.key: entry for entry in map(CacheEntry.from_row, rows)}
        cassette._read.places = {key: [] for key in cassette._read.parsed}
        return cassette

    @property
    def _lines(self) -> _Lines:
        if self._read is None:
            self._read = _Lines(self.file, _data(self.file))
        return self._read

    @property
    def entries(self) -> dict[str, CacheEntry]:
        """All entries by key."""
        return self.pick(self._lines.places)

    def verify(self) -> tuple[int, list[CassetteError]]:
        """Read every line of the file as it is now; return how many keys there are, and the errors of lines."""
        keys: set[str] = set()
        errors = []
        for number, line in enumerate(_data(self.file).removeprefix(_BOM).split(b"\n"), start=1):
            try:
                keys |= {_read_line(line, self.file, number, strict=True).key} if line.strip() else set()
            except CassetteError as error:
                errors.append(error)
        return len(keys), errors

    def place(self, key: str) -> str:
        """Return the file and, where it is read here, the last line of a key."""
        places = self._lines.places[key]
        return f"{self.file}:{places[-1][0]}" if places else str(self.file)

    def pick(
        self, keys: Iterable[str], asked: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> dict[str, CacheEntry]:
        """Return the entries of those keys that have one; ``asked`` are the requests of keys, where they are known."""
        lines = self._lines
        return {key: lines.entry(key, asked.get(key)) for key in keys if key in lines.places}

    def save(
        self,
        used: Mapping[str, CacheEntry],
        *,
        complete: bool,
        keep: bool = False,
        tests: Mapping[str, str] | None = None,
    ) -> Saved:
        """Write the entries that a run used, atomically; raise ``OSError`` if the file cannot be written.

        Unused entries are dropped after a ``complete`` run, unless ``keep``, and kept after a partial run and after a
        run that used none. An entry that seems to contain a secret is refused, with the test that asked for it, looked
        up by key in ``tests``.
        """
        # The file may have changed since it was read.
        data = _data(self.file)
        if self._read is None or self._read.data != data:
            self._read = _Lines(self.file, data)
        before, there = self.pick(used), self._read.places.keys()
        refused = _refusals(used, before, tests or {})
        allowed = used.keys() - {refusal.key for refusal in refused}
        keys = allowed if complete and not keep and used else there | allowed
        added, dropped = len(keys - there), len(there - keys)
        changed = added or dropped or any(before[key] != used[key] for key in allowed)
        written = bool(changed or (there and not self._read.is_in_order))
        if written:
            kept = {**self.pick(keys - allowed), **{key: used[key] for key in allowed}}
            text = "".join(f"{line_of(kept[key])}\n" for key in sorted(keys))
            write_atomically(self.file, text)
            self._read = _Lines(self.file, text.encode())
            self._read.parsed = kept
        return Saved(written=written, entries=len(keys), added=added, dropped=dropped, refused=refused)


def line_of(entry: CacheEntry) -> str:
    """Return an entry as one line of readable JSON, without its line break."""
    digested = entry if entry.digest else replace(entry, digest=entry.digested())
    text = json.dumps(digested.to_row(), ensure_ascii=False, allow_nan=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


class _Lines:
    """The entries of a file by key; a line is parsed when its entry is looked up, and an error of it raised then.

    Lines as this module writes them begin with the key; others are parsed to learn it.
    """

    def __init__(self, file: Path, data: bytes = b"") -> None:
        self.data = data
        #: Whether the file is as it would be written: each entry on one line, sorted by key.
        self.is_in_order = data.endswith(b"\n") and not data.startswith(_BOM)
        self._file = file
        self.places: dict[str, list[_Place]] = {}
        self.parsed: dict[str, CacheEntry] = {}
        last, number, start = "", 0, len(_BOM) if data.startswith(_BOM) else 0
        while start < len(data):
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            number += 1
            if key := self._key(number, start, end):
                self.places.setdefault(key, []).append((number, start, end))
                self.is_in_order = self.is_in_order and key > last
                last = key
            start = end + 1

    def entry(self, key: str, asked: Mapping[str, Any] | None = None) -> CacheEntry:
        """Return the entry of a key, ``asked`` being the request that the key is known to be of."""
        if key not in self.parsed:
            entries = [self._line(*place, asked) for place in self.places[key]]
            # Equal times are ordered by text, so that both sides of a merge agree.
            latest = max(entries, key=lambda entry: (entry.made_at, line_of(entry))) if entries[1:] else entries[0]
            self.parsed[key] = latest
        return self.parsed[key]

    def _key(self, number: int, start: int, end: int) -> str:
        """Return the key of the entry on a line, empty for a blank line."""
        found = _BEGINNING.match(self.data, start, end)
        # A line that was cut short or edited is read at once.
        if found and self.data[max(start, end - 3) : end].rstrip(b"\r").endswith(b"}}"):
            return found[1].decode("ascii")
        self.is_in_order = False
        return self._line(number, start, end).key if self.data[start:end].strip() else ""

    def _line(self, number: int, start: int, end: int, asked: Mapping[str, Any] | None = None) -> CacheEntry:
        return _read_line(self.data[start:end], self._file, number, asked)


def _data(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise CassetteError(error.strerror or str(error), file=file) from error


def _read_line(
    line: bytes, file: Path, number: int, asked: Mapping[str, Any] | None = None, *, strict: bool = False
) -> CacheEntry:
    try:
        text = line.decode("utf-8").strip()
        if _CONFLICT.match(text):
            msg = f"a merge was left unresolved ({text[:7]}): keep the lines of both sides and delete this one"
            raise CassetteError(msg, file=file, line=number)
        entry = CacheEntry.from_row(STRICT_JSON.decode(text))
    except (ValueError, RecursionError) as error:
        raise CassetteError(f"not an entry of a cassette: {error}", file=file, line=number) from error
    # Whether a redacted request is the one asked depends on how this run redacts.
    if problem := entry.problem(None if entry.redacted else asked, strict=strict):
        to_do = "take the line as it was recorded, or delete it to record it anew"
        raise CassetteError(f"entry {entry.key[:8]} was changed, {problem}: {to_do}", file=file, line=number)
    return entry


def _refusals(
    used: Mapping[str, CacheEntry], before: Mapping[str, CacheEntry], tests: Mapping[str, str]
) -> tuple[Refusal, ...]:
    # Entries that are in the file already are not refused.
    news = (entry for key, entry in sorted(used.items()) if entry != before.get(key))
    return tuple(
        Refusal(key=entry.key, task=entry.task, test=tests.get(entry.key), found=found)
        for entry in news
        if (found := _credential_in(entry)) is not None
    )


def _credential_in(entry: CacheEntry) -> str | None:
    texts = list(_texts(entry.request))
    # The base64 of a long vector may contain any pattern.
    texts += [text for name, text in entry.reply.items() if name != "vector" and isinstance(text, str)]
    return next((found for text in texts if (found := find_credential(text)) is not None), None)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)
