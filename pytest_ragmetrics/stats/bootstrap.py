"""The bootstrap of the t statistic: intervals that assume no shape of the scores."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ragmetrics.stats.clusters import MeanError

_RESAMPLES = 2000
# Of fewer clusters all resamples with a spread are nearly the same: simulated, the interval of two never holds the
# truth, and that of three in 0.82 of the cases.
_FEWEST = 4
# How many numbers are drawn at a time, so that a large table needs no more memory than a small one.
_AT_ONCE = 1_000_000


def bootstrap_ends(
    totals: Sequence[tuple[float, int]], found: MeanError, *, confidence: float, seed: int
) -> tuple[float, float] | None:
    """Return the ends by the studentised bootstrap over clusters (Efron and Tibshirani 1993, chapter 12).

    ``totals`` are the sum and the size of every cluster, ``found`` their mean and error. ``None`` when there are too
    few clusters to resample, or no resample has a spread.
    """
    import numpy as np

    if found.groups < _FEWEST:
        return None
    random = np.random.default_rng(seed)
    sums, sizes = (np.array(column, dtype=float) for column in zip(*totals, strict=True))
    statistics = []
    step = max(1, _AT_ONCE // found.groups)
    for done in range(0, _RESAMPLES, step):
        drawn = random.integers(0, found.groups, (min(step, _RESAMPLES - done), found.groups))
        some, of = sums[drawn], sizes[drawn]
        means = some.sum(1) / of.sum(1)
        residuals = some - of * means[:, None]
        errors = np.sqrt((residuals**2).sum(1) * found.groups / (found.groups - 1)) / of.sum(1)
        # A resample of equal values has no error, and its statistic no value.
        spread = errors > found.error * 1e-6
        statistics.append((means[spread] - found.mean) / errors[spread])
    known = np.concatenate(statistics)
    if not known.size:
        return None
    lower, upper = np.quantile(known, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return found.mean - float(upper) * found.error, found.mean - float(lower) * found.error
