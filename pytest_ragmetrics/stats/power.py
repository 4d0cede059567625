"""What a set can find of a loss, before it is scored: the power of a regression gate, and the rows that it needs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

from pytest_ragmetrics.stats.intervals import Clusters
from pytest_ragmetrics.stats.permutation import PairedScores, binomial
from pytest_ragmetrics.stats.scores import ROUNDING

_quantile = NormalDist().inv_cdf
#: The smallest drop that a set can show is found with this probability.
POWER = 0.8
#: The share of rows that change each way between two runs of one application, where no runs say it.
QUIET = 0.025
# Numbers of drawn sets and of their permutations: a power has a standard error of 2.5 %, one in a search of 4 %, which
# moves the drop that is found by 6 %, and takes an eighth of the time. Few sets are drawn of very many rows.
_FINE, _COARSE, _FEWEST, _MOST_VALUES = (400, 1499), (150, 499), 50, 400_000
# The search for a drop, or for a number of rows, ends after _STEPS powers, the last of them _NEARLY enough.
_STEPS, _NEARLY = 4, 0.72
_COINS, _SLACK = 400, 1e-5
# Numbers of rows to recommend, and the largest of them.
_ROUND = [*range(5, 100, 5), *range(100, 300, 10), *range(300, 1000, 50), *range(1000, 10000, 500)]
_START = 50
MOST_ROWS = _ROUND[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a regression test over units (rows, or whole clusters of them) finds of a loss.

    Units are lost by chance, each its whole score, and others change besides: a share ``quiet`` each way where they
    pass or fail, or as among ``runs``, the scores of each unit in runs of one application, from 0 at the worst end.
    Each unit has so many scores ``before`` and ``now``.

    >>> plan = Plan()
    >>> [f"{plan.power(50, drop):.2f}" for drop in (0.1, 0.2)], plan.rows(0.1)
    (['0.42', '0.88'], 100)
    """

    alpha: float = 0.05
    quiet: float = QUIET
    before: int = 1
    now: int = 1
    runs: tuple[tuple[float, ...], ...] = ()

    def power(self, n: int, drop: float, *, draws: tuple[int, int] = _FINE) -> float:
        """Return the probability that ``n`` units show a loss of ``drop`` of their mean."""
        if self.is_drawn:
            return _simulated(self, n, drop, draws)
        return _power(n, self.quiet, drop, self.alpha)

    @property
    def is_drawn(self) -> bool:
        """Whether its figures are of drawn sets, and not exact."""
        return bool(self.runs) or (self.before, self.now) != (1, 1)

    def rows(self, drop: float) -> int | None:
        """Return a round number of units that show a loss in 80 % of runs; ``None`` where 9,500 do not."""
        if not self.is_drawn:
            place = bisect_left(_ROUND, POWER, key=lambda n: self.power(n, drop))
        else:
            found = self._search(lambda n: self.power(math.ceil(n), drop, draws=_COARSE), _START, MOST_ROWS, exponent=2)
            place = len(_ROUND) if found is None else bisect_left(_ROUND, math.floor(found))
        return _ROUND[place] if place < len(_ROUND) else None

    def smallest(self, n: int) -> float | None:
        """Return the smallest loss that ``n`` units show in 80 % of ``runs``; ``None`` where there is none."""
        most = math.fsum(map(math.fsum, self.runs)) / sum(map(len, self.runs))
        return self._search(lambda drop: self.power(n, drop, draws=_COARSE), 2.0 * most / math.sqrt(n), most)

    def _search(self, power: Callable[[float], float], start: float, most: float, *, exponent: int = 1) -> float | None:
        """Return where a power is ``POWER``, its normal quantile proportional to the drop, or the root of the rows."""
        critical = _quantile(1.0 - self.alpha)
        place, found = start, 0.0
        for _ in range(_STEPS):
            place = min(place, most)
            found = power(place)
            reached = max(0.5, critical + _quantile(min(max(found, 0.01), 0.99)))
            place *= ((critical + _quantile(POWER)) / reached) ** exponent
        return min(place, most) if found >= _NEARLY else None


def smallest_drop(
    rows: Sequence[PairedScores], *, alpha: float = 0.05, clusters: Clusters = None, span: float = 1.0
) -> float | None:
    """Return the smallest drop of the mean that rows like these show in at least 80 % of runs; ``None`` if none.

    Higher scores are better; ``span`` is the largest change there can be, infinite where it is not known. Rows (whole
    clusters) are lost by chance, each its whole score. For one score before and changes of one size it is exact for a
    set in which as many rows change without a cause as in this one, else by :class:`Plan`, over drawn sets.
    """
    n, changes = len(rows), [row.change for row in rows]
    sizes = sorted(abs(change) for change in changes if abs(change) > ROUNDING)
    is_even = not sizes or sizes[-1] - sizes[0] <= ROUNDING
    if clusters is None and is_even and all(len(row.before) == len(row.now) == 1 for row in rows):
        lost = sum(change < -ROUNDING for change in changes)
        steps = _fewest_lost(n, min(lost, len(sizes) - lost), alpha)
        return None if steps is None else steps / n * (sizes[0] if sizes else span if math.isfinite(span) else 1.0)
    scores = [score for row in rows for score in (*row.now, *row.before)]
    # A score cannot be further below the best one than the scale is long.
    worst = min(*scores, max(scores) - span if math.isfinite(span) else math.inf)
    units = unit_scores([[score - worst for score in (*row.now, *row.before)] for row in rows], clusters)
    now = max(len(row.now) for row in rows)
    return Plan(alpha=alpha, now=now, before=max(len(row.before) for row in rows), runs=units).smallest(len(units))


def rows_needed(drop: float, n: int, smallest: float, *, lost: int, gained: int, alpha: float = 0.05) -> int | None:
    """Return how many rows show a drop in 80 % of runs, where ``n`` of them show the ``smallest`` one.

    Of rows that pass or fail, so many of which were lost and gained, it is exact; of others the drop that is shown
    falls as the root of their number rises. ``None`` where 9,500 are too few.

    >>> rows_needed(0.1, 50, 0.18, lost=1, gained=1), rows_needed(0.1, 50, 0.12, lost=20, gained=21)
    (110, 75)
    """
    steps = _fewest_lost(n, min(lost, gained), alpha)
    if steps is not None and abs(steps / n - smallest) <= ROUNDING:
        return Plan(alpha=alpha, quiet=(min(lost, gained) + 0.5) / n).rows(drop)
    place = bisect_left(_ROUND, math.ceil(n * (smallest / drop) ** 2 - ROUNDING))
    return _ROUND[place] if place < len(_ROUND) else None


def unit_scores(rows: Sequence[Sequence[float]], clusters: Clusters = None) -> tuple[tuple[float, ...], ...]:
    """Return the scores of each row or cluster, of clusters such that their mean is that of the rows.

    A row with fewer scores than others has them again.
    """
    grouped: dict[object, list[Sequence[float]]] = {}
    for place, row in enumerate(rows):
        grouped.setdefault(place if clusters is None else (clusters[place],), []).append(row)
    share, width = len(grouped) / len(rows), max(map(len, rows))
    return tuple(
        tuple(share * math.fsum(row[place % len(row)] for row in members) for place in range(width))
        for members in grouped.values()
    )


@lru_cache(maxsize=1024)
def _fewest_lost(n: int, fewer: int, alpha: float) -> int | None:
    """Return how many rows of ``n`` must be lost on average for an alarm with the probability of ``POWER``."""
    quiet = (fewer + 0.5) / n
    most = math.floor(n * (1.0 - 2.0 * quiet) + ROUNDING)

    place = bisect_left(range(1, most + 1), POWER, key=lambda lost: _power(n, quiet, lost / n, alpha))
    return place + 1 if place < most else None


def _power(n: int, quiet: float, drop: float, alpha: float) -> float:
    """Return the probability of an alarm if rows change each way with ``quiet`` and are lost with ``drop`` besides."""
    share = min(1.0, 2.0 * quiet + drop)
    lost = min(1.0, (quiet + drop) / share)
    return math.fsum(
        weight * math.fsum(binomial(changed, lost)[_critical(changed, alpha) :])
        for changed, weight in enumerate(binomial(n, share))
        if weight > ROUNDING**2
    )


@lru_cache(maxsize=4096)
def _critical(changed: int, alpha: float) -> int:
    """Return how many of the rows that changed must be lost for an alarm; more than all where none is possible."""
    return changed + 1 - sum(tail <= alpha for tail in accumulate(binomial(changed, 0.5)))


def _simulated(plan: Plan, n: int, drop: float, draws: tuple[int, int]) -> float:
    """Return the share of drawn sets of ``n`` units that show a loss: any scores of a unit may be those of now."""
    import numpy as np

    random, sides = np.random.default_rng(0), plan.before + plan.now
    if plan.runs:
        scores = np.array(plan.runs, dtype=np.float32)
    else:
        # As many change each way as among rows of which some pass by the toss of a coin, and all others pass.
        scores = np.ones((_COINS, sides), dtype=np.float32)
        tossed = round(4.0 * plan.quiet * _COINS)
        scores[:tossed] = random.integers(0, 2, (tossed, sides))
    most = float(scores.max())
    if not most:
        return 0.0
    sets, permutations = max(_FEWEST, min(draws[0], _MOST_VALUES // (n * sides))), draws[1]
    units, first = random.integers(0, len(scores), (n, sets)), random.integers(0, scores.shape[1], (n, sets))
    is_lost = random.random((n, sets)) < drop / scores.mean()
    today = random.integers(0, sides, (permutations, n), dtype=np.uint16)
    found, drawn = np.zeros(sets), np.zeros((permutations, sets), dtype=np.float32)
    for side in range(sides):
        column = scores[units, (first + side) % scores.shape[1]]
        if side < plan.now:
            column[is_lost] = 0.0
            found += column.sum(axis=0)
        chosen = sum((today == (side - later) % sides).astype(np.float32) for later in range(plan.now))
        drawn += chosen @ column
    extreme = (drawn <= found + _SLACK * n * most).sum(axis=0)
    return float(((extreme + 1) / (permutations + 1) <= plan.alpha).mean())
