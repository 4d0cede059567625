"""Two scores of the same rows: how much they differ, and whether that could be chance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pytest_ragmetrics.stats.intervals import Interval, Method, mean_error, mean_interval, t_tail, totals_by_cluster

# With as many pairs all flips of signs are tried; with more, this many are drawn.
_EXACT_UP_TO = 16
_DRAWS = 9_999
_AT_ONCE = 1_000_000
# Of very many pairs fewer flips are drawn, so that they do not take minutes.
_MOST_SIGNS, _LEAST_DRAWS = 20_000_000, 999
# Up to this many changes McNemar's test adds whole numbers.
_WHOLE_UP_TO = 1_000
# Sums of the same numbers in another order differ by less.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """What changed between two scores of the same ``n`` rows: the means, and the mean of after less before.

    ``t_p`` is the two-sided p-value of the paired t test, ``None`` where the differences show no spread; ``flip_p``
    that of the sign-flip permutation test; ``mcnemar_p`` that of McNemar's exact test, where all scores are 0 or 1 and
    the rows independent.
    """

    n: int
    before: float
    after: float
    interval: Interval
    t_p: float | None
    flip_p: float
    mcnemar_p: float | None


def paired_difference(
    before: Sequence[float],
    after: Sequence[float],
    *,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "t",
    bounds: tuple[float, float] | None = (0.0, 1.0),
    seed: int = 0,
) -> Difference:
    """Return how scores differ from those of the same rows before, in the same order.

    ``bounds`` are the lowest and the highest score there can be, ``None`` where nobody knows. Where several rows differ
    by exactly as much (not at all, mostly: nothing was changed), no doubt about the difference of these rows is left
    and the interval is that one number. Raises ``ValueError`` for no pair, or lists of different lengths.

    >>> found = paired_difference([0.5, 0.75, 1.0, 0.25], [0.75, 0.75, 1.0, 1.0])
    >>> print(f"{found.before:.3f} {found.after:.3f} {found.interval.estimate:+.3f} p={found.t_p:.3f}")
    0.625 0.875 +0.250 p=0.252
    """
    differences = _differences(before, after)
    scale = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    interval = mean_interval(
        differences, confidence=confidence, clusters=clusters, method=method, bounds=scale, seed=seed
    )
    if mean_error(differences, clusters).is_constant and (len(differences) > 1 or not any(differences)):
        value = interval.estimate
        interval = Interval(estimate=value, low=value, high=value, confidence=confidence, n=len(differences))
    return Difference(
        n=len(differences),
        before=math.fsum(before) / len(before),
        after=math.fsum(after) / len(after),
        interval=interval,
        t_p=paired_t_p(differences, clusters=clusters),
        flip_p=flip_p(differences, clusters=clusters, seed=seed),
        mcnemar_p=_mcnemar_of(before, after) if clusters is None else None,
    )


def paired_t_p(differences: Sequence[float], *, clusters: Sequence[Hashable] | None = None) -> float | None:
    """Return the two-sided p-value of the t test that the mean difference is zero; ``None`` without a spread.

    >>> round(paired_t_p([0.25, 0.0, 0.0, 0.75]), 3)
    0.252
    """
    found = mean_error(differences, clusters)
    return 2.0 * t_tail(abs(found.mean) / found.error, found.df) if found.says_error else None


def flip_p(
    differences: Sequence[float], *, clusters: Sequence[Hashable] | None = None, draws: int = _DRAWS, seed: int = 0
) -> float:
    """Return the two-sided p-value of the sign-flip permutation test that the mean difference is zero.

    The signs of whole clusters are flipped together. With up to 16 of them that differ the p-value is exact; with more
    it is (b + 1) / (m + 1) for b of m drawn flips at least as extreme (Phipson and Smyth 2010), the same for a seed.

    >>> flip_p([0.1, 0.2, 0.3, 0.4])
    0.125
    """
    sums = [abs(total) for total, _ in totals_by_cluster(differences, clusters)]
    # What does not differ is the same under every flip.
    moved = sorted(size for size in sums if size > _ROUNDING)
    observed = abs(math.fsum(differences)) - _ROUNDING
    if len(moved) <= _EXACT_UP_TO:
        flipped = _all_flips(moved)
        return sum(abs(total) >= observed for total in flipped) / len(flipped)
    fewer = min(draws, max(_LEAST_DRAWS, _MOST_SIGNS // len(moved)))
    return (_extreme_draws(moved, observed, fewer, seed) + 1) / (fewer + 1)


def mcnemar_p(gained: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test: ``gained`` rows pass that failed, ``lost`` the reverse.

    >>> mcnemar_p(1, 7)
    0.0703125
    """
    if gained < 0 or lost < 0:
        msg = f"gained and lost are counts, not {gained} and {lost}"
        raise ValueError(msg)
    n, fewer = gained + lost, min(gained, lost)
    if n > _WHOLE_UP_TO:
        logs = (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(fewer + 1))
        return min(1.0, 2.0 * math.fsum(math.exp(log - n * math.log(2.0)) for log in logs))
    terms = accumulate(range(fewer), lambda term, k: term * (n - k) // (k + 1), initial=1)
    return min(1.0, 2 * sum(terms) / (1 << n))


def _differences(before: Sequence[float], after: Sequence[float]) -> list[float]:
    if len(before) != len(after):
        msg = f"{len(before)} scores before and {len(after)} after; pairs need as many of both"
        raise ValueError(msg)
    if not before:
        msg = "no pairs, and a comparison needs at least one"
        raise ValueError(msg)
    return [float(new) - float(old) for old, new in zip(before, after, strict=True)]


def _mcnemar_of(before: Sequence[float], after: Sequence[float]) -> float | None:
    if not {*before, *after} <= {0.0, 1.0}:
        return None
    pairs = list(zip(before, after, strict=True))
    return mcnemar_p(sum(old < new for old, new in pairs), sum(old > new for old, new in pairs))


def _all_flips(sizes: Sequence[float]) -> list[float]:
    totals = [0.0]
    for size in sizes:
        totals = [total + sign * size for total in totals for sign in (1.0, -1.0)]
    return totals


def _extreme_draws(sizes: Sequence[float], observed: float, draws: int, seed: int) -> int:
    import numpy as np

    random, values = np.random.default_rng(seed), np.array(sizes)
    step = max(1, _AT_ONCE // len(sizes))
    extreme = 0
    for done in range(0, draws, step):
        signs = 2.0 * random.integers(0, 2, (min(step, draws - done), len(sizes))) - 1.0
        extreme += int((np.abs(signs @ values) >= observed).sum())
    return extreme
