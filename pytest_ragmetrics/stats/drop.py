"""Whether scores dropped from one run to the next: a one-sided test of the pairs, for one metric and for several."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TypeVar

from pytest_ragmetrics.stats.intervals import check_confidence, mean_error, t_quantile
from pytest_ragmetrics.stats.paired import binomial_tail, changed_sums, flipped_sums
from pytest_ragmetrics.stats.scores import ROUNDING

#: The probability with which the smallest drop that a set could have shown would have been found.
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
    changes: Mapping[str, Sequence[float]],
    *,
    clusters: Mapping[str, Sequence[Hashable] | None],
    alpha: float = 0.05,
    spans: Mapping[str, float] | None = None,
) -> dict[str, Drop]:
    """Return what the changes of several metrics show, each positive where a score became better.

    ``spans`` are the largest changes there can be, 1.0 for those not given. The probability that any metric that did
    not drop is called one that did is at most ``alpha``. Raises ``ValueError`` for a metric without a pair, or an
    ``alpha`` that is not between 0 and 1.

    >>> found = drops({"a": [-1.0] * 8 + [0.0] * 42, "b": [0.0] * 50}, clusters={"a": None, "b": None})
    >>> found["a"].shown, found["b"].shown, found["b"].smallest
    (True, False, 0.16)
    """
    check_confidence(alpha, name="alpha", example=0.05)
    if empty := [metric for metric, pairs in changes.items() if not pairs]:
        msg = f"{empty[0]}: no pairs, and a comparison needs at least one"
        raise ValueError(msg)
    p = {metric: drop_p(pairs, clusters=clusters[metric]) for metric, pairs in changes.items()}
    changed = {metric: len(changed_sums(pairs, clusters[metric])) for metric, pairs in changes.items()}
    adjusted = adjusted_p(p, changed, alpha=alpha)
    return {
        metric: Drop(
            n=len(pairs),
            changed=changed[metric],
            p=p[metric],
            adjusted_p=adjusted[metric],
            alpha=alpha,
            smallest=smallest_drop(pairs, alpha=alpha, clusters=clusters[metric], span=(spans or {}).get(metric, 1.0)),
            worse=sum(change < -ROUNDING for change in pairs),
            better=sum(change > ROUNDING for change in pairs),
        )
        for metric, pairs in changes.items()
    }


def drop_p(changes: Sequence[float], *, clusters: Sequence[Hashable] | None = None) -> float:
    """Return the one-sided p-value of the sign-flip test that the mean of paired changes is below zero.

    A change is after minus before, positive where it is better; the signs of whole clusters are flipped together. For
    changes of one size (pass and fail) it is McNemar's exact test, else exact with up to 16 clusters that changed, and
    (b + 1) / (m + 1) for b of m drawn flips with more (Phipson and Smyth 2010), the same in every run.

    >>> drop_p([-1.0] * 6 + [1.0]), drop_p([0.25, -0.25, -0.5, -0.75, -1.0]), drop_p([0.0])
    (0.0625, 0.09375, 1.0)
    """
    sums = changed_sums(changes, clusters)
    if not sums:
        return 1.0
    sizes = sorted(map(abs, sums))
    if sizes[-1] - sizes[0] <= ROUNDING:
        return binomial_tail(len(sums), sum(total < 0.0 for total in sums))
    flipped, drawn = flipped_sums(sizes)
    low = int((flipped <= math.fsum(sums) + ROUNDING).sum())
    return (low + 1) / (len(flipped) + 1) if drawn else low / len(flipped)


def adjusted_p(p: Mapping[str, float], changed: Mapping[str, int], *, alpha: float = 0.05) -> dict[str, float]:
    """Return the p-values of several metrics so that a false alarm in any of them has the probability ``alpha``.

    By :func:`holm` over the metrics that could raise an alarm at all: ``changed`` counts the rows (clusters) of each
    that changed, and m of them cannot give a p below 2 ** -m (Tarone 1990). The others get 1.

    >>> adjusted_p({"a": 0.03125, "b": 1.0, "c": 1.0}, {"a": 5, "b": 0, "c": 1})
    {'a': 0.03125, 'b': 1.0, 'c': 1.0}
    """
    family: list[str] = []
    for size in range(1, len(p) + 1):
        family = [name for name in p if 2.0 ** -changed[name] <= alpha / size]
        if len(family) <= size:
            break
    return {**dict.fromkeys(p, 1.0), **holm({name: p[name] for name in family})}


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Return p-values adjusted for all of them together (Holm 1979).

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    adjusted, largest = {}, 0.0
    for rank, name in enumerate(sorted(p, key=lambda name: p[name])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[name]))
        adjusted[name] = largest
    return adjusted


def smallest_drop(
    changes: Sequence[float],
    *,
    alpha: float = 0.05,
    clusters: Sequence[Hashable] | None = None,
    span: float = 1.0,
) -> float | None:
    """Return the smallest drop of the mean that pairs like these show in at least 80 % of runs; ``None`` if none.

    ``span`` is the largest change there can be, infinite where it is not known.

    For changes of one size it is exact for a set in which as many rows change without a cause as in this one; else
    that of a t test with the error of these changes.

    >>> smallest_drop([-1.0] * 5 + [1.0] * 5 + [0.0] * 190)
    0.065
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

    def is_shown(lost: int) -> bool:
        return _power(n, quiet, lost / n, alpha) >= POWER

    if most < 1 or not is_shown(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high


def _power(n: int, quiet: float, drop: float, alpha: float) -> float:
    """Return the probability of an alarm if rows change each way with ``quiet`` and are lost with ``drop`` besides."""
    share = min(1.0, 2.0 * quiet + drop)
    shown = 0.0
    for changed, weight in enumerate(_binomial(n, share)):
        if weight > ROUNDING**2:
            least = _critical(changed, alpha)
            if least <= changed:
                shown += weight * math.fsum(_binomial(changed, min(1.0, (quiet + drop) / share))[least:])
    return shown


@lru_cache(maxsize=4096)
def _critical(changed: int, alpha: float) -> int:
    """Return how many of the rows that changed must be lost for an alarm; more than all where none is possible."""
    tail, least = 0.0, changed + 1
    for term in _binomial(changed, 0.5):
        tail += term
        if tail > alpha:
            break
        least -= 1
    return least


def _binomial(n: int, p: float) -> list[float]:
    """Return the probabilities of 0 to ``n`` successes."""
    if p in (0.0, 1.0):
        return [float(k == (n if p else 0)) for k in range(n + 1)]
    logs = [math.lgamma(k + 1) for k in range(n + 1)]
    yes, no = math.log(p), math.log1p(-p)
    return [math.exp(logs[n] - logs[k] - logs[n - k] + k * yes + (n - k) * no) for k in range(n + 1)]
