"""What a history of runs shows: the line of each metric and gate with its breaks, failing since when, and flaky tests.

:func:`build_trends` makes the view of a history, for the page and for the terminal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pytest_ragmetrics.report.figures import value_text
from pytest_ragmetrics.report.history import History, HistoryRun, MetricPoint, TestPoint
from pytest_ragmetrics.runs.compare import judging_changes
from pytest_ragmetrics.runs.records import GateRecord
from pytest_ragmetrics.runs.wording.figures import (
    SHOWN,
    agreeing,
    and_more,
    bound_text,
    cost_text,
    counted,
    named,
    score_text,
    text_table,
)
from pytest_ragmetrics.runs.wording.runs import WRONG, Status, gate_title, shown_gate

#: What a cell of a sparkline shows: a test that passed, failed, had no score, or did not run.
Cell = Literal["held", "short", "open", "absent"]
_CELLS: Mapping[Status, Cell] = {"failed": "short", "error": "short", "unscored": "open", "skipped": "absent"}
_SAME = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class TrendPoint:
    """The mean of a metric or the value of a gate in one run; ``x`` is its place in a drawing, in per cent.

    ``breaks`` are the reasons why the line does not come from the point before.
    """

    run: str
    value: float
    low: float | None
    high: float | None
    bound: float | None
    outcome: str
    breaks: tuple[str, ...]
    x: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Trend:
    """One line: its points, the oldest first, in parts without a break, and the ends of its axis.

    ``name`` says what it is of, ``where`` names the gate, "" for the mean of a metric; a ``share`` is shown in per
    cent. Its drawing is in per cent too: ``lines``, ``bands`` and ``bounds`` are lists of points as SVG has them.
    """

    name: str
    where: str
    share: bool
    parts: tuple[tuple[TrendPoint, ...], ...]
    low: float
    high: float
    unit: str = ""

    @property
    def title(self) -> str:
        """Its name, with its gate."""
        return ", ".join(filter(None, (self.name, self.where)))

    def figure(self, value: float) -> str:
        """Return a value of the line, with as many decimals as show on which side of its last bound it is."""
        return value_text(value, self.last.bound, share=self.share, unit=self.unit)

    @property
    def points(self) -> list[TrendPoint]:
        """All points."""
        return [point for part in self.parts for point in part]

    @property
    def last(self) -> TrendPoint:
        """The latest point."""
        return self.parts[-1][-1]

    @property
    def crossed(self) -> str:
        """The run from which on the line has not held its bound, "" where it holds it or never did."""
        since = ""
        for point in reversed(self.parts[-1]):
            if point.outcome not in ("failed", "inconclusive"):
                return since
            since = point.run
        return ""

    @property
    def text(self) -> str:
        """The line in a sentence."""
        first, last, runs = self.parts[-1][0], self.last, len(self.parts[-1])
        if runs == 1:
            return f"{self.title}: {self.figure(last.value)} in one run"
        ends = f"from {self.figure(first.value)} to {self.figure(last.value)}"
        return f"{self.title}: {ends} in {runs} comparable runs"

    def height(self, value: float) -> float:
        """Return how far below the upper end of the axis a value is."""
        return 100 * (self.high - value) / (self.high - self.low)

    @property
    def lines(self) -> list[str]:
        """The values."""
        return [self._path([(p.x, p.value) for p in part]) for part in self.parts if len(part) > 1]

    @property
    def bands(self) -> list[str]:
        """The outlines of the intervals."""
        found = []
        for part in self.parts:
            spans = [(p.x, p.low, p.high) for p in part if p.low is not None and p.high is not None]
            outline = [(x, top) for x, _, top in spans] + [(x, bottom) for x, bottom, _ in reversed(spans)]
            found += [self._path(outline)] if len(spans) > 1 else []
        return found

    @property
    def bounds(self) -> list[str]:
        """The bounds, as steps."""
        return [
            self._path([(one.x, one.bound), (other.x, one.bound), (other.x, other.bound)])
            for part in self.parts
            for one, other in pairwise(part)
            if one.bound is not None and other.bound is not None
        ]

    def _path(self, places: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{x:g},{self.height(value):.4g}" for x, value in places)


@dataclass(frozen=True, kw_only=True, slots=True)
class TestTrend:
    """A test over the runs.

    ``since`` is the run from which on it fails, which is the last where it fails ``newly``; ``flaky`` says what came
    out both ways.
    """

    __test__ = False  # for pytest, where a test module imports it

    id: str
    cells: tuple[Cell, ...]
    failed: str
    since: str
    newly: bool
    flaky: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Trends:
    """Everything on the page of a history; ``failing`` and ``flaky`` tests may be the same.

    ``tests`` are all tests by id that ran last or in the last whole run.
    """

    history: History
    headline: str
    facts: tuple[str, ...]
    trends: tuple[Trend, ...]
    failing: tuple[TestTrend, ...]
    flaky: tuple[TestTrend, ...]
    tests: Mapping[str, TestTrend]


def build_trends(history: History) -> Trends:
    """Return the view of a history, which has at least one run."""
    runs, last = history.runs, history.runs[-1]
    tests = _test_trends(runs)
    failing = sorted((test for test in tests.values() if test.since), key=lambda test: test.since, reverse=True)
    headline = f"{counted(len(failing), 'test')} {agreeing(len(failing), 'fails')}" if failing else "No test fails"
    if failing and len(runs) > 1:
        newly = sum(test.newly for test in failing)
        headline += ", all newly" if newly == len(failing) > 1 else f", {newly or 'none'} of them newly"
    facts = [*history_facts(history), f"{counted(len(last.tests), 'test')} in the last run"]
    costs = [run.cost for run in runs if run.cost is not None]
    facts += [f"{cost_text(sum(costs))} in all"] if any(costs) else []
    return Trends(
        history=history,
        headline=headline,
        facts=tuple(facts),
        trends=tuple(_trends([run for run in runs if not run.run.partial])),
        failing=tuple(failing),
        flaky=tuple(test for test in tests.values() if test.flaky),
        tests=tests,
    )


def history_facts(history: History) -> list[str]:
    """Return how many runs a history has, of which branch, from when to when, and how many of them are partial."""
    runs, last = history.runs, history.runs[-1]
    facts = [f"{counted(len(runs), 'run')}{f' on {history.branch}' if history.branch else ''}"]
    if last.run.branch != history.branch:
        facts[0] += f", the last on {last.run.branch or 'no branch'}"
    facts.append(f"{runs[0].label} to {last.label}" if len(runs) > 1 else last.label)
    if partial := sum(bool(run.run.partial) for run in runs):
        facts.append(f"{counted(partial, 'partial run')}, in no line")
    return facts


# The number of a run, with a metric in it and a gate.
_Row = tuple[int, MetricPoint, GateRecord | None]


def _trends(runs: Sequence[HistoryRun]) -> Iterator[Trend]:
    """Yield the line of every metric, with the bounds of gates on its mean, and of every other gate."""
    found = [
        (
            {point.metric: point for point in run.metrics},
            {key: gate for key, gate in run.gates.items() if gate.statistic != "regression"},
        )
        for run in runs
    ]
    for name in sorted({name for points, _ in found for name in points}):
        rows = [
            (at, point, next((gate for gate in gates.values() if _is_mean(gate, point)), None))
            for at, (points, gates) in enumerate(found)
            if (point := points.get(name))
        ]
        yield from _trend(runs, rows, name=f"mean {named(name)}")
    for key in sorted({key for _, gates in found for key in gates}):
        gated = [
            (at, point, gate)
            for at, (points, gates) in enumerate(found)
            if (gate := gates.get(key)) and (point := points.get(gate.metric))
        ]
        if not all(_is_mean(gate, point) for _, point, gate in gated):  # else its bound is on the line of the metric
            lines = [(at, point, shown_gate(gate)) for at, point, gate in gated]
            yield from _trend(runs, lines, name=named(gate_title(gated[0][2])), where=named(key.rpartition("::")[2]))


def _is_mean(gate: GateRecord, point: MetricPoint) -> bool:
    """Tell whether a gate is over all scores of its metric."""
    if gate.metric != point.metric or gate.statistic != "mean" or gate.value is None or point.mean is None:
        return False
    return abs(gate.value - point.mean) < _SAME


def _trend(runs: Sequence[HistoryRun], rows: Sequence[_Row], *, name: str, where: str = "") -> Iterator[Trend]:
    """Yield the line of a gate, of the metric where there is no ``where``; none without a value."""
    parts: list[list[TrendPoint]] = []
    share, unit = False, ""
    before: HistoryRun | None = None
    for at, metric, gate in rows:
        value, shown = (gate.value, gate) if gate and where else (metric.mean, metric)
        if value is None:
            continue
        unit = metric.unit
        share = bool(where and gate and gate.statistic == "rate")
        breaks = () if before is None else tuple(breaks_between(before, runs[at], metric.metric))
        if breaks or not parts:
            parts.append([])
        parts[-1].append(
            TrendPoint(
                run=runs[at].label,
                value=value,
                low=shown.low,
                high=shown.high,
                bound=None if gate is None else gate.bound,
                outcome="" if gate is None else gate.outcome,
                breaks=breaks,
                x=round(100 * at / max(1, len(runs) - 1), 2),
            )
        )
        before = runs[at]
    if parts:
        known = [n for part in parts for p in part for n in (p.value, p.low, p.high, p.bound) if n is not None]
        low, high = min(known), max(known)
        low, high = (low - 0.05, high + 0.05) if high - low < _SAME else (low, high)
        own = "" if share else unit
        yield Trend(name=name, where=where, share=share, parts=tuple(map(tuple, parts)), low=low, high=high, unit=own)


def breaks_between(before: HistoryRun, now: HistoryRun, metric: str) -> Iterator[str]:
    """Yield why the means of two runs cannot be compared; nothing if they can."""
    yield from judging_changes(before.run.judging[metric], now.run.judging[metric])
    if before.run.selection != now.run.selection:
        yield f"other tests, {named(before.run.selection) or 'all'}, then {named(now.run.selection) or 'all'}"


def _test_trends(runs: Sequence[HistoryRun]) -> dict[str, TestTrend]:
    """Return the tests by id, sorted; those that are gone are left out."""
    latest = max((at for at, run in enumerate(runs) if not run.run.partial), default=0)
    # By the identity of the run and by metric, what decides scores besides the answers.
    judging = {
        id(run): {
            name: repr((it.judge, sorted(it.prompts.items()), sorted(it.definition.items())))
            for name, it in run.run.judging.items()
        }
        for run in runs
    }
    found: dict[str, list[TestPoint | None]] = {}
    for at, run in enumerate(runs):
        for test in run.tests:
            found.setdefault(test.id, [None] * len(runs))[at] = test
    trends = {}
    for name, points in sorted(found.items()):
        ran = [(run, point) for run, point in zip(runs, points, strict=True) if point and point.outcome != "skipped"]
        if not ran or not any(points[latest:]):
            continue
        began: HistoryRun | None = None
        for run, point in reversed(ran):
            if point.outcome not in WRONG:
                break
            began = run
        wrong = sum(point.outcome in WRONG for _, point in ran)
        trends[name] = TestTrend(
            id=name,
            cells=tuple(_CELLS.get(point.outcome, "held") if point else "absent" for point in points),
            failed=f"failed in {wrong} of {counted(len(ran), 'run')}",
            since=began.label if began else "",
            newly=began is runs[-1],
            flaky=_flaky(ran, judging),
        )
    return trends


def _flaky(ran: Sequence[tuple[HistoryRun, TestPoint]], judging: Mapping[int, Mapping[str, str]]) -> str:
    """Return what came out both ways though nothing changed: one answer under one judge and bound, or one commit."""
    if len({(point.outcome, *(outcome for _, outcome, _ in point.scores.values())) for _, point in ran}) == 1:
        return ""
    answers: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    commits: defaultdict[tuple[str, ...], set[bool]] = defaultdict(set)
    for run, point in ran:
        how, commit = judging[id(run)], run.run.commit
        if commit and not commit.endswith("+") and point.outcome in (*WRONG, "passed"):
            revision = (commit, *how.values())
            commits[revision].add(point.outcome in WRONG)
        for metric, (_, outcome, needs) in point.scores.items():
            if outcome in ("passed", "failed"):
                answers[metric, point.answer, needs, how.get(metric, "")].add(outcome)
    metrics = sorted({key[0] for key, both in answers.items() if len(both) > 1})
    if metrics:
        return f"one answer passed and failed {', '.join(map(named, metrics))}"
    same = sorted({key[0][:7] for key, both in commits.items() if len(both) > 1})
    return f"passed and failed at commit {', '.join(same)}" if same else ""


def trend_lines(view: Trends, *, width: int | None = None) -> list[str]:
    """Return the lines of the terminal: a table of the trends of that width, their breaks, failing and flaky tests."""
    rows = [("line", "runs", "from", "to", "interval", "needs")]
    breaks: dict[tuple[str, str], list[str]] = {}
    for trend in view.trends:
        last = trend.last
        ends = "-" if last.low is None or last.high is None else f"{last.low:.2f}..{last.high:.2f}"
        needs = "-" if last.bound is None else f"{bound_text(last.bound, unit=trend.unit)} {last.outcome}"
        part = trend.parts[-1]
        first, latest = (score_text(point.value, point.bound, unit=trend.unit) for point in (part[0], last))
        rows.append((trend.title, str(len(part)), first, latest, ends, needs))
        for point in trend.points:
            if point.breaks:
                breaks.setdefault((point.run, "; ".join(point.breaks)), []).append(trend.title)
    lines = [
        ", ".join(view.facts),
        *(text_table(rows, width=width) if view.trends else ["no whole run, and so no line"]),
    ]
    lines += [f"new line from {run}: {why} ({', '.join(titles)})" for (run, why), titles in breaks.items()]
    lines.append(view.headline)
    lines += [f"  {named(test.id)}: since {test.since}, {test.failed}" for test in view.failing[:SHOWN]]
    lines += and_more(len(view.failing))
    lines += [f"flaky: {named(test.id)}: {test.flaky}" for test in view.flaky[:SHOWN]]
    return [*lines, *and_more(len(view.flaky), indent=""), *view.history.left_out]
