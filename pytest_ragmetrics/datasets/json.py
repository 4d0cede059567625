"""Rows of JSON: one object a line, or a list of them, each with the line where it begins.

Python reads more than JSON allows (NaN, a key twice); such a row keeps its values, and so its id, and has a fault.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NoReturn

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.datasets.rows import WRAPPERS, Columns, Raw, RowError, rows_of_mapping
from pytest_ragmetrics.datasets.spans import is_trace
from pytest_ragmetrics.text.unicode import BOM

_SPACE = re.compile(r"[ \t\r\n]*")
# Files that were concatenated have byte order marks between their lines.
_BLANK = f" \t\r\n{BOM}"
_TOO_DEEP = "nested too deeply"


def read_jsonl(text: str, file: str, _: Columns) -> Sequence[Raw]:
    """Return the rows of a text with one JSON object a line; blank lines do not count."""
    # Only \n ends a line: a JSON string may contain the other characters at which str.splitlines() splits.
    rows = [*_rows_of_lines(text.split("\n"))]
    if all(row.fault for row in rows):
        _check_first(rows[:1], file)
    return rows


def iterate_jsonl(lines: Iterable[bytes], file: str) -> Iterator[Raw]:
    """Yield the rows of lines one by one, as :func:`read_jsonl`; a line that is not UTF-8 is a row with a fault."""
    rows = _rows_of_lines(lines)
    first = [*islice(rows, 1)]
    _check_first(first, file)
    yield from chain(first, rows)


def _rows_of_lines(lines: Iterable[bytes | str]) -> Iterator[Raw]:
    decoder = _Decoder()
    for number, line in enumerate(lines, 1):
        try:
            text = (line if isinstance(line, str) else line.decode()).strip(_BLANK)
        except UnicodeDecodeError as error:
            fault = RowError(f"byte 0x{error.object[error.start]:02x} is not UTF-8: save the file as UTF-8")
            yield Raw(line=number, fault=fault, text=repr(line))
            continue
        if not text:
            continue
        decoder.faults = faults = []
        value: Any = None
        try:
            value = decoder.decode(text)
        except json.JSONDecodeError as error:
            faults.append(f"no JSON: {error.msg} (column {error.colno})")
        except RecursionError:
            faults.append(_TOO_DEEP)
        yield _row(value, number, text, faults)


def _check_first(rows: Sequence[Raw], file: str) -> None:
    """Raise ``DatasetError`` where the first row shows that a file has not one object a line."""
    if rows and rows[0].text.startswith("["):
        raise DatasetError("contains a JSON list: name it .json, or write one object {...} a line", file=file)
    if rows and rows[0].text == "{":
        msg = "contains an object over several lines: write one object {...} a line, or a .json file with a list"
        raise DatasetError(msg, file=file, line=rows[0].line)


def read_json(text: str, file: str, columns: Columns) -> Sequence[Raw]:
    """Return the rows of a JSON list, of an object with one under a usual name, or of an object of columns."""
    return _JsonReader(text, file, columns).rows()


def _row(value: Any, line: int, text: str, faults: Sequence[str]) -> Raw:
    if isinstance(value, dict) and not faults:
        return Raw(values=value, line=line)
    kinds = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    fault = RowError(faults[0] if faults else f"a row is an object {{...}}, not {kinds.get(type(value), 'a number')}")
    return Raw(values=value if isinstance(value, dict) else {}, line=line, fault=fault, text=text)


class _Decoder(json.JSONDecoder):
    """Decodes what Python takes for JSON; ``faults`` is what JSON does not allow of it."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        super().__init__(
            object_pairs_hook=self._object, parse_constant=self._no_number, parse_float=self._float, parse_int=self._int
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
            self.faults.append(f"the key {twice!r} occurs twice: keep one")
        return values

    def _no_number(self, name: str) -> None:
        self.faults.append(f"{name} is no number of JSON: write null or leave the field out")

    def _float(self, text: str) -> float | None:
        number = float(text)
        if math.isfinite(number):
            return number
        self._no_number(text[:20])
        return None

    def _int(self, text: str) -> int | None:
        try:
            return int(text)
        except ValueError:
            # Python refuses to convert more than 4,300 digits.
            self.faults.append("a whole number is too long: write it as a text")
            return None


class _JsonReader:
    """Walks over the outer list or object, so that the line of each row is known and a fault is that of one row."""

    def __init__(self, text: str, file: str, columns: Columns) -> None:
        self._columns = columns
        self._text = text
        self._file = file
        self._at = 0
        self._line = 1
        self._counted = 0

    def rows(self) -> Sequence[Raw]:
        self._skip(0)
        if not self._text.startswith(("[", "{"), self._at):
            self._fail("no list of rows: write [{...}, {...}]" if self._text[self._at :] else "is empty")
        rows: Sequence[Raw] = self._elements() if self._takes("[") else self._members()
        self._end("there is more behind the end of the list: write one list of rows")
        return rows

    def _elements(self) -> list[Raw]:
        rows: list[Raw] = []
        while not self._takes("]"):
            if rows and not (self._takes(",") and self._text[self._at : self._at + 1] != "]"):
                self._fail("no JSON: expected ',' and a further row, or ']'")
            rows.append(self._element())
        return rows

    def _element(self) -> Raw:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        value, text, faults = self._decode()
        return _row(value, self._line, text, faults)

    def _members(self) -> Sequence[Raw]:
        values: dict[str, Any] = {}
        self._takes("{")
        while not self._takes("}"):
            if values and not self._takes(","):
                self._fail("no JSON: expected ',' or '}'")
            name = self._member()
            if not isinstance(name, str) or not self._takes(":"):
                self._fail("no JSON: expected a name in quotation marks and ':'")
            if name in values:
                self._fail(f"the key {name!r} occurs twice: keep one")
            values[name] = self._elements() if name in WRAPPERS and self._takes("[") else self._member()
        if is_trace(values):
            return [Raw(values=values, line=1), *self._further()]
        self._end("there is more behind the first object: name it .jsonl, or write one list of rows [{...}, {...}]")
        try:
            rows = rows_of_mapping(values, self._columns)
            return [row if isinstance(row, Raw) else Raw(values=row) for row in rows]
        except RowError as error:
            raise DatasetError(str(error), file=self._file, field=error.field) from error

    def _further(self) -> Iterator[Raw]:
        """Yield what follows the first object: exporters of spans write one after the other under any name."""
        while self._at < len(self._text):
            yield self._element()

    def _member(self) -> Any:
        start = self._at
        value, _, faults = self._decode()
        if faults:
            self._fail(faults[0], at=start)
        return value

    def _decode(self) -> tuple[Any, str, list[str]]:
        """Return the next value, its text and its faults."""
        start, decoder = self._at, _Decoder()
        try:
            value, end = decoder.raw_decode(self._text, start)
        except json.JSONDecodeError as error:
            msg = f"no JSON: {error.msg} (column {error.colno})"
            raise DatasetError(msg, file=self._file, line=error.lineno) from error
        except RecursionError:
            self._fail(_TOO_DEEP)
        self._skip(end)
        return value, self._text[start:end], decoder.faults

    def _takes(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._skip(self._at + 1)
        return True

    def _skip(self, at: int) -> None:
        match = _SPACE.match(self._text, at)
        self._at = match.end() if match else at

    def _end(self, message: str) -> None:
        if self._at < len(self._text):
            self._fail(message)

    def _fail(self, message: str, *, at: int | None = None) -> NoReturn:
        line = self._text.count("\n", 0, self._at if at is None else at) + 1
        raise DatasetError(message, file=self._file, line=line)
