"""Paired scores of the same rows in two runs: the mean difference with its interval, and the tests of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ragmetrics.stats.intervals import Clusters, Interval, mean_error, mean_interval, t_tail, totals_by_cluster
from pytest_ragmetrics.stats.scores import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

# All flips of signs are tried for at most this number of pairs, _DRAWS random ones for more.
_EXACT_UP_TO = 16
_DRAWS = 9_999
_AT_ONCE = 1_000_000
# More than _MOST_SIGNS signs take minutes: very many pairs have fewer draws.
_MOST_SIGNS, _LEAST_DRAWS = 20_000_000, 999
# For at most this number of changes a tail of the binomial distribution is a sum of whole numbers.
_WHOLE_UP_TO = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The means of ``n`` rows ``before`` and ``after``, and the ``interval`` of the mean of after minus before.

    ``bounds`` are the lowest and the highest possible difference, ``None`` where the scale is not known.
    ``t_p`` is the two-sided p-value of the paired t test, ``None`` for differences without a spread; ``flip_p`` that of
    the sign-flip permutation test, which for independent scores of 0 and 1 is McNemar's exact one, ``mcnemar_p``.
    """

    n: int
    before: float
    after: float
    interval: Interval
    t_p: float | None
    flip_p: float
    mcnemar_p: float | None
    bounds: tuple[float, float] | None = None


def paired_difference(
    before: Sequence[float],
    after: Sequence[float],
    *,
    confidence: float = 0.95,
    clusters: Clusters = None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Difference:
    """Return how scores differ from those of the same rows before, in the same order.

    ``bounds`` are the lowest and the highest possible score, ``None`` if they are not known: the interval is Student's
    then, which wants 30 pairs or more of which most differ. Raises ``ValueError`` for no pair, or lists of different
    lengths.

    >>> found = paired_difference([0.5, 0.75, 1.0, 0.25], [0.75, 0.75, 1.0, 1.0])
    >>> print(f"{found.before:.3f} {found.after:.3f} {found.interval.estimate:+.3f} p={found.t_p:.3f}")
    0.625 0.875 +0.250 p=0.252
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} scores before and {len(after)} after; pairs need as many of both")
    if not before:
        raise ValueError("no pairs, and a comparison needs at least one")
    differences = [float(new) - float(old) for old, new in zip(before, after, strict=True)]
    scale = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    chance = flip_p(differences, clusters=clusters)
    return Difference(
        n=len(differences),
        before=math.fsum(before) / len(before),
        after=math.fsum(after) / len(after),
        interval=mean_interval(differences, confidence=confidence, clusters=clusters, bounds=scale),
        t_p=paired_t_p(differences, clusters=clusters),
        flip_p=chance,
        mcnemar_p=chance if clusters is None and {*before, *after} <= {0.0, 1.0} else None,
        bounds=scale,
    )


def paired_t_p(differences: Sequence[float], *, clusters: Clusters = None) -> float | None:
    """Return the two-sided p-value of the t test that the mean difference is zero; ``None`` without a spread."""
    found = mean_error(differences, clusters)
    return 2.0 * t_tail(abs(found.mean) / found.error, found.df) if found.says_error else None


def flip_p(differences: Sequence[float], *, clusters: Clusters = None, one_sided: bool = False) -> float:
    """Return the p-value of the sign-flip permutation test that the mean difference is zero, or not below it.

    The signs of whole clusters are flipped together. For differences of one size (pass and fail) it is McNemar's exact
    test, else exact with up to 16 clusters that differ; with more it is (b + 1) / (m + 1) for b of m drawn flips at
    least as extreme (Phipson and Smyth 2010), the same in every run.

    >>> flip_p([0.1, 0.2, 0.3, 0.4]), flip_p([-1.0] * 7 + [1.0])
    (0.125, 0.0703125)
    >>> flip_p([0.25, -0.25, -0.5, -0.75, -1.0], one_sided=True)
    0.09375
    """
    sums = changed_sums(differences, clusters)
    if not sums:
        return 1.0
    sizes, total = sorted(map(abs, sums)), math.fsum(sums)
    if sizes[-1] - sizes[0] <= ROUNDING:
        lost = sum(each < 0.0 for each in sums)
        if one_sided:
            return binomial_tail(len(sums), lost)
        return min(1.0, 2.0 * binomial_tail(len(sums), max(lost, len(sums) - lost)))
    flipped, drawn = _flipped_sums(sizes)
    extreme = int((flipped <= total + ROUNDING if one_sided else abs(flipped) >= abs(total) - ROUNDING).sum())
    return (extreme + 1) / (len(flipped) + 1) if drawn else extreme / len(flipped)


def changed_sums(differences: Sequence[float], clusters: Clusters = None) -> list[float]:
    """Return the sums of the clusters (the differences where there are none) that are not 0."""
    return [total for total, _ in totals_by_cluster(differences, clusters) if abs(total) > ROUNDING]


def _flipped_sums(sizes: Sequence[float]) -> tuple[Floats, bool]:
    """Return the sums of sizes under all flips of their signs; of more than 16 under drawn ones, and whether so."""
    import numpy as np

    if len(sizes) <= _EXACT_UP_TO:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate((sums + size, sums - size))
        return sums, False
    random, values = np.random.default_rng(0), np.array(sizes)
    draws = min(_DRAWS, max(_LEAST_DRAWS, _MOST_SIGNS // len(sizes)))
    step = max(1, _AT_ONCE // len(sizes))
    parts = [
        (2.0 * random.integers(0, 2, (min(step, draws - done), len(sizes))) - 1.0) @ values
        for done in range(0, draws, step)
    ]
    return np.concatenate(parts), True


def binomial_tail(n: int, least: int) -> float:
    """Return the probability of at least so many heads among ``n`` tosses of a fair coin."""
    if n > _WHOLE_UP_TO:
        return min(1.0, math.fsum(binomial(n, 0.5)[least:]))
    return sum(math.comb(n, k) for k in range(least, n + 1)) / (1 << n)


def binomial(n: int, p: float) -> list[float]:
    """Return the probabilities of 0 to ``n`` successes."""
    if p in (0.0, 1.0):
        return [float(k == (n if p else 0)) for k in range(n + 1)]
    logs = [math.lgamma(k + 1) for k in range(n + 1)]
    yes, no = math.log(p), math.log1p(-p)
    return [math.exp(logs[n] - logs[k] - logs[n - k] + k * yes + (n - k) * no) for k in range(n + 1)]
