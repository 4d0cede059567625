"""The rows of a set that is asked in a drawn order, block by block, until its gates are decided."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.evaluation.runner import Done
from pytest_ragmetrics.plugin.rows.jobs import RowJob
from pytest_ragmetrics.stats.scores import ScoredRow
from pytest_ragmetrics.stats.sequential import FEWEST
from pytest_ragmetrics.stats.stopping import Draw, DrawnSet

if TYPE_CHECKING:
    from pytest_ragmetrics.plugin.gates.gate import GatedSet

#: The number of rows in a block after the first, which has as many as the earliest decision takes. All workers together
#: do a whole block before they look at the gates, so the rows that are asked depend on the draw and the scores alone.
BLOCK = 8


class DrawnRows:
    """Which rows of a set may be begun, and whether the others are needed.

    ``jobs`` names the rows that can be done; the others have no score.
    """

    def __init__(self, gated: GatedSet, jobs: Container[str]) -> None:
        drawn = gated.draw or Draw(seed="", sizes=())
        self._gates = {gate.id: gated.rule(gate) for gate in gated.gates}
        self._set = DrawnSet(gated.selected, drawn, list(self._gates.values()))
        self._held: dict[str, RowJob] = {}
        self._stops = True
        self._begun = FEWEST
        for test in self.order:
            if test not in jobs:
                self._set.note(test, {})

    @property
    def order(self) -> tuple[str, ...]:
        """The tests of the rows."""
        return self._set.order

    @property
    def missing(self) -> str | None:
        """The first row whose outcome is not known."""
        return self._set.missing

    @property
    def is_decided(self) -> bool:
        """Whether no further block is needed."""
        return self._stops and self._set.is_decided and self._after <= self._begun <= self._set.complete

    @property
    def _after(self) -> int:
        return max(gate.after or 0 for gate in self._set.gates)

    def spares(self, test: str) -> bool:
        """Tell whether the gates were decided before the block of a row."""
        return self.is_decided and test not in self.order[: self._begun]

    @property
    def why_spared(self) -> str:
        """Why a row is not needed."""
        after = self._after
        names = list(self._gates)
        which = f"{names[0]} was" if len(names) == 1 else f"all {len(names)} gates of the set were"
        return f"not needed: {which} decided after {after:,} of {len(self.order):,} rows"

    def hold(self, job: RowJob) -> None:
        """Keep a row until it may be begun."""
        self._held[job.test] = job

    def holds(self, test: str) -> bool:
        """Tell whether a row may not be begun yet."""
        return test in self._held and not self.is_decided

    def released(self, test: str | None = None) -> list[RowJob]:
        """Return the rows that may be begun from now on, in their order, and ``test`` in any case."""
        wanted = [*self.order[: self._begun if self._stops else None], *([test] if test else [])] if self._held else []
        return [self._held.pop(name) for name in dict.fromkeys(wanted) if name in self._held]

    def note(self, test: str, outcome: Done | None) -> None:
        """Take the outcome of a row, ``None`` if it has none."""
        self._set.note(test, {} if outcome is None else _scores(outcome))
        while self._begun <= self._set.complete < len(self.order) and not self.is_decided:
            self._begun += BLOCK

    def give_up(self) -> None:
        """Ask for all rows, because the outcomes of others cannot be read."""
        self._stops = False


def _scores(outcome: Done) -> Mapping[str, ScoredRow]:
    """Return the scores of a row by metric, as its records have them: the first ones of each."""
    found: dict[str, ScoredRow] = {}
    for scoring in (scoring for score in outcome.scores.values() for scoring in score.scorings):
        result = scoring.outcome if isinstance(scoring.outcome, MetricResult) else None
        row = ScoredRow(
            name="", score=None if result is None else result.value, vacuous=result is not None and result.vacuous
        )
        found.setdefault(scoring.metric, row)
    return found
