"""The table that comes of scoring many samples by several metrics."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample

if TYPE_CHECKING:
    import pandas as pd

# Spreadsheets run what begins like this, some also in full width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One sample with its results by metric, and the reasons of the metrics that gave none."""

    sample: Sample
    results: Mapping[str, MetricResult] = field(default_factory=dict)
    unscored: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stats:
    """One metric over a table; ``mean``, ``min`` and ``max`` are over the scored rows, ``None`` when there is none."""

    n: int
    unscored: int
    mean: float | None
    min: float | None
    max: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The rows in the order of the samples; ``metrics`` are the names of the columns.

    What takes the name of a metric raises ``KeyError`` for one that was not evaluated.
    """

    metrics: tuple[str, ...]
    rows: tuple[Row, ...]

    def scores(self, metric: str) -> list[float | None]:
        """Return the scores of a metric in the order of the rows, ``None`` where there is none."""
        self._check(metric)
        return [row.results[metric].value if metric in row.results else None for row in self.rows]

    def mean(self, metric: str, *, skip_unscored: bool = False) -> float:
        """Return the mean score of a metric.

        Raises ``UnscoredError`` when a row has no score, unless ``skip_unscored=True`` leaves such rows out, and when
        there is no score at all.
        """
        scores = self.scores(metric)
        known = [score for score in scores if score is not None]
        if not known:
            msg = f"{metric}: none of {len(scores)} rows has a score"
            raise UnscoredError(msg)
        if len(known) < len(scores) and not skip_unscored:
            missing = len(scores) - len(known)
            msg = f"{metric}: {missing} of {len(scores)} rows are unscored; skip_unscored=True leaves them out"
            raise UnscoredError(msg)
        return fmean(known)

    def stats(self) -> dict[str, Stats]:
        """Return the figures of every metric, by name."""
        return {metric: self._stats_of(metric) for metric in self.metrics}

    def worst(self, n: int = 10, *, metric: str | None = None) -> tuple[Row, ...]:
        """Return the ``n`` rows with the lowest score, of one metric or on average; unscored rows come first."""
        names = (metric,) if metric is not None else self.metrics
        for name in names:
            self._check(name)

        def badness(row: Row) -> tuple[bool, float]:
            scores = [row.results[name].value for name in names if name in row.results]
            return len(scores) == len(names), fmean(scores) if scores else -math.inf

        return tuple(sorted(self.rows, key=badness)[:n])

    def failures(self, min: float | Mapping[str, float]) -> tuple[Row, ...]:  # noqa: A002 - as the helpers call it
        """Return the rows with a score below ``min``, one for all metrics or one by name, or without a score."""
        bounds = min if isinstance(min, Mapping) else dict.fromkeys(self.metrics, min)
        for metric in bounds:
            self._check(metric)
        return tuple(
            row
            for row in self.rows
            if any(name not in row.results or row.results[name].value < bound for name, bound in bounds.items())
        )

    def to_json(self, file: str | Path | None = None) -> str:
        """Return the table as JSON text, and write it to a file if one is named.

        What ``metadata`` holds and JSON does not know becomes text, and a number that is not finite ``null``.
        """
        rows = [
            {
                "sample": _plain(row.sample.to_mapping()),
                "scores": {name: result.value for name, result in row.results.items()},
                "reasons": {name: result.reason for name, result in row.results.items()},
                "unscored": dict(row.unscored),
            }
            for row in self.rows
        ]
        text = json.dumps({"metrics": self.metrics, "rows": rows}, indent=1, ensure_ascii=False, allow_nan=False)
        return _written(f"{text}\n", file)

    def to_csv(self, file: str | Path | None = None) -> str:
        """Return the table as CSV text with a column per metric, and write it to a file if one is named.

        Texts that a spreadsheet would run as a formula are prefixed with an apostrophe.
        """
        out = io.StringIO(newline="")
        writer = csv.writer(out)
        writer.writerow(["id", "user_input", "response", *map(_cell, self.metrics), "unscored"])
        for row in self.rows:
            texts = [_cell(text) for text in (row.sample.id, row.sample.user_input, row.sample.response)]
            scores = [row.results[name].value if name in row.results else "" for name in self.metrics]
            writer.writerow([*texts, *scores, _cell("; ".join(row.unscored.values()))])
        return _written(out.getvalue(), file)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a data frame, one row a sample; needs pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            msg = 'to_pandas() needs pandas: pip install "pytest-ragmetrics[pandas]"'
            raise RagMetricsError(msg) from error
        columns = {name: self.scores(name) for name in self.metrics}
        return pd.DataFrame([row.sample.to_mapping() for row in self.rows]).assign(**columns)

    def _stats_of(self, metric: str) -> Stats:
        known = [score for score in self.scores(metric) if score is not None]
        return Stats(
            n=len(self.rows),
            unscored=len(self.rows) - len(known),
            mean=fmean(known) if known else None,
            min=min(known, default=None),
            max=max(known, default=None),
        )

    def _check(self, metric: str) -> None:
        if metric not in self.metrics:
            msg = f"{metric!r} was not evaluated; there are {', '.join(self.metrics)}"
            raise KeyError(msg)


def _plain(value: Any) -> Any:
    """Return a value of a sample as what JSON knows."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_plain(item) for item in value]
    return str(value)


def _cell(text: str | None) -> str:
    return f"'{text}" if text and text.startswith(_FORMULA) else text or ""


def _written(text: str, file: str | Path | None) -> str:
    if file is not None:
        # Half a surrogate pair has no UTF-8 form; in JSON this is its escape.
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    return text
