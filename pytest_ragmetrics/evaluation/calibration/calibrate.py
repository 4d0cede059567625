"""Scoring a labelled data set: :func:`calibrate` returns the figures, :func:`rag_calibrated` asserts them in a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

from pytest_ragmetrics.core.errors import DatasetError, UnscoredError
from pytest_ragmetrics.datasets.rows import Columns
from pytest_ragmetrics.evaluation.calibration.labels import read_labels
from pytest_ragmetrics.evaluation.calibration.marks import marked_verdicts, read_labelled
from pytest_ragmetrics.evaluation.calibration.result import (
    GROUP_FIELDS,
    Calibration,
    DecidedBy,
    LabelledRow,
    LabelScale,
    group_of,
)
from pytest_ragmetrics.evaluation.calibration.text import calibration_lines, fault_lines
from pytest_ragmetrics.evaluation.evaluate import chosen_columns, evaluate
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.metrics.asserting import check_bound
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.parameters import check_choice, check_number
from pytest_ragmetrics.metrics.registry import metric_for
from pytest_ragmetrics.runs.compare import key_of
from pytest_ragmetrics.runs.wording.failures import explain_vacuous
from pytest_ragmetrics.stats.cutoffs import Aim, calibration_figures
from pytest_ragmetrics.stats.intervals import whole_clusters
from pytest_ragmetrics.stats.scores import Vacuous, check_vacuous, score_set


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
    cache_dir: str | Path | None = None,
    concurrency: int = 32,
    confidence: float = 0.95,
    seed: int = 0,
    progress: bool = False,
    vacuous: Vacuous = "skip",
    columns: Mapping[str, str] | Columns | None = None,
    fresh: bool = False,
) -> Calibration:
    """Score labelled answers by a metric and return how the scores agree with the labels.

    ``labels`` is a file or a list of rows that :func:`~pytest_ragmetrics.datasets.read_dataset` reads. The label of a
    row is in its ``metadata`` (any further field of a row); rows with the same ``group`` or ``cluster`` there count as
    dependent. Without a ``threshold`` the figures are the cross-validated ones of the threshold with the highest
    ``aim``. Answers with nothing to check are in no figure, unless ``vacuous="count"``, and marks of findings are in
    none: readers of a report chose what they marked. ``fresh`` asks the judge anew where its replies are stored. The
    other parameters are those of :func:`~pytest_ragmetrics.evaluation.evaluate.evaluate`.

    Raises ``DatasetError`` for a row or label that cannot be read, and if there is no label at all; ``UnscoredError``
    if no labelled row has a score, or had something to check; ``ValueError`` if the labels are all equal, or no
    threshold is given and none can be suggested.

    >>> rows = [{"response": "Moss.", "contexts": ["Moss grows here."], "label": 1},
    ...         {"response": "Sand and gravel.", "contexts": ["Moss grows here."], "label": 0}] * 2
    >>> calibrate("lexical_grounding", rows).figures.agreement.kappa.estimate
    1.0
    """
    scale, counts = label_scale or LabelScale(), check_vacuous(vacuous)
    chosen = metric_for(metric, judge=judge, embedder=embedder)
    if threshold is not None:
        check_bound("threshold", threshold, metric=chosen.name, scale=chosen.scale)
    dataset, marks = read_labelled(labels, base=base or Path.cwd(), limit=limit, columns=chosen_columns(columns))
    read = read_labels(dataset, scale)
    labelled = [(sample, label) for sample, label, drawn in read if label is not None and drawn]
    samples = [sample for sample, _ in labelled]
    if not dataset:
        raise DatasetError("it has marks of findings and no labelled answer: ragmetrics calibrate says what they show")
    if not labelled:
        msg = f"no row of {len(dataset)} has a label in the field {scale.field!r}; name the field of the labels"
        raise DatasetError(msg, file=dataset[0].file)
    if group_field not in (None, *GROUP_FIELDS) and not any(group_of(sample, group_field) for sample in samples):
        msg = f"no labelled row has the field {group_field!r}, which is to name its group"
        raise DatasetError(msg, file=dataset[0].file)
    replies = context.Replies(fresh=fresh)
    with context.changed(calibration=True, replies=replies):
        table = evaluate(samples, chosen, cache_dir=cache_dir, concurrency=concurrency, progress=progress)
    scored, unscored = [], []
    for row, (sample, label) in zip(table.rows, labelled, strict=True):
        name, good, group = key_of(sample), scale.is_good(label), group_of(sample, group_field)
        if (result := row.results.get(chosen.name)) is not None:
            scored.append(LabelledRow(name=name, sample=sample, result=result, label=label, good=good, group=group))
        else:
            unscored.append((name, row.unscored.get(chosen.name, "it was not scored")))
    if not scored:
        reason = unscored[0][1]
        raise UnscoredError(f"{chosen.name}: no labelled row of {len(labelled)} has a score; the first: {reason}")
    found = score_set(scored, counts)
    if not found.counted:
        raise UnscoredError(explain_vacuous(chosen.name, len(found.vacuous)))
    figures = calibration_figures(
        found.scores,
        [row.good for row in found.counted],
        threshold=threshold,
        clusters=whole_clusters(row.group for row in found.counted),
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
        rows=found.counted,
        unscored=tuple(unscored),
        unlabelled=sum(label is None for _, label, _ in read),
        undrawn=sum(label is not None and not drawn for _, label, drawn in read),
        vacuous=len(found.vacuous),
        marks=tuple(marked_verdicts(marks, chosen.name)),
        reply_days=_days(replies.made),
    )


def _days(times: Sequence[str]) -> tuple[int, int] | None:
    """Return how many days ago the latest and the earliest of some times were."""
    now = datetime.now(timezone.utc)
    days = [max(0, (now - datetime.fromisoformat(time)).days) for time in times]
    return (min(days), max(days)) if days else None


def rag_calibrated(
    metric: Metric | str,
    labels: Any,
    min_kappa: float,
    *,
    threshold: float | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    label_field: str = "label",
    label_scale: tuple[float, float] = (0.0, 1.0),
    good_from: float | None = None,
    group_field: str | None = None,
    base: Path | None = None,
    limit: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    skip_unscored: bool = False,
    vacuous: Vacuous = "skip",
    by: DecidedBy = "bound",
    columns: Mapping[str, str] | None = None,
    fresh: bool = False,
) -> Calibration:
    """Assert that a judge's scores agree with human labels, by Cohen's kappa of at least ``min_kappa``.

    ``labels`` is a file (relative to ``base``, by default the current folder) or a list of rows: each has a ``label``,
    1 for a good answer and 0 for a bad one, or a number on ``label_scale`` that is good from ``good_from`` on (by
    default its middle), and may have a ``group`` or ``cluster``. An answer passes the judge at ``threshold``; without
    one the figures are cross-validated at the threshold that fits best. The lower end of kappa's interval decides: a
    very good judge takes about 50 labels to reach 0.6, a good one 100 or more; ``by="estimate"`` takes the estimate.
    ``fresh=True`` asks anew once a run, but not in replay nor batches.

    Returns the calibration, for ``Evaluation.corrected_mean``. Raises ``AssertionError`` with the figures and the worst
    disagreements, also for a row without a score, unless ``skip_unscored=True``. The report counts these scores apart.

    >>> rows = [{"response": "Moss.", "contexts": ["Moss grows here."], "label": 1},
    ...         {"response": "Sand and gravel.", "contexts": ["Moss grows here."], "label": 0}] * 2
    >>> rag_calibrated("lexical_grounding", rows * 10, 0.6, threshold=0.4).figures.agreement.tnr.estimate
    1.0
    """
    __tracebackhide__ = True
    check_number("min_kappa", min_kappa, -1, 1)
    check_choice("by", by, get_args(DecidedBy))
    ends: Any = label_scale
    if not isinstance(ends, (tuple, list)) or len(ends) != 2:  # noqa: PLR2004 - the worst and the best
        raise ValueError(f"label_scale must be the worst and the best label, such as (0, 1), not {ends!r}")
    found = calibrate(
        metric,
        labels,
        judge=judge,
        embedder=embedder,
        threshold=threshold,
        label_scale=LabelScale(field=label_field, low=ends[0], high=ends[1], good_from=good_from),
        group_field=group_field,
        base=base,
        limit=limit,
        confidence=confidence,
        seed=seed,
        vacuous=vacuous,
        columns=columns,
        fresh=fresh,
    )
    faults = fault_lines(found, min_kappa, by=by, skip_unscored=skip_unscored)
    if faults and found.decides:
        raise AssertionError("\n".join([*faults, *calibration_lines(found, worst=5)]))
    return found
