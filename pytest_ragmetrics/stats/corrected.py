"""Rates and means of a judge's scores, corrected for the errors that the judge is known to make."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from pytest_ragmetrics.stats.intervals import Clusters, Interval, check_values, mean_interval, propagated

_SHARES = (0.0, 1.0)


def corrected_rate(passed: Interval, *, tpr: Interval | float, tnr: Interval | float) -> Interval:
    """Return the share of good answers where a judge passes the share ``passed`` (Rogan and Gladen 1978).

    It is (passed + tnr - 1) / (tpr + tnr - 1): ``tpr`` is the share of the good answers that the judge
    passes, ``tnr`` the share of the bad ones that it catches. Their intervals widen that of the result; a number is
    taken as certain. If they do not rule out a judge no better than chance the interval is 0..1. A judge cannot pass
    more than ``tpr`` or less than 1 - ``tnr``: beyond, the estimate is cut to 1 or 0 and has a ``note``.

    Raises ``ValueError`` for a judge no better than chance, which no formula corrects, for rates out of 0..1, and where
    even the intervals of ``passed`` and the rates lie apart, so that the rates belong to another table.

    >>> passed = Interval(estimate=0.8, low=0.75, high=0.84, confidence=0.95, n=300)
    >>> found = corrected_rate(passed, tpr=0.9, tnr=0.7)
    >>> print(f"{found.estimate:.3f} ({found.low:.3f}..{found.high:.3f})")
    0.833 (0.750..0.900)
    """
    right, caught = _as_interval(tpr, "tpr", passed), _as_interval(tnr, "tnr", passed)
    skill = right.estimate + caught.estimate - 1.0
    if skill <= 0.0:
        raise ValueError(
            f"a judge with a true positive rate of {right.estimate:g} and a true negative rate of "
            f"{caught.estimate:g} is no better than chance, and nothing can be learned from its verdicts"
        )
    if passed.low > right.high or passed.high < 1.0 - caught.high:
        raise ValueError(
            f"these rates cannot belong to this table: the judge passes {passed.estimate:.2f} "
            f"({passed.low:.2f}..{passed.high:.2f}) of it, and such a judge passes between "
            f"{1.0 - caught.estimate:.2f} and {right.estimate:.2f}"
        )
    exact = _rogan_gladen(passed.estimate, right.estimate, caught.estimate)
    estimate = min(max(exact, 0.0), 1.0)
    note = f"cut from {exact:.2f}: the judge passes more or less than its rates allow" if exact != estimate else None
    if skill <= math.hypot(right.estimate - right.low, caught.estimate - caught.low):
        return Interval(estimate=estimate, low=0.0, high=1.0, confidence=passed.confidence, n=passed.n, note=note)
    return replace(propagated(_rogan_gladen, (passed, right, caught), n=passed.n, bounds=_SHARES), note=note)


def prediction_powered_mean(
    scores: Sequence[float], labels: Sequence[float | None], *, clusters: Clusters = None, confidence: float = 0.95
) -> Interval:
    """Return the mean of human labels over all rows, estimated from scores of all and labels of a random part.

    It is mean(label - w score) over the labelled rows plus w mean(score) over the others, with the weight w by the
    covariance of scores and labels (PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453), and never wider than
    the interval of the labels alone. The labelled rows must have been chosen by chance; scores and labels are between
    0 and 1.

    Raises ``ValueError`` for lists of different lengths, no label, or values out of 0..1.

    >>> found = prediction_powered_mean([1.0] * 9 + [0.0] + [1.0] * 81 + [0.0] * 9, [1.0] * 9 + [0.0] + [None] * 90)
    >>> print(f"{found.estimate:.2f} ({found.low:.4f}..{found.high:.4f})")
    0.90 (0.5815..1.0000)
    """
    found = {row: float(label) for row, label in enumerate(labels) if label is not None}
    if len(labels) != len(scores) or not found:
        lengths = f"{len(labels)} labels for {len(scores)} scores"
        raise ValueError(lengths if found else "there is no label to correct the scores by")
    check_values(scores, clusters, _SHARES)
    check_values(list(found.values()), None, _SHARES)
    names: Sequence[Hashable] = range(len(scores)) if clusters is None else clusters
    rest = [row for row in range(len(scores)) if row not in found]
    labelled = [names[row] for row in found]
    alone = mean_interval(list(found.values()), confidence=confidence, clusters=labelled)
    weight = _weight(scores, found, names) if rest else 0.0
    if not weight:
        return alone
    errors = [label - weight * scores[row] for row, label in found.items()]
    first = mean_interval(errors, confidence=confidence, clusters=labelled, bounds=(-weight, 1.0))
    others, unlabelled = [scores[row] for row in rest], [names[row] for row in rest]
    second = mean_interval(others, confidence=confidence, clusters=unlabelled)
    powered = propagated(
        lambda one, other: one + weight * other,
        (first, second),
        n=len(scores),
        bounds=_SHARES,
        correlation=_correlation(_residuals(errors, labelled), _residuals(others, unlabelled)),
    )
    return powered if powered.half_width < alone.half_width else alone


def _weight(scores: Sequence[float], labels: Mapping[int, float], names: Sequence[Hashable]) -> float:
    """Return the weight of the scores that makes the error of the mean smallest, as far as the labels show it."""
    known = [scores[row] for row in labels]
    labelled = [names[row] for row in labels]
    of_scores, of_labels = _residuals(known, labelled), _residuals(list(labels.values()), labelled)
    everywhere = _residuals(scores, names)
    if len(of_scores) == 1 or len(everywhere) == 1:
        return 0.0
    common = math.fsum(of_scores[name] * of_labels[name] for name in of_scores) / (len(of_scores) - 1)
    variance = math.fsum(residual**2 for residual in everywhere.values()) / (len(everywhere) - 1)
    if len(of_scores) < len(labels) or len(everywhere) < len(scores):
        # Clusters of the labelled rows are smaller than those of all rows.
        variance *= (len(labels) / len(of_scores)) / (len(scores) / len(everywhere))
    others = len(scores) - len(labels)
    return min(max(common / (variance * (1.0 + len(labels) / others)), 0.0), 1.0) if variance else 0.0


def _residuals(values: Sequence[float], clusters: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return the sum of the deviations from the mean for each cluster."""
    mean = math.fsum(values) / len(values)
    sums: dict[Hashable, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value - mean
    return sums


def _rogan_gladen(passed: float, tpr: float, tnr: float) -> float:
    return (passed + tnr - 1.0) / (tpr + tnr - 1.0)


def _as_interval(rate: Interval | float, name: str, like: Interval) -> Interval:
    value: object = rate.estimate if isinstance(rate, Interval) else rate
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be a rate between 0 and 1, not {value!r}")
    if isinstance(rate, Interval):
        return rate
    return Interval(estimate=float(value), low=float(value), high=float(value), confidence=like.confidence, n=like.n)


def _correlation(one: Mapping[Hashable, float], other: Mapping[Hashable, float]) -> float:
    """Return the correlation of two means by their residuals in common clusters."""
    spread = math.sqrt(math.fsum(r * r for r in one.values()) * math.fsum(r * r for r in other.values()))
    common = math.fsum(residual * other[cluster] for cluster, residual in one.items() if cluster in other)
    return min(max(common / spread, -1.0), 1.0) if spread else 0.0
