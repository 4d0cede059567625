"""The overview of a run: the news, what changed and whose it is, gates, history, groups, metrics and the judge.

:func:`build_overview` makes its view model, ``templates/overview.html.jinja`` renders it. A link into the tests is the
query of their list: ``kind``, ``cause``, ``by`` with ``in``, ``metric`` with ``outcome``, ``mark`` and ``sort``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pytest_ragmetrics.report.figures import GateView, MetricView, build_metric_views
from pytest_ragmetrics.report.groups import FAILING, OWNER, Grouping, GroupRow, build_groupings, is_failing, metadata_of
from pytest_ragmetrics.report.outcomes import (
    TEST_KINDS,
    Cause,
    PairedTest,
    TestKind,
    gone_tests,
    owners_of,
)
from pytest_ragmetrics.report.trends import Trend, Trends
from pytest_ragmetrics.runs.compare import RunComparison, paired_gates
from pytest_ragmetrics.runs.origin import started_text
from pytest_ragmetrics.runs.records import Document, MutantRecord, Record, RunRecord, TestRecord
from pytest_ragmetrics.runs.wording.figures import NOTHING_TO_CHECK, agreeing, counted, duration_text
from pytest_ragmetrics.runs.wording.runs import gate_title, headline, is_cut_short, judges_of, margin, status_of
from pytest_ragmetrics.stats.scores import score_set
from pytest_ragmetrics.text.unicode import printable, shortened

if TYPE_CHECKING:
    from pytest_ragmetrics.evaluation.mutation import MutationTable

Query = Mapping[str, str]

#: How many examples a cause has, and how long a question and a piece of an answer in it are.
_EXAMPLES, _QUESTION, _PIECE = 2, 90, 90
#: A group is named where it has this many times its share of the failing tests, and at least so many of them.
_LIFT, _FEWEST, _NAMED = 1.5, 3, 2
_OUTCOMES = ("failed", "inconclusive", "passed", "skipped", "")
_LAST_CAUSES: tuple[Cause, ...] = ("run", "error")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EXITS = ("all passed", "tests failed", "interrupted", "internal error", "usage error", "no tests")


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupShare:
    """A group with more than its share of tests: ``number`` of them, its row (if it has one), and the link to them."""

    number: int
    row: GroupRow | None
    query: Query


@dataclass(frozen=True, kw_only=True, slots=True)
class CauseView:
    """A cause with the number of its tests, and who owns it, "" where nobody is named.

    ``examples`` are the worst tests: deep link, what was asked, and the piece that shows the cause.
    """

    cause: Cause
    number: int
    owner: str
    examples: tuple[tuple[str, str, str], ...]
    group: GroupShare | None


@dataclass(frozen=True, kw_only=True, slots=True)
class OverviewView:
    """A run, compared with a baseline and as the last of a history if there are such; what is empty has no section.

    ``title`` is the news for the title of the page. ``carriers`` are the groups with most of the new failures, of which
    there are ``failing``; ``counts`` add up to all tests that are no gates. ``marks`` are flags that lead to their
    tests, ``lines`` those of the history, ``gone`` the tests that only the baseline has.
    """

    document: Document
    comparison: RunComparison | None
    trends: Trends | None
    news: str
    title: str
    failing: int
    carriers: tuple[GroupShare, ...]
    counts: tuple[tuple[TestKind, int], ...]
    marks: tuple[tuple[str, Query], ...]
    causes: tuple[CauseView, ...]
    gates: tuple[GateView, ...]
    lines: tuple[Trend, ...]
    groupings: tuple[Grouping, ...]
    metrics: tuple[MetricView, ...]
    gone: tuple[str, ...]
    mutants: MutationTable | None
    judges: tuple[str, ...]
    verdicts: str
    warnings: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def build_overview(
    document: Document,
    pairs: Sequence[PairedTest],
    anchors: Mapping[int, str],
    comparison: RunComparison | None,
    trends: Trends | None,
    *,
    marks: Sequence[tuple[str, Query]],
) -> OverviewView:
    """Return the overview of a document, compared with a baseline and as the last run of a history if there are such.

    ``pairs`` are its tests, ``anchors`` the deep links by the :func:`id` of their records, and ``marks`` labels of
    tests that are to be looked at, with the links to them.
    """
    run, records = document.run, [record for test in document.tests for record in test.records]
    counts = Counter(pair.kind for pair in pairs)
    gates = _gates(document, comparison, anchors)
    news, title = _news(counts, gates, pairs, compared=comparison is not None)
    groupings = build_groupings(pairs)
    failing = [pair for pair in pairs if is_failing(pair)]
    # The groups that carry most of the failures, of the key whose pass rates lie apart most.
    shares = (_share(grouping, name, failing) for grouping in groupings[:1] for name in grouping.groups)
    carriers = sorted(filter(None, shares), key=lambda share: -share.number)[:_NAMED] if comparison else ()
    judged = [record for record in records if record.judge]
    verdicts = sum(len(record.verdicts) for record in judged)
    # Of a history of one run there are no lines; those of gates that do not hold come first.
    several = trends.trends if trends and len(trends.history.runs) > 1 else ()
    lines = sorted(several, key=lambda it: (_OUTCOMES.index(it.last.outcome), it.last.bound is None))
    early = f"The run stopped early ({_exit_text(run.exit_status)}). Tests that had not run by then are missing here."
    owners: dict[Cause, str] = {}
    with suppress(ValueError):  # a file may say it in another way
        owners = owners_of(str(run.settings.get("owners") or ""))
    return OverviewView(
        document=document,
        comparison=comparison,
        trends=trends,
        news=f"{news[:1].upper()}{news[1:]}{', then the run stopped early' if is_cut_short(run) else ''}",
        title=title,
        failing=len(failing),
        carriers=tuple(carriers),
        counts=tuple((kind, counts[kind]) for kind in TEST_KINDS if counts[kind]),
        marks=tuple(marks),
        causes=tuple(_causes(pairs, groupings, anchors, owners)),
        gates=gates,
        lines=tuple(lines),
        groupings=groupings,
        metrics=build_metric_views(document, comparison),
        gone=tuple(printable(test.id) for test in gone_tests(comparison)) if comparison else (),
        mutants=_mutants(run.mutants),
        judges=tuple(judges_of(records)),
        verdicts=f"{counted(verdicts, 'verdict')} on {counted(len(judged), 'score')}" if verdicts else "",
        warnings=((early,) if is_cut_short(run) else ()) + run.warnings,
        facts=tuple(_facts(run, records, document.tests)),
    )


def _news(
    counts: Mapping[TestKind, int], gates: Sequence[GateView], pairs: Sequence[PairedTest], *, compared: bool
) -> tuple[str, str]:
    """Return the worst of the run in one sentence, and in a few words for one of ten tabs."""
    bad = [gate for gate in gates if gate.is_bad]
    if compared:
        worse = list(_worse(counts, gates))
        nothing = _nothing_worse(counts, bad), "\u2713 nothing got worse"
        return (", and ".join(worse), f"\u2717 {worse[0]}") if worse else nothing
    holds = f", and {_gate_names(bad)} {agreeing(len(bad), 'does')} not hold" if bad else ""
    news = headline(Counter(status_of(pair.test) for pair in pairs)) + holds
    failing = counts.get("fails", 0) + counts.get("no score", 0)
    if failing:
        return news, f"\u2717 {failing:,} of {counted(len(pairs), 'test')} {agreeing(failing, 'fails')}"
    passed = f"\u2713 {counted(counts.get('passes', 0), 'test')} passed"
    return news, f"\u2717 {_gate_names(bad)}" if bad else passed


def _worse(counts: Mapping[TestKind, int], gates: Sequence[GateView]) -> Iterator[str]:
    """Yield what got worse: tests, then gates."""
    newly, new, lost = (counts.get(kind, 0) for kind in ("newly fails", "fails, new", "no score"))
    if newly:
        yield f"{counted(newly, 'test')} newly {agreeing(newly, 'fails')}"
    if new:
        yield f"{counted(new, 'new test')} {agreeing(new, 'fails')}"
    fallen = [gate for gate in gates if gate.newly]
    first = [gate for gate in gates if gate.is_bad and gate.before is None]
    if lost and not newly and not new:
        yield f"{counted(lost, 'test')} {agreeing(lost, 'has')} no score"
    if fallen:
        yield f"{_gate_names(fallen)} no longer {agreeing(len(fallen), 'holds')}"
    if first:
        yield f"{_gate_names(first, new='new ')} {agreeing(len(first), 'does')} not hold"


def _gate_names(gates: Sequence[GateView], new: str = "") -> str:
    """Return the gates by name, of more than two their number."""
    names = [shortened(printable(gate_title(gate.gate)), _QUESTION) for gate in gates]
    if len(set(names)) < len(names) or len(names) > _NAMED:
        return counted(len(names), f"{new}gate")
    return f"the {new}gate{'s' if len(names) > 1 else ''} on {' and '.join(names)}"


def _nothing_worse(counts: Mapping[TestKind, int], still: Sequence[GateView]) -> str:
    passing, before, fixed = (counts.get(kind, 0) for kind in ("passes as before", "fails as before", "fixed"))
    sides = [f"all {passing:,} that passed before pass"] if passing > 1 else []
    sides += [f"{fixed:,} {agreeing(fixed, 'is')} fixed"] if fixed else []
    sides += [f"{before:,} {agreeing(before, 'fails')} as before"] if before else []
    if still and not sides:
        sides = [f"{_gate_names(still)} {agreeing(len(still), 'does')} not hold, as before"]
    return f"Nothing got worse{': ' if sides else ''}{', '.join(sides)}"


def _share(grouping: Grouping, name: str, chosen: Sequence[PairedTest], **query: str) -> GroupShare | None:
    """Return how many of the chosen tests are in a group, ``None`` where it has hardly more than its share of them."""
    pairs = grouping.groups[name]
    members = {id(pair) for pair in pairs}
    number = sum(id(pair) in members for pair in chosen)
    total = sum(map(len, grouping.groups.values()))
    if number < _FEWEST or number * total < _LIFT * len(chosen) * len(pairs):
        return None
    row = next((row for table in grouping.tables[:1] for row in table.rows if row.name == name), None)
    kinds = {} if query else {"kind": next(kind for kind in FAILING if any(pair.kind == kind for pair in chosen))}
    return GroupShare(number=number, row=row, query={**kinds, **query, "by": grouping.key, "in": name})


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
        # Who owns the rows, the owner of most first.
        names = Counter(name for pair in group if (name := metadata_of(pair.test).get(OWNER)))
        named = ", ".join(name for name, _ in names.most_common(_NAMED)) + (" \u2026" if len(names) > _NAMED else "")
        yield CauseView(
            cause=cause,
            number=len(group),
            owner=named or owners.get(cause, ""),
            examples=tuple(_examples(group, anchors)),
            group=most if most is not None and 2 * most.number >= len(group) else None,
        )


def _examples(pairs: Sequence[PairedTest], anchors: Mapping[int, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the worst tests, each with another question."""
    seen: set[str] = set()
    for pair in sorted(pairs, key=lambda pair: min(map(margin, pair.test.records), default=math.inf)):
        test = pair.test
        asked = (record.sample.user_input for record in test.records)
        texts = (printable(text) for text in asked if isinstance(text, str))
        # A test that asked nothing has its name.
        name = printable(test.id.removeprefix(f"{test.file}::"))
        question = shortened(next(filter(None, texts), name), _QUESTION)
        if question not in seen:
            seen.add(question)
            yield anchors[id(test)], question, shortened(printable(pair.detail), _PIECE)
        if len(seen) == _EXAMPLES:
            return


def _gates(document: Document, comparison: RunComparison | None, anchors: Mapping[int, str]) -> tuple[GateView, ...]:
    """Return the gates, those that do not hold first, each with its former value."""
    befores = paired_gates(document.tests, comparison.baseline.tests) if comparison else {}
    views = [
        GateView(
            gate=test.gate,
            before=befores.get(id(test.gate)),
            anchor=anchors[id(test)],
            where=printable(test.id.partition("::")[2].partition("[gate-")[0]),
        )
        for test in document.tests
        if test.gate is not None
    ]
    names = [(gate_title(view.gate), view.where) for view in views]
    several = Counter(title for title, _ in names)
    named = (
        view if several[name[0]] > 1 and names.count(name) == 1 else replace(view, where="")
        for view, name in zip(views, names, strict=True)
    )
    return tuple(sorted(named, key=lambda view: (not view.newly, not view.is_bad)))


def _mutants(found: Sequence[MutantRecord]) -> MutationTable | None:
    if not found:
        return None
    from pytest_ragmetrics.evaluation.mutation import NOTICED_BY, MutationTable

    made = dict.fromkeys(it.kind for it in found)
    kinds = [*(kind for kind in NOTICED_BY if kind in made), *(kind for kind in made if kind not in NOTICED_BY)]
    judges = sorted({name for it in found for name in it.verdicts})
    return MutationTable(found, judges=judges, kinds=kinds, rows=0, seed=0)


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


def setting_text(value: object) -> str:
    """Return the value of a setting."""
    if value is None:
        return "not set"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _exit_text(status: int) -> str:
    return _EXITS[status] if 0 <= status < len(_EXITS) else "unknown"
