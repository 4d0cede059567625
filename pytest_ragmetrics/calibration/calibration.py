"""Scoring a labelled data set, and what comes of it."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_ragmetrics.calibration.labels import GROUP_FIELDS, LabelScale, group_of
from pytest_ragmetrics.calibration.rates import FORMAT, VERSION, JudgeRates, interval_mapping
from pytest_ragmetrics.datasets import DatasetRow, read_dataset
from pytest_ragmetrics.errors import DatasetError, UnscoredError
from pytest_ragmetrics.evaluation.comparison import key_of, whole_clusters
from pytest_ragmetrics.evaluation.evaluate import evaluate
from pytest_ragmetrics.evaluation.table import Row
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.registry import metric_for
from pytest_ragmetrics.result import Direction, MetricResult
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.stats.calibration import Figures, calibration_figures
from pytest_ragmetrics.stats.standing import reaches
from pytest_ragmetrics.stats.thresholds import Aim


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledRow:
    """A scored answer with the label that people gave it, from 0 to 1, and whether that is one of a good answer."""

    name: str
    sample: Sample
    result: MetricResult
    label: float
    good: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """A judge's scores against human labels: ``figures`` over the ``rows`` that have both.

    ``unscored`` names the labelled rows without a score, each with the reason; ``unlabelled`` counts the rows that
    nobody labelled, which are not scored. ``judges`` are those who judged, none for a metric that needs none;
    ``groups`` counts the clusters. ``decides`` is false in a dry run, whose scores stand for others.
    """

    metric: str
    judges: tuple[str, ...]
    better: Direction
    scale: tuple[float, float]
    figures: Figures
    rows: tuple[LabelledRow, ...]
    unscored: tuple[tuple[str, str], ...]
    unlabelled: int
    groups: int
    grouped: bool
    decides: bool

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
        """Who judged."""
        return ", ".join(self.judges) or None

    def passes(self, row: LabelledRow) -> bool:
        """Tell whether the judge lets an answer pass at the threshold."""
        return reaches(row.result.value, self.figures.threshold, self.better)

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
            "agreement": _plain(asdict(found)),
            "auroc": interval_mapping(self.figures.auroc),
            "suggestion": None if suggestion is None else _plain(asdict(suggestion)),
            "no_suggestion": self.figures.no_suggestion,
            "reliability": [_plain(asdict(each)) for each in self.figures.reliability],
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
    that has the highest ``aim``. The rest is as :func:`~pytest_ragmetrics.evaluation.evaluate` has it.

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
        [sample for sample, _, _ in labelled],
        chosen,
        cache_dir=None if cache_dir is None else Path(cache_dir),
        concurrency=concurrency,
        progress=progress,
    )
    rows, groups, unscored = _scored(chosen.name, table.rows, labelled, scale)
    clusters = whole_clusters(groups)
    return Calibration(
        metric=chosen.name,
        judges=tuple(sorted({row.result.judge for row in rows if row.result.judge is not None})),
        better=chosen.better,
        scale=chosen.scale,
        figures=calibration_figures(
            [row.result.value for row in rows],
            [row.good for row in rows],
            threshold=threshold,
            clusters=clusters,
            better=chosen.better,
            scale=chosen.scale,
            aim=aim,
            confidence=confidence,
            seed=seed,
        ),
        rows=rows,
        unscored=unscored,
        unlabelled=len(dataset) - len(labelled),
        groups=len(rows) if clusters is None else len(set(clusters)),
        grouped=clusters is not None,
        decides=all(row.result.decides for row in rows),
    )


def _labelled(
    dataset: Sequence[DatasetRow], scale: LabelScale, group_field: str | None
) -> list[tuple[Sample, float, Hashable | None]]:
    """Return the samples that have a label, with label and group; raise ``DatasetError`` for a row that is wrong."""
    found = []
    for row in dataset:
        if row.error is not None or row.sample is None:
            raise row.error or DatasetError("it has no sample", file=row.file, line=row.line)
        label = scale.read(row.sample, file=row.file, line=row.line)
        if label is not None:
            found.append((row.sample, label, group_of(row.sample, group_field)))
    if not found:
        msg = f"none of {len(dataset)} rows has a label in the field {scale.field!r}; say where the labels stand"
        raise DatasetError(msg, file=dataset[0].file)
    if group_field is not None and group_field not in GROUP_FIELDS and not any(group for _, _, group in found):
        msg = f"no labelled row has the field {group_field!r}, which is to name its group"
        raise DatasetError(msg, file=dataset[0].file)
    return found


def _scored(
    metric: str, rows: Sequence[Row], labelled: Sequence[tuple[Sample, float, Hashable | None]], scale: LabelScale
) -> tuple[tuple[LabelledRow, ...], list[Hashable | None], tuple[tuple[str, str], ...]]:
    """Return the rows with a score, their groups, and name and reason of the others; raise ``UnscoredError`` if all."""
    scored, groups, unscored = [], [], []
    for row, (sample, label, group) in zip(rows, labelled, strict=True):
        result, name = row.results.get(metric), key_of(sample)
        if result is None:
            unscored.append((name, row.unscored.get(metric, "it was not scored")))
            continue
        scored.append(LabelledRow(name=name, sample=sample, result=result, label=label, good=scale.is_good(label)))
        groups.append(group)
    if not scored:
        msg = f"{metric}: none of {len(rows)} labelled rows has a score; the first: {unscored[0][1]}"
        raise UnscoredError(msg)
    return tuple(scored), groups, tuple(unscored)


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) if isinstance(value, Mapping) else value for name, value in fields.items()}
