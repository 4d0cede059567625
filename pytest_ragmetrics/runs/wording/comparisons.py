"""Two runs in figures and words: how scores changed, of a metric or one by one, and what decides whether they dropped.

Terminal, ``report diff``, Markdown and page say it in these words, changes in the order of ``runs.compare.KINDS``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pytest_ragmetrics.core.result import Direction, Usage
from pytest_ragmetrics.core.tested import Tested
from pytest_ragmetrics.runs.clusters import shared_groups
from pytest_ragmetrics.runs.compare import Kind, RunComparison, TestChange, kind_of
from pytest_ragmetrics.runs.records import Record, RegressionRecord
from pytest_ragmetrics.runs.wording.blame import blame_lines, blame_text
from pytest_ragmetrics.runs.wording.figures import (
    NOTHING_TO_CHECK,
    SHOWN,
    and_more,
    checked_text,
    counted,
    figure_text,
    format_apart,
    format_interval,
    named,
    score_text,
    shared_text,
    with_unit,
)
from pytest_ragmetrics.stats.drop import Drop
from pytest_ragmetrics.stats.paired import Difference
from pytest_ragmetrics.stats.permutation import PairedScores
from pytest_ragmetrics.stats.power import rows_needed
from pytest_ragmetrics.stats.scores import standing
from pytest_ragmetrics.text.unicode import printable

# A smaller p is shown as p<0.001.
_SURE = 0.001
# What comes in every other run needs no figure, and smaller shares no more digits.
_LIKELY, _LEAST_SHOWN = 0.5, 1e-4
# The drop for which rows are counted.
_SMALL = 0.1
#: The fewest rows that decide anything, with something to check or not: fewer cannot show a drop.
FEWEST = 5
#: The least share of the baseline's rows that decides anything: a set may grow, but not shrink.
LEAST_SHARE = 0.8
#: What to do where a comparison decides nothing.
ANEW = f"write the baseline anew (--rag-json=FILE), in a run of the whole set as it is now, of {FEWEST} rows or more"
#: The same where it is the last runs.
NEXT_RUN = f"the next run of the whole set as it is now, of {FEWEST} rows or more, makes a baseline"
#: What to do where there is no baseline.
GIVE_ONE = (
    "give --rag-baseline=FILE, which --rag-json wrote, or history:5, the last 5 runs in the folder of --rag-history, "
    "once it has one"
)
#: The kinds of changes as they are counted.
KIND_WORDS: Mapping[Kind, str] = {
    "better": "better",
    "worse": "worse",
    "same": "the same",
    "unscored": "no longer scored",
    "nothing to check": f"with {NOTHING_TO_CHECK} in one of the runs",
    "scored again": "scored again",
    "new": "new",
    "gone": "gone",
}
#: How a score compares: its outcome became worse or better, or there is none to compare.
Tone = Literal["bad", "good", "open", "same"]
# How many changes a short text names.
_NAMED = 3
#: What to do where two runs have no sample in common.
NO_PAIR = "nothing can be compared: give the samples ids that stay the same from run to run"


@dataclass(frozen=True, kw_only=True, slots=True)
class RowChange:
    """One row scored before and now, with all its ``scores``, and the cluster it belongs to."""

    id: str
    scores: PairedScores
    cluster: Hashable | None = None

    @property
    def before(self) -> float:
        """The mean of its scores before."""
        return math.fsum(self.scores.before) / len(self.scores.before)

    @property
    def after(self) -> float:
        """The mean of its scores now."""
        return math.fsum(self.scores.now) / len(self.scores.now)

    @property
    def change(self) -> float:
        """How much the score rose."""
        return self.scores.change

    @property
    def passes(self) -> str:
        """How many of its scores were 1, where there are several and all are 0 or 1."""
        sides = (("before", self.scores.before), ("now", self.scores.now))
        if not {*self.scores.before, *self.scores.now} <= {0.0, 1.0}:
            return ""
        counts = [f"{scores.count(1.0)} of {len(scores)} {when}" for when, scores in sides if len(scores) > 1]
        return f" ({', '.join(counts)})" if counts else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricComparison:
    """One metric in two runs, this one and one before.

    ``rows`` are those scored in both, by id, and ``difference`` has the figures over them, ``None`` if there are none.
    The other fields are ids: of rows that only one run has, and of rows of both that are unscored in one, had nothing
    to check (``vacuous``), or ask another question (``rewritten``). ``judges`` are those of the compared scores, and
    scores of different ones are not compared. ``doubts`` say why these rows decide nothing; in ``silenced`` rows 1.0 is
    something to check and 0.0 is nothing, where only one run has something. Where the baseline is several ``runs``,
    ``against`` is how many of what and from when, and ``left_out`` names the others, and why. ``rejudged`` says what
    was judged anew for it, "" if nothing was, and ``usage`` what that took.
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
    runs: int = 1
    against: str = ""
    left_out: tuple[str, ...] = ()
    rejudged: str = ""
    usage: Usage = field(default_factory=Usage)
    unit: str = ""

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
        return tuple(row for row in self.rows if kind_of(row.before, row.after, self.better, self.unit) == "same")

    @property
    def shared(self) -> tuple[int, int]:
        """How many rows share passages, which makes them dependent, and in how many groups."""
        return shared_groups(row.cluster for row in self.rows)

    def _changed(self, kind: Kind) -> tuple[RowChange, ...]:
        changed = (row for row in self.rows if kind_of(row.before, row.after, self.better, self.unit) == kind)
        return tuple(sorted(changed, key=lambda row: -abs(row.change)))

    def lines(self, drop: Drop | None = None) -> list[str]:
        """Return what changed in a line, then the rows by how they changed, the largest change first.

        With a ``drop`` the line says what decides about it, else how much the mean changed.
        """
        lines = [self._headline(drop), *([f"  {remedy(self)}"] if drop and self.doubts else [])]
        if self.against:
            apart = left_out_text(self.left_out) if self.left_out and not self.doubts else ""
            lines.append(f"  baseline: {printable('; '.join(filter(None, (self.against, apart))))}")
        if self.judges:
            lines.append(f"  judge: {printable(', '.join(self.judges))}")
        if drop is not None and (text := shared_text(*self.shared)):
            lines.append(f"  {text}")
        lines += [f"  {self.rejudged}"] if self.rejudged else []
        for title, rows in (("regressed", self.regressed), ("improved", self.improved)):
            lines.append(f"  {title}: {len(rows)}")
            for row in rows[:SHOWN]:
                before, after = format_apart(row.before, row.after, self.unit)
                change = figure_text(row.change, self.unit, decimals=2, sign="+")
                lines.append(f"    {change}  {before} -> {after}  {named(row.id)}{row.passes}")
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
            return f"{name}: {doubts if self.rewritten or self.left_out else none}"
        before, after = format_apart(found.before, found.after, self.unit)
        if drop is not None:
            decides = doubts if self.doubts and not drop.silence else drop_text(drop, drop.n, self.unit)
            return f"{name} {before} -> {after}: {decides}"
        change = figure_text(found.interval.estimate, self.unit, sign="+")
        figures = f"{format_interval(found.interval, sign='+', unit=self.unit)}, n={found.n}"
        return f"{name} {before} -> {after}: {change} ({figures})"

    def figures(self) -> str:
        """Return the figures beside the one that decides; they answer other questions, and may disagree with it."""
        found = self.difference
        if found is None:
            return ""
        chances = (("t test", found.t_p), ("sign flips", found.flip_p), ("McNemar", found.mcnemar_p))
        tests = "".join(
            f", {test} p{probability_text(p)}" for test, p in chances if p is not None and not math.isnan(p)
        )
        change = figure_text(found.interval.estimate, self.unit, sign="+")
        return f"mean change {change}, {format_interval(found.interval, sign='+', unit=self.unit)}{tests}"

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


def remedy(found: MetricComparison | RegressionRecord) -> str:
    """Return what to do where a comparison decides nothing."""
    return NEXT_RUN if found.left_out else ANEW


def counts_text(comparison: RunComparison) -> str:
    """Return how many scores there are of every kind of change."""
    counts = comparison.counts
    return ", ".join(
        f"{counts[kind]} {word}" for kind, word in KIND_WORDS.items() if counts[kind] or kind in ("better", "worse")
    )


def change_lines(comparison: RunComparison, *, shown: int | None = _NAMED) -> list[str]:
    """Return what changed since the baseline: how many scores of each kind, and the worst ``shown`` of them by name.

    ``None`` names all that changed, and adds the means of every metric over what both runs scored.
    """
    bad = comparison.of("unscored", "worse")
    listed = bad[:shown] if shown is not None else [change for change in comparison.changes if change.kind != "same"]
    return [
        f"against the baseline: {counts_text(comparison)}",
        *(f"  {line}" for line in blame_lines(comparison)),
        *(line for change in listed for line in _told(change)),
        *and_more(len(bad), shown=len(bad) if shown is None else shown),
        *(f"  {line}" for line in incomparable_lines(comparison)),
        *(metric_change_lines(comparison) if shown is None else ()),
    ]


def _told(change: TestChange) -> list[str]:
    """Return what one score was and is, and which part made it worse."""
    blame = None if change.new is None else change.new.record.blame
    return [f"  {change_line(change)}", *([] if blame is None else [f"    {printable(blame_text(blame))}"])]


def incomparable_lines(comparison: RunComparison) -> list[str]:
    """Return how many scores of which metric are not compared, and why."""
    return [f"not compared: {pair.pairs} of {named(pair.metric)}: {pair.why}" for pair in comparison.incomparable]


def metric_change_lines(comparison: RunComparison) -> list[str]:
    """Return the means of every metric over what both runs scored."""
    return [
        f"{named(metric.metric)}: mean {figure_text(metric.before, metric.unit)} -> "
        f"{figure_text(metric.after, metric.unit)} over {metric.pairs}"
        for metric in comparison.metrics
        if metric.before is not None and metric.after is not None
    ]


def change_line(change: TestChange) -> str:
    """Return what one score was and is."""
    scores = " -> ".join(side_text(it.record, figure_text) for it in (change.old, change.new) if it)
    if change.change is not None:
        lower = change.better == "lower"
        gain = -change.change if lower else change.change
        scores += f" ({figure_text(gain, change.unit, sign='+')}{', lower is better' if lower else ''})"
    return f"{change.kind}: {named(change.id)}: {named(change.metric)} {scores}"


def change_text(change: TestChange) -> str:
    """Return how a score compares with its counterpart in the baseline."""
    before = side_text(change.old.record) if change.old else ""
    if change.kind in ("better", "worse") and change.change is not None:
        return f"was {before}, {_gain_text(change)}"
    words = {"new": "not in the baseline", "same": "as in the baseline", "unscored": f"was {before}"}
    if change.kind == "nothing to check":
        return f"had {before}" if before == NOTHING_TO_CHECK else f"{NOTHING_TO_CHECK} now, was {before}"
    return words.get(change.kind, "was unscored")


def _gain_text(change: TestChange) -> str:
    return f"{score_text(abs(change.change or 0.0), unit=change.unit)} {change.kind}"


def side_text(record: Record, text: Callable[..., str] = score_text) -> str:
    """Return the score of one run."""
    if record.score is None:
        return "unscored"
    return NOTHING_TO_CHECK if record.vacuous else text(record.score, unit=record.unit)


def outcome_change(change: TestChange) -> tuple[str, Tone]:
    """Return what became of a score beside its threshold and whether it is compared, and how bad or good that is."""
    if change.old is None or change.new is None:
        fails = change.new is not None and change.new.record.outcome == "failed"
        return ("fails, new", "bad") if fails else ("not scored now" if change.new is None else "new", "same")
    before, now = change.old.record, change.new.record
    word, tone = _outcome_word(change, before, now)
    # An earlier assert of the test failed, or this one was taken out.
    is_free = now.outcome == "measured" and not now.vacuous and (now.threshold or before.threshold)
    others = ["not compared" if change.obstacles else "", "not asserted now" if is_free else ""]
    return ", ".join(filter(None, (word, *others))), tone


def _outcome_word(change: TestChange, before: Record, now: Record) -> tuple[str, Tone]:
    fails, failed, then = now.outcome == "failed", before.outcome == "failed", standing(before)
    if now.score is None:
        return ("no score, both" if then == "unscored" else "no score now"), "open"
    if now.vacuous and not fails:
        return f"{NOTHING_TO_CHECK}, both" if then == "vacuous" else f"{NOTHING_TO_CHECK} now", "same"
    lacking = {"unscored": "no score then", "vacuous": f"{NOTHING_TO_CHECK} then"}.get(then, "")
    if now.outcome == "measured":
        compared = "" if change.obstacles else "as before" if change.kind == "same" else _gain_text(change)
        return lacking or compared, "same"
    did = "fails" if fails else "passes"
    if lacking or before.outcome == "measured" or fails == failed:
        both = lacking or ("" if before.outcome == "measured" else "both")
        return ", ".join(filter(None, (did, both))), "bad" if lacking and fails else "same"
    return ("newly fails", "bad") if fails else ("fixed", "good")


def left_out_text(runs: Sequence[str]) -> str:
    """Return which runs of a baseline are left out, and why.

    >>> left_out_text(["2026-11-21 02:00 was judged by openai:a", "2026-11-22 02:00 is not whole (-k)"])
    '2 left out: 2026-11-21 02:00 was judged by openai:a, 2026-11-22 02:00 is not whole (-k)'
    """
    more = [f"{len(runs) - _NAMED} more"] if len(runs) > _NAMED else []
    return f"{len(runs)} left out: {', '.join([*runs[:_NAMED], *more])}"


def drop_text(drop: Tested, n: int, unit: str = "") -> str:
    """Return what decides on a drop over ``n`` rows, and the smallest that would have been shown; "" without a test.

    >>> drop_text(Tested(alpha=0.05, p=0.035, adjusted_p=0.035, changed=8, worse=7, better=1), 20)
    '7 of 20 rows got worse, 1 better; if nothing had changed, so large a drop comes in 3.5 % of runs (limit 5 %)'
    """
    groups = _groups_text(drop)
    if drop.silence or drop.p is None or drop.adjusted_p is None:
        return "; ".join(filter(None, (drop.silence, groups)))
    text = f"{drop.worse} of {counted(n, 'row')} got worse, {drop.better} better"
    if drop.changed and not drop.worse + drop.better:  # in a file of an early version
        text = f"{drop.changed} of {counted(n, 'row')} changed"
    text += f"; {groups}" if groups else ""
    chance, event = drop.p, "so large a drop"
    if drop.dropped and drop.dropped[0].adjusted_p < drop.adjusted_p:
        chance, event = drop.dropped[0].adjusted_p, f"{event}{_where(drop)}"
    elif drop.adjusted_p != drop.p and (drop.adjusted_p < 1.0 or drop.p <= drop.alpha):
        chance, event = drop.adjusted_p, f"{event}{_where(drop)}"
    if drop.p <= drop.alpha and drop.adjusted_p >= 1.0 and not groups:
        text += f";{_where(drop)} that proves nothing"
    elif groups or (drop.changed and drop.p < _LIKELY):
        share = f"{max(chance, _LEAST_SHOWN) * 100:.3g} % of runs (limit {drop.alpha * 100:.3g} %)"
        text += f"; if nothing had changed, {event} comes in {share}"
    if drop.adjusted_p <= drop.alpha or groups:
        return text
    rows = f"{counted(n, 'row')} like {'this' if n == 1 else 'these'}"
    if drop.smallest is None:
        return f"{text}; {rows} can hardly show a drop"
    text = f"{text}; {rows} show a drop of {with_unit(f'{drop.smallest:.3g}', unit)} or more in at least 8 of 10 runs"
    # That is a share of the scale from 0 to 1.
    if unit or not _SMALL < drop.smallest <= 1.0:
        return text
    needed = rows_needed(_SMALL, n, drop.smallest, lost=drop.worse, gained=drop.better, alpha=drop.alpha)
    return text if needed is None else f"{text}, {counted(needed, 'row')} one of {_SMALL:g}"


def _where(drop: Tested) -> str:
    """Return among what a drop was searched for."""
    if drop.gates > 1:
        return f" in one of the {drop.gates} gates of the run"
    if drop.by_group:
        return f" in one of the {len(drop.by_group)} groups, or in all rows,"
    return " in one of two tests, of scores and of silence," if drop.gates else " in one of the metrics"


def _groups_text(drop: Tested) -> str:
    """Return how many rows got worse in the groups that dropped."""
    found = drop.dropped
    texts = [f"{named(it.name)}: {it.worse} of {counted(it.n, 'row')} got worse, {it.better} better" for it in found]
    more = [f"{counted(len(found) - _NAMED, 'more group')} got worse"] if len(found) > _NAMED else []
    return "; ".join([*texts[:_NAMED], *more])


def probability_text(p: float) -> str:
    """Return a p-value with its sign.

    >>> probability_text(0.03125), probability_text(0.0001)
    ('=0.031', '<0.001')
    """
    return "<0.001" if p < _SURE else f"={p:.3f}"
