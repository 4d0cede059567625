"""The interval of a figure that follows from several estimates, each with an interval of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pytest_ragmetrics.stats.intervals import Interval


def propagated(
    figure: Callable[..., float],
    parts: Sequence[Interval],
    *,
    n: int,
    bounds: tuple[float, float],
    correlation: float = 0.0,
) -> Interval:
    """Return a figure of the estimates of ``parts``, with the interval that theirs leave, by squaring and adding.

    Each part is moved to its ends while the others stay where they are; the largest moves of the figure down, and those
    up, are added as squares (Zou and Donner 2008; Newcombe 2001). The figure must be monotone in each part. The parts
    are independent, but for the ``correlation`` of the first two, which must enter the figure as a sum. Ends are cut to
    ``bounds``.

    >>> rates = [Interval(estimate=0.9, low=0.8, high=0.95, confidence=0.95, n=50)] * 2
    >>> found = propagated(lambda one, other: (one + other) / 2, rates, n=100, bounds=(0.0, 1.0))
    >>> print(f"{found.estimate:.2f} ({found.low:.3f}..{found.high:.3f})")
    0.90 (0.829..0.935)
    """
    estimates = [part.estimate for part in parts]
    middle = figure(*estimates)

    def move(index: int, end: float) -> float:
        return figure(*estimates[:index], end, *estimates[index + 1 :]) - middle

    moves = [sorted((0.0, move(index, part.low), move(index, part.high))) for index, part in enumerate(parts)]
    down, up = (_length([each[side] for each in moves], correlation) for side in (0, -1))
    low, high = bounds
    estimate = min(max(middle, low), high)
    return Interval(
        estimate=estimate,
        low=min(max(middle - down, low), estimate),
        high=max(min(middle + up, high), estimate),
        confidence=parts[0].confidence,
        n=n,
    )


def _length(moves: Sequence[float], correlation: float) -> float:
    squares = math.fsum(move * move for move in moves)
    return math.sqrt(max(0.0, squares + (2.0 * correlation * moves[0] * moves[1] if correlation else 0.0)))
