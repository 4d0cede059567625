"""Two runs of a metric in figures and words: how its scores changed, and what decides whether they dropped."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.runs.compare import Kind, kind_of
from pytest_ragmetrics.runs.records import RegressionRecord
from pytest_ragmetrics.runs.wording.figures import (
    NOTHING_TO_CHECK,
    SHOWN,
    and_more,
    checked_text,
    counted,
    format_apart,
    format_interval,
    named,
)
from pytest_ragmetrics.stats.drop import Drop
from pytest_ragmetrics.stats.paired import Difference
from pytest_ragmetrics.text.unicode import printable

# A smaller p is shown as p<0.001.
_SURE = 0.001
# What comes in every other run needs no figure, and smaller shares no more digits.
_LIKELY, _LEAST_SHOWN = 0.5, 1e-4
#: The least rows that decide anything, with something to check or not: of fewer no drop could be shown.
FEWEST = 5
#: And the least share of the rows of the baseline: a set may grow, but not shrink.
LEAST_SHARE = 0.8
#: What to do where a comparison decides nothing.
ANEW = f"write the baseline anew (--rag-json=FILE), in a run of the whole set as it is now, of {FEWEST} rows or more"
#: What to do where two runs have no sample in common.
NO_PAIR = "nothing can be compared: give the samples ids that stay the same from run to run"


@dataclass(frozen=True, kw_only=True, slots=True)
class RowChange:
    """One row scored in both runs, and the cluster it belongs to."""

    id: str
    before: float
    after: float
    cluster: Hashable | None = None

    @property
    def change(self) -> float:
        """How much the score rose."""
        return self.after - self.before


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricComparison:
    """One metric in two runs, this one and one before.

    ``rows`` are those scored in both, by id, and ``difference`` has the figures over them, ``None`` if there are none.
    The other fields are ids: of rows that only one run has, and of rows of both that are unscored in one, had nothing
    to check (``vacuous``), or ask another question (``rewritten``). ``judges`` are those of the compared scores, and
    scores of different ones are not compared. ``doubts`` say why these rows decide nothing; in ``silenced`` rows 1.0 is
    something to check and 0.0 is nothing, where only one run has something.
    """

    metric: str
    better: Direction
    judges: tuple[str, ...]
    difference: Difference | None
    rows: tuple[RowChange, ...]
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]
    unscored_here: tuple[str, ...]
    unscored_there: tuple[str, ...]
    vacuous_here: tuple[str, ...] = ()
    vacuous_there: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    silenced: tuple[RowChange, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def regressed(self) -> tuple[RowChange, ...]:
        """The rows that became worse, the largest change first."""
        return self._changed("worse")

    @property
    def improved(self) -> tuple[RowChange, ...]:
        """The rows that became better, the largest change first."""
        return self._changed("better")

    @property
    def unchanged(self) -> tuple[RowChange, ...]:
        """The rows whose score is the same."""
        return tuple(row for row in self.rows if kind_of(row.before, row.after, self.better) == "same")

    def _changed(self, kind: Kind) -> tuple[RowChange, ...]:
        changed = (row for row in self.rows if kind_of(row.before, row.after, self.better) == kind)
        return tuple(sorted(changed, key=lambda row: -abs(row.change)))

    def lines(self, drop: Drop | None = None) -> list[str]:
        """Return what changed in a line, then the rows by how they changed, the largest change first.

        With a ``drop`` the line says what decides about it, else how much the mean changed.
        """
        lines = [self._headline(drop), *([f"  {ANEW}"] if drop and self.doubts else [])]
        if self.judges:
            lines.append(f"  judge: {printable(', '.join(self.judges))}")
        for title, rows in (("regressed", self.regressed), ("improved", self.improved)):
            lines.append(f"  {title}: {len(rows)}")
            for row in rows[:SHOWN]:
                before, after = format_apart(row.before, row.after)
                lines.append(f"    {row.change:+.2f}  {before} -> {after}  {named(row.id)}")
            lines += and_more(len(rows), indent="    ")
        lines.append(f"  unchanged: {len(self.unchanged)}")
        for title, ids in (
            ("only here", self.only_here),
            ("only there", self.only_there),
            ("unscored here", self.unscored_here),
            ("unscored there", self.unscored_there),
            (f"{NOTHING_TO_CHECK} here", self.vacuous_here),
            (f"{NOTHING_TO_CHECK} there", self.vacuous_there),
            ("another question", self.rewritten),
        ):
            if ids:
                more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
                lines.append(f"  {title}: {len(ids)} ({', '.join(map(named, ids[:SHOWN]))}{more})")
        return lines

    def _headline(self, drop: Drop | None) -> str:
        found, doubts = self.difference, f"inconclusive: {'; '.join(self.doubts)}"
        name = printable(self.metric) + (" (lower is better)" if self.better == "lower" else "")
        if found is None:
            left_out = len({*self.vacuous_here, *self.vacuous_there})
            none = f"{checked_text(0, left_out) if left_out else 'no row has a score'} in both runs"
            return f"{name}: {doubts if self.rewritten else none}"
        before, after = format_apart(found.before, found.after)
        if drop is not None:
            said = doubts if self.doubts and not drop.silence else drop_text(drop, drop.n)
            return f"{name} {before} -> {after}: {said}"
        figures = f"{format_interval(found.interval, sign='+')}, n={found.n}"
        return f"{name} {before} -> {after}: {found.interval.estimate:+.3f} ({figures})"

    def figures(self) -> str:
        """Return the figures beside the one that decides; they answer other questions, and may disagree with it."""
        found = self.difference
        if found is None:
            return ""
        chances = (("t test", found.t_p), ("sign flips", found.flip_p), ("McNemar", found.mcnemar_p))
        tests = "".join(f", {test} p{probability_text(p)}" for test, p in chances if p is not None)
        return f"mean change {found.interval.estimate:+.3f}, {format_interval(found.interval, sign='+')}{tests}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, kw_only=True, slots=True)
class TableComparison:
    """Two tables compared metric by metric; ``only_here`` and ``only_there`` are metrics that one of them lacks.

    ``drops`` says by metric whether its scores dropped, where ``assert_no_regression`` asked.
    """

    metrics: Mapping[str, MetricComparison]
    only_here: tuple[str, ...] = ()
    only_there: tuple[str, ...] = ()
    drops: Mapping[str, Drop] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> MetricComparison:
        """Return the comparison of a metric; raise ``KeyError`` for one that not both tables have."""
        if metric not in self.metrics:
            raise KeyError(f"{metric!r} was not compared; there are {', '.join(self.metrics)}")
        return self.metrics[metric]

    def __str__(self) -> str:
        lines = []
        for metric, comparison in self.metrics.items():
            lines += comparison.lines(self.drops.get(metric))
        for place, names in (("here", self.only_here), ("there", self.only_there)):
            lines += [f"only evaluated {place}: {', '.join(names)}"] if names else []
        return "\n".join(lines)


def drop_text(drop: Drop | RegressionRecord, n: int) -> str:
    """Return what decides on a drop over ``n`` rows, and the smallest that would have been shown; "" without a test.

    >>> drop_text(RegressionRecord(alpha=0.05, p=0.035, adjusted_p=0.035, changed=8, worse=7, better=1), 20)
    '7 of 20 rows got worse, 1 better; if nothing had changed, so large a drop comes in 3.5 % of runs (limit 5 %)'
    """
    if drop.silence or drop.p is None or drop.adjusted_p is None:
        return drop.silence
    text = f"{drop.worse} of {counted(n, 'row')} got worse, {drop.better} better"
    if drop.changed and not drop.worse + drop.better:  # in a file of an early version
        text = f"{drop.changed} of {counted(n, 'row')} changed"
    chance, event = drop.p, "so large a drop"
    if drop.adjusted_p != drop.p and (drop.adjusted_p < 1.0 or drop.p <= drop.alpha):
        chance, event = drop.adjusted_p, f"{event} in one of the metrics"
    if drop.p <= drop.alpha and drop.adjusted_p >= 1.0:
        text += "; in one of several metrics that proves nothing"
    elif drop.changed and drop.p < _LIKELY:
        share = f"{max(chance, _LEAST_SHOWN) * 100:.3g} % of runs (limit {drop.alpha * 100:.3g} %)"
        text += f"; if nothing had changed, {event} comes in {share}"
    if drop.adjusted_p <= drop.alpha:
        return text
    rows = f"{counted(n, 'row')} like {'this' if n == 1 else 'these'}"
    if drop.smallest is None:
        return f"{text}; {rows} can hardly show a drop"
    return f"{text}; {rows} show a drop of {drop.smallest:.3g} or more in at least 8 of 10 runs"


def probability_text(p: float) -> str:
    """Return a p-value with its sign.

    >>> probability_text(0.03125), probability_text(0.0001)
    ('=0.031', '<0.001')
    """
    return "<0.001" if p < _SURE else f"={p:.3f}"
