"""The report of a run: its document, made of the reports of tests, the files of it and the summary."""

from __future__ import annotations

import platform
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_ragmetrics.core.files import portable
from pytest_ragmetrics.plugin.recorder import ATTRIBUTE, carried, property_name
from pytest_ragmetrics.plugin.settings import unread_options

if TYPE_CHECKING:
    from pytest_ragmetrics.plugin.carried import Carried
    from pytest_ragmetrics.plugin.session import PytestSession
    from pytest_ragmetrics.runs.blame import Blame
    from pytest_ragmetrics.runs.compare import RunComparison
    from pytest_ragmetrics.runs.records import Document, GateRecord, Judging, Record, Setting, TestOutcome, TestRecord
    from pytest_ragmetrics.runs.tables import Baseline
    from pytest_ragmetrics.runs.wording.repeats import RepeatedReplies


class Collector:
    """Builds the document of the run from the reports of tests, which may come in any order."""

    def __init__(self) -> None:
        self._tests: dict[str, _Test] = {}
        self._unfinished: set[str] = set()
        #: The tests without a record that were skipped or failed as expected, and all tests that were torn down.
        self.skipped: set[str] = set()
        self.ran: set[str] = set()
        #: The tests that were not needed, because the gates of their set were decided.
        self.spared: set[str] = set()
        self._replies: RepeatedReplies | None = None
        #: How many answers conversations have of which only the last was scored, by the id of the sample.
        self.answers: dict[str, int] = {}
        #: The tests of rows with a response, which was scored once where others got several answers.
        self.responses: set[str] = set()
        self._started = time.time()

    def add(self, report: pytest.TestReport) -> None:
        """Add one report; tests that scored nothing are kept only if they failed."""
        test = self._tests.get(report.nodeid)
        if test is None:
            file, line, _ = report.location
            test = _Test(report.nodeid, file=file.replace("\\", "/"), line=None if line is None else line + 1)
            self._tests[report.nodeid] = test
        if report.when == "setup":
            test.outcome, test.message, test.duration = "passed", None, 0.0
            test.attempts += 1
            self._unfinished.add(report.nodeid)
        test.duration = round(test.duration + report.duration, 6)
        if hasattr(report, ATTRIBUTE):
            self._take(test, carried(report))
        outcome = _outcome(report)
        if outcome != "passed" and test.outcome not in ("failed", "error"):
            test.outcome, test.message = outcome, _message(report)
        if report.when == "teardown":
            self._unfinished.discard(report.nodeid)
            self.ran.add(report.nodeid)
            if not test.is_kept:
                # Another attempt may have had another outcome.
                left_out = test.outcome in ("skipped", "xfailed") and test.id not in self.spared
                change = self.skipped.add if left_out else self.skipped.discard
                change(test.id)
                del self._tests[report.nodeid]

    def _take(self, test: _Test, found: Carried) -> None:
        test.records = test.records if found.records is None else found.records
        test.calibration = found.calibration or test.calibration
        test.gate = found.gate or test.gate
        self.answers.update(found.answers)
        self.responses.update([test.id] if found.has_response else [])
        if found.spared:
            self.spared.add(test.id)
        if found.replies:
            from pytest_ragmetrics.runs.wording.repeats import RepeatedReplies

            self._replies = self._replies or RepeatedReplies()
            self._replies.add(found.replies)

    @property
    def has_scores(self) -> bool:
        """Whether a test has a record or is a gate."""
        return any(test.records or test.gate or test.calibration for test in self._tests.values())

    @property
    def rejudged(self) -> list[str]:
        """What gates judged anew, in words."""
        gates = [test.record() for test in self._tests.values() if test.gate]
        if not gates:
            return []
        from pytest_ragmetrics.runs.wording.runs import rejudged_lines

        return rejudged_lines(gates)

    def blame(self, document: Document, found: Mapping[int, Blame]) -> None:
        """Keep which parts made scores worse, by the :func:`id` of the records in a document of all tests so far."""
        for test in document.tests:
            kept = self._tests[test.id]
            pairs = zip(kept.records, test.records, strict=True)
            kept.records = tuple(replace(ours, blame=found.get(id(theirs))) for ours, theirs in pairs)

    def test(self, nodeid: str) -> TestRecord | None:
        """Return the record of a test, if it scored or failed."""
        test = self._tests.get(nodeid)
        return None if test is None else test.record()

    def document(self, exit_status: int, settings: Mapping[str, Setting], notes: Sequence[str]) -> Document:
        """Return the document of all tests so far, in the order of the files.

        A test that was interrupted is left out unless it had scored or failed: its outcome is unknown.
        """
        from pytest_ragmetrics.runs.records import Document, RunRecord, held_to_bounds, position

        run = RunRecord(
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started)),
            duration=round(time.time() - self._started, 3),
            exit_status=int(exit_status),
            python=platform.python_version(),
            pytest=version("pytest"),
            ragmetrics=version("pytest-ragmetrics"),
            settings=dict(settings),
            notes=tuple(notes),
            warnings=() if self._replies is None else self._replies.warnings(),
            skipped=self._by_function(self.skipped),
            not_needed=self._by_function(self.spared),
        )
        tests = [test for name, test in self._tests.items() if name not in self._unfinished or test.is_kept]
        return Document(run=run, tests=tuple(sorted(held_to_bounds(test.record() for test in tests), key=position)))

    def _by_function(self, tests: Iterable[str]) -> dict[str, int]:
        """Return how many tests there are of each function that has scores."""
        from pytest_ragmetrics.runs.records import function_name

        scored = {function_name(test.id) for test in self._tests.values() if test.records}
        found = Counter(map(function_name, tests))
        return {function: found[function] for function in sorted(scored & found.keys())}


class _Test:
    """A :class:`~pytest_ragmetrics.runs.records.TestRecord` that is not complete until the test is torn down."""

    def __init__(self, nodeid: str, *, file: str, line: int | None) -> None:
        self.id = nodeid
        self.file = file
        self.line = line
        self.outcome: TestOutcome = "passed"
        self.duration = 0.0
        self.attempts = 0
        self.message: str | None = None
        self.records: tuple[Record, ...] = ()
        self.gate: GateRecord | None = None
        self.calibration: tuple[Record, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether there is anything to report: a score, a gate or a failure."""
        return bool(self.records or self.gate or self.calibration) or self.outcome in ("failed", "error")

    def record(self) -> TestRecord:
        """Return it as it is now."""
        from pytest_ragmetrics.runs.records import TestRecord

        return TestRecord(**vars(self))


def _outcome(report: pytest.TestReport) -> TestOutcome:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    if report.failed:
        return "failed" if report.when not in ("setup", "teardown") else "error"
    # Other plugins have outcomes of their own ("rerun"): another attempt follows.
    return cast("TestOutcome", report.outcome) if report.outcome in ("passed", "skipped") else "passed"


def _message(report: pytest.TestReport) -> str | None:
    reason = getattr(report, "wasxfail", "")
    if isinstance(report.longrepr, tuple):
        reason = reason or report.longrepr[2]
    return "\n\n".join(part for part in (reason, failure_text(report)) if part) or None


def failure_text(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return what a report says of a failure, the same in any worker."""
    if not report.failed:
        return ""
    from pytest_ragmetrics.core.credentials import masked

    # xdist puts the name of the worker, which is chance, and the path of its Python before the text.
    return masked(re.sub(r"\A\[\w+\] \S+ -- Python .*\n+", "", report.longreprtext).strip())


#: Paths of this machine and what may be secret; none of it changes a score.
_PRIVATE = {"cache_dir", "cache_salt", "cache_url", "cache_url_mode", "cache_secret", "cassette_keep"}
_PRIVATE |= {"batch", "batch_fallback", "digest", "report", "report_title", "json", "markdown", "history"}
_PRIVATE |= {"mutate", "mutate_rows", "mutate_min"}

_NO_TEXTS = "blame: no texts to compare with: give --rag-baseline=FILE, which --rag-json wrote"
_STOPPED = "blame: nothing was asked, as the run ended early (-x, --maxfail or an interrupt)"
_REDACTED = "what pytest_ragmetrics_redact takes out may be what changed: the judge alone cannot be blamed"


class RunReport:
    """The hooks that gather the reports of tests and make the summary and the files of them.

    Raises ``pytest.UsageError`` for a baseline that cannot be read.
    """

    def __init__(self, session: PytestSession, root: Path) -> None:
        self.collector = Collector()
        self._session = session
        self._settings = session.settings
        self._root = root
        given = session.settings.baseline
        self.baseline = session.past_runs.baseline if isinstance(given, str) else read_baseline(given)
        self._comparison: RunComparison | None = None
        #: Why no part is blamed for scores that became worse.
        self._unblamed = _STOPPED
        #: Lines of the summary on the session, and on the files.
        self._notes: list[str] = []
        self._warnings: list[str] = []
        self._lines: tuple[str, ...] = ()
        #: Lines for standard error in a run without a summary.
        self._unshown: tuple[str, ...] = ()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a report, made here or by a worker."""
        self.collector.add(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Put the figures of the run into the file of --junitxml, which pytest writes when the session ends."""
        is_whole = False
        try:
            ran = yield
            if self._settings.blame:
                self._blame()
            is_whole = True
            return ran
        finally:
            junit: Any = session.config.pluginmanager.get_plugin("junitxml")
            xml = None if junit is None else session.config.stash.get(junit.xml_key, None)
            if xml is not None and self.collector.has_scores and not self._settings.dry_run:
                # After an interrupt workers may still run.
                document = self._document(0) if is_whole else self.collector.document(0, {}, ())
                for name, value in run_properties(document):
                    xml.add_global_property(name, value)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the cassette and the files, once xdist has shut down its workers.

        A run whose files could not be written has not passed: their readers would read old ones.
        """
        found = [*self._session.finish(session, exitstatus), *self._session.drift.notes]
        self._notes = [*self.collector.rejudged, *found]
        if self._unblamed and self._settings.blame and self.collector.has_scores and not self._settings.dry_run:
            self._notes.append(self._unblamed)
        if self.collector.answers and not self._settings.dry_run:
            from pytest_ragmetrics.runs.wording.runs import last_answers_text

            self._notes = [last_answers_text([*self.collector.answers.values()]), *self._notes]
        if self.collector.responses:
            from pytest_ragmetrics.runs.wording.runs import scored_once_text

            self._notes = [scored_once_text(len(self.collector.responses)), *self._notes]
        if isinstance(self._settings.baseline, str):
            self._notes += self._session.past_runs.lines
        self._name_models()
        files, folder = self._settings.files(), self._settings.history
        if not (files or folder) or self._settings.dry_run:
            return
        from pytest_ragmetrics.report.files import write_files

        document = self._with_origin(self._document(exitstatus), session, int(exitstatus))
        history, others = None, {}
        if folder is not None:
            from pytest_ragmetrics.report.history import history_of, history_run, write_history

            def add() -> None:
                write_history(folder, history_run(document))

            others[folder] = add
            # The file of this run is not written yet.
            history = history_of(document, folder) if "report" in files else None
        written = write_files(document, files, comparison=self._compare(document), history=history, others=others)
        self._lines = written.lines
        if written.failed:
            self._unshown = written.lines
            if exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Show the table of metrics, what changed since the baseline, and where the files are."""
        self._unshown = ()
        lines = [*self._notes, *self._lines, *unread_options(terminalreporter.config, self.collector.ran)]
        if not lines and not self.collector.has_scores:
            return
        from pytest_ragmetrics.plugin.terminal import write_summary

        document = self._document(exitstatus)
        write_summary(terminalreporter, document, lines, comparison=self._compare(document))

    def pytest_unconfigure(self) -> None:
        """Say on standard error which files could not be written, where pytest showed no summary that does."""
        if self._unshown:
            sys.stderr.write("".join(f"ragmetrics: {line}\n" for line in self._unshown))

    def _with_origin(self, document: Document, session: pytest.Session, exitstatus: int) -> Document:
        """Return the document with what only files say: where the run comes from, its judges and its mutants."""
        from pytest_ragmetrics.report.judging import judging_of
        from pytest_ragmetrics.runs.origin import origin_of

        origin: dict[str, Any] = {
            **origin_of(self._root, title=self._settings.report_title, redact=self._session.recorder.redacted)
        }
        if (mutation := session.config.pluginmanager.get_plugin("ragmetrics-mutation")) is not None:
            origin["mutants"] = mutation.mutants
        selection, partial, tasks = self._session.selection(session, exitstatus)
        records = [record for test in document.tests for record in test.records]
        given: dict[str, Any] = {"prompts": self._settings.prompts, "served": self._session.served}
        judging = judging_of(document.run, records, tasks, **given)
        run = replace(document.run, **origin, selection=selection, partial=partial, judging=judging)
        return replace(document, run=run)

    def _name_models(self) -> None:
        """Say where the replies of a judge are of several models, or of another one than in the baseline."""
        if not (found := self._session.served):
            return
        from pytest_ragmetrics.runs.wording.served import joined, served_notes, served_warnings

        before = {} if self.baseline is None else self.baseline.runs[-1].run.judging
        served = joined(found.values())
        self._warnings += served_warnings(served)
        self._notes += served_notes(served, joined(it.served for it in before.values()))

    @cached_property
    def rules(self) -> dict[str, Judging]:
        """What decides the scores of the metrics of the baseline in this run."""
        from pytest_ragmetrics.report.judging import judging_of

        if self.baseline is None:
            return {}
        runs = self.baseline.runs
        run = replace(runs[-1].run, settings=self._shown(), ragmetrics=version("pytest-ragmetrics"))
        records = (record for each in reversed(runs) for test in each.tests for record in test.records)
        tasks = {metric: judging.prompts for each in runs for metric, judging in each.run.judging.items()}
        return judging_of(run, records, tasks, prompts=self._settings.prompts)

    def _blame(self) -> None:
        """Keep with the records which part of the application made their scores worse."""
        if self._settings.dry_run or not self.collector.has_scores:
            return
        comparison, self._comparison = self._compare(self.collector.document(0, self._shown(), ())), None
        if comparison is None:
            self._unblamed = _NO_TEXTS
            return
        from pytest_ragmetrics.core import loop
        from pytest_ragmetrics.evaluation.blame import blame_worse
        from pytest_ragmetrics.judges import context

        found: dict[int, Blame] = {}
        session, rows = self._session, self._settings.blame_rows
        self._unblamed = ""
        try:
            # pytest shows the warnings of tests, and none of what runs behind them.
            with warnings.catch_warnings(record=True) as caught, context.changed(private=session):
                warnings.simplefilter("default", UserWarning)
                loop.run(blame_worse(comparison, session, found, way=session.way_of, rows=rows))
        finally:
            self._warnings += [str(it.message) for it in caught if it.category is UserWarning]
            if session.recorder.redacts():
                judged = {key: it for key, it in found.items() if it.part == "judge"}
                found |= {key: replace(it, part="unknown", reason=_REDACTED) for key, it in judged.items()}
            self.collector.blame(comparison.document, found)

    def _compare(self, document: Document) -> RunComparison | None:
        """Return what changed since the baseline; once all tests have ended, it stays the same."""
        if self._comparison is None and self.baseline is not None and not self.baseline.is_history:
            from pytest_ragmetrics.runs.compare import compare_documents
            from pytest_ragmetrics.runs.records import redacted

            recorder = self._session.recorder
            # It may be of a time when other texts were redacted, and the page shows its answers.
            (baseline,) = self.baseline.runs
            baseline = redacted(baseline, recorder.redacted) if recorder.redacts() else baseline
            document = replace(document, run=replace(document.run, judging=document.run.judging or self.rules))
            self._comparison = compare_documents(document, baseline)
        return self._comparison

    def _document(self, exit_status: int) -> Document:
        """Return the document of the run, the same on every machine: it names no folders outside of the project."""
        notes = list(self._notes)
        for path in vars(self._settings).values():
            if isinstance(path, Path):
                notes = [note.replace(str(path), portable(path, self._root)) for note in notes]
        document = self.collector.document(exit_status, self._shown(), notes)
        drift = self._session.drift
        warned = (*document.run.warnings, *self._warnings, *drift.warnings)
        return replace(document, run=replace(document.run, warnings=warned, sentinels=drift.records))

    def _shown(self) -> dict[str, Setting]:
        return {
            name: portable(value, self._root) if isinstance(value, (str, Path)) else value
            for name, value in vars(self._settings).items()
            if name not in _PRIVATE
        }


def run_properties(document: Document) -> list[tuple[str, object]]:
    """Return the properties of the whole run: the figures of each metric, tests by outcome, calls, tokens and cost."""
    from pytest_ragmetrics.core.result import Usage
    from pytest_ragmetrics.runs.wording.runs import paid_usages, status_of, tallies

    found: list[tuple[str, object]] = []
    for tally in tallies(document):
        figures = {"n": tally.n, "mean": tally.mean, "fell_short": tally.failing, "unscored": tally.unscored}
        figures |= {"vacuous": tally.vacuous, "skipped": tally.skipped, "not_needed": tally.not_needed}
        found += [
            (property_name(tally.metric, f".{name}"), number) for name, number in figures.items() if number is not None
        ]
    statuses = Counter(map(status_of, (test for test in document.tests if test.gate is None)))
    found += [(f"rag.tests.{status}", statuses[status]) for status in sorted(statuses)]
    usage = sum(paid_usages(document), Usage())
    found += [("rag.calls", usage.calls), ("rag.tokens", usage.prompt_tokens + usage.completion_tokens)]
    # Sums of floats have more decimals.
    return [*found, *([] if usage.cost is None else [("rag.cost", round(usage.cost, 9))])]


def read_baseline(file: Path | None) -> Baseline | None:
    """Return the earlier run in a file; raise ``pytest.UsageError`` for a file that has none."""
    if file is None:
        return None
    from pytest_ragmetrics.runs.records import DocumentError, read_document
    from pytest_ragmetrics.runs.tables import Baseline

    try:
        return Baseline(runs=(read_document(file),))
    except DocumentError as error:
        raise pytest.UsageError(f"--rag-baseline: {error}") from error
