"""What people would find of a whole table, from a judge's scores and what is known of its errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_ragmetrics.calibration.labels import JudgeRates, LabelScale, judges_of, read_rates
from pytest_ragmetrics.comparison import whole_clusters
from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.evaluation import cluster_of
from pytest_ragmetrics.stats.corrected import corrected_rate, prediction_powered_mean
from pytest_ragmetrics.stats.decisions import meets
from pytest_ragmetrics.stats.intervals import Interval, check_confidence, rate_interval

if TYPE_CHECKING:
    from pytest_ragmetrics.evaluation import Evaluation, Row
    from pytest_ragmetrics.result import Direction


class HasRates(Protocol):
    """A calibration, as far as a correction needs it."""

    @property
    def rates(self) -> JudgeRates:
        """How often the judge is right."""


def corrected_mean(
    table: Evaluation,
    metric: str,
    *,
    tpr: Interval | float | None = None,
    tnr: Interval | float | None = None,
    calibration: HasRates | JudgeRates | str | Path | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    skip_unscored: bool = False,
) -> Interval:
    """Return what :meth:`Evaluation.corrected_mean` does, of a metric that the table has."""
    check_confidence(confidence)
    rows = _scored_rows(table, metric, skip_unscored=skip_unscored)
    better = table.better_of(metric)
    clusters = whole_clusters(cluster_of(row.sample) for row in rows)
    rates = None if calibration is None else _rates(calibration, metric, better, rows, confidence)
    if rates is None and tpr is None and tnr is None:
        scores = [_goodness(table, metric, row, threshold) for row in rows]
        labels = _labels(rows, binary=threshold is not None)
        return prediction_powered_mean(scores, labels, clusters=clusters, confidence=confidence)
    if rates is not None and (tpr is not None or tnr is not None):
        msg = "give calibration=, or tpr= and tnr=, not both"
        raise ValueError(msg)
    right, caught = (tpr, tnr) if rates is None else (rates.tpr, rates.tnr)
    bound = threshold if rates is None or threshold is not None else rates.threshold
    if right is None or caught is None or bound is None:
        msg = "to correct by rates give tpr=, tnr= and the threshold= that they were found at, or calibration="
        raise ValueError(msg)
    if rates is not None and bound != rates.threshold:
        msg = f"the calibration is one at the threshold {rates.threshold:g}, not {bound:g}; leave threshold= out"
        raise ValueError(msg)
    passed = [meets(row.results[metric].value, bound, better) for row in rows]
    share = rate_interval(passed, clusters=clusters, confidence=confidence)
    return corrected_rate(share, tpr=right, tnr=caught)


def _scored_rows(table: Evaluation, metric: str, *, skip_unscored: bool) -> list[Row]:
    rows = [row for row in table.rows if metric in row.results]
    missing = len(table.rows) - len(rows)
    if not rows or (missing and not skip_unscored):
        hint = "; skip_unscored=True leaves them out" if rows else ""
        msg = f"{metric}: {missing} of {len(table.rows)} rows are unscored{hint}"
        raise UnscoredError(msg)
    return rows


def _rates(
    calibration: HasRates | JudgeRates | str | Path,
    metric: str,
    better: Direction,
    rows: list[Row],
    confidence: float,
) -> JudgeRates:
    """Return the rates of a calibration; raise ``ValueError`` for one of another metric, judge or confidence."""
    if isinstance(calibration, (str, Path)):
        calibration = read_rates(calibration)
    rates = calibration if isinstance(calibration, JudgeRates) else calibration.rates
    if (rates.metric, rates.better) != (metric, better):
        msg = f"the calibration is one of {rates.metric} ({rates.better} is better), not of {metric} ({better})"
        raise ValueError(msg)
    judges = judges_of(row.results[metric] for row in rows)
    if judges != rates.judge:
        msg = f"the calibration is one of {rates.judge or 'no judge'}, and {judges or 'no judge'} scored this table"
        raise ValueError(msg)
    if rates.tpr.confidence != confidence:
        msg = f"the calibration has intervals of {rates.tpr.confidence * 100:g} %: ask for that confidence"
        raise ValueError(msg)
    return rates


def _goodness(table: Evaluation, metric: str, row: Row, threshold: float | None) -> float:
    """Return how good an answer is by its score: whether it passes, or where it stands between worst and best."""
    value, better = row.results[metric].value, table.better_of(metric)
    if threshold is not None:
        return float(meets(value, threshold, better))
    low, high = table.scales.get(metric, (0.0, 1.0))
    share = (value - low) / (high - low)
    return 1.0 - share if better == "lower" else share


def _labels(rows: list[Row], *, binary: bool) -> list[float | None]:
    scale = LabelScale()
    labels = [scale.read(row.sample) for row in rows]
    if all(label is None for label in labels):
        msg = (
            "nothing is known of the judge's errors: give calibration=, or tpr=, tnr= and threshold=, or label some "
            'rows, chosen by chance, in metadata["label"]'
        )
        raise ValueError(msg)
    return [None if label is None else float(scale.is_good(label)) if binary else label for label in labels]
