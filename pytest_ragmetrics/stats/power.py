"""How many samples would settle a question that is open."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from pytest_ragmetrics.stats.clusters import mean_error
from pytest_ragmetrics.stats.intervals import Shape, check_confidence, check_values, mean_ends

#: Beyond this many samples in all, a question counts as one that samples will not settle.
MOST = 1_000_000


def samples_to_settle(
    values: Sequence[float],
    bound: float,
    *,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    shape: Shape = "t",
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> int | None:
    """Return how many more samples would bring the interval to one side of a bound, if they are like those so far.

    ``values`` are scores, flags as 0 and 1 with the shape ``"rate"``, or paired differences with ``bounds=None``; mean,
    spread and clustering are taken to stay as they are, so that the number is a plan and no promise. 0 when the
    question is settled; ``None`` when no :data:`MOST` samples would do, as when the mean is on the bound. Raises
    ``ValueError`` as :func:`~pytest_ragmetrics.stats.intervals.mean_interval` does.

    >>> samples_to_settle([0.9, 0.8, 1.0, 0.7, 0.85] * 4, 0.83)
    84
    """
    confidence = check_confidence(confidence)
    check_values(values, clusters, bounds)
    found = mean_error(values, clusters)

    def is_settled(n: int) -> bool:
        low, high = mean_ends(found.grown(n), confidence, shape=shape, bounds=bounds)
        return bound <= low or bound > high

    if is_settled(found.n):
        return 0
    enough = found.n
    while not is_settled(enough):
        if enough > MOST:
            return None
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (too_few, middle) if is_settled(middle) else (middle, enough)
    return enough - found.n
