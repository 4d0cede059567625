"""The overview of a run: the news, what changed and whose it is, gates, history, groups, metrics and the judge.

:func:`build_overview` makes its view model, ``templates/overview.html.jinja`` renders it. A link into the tests is the
query of their list: ``kind``, ``cause``, ``by`` with ``in``, ``metric`` with ``outcome``, ``mark`` and ``sort``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from pytest_ragmetrics.report.figures import (
    GateView,
    MetricView,
    build_gate_view,
    build_metric_views,
    value_text,
)
from pytest_ragmetrics.report.groups import FAILING, OWNER, Grouping, build_groupings, is_failing, metadata_of
from pytest_ragmetrics.report.outcomes import (
    CAUSES,
    KIND_LABELS,
    TEST_KINDS,
    Cause,
    PairedTest,
    TestKind,
    gone_tests,
    owners_of,
    paired_tests,
)
from pytest_ragmetrics.report.trends import Trend, Trends
from pytest_ragmetrics.runs.compare import Incomparable, RunComparison
from pytest_ragmetrics.runs.origin import OriginView, build_origin, started_text
from pytest_ragmetrics.runs.records import Document, GateRecord, Record, RunRecord, TestRecord
from pytest_ragmetrics.runs.wording.figures import NOTHING_TO_CHECK, agreeing, counted, duration_text
from pytest_ragmetrics.runs.wording.runs import (
    beside_lines,
    headline,
    is_cut_short,
    judges_of,
    margin,
    paid_records,
    spent_text,
    status_of,
)
from pytest_ragmetrics.stats.scores import score_set
from pytest_ragmetrics.text.unicode import printable, shortened

Query = Mapping[str, str]

#: How many examples a cause has, and how long a question and a piece of an answer in it are.
_EXAMPLES, _QUESTION, _PIECE = 2, 90, 90
#: A group is named where it has this many times its share of the failing tests, and at least so many of them.
_LIFT, _FEWEST, _NAMED = 1.5, 3, 2
_LINES = 3
_GONE = 100
_OUTCOMES = ("failed", "inconclusive", "passed", "skipped", "")
_LAST_CAUSES: tuple[Cause, ...] = ("run", "error")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EXITS = ("all passed", "tests failed", "interrupted", "internal error", "usage error", "no tests")


@dataclass(frozen=True, kw_only=True, slots=True)
class CountView:
    """How many tests a kind has; the counts of all kinds add up to all tests."""

    kind: TestKind
    number: int
    label: str
    query: Query


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleView:
    """A test with what was asked and the piece that shows its cause; ``anchor`` is its deep link."""

    anchor: str
    question: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupShare:
    """A group with more than its share of tests: ``number`` of them, and what passed then and passes now."""

    key: str
    name: str
    number: int
    then: str
    now: str
    query: Query


@dataclass(frozen=True, kw_only=True, slots=True)
class CauseView:
    """A cause with the number of its tests, the worst as examples, and who owns it, "" where nobody is named."""

    cause: Cause
    title: str
    number: int
    owner: str
    examples: tuple[ExampleView, ...]
    group: GroupShare | None
    query: Query


@dataclass(frozen=True, kw_only=True, slots=True)
class GateLine:
    """A gate on the overview: ``anchor`` is the deep link of its test, ``where`` tells gates of one title apart."""

    view: GateView
    anchor: str
    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryView:
    """The lines of a history that the overview shows, the others, and the first and the last run of all."""

    title: str
    first: str
    last: str
    lines: tuple[Trend, ...]
    others: tuple[Trend, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class OverviewView:
    """Everything on the overview; what is empty or ``None`` has no section.

    ``title`` is the news for the title of the page. ``against`` is the run that this one is compared with, ``carriers``
    the groups with most of the new failures, of which there are ``failing``; ``total`` counts the tests that are no
    gates. ``marks`` are flags that lead to their tests, ``gone`` the tests that only the baseline has.
    """

    news: str
    title: str
    is_good: bool
    origin: OriginView
    started: str
    against: OriginView | None
    baseline_started: str
    total: int
    failing: int
    carriers: tuple[GroupShare, ...]
    counts: tuple[CountView, ...]
    marks: tuple[tuple[str, Query], ...]
    causes: tuple[CauseView, ...]
    gates: tuple[GateLine, ...]
    history: HistoryView | None
    groupings: tuple[Grouping, ...]
    metrics: tuple[MetricView, ...]
    incomparable: tuple[Incomparable, ...]
    gone: tuple[str, ...]
    gone_more: int
    judges: tuple[str, ...]
    verdicts: str
    bill: str
    took: str
    warnings: tuple[str, ...]
    heuristics: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def build_overview(
    document: Document,
    comparison: RunComparison | None = None,
    trends: Trends | None = None,
    *,
    marks: Sequence[tuple[str, Query]] = (),
) -> OverviewView:
    """Return the overview of a document, compared with a baseline and as the last run of a history if there are such.

    ``marks`` are labels of tests that are to be looked at, with the links to them.
    """
    run, records = document.run, [record for test in document.tests for record in test.records]
    pairs = paired_tests(document, comparison)
    counts = Counter(pair.kind for pair in pairs)
    gates = _gate_lines(document, comparison)
    groupings = build_groupings(pairs)
    failing = [pair for pair in pairs if is_failing(pair)]
    gone = [printable(test.id) for test in gone_tests(comparison)] if comparison else []
    return OverviewView(
        news=_news(counts, gates, pairs, run, compared=comparison is not None),
        title=_title(counts, gates, pairs, compared=comparison is not None),
        is_good=not any(_is_bad(line.view) for line in gates) and not any(counts[kind] for kind in _BAD),
        origin=build_origin(run),
        started=day_text(run.started),
        against=build_origin(comparison.baseline.run) if comparison else None,
        baseline_started=day_text(comparison.baseline.run.started) if comparison else "",
        total=len(pairs),
        failing=len(failing),
        carriers=tuple(_carriers(groupings, failing)) if comparison else (),
        counts=tuple(_count_view(kind, counts[kind]) for kind in TEST_KINDS if counts[kind]),
        marks=tuple(marks),
        causes=tuple(_causes(pairs, groupings, _anchors(document), _owners(run))),
        gates=gates,
        history=_history(trends),
        groupings=groupings,
        metrics=build_metric_views(document, comparison),
        incomparable=comparison.incomparable if comparison else (),
        gone=tuple(gone[:_GONE]),
        gone_more=len(gone[_GONE:]),
        judges=tuple(judges_of(records)),
        verdicts=_verdicts(records),
        bill=spent_text(paid_records(document.tests)),
        took=duration_text(run.duration),
        warnings=tuple(_warnings(run)),
        heuristics=tuple(_heuristics(records)),
        facts=tuple(_facts(run, records, document.tests)),
        settings=tuple((name, _setting(value)) for name, value in sorted(run.settings.items())),
        notes=(*beside_lines(document.tests), *run.notes),
    )


_BAD: tuple[TestKind, ...] = ("newly fails", "fails, new", "fails as before", "fails", "no score")


def _anchors(document: Document) -> dict[int, str]:
    """Return the deep links of the tests, by the identity of their records."""
    seen: Counter[str] = Counter()
    found = {}
    for test in document.tests:
        seen[test.id] += 1
        found[id(test)] = anchor_of(test.id, seen[test.id])
    return found


def anchor_of(test: str, occurrence: int) -> str:
    """Return the deep link of a test: its id, with a number from its second occurrence on."""
    return test + (f" ({occurrence})" if occurrence > 1 else "")


def _is_bad(gate: GateView) -> bool:
    return not gate.gate.passes and gate.gate.outcome != "skipped"


def _news(
    counts: Mapping[TestKind, int],
    gates: Sequence[GateLine],
    pairs: Sequence[PairedTest],
    run: RunRecord,
    *,
    compared: bool,
) -> str:
    """Return the worst of the run in one sentence; of a run in which nothing got worse, that."""
    parts = list(_worse(counts, gates)) if compared else []
    if compared:
        said = ", and ".join(parts) if parts else _nothing_worse(counts, gates)
        said = said[:1].upper() + said[1:]
    else:
        bad = [line for line in gates if _is_bad(line.view)]
        holds = f", and {_gate_names(bad)} {agreeing(len(bad), 'does')} not hold" if bad else ""
        said = headline(Counter(status_of(pair.test) for pair in pairs)) + holds
    return said + (", then the run stopped early" if is_cut_short(run) else "")


def _worse(counts: Mapping[TestKind, int], gates: Sequence[GateLine]) -> Iterator[str]:
    """Yield what got worse: tests, then gates."""
    newly, new, lost = (counts.get(kind, 0) for kind in ("newly fails", "fails, new", "no score"))
    if newly:
        yield f"{counted(newly, 'test')} newly {agreeing(newly, 'fails')}"
    if new:
        yield f"{counted(new, 'new test')} {agreeing(new, 'fails')}"
    fallen = [line for line in gates if line.view.newly]
    first = [line for line in gates if _is_bad(line.view) and not line.view.compared]
    if lost and not newly and not new:
        yield f"{counted(lost, 'test')} {agreeing(lost, 'has')} no score"
    if fallen:
        yield f"{_gate_names(fallen)} no longer {agreeing(len(fallen), 'holds')}"
    if first:
        yield f"{_gate_names(first, new='new ')} {agreeing(len(first), 'does')} not hold"


def _gate_names(gates: Sequence[GateLine], new: str = "") -> str:
    """Return the gates by name, of more than two their number."""
    names = [shortened(printable(line.view.title), _QUESTION) for line in gates]
    if len(set(names)) < len(names) or len(names) > _NAMED:
        return counted(len(names), f"{new}gate")
    return f"the {new}gate{'s' if len(names) > 1 else ''} on {' and '.join(names)}"


def _nothing_worse(counts: Mapping[TestKind, int], gates: Sequence[GateLine]) -> str:
    passing, before, fixed = (counts.get(kind, 0) for kind in ("passes as before", "fails as before", "fixed"))
    sides = [f"all {passing:,} that passed before pass"] if passing > 1 else []
    sides += [f"{fixed:,} {agreeing(fixed, 'is')} fixed"] if fixed else []
    sides += [f"{before:,} {agreeing(before, 'fails')} as before"] if before else []
    still = [line for line in gates if _is_bad(line.view)]
    if still and not sides:
        sides = [f"{_gate_names(still)} {agreeing(len(still), 'does')} not hold, as before"]
    return f"Nothing got worse{': ' if sides else ''}{', '.join(sides)}"


def _title(
    counts: Mapping[TestKind, int], gates: Sequence[GateLine], pairs: Sequence[PairedTest], *, compared: bool
) -> str:
    """Return the news in a few words, for one of ten tabs."""
    if compared:
        worse = next(_worse(counts, gates), None)
        return "\u2713 nothing got worse" if worse is None else f"\u2717 {worse}"
    failing = counts.get("fails", 0) + counts.get("no score", 0)
    if failing:
        return f"\u2717 {failing:,} of {counted(len(pairs), 'test')} {agreeing(failing, 'fails')}"
    bad = [line for line in gates if _is_bad(line.view)]
    return f"\u2717 {_gate_names(bad)}" if bad else f"\u2713 {counted(counts.get('passes', 0), 'test')} passed"


def _count_view(kind: TestKind, number: int) -> CountView:
    return CountView(kind=kind, number=number, label=KIND_LABELS[kind][number != 1], query={"kind": kind})


def _carriers(groupings: Sequence[Grouping], failing: Sequence[PairedTest]) -> Iterator[GroupShare]:
    """Yield the groups that carry most of the failures, of the key whose groups fail most unevenly."""
    for grouping in groupings[:1]:
        shares = [_share(grouping, name, failing) for name in grouping.groups]
        large = [share for share in shares if share is not None]
        yield from sorted(large, key=lambda share: -share.number)[:_NAMED]


def _share(grouping: Grouping, name: str, chosen: Sequence[PairedTest], **query: str) -> GroupShare | None:
    """Return how many of the chosen tests are in a group, ``None`` where it has hardly more than its share of them."""
    pairs = grouping.groups[name]
    members = {id(pair) for pair in pairs}
    number = sum(id(pair) in members for pair in chosen)
    total = sum(map(len, grouping.groups.values()))
    if number < _FEWEST or number * total < _LIFT * len(chosen) * len(pairs):
        return None
    row = next((row for table in grouping.tables[:1] for row in table.rows if row.name == name), None)
    then = "" if row is None or row.before is None else value_text(row.before, share=True)
    kinds = {} if query else {"kind": next(kind for kind in FAILING if any(pair.kind == kind for pair in chosen))}
    return GroupShare(
        key=grouping.key,
        name=name,
        number=number,
        then=then,
        now="" if row is None else row.shown,
        query={**kinds, **query, "by": grouping.key, "in": name},
    )


def _causes(
    pairs: Sequence[PairedTest], groupings: Sequence[Grouping], anchors: Mapping[int, str], owners: Mapping[Cause, str]
) -> Iterator[CauseView]:
    """Yield every cause of tests that went wrong, the most frequent first, those of the run last."""
    found: dict[Cause, list[PairedTest]] = {}
    for pair in pairs:
        if pair.cause is not None:
            found.setdefault(pair.cause, []).append(pair)
    for cause, group in sorted(found.items(), key=lambda item: (item[0] in _LAST_CAUSES, -len(item[1]))):
        shares = (_share(grouping, name, group, cause=cause) for grouping in groupings for name in grouping.groups)
        most = max(filter(None, shares), key=lambda share: share.number, default=None)
        yield CauseView(
            cause=cause,
            title=CAUSES[cause],
            number=len(group),
            owner=_owner(group) or owners.get(cause, ""),
            examples=tuple(_examples(group, anchors)),
            group=most if most is not None and 2 * most.number >= len(group) else None,
            query={"cause": cause},
        )


def _owners(run: RunRecord) -> dict[Cause, str]:
    """Return who owns the tests of a cause, nobody where a file says it in another way."""
    with suppress(ValueError):
        return owners_of(str(run.settings.get("owners") or ""))
    return {}


def _owner(pairs: Iterable[PairedTest]) -> str:
    """Return who owns the rows of these tests, the one of most first."""
    names = Counter(name for pair in pairs if (name := metadata_of(pair.test).get(OWNER)))
    return ", ".join(name for name, _ in names.most_common(_NAMED)) + (" \u2026" if len(names) > _NAMED else "")


def _examples(pairs: Sequence[PairedTest], anchors: Mapping[int, str]) -> Iterator[ExampleView]:
    """Yield the worst tests, each with another question."""
    seen: set[str] = set()
    for pair in sorted(pairs, key=lambda pair: min(map(margin, pair.test.records), default=math.inf)):
        question = question_of(pair.test)
        if question not in seen:
            seen.add(question)
            detail = shortened(printable(pair.detail), _PIECE)
            yield ExampleView(anchor=anchors[id(pair.test)], question=question, detail=detail)
        if len(seen) == _EXAMPLES:
            return


def question_of(test: TestRecord) -> str:
    """Return what a test asked, on one line; of one that asked nothing, its name."""
    asked = (record.sample.user_input for record in test.records)
    texts = (printable(text) for text in asked if isinstance(text, str))
    return shortened(next(filter(None, texts), printable(test.id.removeprefix(f"{test.file}::"))), _QUESTION)


def _gate_lines(document: Document, comparison: RunComparison | None) -> tuple[GateLine, ...]:
    """Return the gates, those that do not hold first, each with its former value."""
    befores: dict[object, GateRecord] = {}
    for test in comparison.baseline.tests if comparison else ():
        if test.gate is not None and test.gate.outcome != "skipped":
            befores.setdefault(test.id, test.gate)
            befores.setdefault(_gate_key(test.id, test.gate), test.gate)
    anchors = _anchors(document)
    lines = []
    for test in document.tests:
        if test.gate is not None:
            before = befores.get(test.id) or befores.get(_gate_key(test.id, test.gate))
            view = build_gate_view(test.gate, before)
            name = printable(test.id.partition("::")[2].partition("[gate-")[0])
            lines.append(GateLine(view=view, anchor=anchors[id(test)], where=name))
    titles = Counter(line.view.title for line in lines)
    names = Counter((line.view.title, line.where) for line in lines)
    named = [
        line if titles[line.view.title] > 1 and names[line.view.title, line.where] == 1 else replace(line, where="")
        for line in lines
    ]
    return tuple(sorted(named, key=lambda line: (not line.view.newly, not _is_bad(line.view))))


def _gate_key(test: str, gate: GateRecord) -> tuple[object, ...]:
    """Return what stays of a gate whose bound is changed."""
    return test.partition("[gate-")[0], gate.metric, gate.statistic, gate.min_score, gate.better


def _history(trends: Trends | None) -> HistoryView | None:
    """Return the lines, first those of gates that do not hold; ``None`` of a single run."""
    if trends is None or len(trends.runs) <= 1 or not trends.trends:
        return None
    ordered = sorted(trends.trends, key=lambda trend: (_OUTCOMES.index(trend.last.outcome), trend.last.bound is None))
    whole = [run.label for run in trends.runs if not run.partial]
    return HistoryView(
        title=trends.facts[0],
        first=whole[0],
        last=whole[-1],
        lines=tuple(ordered[:_LINES]),
        others=tuple(ordered[_LINES:]),
    )


def day_text(started: str) -> str:
    """Return when a run started as short as it can be read, in UTC.

    >>> day_text("2026-11-22T08:14:00Z"), day_text("yesterday")
    ('22 Nov 08:14', 'yesterday')
    """
    try:
        time = datetime.fromisoformat(started.replace("Z", "+00:00")).astimezone(timezone.utc)
    except ValueError:
        return started
    return f"{time.day} {_MONTHS[time.month - 1]} {time:%H:%M}"


def _verdicts(records: Iterable[Record]) -> str:
    """Return how many verdicts the judge gave, and on how many scorings."""
    judged = [record for record in records if record.judge]
    number = sum(len(record.verdicts) for record in judged)
    return f"{counted(number, 'verdict')} on {counted(len(judged), 'score')}" if number else ""


def _warnings(run: RunRecord) -> Iterator[str]:
    if is_cut_short(run):
        reason = _exit_text(run.exit_status)
        yield f"The run stopped early ({reason}). Tests that had not run by then are missing here."
    yield from run.warnings


def _heuristics(records: Sequence[Record]) -> Iterator[str]:
    for judge in judges_of(records):
        if "heuristic" in judge:
            yield f"Scored by {judge}, not by a model: good for trying things out, no measure of real answers."


def _facts(run: RunRecord, records: Sequence[Record], tests: Sequence[TestRecord]) -> Iterator[tuple[str, str]]:
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
    yield "Made with", f"ragmetrics {run.ragmetrics}, pytest {run.pytest}, Python {run.python}"


def _setting(value: object) -> str:
    if value is None:
        return "not set"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _exit_text(status: int) -> str:
    return _EXITS[status] if 0 <= status < len(_EXITS) else "unknown"
