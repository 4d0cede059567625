"""Which rows of a data set are taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from inspect import iscoroutinefunction
from typing import Any

from pytest_ragmetrics.datasets.row import DatasetRow
from pytest_ragmetrics.errors import DatasetError
from pytest_ragmetrics.sample import Sample

#: A predicate on the sample, or the values that its fields or those of its metadata must have.
Where = Callable[[Sample], bool] | Mapping[str, object]

_FIELDS = frozenset(f.name for f in fields(Sample))
_SHOWN = 5


def selected(rows: Sequence[DatasetRow], *, where: Where | None, limit: int | None) -> tuple[DatasetRow, ...]:
    """Return the first ``limit`` rows that ``where`` takes, broken ones among them; raise ``DatasetError`` for none."""
    file = rows[0].file
    if where is None:
        return tuple(rows[:limit])
    if isinstance(where, Mapping):
        _check(where, rows)
        taken = [row for row in rows if row.sample is None or _matches(row.sample, where)]
    elif _is_predicate(where):
        taken = [row for row in rows if row.sample is None or _accepts(where, row, row.sample)]
    else:
        msg = f"where is a {type(where).__name__}: give a function of the sample, or a mapping from fields to values"
        raise DatasetError(msg, file=file)
    if not taken:
        msg = f"where takes none of {len(rows)} rows{_instead(where, rows)}"
        raise DatasetError(msg, file=file)
    return tuple(taken[:limit])


def _is_predicate(where: object) -> bool:
    # What a coroutine function returns is always true.
    return callable(where) and not iscoroutinefunction(where)


def _check(where: Mapping[str, object], rows: Sequence[DatasetRow]) -> None:
    """Raise ``DatasetError`` for a field that no row has; it is misspelt."""
    for name in where:
        if name not in _FIELDS and not any(row.sample is not None and name in row.sample.metadata for row in rows):
            msg = f"where asks for the field {name!r}, which no row has"
            raise DatasetError(msg, file=rows[0].file)


def _matches(sample: Sample, where: Mapping[str, object]) -> bool:
    return all(_equals(_value(sample, name), wanted) for name, wanted in where.items())


def _value(sample: Sample, name: str) -> Any:
    return getattr(sample, name) if name in _FIELDS else sample.metadata.get(name)


def _equals(value: Any, wanted: object) -> bool:
    if isinstance(wanted, (list, tuple, set, frozenset)):
        return any(value == item for item in wanted) or value == wanted
    return bool(value == wanted)


def _accepts(where: Callable[[Sample], bool], row: DatasetRow, sample: Sample) -> bool:
    try:
        return bool(where(sample))
    except Exception as error:
        msg = f"row {row.id}: where raised {type(error).__name__}: {str(error)[:200]!r}"
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
