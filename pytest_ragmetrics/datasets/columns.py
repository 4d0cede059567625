"""Rows that come as columns, as data frames and Hugging Face data sets are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_ragmetrics.datasets.row import RowError
from pytest_ragmetrics.datasets.shapes import KNOWN

#: Under which names other tools keep the list of rows in an object.
WRAPPERS = ("samples", "rows", "data", "test_cases", "goldens")


def rows_of_mapping(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows of ``{"question": [...], "answer": [...]}``; raise ``RowError`` naming the column at fault."""
    if not KNOWN.intersection(values) or not any(isinstance(column, (list, tuple)) for column in values.values()):
        msg = f"no list of rows: write [{{...}}, {{...}}], or the list as one of {', '.join(WRAPPERS)}"
        raise RowError(msg)
    length: int | None = None
    for name, column in values.items():
        if not isinstance(column, (list, tuple)):
            kind = type(column).__name__
            msg = f"must be a list with a value for each row, not {kind}; or write a list of rows [{{...}}, {{...}}]"
            raise RowError(msg, field=name)
        length = len(column) if length is None else length
        if len(column) != length:
            msg = f"has {len(column)} values, the first column {length}: give one for each row (null for none)"
            raise RowError(msg, field=name)
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
