"""What a history of runs shows: the line of each metric and gate with its breaks, failing since when, and flaky tests.

:func:`build_trends` makes the view of a history, for the page and for the terminal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.report.figures import number_text, value_text
from pytest_ragmetrics.report.history import GatePoint, History, HistoryRun, MetricPoint, TestPoint
from pytest_ragmetrics.runs.compare import judging_changes
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
from pytest_ragmetrics.runs.wording.runs import WRONG

#: What a cell of a sparkline shows: a test that passed, failed, had no score, or did not run.
Cell = Literal["held", "short", "open", "absent"]
#: How many tests a page lists.
_LISTED = 200
_SAME = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class TrendPoint:
    """A value in one run with its interval and bound, where there are such; ``x`` and ``y`` are per cent of a drawing.

    ``breaks`` are the reasons why the line does not come from the point before.
    """

    run: str
    value: float
    low: float | None
    high: float | None
    bound: float | None
    outcome: str
    n: int | None
    breaks: tuple[str, ...]
    x: float
    y: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Trend:
    """One line: its points, the oldest first, and its drawing in per cent.

    ``name`` says what it is of, ``where`` names the gate, "" for the mean of a metric; a ``share`` is shown in per
    cent. ``lines``, ``bands`` and ``bounds`` are lists of points as SVG has them, one for each part without a break.
    """

    name: str
    where: str
    share: bool
    better: Direction
    points: tuple[TrendPoint, ...]
    lines: tuple[str, ...]
    bands: tuple[str, ...]
    bounds: tuple[str, ...]
    low: str
    high: str

    @property
    def title(self) -> str:
        """Its name, with its gate."""
        return ", ".join(filter(None, (self.name, self.where)))

    def figure(self, value: float) -> str:
        """Return a value of the line, with as many decimals as show on which side of its last bound it is."""
        return value_text(value, self.last.bound, share=self.share)

    @property
    def bound(self) -> str:
        """What the last point had to reach, "" where nothing was asked of it."""
        return "" if self.last.bound is None else number_text(self.last.bound, share=self.share)

    @property
    def last(self) -> TrendPoint:
        """The latest point."""
        return self.points[-1]

    @property
    def unbroken(self) -> tuple[TrendPoint, ...]:
        """The points since the last break."""
        first = max((at for at, point in enumerate(self.points) if point.breaks), default=0)
        return self.points[first:]

    @property
    def crossed(self) -> str:
        """The run from which on the line has not held its bound, "" where it holds it or never did."""
        since = ""
        for point in reversed(self.unbroken):
            if point.outcome not in ("failed", "inconclusive"):
                return since
            since = point.run
        return ""

    @property
    def text(self) -> str:
        """The line in a sentence."""
        first, last, runs = self.unbroken[0], self.last, len(self.unbroken)
        if runs == 1:
            return f"{self.title}: {self.figure(last.value)} in one run"
        ends = f"from {self.figure(first.value)} to {self.figure(last.value)}"
        return f"{self.title}: {ends} in {runs} comparable runs"


@dataclass(frozen=True, kw_only=True, slots=True)
class TestTrend:
    """A test over the runs; ``since`` is the run from which on it fails, ``flaky`` says what came out both ways."""

    __test__ = False  # for pytest, where a test module imports it

    id: str
    cells: tuple[Cell, ...]
    failed: str
    since: str
    flaky: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Trends:
    """Everything on the page of a history; ``failing`` and ``flaky`` tests may be the same.

    ``tests`` are all tests by id that ran last or in the last whole run.
    """

    headline: str
    facts: tuple[str, ...]
    trends: tuple[Trend, ...]
    runs: tuple[HistoryRun, ...]
    failing: tuple[TestTrend, ...]
    flaky: tuple[TestTrend, ...]
    tests: Mapping[str, TestTrend]
    more: int
    left_out: tuple[str, ...]


def build_trends(history: History) -> Trends:
    """Return the view of a history, which has at least one run."""
    whole = tuple(run for run in history.runs if not run.partial)
    tests = _test_trends(history.runs)
    failing = sorted((test for test in tests.values() if test.since), key=lambda test: test.since, reverse=True)
    flaky = [test for test in tests.values() if test.flaky]
    last = history.runs[-1].label
    new = sum(test.since == last for test in failing) if len(history.runs) > 1 else None
    facts = [f"{counted(len(history.runs), 'run')}{f' on {history.branch}' if history.branch else ''}"]
    if history.runs[-1].branch != history.branch:
        facts[0] += f", the last on {history.runs[-1].branch or 'no branch'}"
    facts.append(f"{history.runs[0].label} to {last}")
    if len(whole) < len(history.runs):
        facts.append(f"{counted(len(history.runs) - len(whole), 'partial run')}, in no line")
    facts.append(f"{counted(len(history.runs[-1].tests), 'test')} in the last")
    costs = [run.cost for run in history.runs if run.cost is not None]
    facts += [f"{cost_text(sum(costs))} in all"] if any(costs) else []
    return Trends(
        headline=_headline(len(failing), new),
        facts=tuple(facts),
        trends=tuple(_trends(whole)),
        runs=history.runs,
        failing=tuple(failing[:_LISTED]),
        flaky=tuple(flaky[:_LISTED]),
        tests=tests,
        more=max(0, len(failing) - _LISTED) + max(0, len(flaky) - _LISTED),
        left_out=history.left_out,
    )


def _headline(failing: int, new: int | None) -> str:
    if not failing:
        return "No test fails"
    fails = f"{counted(failing, 'test')} {agreeing(failing, 'fails')}"
    return fails if new is None else f"{fails}, {new or 'none'} of them newly"


def point_text(point: TrendPoint) -> str:
    """Return the value of a point, with as many decimals as show on which side of its bound it is."""
    return score_text(point.value, point.bound)


def _trends(runs: Sequence[HistoryRun]) -> Iterator[Trend]:
    """Yield the line of every metric, with the bounds of gates on its mean, and of every other gate."""
    metrics = [{point.metric: point for point in run.metrics} for run in runs]
    gates = [{gate.id: gate for gate in run.gates if gate.statistic != "regression"} for run in runs]
    for name in sorted({name for points in metrics for name in points}):
        rows = [_metric_row(points.get(name), found) for points, found in zip(metrics, gates, strict=True)]
        yield from _trend(runs, rows, name=f"mean {named(name)}")
    for key in sorted({key for found in gates for key in found}):
        pairs = [(points, found.get(key)) for points, found in zip(metrics, gates, strict=True)]
        if all(gate is None or _is_mean(gate, points.get(gate.metric)) for points, gate in pairs):
            continue  # its bound is on the line of the metric
        gate = next(gate for _, gate in pairs if gate is not None)
        sign = "≤" if gate.better == "lower" else "≥"
        reached = "" if gate.min_score is None else f" {sign} {bound_text(gate.min_score)}"
        what = f"{'share of' if gate.statistic == 'rate' else 'mean'} {named(gate.metric)}{reached}"
        rows = [
            None if gate is None or points.get(gate.metric) is None else (points[gate.metric], gate, gate)
            for points, gate in pairs
        ]
        where, share = named(key.rpartition("::")[2]), gate.statistic == "rate"
        yield from _trend(runs, rows, name=what, where=where, share=share)


_Row = tuple[MetricPoint, GatePoint | None, MetricPoint | GatePoint]


def _metric_row(point: MetricPoint | None, gates: dict[str, GatePoint]) -> _Row | None:
    if point is None:
        return None
    return point, next((gate for gate in gates.values() if _is_mean(gate, point)), None), point


def _is_mean(gate: GatePoint, point: MetricPoint | None) -> bool:
    """Tell whether a gate is over all scores of its metric."""
    if point is None or gate.metric != point.metric or gate.statistic != "mean":
        return False
    return gate.value is not None and point.mean is not None and abs(gate.value - point.mean) < _SAME


def _trend(
    runs: Sequence[HistoryRun], rows: Sequence[_Row | None], *, name: str, where: str = "", share: bool = False
) -> Iterator[Trend]:
    points: list[TrendPoint] = []
    before: tuple[HistoryRun, MetricPoint] | None = None
    better: Direction = "higher"
    for at, (run, row) in enumerate(zip(runs, rows, strict=True)):
        if row is None:
            continue
        metric, gate, shown = row
        value = shown.mean if isinstance(shown, MetricPoint) else shown.value
        if value is None:
            continue
        better = metric.better
        points.append(
            TrendPoint(
                run=run.label,
                value=value,
                low=shown.low,
                high=shown.high,
                bound=None if gate is None else gate.bound,
                outcome="" if gate is None else gate.outcome,
                n=metric.n if shown is metric else None,
                breaks=() if before is None else tuple(_breaks(*before, run, metric)),
                x=round(100 * at / max(1, len(runs) - 1), 2),
            )
        )
        before = run, metric
    if points:
        yield _drawn(points, name=name, where=where, share=share, better=better)


def _breaks(run: HistoryRun, old: MetricPoint, now: HistoryRun, new: MetricPoint) -> Iterator[str]:
    """Yield why the means of two runs cannot be compared; nothing if they can."""
    yield from judging_changes(old, new)
    if run.selection != now.selection:
        yield f"other tests, {named(run.selection) or 'all'}, then {named(now.selection) or 'all'}"


def _drawn(points: Sequence[TrendPoint], *, name: str, where: str, share: bool, better: Direction) -> Trend:
    """Return a trend with its drawing, whose axis spans the values, their intervals and their bounds."""
    known = [value for p in points for value in (p.value, p.low, p.high, p.bound) if value is not None]
    low, high = min(known), max(known)
    low, high = (low - 0.05, high + 0.05) if high - low < _SAME else (low, high)

    def place(x: float, value: float) -> str:
        return f"{x:g},{100 * (high - value) / (high - low):.4g}"

    placed = [replace(point, y=round(100 * (high - point.value) / (high - low), 2)) for point in points]
    parts: list[list[TrendPoint]] = []
    for point in placed:
        if point.breaks or not parts:
            parts.append([])
        parts[-1].append(point)
    bands, bounds = [], []
    for part in parts:
        spans = [(p.x, p.low, p.high) for p in part if p.low is not None and p.high is not None]
        ends = [place(x, top) for x, _, top in spans] + [place(x, bottom) for x, bottom, _ in reversed(spans)]
        bands += [" ".join(ends)] if len(spans) > 1 else []
        for one, other in pairwise(part):
            if one.bound is not None and other.bound is not None:
                bounds.append(f"{place(one.x, one.bound)} {place(other.x, one.bound)} {place(other.x, other.bound)}")
    return Trend(
        name=name,
        where=where,
        share=share,
        better=better,
        points=tuple(placed),
        lines=tuple(" ".join(place(p.x, p.value) for p in part) for part in parts if len(part) > 1),
        bands=tuple(bands),
        bounds=tuple(bounds),
        low=value_text(low, share=share),
        high=value_text(high, share=share),
    )


def _test_trends(runs: Sequence[HistoryRun]) -> dict[str, TestTrend]:
    """Return the tests by id, sorted; those that are gone are left out."""
    latest = max((at for at, run in enumerate(runs) if not run.partial), default=0)
    judging = {id(run): _judging(run) for run in runs}
    found: dict[str, list[TestPoint | None]] = {}
    for at, run in enumerate(runs):
        for test in run.tests:
            found.setdefault(test.key, [None] * len(runs))[at] = test
    trends = []
    for points in found.values():
        ran = [(run, point) for run, point in zip(runs, points, strict=True) if point and point.outcome != "skipped"]
        if not ran or not any(points[latest:]):
            continue
        since = ""
        for run, point in reversed(ran):
            if point.outcome not in WRONG:
                break
            since = run.label
        wrong = sum(point.outcome in WRONG for _, point in ran)
        trends.append(
            TestTrend(
                id=ran[-1][1].id,
                cells=tuple(map(_cell, points)),
                failed=f"failed in {wrong} of {counted(len(ran), 'run')}",
                since=since,
                flaky=_flaky(ran, judging),
            )
        )
    return {test.id: test for test in sorted(trends, key=lambda test: test.id)}


def _cell(point: TestPoint | None) -> Cell:
    if point is None or point.outcome == "skipped":
        return "absent"
    return "open" if point.outcome == "unscored" else "short" if point.outcome in WRONG else "held"


def _judging(run: HistoryRun) -> dict[str, str]:
    """Return by metric what decides its scores besides the answers."""
    metrics = {it.metric: (it.judge, sorted(it.prompts.items()), sorted(it.definition.items())) for it in run.metrics}
    return {name: repr(how) for name, how in metrics.items()}


def _flaky(ran: Sequence[tuple[HistoryRun, TestPoint]], judging: Mapping[int, Mapping[str, str]]) -> str:
    """Return what came out both ways though nothing changed: one answer under one judge and bound, or one commit.

    ``judging`` is :func:`_judging` by the identity of the run.
    """
    if len({(point.outcome, *(outcome for _, outcome, _ in point.scores.values())) for _, point in ran}) == 1:
        return ""
    answers: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    commits: defaultdict[tuple[str, ...], set[bool]] = defaultdict(set)
    for run, point in ran:
        how = judging[id(run)]
        if run.commit and not run.commit.endswith("+") and point.outcome in (*WRONG, "passed"):
            revision = (run.commit, *how.values())
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
        needs = "-" if last.bound is None else f"{bound_text(last.bound)} {last.outcome}"
        part = trend.unbroken
        rows.append((trend.title, str(len(part)), point_text(part[0]), point_text(last), ends, needs))
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
    return [*lines, *and_more(len(view.flaky), indent=""), *view.left_out]
