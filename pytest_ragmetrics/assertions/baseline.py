"""The scores of an earlier run, read from a file that was committed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, cast

from pytest_ragmetrics.evaluation.comparison import Column, Entry, sample_key
from pytest_ragmetrics.files.json_file import read_json
from pytest_ragmetrics.report.documents import DocumentError, read_document
from pytest_ragmetrics.result import Direction

# So many files are kept in mind, each as it was when it was read.
_FILES = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """The scores of an earlier run by metric: ``columns`` by name, ``source`` the file they were read from."""

    source: Path
    columns: Mapping[str, Column]


def read_baseline(file: str | Path) -> Baseline:
    """Return the scores in a JSON file that ``--rag-json`` or :meth:`Evaluation.to_json` wrote.

    Samples are known by :func:`~pytest_ragmetrics.evaluation.comparison.sample_key`. A sample that several tests scored
    with one metric stands once where the scores are the same, and is ambiguous where they are not. The file is read
    once, and again when it has changed. Raises :class:`DocumentError`, a ``RagMetricsError``, naming the file and the
    place in it.
    """
    path = Path(file)
    try:
        state = path.stat()
    except OSError as error:
        raise DocumentError(error.strerror or str(error), file=path) from error
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=_FILES)
def _read(path: Path, changed: int, size: int) -> Baseline:
    del changed, size  # they tell apart what the file held before
    try:
        data = read_json(path)
    except OSError as error:
        raise DocumentError(error.strerror or str(error), file=path) from error
    except ValueError as error:
        msg = f"not JSON: {error}; give a file that --rag-json or Evaluation.to_json wrote"
        raise DocumentError(msg, file=path) from error
    if isinstance(data, dict) and "rows" in data:
        return Baseline(source=path, columns=_Table(path).columns(data))
    if isinstance(data, dict) and "tests" in data:
        return Baseline(source=path, columns=_columns_of_run(path))
    msg = "neither the result of a run nor a table; give a file that --rag-json or Evaluation.to_json wrote"
    raise DocumentError(msg, file=path)


def _columns_of_run(path: Path) -> dict[str, Column]:
    found: dict[str, list[tuple[str, Entry]]] = {}
    better: dict[str, Direction] = {}
    for test in read_document(path)["tests"]:
        for record in test["records"]:
            better[record["metric"]] = record["better"]
            entry = Entry(score=record["score"], judge=record["judge"])
            found.setdefault(record["metric"], []).append((sample_key(record["sample"]), entry))
    return {metric: _column(metric, better[metric], entries) for metric, entries in found.items()}


def _column(metric: str, better: Direction, entries: Iterable[tuple[str, Entry]]) -> Column:
    first: dict[str, Entry] = {}
    ambiguous = set()
    for key, entry in entries:
        if first.setdefault(key, entry) != entry:
            ambiguous.add(key)
    return Column(metric=metric, better=better, entries=first, ambiguous=frozenset(ambiguous))


class _Table:
    """Reads what :meth:`Evaluation.to_json` writes; ``path`` is the file that errors name."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def columns(self, data: Mapping[str, Any]) -> dict[str, Column]:
        """Return the columns of the table."""
        rows = [self._mapping(row, f"rows[{index}]") for index, row in enumerate(self._list(data["rows"], "rows"))]
        better = self._mapping(data.get("better", {}), "better")
        metrics = [str(metric) for metric in self._list(data.get("metrics"), "metrics")]
        return {metric: self._column(metric, better.get(metric, "higher"), rows) for metric in metrics}

    def _column(self, metric: str, better: object, rows: list[Mapping[str, Any]]) -> Column:
        if better not in ("higher", "lower"):
            self._fail(f"better.{metric}", "'higher' or 'lower'", better)
        entries = [self._entry(metric, row, f"rows[{index}]") for index, row in enumerate(rows)]
        return _column(metric, better, entries)

    def _entry(self, metric: str, row: Mapping[str, Any], place: str) -> tuple[str, Entry]:
        sample = self._mapping(row.get("sample"), f"{place}.sample")
        score = self._mapping(row.get("scores"), f"{place}.scores").get(metric)
        if score is not None and not _is_number(score):
            self._fail(f"{place}.scores.{metric}", "a number", score)
        judge = self._mapping(row.get("judges", {}), f"{place}.judges").get(metric)
        if judge is not None and not isinstance(judge, str):
            self._fail(f"{place}.judges.{metric}", "a text", judge)
        return sample_key(sample), Entry(score=None if score is None else float(score), judge=judge)

    def _mapping(self, value: object, place: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self._fail(place, "an object", value)
        return cast("Mapping[str, Any]", value)

    def _list(self, value: object, place: str) -> list[Any]:
        if not isinstance(value, list):
            self._fail(place, "a list", value)
        return value

    def _fail(self, place: str, wanted: str, value: object) -> NoReturn:
        msg = f"{place} must be {wanted}, not {json.dumps(value)[:60]}"
        raise DocumentError(msg, file=self._path)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
