"""Scoring a labelled data set, and what comes of it."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_ragmetrics.calibration.labels import (
    FORMAT,
    GROUP_FIELDS,
    VERSION,
    JudgeRates,
    LabelScale,
    group_of,
    judges_of,
)
from pytest_ragmetrics.comparison import key_of, whole_clusters
from pytest_ragmetrics.datasets import DatasetRow, read_dataset
from pytest_ragmetrics.errors import DatasetError, UnscoredError
from pytest_ragmetrics.evaluation import Row, evaluate
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.registry import metric_for
from pytest_ragmetrics.result import Direction, MetricResult
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.stats.decisions import meets
from pytest_ragmetrics.stats.thresholds import Aim, CalibrationFigures, calibration_figures


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledRow:
    """A scored answer with the label that people gave it, from 0 to 1, and whether that is one of a good answer.

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

    ``unscored`` names the labelled rows without a score, each with the reason; ``unlabelled`` counts the rows that
    nobody labelled, which are not scored.
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
        """What :meth:`Evaluation.corrected_mean` needs to know."""
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
        """Who judged, ``None`` for a metric that needs no judge."""
        return judges_of(row.result for row in self.rows)

    @property
    def grouped(self) -> bool:
        """Whether rows name what they have in common with others."""
        return any(row.group is not None for row in self.rows)

    @property
    def groups(self) -> int:
        """How many groups there are; a row that names none is one by itself."""
        named = {row.group for row in self.rows if row.group is not None}
        return len(named) + sum(row.group is None for row in self.rows)

    @property
    def decides(self) -> bool:
        """Whether the scores decide anything: in a dry run they stand for others."""
        return all(row.result.decides for row in self.rows)

    def passes(self, row: LabelledRow) -> bool:
        """Tell whether the judge lets an answer pass at the threshold."""
        return meets(row.result.value, self.figures.threshold, self.better)

    def disagreements(self) -> tuple[LabelledRow, ...]:
        """Return the rows that judge and people see differently, those first where score and label are furthest apart.

        An answer is held against the threshold itself, also where the figures are cross-validated.
        """
        low, high = self.scale

        def apart(row: LabelledRow) -> float:
            goodness = (row.result.value - low) / (high - low)
            return abs(row.label - (1.0 - goodness if self.better == "lower" else goodness))

        differing = (row for row in self.rows if self.passes(row) != row.good)
        return tuple(sorted(differing, key=lambda row: (-apart(row), row.name)))

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
        # Half a surrogate pair has no UTF-8 form; in JSON this is its escape.
        return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def calibrate(
    metric: Metric | str,
    labels: Any,
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    threshold: float | None = None,
    label_scale: LabelScale | None = None,
    group_field: str | None = None,
    aim: Aim = "balanced_accuracy",
    limit: int | None = None,
    base: Path | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    concurrency: int = 32,
    confidence: float = 0.95,
    seed: int = 0,
    progress: bool = False,
) -> Calibration:
    """Score labelled answers by a metric and return how the scores agree with the labels.

    ``labels`` is what :func:`~pytest_ragmetrics.datasets.read_dataset` reads, a file or a list of rows; a label stands
    in the ``metadata`` (any further field of a row), and what answers have in common, such as their source, in its
    field ``group`` or ``cluster``. Without a ``threshold`` the figures are the cross-validated ones of the threshold
    that has the highest ``aim``. The rest is as :func:`~pytest_ragmetrics.evaluation` has it.

    Raises ``DatasetError`` for a row that cannot be read or a label that is none, and where there is no label at all;
    ``UnscoredError`` where no labelled row has a score; ``ValueError`` where the labels are all equal, or no threshold
    is given and none can be suggested.

    >>> rows = [{"response": "Moss.", "contexts": ["Moss grows here."], "label": 1},
    ...         {"response": "Sand and gravel.", "contexts": ["Moss grows here."], "label": 0}] * 2
    >>> calibrate("lexical_grounding", rows).figures.agreement.kappa.estimate
    1.0
    """
    scale = label_scale or LabelScale()
    chosen = metric_for(metric, judge=judge, embedder=embedder)
    dataset = read_dataset(labels, base=base or Path.cwd(), limit=limit)
    labelled = _labelled(dataset, scale, group_field)
    table = evaluate(
        [given.sample for given in labelled],
        chosen,
        cache_dir=None if cache_dir is None else Path(cache_dir),
        concurrency=concurrency,
        progress=progress,
    )
    rows, unscored = _scored(chosen.name, table.rows, labelled, scale)
    figures = calibration_figures(
        [row.result.value for row in rows],
        [row.good for row in rows],
        threshold=threshold,
        clusters=whole_clusters(row.group for row in rows),
        better=chosen.better,
        scale=chosen.scale,
        aim=aim,
        confidence=confidence,
        seed=seed,
    )
    return Calibration(
        metric=chosen.name,
        better=chosen.better,
        scale=chosen.scale,
        figures=figures,
        rows=rows,
        unscored=unscored,
        unlabelled=len(dataset) - len(labelled),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Labelled:
    """A sample with its label and its group, before it is scored."""

    sample: Sample
    label: float
    group: Hashable | None


def _labelled(dataset: Sequence[DatasetRow], scale: LabelScale, group_field: str | None) -> list[_Labelled]:
    """Return the samples that have a label; raise ``DatasetError`` for a row that is wrong."""
    found = []
    for row in dataset:
        if row.error is not None or row.sample is None:
            raise row.error or DatasetError("it has no sample", file=row.file, line=row.line)
        label = scale.read(row.sample, file=row.file, line=row.line)
        if label is not None:
            found.append(_Labelled(sample=row.sample, label=label, group=group_of(row.sample, group_field)))
    if not found:
        msg = f"none of {len(dataset)} rows has a label in the field {scale.field!r}; say where the labels stand"
        raise DatasetError(msg, file=dataset[0].file)
    if group_field is not None and group_field not in GROUP_FIELDS and not any(given.group for given in found):
        msg = f"no labelled row has the field {group_field!r}, which is to name its group"
        raise DatasetError(msg, file=dataset[0].file)
    return found


def _scored(
    metric: str, rows: Sequence[Row], labelled: Sequence[_Labelled], scale: LabelScale
) -> tuple[tuple[LabelledRow, ...], tuple[tuple[str, str], ...]]:
    """Return the rows with a score, and name and reason of the others; raise ``UnscoredError`` if that is all."""
    scored, unscored = [], []
    for row, given in zip(rows, labelled, strict=True):
        result, name = row.results.get(metric), key_of(given.sample)
        if result is None:
            unscored.append((name, row.unscored.get(metric, "it was not scored")))
            continue
        scored.append(
            LabelledRow(
                name=name,
                sample=given.sample,
                result=result,
                label=given.label,
                good=scale.is_good(given.label),
                group=given.group,
            )
        )
    if not scored:
        msg = f"{metric}: none of {len(rows)} labelled rows has a score; the first: {unscored[0][1]}"
        raise UnscoredError(msg)
    return tuple(scored), tuple(unscored)
