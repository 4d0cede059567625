"""Two-sided intervals of means and rates, of clustered rows too, and of figures that follow from several of them.

The only module that makes intervals. Gates, assertions over sets, comparisons of runs and calibrations call it with
plain numbers; it knows neither metrics nor judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from pytest_ragmetrics.core.result import Decision, Direction
from pytest_ragmetrics.stats.bounded import mean_bounds

#: The cluster of each score, ``None`` where every score is one of its own.
Clusters: TypeAlias = Sequence[Hashable] | None

_EVERYTHING = (-math.inf, math.inf)
# Values that differ by less, relative to their size, are equal up to rounding.
_ROUNDING = 1e-12
# The design effect is at least this: however evenly clusters mix, their mean has at least half the standard error.
_LEAST_EFFECT = 0.25
# Quadrature from 0 to infinity by a double exponential (Takahasi and Mori 1974): nodes and their weights.
_NODES = {
    math.exp(s - math.exp(-s)): (1.0 + math.exp(-s)) * math.exp(s - math.exp(-s)) / 16.0
    for s in (step / 16.0 for step in range(-60, 81))
}
_ENOUGH = 1e-14


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """An estimate from ``n`` scores with the ends of its interval at ``confidence``; the ends may be infinite.

    ``note`` says what a reader must know of it, such as that it was cut.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    note: str | None = None

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.high - self.low) / 2.0


def mean_interval(
    scores: Sequence[float],
    *,
    confidence: float = 0.95,
    clusters: Clusters = None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Interval:
    """Return the two-sided interval of the mean (of flags: the rate) of the population that the scores are a sample of.

    ``clusters`` names the cluster of each score; whole clusters are independent. ``bounds`` are the lowest and the
    highest possible score, for :func:`~pytest_ragmetrics.stats.bounded.mean_bounds`. Where they are not known it is
    Student's interval (with CR2 errors and Satterthwaite's degrees of freedom for clusters), narrower for smooth scores
    in the middle of the scale, wrong for fewer than 30 or crowded ones, and everything without a spread or of one
    cluster.

    Raises ``ValueError`` for no score, one that is not finite or out of bounds, or a confidence that is not between
    0 and 1.

    >>> interval = mean_interval([0.9, 0.8, 1.0, 0.7, 0.85])
    >>> print(f"{interval.estimate:.2f} ({interval.low:.3f}..{interval.high:.3f})")
    0.85 (0.404..0.951)
    >>> round(mean_interval([1.0] * 20).low, 3)
    0.832
    """
    values = [float(score) for score in scores]
    confidence = check_confidence(confidence)
    check_values(values, clusters, bounds)
    estimate = math.fsum(values) / len(values)
    if bounds is None:
        ends = t_ends(mean_error(values, clusters), confidence)
    else:
        ends = mean_bounds(totals_by_cluster(values, clusters), confidence=confidence, bounds=bounds)
    low, high = _EVERYTHING if bounds is None else bounds
    return Interval(
        estimate=estimate,
        low=min(max(low, ends[0]), estimate),
        high=max(min(high, ends[1]), estimate),
        confidence=confidence,
        n=len(values),
    )


def verdict(interval: Interval, bound: float, better: Direction = "higher") -> Decision:
    """Return whether an interval is on the good side of a bound, on the bad one, or contains it."""
    if better == "lower":
        return "passed" if interval.high <= bound else "failed" if interval.low > bound else "inconclusive"
    return "passed" if interval.low >= bound else "failed" if interval.high < bound else "inconclusive"


def t_ends(found: MeanError, confidence: float) -> tuple[float, float]:
    """Return the ends of Student's interval around a mean with a known error."""
    if not found.says_error:
        return _EVERYTHING
    reach = t_quantile(0.5 + confidence / 2.0, found.df) * found.error
    return found.mean - reach, found.mean + reach


def check_confidence(confidence: object, *, name: str = "confidence", example: float = 0.95) -> float:
    """Return a confidence as a float; raise ``ValueError`` for anything but a float between 0 and 1."""
    if not isinstance(confidence, float) or not 0.0 < confidence < 1.0:
        raise ValueError(f"{name} must be a number between 0 and 1, such as {example:g}, not {confidence!r}")
    # numpy.float64 is a float too, and makes all that is computed with it a numpy.float64.
    return float(confidence)


def check_values(values: Sequence[float], clusters: Clusters, bounds: tuple[float, float] | None) -> None:
    """Raise ``ValueError`` for no value, one that is not finite or out of bounds, or clusters of another number."""
    if not len(values):  # an array has no truth value
        raise ValueError("no scores, and an interval needs at least one")
    if clusters is not None and len(clusters) != len(values):
        raise ValueError(f"{len(clusters)} clusters for {len(values)} scores; give one for each score")
    low, high = _EVERYTHING if bounds is None else bounds
    for index, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(f"scores[{index}] is {value}, not a finite number")
        if not low <= value <= high:
            msg = f"scores[{index}] is {value}, not between {low:g} and {high:g}; say bounds= for another scale"
            raise ValueError(msg)


def propagated(
    figure: Callable[..., float],
    parts: Sequence[Interval],
    *,
    n: int,
    bounds: tuple[float, float],
    correlation: float = 0.0,
) -> Interval:
    """Return a figure of the estimates of ``parts`` with the interval that follows from theirs.

    Each part is moved to its ends while the others keep their estimates; the squares of the largest moves down, and of
    those up, are added (Zou and Donner 2008; Newcombe 2001). The figure must be monotone in each part. The parts are
    independent except for the ``correlation`` of the first two, which must enter the figure as a sum. Ends are cut to
    ``bounds``.
    """
    estimates = [part.estimate for part in parts]
    middle = figure(*estimates)

    def move(index: int, end: float) -> float:
        return figure(*estimates[:index], end, *estimates[index + 1 :]) - middle

    def length(moves: Sequence[float]) -> float:
        squares = math.fsum(move * move for move in moves)
        return math.sqrt(max(0.0, squares + (2.0 * correlation * moves[0] * moves[1] if correlation else 0.0)))

    moves = [sorted((0.0, move(index, part.low), move(index, part.high))) for index, part in enumerate(parts)]
    down, up = (length([each[side] for each in moves]) for side in (0, -1))
    low, high = bounds
    estimate = min(max(middle, low), high)
    return Interval(
        estimate=estimate,
        low=min(max(middle - down, low), estimate),
        high=max(min(middle + up, high), estimate),
        confidence=parts[0].confidence,
        n=n,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanError:
    """The mean of ``n`` values with its standard ``error`` and its ``df`` degrees of freedom.

    ``df`` is 0 for a single cluster, which shows no error.
    """

    n: int
    mean: float
    error: float
    df: float

    @property
    def says_error(self) -> bool:
        """Whether the clusters differ, so that there is an error."""
        return self.error > 0.0 and self.df > 0.0


def whole_clusters(named: Iterable[Hashable | None]) -> list[Hashable] | None:
    """Return a cluster for each row, one of its own for a row without a name; ``None`` if no row has one."""
    names = list(named)
    if all(name is None for name in names):
        return None
    return [("row", index) if name is None else ("cluster", name) for index, name in enumerate(names)]


def totals_by_cluster(values: Sequence[float], clusters: Clusters) -> list[tuple[float, int]]:
    """Return the sum and the number of values of every cluster, in an order that does not depend on theirs."""
    if clusters is None:
        return sorted((value, 1) for value in values)
    grouped: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        grouped.setdefault(cluster, []).append(value)
    return sorted((math.fsum(members), len(members)) for members in grouped.values())


def mean_error(values: Sequence[float], clusters: Clusters = None) -> MeanError:
    """Return the mean of at least one value with its cluster-robust error.

    The error is CR2 (Bell and McCaffrey 2002), the degrees of freedom are Satterthwaite's under independence and under
    full dependence inside the clusters, whichever are fewer. For clusters of one value this is the ordinary standard
    error with n - 1 degrees of freedom.
    """
    totals = totals_by_cluster(values, clusters)
    n, mean = len(values), math.fsum(values) / len(values)
    plain = _variance(values, mean) / n
    if len(totals) == 1 or not plain:
        return MeanError(n=n, mean=mean, error=math.sqrt(plain), df=len(totals) - 1.0)
    residuals = [(total - size * mean) / math.sqrt(1.0 - size / n) for total, size in totals]
    squares = math.fsum(residual**2 for residual in residuals)
    variance = max(squares / n**2, plain * _LEAST_EFFECT)
    return MeanError(n=n, mean=mean, error=math.sqrt(variance), df=_degrees([size for _, size in totals], n))


def next_value(values: Sequence[float], *, least: float = 0.0) -> MeanError:
    """Return the mean of at least two values with the error of one more value like them.

    The error is s sqrt(1 + 1/n), with n - 1 degrees of freedom: the next value is below
    ``mean - t_quantile(p, df) * error`` with the probability 1 - p (Hahn and Meeker 1991, Statistical Intervals: the
    prediction interval of one future observation of a normal distribution). The standard deviation s is at least
    ``least``, as few values may happen to be equal.

    >>> found = next_value([0.92, 0.9, 0.94, 0.92], least=0.01)
    >>> round(found.mean - t_quantile(0.99, found.df) * found.error, 3)
    0.837
    """
    found = mean_error(values)
    spread = max(found.error * math.sqrt(found.n), least)
    return MeanError(n=found.n, mean=found.mean, error=spread * math.sqrt(1.0 + 1.0 / found.n), df=found.df)


def _variance(values: Sequence[float], mean: float) -> float:
    """Return the variance of a sample; 0.0 if the values differ by rounding alone."""
    spread = max(values) - min(values)
    if len(values) == 1 or spread <= _ROUNDING * max(1.0, abs(mean)):
        return 0.0
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _degrees(sizes: Sequence[int], n: int) -> float:
    """Return the degrees of freedom of CR2 for clusters of these sizes (Pustejovsky and Tipton 2018, for a mean)."""
    shares = [size / n for size in sizes]
    weights = [size**2 / (1.0 - share) for size, share in zip(sizes, shares, strict=True)]
    both = list(zip(weights, shares, strict=True))
    total, squared = math.fsum(weights), math.fsum(weight**2 for weight in weights)
    independent = n**2 / (math.fsum(size**2 for size in sizes) + (total**2 - squared) / n**2)

    worst = math.fsum(share**2 for share in shares)
    trace = math.fsum(weight * (1.0 - 2.0 * share + worst) for weight, share in both)
    first = math.fsum(weight * share for weight, share in both)
    second = math.fsum(weight * share**2 for weight, share in both)
    everywhere = worst**2 * total**2 + 2 * total * second + 2 * first**2 - 4 * worst * total * first
    diagonal = math.fsum(w**2 * ((1.0 - 2.0 * s + worst) ** 2 - (worst - 2.0 * s) ** 2) for w, s in both)
    # None are below 1 but by rounding, where one cluster has nearly all rows.
    return max(1.0, min(independent, trace**2 / max(everywhere + diagonal, _ENOUGH)))


def t_tail(value: float, df: float) -> float:
    """Return the probability that Student's t with ``df`` degrees of freedom exceeds a value."""
    if math.isinf(value):
        return 0.0 if value > 0 else 1.0
    density = math.exp(-df / 2.0 * math.log1p(value * value / df))
    tail = density * _rest(math.asinh(abs(value) / math.sqrt(df)), df) / (2.0 * _rest(0.0, df))
    return tail if value >= 0 else 1.0 - tail


@lru_cache(maxsize=256)
def t_quantile(probability: float, df: float) -> float:
    """Return the value that Student's t with ``df`` degrees of freedom stays below with this probability."""
    wanted, place, step = 2.0 * min(probability, 1.0 - probability) * _rest(0.0, df), 0.0, 1.0
    # Newton's method: the tail is convex, so that no step from the median passes the quantile.
    while step > _ENOUGH * place:
        step = _rest(place, df) - wanted * math.exp(df / 2.0 * math.log1p(math.sinh(place) ** 2))
        place += step
    return math.copysign(math.sqrt(df) * math.sinh(place), probability - 0.5)


def _rest(start: float, df: float) -> float:
    """Return the integral of cosh(x) ** -df from ``start`` on, over its value there: t is sqrt(df) sinh(x)."""
    steep = math.tanh(start)
    scale = 1.0 / (math.sqrt(df) + df * steep)
    growths = (2.0 * math.sinh(node * scale / 2.0) ** 2 + steep * math.sinh(node * scale) for node in _NODES)
    return scale * math.fsum(
        weight * math.exp(-df * math.log1p(growth)) for weight, growth in zip(_NODES.values(), growths, strict=True)
    )
