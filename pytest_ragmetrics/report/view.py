"""The view model of the page: everything that the templates show.

:func:`build_report_view` makes it of a document and its comparison with a baseline,
:mod:`pytest_ragmetrics.report.html` renders it. What is inside of a test is in
:mod:`pytest_ragmetrics.report.sample_view`.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from pytest_ragmetrics.comparison import KINDS, Kind
from pytest_ragmetrics.explain.phrases import (
    NOTHING_TO_CHECK,
    bound_text,
    counted,
    duration_text,
    score_text,
    usage_text,
)
from pytest_ragmetrics.explain.runs import (
    STATUSES,
    WORDS,
    MetricTally,
    Status,
    again_text,
    by_metric,
    gate_checked,
    gist,
    headline,
    is_cut_short,
    judges_of,
    margin,
    paid_records,
    regression_rows,
    regression_text,
    status_of,
    stop_text,
    tally,
    total_usage,
)
from pytest_ragmetrics.records import (
    Document,
    GateRecord,
    Record,
    RecordOutcome,
    RegressionRecord,
    RunRecord,
    TestRecord,
    Threshold,
    flips,
)
from pytest_ragmetrics.report.history import History
from pytest_ragmetrics.report.origin import OriginView, build_origin, place_link, started_text
from pytest_ragmetrics.report.sample_view import ChangeNote, SampleView, Scale, build_sample_views, change_note
from pytest_ragmetrics.report.trends import TestTrend, Trends, build_trends
from pytest_ragmetrics.run_comparison import Incomparable, MetricChange, RunComparison, TestChange
from pytest_ragmetrics.stats.scores import score_set
from pytest_ragmetrics.text.characters import shortened

#: What a reader may want to filter by, apart from the outcome.
Flag = Literal["flaky", "suspicious", "vacuous"]
_FLAGS: tuple[Flag, ...] = get_args(Flag)
_FLAG_NOTES: Mapping[Flag, str] = {
    "flaky": "votes on both sides of the threshold",
    "suspicious": "a verdict its evidence does not bear out",
}
#: The outcomes with a tile of their own.
_TILES: tuple[Status, ...] = ("failed", "error", "unscored", "passed")
#: How many metrics a tile names.
_BLAMED = 2
_RECORD_ORDER: Mapping[RecordOutcome, int] = {"failed": 0, "unscored": 1, "passed": 2, "measured": 3}
#: How many characters of the reason the list shows; the test itself shows all of it.
_WHY_LENGTH = 300
_EXITS = ("all passed", "tests failed", "interrupted", "internal error", "usage error", "no tests")
_NO_VALUE = "\u2013"
_BINS = 20
#: A mean that changed by less is shown with the same three decimals.
_SMALLEST_CHANGE = 0.0005
#: How many changes for the worse and for the better are listed, and how many scores that are gone.
_WORST, _BEST, _GONE = 8, 4, 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A number that matters; ``query`` shows the tests behind it, ``anchor`` is the first of them."""

    figure: str
    label: str
    notes: tuple[str, ...] = ()
    kind: str
    query: Mapping[str, str]
    anchor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GateView:
    """A gate; ``statistic`` is what is taken of the metric, ``text`` all of it in one sentence.

    ``checked`` says how many scores count where others had nothing to check, and what a regression gate could show.
    """

    gate: GateRecord
    statistic: str
    value: str
    between: str
    needs: str
    scale: Scale
    checked: str
    text: str
    outcome: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """A histogram with the thresholds and the mean, and the same as a sentence.

    ``bins`` divide the scale equally; each counts the scores that fell short and those that did not.
    """

    scale: Scale
    bins: tuple[tuple[int, int], ...]
    thresholds: tuple[float, ...]
    mean: float
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricView:
    """A metric over all tests; counts come with the anchor of the first test they count.

    ``change`` is its mean against that of the baseline.
    """

    tally: MetricTally
    thresholds: tuple[Threshold, ...]
    lower: bool
    mean: str
    change: ChangeNote | None
    worst: float | None
    first_failing: str | None
    first_unscored: str | None
    first_vacuous: str | None
    distribution: Distribution | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangesView:
    """The comparison with the baseline; the worst and the best changes with the anchors of their tests."""

    counts: Mapping[Kind, int]
    lines: tuple[tuple[str, TestChange], ...]
    more: int
    gone: tuple[TestChange, ...]
    gone_more: int
    incomparable: tuple[Incomparable, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TestView:
    """One test; ``anchor`` is its id and its deep link, ``key`` starts the anchors inside it.

    ``records`` come the worst first; ``explained`` when pytest's message is the explanation, because no score is.
    ``changes`` are those against the baseline, ``change`` the worst of them. ``cost`` (in dollars) and ``tokens``
    are what judging took, ``duration`` is in seconds. ``source`` is the address of its line in the repository,
    ``trend`` the test over the runs of a history.
    """

    anchor: str
    key: str
    name: str
    file: str
    place: str
    source: str
    status: Status
    label: str
    flags: tuple[Flag, ...]
    why: str
    duration: float
    attempts: int
    cost: float
    tokens: int
    records: tuple[Record, ...]
    changes: tuple[TestChange, ...]
    change: ChangeNote | None
    margin: float
    message: str | None
    explained: bool
    gate: GateView | None
    trend: TestTrend | None
    again: str
    samples: tuple[SampleView, ...]
    compared: None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportView:
    """Everything on the page: the first screen, the tests, the worst first, and the facts of the run.

    ``trends`` are of the history, of which this run is the last. ``statuses`` are those that occur, with label and
    number of tests; ``gates`` the tests that are gates.
    """

    headline: str
    origin: OriginView
    trends: Trends | None
    judges: tuple[str, ...]
    warnings: tuple[str, ...]
    tiles: tuple[Tile, ...]
    others: tuple[Tile, ...]
    bill: tuple[Tile, ...]
    gates: tuple[TestView, ...]
    changes: ChangesView | None
    metrics: tuple[MetricView, ...]
    tests: tuple[TestView, ...]
    statuses: tuple[tuple[Status, str, int], ...]
    flags: tuple[Flag, ...]
    files: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    compare_chips: tuple[tuple[str, str, int], ...] = ()


def build_report_view(
    document: Document, comparison: RunComparison | None = None, history: History | None = None
) -> ReportView:
    """Return the view of a document, with what changed since a baseline and the history up to it if they are known."""
    run = document.run
    records = [record for test in document.tests for record in test.records]
    trends = build_trends(history) if history else None
    changes = comparison.by_record() if comparison else None
    tests = build_test_views(document.tests, changes, run=run, trends=trends)
    counts = Counter(test.status for test in tests)
    usage = usage_text(total_usage(paid_records(document.tests)))
    tiles = {status: _status_tile(status, tests) for status in STATUSES}
    return ReportView(
        headline=headline(counts, cut_short=is_cut_short(run)),
        origin=build_origin(run),
        trends=trends,
        judges=tuple(judges_of(records)),
        warnings=tuple(_warnings(run, records)),
        tiles=(*(tiles[status] for status in _TILES if counts[status] or status != "error"), *_flag_tiles(tests)),
        others=tuple(tile for status, tile in tiles.items() if status not in _TILES and counts[status]),
        bill=tuple(_bill(run, usage, tests)),
        gates=tuple(test for test in tests if test.gate),
        changes=_changes_view(comparison, tests) if comparison else None,
        metrics=_metric_views(records, tests, comparison),
        tests=tests,
        statuses=tuple((status, WORDS[status], counts[status]) for status in STATUSES if counts[status]),
        flags=tuple(flag for flag in _FLAGS if any(flag in test.flags for test in tests)),
        files=tuple(sorted({test.file for test in tests})),
        facts=tuple(_facts(run, records, usage, tests)),
        settings=tuple((name, _setting(value)) for name, value in sorted(run.settings.items())),
        notes=tuple(run.notes),
    )


def build_test_views(
    tests: Sequence[TestRecord],
    changes: Mapping[tuple[str, int], TestChange] | None = None,
    *,
    run: RunRecord | None = None,
    trends: Trends | None = None,
) -> tuple[TestView, ...]:
    """Return the tests, the worst first: by status, then by how far the worst score is from its threshold.

    ``changes`` are those against the baseline, by the id of the test and the number of the record in it. ``run`` and
    ``trends`` are those of the tests.
    """
    seen: Counter[str] = Counter()
    views = []
    for test in tests:
        seen[test.id] += 1
        view = _test_view(test, seen[test.id], changes or {})
        source = "" if run is None else place_link(run, test)
        views.append(replace(view, source=source, trend=None if trends is None else trends.tests.get(test.id)))
    return tuple(sorted(views, key=lambda view: (STATUSES.index(view.status), view.margin)))


def _test_view(test: TestRecord, occurrence: int, changes: Mapping[tuple[str, int], TestChange]) -> TestView:
    status = status_of(test)
    gate = build_gate_view(test.gate) if test.gate else None
    records = sorted(test.records, key=lambda record: (_RECORD_ORDER[record.outcome], margin(record)))
    blamed = status in ("failed", "unscored") and bool(records) and records[0].outcome in ("failed", "unscored")
    paid = [record.usage for record in paid_records([test])]
    numbered = {n: changes[test.id, n] for n in range(len(records)) if (test.id, n) in changes}
    key = test.id if occurrence == 1 else f"{test.id}\0{occurrence}"
    return TestView(
        anchor=test.id + (f" ({occurrence})" if occurrence > 1 else ""),
        key="t" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:10],
        name=test.id.removeprefix(f"{test.file}::"),
        file=test.file,
        place=test.file if test.line is None else f"{test.file}:{test.line}",
        source="",
        status=status,
        label=WORDS[status],
        flags=_flags(records),
        why=shortened(_why(test, status, gate, records[0] if blamed else None), _WHY_LENGTH),
        duration=test.duration,
        attempts=test.attempts,
        cost=sum(usage.cost or 0.0 for usage in paid),
        tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in paid),
        records=tuple(records),
        changes=tuple(numbered.values()),
        change=_worst_change(numbered.values()),
        margin=min(map(margin, records), default=math.inf),
        message=test.message,
        explained=not blamed,
        gate=gate,
        trend=None,
        again=again_text(test),
        samples=build_sample_views(test.records, numbered),
    )


def _flags(records: Sequence[Record]) -> tuple[Flag, ...]:
    found: Mapping[Flag, bool] = {
        "flaky": any(flips(record.samples, record.threshold) for record in records),
        "suspicious": any(verdict.suspicious for record in records for verdict in record.verdicts),
        "vacuous": any(record.vacuous for record in records),
    }
    return tuple(flag for flag in _FLAGS if found[flag])


def _why(test: TestRecord, status: Status, gate: GateView | None, blamed: Record | None) -> str:
    """Return why a test came out as it did: the numbers of a gate, the reason of the blamed record, pytest's words."""
    if gate is not None:
        return gate.text
    if blamed is None:
        return gist(test.message) if status != "passed" else ""
    if blamed.reason:
        return blamed.reason
    wrong = sum(not verdict.ok for verdict in blamed.verdicts)
    return f"{wrong} of {sum(verdict.counts for verdict in blamed.verdicts)} not ok" if wrong else ""


def _worst_change(changes: Iterable[TestChange]) -> ChangeNote | None:
    shown = [change for change in changes if change.kind not in ("same", "new")]
    worst = min(shown, key=lambda change: (KINDS.index(change.kind), change.change or 0.0), default=None)
    return change_note(worst) if worst else None


def build_gate_view(gate: GateRecord) -> GateView:
    """Return a gate in words and on a scale."""
    if gate.regression is not None:
        return _regression_view(gate, gate.regression)
    statistic: str = gate.statistic
    if gate.statistic == "rate" and gate.min_score is not None:
        statistic = f"share {'≤' if gate.better == 'lower' else '≥'} {score_text(gate.min_score)} of"
    value = _NO_VALUE if gate.value is None else mean_text(gate.value)
    between = ""
    if gate.low is not None and gate.high is not None:
        share = f" ({100 * gate.confidence:g}%)" if gate.confidence else ""
        between = f"{mean_text(gate.low)} and {mean_text(gate.high)}{share}"
    falling = gate.statistic == "mean" and gate.better == "lower"
    needs = f"{'≤' if falling else '≥'} {bound_text(gate.bound)}"
    text = f"{statistic} {gate.metric} {value}{between and f', between {between}'}, needs {needs}: "
    text += f"{counted(gate.n, 'score')}, {gate.unscored:,} unscored"
    checked = "" if gate.outcome == "skipped" else ", ".join(filter(None, [gate_checked(gate), stop_text(gate)]))
    text += checked and f", {checked}"
    if gate.n + gate.unscored + gate.vacuous < gate.total and not (gate.stop and gate.stop.decided_after):
        text += f", of {counted(gate.total, 'test')}"
    return GateView(
        gate=gate,
        statistic=statistic,
        value=value,
        between=between,
        needs=needs,
        scale=Scale.around(n for n in (gate.low, gate.high, gate.value, gate.bound) if n is not None),
        checked=checked,
        text=text,
        outcome="inconclusive: too few scores to tell" if gate.outcome == "inconclusive" else gate.outcome,
    )


def _regression_view(gate: GateRecord, found: RegressionRecord) -> GateView:
    value, means, picture = _NO_VALUE, "", [0.0]
    if gate.value is not None and found.before is not None and found.after is not None:
        value = f"{gate.value + 0.0:+.3f}"
        means = f" ({mean_text(found.before)} → {mean_text(found.after)})"
        picture.append(gate.value)
    checked = "; ".join(filter(None, [regression_text(gate), ", ".join(regression_rows(gate))]))
    needs = f"no proven drop against the baseline (alpha {found.alpha:g})"
    text = (
        f"change of {gate.metric} {value}{means}, needs {needs}: {counted(gate.n, 'pair')}, {gate.unscored:,} unscored"
    )
    return GateView(
        gate=gate,
        statistic="change of",
        value=value,
        between="",
        needs=needs,
        scale=Scale.around(picture),
        checked=checked,
        text=f"{text}{checked and f'; {checked}'}",
        outcome=gate.outcome,
    )


def mean_text(mean: float) -> str:
    """Return a mean with three decimals, as the terminal shows it."""
    return f"{mean + 0.0:.3f}"


def _status_tile(status: Status, tests: Sequence[TestView]) -> Tile:
    shown = [test for test in tests if test.status == status]
    return Tile(
        figure=f"{len(shown):,}",
        label=WORDS[status] if status != "error" or len(shown) == 1 else "errors",
        notes=tuple(_blamed_metrics(shown, status)),
        kind=status,
        query={"outcome": status},
        anchor=_first(shown),
    )


def _blamed_metrics(tests: Sequence[TestView], status: Status) -> Iterator[str]:
    """Yield the metrics that made the tests come out so, the most frequent first."""
    if status not in ("failed", "unscored"):
        return
    blamed = Counter(metric for test in tests for metric in {r.metric for r in test.records if r.outcome == status})
    for metric, number in sorted(blamed.items(), key=lambda item: (-item[1], item[0]))[:_BLAMED]:
        yield f"{number:,} {metric}"
    if len(blamed) > _BLAMED:
        yield counted(len(blamed) - _BLAMED, "more metric")


def _flag_tiles(tests: Sequence[TestView]) -> Iterator[Tile]:
    for flag, note in _FLAG_NOTES.items():
        shown = [test for test in tests if flag in test.flags]
        if shown:
            query = {"mark": flag}
            yield Tile(
                figure=f"{len(shown):,}", label=flag, notes=(note,), kind=flag, query=query, anchor=_first(shown)
            )


def _bill(run: RunRecord, usage: str, tests: Sequence[TestView]) -> Iterator[Tile]:
    """Yield what the run took; behind it are the dearest and the slowest tests."""
    if usage:
        dearest = sorted(tests, key=lambda test: (-test.cost, -test.tokens))
        query = {"sort": "dearest"}
        yield Tile(figure=usage, label="dearest first", kind="cost", query=query, anchor=_first(dearest))
    slowest = sorted(tests, key=lambda test: -test.duration)
    took, query = duration_text(run.duration), {"sort": "slowest"}
    yield Tile(figure=took, label="slowest first", kind="time", query=query, anchor=_first(slowest))


def _first(tests: Sequence[TestView]) -> str | None:
    return tests[0].anchor if tests else None


def _warnings(run: RunRecord, records: Sequence[Record]) -> Iterator[str]:
    if is_cut_short(run):
        reason = _exit_text(run.exit_status)
        yield f"The run stopped early ({reason}). Tests that had not run by then are missing here."
    for judge in judges_of(records):
        if "heuristic" in judge:
            yield f"Scored by {judge}, not by a model: good for trying things out, no measure of real answers."


def _metric_views(
    records: Sequence[Record], tests: Sequence[TestView], comparison: RunComparison | None = None
) -> tuple[MetricView, ...]:
    """Return each metric, those that fell short first."""
    changes = {change.metric: change for change in comparison.metrics} if comparison else {}
    firsts: dict[tuple[str, RecordOutcome | Flag], str] = {}
    for test in tests:
        for record in test.records:
            firsts.setdefault((record.metric, record.outcome), test.anchor)
            if record.vacuous:
                firsts.setdefault((record.metric, "vacuous"), test.anchor)
    views = [_metric_view(name, group, firsts, changes.get(name)) for name, group in by_metric(records).items()]
    return tuple(sorted(views, key=lambda view: (-view.tally.failing, -view.tally.unscored, view.tally.metric)))


def _metric_view(
    name: str,
    records: Sequence[Record],
    firsts: Mapping[tuple[str, RecordOutcome | Flag], str],
    change: MetricChange | None,
) -> MetricView:
    scores = [(r.score, r.outcome == "failed") for r in score_set(records).counted if r.score is not None]
    thresholds = {(t.bound, t.operator): t for record in records if (t := record.threshold)}
    totals = tally(name, records)
    lower = records[0].better == "lower"
    return MetricView(
        tally=totals,
        thresholds=tuple(threshold for _, threshold in sorted(thresholds.items())),
        lower=lower,
        mean=_NO_VALUE if totals.mean is None else mean_text(totals.mean),
        change=_mean_change(change) if change else None,
        worst=(max if lower else min)((score for score, _ in scores), default=None),
        first_failing=firsts.get((name, "failed")),
        first_unscored=firsts.get((name, "unscored")),
        first_vacuous=firsts.get((name, "vacuous")),
        distribution=build_distribution(scores, {bound for bound, _ in thresholds}),
    )


def _mean_change(change: MetricChange) -> ChangeNote | None:
    if change.change is None or abs(change.change) < _SMALLEST_CHANGE:
        return None
    kind = "better" if change.change > 0 else "worse"
    text = f"{mean_text(abs(change.change))} {kind} over {counted(change.pairs, 'score')}"
    return ChangeNote(metric=change.metric, text=text, kind=kind)


def build_distribution(scores: Sequence[tuple[float, bool]], bounds: Iterable[float]) -> Distribution | None:
    """Return the histogram of scores, each with whether it fell short; ``None`` without any.

    >>> picture = build_distribution([(0.25, True), (1.0, False)], [0.8])
    >>> picture.text
    '2 scores between 0.25 and 1.00, mean 0.625, threshold 0.80, 1 fell short'
    >>> picture.bins[5], picture.bins[19], picture.thresholds, picture.mean
    ((1, 0), (0, 1), (0.8,), 0.625)
    """
    if not scores:
        return None
    values = [score for score, _ in scores]
    limits = sorted(set(bounds))
    scale = Scale.around([*values, *limits])
    mean = math.fsum(values) / len(values)
    bins = [[0, 0] for _ in range(_BINS)]
    for score, short in scores:
        # 0.29 * 100 is 28.999...: a score on the edge belongs to the bin above.
        bins[min(int(scale.place(score) * _BINS + 1e-9), _BINS - 1)][not short] += 1
    number = sum(short for _, short in scores)
    between = f"between {score_text(min(values))} and {score_text(max(values))}, " if len(values) > 1 else ""
    threshold = f", threshold {' and '.join(map(bound_text, limits))}" if limits else ""
    return Distribution(
        scale=scale,
        bins=tuple((failing, passing) for failing, passing in bins),
        thresholds=tuple(limits),
        mean=mean,
        text=f"{counted(len(values), 'score')} {between}mean {mean_text(mean)}{threshold}, {number:,} fell short",
    )


def _changes_view(comparison: RunComparison, tests: Sequence[TestView]) -> ChangesView:
    anchors = {(change.id, change.number): test.anchor for test in tests for change in test.changes}
    worse, better = comparison.of("unscored", "worse"), comparison.of("better", "scored again")[::-1]
    gone = comparison.of("gone")
    return ChangesView(
        counts=comparison.counts,
        lines=tuple((anchors[line.id, line.number], line) for line in (*worse[:_WORST], *better[:_BEST])),
        more=len(worse[_WORST:]) + len(better[_BEST:]),
        gone=gone[:_GONE],
        gone_more=len(gone[_GONE:]),
        incomparable=comparison.incomparable,
    )


def _facts(
    run: RunRecord, records: Sequence[Record], usage: str, tests: Sequence[TestView]
) -> Iterator[tuple[str, str]]:
    yield "Started", started_text(run)
    yield "Took", duration_text(run.duration)
    yield "Exit status", f"{run.exit_status} ({_exit_text(run.exit_status)})"
    found = score_set(records)
    if scores := [record.metric for record in found.counted]:
        number = sum(bool(score_set(test.records).counted) for test in tests)
        several = f"{counted(len(scores), 'score')} of {counted(len(set(scores)), 'metric')}"
        yield "Scored", f"{several} in {counted(number, 'test')}"
    if found.vacuous:
        yield NOTHING_TO_CHECK.capitalize(), counted(len(found.vacuous), "score")
    if judges := judges_of(records):
        yield "Judge", ", ".join(judges)
    if usage:
        yield "Judging", usage
    yield "Made with", f"ragmetrics {run.ragmetrics}, pytest {run.pytest}, Python {run.python}"


def _setting(value: object) -> str:
    if value is None:
        return "not set"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _exit_text(status: int) -> str:
    return _EXITS[status] if 0 <= status < len(_EXITS) else "unknown"
