"""The mean or pass rate of a set of scores compared with a bound, with or without an interval.

Gates and the assertions over sets make a :class:`ThresholdResult` here; ``runs.wording`` words it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

from pytest_ragmetrics.core.result import Decision, Direction
from pytest_ragmetrics.stats.bounded import mean_bounds
from pytest_ragmetrics.stats.intervals import (
    Clusters,
    Interval,
    check_values,
    mean_error,
    mean_interval,
    t_ends,
    totals_by_cluster,
    verdict,
)

#: What an interval with the bound in it means.
Inconclusive = Literal["fail", "pass"]
# samples_to_settle does not look for more samples than this.
_MOST = 1_000_000
# The forecast is for a power of 80 %.
_POWER_QUANTILE = NormalDist().inv_cdf(0.8)
_FEWEST = 20
# The forecast is exact to a percent.
_PRECISION = 100


def samples_to_settle(
    values: Sequence[float],
    bound: float,
    *,
    confidence: float = 0.95,
    clusters: Clusters = None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> int | None:
    """Return how many more samples bring the interval to one side of a bound with a probability of about 80 %.

    The forecast assumes that further samples have the mean, the spread and the clusters of these. 0 if the interval is
    on one side already; ``None`` where no forecast holds: with fewer than 20 samples or one cluster, a mean closer to
    the bound than half its standard error, or where a million samples are not enough. Raises ``ValueError`` as
    :func:`~pytest_ragmetrics.stats.intervals.mean_interval` does.

    >>> samples_to_settle([0.9, 0.8, 1.0, 0.7, 0.85] * 6, 0.8)
    54
    """
    interval = mean_interval(values, confidence=confidence, clusters=clusters, bounds=bounds)
    if verdict(interval, bound) != "inconclusive":
        return 0
    found = mean_error(values, clusters)
    n, distance = found.n, abs(found.mean - bound)
    spread = found.error * math.sqrt(n)
    if n < _FEWEST or not found.df or distance < found.error / 2.0 or not distance:
        return None
    totals = totals_by_cluster(values, clusters)

    def is_settled(size: int) -> bool:
        times = size / n
        if bounds is None:
            grown = replace(found, error=found.error / math.sqrt(times), df=found.df * times)
            low, high = t_ends(grown, interval.confidence)
        else:
            low, high = mean_bounds(totals, confidence=interval.confidence, bounds=bounds, times=times)
        reach = found.mean - low if bound < found.mean else high - found.mean
        return distance >= reach + _POWER_QUANTILE * spread * math.sqrt(size - n) / size

    enough = 2 * n
    while not is_settled(enough):
        if enough > _MOST:
            return None
        enough *= 2
    too_few = enough // 2
    while enough - too_few > max(1, too_few // _PRECISION):
        middle = (enough + too_few) // 2
        too_few, enough = (too_few, middle) if is_settled(middle) else (middle, enough)
    return enough - n


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdResult:
    """A figure over ``n`` scores of a metric compared with a bound.

    ``value`` is their mean, or the rate of those that ``reached`` ``score_bound``. ``better`` is the good side of
    ``bound`` for the value, ``score_better`` that of ``score_bound`` for a score. With a confidence there is an
    ``interval``, whose bad end decides, and ``more`` is the number of further samples that settle an inconclusive
    outcome with a probability of about 80 % (``None``: that cannot be told). ``unscored`` and ``vacuous`` (nothing to
    check) count the rows that were left out. With ``all_pass`` ``n`` are rows, of which ``reached`` had no answer that
    falls short. ``percentile`` is the least score with a ``unit`` that the share ``bound`` does not exceed, where lower
    ones are better: it is within ``score_bound`` where the rate is within ``bound``.
    """

    metric: str
    statistic: Literal["mean", "rate"]
    value: float
    bound: float
    better: Direction
    outcome: Decision
    n: int
    unscored: int = 0
    vacuous: int = 0
    interval: Interval | None = None
    more: int | None = None
    score_bound: float | None = None
    score_better: Direction = "higher"
    reached: int | None = None
    all_pass: bool = False
    unit: str = ""
    percentile: float | None = None


def set_threshold(
    scores: Sequence[float],
    bound: float,
    *,
    score_bound: float | None = None,
    better: Direction = "higher",
    metric: str = "score",
    confidence: float | None = None,
    clusters: Clusters = None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    unscored: int = 0,
    vacuous: int = 0,
    unit: str = "",
) -> ThresholdResult:
    """Return the comparison of the mean of scores, or of the rate of those that meet ``score_bound``, with a bound.

    By its interval if there is a ``confidence``. ``better`` is the good side of scores; a rate is better the higher it
    is. Raises ``ValueError`` as :func:`~pytest_ragmetrics.stats.intervals.mean_interval` does.

    >>> set_threshold([0.9, 0.8, 1.0, 0.7], 0.8, confidence=0.95).outcome
    'inconclusive'
    >>> result = set_threshold([0.9, 0.8, 1.0, 0.7], 0.9, score_bound=0.8)
    >>> result.value, result.outcome
    (0.75, 'failed')
    """
    if not len(scores):
        raise ValueError("no scores, and a mean needs at least one")
    values = [float(score) for score in scores]
    check_values(values, None, None)
    side = better
    if score_bound is not None:
        values, bounds, side = [float(meets(score, score_bound, better)) for score in values], (0.0, 1.0), "higher"
    percentile = None
    if score_bound is not None and unit and better == "lower":
        percentile = sorted(map(float, scores))[max(1, math.ceil(round(bound * len(scores), 9))) - 1]
    value, interval, more = math.fsum(values) / len(values), None, None
    outcome: Decision = "passed" if meets(value, bound, side) else "failed"
    if confidence is not None:
        interval = mean_interval(values, confidence=confidence, clusters=clusters, bounds=bounds)
        more = samples_to_settle(values, bound, confidence=confidence, clusters=clusters, bounds=bounds)
        outcome = verdict(interval, bound, side)
    return ThresholdResult(
        metric=metric,
        statistic="mean" if score_bound is None else "rate",
        value=value,
        bound=bound,
        better=side,
        outcome=outcome,
        n=len(values),
        unscored=unscored,
        vacuous=vacuous,
        interval=interval,
        more=more,
        score_bound=score_bound,
        score_better="higher" if score_bound is None else better,
        reached=None if score_bound is None else int(sum(values)),
        unit=unit,
        percentile=percentile,
    )


def check_inconclusive(inconclusive: object, confidence: float | None) -> Inconclusive:
    """Return the word; raise ``ValueError`` for another, and for ``"pass"`` without a confidence."""
    if inconclusive not in ("fail", "pass"):
        raise ValueError(f"inconclusive must be 'fail' or 'pass', not {inconclusive!r}")
    if inconclusive == "pass" and confidence is None:
        msg = "inconclusive='pass' goes with a confidence=, such as 0.95: without an interval nothing is inconclusive"
        raise ValueError(msg)
    return "pass" if inconclusive == "pass" else "fail"


def meets(score: float, bound: float, better: Direction) -> bool:
    """Return whether a score is on the good side of a bound, or on it."""
    # bool() because a comparison with a numpy.float64 is a numpy.bool.
    return bool(score <= bound if better == "lower" else score >= bound)
