"""The interval of the mean of scores on a scale with two ends, exact for rates, from few scores on.

The mean is weighed by Dirichlet(1, ..., 1) weights over the units, which are scores or whole clusters, and one more
unit at the worst end of the scale (Gaffke 2005; Learned-Miller and Thomas 2019, arXiv:1905.06208). For scores of 0 and
1 this is the interval of Clopper and Pearson (1934); for equal scores it follows from Markov's inequality. It is
proven for scores of 0 and 1; for others there is no known case in which it misses more often than it says.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Arrays, without numpy at start-up.
Floats: TypeAlias = "npt.NDArray[np.float64]"
# The integral over the characteristic function, in the logarithm of its argument. Up to the first end the integrand is
# proportional to the argument, below _START it adds less than 1e-10; the sum ends where the function is negligible.
_STEP, _START, _ENDS = 0.05, -25.0, (-11.0, 2.5, 5.0, 10.0, 20.0, 40.0)
_REST = (math.exp(_ENDS[0]) - math.exp(_START)) / math.expm1(_STEP)
_NEGLIGIBLE = -40.0
# The probability is 0 or 1 beyond this number of standard deviations, where the grid is too coarse for 2,000 units.
_FAR = 12.0
# The root is found to a share of _FINE, or where the normal quantiles differ by _EXACT; tails below _LEAST are one.
_FINE, _EXACT, _MOST_STEPS, _LEAST = 1e-12, 1e-10, 60, 1e-6
# More than _MOST_KINDS different units are split between the two nearest of _STEPS steps of the scale. This keeps their
# mean and changes the interval by less than 1 % of its width; 1,000 different units take 20 times as long without it.
_MOST_KINDS, _STEPS = 100, 100
# Ends are kept of sets with at most this number of different units.
_FEW = 10

_quantile = NormalDist().inv_cdf


def mean_bounds(
    totals: Sequence[tuple[float, float]],
    *,
    confidence: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    times: float = 1.0,
) -> tuple[float, float]:
    """Return the ends of the two-sided interval of the mean of scores between ``bounds``.

    ``totals`` has the sum and the number of the scores of each unit; a unit is one score or a whole cluster. ``times``
    so many of each make the interval of a larger set like this one.

    >>> [round(end, 4) for end in mean_bounds([(1.0, 1)] * 9 + [(0.0, 1)], confidence=0.95)]
    [0.555, 0.9975]
    >>> [round(end, 4) for end in mean_bounds([(5, 5), (5, 5), (0, 5), (5, 5)], confidence=0.95)]
    [0.1941, 0.9937]
    """
    lowest, highest = bounds
    span, tail = highest - lowest, (1.0 - confidence) / 2.0
    shares = [((total - lowest * size) / span, size) for total, size in totals]
    worst_case = [(size - share, size) for share, size in shares]
    kinds = (tuple(sorted(Counter(units).items())) for units in (shares, worst_case))
    low, worst = ((_lower_end if len(units) > _FEW else _known_end)(units, tail, times) for units in kinds)
    return lowest + span * low, lowest + span * (1.0 - worst)


def _lower_end(units: tuple[tuple[tuple[float, float], int], ...], tail: float, times: float) -> float:
    """Return the lower end of the mean of units with sums from 0 up to their sizes, each with its number."""
    import numpy as np

    kinds: Mapping[tuple[float, float], float] = dict(units)
    total = math.fsum(count * share for (share, _), count in units)
    mean = total / math.fsum(count * size for (_, size), count in units)
    if mean <= 0.0:
        return 0.0
    if len(kinds) > _MOST_KINDS:
        kinds = _on_steps(kinds)
    shares, sizes = (np.array(column, dtype=float) for column in zip(*kinds, strict=True))
    counts = np.array([*(times * count for count in kinds.values()), 1.0])
    largest, wanted = sizes.max(), _quantile(tail)

    def excess(middle: float) -> float:
        found = probability_below(np.append(shares - middle * sizes, -middle * largest), counts)
        return _quantile(min(max(found, _LEAST * tail), 1.0 - _LEAST)) - wanted

    return _root(excess, mean)


# Rates of the same few counts repeat; long sets do not, and would fill the memory.
_known_end = lru_cache(maxsize=512)(_lower_end)


def _on_steps(kinds: Mapping[tuple[float, float], float]) -> Mapping[tuple[float, float], float]:
    parted: dict[tuple[float, float], float] = defaultdict(float)
    for (share, size), count in kinds.items():
        place = min(max(share / size * _STEPS, 0.0), float(_STEPS))
        step = min(math.floor(place), _STEPS - 1)
        parted[step / _STEPS * size, size] += count * (step + 1 - place)
        parted[(step + 1) / _STEPS * size, size] += count * (place - step)
    return {unit: count for unit, count in parted.items() if count > 0.0}


def _root(excess: Callable[[float], float], top: float) -> float:
    """Return where an increasing function becomes positive between 0 and ``top``, by the Illinois rule."""
    low, high = 0.0, top
    below, above, side = excess(low), excess(high), 0
    for _ in range(_MOST_STEPS):
        if high - low <= _FINE * top or not below < 0.0 < above:
            break
        middle = (low * above - high * below) / (above - below)
        found = excess(middle)
        if abs(found) <= _EXACT:
            return middle
        if found < 0.0:
            low, below, above, side = middle, found, above / (2.0 if side < 0 else 1.0), -1
        else:
            high, above, below, side = middle, found, below / (2.0 if side > 0 else 1.0), 1
    return low


@lru_cache(maxsize=1)
def _arguments() -> tuple[Floats, ...]:
    import numpy as np

    return tuple(np.exp(np.arange(start, end, _STEP)) for start, end in pairwise(_ENDS))


def probability_below(weights: Floats, counts: Floats) -> float:
    """Return the probability that a weighted sum of independent Gamma(count) variables is at most 0 (Imhof 1961)."""
    import numpy as np

    lowest, highest = float(weights.min()), float(weights.max())
    if not lowest < 0.0 < highest:
        return 1.0 if highest <= 0.0 else 0.0
    weights = weights / max(highest, -lowest)  # so that no square is too small for a float
    scale = math.sqrt(float(counts @ (weights * weights)))
    middle = float(counts @ weights) / scale
    if abs(middle) > _FAR:
        return 0.0 if middle > 0.0 else 1.0
    weights, total = weights[:, None] / scale, _REST * middle
    for arguments in _arguments():
        angles = weights * arguments
        sizes = -0.5 * (counts @ np.log1p(angles * angles))
        total += float(np.sin(counts @ np.arctan(angles)) @ np.exp(sizes))
        if sizes[-1] < _NEGLIGIBLE:
            break
    return 0.5 - _STEP / math.pi * total
