"""What a calibration found out about a judge, as far as other scores are corrected by it, and its file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pytest_ragmetrics.errors import RagMetricsError
from pytest_ragmetrics.files.json_file import read_json
from pytest_ragmetrics.result import Direction, MetricResult
from pytest_ragmetrics.stats.intervals import Interval

#: What a file of ``ragmetrics calibrate --json`` says that it is.
FORMAT = "pytest-ragmetrics calibration"
VERSION = 1


class CalibrationError(RagMetricsError):
    """A calibration cannot be read, or is one of something else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRates:
    """How often a judge is right at a threshold: about the good answers (``tpr``), and about the bad ones (``tnr``)."""

    metric: str
    judge: str | None
    better: Direction
    threshold: float
    tpr: Interval
    tnr: Interval


def read_rates(file: str | Path) -> JudgeRates:
    """Return what a file of ``ragmetrics calibrate --json`` says; raise :class:`CalibrationError` if it is none."""
    path = Path(file)
    try:
        data = read_json(path)
    except OSError as error:
        msg = f"{path}: {error.strerror or error}"
        raise CalibrationError(msg) from error
    except ValueError as error:
        msg = f"{path}: not a JSON file: {error}"
        raise CalibrationError(msg) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
        msg = f"{path}: not a calibration of version {VERSION}; write one with ragmetrics calibrate ... --json={path}"
        raise CalibrationError(msg)
    try:
        return _rates(data)
    except ValueError as error:
        msg = f"{path}: {error}"
        raise CalibrationError(msg) from error


def judges_of(results: Iterable[MetricResult]) -> str | None:
    """Return who judged, ``None`` where nobody did."""
    return ", ".join(sorted({result.judge for result in results if result.judge is not None})) or None


def _rates(data: Mapping[str, Any]) -> JudgeRates:
    metric, judge, better = data.get("metric"), data.get("judge"), data.get("better")
    if not isinstance(metric, str) or not (judge is None or isinstance(judge, str)):
        msg = "field 'metric' and 'judge' must be names"
        raise ValueError(msg)
    if better not in ("higher", "lower"):
        msg = f"field 'better' must be 'higher' or 'lower', not {better!r}"
        raise ValueError(msg)
    found = data.get("agreement")
    figures = found if isinstance(found, dict) else {}
    return JudgeRates(
        metric=metric,
        judge=judge,
        better=cast("Direction", better),
        threshold=_number(data.get("threshold"), "threshold"),
        tpr=_interval(figures.get("tpr"), "tpr"),
        tnr=_interval(figures.get("tnr"), "tnr"),
    )


def _interval(data: Any, name: str) -> Interval:
    fields = data if isinstance(data, dict) else {}
    low, estimate, high = (_number(fields.get(end), f"{name}.{end}") for end in ("low", "estimate", "high"))
    confidence, n = _number(fields.get("confidence"), f"{name}.confidence"), fields.get("n")
    if not 0.0 <= low <= estimate <= high <= 1.0 or not 0.0 < confidence < 1.0 or not isinstance(n, int):
        msg = f"field {name!r} is not the interval of a rate"
        raise ValueError(msg)
    return Interval(estimate=estimate, low=low, high=high, confidence=confidence, n=n)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < math.inf:
        msg = f"field {name!r} must be a number, not {value!r}"
        raise ValueError(msg)
    return float(value)
