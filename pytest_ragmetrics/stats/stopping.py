"""Rows of a set in a drawn order, and the gates that they decide as soon as the first rows of it do.

Only the longest complete beginning of the order decides: rows that answer sooner are not like the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.stats.means import meets
from pytest_ragmetrics.stats.scores import ScoredRow, Vacuous, goodness, standing
from pytest_ragmetrics.stats.sequential import SequentialTest, Unit, drawn_order, limit


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """The order in which the rows of a set are taken: clusters of ``sizes``, whole, as the ``seed`` has drawn them."""

    seed: str
    sizes: tuple[int, ...]


def draw(clusters: Mapping[str, Hashable | None], seed: str) -> tuple[list[str], Draw]:
    """Return rows in a drawn order; ``clusters`` names that of each row, ``None`` for a row that is one of its own."""
    units: dict[str, list[str]] = {}
    for row, cluster in clusters.items():
        units.setdefault(f"row {row}" if cluster is None else f"cluster {cluster}", []).append(row)
    order = drawn_order({name: len(rows) for name, rows in units.items()}, seed)
    sizes = tuple(len(units[name]) for name in order)
    return [row for name in order for row in units[name]], Draw(seed=seed, sizes=sizes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What the rows of a set are to reach: ``bound`` is for their mean, or for the rate of those at ``score_bound``.

    ``scale`` is that of the scores, ``better`` their good end. ``alpha`` is the error on each side, on that of failures
    for all ``gates`` of the set together.
    """

    metric: str
    bound: float
    alpha: float
    scale: tuple[float, float] = (0.0, 1.0)
    better: Direction = "higher"
    score_bound: float | None = None
    vacuous: Vacuous = "skip"
    gates: int = 1

    def share(self, score: float) -> float:
        """Return a score on 0..1 where 1 is best: 0 or 1 where scores are compared with a bound."""
        if self.score_bound is not None:
            return float(meets(score, self.score_bound, self.better))
        return goodness(score, self.scale, self.better)

    @property
    def least(self) -> float:
        """The bound on 0..1."""
        return self.bound if self.score_bound is not None else self.share(self.bound)

    def test(self, total: int) -> SequentialTest:
        """Return the test of this rule over so many rows."""
        # Whether a row is vacuous is known only when it is scored.
        is_rate = self.score_bound is not None and self.vacuous == "count"
        return SequentialTest(total, self.least, alpha=self.alpha, is_rate=is_rate, gates=self.gates)

    def unit(self, rows: Sequence[ScoredRow | None]) -> Unit | None:
        """Return rows as a unit, ``None`` stands for one without a score; ``None`` for scores beyond the scale."""
        kinds = ["unscored" if row is None else standing(row, self.vacuous) for row in rows]
        shares = [
            self.share(row.score)
            for row, kind in zip(rows, kinds, strict=True)
            if row is not None and row.score is not None and kind == "counted"
        ]
        if not all(0.0 <= share <= 1.0 for share in shares):
            return None
        low = sum(shares)
        return Unit(low=low, high=low + kinds.count("unscored"), size=len(rows), vacuous=kinds.count("vacuous"))

    def ends(self, units: Sequence[Unit], total: int) -> tuple[float, float]:
        """Return between which figures that of all rows is: each end is wrong with a probability of ``alpha``."""
        low = limit(units, total, alpha=self.alpha, side="low")
        high = limit(units, total, alpha=self.alpha / self.gates, side="high")
        if self.score_bound is not None:
            return low, high
        start, width = self.scale[0], self.scale[1] - self.scale[0]
        shares = (1.0 - high, 1.0 - low) if self.better == "lower" else (low, high)
        return start + width * shares[0], start + width * shares[1]


class DrawnSet:
    """Decides gates by the rows of a set in the ``order`` of a draw; rows may come in any order.

    >>> rule = Rule(metric="m", bound=0.5, alpha=0.05)
    >>> rows = {f"r{n}": {"m": ScoredRow(name=f"r{n}", score=1.0)} for n in range(40)}
    >>> drawn = DrawnSet(list(rows), Draw(seed="s", sizes=(1,) * 40), [rule])
    >>> for name, scores in rows.items():
    ...     drawn.note(name, scores)
    >>> drawn.gates[0].outcome, drawn.gates[0].after
    ('passed', 10)
    """

    def __init__(self, order: Sequence[str], drawn: Draw, rules: Sequence[Rule]) -> None:
        self.order = tuple(order)
        self.rules = tuple(rules)
        self.gates = [rule.test(len(self.order)) for rule in rules]
        #: The number of rows before the first one that is missing.
        self.complete = 0
        self._rows: dict[str, Mapping[str, ScoredRow]] = {}
        self._ends = list(accumulate(drawn.sizes))
        self._taken = 0

    @property
    def is_decided(self) -> bool:
        """Whether all gates are decided."""
        return all(gate.outcome is not None for gate in self.gates)

    @property
    def missing(self) -> str | None:
        """The first row of the order that has not come."""
        return self.order[self.complete] if self.complete < len(self.order) else None

    def note(self, row: str, scores: Mapping[str, ScoredRow]) -> None:
        """Take the scores of a row by metric; a metric that is not among them has none. The first ones count."""
        self._rows.setdefault(row, scores)
        while self.missing in self._rows:
            self.complete += 1
        while self._taken < len(self._ends) and self._ends[self._taken] <= self.complete:
            end = self._ends[self._taken]
            members = self.order[self._ends[self._taken - 1] if self._taken else 0 : end]
            for rule, gate in zip(self.rules, self.gates, strict=True):
                gate.add(rule.unit([self._rows[name].get(rule.metric) for name in members]))
            self._taken += 1
