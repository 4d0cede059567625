"""The values of a calibration: labelled rows with their scores, and the figures over them."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import asdict, dataclass

from pytest_ragmetrics.calibration.correction import FORMAT, VERSION, JudgeRates, judges_of
from pytest_ragmetrics.result import Direction, MetricResult
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.stats.decisions import meets
from pytest_ragmetrics.stats.thresholds import CalibrationFigures


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """A judge's scores against human labels: ``figures`` over the ``rows`` that have both.

    ``unscored`` has the name of each labelled row without a score and the reason; ``unlabelled`` counts the rows
    without a label, which are not scored.
    """

    metric: str
    better: Direction
    scale: tuple[float, float]
    figures: CalibrationFigures
    rows: tuple[LabelledRow, ...]
    unscored: tuple[tuple[str, str], ...]
    unlabelled: int

    @property
    def rates(self) -> JudgeRates:
        """The figures that :meth:`Evaluation.corrected_mean` takes."""
        found = self.figures.agreement
        return JudgeRates(
            metric=self.metric,
            judge=self.judge,
            better=self.better,
            threshold=self.figures.threshold,
            tpr=found.tpr,
            tnr=found.tnr,
        )

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
        low, high = self.scale

        def distance(row: LabelledRow) -> float:
            goodness = (row.result.value - low) / (high - low)
            return abs(row.label - (1.0 - goodness if self.better == "lower" else goodness))

        differing = (row for row in self.rows if self.passes(row) != row.good)
        return tuple(sorted(differing, key=lambda row: (-distance(row), row.name)))

    def to_json(self) -> str:
        """Return the figures as JSON text, with the names of the disagreements and none of their texts."""
        found, suggestion = self.figures.agreement, self.figures.suggestion
        data = {
            "format": FORMAT,
            "version": VERSION,
            "metric": self.metric,
            "judge": self.judge,
            "better": self.better,
            "scale": list(self.scale),
            "threshold": self.figures.threshold,
            "cross_validated": not self.figures.is_given,
            "rows": {
                "scored": len(self.rows),
                "unscored": len(self.unscored),
                "unlabelled": self.unlabelled,
                "groups": self.groups,
            },
            "agreement": asdict(found),
            "auroc": asdict(self.figures.auroc),
            "suggestion": None if suggestion is None else asdict(suggestion),
            "no_suggestion": self.figures.no_suggestion,
            "reliability": [asdict(each) for each in self.figures.reliability],
            "disagreements": [
                {"name": row.name, "label": row.label, "score": row.result.value} for row in self.disagreements()
            ],
            "unscored": [{"name": name, "reason": reason} for name, reason in self.unscored],
        }
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
        # A lone surrogate has no UTF-8 form; in JSON this is its escape.
        return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"
