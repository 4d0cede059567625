"""Whether scores dropped from one run to the next: a one-sided test of the pairs, for one metric and for several."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import TypeVar

from pytest_ragmetrics.stats.intervals import Clusters, check_confidence, mean_error, t_quantile
from pytest_ragmetrics.stats.permutation import PairedScores, binomial, drop_test
from pytest_ragmetrics.stats.scores import ROUNDING

#: The smallest drop that a set can show is found with this probability.
POWER = 0.8

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, kw_only=True, slots=True)
class Drop:
    """What the pairs of one metric show of a drop: ``n`` rows, of which ``changed`` rows (clusters) changed.

    ``worse`` and ``better`` count rows.
    ``p`` is the one-sided p-value, ``adjusted_p`` that of several metrics together; a drop is ``shown`` where it is at
    most ``alpha``. ``smallest`` is the smallest drop that such pairs show in at least 80 % of runs, ``None`` where
    there is none. ``silence`` says how many rows have nothing to check any more, where that is as unlikely.
    """

    n: int
    changed: int
    p: float
    adjusted_p: float
    alpha: float
    smallest: float | None
    worse: int = 0
    better: int = 0
    silence: str = ""

    @property
    def shown(self) -> bool:
        """Whether the scores dropped or fell silent, as far as these pairs can tell."""
        return self.adjusted_p <= self.alpha or bool(self.silence)


def drops(
    rows: Mapping[str, Sequence[PairedScores]],
    *,
    clusters: Mapping[str, Clusters],
    alpha: float = 0.05,
    spans: Mapping[str, float] | None = None,
) -> dict[str, Drop]:
    """Return what the rows of several metrics show, in scores of which the higher ones are better.

    ``spans`` are the largest changes there can be, 1.0 for those not given. The probability that any metric that did
    not drop is called one that did is at most ``alpha``. Raises ``ValueError`` for a metric without a row, or an
    ``alpha`` that is not between 0 and 1.

    >>> lost, same = PairedScores((1.0,), (0.0,)), PairedScores((1.0,), (1.0,))
    >>> found = drops({"a": [lost] * 8 + [same] * 42, "b": [same] * 50}, clusters={"a": None, "b": None})
    >>> found["a"].shown, found["b"].shown, found["b"].smallest
    (True, False, 0.16)
    """
    check_confidence(alpha, name="alpha", example=0.05)
    if empty := [metric for metric, found in rows.items() if not found]:
        raise ValueError(f"{empty[0]}: no pairs, and a comparison needs at least one")
    tests = {metric: drop_test(found, clusters=clusters[metric]) for metric, found in rows.items()}
    changes = {metric: [row.change for row in found] for metric, found in rows.items()}
    adjusted = adjusted_p(
        {metric: test.p for metric, test in tests.items()},
        {metric: test.least for metric, test in tests.items()},
        alpha=alpha,
    )
    return {
        metric: Drop(
            n=len(rows[metric]),
            changed=test.changed,
            p=test.p,
            adjusted_p=adjusted[metric],
            alpha=alpha,
            smallest=smallest_drop(
                changes[metric], alpha=alpha, clusters=clusters[metric], span=(spans or {}).get(metric, 1.0)
            ),
            worse=sum(change < -ROUNDING for change in changes[metric]),
            better=sum(change > ROUNDING for change in changes[metric]),
        )
        for metric, test in tests.items()
    }


def adjusted_p(p: Mapping[K, float], least: Mapping[K, float], *, alpha: float = 0.05) -> dict[K, float]:
    """Return the p-values of several metrics so that a false alarm in any of them has the probability ``alpha``.

    By :func:`holm` over the metrics that could raise an alarm at all: ``least`` is the smallest p that the rows of
    each could give, whatever their order (Tarone 1990). The others get 1.
    """
    family: list[K] = []
    for size in range(1, len(p) + 1):
        family = [name for name in p if least[name] <= alpha / size]
        if len(family) <= size:
            break
    return {**dict.fromkeys(p, 1.0), **holm({name: p[name] for name in family})}


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Return p-values adjusted for all of them together (Holm 1979)."""
    adjusted, largest = {}, 0.0
    for rank, name in enumerate(sorted(p, key=lambda name: p[name])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[name]))
        adjusted[name] = largest
    return adjusted


def smallest_drop(
    changes: Sequence[float], *, alpha: float = 0.05, clusters: Clusters = None, span: float = 1.0
) -> float | None:
    """Return the smallest drop of the mean that pairs like these show in at least 80 % of runs; ``None`` if none.

    ``span`` is the largest change there can be, infinite where it is not known.

    For changes of one size it is exact for a set in which as many rows change without a cause as in this one; else
    that of a t test with the error of these changes.
    """
    n = len(changes)
    sizes = sorted(abs(change) for change in changes if abs(change) > ROUNDING)
    if clusters is None and (not sizes or sizes[-1] - sizes[0] <= ROUNDING):
        lost = sum(change < -ROUNDING for change in changes)
        steps = _fewest_lost(n, min(lost, len(sizes) - lost), alpha)
        return None if steps is None else steps / n * (sizes[0] if sizes else span if math.isfinite(span) else 1.0)
    found = mean_error(changes, clusters)
    if not found.says_error:
        return None
    smallest = (t_quantile(1.0 - alpha, found.df) + NormalDist().inv_cdf(POWER)) * found.error
    return smallest if smallest <= span else None


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
