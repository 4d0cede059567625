"""Permutation tests of paired scores: whether the runs before, and the one now, are alike but by chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations

from pytest_ragmetrics.core.tested import DropTest
from pytest_ragmetrics.stats.bounded import Floats
from pytest_ragmetrics.stats.intervals import Clusters, totals_by_cluster
from pytest_ragmetrics.stats.scores import ROUNDING

# At most so many permutations are all tried; of more _DRAWS are drawn, fewer for very many rows, which take minutes.
_EXACT_UP_TO = 1 << 16
_DRAWS, _LEAST_DRAWS = 9_999, 999
_MOST_DRAWN, _AT_ONCE = 20_000_000, 1_000_000
# Of more ways to choose the answers of now from those of a row, so many are drawn.
_MOST_CHOICES = 1_024
# For at most this number of changes a tail of the binomial distribution is a sum of whole numbers.
_WHOLE_UP_TO = 1_000


@dataclass(frozen=True, slots=True)
class PairedScores:
    """The scores of a row in the runs ``before``, the latest last, and ``now``: one each, or one of each answer."""

    before: tuple[float, ...]
    now: tuple[float, ...]

    @property
    def change(self) -> float:
        """How much the mean rose."""
        return math.fsum(self.now) / len(self.now) - math.fsum(self.before) / len(self.before)

    def negated(self) -> PairedScores:
        """Return the scores on a scale whose higher ones are better where these are the lower ones."""
        return PairedScores(tuple(-score for score in self.before), tuple(-score for score in self.now))


def drop_test(rows: Sequence[PairedScores], *, clusters: Clusters = None) -> DropTest:
    """Return whether the scores of now are lower than those before, as a test of the mean over the rows.

    If nothing has changed, any of the scores of a row may be those of now: p is the share of the ways to choose them
    whose mean is at most the one found (a stratified permutation test). It is exact for pass and fail, which with one
    run before is McNemar's test, and where there are few ways; else (b + 1) / (m + 1) for b of m drawn ones, the same
    in every run (Phipson and Smyth 2010). The rows of a cluster are chosen together, run by run from the latest on.

    >>> drop_test([PairedScores((1.0,), (0.0,))] * 7 + [PairedScores((0.0,), (1.0,))]).p
    0.03515625
    >>> drop_test([PairedScores((1.0, 1.0, 1.0), (0.0,))] * 2).p
    0.0625
    """
    units = [unit for unit in _units(rows, clusters) if unit.high - unit.low > ROUNDING]
    least = math.exp(math.fsum(math.log(unit.least) for unit in units))
    if not units:
        p = 1.0
    elif (highs := _two_valued(units)) is not None:
        p = _exact_p(units, highs)
    else:
        sums, is_drawn = _sums([unit.choices(max(1, _MOST_DRAWN // len(units))) for unit in units])
        found = math.fsum(math.fsum(unit.now) / len(unit.now) for unit in units)
        extreme = int((sums <= found + ROUNDING).sum())
        p = (extreme + 1) / (len(sums) + 1) if is_drawn else extreme / len(sums)
    return DropTest(p=p, least=least, changed=len(units))


@dataclass(frozen=True, order=True, slots=True)
class _Unit:
    """What is chosen together: the sums of the rows of a cluster, or the scores of a row; ``whole`` begins with now."""

    now: tuple[float, ...]
    whole: tuple[float, ...]

    @property
    def low(self) -> float:
        return min(self.whole)

    @property
    def high(self) -> float:
        return max(self.whole)

    @property
    def least(self) -> float:
        """The share of choices with the lowest mean."""
        chosen, ordered = len(self.now), sorted(self.whole)
        last = ordered[chosen - 1]
        below = sum(value < last - ROUNDING for value in ordered)
        equal = sum(abs(value - last) <= ROUNDING for value in ordered)
        return math.comb(equal, chosen - below) / math.comb(len(ordered), chosen)

    def choices(self, most: int) -> Floats:
        """Return the means of all choices, or of as many drawn ones as there may be."""
        import numpy as np

        chosen, most = len(self.now), min(most, _MOST_CHOICES)
        if chosen == 1:
            return np.array(self.whole)
        if math.comb(len(self.whole), chosen) <= most:
            return np.array([math.fsum(choice) for choice in combinations(self.whole, chosen)]) / chosen
        shuffled = np.random.default_rng(0).permuted(np.tile(self.whole, (most, 1)), axis=1)
        means: Floats = shuffled[:, :chosen].mean(axis=1)
        return means


def _units(rows: Sequence[PairedScores], clusters: Clusters) -> list[_Unit]:
    """Return the units in an order that does not depend on that of the rows."""
    grouped: dict[object, list[PairedScores]] = {}
    for place, row in enumerate(rows):
        grouped.setdefault(place if clusters is None else (clusters[place],), []).append(row)
    units = []
    for group in grouped.values():
        # Of rows that were not in all runs, the latest of all of them.
        now, before = min(len(row.now) for row in group), min(len(row.before) for row in group)
        columns = ((*row.now[:now], *row.before[len(row.before) - before :]) for row in group)
        sums = tuple(math.fsum(scores) for scores in zip(*columns, strict=True))
        units.append(_Unit(sums[:now], sums))
    return sorted(units)


def _two_valued(units: Sequence[_Unit]) -> list[int] | None:
    """Return how many scores of each unit are its higher one, ``None`` unless all have two scores, as far apart."""
    steps = [(unit.high - unit.low) / len(unit.now) for unit in units]
    if max(steps) - min(steps) > ROUNDING:
        return None
    highs = [sum(value > unit.high - ROUNDING for value in unit.whole) for unit in units]
    lows = (sum(value < unit.low + ROUNDING for value in unit.whole) for unit in units)
    is_so = all(high + low == len(unit.whole) for high, low, unit in zip(highs, lows, units, strict=True))
    return highs if is_so else None


def _exact_p(units: Sequence[_Unit], highs: Sequence[int]) -> float:
    """Return the probability of at most as many higher scores now: a sum of hypergeometric ones."""
    import numpy as np

    found = sum(sum(value > unit.high - ROUNDING for value in unit.now) for unit in units)
    kinds = Counter((len(unit.whole), high, len(unit.now)) for unit, high in zip(units, highs, strict=True))
    if kinds.keys() == {(2, 1, 1)}:
        return binomial_tail(len(units), len(units) - found)
    parts = [_highs(whole, high, chosen, count) for (whole, high, chosen), count in kinds.items()]
    return float(min(1.0, reduce(np.convolve, parts)[: found + 1].sum()))


def _highs(whole: int, high: int, chosen: int, count: int) -> Floats:
    """Return the probabilities of 0, 1, ... higher scores now in ``count`` rows with ``high`` of ``whole`` scores."""
    import numpy as np

    if chosen == 1:
        return np.array(binomial(count, high / whole))
    ways = math.comb(whole, chosen)
    one = np.array([math.comb(high, k) * math.comb(whole - high, chosen - k) / ways for k in range(chosen + 1)])
    power = np.ones(1)
    while count:
        power, count, one = (np.convolve(power, one) if count % 2 else power), count // 2, np.convolve(one, one)
    return power


def flip_p(differences: Sequence[float], *, clusters: Clusters = None) -> float:
    """Return the two-sided p-value of the sign-flip permutation test that the mean difference is zero.

    The signs of whole clusters are flipped together. For differences of one size (pass and fail) it is McNemar's exact
    test, else as :func:`drop_test` exact or drawn.

    >>> flip_p([0.1, 0.2, 0.3, 0.4]), flip_p([-1.0] * 7 + [1.0])
    (0.125, 0.0703125)
    """
    import numpy as np

    sums = [total for total, _ in totals_by_cluster(differences, clusters) if abs(total) > ROUNDING]
    if not sums:
        return 1.0
    sizes, total = sorted(map(abs, sums)), math.fsum(sums)
    if sizes[-1] - sizes[0] <= ROUNDING:
        lost = sum(each < 0.0 for each in sums)
        return min(1.0, 2.0 * binomial_tail(len(sums), max(lost, len(sums) - lost)))
    flipped, is_drawn = _sums([np.array([-size, size]) for size in sizes])
    extreme = int((abs(flipped) >= abs(total) - ROUNDING).sum())
    return (extreme + 1) / (len(flipped) + 1) if is_drawn else extreme / len(flipped)


def _sums(choices: Sequence[Floats]) -> tuple[Floats, bool]:
    """Return the sums of one choice of each unit: of all ways, or of drawn ones, and whether they are drawn."""
    import numpy as np

    if math.fsum(math.log(len(each)) for each in choices) <= math.log(_EXACT_UP_TO) + ROUNDING:
        sums = np.zeros(1)
        for each in choices:
            sums = (sums[:, None] + each).ravel()
        return sums, False
    random = np.random.default_rng(0)
    draws = min(_DRAWS, max(_LEAST_DRAWS, _MOST_DRAWN // len(choices)))
    sums = np.zeros(draws)
    for size in sorted({len(each) for each in choices}):
        values = np.array([each for each in choices if len(each) == size])
        places, step = np.arange(len(values)), max(1, _AT_ONCE // len(values))
        for start in range(0, draws, step):
            part = sums[start : start + step]
            part += values[places, random.integers(0, size, (len(part), len(values)))].sum(axis=1)
    return sums, True


def binomial_tail(n: int, least: int) -> float:
    """Return the probability of at least so many heads among ``n`` tosses of a fair coin."""
    if n > _WHOLE_UP_TO:
        return min(1.0, math.fsum(binomial(n, 0.5)[least:]))
    return sum(math.comb(n, k) for k in range(least, n + 1)) / (1 << n)


def binomial(n: int, p: float) -> list[float]:
    """Return the probabilities of 0 to ``n`` successes."""
    if p in (0.0, 1.0):
        return [float(k == (n if p else 0)) for k in range(n + 1)]
    logs, yes, no = _log_factorials(n.bit_length()), math.log(p), math.log1p(-p)
    return [math.exp(logs[n] - logs[k] - logs[n - k] + k * yes + (n - k) * no) for k in range(n + 1)]


@lru_cache
def _log_factorials(bits: int) -> list[float]:
    """Return the logarithms of the factorials of all numbers of so many bits."""
    return [math.lgamma(number + 1) for number in range(1 << bits)]
