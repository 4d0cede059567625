"""The scores of a whole set, whichever way they are handed in."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.evaluation.comparison import key_of, whole_clusters
from pytest_ragmetrics.evaluation.table import Evaluation, Row, cluster_of
from pytest_ragmetrics.explain import shortcoming
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.stats.standing import ScoredRow

#: What the assertions over a set take: a table, its rows, or scores with ``None`` or an error where there is none.
Results = Evaluation | Iterable[Row] | Iterable[float | UnscoredError | None]

# The scales that scores tell by themselves.
_SCALES = ((0.0, 1.0), (-1.0, 1.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredSet:
    """The scores of one metric with the names of their rows, in order.

    ``unscored`` holds name and reason of the rows without a score. ``clusters`` has one for each row with a score,
    ``bounds`` is the scale where it is known. ``decides`` is false in a dry run, whose scores stand for others.
    """

    metric: str
    rows: tuple[ScoredRow, ...]
    unscored: tuple[tuple[str, str], ...]
    clusters: Sequence[Hashable] | None
    bounds: tuple[float, float] | None
    decides: bool

    @property
    def scores(self) -> list[float]:
        """The scores that there are."""
        return [row.score for row in self.rows]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Given:
    """One row as it was handed in."""

    name: str
    result: float | None
    reason: str
    cluster: Hashable | None = None


def scored_set(results: Results, *, metric: str | None, clusters: Sequence[Hashable] | None) -> ScoredSet:
    """Return the scores of a metric among results.

    Raises ``TypeError`` for what is no list of scores or rows, ``ValueError`` where it is not clear which metric is
    meant, for a score that is not finite, and for clusters of another number than the results.
    """
    name, scale, given = _read(results, metric)
    named = [each.cluster for each in given] if clusters is None else list(clusters)
    if len(named) != len(given):
        msg = f"{len(named)} clusters for {len(given)} results; give one for each, or none"
        raise ValueError(msg)
    whole = whole_clusters(named)
    rows = [_scored(each) for each in given]
    kept = [index for index, row in enumerate(rows) if row is not None]
    scores = [row.score for row in rows if row is not None]
    return ScoredSet(
        metric=name,
        rows=tuple(row for row in rows if row is not None),
        unscored=tuple((each.name, each.reason) for each, row in zip(given, rows, strict=True) if row is None),
        clusters=None if whole is None else [whole[index] for index in kept],
        bounds=next((known for known in (scale, *_SCALES) if known is not None and _within(scores, known)), None),
        decides=all(each.result.decides for each in given if isinstance(each.result, MetricResult)),
    )


def decide(rows: Iterable[Row]) -> bool:
    """Tell whether the scores of rows decide anything: in a dry run they stand for others."""
    return all(result.decides for row in rows for result in row.results.values())


def _read(results: Results, metric: str | None) -> tuple[str, tuple[float, float] | None, list[_Given]]:
    """Return the name of the metric, its scale where it is known, and the rows."""
    if isinstance(results, (str, bytes, Mapping)) or not isinstance(results, (Evaluation, Iterable)):
        msg = f"results must be an Evaluation, its rows or a list of scores, not {type(results).__name__}"
        raise TypeError(msg)
    if isinstance(results, Evaluation):
        name = _one_of(results.metrics, metric)
        results.better_of(name)
        return name, results.scales.get(name), [_of_row(name, row) for row in results.rows]
    items = list(results)
    if any(isinstance(item, Row) for item in items):
        rows = [item for item in items if isinstance(item, Row)]
        if len(rows) < len(items):
            msg = "results are partly rows and partly scores; give one or the other"
            raise TypeError(msg)
        name = _one_of(tuple({name: None for row in rows for name in (*row.results, *row.unscored)}), metric)
        return name, None, [_of_row(name, row) for row in rows]
    names = tuple({item.metric: None for item in items if isinstance(item, MetricResult)})
    name = _one_of(names, None) if len(names) > 1 else metric or (names[0] if names else "score")
    return name, None, [_of_score(index, item) for index, item in enumerate(items)]


def _one_of(names: tuple[str, ...], metric: str | None) -> str:
    if metric is None and len(names) != 1:
        msg = f"results are of several metrics, {', '.join(names)}: say which with metric=" if names else "no metrics"
        raise ValueError(msg)
    return names[0] if metric is None else metric


def _of_row(metric: str, row: Row) -> _Given:
    return _Given(
        name=key_of(row.sample),
        result=row.results.get(metric),
        reason=row.unscored.get(metric, "it was not scored"),
        cluster=cluster_of(row.sample),
    )


def _of_score(index: int, item: object) -> _Given:
    name = f"results[{index}]"
    if item is None or isinstance(item, UnscoredError):
        return _Given(name=name, result=None, reason="it is None" if item is None else str(item))
    if isinstance(item, (int, float)):
        return _Given(name=name, result=item, reason="")
    if hasattr(item, "item") and not isinstance(item, (Mapping, Sequence)):
        return _of_score(index, item.item())  # a numpy scalar
    msg = f"{name} is of type {type(item).__name__}; give a score, a row of an Evaluation, or None for an unscored one"
    raise TypeError(msg)


def _scored(given: _Given) -> ScoredRow | None:
    if given.result is None:
        return None
    score = float(given.result)
    if not math.isfinite(score):
        msg = f"{given.name} is {score}, not a finite number; give None for a row without a score"
        raise ValueError(msg)
    reason = shortcoming(given.result) if isinstance(given.result, MetricResult) else None
    return ScoredRow(name=given.name, score=score, reason=reason)


def _within(scores: Iterable[float], bounds: tuple[float, float]) -> bool:
    return all(bounds[0] <= score <= bounds[1] for score in scores)
