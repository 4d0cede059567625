"""From a file, a list or an object of another tool to the rows of a data set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_ragmetrics.datasets.files import read_file
from pytest_ragmetrics.datasets.identity import identified
from pytest_ragmetrics.datasets.objects import read_object
from pytest_ragmetrics.datasets.row import DatasetRow, Raw
from pytest_ragmetrics.datasets.selection import Where, selected
from pytest_ragmetrics.errors import DatasetError

# What is longer is no name of a file, but the text that should stand in one.
_LONG = 500


def read_dataset(
    source: Any, *, base: Path, limit: int | None = None, where: Where | None = None
) -> tuple[DatasetRow, ...]:
    """Return the rows of a data set in their order: those that ``where`` takes, the first ``limit`` of them.

    ``source`` is the path of a file, relative to the folder ``base`` (``.jsonl``, ``.ndjson``, ``.json`` or ``.csv``,
    UTF-8, also with ``.gz``), a list of samples or of rows, a mapping of columns, a data frame, or a data set of
    another tool (what has ``to_list()``, ``samples``, ``test_cases``, ``goldens`` or ``to_pandas()``). Rows have the
    names of :class:`Sample` or those of ragas, DeepEval and eval-ruby.

    ``where`` is a predicate on the sample, or a mapping from fields of the sample or its metadata to the value they
    must have; a list, tuple or set stands for any of its values. A broken row is always taken, with its ``error``.

    Raises ``DatasetError`` with file, line and field where there are no rows to speak of: a file that is missing,
    empty, not UTF-8, of another kind or without a header, a ``limit`` below 1, a ``where`` that raises, names a field
    that no row has, or takes no row.

    >>> rows = read_dataset([{"id": "q 1", "question": "Why?"}, {"id": 2, "answer": 4}], base=Path())
    >>> [(row.id, row.error is None) for row in rows]
    [('q-1-0e7f34f7', True), ('2', False)]
    >>> print(rows[1].error)
    field 'answer': row 2: response must be a str, not int
    """
    _check_limit(limit)
    file, raws = _read(source, base)
    if not raws:
        msg = "there are no rows: give at least one"
        raise DatasetError(msg, file=file)
    return selected(identified(raws, file), where=where, limit=limit)


def _check_limit(limit: Any) -> None:
    if limit is not None and (type(limit) is not int or limit < 1):
        msg = f"limit is {limit!r}: give the number of rows to take, at least 1"
        raise DatasetError(msg)


def _read(source: Any, base: Path) -> tuple[str | None, Sequence[Raw]]:
    if not isinstance(source, (str, os.PathLike)):
        return None, read_object(source)
    path = base / source
    file = _shown(path)
    return file, read_file(path, file)


def _shown(path: Path) -> str:
    """Return how messages name a file: from the current folder where it is inside, else in full."""
    whole = os.path.abspath(path)  # noqa: PTH100 - the folder as the user knows it, links and all
    name = os.path.relpath(whole) if Path.cwd() in Path(whole).parents else whole
    return name if name.isprintable() and len(name) < _LONG else f"{name[:_LONG]!r}..."
