"""Rows of JSON: one object a line, or a list of them, each with the line where it begins."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from pytest_ragmetrics.datasets.rows import WRAPPERS, Raw, RowError, rows_of_mapping
from pytest_ragmetrics.errors import DatasetError

_SPACE = re.compile(r"[ \t\r\n]*")
# No setting of the interpreter lets int() take fewer.
_DIGITS = 640
# Files that were put together have marks of byte order between their lines.
_BLANK = " \t\r\n\ufeff"


def read_jsonl(text: str, file: str) -> Sequence[Raw]:
    """Return the rows of a text with one JSON object a line; blank lines do not count."""
    # Only \n ends a line: a JSON string may hold the other characters that end one for str.splitlines().
    lines = ((number, line.strip(_BLANK)) for number, line in enumerate(text.split("\n"), 1))
    rows = [_row(line, number) for number, line in lines if line]
    if all(row.fault for row in rows):
        if text.lstrip(_BLANK).startswith("["):
            msg = "holds a JSON list: name it .json, or write one object {...} a line"
            raise DatasetError(msg, file=file)
        if rows and rows[0].text == "{":
            msg = "holds an object over several lines: write one object {...} a line, or a .json file with a list"
            raise DatasetError(msg, file=file, line=rows[0].line)
    return rows


def read_json(text: str, file: str) -> Sequence[Raw]:
    """Return the rows of a JSON list, of an object that holds one under a usual name, or of an object of columns."""
    return _JsonReader(text, file).rows()


def _row(line: str, number: int) -> Raw:
    try:
        value = _STRICT.decode(line)
    except json.JSONDecodeError as error:
        return Raw(line=number, text=line, fault=RowError(f"no JSON: {error.msg} (column {error.colno})"))
    except RecursionError as error:
        return Raw(line=number, text=line, fault=RowError(_said(error)))
    except ValueError as error:
        return _refused(line, number, error)
    return _checked(value, number, line)


def _refused(line: str, number: int, error: ValueError) -> Raw:
    """Return the row that only the strict reading refuses, with its values, so that it keeps its id."""
    try:
        value = _LENIENT.decode(line)
    except (ValueError, RecursionError):
        value = None
    return _checked(value, number, line, RowError(_said(error)))


def _checked(value: Any, line: int, text: str, fault: RowError | None = None) -> Raw:
    if isinstance(value, dict):
        return Raw(values=value, line=line, fault=fault, text=text if fault else "")
    kind = f"a row is an object {{...}}, not {_kind(value)}"
    return Raw(line=line, text=text, fault=fault or RowError(kind))


class _JsonReader:
    """Walks over the outer list or object, so that the line of each row is known, and a fault inside one is its own."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._at = 0
        self._line = 1
        self._counted = 0

    def rows(self) -> Sequence[Raw]:
        self._skip()
        rows: Sequence[Raw]
        if self._takes("["):
            rows = self._elements()
        elif self._takes("{"):
            rows = self._members()
        else:
            self._fail("no list of rows: write [{...}, {...}]" if self._text[self._at :] else "is empty")
        self._end("there is more behind the end of the list: write one list of rows")
        return rows

    def _elements(self) -> list[Raw]:
        rows: list[Raw] = []
        while not self._takes("]"):
            if rows and not (self._takes(",") and self._text[self._at : self._at + 1] != "]"):
                self._fail("no JSON: expected ',' and a further row, or ']'")
            start, line = self._at, self._here()
            try:
                value, end = _STRICT.raw_decode(self._text, start)
                fault = None
            except json.JSONDecodeError as error:
                raise self._broken(error) from error
            except (ValueError, RecursionError) as error:
                value, end = self._lenient(start)
                fault = RowError(_said(error))
            rows.append(_checked(value, line, self._text[start:end], fault))
            self._skip(end)
        return rows

    def _members(self) -> Sequence[Raw]:
        values: dict[str, Any] = {}
        wrapped: dict[str, list[Raw]] = {}
        while not self._takes("}"):
            if (values or wrapped) and not self._takes(","):
                self._fail("no JSON: expected ',' or '}'")
            name = self._decoded()
            if not isinstance(name, str) or not self._takes(":"):
                self._fail("no JSON: expected a name in quotation marks and ':'")
            if name in values or name in wrapped:
                self._fail(f"the key {name!r} stands twice: keep one")
            if name in WRAPPERS and self._takes("["):
                wrapped[name] = self._elements()
            else:
                values[name] = self._decoded()
        self._end("there is more behind the first object: name it .jsonl, or write one list of rows [{...}, {...}]")
        return self._chosen(wrapped) if wrapped else self._of_mapping(values)

    def _chosen(self, wrapped: dict[str, list[Raw]]) -> list[Raw]:
        filled = [name for name, rows in wrapped.items() if rows]
        if len(filled) > 1:
            self._fail(f"there are rows in {' and in '.join(filled)}: keep one of these lists")
        return wrapped[filled[0]] if filled else []

    def _of_mapping(self, values: dict[str, Any]) -> list[Raw]:
        try:
            return [Raw(values=row) for row in rows_of_mapping(values)]
        except RowError as error:
            raise DatasetError(str(error), file=self._file, field=error.field) from error

    def _decoded(self) -> Any:
        try:
            value, end = _STRICT.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise self._broken(error) from error
        except (ValueError, RecursionError) as error:
            self._fail(_said(error), error)
        self._skip(end)
        return value

    def _lenient(self, start: int) -> tuple[Any, int]:
        """Return an element that is JSON, but for what only the strict reading refuses, and where it ends."""
        try:
            return _LENIENT.raw_decode(self._text, start)
        except json.JSONDecodeError as error:
            raise self._broken(error) from error
        except (ValueError, RecursionError) as error:
            self._fail(_said(error), error)

    def _end(self, message: str) -> None:
        if self._at < len(self._text):
            self._fail(message)

    def _takes(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._skip(self._at + 1)
        return True

    def _skip(self, at: int = 0) -> None:
        match = _SPACE.match(self._text, at)
        self._at = match.end() if match else at

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _fail(self, message: str, cause: Exception | None = None) -> NoReturn:
        raise DatasetError(message, file=self._file, line=self._text.count("\n", 0, self._at) + 1) from cause

    def _broken(self, error: json.JSONDecodeError) -> DatasetError:
        return DatasetError(f"no JSON: {error.msg} (column {error.colno})", file=self._file, line=error.lineno)


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    # What else int() says is advice for programmers.
    too_long = str(error).startswith("Exceeds the limit")
    return "a whole number is too long: write it as a text" if too_long else str(error)


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        rest = dict.fromkeys(values, 0)
        for name, _ in pairs:
            rest[name] += 1
        twice = next(name for name, count in rest.items() if count > 1)
        msg = f"the key {twice!r} stands twice: keep one"
        raise ValueError(msg)
    return values


def _no_number(name: str) -> float:
    msg = f"{name} is no number of JSON: write null or leave the field out"
    raise ValueError(msg)


def _finite(text: str) -> float:
    return number if math.isfinite(number := float(text)) else _no_number(text[:20])


def _whole(text: str) -> int | None:
    # int() refuses long ones; no value is kept of these.
    return int(text) if len(text) < _DIGITS else None


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_finite)
_LENIENT = json.JSONDecoder(parse_int=_whole)
