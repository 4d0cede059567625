"""What the fixture ``rag_evaluate`` does: a whole data set in one test."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_ragmetrics.datasets import read_dataset
from pytest_ragmetrics.evaluation.evaluate import evaluate
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.sample import Sample

Source = str | os.PathLike[str] | Iterable[Sample | Mapping[str, Any]]


class Evaluate:
    """``rag_evaluate(source, metrics, limit=None, where=None, **options)``: score a data set, or a list, as a table.

    Paths start at the folder of the test. ``options`` are those of :func:`~pytest_ragmetrics.evaluate`, which says what
    is raised; ``DatasetError`` for a file that cannot be read. A row that is broken is kept as unscored by all metrics.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def __call__(
        self,
        source: Source,
        metrics: Iterable[Metric | str] | Metric | str,
        *,
        limit: int | None = None,
        where: Any = None,
        **options: Any,
    ) -> Evaluation:
        """Score all rows by all metrics, many at a time."""
        __tracebackhide__ = True
        # What is read once is a list from here on.
        given = (
            source if isinstance(source, (str, os.PathLike, Mapping)) or hasattr(source, "columns") else list(source)
        )
        rows = read_dataset(given, base=self._base, limit=limit, where=where)
        chosen = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
        sound = [row.sample for row in rows if row.sample is not None]
        table = evaluate(sound, chosen, **options)
        scored = iter(table.rows)
        return Evaluation(
            metrics=table.metrics,
            rows=tuple(
                next(scored)
                if row.sample is not None
                else Row(sample=Sample(id=row.id), unscored=dict.fromkeys(table.metrics, str(row.error)))
                for row in rows
            ),
        )
