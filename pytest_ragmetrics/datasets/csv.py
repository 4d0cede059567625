"""Rows of CSV: a header with the names of the fields, and the line where each row begins."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.files import largest, lines_of
from pytest_ragmetrics.core.messages import is_spoken
from pytest_ragmetrics.core.sample import ALIASES, TALKS, fields_written
from pytest_ragmetrics.datasets.rows import CONVERSATION, KNOWN, Columns, Raw, RowError

_DELIMITERS = (",", ";", "\t")
# Characters in which a header ends.
_HEAD = 1 << 20
_LISTS = ("retrieved_contexts", "reference_contexts")
_CONTEXTS = frozenset([*_LISTS, *(alias for name in _LISTS for alias in ALIASES[name]), "ground_truths"])
_MAYBE_LISTS = _CONTEXTS | {*TALKS, "reference_topics", "must_contain", "must_not_contain", "criteria", "rubric"}
_QUESTIONS = frozenset(["user_input", *ALIASES["user_input"]])
_ALWAYS_LISTS = frozenset(["retrieved_context_ids", "reference_context_ids", *CONVERSATION]) - _MAYBE_LISTS
_OBJECTS = frozenset(["metadata", "additional_metadata"])
_INSTEAD: Mapping[type, str] = {
    list: 'write a list as JSON: ["...", "..."]',
    dict: 'write it as a JSON object: {"name": "value"}',
}
# A list of texts, or of objects as JSON or Python writes them; a context that begins with "[1]" is a text.
_LIST_BEGINS = re.compile(r"""\s*\[\s*(?:["'{]|[A-Za-z_]\w*\(\w+=)""")


def read_csv(text: str, file: str, columns: Columns) -> Sequence[Raw]:
    """Return the rows of a text with a header and ``,``, ``;`` or tabs between the cells, in quotes where needed.

    A list is written as JSON in its cell; a text in the cell of a list of contexts, also one such as ``[1] Moths fly``,
    is one context, and a question may be a list of messages. An empty cell is a missing value, and numbers stay text.
    """
    return list(iterate_csv(io.StringIO(text, newline=""), file, columns))


def iterate_csv(stream: TextIO, file: str, columns: Columns) -> Iterator[Raw]:
    """Yield the rows of a stream that can be read twice, as :func:`read_csv`.

    A byte that is not UTF-8 and was read as a lone surrogate is a fault of its row.
    """
    # A cell may have any length; the limit belongs to the whole process and is put back.
    before = csv.field_size_limit(min(largest(), 2**31 - 1))
    try:
        header, delimiter, first = _header(stream.read(_HEAD), file, columns)
        stream.seek(0)
        reader = csv.reader(lines_of(stream), delimiter=delimiter, strict=True)
        yield from _rows(reader, header, file, first)
    finally:
        csv.field_size_limit(before)


def _rows(reader: Any, header: Sequence[str], file: str, first: int) -> Iterator[Raw]:
    """Yield the rows below the line ``first``."""
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error):
                msg = "a quotation mark is opened here and never closed: close it, or write it twice inside a cell"
                raise DatasetError(msg, file=file, line=line) from error
            fault = RowError(f"no CSV: {error}; write a quotation mark inside a quoted cell twice")
            yield Raw(line=line, text=str(line), fault=fault)
            continue
        if line > first and cells:
            yield _row(cells, header, line)


def _row(cells: list[str], header: Sequence[str], line: int) -> Raw:
    text = "\n".join(cells)
    if misfit := _misfit(cells, header):
        return Raw(line=line, text=text, fault=RowError(misfit))
    values, fault = read_cells({name: cell or None for name, cell in zip(header, cells, strict=False)})
    # A column without a name is the index that data frames write.
    values.pop("", None)
    return Raw(values=values, line=line, fault=fault, text=text)


def read_cells(cells: Mapping[str, Any]) -> tuple[dict[str, Any], RowError | None]:
    """Return the values of the cells of a row, lists and objects from their texts, and the first that is at fault."""
    values = dict(cells)
    fault: RowError | None = None
    for name, cell in cells.items():
        if isinstance(cell, str):
            values[name], wrong = _value(name, cell)
            fault = fault or (RowError(wrong, field=name) if wrong else None)
    return values, fault


def _misfit(cells: list[str], header: Sequence[str]) -> str | None:
    """Return why cells are no row under the header."""
    counted = f"has {len(cells)} {'cell' if len(cells) == 1 else 'cells'}, the header {len(header)}"
    if len(cells) < len(header):
        return f"{counted}: write one for each field, an empty one for a missing value"
    if any(cells[len(header) :]):
        return f"{counted}: put cells with the delimiter in them into quotes"
    return "has a NUL character in it, which no text has: take it out" if any("\0" in cell for cell in cells) else None


def _value(name: str, cell: str) -> tuple[Any, str | None]:
    """Return the value of a cell, and what is wrong with it."""
    if name in _MAYBE_LISTS and cell.lstrip().startswith("["):
        value = _parsed(cell)
        is_text = not isinstance(value, list) and not _LIST_BEGINS.match(cell)
        return (cell, None) if is_text else _of_kind(list, value)
    if name in _QUESTIONS and cell.lstrip().startswith("["):
        value = _parsed(cell)
        return value if is_spoken(value) else cell, None
    if name in _ALWAYS_LISTS or name in _OBJECTS:
        kind = dict if name in _OBJECTS and not cell.lstrip().startswith("[") else list
        return _of_kind(kind, _parsed(cell)) if cell.strip() else (None, None)
    return cell, None


def _of_kind(kind: type, value: Any) -> tuple[Any, str | None]:
    return value, None if isinstance(value, kind) else _INSTEAD[kind]


def _parsed(cell: str) -> Any:
    """Return a value of JSON, or of Python exactly as it writes it (data frames do; arrays run texts together)."""
    with suppress(ValueError, RecursionError):
        return json.loads(cell)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(cell.strip())
        return value if repr(value) == cell.strip() else None
    return None


def _header(text: str, file: str, columns: Columns) -> tuple[Sequence[str], str, int]:
    """Return the names of the columns, the delimiter that shows them, and the line where they end."""
    lines = {delimiter: _first_line(text, delimiter) for delimiter in _DELIMITERS}
    names_known = KNOWN.union(columns.fields)
    known = {delimiter: len(names_known.intersection(names)) for delimiter, (names, _) in lines.items()}
    most = max(known.values())
    if not any(names for names, _ in lines.values()):
        if text.strip():
            msg = "the header is no CSV: close its quotation marks, and take out characters that no text has"
            raise DatasetError(msg, file=file, line=1)
        msg = "there are no rows: write a header with the names of the fields and at least one row"
        raise DatasetError(msg, file=file)
    if not most:
        hint = f"; {found}" if (found := fields_written(lines[","][0])) else ""
        msg = f"the first line is no header with names of fields such as user_input, response, retrieved_contexts{hint}"
        raise DatasetError(msg, file=file, line=lines[","][1])
    best = [delimiter for delimiter in _DELIMITERS if known[delimiter] == most]
    if len({tuple(lines[delimiter][0]) for delimiter in best}) > 1:
        msg = f"the cells may be divided by {' or '.join(map(repr, best))}: use one of them"
        raise DatasetError(msg, file=file, line=lines[","][1])
    names, line = lines[best[0]]
    for name in names:
        if name and names.count(name) > 1:
            raise DatasetError("occurs twice in the header: keep one", file=file, line=line, field=name)
    return names, best[0], line


def _first_line(text: str, delimiter: str) -> tuple[list[str], int]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = next((cells for cells in reader if cells), [])
    except csv.Error:
        return [], 1
    return [name.strip() for name in names], reader.line_num
