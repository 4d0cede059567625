"""From a file, a list or an object of another tool to the rows of a data set: ``read_dataset``."""

from __future__ import annotations

import codecs
import gzip
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import iscoroutinefunction
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.files import absolute, read_data
from pytest_ragmetrics.core.running import innermost
from pytest_ragmetrics.core.sample import FIELDS, Sample, advice
from pytest_ragmetrics.datasets.csv import read_cells, read_csv
from pytest_ragmetrics.datasets.json import read_json, read_jsonl
from pytest_ragmetrics.datasets.rows import (
    NO_COLUMNS,
    WRAPPERS,
    Columns,
    DatasetRow,
    Raw,
    RowError,
    identified,
    rows_of_mapping,
    values_of,
)
from pytest_ragmetrics.datasets.spans import is_trace
from pytest_ragmetrics.datasets.traces import rows_of_traces

# How many rows are read ahead to look for a column.
_FIRST = 256


def read_object(source: Any, columns: Columns = NO_COLUMNS) -> Sequence[Raw]:
    """Return the rows of an object; raise ``DatasetError`` for another kind of object."""
    return [*renamed(map(_row, _listed(source, columns)), columns, None)]


def renamed(raws: Iterable[Raw], columns: Columns, file: str | None) -> Iterator[Raw]:
    """Yield rows with their columns under the names of fields; raise ``DatasetError`` for one that none has."""
    rows = iter(raws)
    first = list(islice(rows, _FIRST if columns.fields and columns.required else 0))
    names = dict.fromkeys(name for raw in first if isinstance(raw.values, Mapping) for name in raw.values)
    if missing := [column for column in columns.fields if names and column not in names]:
        there = ", ".join(map(repr, names))[:200]
        raise DatasetError(f"columns names {missing[0]!r}, which no row has; there are {there}", file=file)
    for raw in chain(first, rows):
        if columns.fields and isinstance(raw.values, Mapping):
            values = columns.renamed(raw.values)
            read, fault = read_cells({name: values[name] for name in columns.fields.values() if name in values})
            yield replace(raw, values={**values, **read}, fault=raw.fault or fault)
        else:
            yield raw


def _listed(source: Any, columns: Columns) -> Iterable[Any]:
    if isinstance(source, Mapping):
        if is_trace(source):
            return [source]
        try:
            return rows_of_mapping({name: _plain(column) for name, column in source.items()}, columns)
        except RowError as error:
            raise DatasetError(str(error), field=error.field) from error
    if isinstance(source, (list, tuple)):
        return source
    is_data = not isinstance(source, (Sample, bytes, bytearray, type))
    rows = _rows_of(source) if is_data else None
    if rows is not None:
        return rows
    if is_data and isinstance(source, Iterable):
        return source
    kind = "class " + source.__name__ if isinstance(source, type) else type(source).__name__
    raise DatasetError(f"a data set is the path of a file or a list of samples or rows, not {kind}")


def _rows_of(source: Any) -> Iterable[Any] | None:
    """Return the rows of a frame, a table or a data set of another tool, known by what it has; texts as cells of CSV.

    Frames of polars, tables of Arrow and data sets of Hugging Face may have been read from a file of CSV, as those of
    pandas.
    """
    if hasattr(source, "notna") and hasattr(source, "columns"):
        # A value that the frame lacks becomes None.
        return map(row_of_cells, source.astype(object).where(source.notna(), None).to_dict("records"))
    for name in ("to_list", "to_dicts", "to_pylist"):
        if callable(method := getattr(source, name, None)):
            rows: Iterable[Any] = method()
            is_table = hasattr(source, "columns") or hasattr(source, "column_names")
            return map(row_of_cells, rows) if is_table else rows
    lists = [held for name in WRAPPERS if isinstance(held := getattr(source, name, None), (list, tuple))]
    if lists:
        return next(filter(None, lists), [])
    to_pandas = getattr(source, "to_pandas", None)
    return _rows_of(to_pandas()) if callable(to_pandas) else None


def row_of_cells(row: Any) -> Raw:
    """Return a row of a table, its texts read as cells of CSV."""
    raw = _row(row)
    if raw.fault or isinstance(raw.values, Sample):
        return raw
    values, fault = read_cells(raw.values)
    return replace(raw, values=values, fault=fault, text=" ".join(map(str, values.values())) if fault else "")


def _row(row: Any) -> Raw:
    if isinstance(row, Raw):
        return row
    if isinstance(row, Sample):
        return Raw(values=row)
    values = values_of(row)
    if values is None:
        fault = RowError(f"a row is a Sample or a mapping, not {type(row).__name__}{advice(row)}")
        return Raw(fault=fault, text=type(row).__name__)
    if not all(isinstance(name, str) for name in values):
        return Raw(fault=RowError("the names of fields must be texts"), text=" ".join(map(str, values)))
    return Raw(values={name: _plain(value) for name, value in values.items()})


def _plain(value: Any) -> Any:
    """Return an array or a number of numpy as lists and numbers of Python, and NaN as ``None``."""
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        value = tolist()
    return None if isinstance(value, float) and math.isnan(value) else value


#: A predicate on the sample, or the values that its fields or those of its metadata must have.
Where = Callable[[Sample], bool] | Mapping[str, object]

_SHOWN = 5


def selected(rows: Sequence[DatasetRow], *, where: Where | None, limit: int | None) -> tuple[DatasetRow, ...]:
    """Return the first ``limit`` rows that ``where`` takes, broken ones among them; raise ``DatasetError`` for none."""
    file = rows[0].file
    if where is None:
        return tuple(rows[:limit])
    if isinstance(where, Mapping):
        known = set(FIELDS).union(*(row.sample.metadata for row in rows if row.sample is not None))
        unknown = [name for name in where if name not in known]
        if unknown:
            raise DatasetError(f"where asks for the field {unknown[0]!r}, which no row has", file=file)
        taken = [row for row in rows if row.sample is None or _matches(row.sample, where)]
    elif _is_predicate(where):
        taken = [row for row in rows if row.sample is None or _accepts(where, row, row.sample)]
    else:
        kind = type(where).__name__
        msg = f"where is of type {kind}: give a function of the sample, or a mapping from fields to values"
        raise DatasetError(msg, file=file)
    if not taken:
        raise DatasetError(f"where takes no row of {len(rows)}{_instead(where, rows)}", file=file)
    return tuple(taken[:limit])


def _is_predicate(where: object) -> bool:
    # A coroutine is always true.
    return callable(where) and not iscoroutinefunction(where)


def _matches(sample: Sample, where: Mapping[str, object]) -> bool:
    for name, wanted in where.items():
        listed = wanted if isinstance(wanted, (list, tuple, set, frozenset)) else ()
        if not any(_value(sample, name) == item for item in (wanted, *listed)):
            return False
    return True


def _value(sample: Sample, name: str) -> Any:
    return getattr(sample, name) if name in FIELDS else sample.metadata.get(name)


def _accepts(where: Callable[[Sample], bool], row: DatasetRow, sample: Sample) -> bool:
    try:
        return bool(where(sample))
    except Exception as error:
        msg = f"row {row.id}: where raised {type(error).__name__}: {masked(str(error))[:200]!r}"
        raise DatasetError(msg, file=row.file, line=row.line) from error


def _instead(where: Where, rows: Sequence[DatasetRow]) -> str:
    """Return which values there are of the fields asked for."""
    if not isinstance(where, Mapping):
        return ""
    parts = []
    for name in where:
        values = dict.fromkeys(repr(_value(row.sample, name))[:40] for row in rows if row.sample is not None)
        more = ", ..." if len(values) > _SHOWN else ""
        parts.append(f"{name} is {', '.join(list(values)[:_SHOWN])}{more}")
    return f"; {'; '.join(parts)}"


KINDS: Mapping[str, Callable[[str, str, Columns], Sequence[Raw]]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json,
    ".csv": read_csv,
}
_GZIP = b"\x1f\x8b"


def read_file(path: Path, file: str, columns: Columns) -> Sequence[Raw]:
    """Return the rows of a file, which messages call ``file``; raise ``DatasetError`` when it cannot be read."""
    name = path.name.lower()
    kind = KINDS.get(Path(name.removesuffix(".gz")).suffix)
    if kind is None:
        raise DatasetError(f"a data set is a file that ends in {', '.join(KINDS)} (or these with .gz)", file=file)
    try:
        data = read_data(path, packed=name.endswith(".gz"))
    except FileNotFoundError as error:
        hint = "in rag_dataset and rag_evaluate a path starts at the folder of the test file"
        msg = f"there is no such file; {hint}" if innermost() else "there is no such file"
        raise DatasetError(msg, file=file) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DatasetError(f"ends in .gz and cannot be unpacked: {error}", file=file) from error
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=file) from error
    check_start(data, file)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        msg = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        raise DatasetError(msg, file=file, line=line) from error
    return [*renamed(rows_of_traces(kind(text, file, columns)), columns, file)]


def check_start(data: bytes, file: str) -> None:
    """Raise ``DatasetError`` for the first bytes of a file that is no UTF-8."""
    if data.startswith(_GZIP):
        raise DatasetError("is packed by gzip: let its name end in .gz", file=file)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:4]:
        raise DatasetError("is UTF-16 or UTF-32: save it as UTF-8", file=file, line=1)


# A longer name is most likely the content of a file, given in place of its name.
_LONG = 500


def read_dataset(
    source: Any, *, base: Path, limit: int | None = None, where: Where | None = None, columns: Columns = NO_COLUMNS
) -> tuple[DatasetRow, ...]:
    """Return the rows of a data set in their order: those that ``where`` takes, the first ``limit`` of them.

    ``source`` is the path of a file, relative to the folder ``base`` (``.jsonl``, ``.ndjson``, ``.json`` or ``.csv``,
    UTF-8, also with ``.gz``), a list of samples or of rows, a mapping of columns, a data frame, or a data set of
    another tool (what has ``to_list()``, ``samples``, ``test_cases``, ``goldens`` or ``to_pandas()``). Rows have the
    names of :class:`Sample` or those of ragas, DeepEval and eval-ruby, unless ``columns`` names others. Spans of
    OpenTelemetry, Phoenix or Langfuse become a row for each trace.

    ``where`` is a predicate on the sample, or a mapping from fields of the sample or its metadata to the value they
    must have; a list, tuple or set matches any of its values. A broken row is always taken, with its ``error``.

    Raises ``DatasetError`` with file, line and field if no rows can be read: the file is missing, empty, not UTF-8, of
    another kind or without a header, ``limit`` is below 1, ``where`` raises, names a field that no row has, or takes no
    row.

    >>> rows = read_dataset([{"id": "q 1", "question": "Why?"}, {"id": 2, "answer": 4}], base=Path())
    >>> [(row.id, row.error is None) for row in rows]
    [('q-1-0e7f34f7', True), ('2', False)]
    >>> print(rows[1].error)
    field 'answer': row 2: response must be a str, not int
    """
    check_limit(limit)
    raws, file = read_raws(source, base=base, columns=columns)
    return selected(identified(raws, file), where=where, limit=limit)


def check_limit(limit: int | None) -> None:
    """Raise ``DatasetError`` for what is no number of rows."""
    if limit is not None and (type(limit) is not int or limit < 1):
        raise DatasetError(f"limit is {limit!r}: give the number of rows to take, at least 1")


def read_raws(source: Any, *, base: Path, columns: Columns = NO_COLUMNS) -> tuple[Sequence[Raw], str | None]:
    """Return the rows of a data set as they are written, and what messages call its file; at least one row."""
    file: str | None = None
    if isinstance(source, (str, os.PathLike)):
        file = shown_path(base / source)
        raws = read_file(base / source, file, columns)
    else:
        # Not in read_object: a batch of a cluster has a row for each of its rows.
        raws = [*rows_of_traces(read_object(source, columns))]
    if not raws:
        raise DatasetError("there are no rows: give at least one", file=file)
    return raws, file


def shown_path(path: Path) -> str:
    """Return how messages name a file: from the current folder where it is inside, else in full."""
    whole, here = absolute(path), Path.cwd()
    name = str(whole.relative_to(here) if here in whole.parents else whole)
    return name if name.isprintable() and len(name) < _LONG else f"{name[:_LONG]!r}..."
