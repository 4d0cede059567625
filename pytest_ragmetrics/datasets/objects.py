"""Rows of what a program holds: lists, columns, data frames and the data sets of other tools, none of them imported."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from pytest_ragmetrics.datasets.columns import WRAPPERS, rows_of_mapping
from pytest_ragmetrics.datasets.row import Raw, RowError
from pytest_ragmetrics.errors import DatasetError
from pytest_ragmetrics.sample import Sample


def read_object(source: Any) -> Sequence[Raw]:
    """Return the rows of an object; raise ``DatasetError`` for what holds none."""
    return [_row(row) for row in _listed(source)]


def _listed(source: Any) -> Iterable[Any]:
    if isinstance(source, Mapping):
        return _of_mapping(source)
    if isinstance(source, (list, tuple)):
        return source
    if isinstance(source, (Sample, bytes, bytearray, type)):
        raise _refused(source)
    for read in (_of_frame, _of_methods, _of_attributes):
        rows = read(source)
        if rows is not None:
            return rows
    if isinstance(source, Iterable):
        return source
    raise _refused(source)


def _refused(source: Any) -> DatasetError:
    kind = "class " + source.__name__ if isinstance(source, type) else type(source).__name__
    return DatasetError(f"a data set is the path of a file or a list of samples or rows, not a {kind}")


def _of_mapping(source: Mapping[str, Any]) -> Iterable[Any]:
    filled = [name for name in WRAPPERS if isinstance(source.get(name), (list, tuple)) and source[name]]
    if len(filled) > 1:
        msg = f"there are rows in {' and in '.join(filled)}: keep one of these lists"
        raise DatasetError(msg)
    if filled:
        rows: Iterable[Any] = source[filled[0]]
        return rows
    try:
        return rows_of_mapping({name: _plain(column) for name, column in source.items()})
    except RowError as error:
        raise DatasetError(str(error), field=error.field) from error


def _of_frame(source: Any) -> Iterable[Any] | None:
    """Return the rows of a pandas frame; what it has no value for is ``None``."""
    if not (hasattr(source, "notna") and hasattr(source, "columns")):
        return None
    rows: list[dict[str, Any]] = source.astype(object).where(source.notna(), None).to_dict("records")
    return rows


def _of_methods(source: Any) -> Iterable[Any] | None:
    for name in ("to_list", "to_dicts", "to_pylist"):
        method = getattr(source, name, None)
        if callable(method):
            rows: Iterable[Any] = method()
            return rows
    return None


def _of_attributes(source: Any) -> Iterable[Any] | None:
    held = [getattr(source, name, None) for name in WRAPPERS]
    lists = [rows for rows in held if isinstance(rows, (list, tuple))]
    if lists:
        return next((rows for rows in lists if rows), [])
    to_pandas = getattr(source, "to_pandas", None)
    return _of_frame(to_pandas()) if callable(to_pandas) else None


def _row(row: Any) -> Raw:
    if isinstance(row, Sample):
        return Raw(values=row)
    values = _values(row)
    if values is None:
        fault = RowError(f"a row is a Sample or a mapping, not {type(row).__name__}")
        return Raw(fault=fault, text=type(row).__name__)
    if not all(isinstance(name, str) for name in values):
        return Raw(fault=RowError("the names of fields must be texts"), text=" ".join(map(str, values)))
    return Raw(values={name: _plain(value) for name, value in values.items()})


def _values(row: Any) -> Mapping[str, Any] | None:
    """Return the values of a row of another tool by name: a model of pydantic, a data class, or a mapping as it is."""
    if isinstance(row, Mapping):
        return row
    if isinstance(row, type):
        return None
    dump = getattr(row, "model_dump", None)
    if callable(dump):
        dumped = dump()
        return dumped if isinstance(dumped, Mapping) else None
    if is_dataclass(row):
        return {f.name: getattr(row, f.name) for f in fields(row)}
    return None


def _plain(value: Any) -> Any:
    """Return an array or a number of numpy as lists and numbers of Python, and a number that is none as ``None``."""
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        value = tolist()
    return None if isinstance(value, float) and math.isnan(value) else value
