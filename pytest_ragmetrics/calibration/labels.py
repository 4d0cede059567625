"""What a calibration found out about a judge, as far as other scores are corrected by it, and its file."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pytest_ragmetrics.errors import DatasetError, RagMetricsError
from pytest_ragmetrics.files import read_json
from pytest_ragmetrics.result import Direction, MetricResult
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.stats.intervals import Interval

_HIGHEST = frozenset({"true", "yes", "pass", "passed", "good"})
_LOWEST = frozenset({"false", "no", "fail", "failed", "bad"})
#: Where the name of the group stands, unless a field is named.
GROUP_FIELDS = ("group", "cluster")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelScale:
    """How labels are written: in which field of the ``metadata``, from ``low`` (bad) to ``high`` (good).

    An answer is good from the label ``good_from`` on, the middle of the scale unless it is given. Raises ``ValueError``
    for a scale without a length, and a ``good_from`` on it that leaves no answer bad.
    """

    field: str = "label"
    low: float = 0.0
    high: float = 1.0
    good_from: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            msg = f"the scale of labels goes from a lower to a higher number, not from {self.low:g} to {self.high:g}"
            raise ValueError(msg)
        if self.good_from is not None and not self.low < self.good_from <= self.high:
            msg = (
                f"an answer is good from a label above {self.low:g} and up to {self.high:g} on, not {self.good_from:g}"
            )
            raise ValueError(msg)

    def read(self, sample: Sample, *, file: str | None = None, line: int | None = None) -> float | None:
        """Return the label of a sample on a scale from 0 to 1, ``None`` where it has none.

        Raises ``DatasetError`` naming file, line and field for what is no label.

        >>> LabelScale(low=1, high=5).read(Sample(metadata={"label": 4}))
        0.75
        """
        written = sample.metadata.get(self.field)
        if written is None or (isinstance(written, str) and not written.strip()):
            return None
        value = self._number(written)
        if value is None or not self.low <= value <= self.high:
            msg = f"a label is a number from {self.low:g} to {self.high:g}, or true or false, not {_shown(written)}"
            raise DatasetError(msg, file=file, line=line, field=self.field)
        return (value - self.low) / (self.high - self.low)

    def is_good(self, label: float) -> bool:
        """Tell whether a label from 0 to 1 is one of a good answer."""
        start = 0.5 if self.good_from is None else (self.good_from - self.low) / (self.high - self.low)
        return label >= start

    def _number(self, written: Any) -> float | None:
        if isinstance(written, bool):
            return self.high if written else self.low
        if isinstance(written, (int, float)):
            return float(written) if abs(written) <= max(abs(self.low), abs(self.high)) else None
        if not isinstance(written, str):
            return None
        word = written.strip().lower()
        if word in _HIGHEST or word in _LOWEST:
            return self.high if word in _HIGHEST else self.low
        try:
            return float(word)
        except ValueError:
            return None


def group_of(sample: Sample, field: str | None = None) -> Hashable | None:
    """Return what names the group of a sample: ``field`` of its metadata, else ``group``, else ``cluster``.

    >>> group_of(Sample(metadata={"cluster": "manual.pdf"}))
    "'manual.pdf'"
    """
    for name in GROUP_FIELDS if field is None else (field,):
        value = sample.metadata.get(name)
        if value is not None:
            return repr(value)
    return None


def _shown(written: object) -> str:
    text = repr(written)
    return text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004 - enough to find it


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
