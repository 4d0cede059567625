"""Means corrected for the errors of a judge, as a calibration or labels among the rows show them.

:meth:`Evaluation.corrected_mean` passes the results of one metric; the formulas are in ``stats.corrected``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from pytest_ragmetrics.core.result import REUSED, Direction, MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets import DatasetRow
from pytest_ragmetrics.evaluation.calibration.labels import answer_key, read_labels
from pytest_ragmetrics.evaluation.calibration.marks import read_labelled
from pytest_ragmetrics.evaluation.calibration.result import Calibration, JudgeRates, LabelScale, judges_of, read_rates
from pytest_ragmetrics.stats.corrected import corrected_rate, prediction_powered_mean
from pytest_ragmetrics.stats.intervals import Interval, check_confidence, mean_interval
from pytest_ragmetrics.stats.means import meets
from pytest_ragmetrics.stats.scores import goodness


def corrected_mean(
    metric: str,
    results: Sequence[MetricResult],
    samples: Sequence[Sample],
    *,
    better: Direction,
    scale: tuple[float, float],
    clusters: Sequence[Hashable] | None,
    tpr: Interval | float | None,
    tnr: Interval | float | None,
    calibration: Calibration | JudgeRates | str | Path | None,
    labels: str | Path | Sequence[object] | None,
    threshold: float | None,
    confidence: float,
) -> Interval:
    """Return the value of :meth:`Evaluation.corrected_mean` for results of a metric and the samples they belong to."""
    check_confidence(confidence)
    values = [result.value for result in results]
    if calibration is None and tpr is None and tnr is None:
        scores = [goodness(value, scale, better) for value in values]
        if threshold is not None:
            scores = [float(meets(value, threshold, better)) for value in values]
        given = _labels(samples, labels, binary=threshold is not None)
        return prediction_powered_mean(scores, given, clusters=clusters, confidence=confidence)
    if labels is not None:
        raise ValueError("give labels=, or what a calibration found, not both")
    bound = threshold
    if calibration is not None:
        if tpr is not None or tnr is not None:
            raise ValueError("give calibration=, or tpr= and tnr=, not both")
        rates = _matching_rates(calibration, metric, results, better=better, threshold=threshold, confidence=confidence)
        tpr, tnr, bound = rates.tpr, rates.tnr, rates.threshold
    if tpr is None or tnr is None or bound is None:
        msg = "to correct by rates give tpr=, tnr= and the threshold= that they were found at, or calibration="
        raise ValueError(msg)
    passed = [meets(value, bound, better) for value in values]
    return corrected_rate(mean_interval(passed, clusters=clusters, confidence=confidence), tpr=tpr, tnr=tnr)


def _matching_rates(
    calibration: Calibration | JudgeRates | str | Path,
    metric: str,
    results: Sequence[MetricResult],
    *,
    better: Direction,
    threshold: float | None,
    confidence: float,
) -> JudgeRates:
    if isinstance(calibration, (str, Path)):
        calibration = read_rates(calibration)
    rates = calibration if isinstance(calibration, JudgeRates) else calibration.rates
    if (rates.metric, rates.better) != (metric, better):
        msg = f"the calibration is one of {rates.metric} ({rates.better} is better), not of {metric} ({better})"
        raise ValueError(msg)
    if (judge := judges_of(results)) != rates.judge:
        msg = f"the calibration is one of {rates.judge or 'no judge'}, and {judge or 'no judge'} scored this table"
        raise ValueError(msg)
    if rates.tpr.confidence != confidence:
        raise ValueError(f"the calibration has intervals of {rates.tpr.confidence * 100:g} %: ask for that confidence")
    if metric in REUSED and any(result.noun != rates.noun for result in results):
        raise ValueError(f"the calibration is one of another metric, which was called {metric} before: calibrate again")
    if threshold not in (None, rates.threshold):
        msg = f"the calibration is one at the threshold {rates.threshold:g}, not {threshold:g}; leave it out"
        raise ValueError(msg)
    return rates


def _labels(
    samples: Sequence[Sample], file: str | Path | Sequence[object] | None, *, binary: bool
) -> list[float | None]:
    scale = LabelScale()
    rows = (
        [DatasetRow(sample=sample, id="") for sample in samples]
        if file is None
        else read_labelled(file, base=Path.cwd())[0]
    )
    read = read_labels(rows, scale)
    labels = [label if chosen else None for _, label, chosen in read]
    if file is not None:
        places = {answer_key(sample): label for (sample, *_), label in zip(read, labels, strict=True)}
        labels = [places.get(answer_key(sample)) for sample in samples]
    if all(label is None for label in labels):
        raise ValueError(
            "nothing is known of the judge's errors: give calibration=, or tpr=, tnr= and threshold=, or label some "
            'rows, chosen by chance, in metadata["label"] or by ragmetrics label'
            if file is None
            else "no label is one of an answer in this table: give the labels of the run that it is of"
        )
    return [float(scale.is_good(label)) if binary and label is not None else label for label in labels]
