"""Paired scores of the same rows in two runs: the mean difference with its interval, and three tests of it.

``comparison.py`` of the package calls it for ``assert_not_worse`` and ``Evaluation.compare``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ragmetrics.stats.intervals import Interval, mean_error, mean_interval, t_tail, totals_by_cluster
from pytest_ragmetrics.stats.scores import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

# Up to so many pairs all flips of signs are tried; of more, _DRAWS are drawn.
_EXACT_UP_TO = 16
_DRAWS = 9_999
_AT_ONCE = 1_000_000
# Fewer for very many pairs: more than this number of signs takes minutes.
_MOST_SIGNS, _LEAST_DRAWS = 20_000_000, 999
# Up to so many changes McNemar's test adds whole numbers.
_WHOLE_UP_TO = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The means of ``n`` rows ``before`` and ``after``, and the ``interval`` of the mean of after minus before.

    ``bounds`` are the lowest and the highest possible difference, ``None`` where the scale is not known.
    ``t_p`` is the two-sided p-value of the paired t test, ``None`` for differences without a spread; ``flip_p`` that of
    the sign-flip permutation test; ``mcnemar_p`` that of McNemar's exact test, for independent scores of 0 and 1.
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
    clusters: Sequence[Hashable] | None = None,
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
    pairs = list(zip(before, after, strict=True))
    differences = [float(new) - float(old) for old, new in pairs]
    scale = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    interval = mean_interval(differences, confidence=confidence, clusters=clusters, bounds=scale)
    return Difference(
        n=len(differences),
        before=math.fsum(before) / len(before),
        after=math.fsum(after) / len(after),
        interval=interval,
        t_p=paired_t_p(differences, clusters=clusters),
        flip_p=flip_p(differences, clusters=clusters),
        mcnemar_p=mcnemar_p(sum(old < new for old, new in pairs), sum(old > new for old, new in pairs))
        if clusters is None and {*before, *after} <= {0.0, 1.0}
        else None,
        bounds=scale,
    )


def paired_t_p(differences: Sequence[float], *, clusters: Sequence[Hashable] | None = None) -> float | None:
    """Return the two-sided p-value of the t test that the mean difference is zero; ``None`` without a spread.

    >>> round(paired_t_p([0.25, 0.0, 0.0, 0.75]), 3)
    0.252
    """
    found = mean_error(differences, clusters)
    return 2.0 * t_tail(abs(found.mean) / found.error, found.df) if found.says_error else None


def flip_p(differences: Sequence[float], *, clusters: Sequence[Hashable] | None = None) -> float:
    """Return the two-sided p-value of the sign-flip permutation test that the mean difference is zero.

    The signs of whole clusters are flipped together. With up to 16 of them that differ the p-value is exact; with more
    it is (b + 1) / (m + 1) for b of m drawn flips at least as extreme (Phipson and Smyth 2010), the same in every run.

    >>> flip_p([0.1, 0.2, 0.3, 0.4])
    0.125
    """
    sums = changed_sums(differences, clusters)
    flipped, drawn = flipped_sums(sorted(map(abs, sums)))
    extreme = int((abs(flipped) >= abs(math.fsum(sums)) - ROUNDING).sum())
    return (extreme + 1) / (len(flipped) + 1) if drawn else extreme / len(flipped)


def changed_sums(differences: Sequence[float], clusters: Sequence[Hashable] | None = None) -> list[float]:
    """Return the sums of the clusters (the differences where there are none) that are not 0."""
    return [total for total, _ in totals_by_cluster(differences, clusters) if abs(total) > ROUNDING]


def flipped_sums(sizes: Sequence[float]) -> tuple[Floats, bool]:
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


def mcnemar_p(gained: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test: ``gained`` rows pass that failed, ``lost`` the reverse.

    >>> mcnemar_p(1, 7)
    0.0703125
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"gained and lost are counts, not {gained} and {lost}")
    return min(1.0, 2.0 * binomial_tail(gained + lost, max(gained, lost)))


def binomial_tail(n: int, least: int) -> float:
    """Return the probability of at least so many heads among ``n`` tosses of a fair coin."""
    if n > _WHOLE_UP_TO:
        logs = (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(least, n + 1))
        return min(1.0, math.fsum(math.exp(log - n * math.log(2.0)) for log in logs))
    ways: int = sum(math.comb(n, k) for k in range(least, n + 1))
    return ways / (1 << n)
