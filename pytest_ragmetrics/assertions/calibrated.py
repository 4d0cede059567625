"""A judge held to the labels of people, before it is trusted with answers that nobody labelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_ragmetrics.calibration.calibrate import Calibration, calibrate
from pytest_ragmetrics.calibration.labels import LabelScale
from pytest_ragmetrics.calibration.text import calibration_lines, fault_lines
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike

_WORST = 5


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
) -> Calibration:
    """Assert that a judge's scores agree with human labels, by Cohen's kappa of at least ``min_kappa``.

    ``labels`` are labelled answers, a file (from ``base``, else from the current folder) or a list of rows: each has a
    ``label``, 1 for a good answer and 0 for a bad one, or a number on ``label_scale`` that is good from ``good_from``
    on (the middle of it), and may name its source in ``group`` or ``cluster``. An answer passes the judge at
    ``threshold``; without one the figures are the cross-validated ones of the threshold that suits the labels best.
    The estimate of kappa decides; the interval stands by it.

    Returns the calibration, which :meth:`Evaluation.corrected_mean` takes. Raises ``AssertionError`` with the figures
    and the worst disagreements, also where a labelled row has no score unless ``skip_unscored=True`` leaves such rows
    out, and otherwise as :func:`~pytest_ragmetrics.calibration.calibrate.calibrate` does. It never skips.

    >>> rows = [{"response": "Moss.", "contexts": ["Moss grows here."], "label": 1},
    ...         {"response": "Sand and gravel.", "contexts": ["Moss grows here."], "label": 0}] * 2
    >>> rag_calibrated("lexical_grounding", rows, 0.6, threshold=0.4).figures.agreement.tnr.estimate
    1.0
    """
    __tracebackhide__ = True
    _check(min_kappa)
    low, high = label_scale
    found = calibrate(
        metric,
        labels,
        judge=judge,
        embedder=embedder,
        threshold=threshold,
        label_scale=LabelScale(field=label_field, low=low, high=high, good_from=good_from),
        group_field=group_field,
        base=base,
        limit=limit,
        confidence=confidence,
        seed=seed,
    )
    faults = fault_lines(found, min_kappa, skip_unscored=skip_unscored)
    if faults and found.decides:
        raise AssertionError("\n".join([*faults, *calibration_lines(found, worst=_WORST)]))
    return found


def _check(min_kappa: object) -> None:
    if isinstance(min_kappa, bool) or not isinstance(min_kappa, (int, float)) or not -1.0 <= min_kappa <= 1.0:
        msg = f"min_kappa must be a number between -1 and 1, such as 0.6, not {min_kappa!r}"
        raise ValueError(msg)
