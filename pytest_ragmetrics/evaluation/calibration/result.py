"""The values of a calibration: human labels, labelled rows with their scores, the figures over them, and their file."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_ragmetrics.core.codec import CodecError, dump, load
from pytest_ragmetrics.core.errors import DatasetError, RagMetricsError
from pytest_ragmetrics.core.files import read_json
from pytest_ragmetrics.core.result import NOUN, Direction, MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.calibration.marks import MarkedVerdicts
from pytest_ragmetrics.stats.cutoffs import CalibrationFigures
from pytest_ragmetrics.stats.intervals import Interval
from pytest_ragmetrics.stats.means import meets
from pytest_ragmetrics.stats.scores import goodness

#: ``format`` and ``version`` of the files of ``ragmetrics calibrate --json``.
FORMAT = "pytest-ragmetrics calibration"
VERSION = 1
_FIGURES = ("agreement", "auroc", "suggestion", "no_suggestion", "reliability")

#: The lower end of kappa's interval, or its estimate, is compared with a floor.
DecidedBy = Literal["bound", "estimate"]

_GOOD = ("true", "yes", "pass", "passed", "good")
_BAD = ("false", "no", "fail", "failed", "bad")
#: Fields of the metadata that name the group of a row, unless another field is given.
GROUP_FIELDS = ("group", "cluster")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelScale:
    """How labels are written: in which ``field`` of the ``metadata``, from ``low`` (bad) to ``high`` (good).

    An answer is good from the label ``good_from`` on, by default the middle of the scale. Raises ``ValueError`` for a
    scale without a length, and for a ``good_from`` outside of it or at its low end.
    """

    field: str = "label"
    low: float = 0.0
    high: float = 1.0
    good_from: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            msg = f"label_scale goes from a lower to a higher number, not from {self.low:g} to {self.high:g}"
            raise ValueError(msg)
        if self.good_from is not None and not self.low < self.good_from <= self.high:
            raise ValueError(f"good_from is a label above {self.low:g}, at most {self.high:g}, not {self.good_from:g}")

    def read(self, sample: Sample, *, file: str | None = None, line: int | None = None) -> float | None:
        """Return the label of a sample on a scale from 0 to 1, ``None`` if it has none.

        Raises ``DatasetError`` naming file, line and field for a value that is not a label.

        >>> LabelScale(low=1, high=5).read(Sample(metadata={"label": 4}))
        0.75
        """
        written = sample.metadata.get(self.field)
        if written is None or (isinstance(written, str) and not written.strip()):
            return None
        value = self._number(written)
        if value is None or not self.low <= value <= self.high:
            text = repr(written)
            shown = text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004 - characters of a wrong label
            msg = f"a label is a number from {self.low:g} to {self.high:g}, or true or false, not {shown}"
            raise DatasetError(msg, file=file, line=line, field=self.field)
        return (value - self.low) / (self.high - self.low)

    def is_good(self, label: float) -> bool:
        """Return whether a label from 0 to 1 is that of a good answer."""
        return label >= (0.5 if self.good_from is None else (self.good_from - self.low) / (self.high - self.low))

    def _number(self, written: Any) -> float | None:
        if not isinstance(written, (str, int, float)):
            return None
        word = str(written).strip().lower()
        if word in _GOOD or word in _BAD:
            return self.high if word in _GOOD else self.low
        try:
            return float(written)
        except (ValueError, OverflowError):
            return None


def group_of(sample: Sample, field: str | None = None) -> Hashable | None:
    """Return the group of a sample: ``field`` of its metadata, by default ``group``, else ``cluster``.

    >>> group_of(Sample(metadata={"cluster": "manual.pdf"}))
    "'manual.pdf'"
    """
    names = GROUP_FIELDS if field is None else (field,)
    return next((repr(sample.metadata[name]) for name in names if sample.metadata.get(name) is not None), None)


class CalibrationError(RagMetricsError):
    """A calibration cannot be made or read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRates:
    """How often a judge is right at a threshold: about the good answers (``tpr``), and about the bad ones (``tnr``).

    In a file of ``ragmetrics calibrate --json`` the two rates are in ``agreement``. ``noun`` is what a verdict of the
    metric is about, which tells metrics of one name apart.
    """

    metric: str
    judge: str | None
    better: Direction
    threshold: float
    tpr: Interval
    tnr: Interval
    noun: str = NOUN


def judges_of(results: Sequence[MetricResult]) -> str | None:
    """Return the names of the judges of results, ``None`` if no judge was asked."""
    return ", ".join(sorted({result.judge for result in results if result.judge is not None})) or None


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledRow:
    """A scored answer with its human label from 0 to 1; ``good`` says whether that is the label of a good answer.

    Rows of one ``group`` have something in common, such as their source.
    """

    name: str
    sample: Sample
    result: MetricResult
    label: float
    good: bool
    group: Hashable | None

    @property
    def score(self) -> float:
        """The score of the answer."""
        return self.result.value

    @property
    def vacuous(self) -> bool:
        """Whether there was nothing to check."""
        return self.result.vacuous


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """A judge's scores against human labels: ``figures`` over the ``rows`` that have both.

    ``unscored`` has the name of each labelled row without a score and the reason; ``vacuous`` counts the labelled rows
    that are left out because there was nothing to check; ``unlabelled`` the rows without a label, and ``undrawn`` those
    with one that were not drawn by chance, as the others were: both are not scored. ``marks`` are those of
    findings, by judge. ``reply_days`` are how many days old the replies are that it rests on, the newest and the
    oldest, ``None`` where none is kept.
    """

    metric: str
    better: Direction
    scale: tuple[float, float]
    figures: CalibrationFigures
    rows: tuple[LabelledRow, ...]
    unscored: tuple[tuple[str, str], ...]
    unlabelled: int
    vacuous: int = 0
    undrawn: int = 0
    marks: tuple[MarkedVerdicts, ...] = ()
    reply_days: tuple[int, int] | None = None

    @property
    def rates(self) -> JudgeRates:
        """The figures that :meth:`Evaluation.corrected_mean` takes."""
        about: dict[str, Any] = {name: getattr(self, name) for name in ("metric", "judge", "better", "noun")}
        found = self.figures.agreement
        return JudgeRates(threshold=self.figures.threshold, tpr=found.tpr, tnr=found.tnr, **about)

    @property
    def noun(self) -> str:
        """What a verdict of the metric is about."""
        return next((row.result.noun for row in self.rows), NOUN)

    @property
    def judge(self) -> str | None:
        """The name of the judge, ``None`` for a metric that needs no judge."""
        return judges_of([row.result for row in self.rows])

    @property
    def grouped(self) -> bool:
        """Whether any row names a group."""
        return any(row.group is not None for row in self.rows)

    @property
    def groups(self) -> int:
        """The number of groups; a row without one counts as a group of its own."""
        named = {row.group for row in self.rows if row.group is not None}
        return len(named) + sum(row.group is None for row in self.rows)

    @property
    def decides(self) -> bool:
        """Whether the scores may fail a test: those of a dry run are placeholders."""
        return all(row.result.decides for row in self.rows)

    def passes(self, row: LabelledRow) -> bool:
        """Return whether the score of an answer meets the threshold."""
        return meets(row.result.value, self.figures.threshold, self.better)

    def disagreements(self) -> tuple[LabelledRow, ...]:
        """Return the rows that judge and people judge differently, the largest distance of score and label first.

        Answers are compared with the threshold itself, also where the figures are cross-validated.
        """

        def order(row: LabelledRow) -> tuple[float, str]:
            return -abs(row.label - goodness(row.score, self.scale, self.better)), row.name

        return tuple(sorted((row for row in self.rows if self.passes(row) != row.good), key=order))

    def to_json(self) -> str:
        """Return the figures as JSON text, with the names of the disagreements and none of their texts."""
        figures = self.figures
        data = {
            "format": FORMAT,
            "version": VERSION,
            **{name: getattr(self, name) for name in ("metric", "judge", "better", "noun", "scale")},
            "threshold": figures.threshold,
            "cross_validated": not figures.is_given,
            "rows": {
                "scored": len(self.rows),
                "unscored": len(self.unscored),
                "vacuous": self.vacuous,
                "unlabelled": self.unlabelled,
                "groups": self.groups,
            },
            "reply_days": self.reply_days,
            **{name: getattr(figures, name) for name in _FIGURES},
            "disagreements": [
                {"name": row.name, "label": row.label, "score": row.result.value} for row in self.disagreements()
            ],
            "unscored": [{"name": name, "reason": reason} for name, reason in self.unscored],
        }
        return json.dumps(dump(data), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_rates(file: str | Path) -> JudgeRates:
    """Return the rates in a file of ``ragmetrics calibrate --json``; raise :class:`CalibrationError` naming a fault."""
    path = Path(file)
    try:
        data = read_json(path)
    except OSError as error:
        raise CalibrationError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise CalibrationError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
        msg = f"{path}: not a calibration of version {VERSION}; write one with ragmetrics calibrate ... --json={path}"
        raise CalibrationError(msg)
    agreement = data.get("agreement")
    try:
        rates = load(JudgeRates, {**data, **(agreement if isinstance(agreement, dict) else {})})
    except CodecError as error:
        raise CalibrationError(f"{path}: {error}") from None  # it names the place; pydantic's frames add nothing
    for name, rate in (("tpr", rates.tpr), ("tnr", rates.tnr)):
        if not (0.0 <= rate.low <= rate.estimate <= rate.high <= 1.0 and 0.0 < rate.confidence < 1.0):
            raise CalibrationError(f"{path}: {name} is not the interval of a rate")
    return rates
