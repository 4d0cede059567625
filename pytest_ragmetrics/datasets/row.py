"""A row of a data set, as it is read and as it is handed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_ragmetrics.errors import DatasetError
from pytest_ragmetrics.sample import Sample


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetRow:
    """One row of a data set: its sample, or the error that fails the test of this row and of no other.

    ``id`` is unique in its data set, does not change when rows are reordered, and is safe as a test id: short, of ASCII
    letters, digits, ``.``, ``_`` and ``-``. ``sample.id`` is the id as it was written, or this one where none was.
    ``file`` and ``line`` (from 1; where the row begins) say where it stands; both are ``None`` for what was given as
    a list, and ``line`` for a file of columns.
    """

    sample: Sample | None
    id: str
    file: str | None = None
    line: int | None = None
    error: DatasetError | None = None


class RowError(ValueError):
    """A row has no sample; ``field`` is the name under which the value at fault was written."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """A row as it was read: its values; with a ``fault`` as far as there are any, and the text it was found in."""

    values: Mapping[str, Any] | Sample = field(default_factory=dict)
    line: int | None = None
    fault: RowError | None = None
    text: str = ""
