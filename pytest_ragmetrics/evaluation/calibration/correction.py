"""What is known of the errors of a judge, by which :meth:`Evaluation.corrected_mean` corrects: rates or labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_ragmetrics.core.result import REUSED, Direction, MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets import DatasetRow
from pytest_ragmetrics.evaluation.calibration.labels import answer_key, read_labels
from pytest_ragmetrics.evaluation.calibration.marks import read_labelled
from pytest_ragmetrics.evaluation.calibration.result import Calibration, JudgeRates, LabelScale, judges_of, read_rates


def matching_rates(
    calibration: Calibration | JudgeRates | str | Path,
    metric: str,
    results: Sequence[MetricResult],
    better: Direction,
    *,
    threshold: float | None,
    confidence: float,
) -> JudgeRates:
    """Return the rates of a calibration; raise ``ValueError`` where it is not one of the judge of these results."""
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


def labels_of(
    samples: Sequence[Sample], file: str | Path | Sequence[object] | None, *, binary: bool
) -> list[float | None]:
    """Return the labels of samples that chance has drawn, those in a file or their own; ``ValueError`` for none."""
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
