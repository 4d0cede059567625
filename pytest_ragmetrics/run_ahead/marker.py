"""The marker ``rag_dataset``: read, checked, and turned into one test per row."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.datasets import DatasetRow, read_dataset
from pytest_ragmetrics.errors import DatasetError
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.registry import metric_for, metric_named

FIXTURE = "rag_sample"
_EXAMPLE = '@pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness"])'


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One row of a data set, as the test of this row gets it."""

    row: DatasetRow
    metrics: tuple[Metric, ...]


class Datasets:
    """The data sets of a run, each read once; ``faults`` are the markers that cannot be used."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._read: dict[object, tuple[DatasetRow, ...]] = {}

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Make one test per row of the data set that the nearest marker names."""
        definition = metafunc.definition
        marker = definition.get_closest_marker("rag_dataset")
        if marker is None:
            return
        try:
            cases = self._cases(marker, definition.path.parent)
            _check_function(metafunc)
        except (ValueError, TypeError, DatasetError) as error:
            self.faults.append(f"{definition.nodeid}: marker rag_dataset: {error}")
            return
        metafunc.parametrize(FIXTURE, [pytest.param(case, id=case.row.id) for case in cases], indirect=True)

    def _cases(self, marker: pytest.Mark, base: Path) -> list[Case]:
        source, metrics, limit, where = _arguments(*marker.args, **marker.kwargs)
        rows = self._rows(source, base, limit, where)
        return [Case(row=row, metrics=metrics) for row in rows]

    def _rows(self, source: Any, base: Path, limit: int | None, where: Any) -> tuple[DatasetRow, ...]:
        if not isinstance(source, (str, os.PathLike)):
            return read_dataset(source, base=base, limit=limit, where=where)
        # A predicate is one of many even where it reads the same.
        known = (base / source, limit, id(where))
        if known not in self._read:
            self._read[known] = read_dataset(source, base=base, limit=limit, where=where)
        return self._read[known]


def _check_function(metafunc: pytest.Metafunc) -> None:
    definition = metafunc.definition
    if [mark.name for mark in definition.own_markers].count("rag_dataset") > 1:
        msg = "a test is made of one data set; put the rows into one, or write a test for each"
        raise ValueError(msg)
    if FIXTURE not in metafunc.fixturenames:
        msg = f"the test takes no row; write def {definition.name}(rag_sample, rag_scores)"
        raise ValueError(msg)


def _arguments(*given: Any, **named: Any) -> tuple[Any, tuple[Metric, ...], int | None, Any]:
    """Return source, metrics, limit and predicate; raise ``ValueError`` saying what to write."""
    unknown = sorted(named.keys() - {"source", "metrics", "limit", "where"})
    sources = [*given, *(named[name] for name in ("source",) if name in named)]
    if unknown or len(sources) != 1:
        problem = f"it knows no {', '.join(unknown)}" if unknown else f"it takes one source, not {len(sources)}"
        msg = f"{problem}; write {_EXAMPLE}, with limit= and where= if wanted"
        raise ValueError(msg)
    return sources[0], _metrics(named.get("metrics", ())), named.get("limit"), named.get("where")


def _metrics(given: Any) -> tuple[Metric, ...]:
    listed = [given] if isinstance(given, (str, Metric)) else given
    wrong = not isinstance(listed, (list, tuple)) or not all(isinstance(item, (str, Metric)) for item in listed)
    if wrong:
        msg = f"metrics={given!r} are no metrics; write {_EXAMPLE}"
        raise ValueError(msg)
    metrics = tuple(metric_for(metric) for metric in listed)
    names = [metric.name for metric in metrics]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"two metrics of one name: {', '.join(twice)}"
        raise ValueError(msg)
    return metrics


def canonical(name: str, *, known: Callable[[str], Metric | type[Metric]] = metric_named) -> str:
    """Return the name in results of a metric given by any of its names; one that is unknown stays as it is.

    >>> canonical("ResponseRelevancy"), canonical("sympathy")
    ('answer_relevancy', 'sympathy')
    """
    try:
        return known(name).name
    except ValueError:
        return name
