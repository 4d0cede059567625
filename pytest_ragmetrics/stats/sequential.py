"""Deciding a gate over a finite set before all of its rows are scored: a betting test that may stop at any row.

Two gamblers bet on the rows in a random order, one against a mean at or below the bound, one against a mean at or above
it. A gambler whose capital reaches 1 / alpha has refuted the mean, with an error of at most ``alpha`` however often one
looks (Waudby-Smith and Ramdas 2020, arXiv:2006.04347; 2023, arXiv:2010.09686). Scores are in 0..1, higher is better.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_ragmetrics.core.result import Decision
from pytest_ragmetrics.stats.scores import ROUNDING

#: Shares of the capital that are bet; the capital is the mean over all of them.
FRACTIONS = tuple(i / 21 for i in range(1, 21))
#: Units (rows or clusters) before which nothing is decided.
FEWEST = 10
_SMALLEST = 1e-300
_LEAST_MEAN = 1e-12
_HALVINGS = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A row or a cluster of ``size`` rows: the lowest and the highest sum its scores can have.

    They differ where a row has no score. The sums are over all rows but the ``vacuous`` ones, which have nothing to
    check: each is taken as a score equal to the mean that is tested, because a mean over the others reaches a bound if
    and only if it does so with scores on the bound added.
    """

    low: float
    high: float
    size: int = 1
    vacuous: int = 0


def drawn_order(sizes: Mapping[str, int], seed: str) -> list[str]:
    """Return the names of units in a random order: each next one is drawn with a probability by its size.

    The place of a unit among others depends on the seed, its name and its size alone (Efraimidis and Spirakis 2006).
    """
    return sorted(sizes, key=lambda name: (-math.log(uniform(seed, name)) / sizes[name], name))


def uniform(seed: str, name: str) -> float:
    """Return a number in 0..1, without 0, that is the same for the same seed and name in every process."""
    digest = hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:7], "big") + 1) / 2**56


class _Capital:
    """The capital of one gambler, as logarithms, a figure for each fraction."""

    def __init__(self) -> None:
        self._logs = [0.0] * len(FRACTIONS)
        self.best = 0.0

    def bet(self, share: float, mean: float) -> None:
        edge = share / max(mean, _LEAST_MEAN) - 1.0
        self._logs = [
            log + math.log(max(1.0 + fraction * edge, _SMALLEST))
            for log, fraction in zip(self._logs, FRACTIONS, strict=True)
        ]
        self.best = max(self.best, self.log)

    @property
    def log(self) -> float:
        top = max(self._logs)
        return top + math.log(math.fsum(math.exp(log - top) for log in self._logs) / len(self._logs))


class SequentialTest:
    """Decides whether the mean of ``total`` rows reaches a bound, unit by unit in the order of :func:`drawn_order`.

    ``is_rate`` says that all scores are 0 or 1 and none is vacuous. A false "passed" has at most the probability
    ``alpha``; so has a false "failed" in any of ``gates`` that are decided together.

    >>> test = SequentialTest(200, 0.85, alpha=0.05)
    >>> [test.add(Unit(low=1.0, high=1.0)) for _ in range(26)].index("passed")
    25
    """

    def __init__(self, total: int, bound: float, *, alpha: float, is_rate: bool = True, gates: int = 1) -> None:
        self._total = total
        self._bound = bound
        self._needed = math.ceil(total * bound - ROUNDING) if is_rate else total * bound
        self._is_rate = is_rate
        self._alpha, self._gates = alpha, gates
        self._is_open = False
        self._seen, self._low, self._high = 0, 0.0, 0.0
        self._for, self._against = _Capital(), _Capital()
        self.outcome: Decision | None = None
        #: The units up to the decision, and how many rows these are.
        self.units: list[Unit] = []
        self.after: int | None = None

    def add(self, unit: Unit | None) -> Decision | None:
        """Take the next unit, and return the decision if there is one; the first one stays.

        ``None`` is a unit with scores beyond the scale, after which nothing is decided.
        """
        if unit is None or self._is_open:
            self._is_open = True
            return self.outcome
        left = self._total - self._seen
        # A rate is a whole count over the total: the count below the needed one is refuted.
        refuted = self._needed - 1 if self._is_rate else self._needed
        low, high = (end + unit.vacuous * self._bound for end in (unit.low, unit.high))
        self._for.bet(low / unit.size, (refuted - self._low) / left)
        self._against.bet(1.0 - high / unit.size, 1.0 - (self._needed - self._high) / left)
        self._seen += unit.size
        self._low += low
        self._high += high
        if self.outcome is None:
            self.units.append(unit)
            if len(self.units) >= FEWEST or self._seen == self._total:
                self.outcome = self._decide()
                self.after = self.outcome and self._seen
        return self.outcome

    def _decide(self) -> Decision | None:
        if self._low >= self._needed - ROUNDING or self._for.best >= -math.log(self._alpha):
            return "passed"
        missed = self._high + self._total - self._seen < self._needed - ROUNDING
        return "failed" if missed or self._against.best >= math.log(self._gates / self._alpha) else None


def limit(units: Sequence[Unit], total: int, *, alpha: float, side: Literal["low", "high"]) -> float:
    """Return the highest mean that the units refute from below, or the lowest from above: an end valid at any stop."""

    def is_refuted(mean: float) -> bool:
        capital, seen, total_so_far = _Capital(), 0, 0.0
        for unit in units:
            rest = (mean * total - total_so_far) / (total - seen)
            if rest < 0.0 or capital.best >= -math.log(alpha):
                return True
            share = unit.low if side == "low" else unit.size - unit.vacuous - unit.high
            share += unit.vacuous * mean
            capital.bet(share / unit.size, rest)
            seen += unit.size
            total_so_far += share
        return capital.best >= -math.log(alpha) or total_so_far > mean * total + ROUNDING

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low if side == "low" else 1.0 - low
