"""The view model of the page: everything that the templates show.

:func:`build_report_view` makes it of a document and its comparison with a baseline,
:mod:`pytest_ragmetrics.report.page` renders it. What is inside of a test is in
:mod:`pytest_ragmetrics.report.sample_view`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from pytest_ragmetrics.core.sample import answer_of, read_turns, turn_of
from pytest_ragmetrics.report.compare_view import Chip, CompareView, build_compare_view, build_gone_view, count_chips
from pytest_ragmetrics.report.groups import grouping_keys, metadata_of
from pytest_ragmetrics.report.highlights import HighlightKind
from pytest_ragmetrics.report.history import History
from pytest_ragmetrics.report.outcomes import TEST_KINDS, PairedTest, gone_tests, paired_tests
from pytest_ragmetrics.report.overview import OverviewView, build_overview
from pytest_ragmetrics.report.sample_view import SampleView, build_sample_views, preview_of
from pytest_ragmetrics.report.trends import TestTrend, Trends, build_trends
from pytest_ragmetrics.runs.compare import KINDS, RunComparison, TestChange, row_of
from pytest_ragmetrics.runs.origin import place_link
from pytest_ragmetrics.runs.records import Document, Record, TestRecord, flips
from pytest_ragmetrics.runs.wording.runs import STATUSES, Status, badness, blamed, gate_line, gist, margin, status_of
from pytest_ragmetrics.text.unicode import shortened

#: What a reader may want to filter by, apart from the outcome.
Flag = Literal["flaky", "suspicious", "vacuous"]
_FLAGS: tuple[Flag, ...] = get_args(Flag)
_FLAG_NOTES: Mapping[Flag, str] = {
    "flaky": "votes on both sides of the threshold",
    "suspicious": "a verdict its evidence does not bear out",
}
#: How many characters of the reason and of the question the list shows; the test itself shows all of them.
_WHY_LENGTH, _TITLE_LENGTH = 300, 200
#: The same of a question in the strip of turns.
_QUESTION_LENGTH = 60
_LAYOUT = re.compile(r"(?:\r\n|[ \t\n])+")


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnView:
    """A turn of a conversation, or an answer to a row, in the strip of them, and its worst score where it has one.

    ``anchor`` is the test that it has, where that is another one, ``sample`` the place of its sample in the same test.
    The turn without a number is the whole conversation; an answer has no ``question``.
    """

    number: int | None
    question: str
    record: Record | None
    anchor: str | None
    sample: int | None
    current: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TestView:
    """One test; ``anchor`` is its id and its deep link, ``key`` starts the anchors inside it.

    ``records`` come the worst first; ``explained`` when pytest's message is the explanation, because no score is.
    ``changes`` are those against the baseline, ``change`` the worst of them. ``source`` is the address of its line in
    the repository, ``trend`` the test over the runs of a history. ``title`` is the question, else the name; ``outcome``
    what became of it (``None`` of a gate), ``metadata`` what it can be grouped by. ``turns`` are those of
    the conversation that it is of, ``answers`` those to its row where there are several, and ``spread`` says how many
    of them passed.
    """

    record: TestRecord
    anchor: str
    key: str
    title: str
    name: str
    status: Status
    flags: tuple[Flag, ...]
    why: str
    records: tuple[Record, ...]
    changes: tuple[TestChange, ...]
    change: TestChange | None
    explained: bool
    samples: tuple[SampleView, ...]
    source: str = ""
    trend: TestTrend | None = None
    outcome: PairedTest | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    compared: CompareView | None = None
    turns: tuple[TurnView, ...] = ()
    answers: tuple[TurnView, ...] = ()
    spread: str = ""

    @property
    def preview(self) -> tuple[tuple[str, HighlightKind | None], ...]:
        """The beginning of the response, or what is around its first fault, in pieces."""
        worst = min(self.samples, key=lambda sample: badness(sample.scores[0].record), default=None)
        return preview_of(worst) if worst else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportView:
    """Everything on the page: the first screen, and the tests, the worst first.

    ``groups`` is what tests can be grouped by, ``gone`` are those of the baseline only, ``compare_chips`` what became
    of tests since then.
    """

    overview: OverviewView
    tests: tuple[TestView, ...]
    flags: tuple[Flag, ...]
    groups: tuple[str, ...]
    gone: tuple[TestView, ...]
    compare_chips: tuple[tuple[Chip, str, int], ...]


def build_report_view(
    document: Document, comparison: RunComparison | None = None, history: History | None = None
) -> ReportView:
    """Return the view of a document, with what changed since a baseline and the history up to it if they are known."""
    trends = build_trends(history) if history else None
    pairs = paired_tests(document, comparison)
    tests = _test_views(document, pairs, comparison, trends)
    anchors = {id(test.record): test.anchor for test in tests}
    gone = _gone_views(comparison) if comparison else ()
    # What is to be looked at besides failures, with how many tests, and the link to them.
    marks = [
        (f"{number:,} with {note}", {"mark": flag})
        for flag, note in _FLAG_NOTES.items()
        if (number := sum(flag in test.flags for test in tests))
    ]
    return ReportView(
        overview=build_overview(document, pairs, anchors, comparison, trends, marks=marks),
        tests=tests,
        flags=tuple(flag for flag in _FLAGS if any(flag in test.flags for test in tests)),
        groups=grouping_keys(document.tests),
        gone=gone,
        compare_chips=count_chips(test.compared for test in (*tests, *gone)),
    )


def _test_views(
    document: Document, paired: Sequence[PairedTest], comparison: RunComparison | None, trends: Trends | None
) -> tuple[TestView, ...]:
    """Return the tests, the worst first: by what became of them since the baseline, by status, then by margin."""
    pairs = comparison.pairs if comparison else {}
    outcomes = {id(pair.test): pair for pair in paired}
    keys = grouping_keys(document.tests)
    seen: Counter[str] = Counter()
    views = []
    for test in document.tests:
        seen[test.id] += 1
        view = _test_view(test, seen[test.id], pairs)
        metadata = {name: text for name, text in metadata_of(test).items() if name in keys}
        outcome, trend = outcomes.get(id(test)), trends.tests.get(test.id) if trends else None
        source = place_link(document.run, test)
        compared = build_compare_view(outcome, comparison) if outcome and comparison else None
        views.append(replace(view, source=source, trend=trend, outcome=outcome, compared=compared, metadata=metadata))
    views = _with_answers(_with_turns(views))
    views.sort(key=lambda view: min(map(margin, view.records), default=math.inf))
    views.sort(key=lambda view: STATUSES.index(view.status))
    views.sort(key=lambda view: TEST_KINDS.index(view.outcome.kind) if view.outcome else len(TEST_KINDS))
    return tuple(views)


#: A sample of a conversation: the view of its test, its place in that, its worst record.
_Part = tuple[TestView, int, Record]


def _with_turns(views: Sequence[TestView]) -> list[TestView]:
    """Return the tests, those of conversations with all turns of theirs.

    The turns of a conversation are tests of one function, or samples of one test.
    """
    found: dict[tuple[str, str], dict[int | str, list[_Part]]] = {}
    of_views: dict[int, tuple[str, str]] = {}
    for view in views:
        for place, sample in enumerate(view.samples):
            record = sample.scores[0].record
            metadata, turn = record.sample.metadata, turn_of(record.sample)
            if not (isinstance(turn, int) or turn == "all"):
                continue
            # Other parameters of the function may have the same conversation.
            head, _, tail = view.record.id.rpartition(f"-t{turn}")
            of_all = head + tail if head and turn != "all" else view.record.id
            key = of_views.setdefault(id(view), (of_all, str(metadata["conversation"])))
            found.setdefault(key, {}).setdefault(turn, []).append((view, place, record))
    strips = {key: _strip(parts) for key, parts in found.items()}
    return [
        replace(view, turns=_turns_for(view, *strips[of_views[id(view)]])) if id(view) in of_views else view
        for view in views
    ]


def _with_answers(views: Sequence[TestView]) -> list[TestView]:
    """Return the tests, those of one of several answers with all answers to their row."""
    found: dict[str, dict[int, TestView]] = {}
    of_views: dict[int, str] = {}
    for view in views:
        samples = {it.sample.id: it.sample for it in view.records}
        sample = next(iter(samples.values()), None)
        row = row_of(sample, view.record.id) if sample is not None and len(samples) == 1 else None
        if sample is not None and row is not None:
            of_views[id(view)] = row
            found.setdefault(row, {})[answer_of(sample) or 1] = view
    return [_with_answers_of(view, found[of_views[id(view)]]) if id(view) in of_views else view for view in views]


def _with_answers_of(view: TestView, answers: Mapping[int, TestView]) -> TestView:
    passed = sum(each.status == "passed" for each in answers.values())
    strip = (
        TurnView(
            number=number,
            question="",
            record=each.records[0],
            anchor=None if each is view else each.anchor,
            sample=None,
            current=each is view,
        )
        for number, each in sorted(answers.items())
    )
    return replace(view, answers=tuple(strip), spread=f"{passed} of {len(answers)}") if len(answers) > 1 else view


def _strip(parts: Mapping[int | str, list[_Part]]) -> tuple[Mapping[int | str, _Part | None], Mapping[int, str]]:
    """Return the turns of a conversation in order with their worst sample, and what was asked in them."""
    worst: dict[int | str, _Part | None] = {n: min(of, key=lambda part: badness(part[2])) for n, of in parts.items()}
    longest = max(
        (it[2].sample for of in parts.values() for it in of), key=lambda it: len(it.metadata.get("messages") or ())
    )
    questions: dict[int, str] = {}
    with suppress(TypeError, ValueError):
        questions = {turn.number: turn.question or "" for turn in read_turns(longest)}
    last = max((*questions, *(turn for turn in worst if isinstance(turn, int))), default=0)
    ordered: dict[int | str, _Part | None] = {number: worst.get(number) for number in range(1, last + 1)}
    return ordered | ({"all": worst["all"]} if "all" in worst else {}), questions


def _turns_for(
    view: TestView, strip: Mapping[int | str, _Part | None], questions: Mapping[int, str]
) -> tuple[TurnView, ...]:
    """Return the strip as one of its tests shows it."""
    made = []
    for turn, part in strip.items():
        test, place, record = part or (None, None, None)
        is_here = test is view
        question = questions.get(turn, "") if isinstance(turn, int) else ""
        made.append(
            TurnView(
                number=turn if isinstance(turn, int) else None,
                question=shortened(_LAYOUT.sub(" ", question).strip(), _QUESTION_LENGTH),
                record=record,
                anchor=None if test is None or is_here else test.anchor,
                sample=place if is_here and len(view.samples) > 1 else None,
                current=is_here and len(view.samples) == 1,
            )
        )
    return tuple(made)


def _gone_views(comparison: RunComparison) -> tuple[TestView, ...]:
    seen = Counter(test.id for test in comparison.document.tests)
    views = []
    for test in gone_tests(comparison):
        seen[test.id] += 1
        views.append(replace(_test_view(test, seen[test.id], {}), compared=build_gone_view(test, comparison)))
    return tuple(views)


def _test_view(test: TestRecord, occurrence: int, pairs: Mapping[int, TestChange]) -> TestView:
    status = status_of(test)
    records = sorted(test.records, key=badness)
    is_explained = status in ("failed", "unscored") and bool(blamed(test))
    changes = {id(it): pair for it in test.records if (pair := pairs.get(id(it))) and not pair.obstacles}
    shown = [change for change in changes.values() if change.kind not in ("same", "new")]
    key = test.id if occurrence == 1 else f"{test.id}\0{occurrence}"
    name, samples = test.id.removeprefix(f"{test.file}::"), build_sample_views(test.records, changes)
    question = samples[0].question if len(samples) == 1 else None
    return TestView(
        record=test,
        anchor=test.id + (f" ({occurrence})" if occurrence > 1 else ""),
        key="t" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:10],
        title=shortened(_LAYOUT.sub(" ", question or "").strip(), _TITLE_LENGTH) or name,
        name=name,
        status=status,
        flags=_flags(records),
        why=shortened(_why(test, status, records[0] if is_explained else None), _WHY_LENGTH),
        records=tuple(records),
        changes=tuple(changes.values()),
        change=min(shown, key=lambda change: (KINDS.index(change.kind), change.change or 0.0), default=None),
        explained=not is_explained,
        samples=samples,
    )


def _flags(records: Sequence[Record]) -> tuple[Flag, ...]:
    found: Mapping[Flag, bool] = {
        "flaky": any(flips(record.samples, record.threshold) for record in records),
        "suspicious": any(verdict.suspicious for record in records for verdict in record.verdicts),
        "vacuous": any(record.vacuous for record in records),
    }
    return tuple(flag for flag in _FLAGS if found[flag])


def _why(test: TestRecord, status: Status, blamed: Record | None) -> str:
    """Return why a test came out as it did: the numbers of a gate, the reason of the blamed record, pytest's words."""
    if test.gate is not None:
        return gate_line(test.gate)
    if blamed is None:
        return gist(test.message) if status != "passed" else ""
    if blamed.reason:
        return blamed.reason
    wrong = sum(not verdict.ok for verdict in blamed.verdicts)
    return f"{wrong} of {sum(verdict.counts for verdict in blamed.verdicts)} not ok" if wrong else ""
