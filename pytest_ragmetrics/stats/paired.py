"""Paired scores of the same rows in two runs: the mean difference with its interval, and the tests of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ragmetrics.stats.intervals import Clusters, Interval, mean_error, mean_interval, t_tail
from pytest_ragmetrics.stats.permutation import flip_p


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The means of ``n`` rows ``before`` and ``after``, and the ``interval`` of the mean of after minus before.

    ``bounds`` are the lowest and the highest possible difference, ``None`` where the scale is not known.
    ``t_p`` is the two-sided p-value of the paired t test, ``None`` for differences without a spread; ``flip_p`` that of
    the sign-flip permutation test, which for independent scores of 0 and 1 is McNemar's exact one, ``mcnemar_p``; it is
    nan for means of several scores, whose signs cannot be flipped.
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
    of_means: bool = False,
) -> Difference:
    """Return how scores differ from those of the same rows before, in the same order.

    ``bounds`` are the lowest and the highest possible score, ``None`` if they are not known: the interval is Student's
    then, which wants 30 pairs or more of which most differ. ``of_means`` says that some scores are means of several.
    Raises ``ValueError`` for no pair, or lists of different lengths.

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
    chance = math.nan if of_means else flip_p(differences, clusters=clusters)
    return Difference(
        n=len(differences),
        before=math.fsum(before) / len(before),
        after=math.fsum(after) / len(after),
        interval=mean_interval(differences, confidence=confidence, clusters=clusters, bounds=scale),
        t_p=paired_t_p(differences, clusters=clusters),
        flip_p=chance,
        mcnemar_p=chance if clusters is None and not of_means and {*before, *after} <= {0.0, 1.0} else None,
        bounds=scale,
    )


def paired_t_p(differences: Sequence[float], *, clusters: Clusters = None) -> float | None:
    """Return the two-sided p-value of the t test that the mean difference is zero; ``None`` without a spread."""
    found = mean_error(differences, clusters)
    return 2.0 * t_tail(abs(found.mean) / found.error, found.df) if found.says_error else None
