"""Whether scores dropped from one run to the next: a one-sided test of the pairs, for one metric and for several."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pytest_ragmetrics.stats.intervals import Clusters, check_confidence
from pytest_ragmetrics.stats.permutation import PairedScores, drop_test
from pytest_ragmetrics.stats.power import smallest_drop
from pytest_ragmetrics.stats.scores import ROUNDING

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
                rows[metric], alpha=alpha, clusters=clusters[metric], span=(spans or {}).get(metric, 1.0)
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
