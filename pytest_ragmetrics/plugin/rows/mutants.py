"""Tests of rows that run again on mutants of their answers, once all tests of a process have run.

pytest gets no report of them, so that they count in no gate, file, history, ``--lf``, ``-x`` or rerun. They run before
the last test is torn down, while the fixtures of the session are there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import pytest

from pytest_ragmetrics.core.codec import dump, load
from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.core.sample import Sample, answer_of
from pytest_ragmetrics.datasets.rows import DatasetRow
from pytest_ragmetrics.evaluation.mutants import Mutant, mutants_of
from pytest_ragmetrics.evaluation.mutation import MutationTable, describe, drawn
from pytest_ragmetrics.plugin.gates.plugin import GatePlugin
from pytest_ragmetrics.plugin.markers import function_of
from pytest_ragmetrics.plugin.recorder import ATTRIBUTE, carried
from pytest_ragmetrics.plugin.rows.dataset_tests import FIXTURE, DatasetCase, DatasetTests, case_of
from pytest_ragmetrics.plugin.session import PytestSession
from pytest_ragmetrics.plugin.terminal import cost_lines
from pytest_ragmetrics.runs.records import MutantRecord
from pytest_ragmetrics.runs.wording.figures import counted, readable
from pytest_ragmetrics.text.unicode import printable_lines

# Why tests are not run again.
_TALK = "of conversations"
_FAILED = "failed or skipped with the answer as it is"
_CLAIMLESS = "no such fault can be planted"
_LATE = "the run ended before"
# Characters of a reason and of a function, and how many reasons are shown.
_WIDEST, _SHOWN = 160, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """What became of a mutant in the ``test`` of a row: whether it was killed, ``None`` for the ``reason``.

    ``text`` says what was changed; ``scores`` are those of the mutant by metric, each with whether it is vacuous;
    ``held`` are the metrics that were compared with a bound.
    """

    function: str
    test: str
    row: str
    kind: str
    text: str
    killed: bool | None
    reason: str = ""
    scores: Mapping[str, tuple[float | None, bool]] = field(default_factory=dict)
    held: Sequence[str] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trials:
    """The mutants of a process, and why others were not tried, by the tests of their rows."""

    tried: Sequence[Tried] = ()
    left: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A test of a mutant, and the test that it is a copy of."""

    item: pytest.Function
    of: pytest.Function
    mutant: Mutant
    row: DatasetRow


def _copied(item: pytest.Function, case: DatasetCase, name: str) -> pytest.Function:
    """Return a copy of a test for another row, as plugins make them that replace functions."""
    call = item.callspec
    # pytest 8 makes the id of a test of its name, pytest 9 of these parts.
    call = replace(call, params={**call.params, FIXTURE: case}, _idlist=[*call._idlist, name])  # noqa: SLF001
    copy = type(item).from_parent(
        item.parent,
        name=f"{item.originalname}[{call.id}]",
        callspec=call,
        fixtureinfo=item._fixtureinfo,  # noqa: SLF001
        keywords=dict(item.keywords),
        originalname=item.originalname,
    )
    copy.own_markers[:] = item.own_markers
    return copy


def _reason(error: BaseException) -> str:
    """Return why a test says nothing; the first line of several says how many metrics have no score."""
    said = "".join(str(error).splitlines()[:2][-1:]).strip()
    return said if said and isinstance(error, RagMetricsError) else f"{type(error).__name__}: {said}"


class MutantTests:
    """The hooks that draw rows and run their tests on mutants; ``items`` are all tests, the same in each process."""

    def __init__(self, session: PytestSession, tests: DatasetTests, items: Sequence[pytest.Item]) -> None:
        self._session = session
        self._tests = tests
        self._kinds = session.settings.mutate or ()
        self._seed = session.settings.seed or 0
        #: The rows of each data set that have passages, and the tests of drawn rows, and of conversations.
        self._lenders: defaultdict[str | None, dict[str, Sample]] = defaultdict(dict)
        self._drawn: dict[str, int] = {}
        self._talks: set[str] = set()
        self._draw(items)
        #: The tests that passed, with the rows as they were answered.
        self._right: dict[str, tuple[pytest.Function, DatasetCase, Sample]] = {}
        self._left: dict[str, str] = {}
        self._tried: list[Tried] = []
        self._copies: list[_Copy] = []
        self._raised: BaseException | None = None

    def _draw(self, items: Sequence[pytest.Item]) -> None:
        """Draw rows of each data set: several tests may have to notice the fault of one."""
        rows: defaultdict[str | None, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for item in items:
            case = case_of(item)
            if case is None or case.row.sample is None:
                continue
            if case.script or "messages" in case.row.sample.metadata:
                self._talks.add(item.nodeid)
            elif (answer_of(case.row.sample) or 1) == 1:
                rows[case.row.file][case.row.id].append(item.nodeid)
                if case.row.sample.retrieved_contexts:
                    self._lenders[case.row.file][case.row.id] = case.row.sample
        most = self._session.settings.mutate_rows
        names = [(tests, name) for tests in rows.values() for name in drawn(sorted(tests), most, self._seed)]
        chosen = {test for tests, name in names for test in tests[name]}
        self._drawn = {item.nodeid: place for place, item in enumerate(items) if item.nodeid in chosen}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note which tests pass; what a mutant raises is expected, so that no debugger opens."""
        report = yield
        if self._copies and item is self._copies[0].item:
            if call.excinfo is not None and report.when != "teardown":
                self._raised = call.excinfo.value
            if report.failed:
                report.outcome, report.wasxfail = "skipped", "a mutant"
        elif report.when == "call" or not report.passed:
            self._note(item, report)
        return report

    def _note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        test, case = item.nodeid, case_of(item)
        if test in self._talks:
            self._left[test] = _TALK
        elif test in self._drawn and isinstance(item, pytest.Function) and case is not None:
            sample = self._tests.answered(test)
            passed = report.passed and not hasattr(report, "wasxfail")
            # What decides nothing fails nothing, and is skipped.
            if sample is not None and (passed or (self._session.dry_run and report.skipped)):
                self._right[test] = item, case, replace(sample, id=case.row.id)
                self._left.pop(test, None)
            else:
                self._right.pop(test, None)
                self._left[test] = _FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
        """Run the mutants before the last test of this process is torn down."""
        stops = item.session.shouldfail or item.session.shouldstop
        try:
            if nextitem is None and not stops and not self._copies:
                self._run(item)
        finally:
            yield

    def _run(self, last: pytest.Item) -> None:
        self._copies, self._right = [*self._made()], {}
        if not self._copies:
            return
        runner: Any = last.config.pluginmanager.get_plugin("runner")
        if (cancel := getattr(last.ihook, "pytest_timeout_cancel_timer", None)) is not None:
            cancel(item=last)  # its time is not for all mutants
        self._session.mutates = True
        self._tests.begin_copies((it.of.nodeid, it.item.nodeid, it.row) for it in self._copies)
        # The fixtures of the last test end here, those of its module when another module's mutants are run.
        last.session._setupstate.teardown_exact(self._copies[0].item)  # noqa: SLF001 - there is no public way
        try:
            with self._session.recorder.aside():
                for _, following in pairwise([*(it.item for it in self._copies), last]):
                    self._raised = None
                    reports = runner.runtestprotocol(self._copies[0].item, log=False, nextitem=following)
                    self._tried.append(self._outcome(self._copies.pop(0), reports))
        finally:
            self._session.mutates = False

    def _made(self) -> Iterator[_Copy]:
        """Yield the mutants of the rows whose tests passed, in the order of the tests."""
        right = {test: self._right[test] for test in sorted(self._right, key=self._drawn.__getitem__)}
        answered: defaultdict[str | None, dict[str, Sample]] = defaultdict(dict)
        for _, case, sample in right.values():
            answered[case.row.file][case.row.id] = sample
        for test, (item, case, sample) in right.items():
            lenders = self._lenders[case.row.file] or answered[case.row.file]
            others = [lenders[name] for name in sorted(lenders)]
            found = [*mutants_of(sample, self._kinds, others=others, seed=self._seed)]
            if not found:
                self._left[test] = _CLAIMLESS
            for mutant in found:
                row = replace(case.row, id=f"{case.row.id}-{mutant.kind}", sample=mutant.sample)
                changed = replace(case, row=row, script=(), once=False)
                yield _Copy(_copied(item, changed, f"mutant-{mutant.kind}"), item, mutant, row)

    def _outcome(self, copy: _Copy, reports: Iterable[pytest.TestReport]) -> Tried:
        found = [carried(it).records for it in reports if hasattr(it, ATTRIBUTE)]
        records = next((it for it in reversed(found) if it is not None), ())
        error, recorder = self._raised, self._session.recorder
        is_killed = isinstance(error, (AssertionError, pytest.fail.Exception))
        reason = "" if error is None or is_killed else _reason(error)
        return Tried(
            function=function_of(copy.of),
            test=copy.of.nodeid,
            row=copy.mutant.original.id or "",
            kind=copy.mutant.kind,
            text=recorder.redacted(describe(copy.mutant)),
            killed=None if reason or self._session.dry_run else is_killed,
            reason=readable(recorder.redacted(reason), _WIDEST),
            scores={it.metric: (it.score, it.vacuous) for it in records},
            held=[it.metric for it in records if it.threshold is not None],
            usage=sum((it.usage for it in records), Usage()),
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Leave what became of the mutants to the process that reports."""
        late = [*self._right, *(it.of.nodeid for it in self._copies)]
        left = {**self._left, **dict.fromkeys(late, _LATE)}
        self._session.mutants = dump(Trials(tried=self._tried, left=left))


class MutationReport:
    """The hooks of the process that reports: the table of mutants, and the exit status if too few were noticed."""

    def __init__(self, session: PytestSession, gates: GatePlugin) -> None:
        self._session = session
        self._gates = gates

    @property
    def mutants(self) -> tuple[MutantRecord, ...]:
        """The mutants, once the workers have ended."""
        return tuple(self._table.judged)

    @cached_property
    def _trials(self) -> Trials:
        sent = [self._session.mutants, *(row.mutants for row in self._session.workers.ended() if row is not None)]
        found = [load(Trials, each) for each in sent if each is not None]
        left = {test: reason for each in found for test, reason in each.left.items()}
        # Workers end in any order.
        return Trials(tried=sorted((it for each in found for it in each.tried), key=lambda it: it.test), left=left)

    @cached_property
    def _table(self) -> MutationTable:
        """The table; a mutant of a row in the tests of several functions is one, which any of them may kill."""
        tried, settings = self._trials.tried, self._session.settings
        found: defaultdict[tuple[str, str], list[Tried]] = defaultdict(list)
        for it in tried:
            found[it.kind, it.text].append(it)
        return MutationTable(
            [self._judged(each) for each in found.values()],
            judges=sorted({it.function for it in tried}),
            kinds=settings.mutate or (),
            rows=len({it.row for it in tried}),
            seed=settings.seed or 0,
        )

    def _judged(self, tried: Sequence[Tried]) -> MutantRecord:
        """Return what became of one mutant; a function with other parameters has several tests of it."""
        known: defaultdict[str, list[bool]] = defaultdict(list)
        for it in tried:
            scores = {name: (score, vacuous) for name, (score, vacuous) in it.scores.items() if score is not None}
            if it.killed is not None:
                known[it.function].append(it.killed or self._gates.moves(it.function, it.test, scores))
        return MutantRecord(
            kind=tried[0].kind,
            text=tried[0].text,
            verdicts={it.function: any(known[it.function]) if known[it.function] else None for it in tried},
            fails=any(it.reason for it in tried),
            measured={name: any(name in it.held for it in tried) for each in tried for name in each.scores},
        )

    @property
    def _shortfall(self) -> str:
        least, share = self._session.settings.mutate_min, self._table.share
        if least is None or self._session.dry_run or (share is not None and share >= least):
            return ""
        if share is None:
            return f"--rag-mutate-min={least:g}: no mutant has a verdict"
        return f"{share:.3f} of the mutants were noticed, below --rag-mutate-min={least:g}"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a run that passed if its tests noticed too few mutants."""
        if exitstatus == pytest.ExitCode.OK and self._shortfall:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Show the table, the survivors, and what was not tried."""
        terminalreporter.write_sep("=", "RAG mutants")
        for line in (*self._lines(exitstatus), *filter(None, [self._shortfall])):
            terminalreporter.write_line(printable_lines(line))

    def _lines(self, exitstatus: int) -> Iterator[str]:
        tried, left = self._trials.tried, Counter(self._trials.left.values())
        if not tried and not left and exitstatus == pytest.ExitCode.INTERRUPTED:
            yield f"none, {_LATE}"
        elif not tried and not left:
            yield "no test with the marker rag_dataset has run: --rag-mutate changes the answers of its rows, no others"
        elif tried and self._session.dry_run:
            made, rows = counted(len(tried), "mutant"), counted(self._table.rows, "row")
            yield f"{made} of {rows}: their requests are in the forecast"
        elif tried:
            yield from self._table.lines()
        unknown = Counter(it.reason for it in tried if it.reason)
        for reason, number in unknown.most_common(_SHOWN):
            yield f"no verdict: {counted(number, 'mutant')}, {reason}"
        for reason, number in sorted(left.items()):
            yield f"not mutated: {counted(number, 'test')}, {reason}"
        yield from (f"mutants: {line}" for line in cost_lines([it.usage for it in tried]))
