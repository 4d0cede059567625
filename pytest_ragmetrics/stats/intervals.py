"""Intervals around means and rates that contain the truth as often as they say, and what they decide."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_ragmetrics.result import Direction
from pytest_ragmetrics.stats.bootstrap import bootstrap_ends
from pytest_ragmetrics.stats.clusters import MeanError, mean_error, totals_by_cluster
from pytest_ragmetrics.stats.quantiles import normal_quantile, t_quantile

Method = Literal["auto", "t", "bootstrap"]
#: How the ends of an interval follow from a mean and its error.
Shape = Literal["t", "skewed", "rate"]
Decision = Literal["passed", "failed", "inconclusive"]

_METHODS = ("auto", "t", "bootstrap")
_EVERYTHING = (-math.inf, math.inf)
# Below this the correction for skewness is smaller than rounding.
_STRAIGHT = 1e-9
_FEWEST_FOR_SKEWNESS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """An estimate of ``n`` scores, and where the truth lies with ``confidence``; the ends may be infinite."""

    estimate: float
    low: float
    high: float
    confidence: float
    n: int

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.high - self.low) / 2.0


def mean_interval(
    scores: Sequence[float],
    *,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "t",
    bounds: tuple[float, float] | None = (0.0, 1.0),
    seed: int = 0,
) -> Interval:
    """Return the two-sided interval of the mean of what the scores are a sample of.

    ``clusters`` names for each score what it has in common with others; whole clusters are then what is independent
    (CR2 errors with Satterthwaite's degrees of freedom). ``method`` is ``"t"``, Student's; ``"bootstrap"``, studentised
    and seeded (Student's of fewer than four clusters); or ``"auto"``: Wilson's where the scores are all 0 or 1, else
    Student's corrected for skewness (Hall 1992), which keeps its promise for scores that crowd at one end of the scale,
    where the plain one says too much.

    ``bounds`` are the lowest and the highest score there can be. Scores that are all equal show no spread, and the
    interval follows from the bounds alone: by Markov's inequality a mean below ``lowest + (score - lowest) * q`` makes
    them less probable than the confidence allows, with q the n-th root of half of what it leaves. Without bounds, or
    of one cluster, the interval is everything there can be.

    Raises ``ValueError`` for no score, one that is not finite or out of bounds, or a confidence that is not between
    0 and 1.

    >>> interval = mean_interval([0.9, 0.8, 1.0, 0.7, 0.85])
    >>> print(f"{interval.estimate:.2f} ({interval.low:.3f}..{interval.high:.3f})")
    0.85 (0.711..0.989)
    >>> round(mean_interval([1.0] * 20).low, 3)
    0.832
    """
    values = [float(score) for score in scores]
    confidence = check_confidence(confidence)
    check_values(values, clusters, bounds)
    if method not in _METHODS:
        msg = f"method must be one of {', '.join(_METHODS)}, not {method!r}"
        raise ValueError(msg)
    found, ends = mean_error(values, clusters), None
    if method == "bootstrap" and found.says_error:
        ends = bootstrap_ends(totals_by_cluster(values, clusters), found, confidence=confidence, seed=seed)
    if ends is None:
        ends = mean_ends(found, confidence, shape=shape_of(values, bounds) if method == "auto" else "t", bounds=bounds)
    low, high = _EVERYTHING if bounds is None else bounds
    return Interval(
        estimate=found.mean,
        low=min(max(low, ends[0]), found.mean),
        high=max(min(high, ends[1]), found.mean),
        confidence=confidence,
        n=found.n,
    )


def rate_interval(
    flags: Sequence[bool], *, confidence: float = 0.95, clusters: Sequence[Hashable] | None = None
) -> Interval:
    """Return the two-sided interval of the rate of what the flags are a sample of, by Wilson's score.

    With ``clusters`` it is Wilson's of the effective sample size, n over the design effect, with Student's quantile for
    the degrees of freedom that the clusters leave. Flags that are all equal do not show a design effect: each cluster
    counts as one flag then. Raises ``ValueError`` as :func:`mean_interval` does.

    >>> interval = rate_interval([True] * 18 + [False] * 2)
    >>> print(f"{interval.estimate:.2f} ({interval.low:.3f}..{interval.high:.3f})")
    0.90 (0.699..0.972)
    """
    values = [float(bool(flag)) for flag in flags]
    confidence = check_confidence(confidence)
    check_values(values, clusters, (0.0, 1.0))
    found = mean_error(values, clusters)
    low, high = mean_ends(found, confidence, shape="rate", bounds=(0.0, 1.0))
    return Interval(estimate=found.mean, low=low, high=high, confidence=confidence, n=found.n)


def verdict(interval: Interval, bound: float, better: Direction = "higher") -> Decision:
    """Return whether an interval lies on the good side of a bound, on the bad one, or on both.

    >>> verdict(Interval(estimate=0.9, low=0.86, high=0.94, confidence=0.95, n=80), 0.85)
    'passed'
    >>> verdict(Interval(estimate=0.9, low=0.80, high=0.96, confidence=0.95, n=20), 0.85)
    'inconclusive'
    """
    if better == "lower":
        return "passed" if interval.high <= bound else "failed" if interval.low > bound else "inconclusive"
    return "passed" if interval.low >= bound else "failed" if interval.high < bound else "inconclusive"


def shape_of(values: Sequence[float], bounds: tuple[float, float] | None) -> Shape:
    """Return the shape that suits values: that of a rate where all are 0 or 1 and they are not all the same."""
    return "rate" if bounds == (0.0, 1.0) and set(values) == {0.0, 1.0} else "skewed"


def mean_ends(
    found: MeanError, confidence: float, *, shape: Shape, bounds: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the ends of the interval around a mean whose error is known; they may lie out of bounds."""
    if shape == "rate":
        return _rate_ends(found, confidence)
    if found.is_constant and bounds is not None:
        share = ((1.0 - confidence) / 2.0) ** (1.0 / found.groups)
        low, high = bounds
        return low + (found.mean - low) * share, high - (high - found.mean) * share
    if not found.says_error:
        return _EVERYTHING
    quantile = t_quantile(0.5 + confidence / 2.0, found.df)
    upper, lower = quantile, -quantile
    if shape == "skewed" and found.groups >= _FEWEST_FOR_SKEWNESS and abs(found.skewness) >= _STRAIGHT:
        upper, lower = (_straightened(end, found.skewness, math.sqrt(found.groups)) for end in (quantile, -quantile))
    return found.mean - upper * found.error, found.mean - lower * found.error


def wilson_ends(rate: float, n: float, quantile: float) -> tuple[float, float]:
    """Return the ends of Wilson's interval (1927) of a rate seen in ``n`` trials.

    >>> [round(end, 3) for end in wilson_ends(1.0, 10, 1.96)]
    [0.722, 1.0]
    """
    stretch = quantile * quantile / n
    middle = (rate + stretch / 2.0) / (1.0 + stretch)
    half = quantile / (1.0 + stretch) * math.sqrt(rate * (1.0 - rate) / n + stretch / (4.0 * n))
    low = 0.0 if rate == 0.0 else max(0.0, middle - half)
    high = 1.0 if rate == 1.0 else min(1.0, middle + half)
    return min(low, rate), max(high, rate)


def check_confidence(confidence: object) -> float:
    """Return a confidence; raise ``ValueError`` for what is none, with what to write instead."""
    if not isinstance(confidence, float) or not 0.0 < confidence < 1.0:
        msg = f"confidence must be a number between 0 and 1, such as 0.95, not {confidence!r}"
        raise ValueError(msg)
    # That of numpy is a float, too, and would make all that is computed with it one of numpy.
    return float(confidence)


def check_values(
    values: Sequence[float], clusters: Sequence[Hashable] | None, bounds: tuple[float, float] | None
) -> None:
    """Raise ``ValueError`` for no value, one that is not finite or out of bounds, or clusters of another number."""
    if not len(values):  # an array has no truth of its own
        msg = "no scores, and an interval needs at least one"
        raise ValueError(msg)
    if clusters is not None and len(clusters) != len(values):
        msg = f"{len(clusters)} clusters for {len(values)} scores; give one for each score"
        raise ValueError(msg)
    low, high = _EVERYTHING if bounds is None else bounds
    for index, value in enumerate(values):
        if not math.isfinite(value):
            msg = f"scores[{index}] is {value}, not a finite number"
            raise ValueError(msg)
        if not low <= value <= high:
            msg = f"scores[{index}] is {value}, not between {low:g} and {high:g}; say bounds= for another scale"
            raise ValueError(msg)


def _rate_ends(found: MeanError, confidence: float) -> tuple[float, float]:
    size, quantile = float(found.n), normal_quantile(0.5 + confidence / 2.0)
    if found.groups == found.n:
        return wilson_ends(found.mean, size, quantile)
    if not found.says_error:
        return wilson_ends(found.mean, size / found.worst_effect, quantile)
    # The effect is relative to a variance over n - 1, Wilson's is over n.
    size *= (found.n - 1) / (found.n * found.effect)
    return wilson_ends(found.mean, size, t_quantile(0.5 + confidence / 2.0, found.df))


def _straightened(target: float, skewness: float, root: float) -> float:
    """Return the t statistic that Hall's cubic transformation takes to a target."""
    inner = 1.0 + skewness / root * (target - skewness / (6.0 * root))
    return 3.0 * root / skewness * (math.copysign(abs(inner) ** (1.0 / 3.0), inner) - 1.0)
