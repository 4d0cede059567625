"""From scorings to reports: the recorder of every process, and the collector and the report of the one that reports.

The recorder puts records on the reports of tests; the collector makes the document of the run of them; the report
writes it into files and the summary of the terminal.
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_ragmetrics.core.files import portable
from pytest_ragmetrics.plugin.settings import unread_options

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.context import Scoring
    from pytest_ragmetrics.plugin.carried import Carried
    from pytest_ragmetrics.plugin.resources import Selection
    from pytest_ragmetrics.plugin.settings import Settings
    from pytest_ragmetrics.report.history import History
    from pytest_ragmetrics.runs.compare import RunComparison
    from pytest_ragmetrics.runs.records import (
        Document,
        GateRecord,
        Judging,
        Record,
        Setting,
        TestOutcome,
        TestRecord,
    )
    from pytest_ragmetrics.runs.wording.digest import Failure
    from pytest_ragmetrics.runs.wording.repeats import RepeatedReplies, RowReply

#: The attribute of a test report that carries what this plugin says of its test.
ATTRIBUTE = "ragmetrics"
SECTION = "RAG metrics"

#: The decimals of dollars: sums of floats have more.
_PRECISION = 9
# Few runs need these patterns, so each is compiled when it is first used.
# All that XML 1.0 does not allow, not even as a reference.
_FORBIDDEN = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
# xdist puts the name of the worker and the path of its Python before the text of a failure.
_WORKER = r"\A\[\w+\] \S+ -- Python .*\n+"


def carried(report: pytest.TestReport) -> Carried:
    """Return what a report carries, to be added to."""
    from pytest_ragmetrics.plugin.carried import Carried

    if not hasattr(report, ATTRIBUTE):
        setattr(report, ATTRIBUTE, Carried())
    found: Carried = getattr(report, ATTRIBUTE)
    return found


class Recorder:
    """Collects the scorings of the running test and puts their records on its reports; ``redact`` changes texts."""

    def __init__(self) -> None:
        self.redact: Callable[[str], str] | None = None
        self.test: str | None = None
        self._scorings: list[Scoring] = []
        #: The records of the last attempt at the test that ran last, complete once it is torn down.
        self.records: tuple[Record, ...] = ()
        self._calibration: list[Record] = []
        self._replies: list[RowReply] = []
        self._made: dict[int, tuple[object, Record]] = {}
        self._explained: set[int] = set()

    def scored(self, scoring: Scoring) -> None:
        """Add a scoring; one of a labelled answer is no score of the application, and nothing compares it later."""
        if scoring.exchanges:
            from pytest_ragmetrics.runs.wording.repeats import replies_of

            self._replies += replies_of(scoring, self.redact)
        if not scoring.calibration:
            self._scorings.append(scoring)
            return
        from pytest_ragmetrics.runs.records import record_of

        self._calibration.append(record_of(scoring, redact=self.redact))

    def begin(self, test: str) -> None:
        """Start one attempt at a test; scorings of an earlier attempt, or of code outside any test, are dropped."""
        if test != self.test:
            self.records = ()
        self.test = test
        self._scorings, self._calibration, self._replies = [], [], []
        self._made = {}
        self._explained = set()

    def attach(self, report: pytest.TestReport) -> None:
        """Put all records of this attempt on a report of it, and the explanations if it failed."""
        if (self._calibration or self._replies) and report.when == "teardown":
            carried(report).calibration, carried(report).replies = tuple(self._calibration), tuple(self._replies)
        if (not self._scorings and not self.records) or (report.when == "setup" and report.passed):
            return  # the call may still compare what a passed setup scored
        records = tuple(self._record(scoring) for scoring in self._scorings)
        # A plugin that repeats tests may log reports of subtests first, so every report but an unchanged last one
        # carries the whole list.
        if report.when != "teardown" or records != self.records:
            carried(report).records = records
        self.records = records
        if report.failed:
            self._explain(report)
        if report.when == "teardown":
            report.user_properties.extend(junit_properties(records))

    def _record(self, scoring: Scoring) -> Record:
        """Return the record of a scoring, the one made before unless its result was compared since."""
        from pytest_ragmetrics.runs.records import record_of

        comparison = scoring.comparison
        before, record = self._made.get(id(scoring), (None, None))
        if record is None or before is not comparison:
            record = record_of(scoring, redact=self.redact)
            self._made[id(scoring)] = comparison, record
        return record

    def _explain(self, report: pytest.TestReport) -> None:
        from pytest_ragmetrics.core.result import MetricResult
        from pytest_ragmetrics.runs.wording.failures import explain

        for index, scoring in enumerate(self._scorings):
            result, comparison = scoring.outcome, scoring.comparison
            if index in self._explained or not isinstance(result, MetricResult):
                continue
            if comparison is not None and not comparison.held:
                self._explained.add(index)
                text = "\n".join(explain(result, comparison))
                # The traceback of an assertion helper has the explanation already.
                if _unindented(text) not in _unindented(report.longreprtext):
                    report.sections.append((SECTION, text))


def load_reporting() -> None:
    """Import what reports a failure: where a process has as many files open as it may, no module can be read."""
    # What reports carry imports the records and the codec.
    for module in ("plugin.tracebacks", "plugin.carried", "runs.wording.failures"):
        import_module(f"pytest_ragmetrics.{module}")


def as_json(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a serialised report with what it carries as JSON builtins."""
    from pytest_ragmetrics.core.codec import dump

    return data | {ATTRIBUTE: dump(data[ATTRIBUTE])} if ATTRIBUTE in data else data


def from_json(data: dict[str, Any]) -> None:
    """Read what a serialised report carries; a test whose metric filled its records with wrong types loses it."""
    if ATTRIBUTE not in data:
        return
    from pytest_ragmetrics.core.codec import CodecError, load
    from pytest_ragmetrics.plugin.carried import Carried

    try:
        data[ATTRIBUTE] = load(Carried, data[ATTRIBUTE])
    except CodecError as error:
        warnings.warn(pytest.PytestWarning(f"{data.get('nodeid')}: {error}"), stacklevel=2)
        del data[ATTRIBUTE]


def _unindented(text: str) -> str:
    return "\n".join(re.sub(r"^(E\s|\s)\s*", "", line) for line in text.splitlines())


def junit_properties(records: Sequence[Record]) -> list[tuple[str, object]]:
    """Return the properties of a test: its scores by metric, as plain floats, in the order they were made.

    One without anything to check has a second property, as it is in no mean.
    """
    properties: list[tuple[str, object]] = []
    for record in records:
        properties.append((_name(record.metric), "unscored" if record.score is None else record.score))
        properties += [(_name(record.metric, ".vacuous"), True)] if record.vacuous else []
    return properties


def gate_properties(gate: GateRecord) -> list[tuple[str, object]]:
    """Return the properties of a test over a whole set: what it found, what was needed, and how it came out."""
    name = _name(gate.metric, f".{gate.statistic}")
    value = "unscored" if gate.value is None else gate.value
    found: list[tuple[str, object]] = [(name, value), (f"{name}.bound", gate.bound), (f"{name}.outcome", gate.outcome)]
    if gate.regression is not None:
        shown = {"p": gate.regression.adjusted_p, "smallest_drop": gate.regression.smallest}
        found += [(f"{name}.{figure}", number) for figure, number in shown.items() if number is not None]
    return found


def run_properties(document: Document) -> list[tuple[str, object]]:
    """Return the properties of the whole run: the figures of each metric, tests by outcome, calls, tokens and cost."""
    from pytest_ragmetrics.runs.wording.runs import paid_records, status_of, tallies, total_usage

    found: list[tuple[str, object]] = []
    for tally in tallies(document):
        figures = {"n": tally.n, "mean": tally.mean, "fell_short": tally.failing, "unscored": tally.unscored}
        figures |= {"vacuous": tally.vacuous, "skipped": tally.skipped, "not_needed": tally.not_needed}
        found += [(_name(tally.metric, f".{name}"), number) for name, number in figures.items() if number is not None]
    statuses = Counter(map(status_of, (test for test in document.tests if test.gate is None)))
    found += [(f"rag.tests.{status}", statuses[status]) for status in sorted(statuses)]
    usage = total_usage(paid_records(document.tests))
    found += [("rag.calls", usage.calls), ("rag.tokens", usage.prompt_tokens + usage.completion_tokens)]
    return [*found, *([] if usage.cost is None else [("rag.cost", round(usage.cost, _PRECISION))])]


def _name(metric: str, statistic: str = "") -> str:
    name = metric if metric.isascii() and metric.isprintable() else re.sub(_FORBIDDEN, "", metric)
    return f"rag.{name}{statistic}"


def redact_report(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Redact what a report says of a failure, of a skip, and of what was captured.

    The representation of a failure keeps its parts, of which pytest makes the short summary. Where a text that is to
    go runs from one part into another, the whole becomes a plain text.
    """
    report.sections[:] = [(title, redact(text)) for title, text in report.sections]
    redact_failure(report, redact)


def redact_failure(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Redact what a report says of a failure or of a skip alone."""
    if isinstance(report.longrepr, tuple):
        file, line, reason = report.longrepr
        report.longrepr = (file, line, redact(reason))
    elif redact(report.longreprtext) != report.longreprtext:
        # Another plugin may have representations of its own, whose parts cannot be changed.
        with suppress(AttributeError):
            report.longrepr = _redacted(report.longrepr, redact, set())
        text = report.longreprtext
        if redact(text) != text:
            report.longrepr = redact(text)


def _redacted(part: Any, redact: Callable[[str], str], seen: set[int]) -> Any:
    """Return a text or some parts redacted; a part with fields is changed in place, once."""
    if isinstance(part, str):
        return redact(part)
    if isinstance(part, (list, tuple)):
        items = [_redacted(item, redact, seen) for item in part]
        return tuple(items) if isinstance(part, tuple) else items
    if is_dataclass(part) and id(part) not in seen:
        seen.add(id(part))
        for field in fields(part):
            setattr(part, field.name, _redacted(getattr(part, field.name), redact, seen))
    return part


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

    def test(self, nodeid: str) -> TestRecord | None:
        """Return the record of a test, if it scored or failed."""
        test = self._tests.get(nodeid)
        return None if test is None else test.record()

    def document(self, exit_status: int, settings: Mapping[str, Setting], notes: Sequence[str]) -> Document:
        """Return the document of all tests so far, in the order of the files.

        A test that was interrupted is left out unless it had scored or failed: its outcome is unknown.
        """
        import platform
        from importlib.metadata import version

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
        records = (test.record() for test in tests)
        return Document(run=run, tests=tuple(sorted(held_to_bounds(records), key=position)))

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
    return "\n\n".join(part for part in (reason, _failure_text(report)) if part) or None


def _failure_text(report: pytest.TestReport | pytest.CollectReport) -> str:
    # Which worker it was is chance; the report of a run is the same with any number of workers.
    text = re.sub(_WORKER, "", report.longreprtext).strip() if report.failed else ""
    if text:
        from pytest_ragmetrics.core.credentials import masked

        text = masked(text)
    return text


#: Paths of this machine and what may be secret; none of it changes a score.
_PRIVATE = {"cache_dir", "cache_salt", "cache_url", "cache_url_mode", "cache_secret", "cassette_keep"}
_PRIVATE |= {"batch", "batch_fallback", "digest", "report", "report_title", "json", "markdown", "history"}


class RunReport:
    """The hooks that gather the reports of tests and make the summary and the files of them.

    ``finish_session`` is called with the exit status at the end of the run and returns lines for the summary;
    ``selection`` says which tests the run had, ``redact`` changes texts, ``redacts`` says whether it does. Raises
    ``pytest.UsageError`` for a baseline that cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        root: Path,
        *,
        finish_session: Callable[[int], list[str]],
        selection: Callable[[pytest.Session, int], Selection],
        redact: Callable[[str], str],
        redacts: Callable[[], bool],
    ) -> None:
        self.collector = Collector()
        self._redact = redact
        self._redacts = redacts
        self._selection = selection
        self._settings = settings
        self._root = root
        self._finish_session = finish_session
        self.baseline = read_baseline(settings.baseline)
        self._comparison: RunComparison | None = None
        #: Lines of the summary on the session, and on the files.
        self._notes: list[str] = []
        self._lines: tuple[str, ...] = ()
        #: Lines for standard error in a run without a summary.
        self._unshown: tuple[str, ...] = ()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a report, made here or by a worker."""
        self.collector.add(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Put the figures of the run into the file of --junitxml, which pytest writes when the session ends."""
        try:
            return (yield)
        finally:
            junit: Any = session.config.pluginmanager.get_plugin("junitxml")
            xml = None if junit is None else session.config.stash.get(junit.xml_key, None)
            if xml is not None and self.collector.has_scores and not self._settings.dry_run:
                for name, value in run_properties(self.collector.document(0, {}, ())):
                    xml.add_global_property(name, value)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the cassette and the files, once xdist has shut down its workers.

        A run whose files could not be written has not passed: their readers would read old ones.
        """
        self._notes = self._finish_session(exitstatus)
        files, folder = self._settings.files(), self._settings.history
        if not (files or folder) or self._settings.dry_run:
            return
        from pytest_ragmetrics.report.files import write_files

        document = self._with_origin(self._document(exitstatus), self._selection(session, int(exitstatus)))
        others = {} if folder is None else {folder: partial(_add_to_history, folder, document)}
        history = _history(folder, document) if folder is not None and "report" in files else None
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

    def _with_origin(self, document: Document, chosen: Selection) -> Document:
        """Return the document with where the run comes from, its tests and what judged them, which only files say."""
        from pytest_ragmetrics.report.judging import judging_of
        from pytest_ragmetrics.runs.revision import origin_of

        origin: dict[str, Any] = {**origin_of(self._root, title=self._settings.report_title, redact=self._redact)}
        records = [record for test in document.tests for record in test.records]
        judging = judging_of(document.run, records, chosen.tasks, prompts=self._settings.prompts)
        run = replace(document.run, **origin, selection=chosen.paths, partial=chosen.partial, judging=judging)
        return replace(document, run=run)

    @cached_property
    def rules(self) -> dict[str, Judging]:
        """What decides the scores of the metrics of the baseline in this run."""
        from importlib.metadata import version

        from pytest_ragmetrics.report.judging import judging_of

        if self.baseline is None:
            return {}
        run = replace(self.baseline.run, settings=self._shown(), ragmetrics=version("pytest-ragmetrics"))
        records = (record for test in self.baseline.tests for record in test.records)
        tasks = {metric: judging.prompts for metric, judging in run.judging.items()}
        return judging_of(run, records, tasks, prompts=self._settings.prompts)

    def _compare(self, document: Document) -> RunComparison | None:
        """Return what changed since the baseline; once all tests have ended, it stays the same."""
        if self._comparison is None and self.baseline is not None:
            from pytest_ragmetrics.runs.compare import compare_documents
            from pytest_ragmetrics.runs.records import redacted

            # It may be of a time when other texts were redacted, and the page shows its answers.
            baseline = redacted(self.baseline, self._redact) if self._redacts() else self.baseline
            document = replace(document, run=replace(document.run, judging=document.run.judging or self.rules))
            self._comparison = compare_documents(document, baseline)
        return self._comparison

    def _document(self, exit_status: int) -> Document:
        """Return the document of the run, the same on every machine: it names no folders outside of the project."""
        notes = list(self._notes)
        for path in vars(self._settings).values():
            if isinstance(path, Path):
                notes = [note.replace(str(path), portable(path, self._root)) for note in notes]
        return self.collector.document(exit_status, self._shown(), notes)

    def _shown(self) -> dict[str, Setting]:
        return {
            name: portable(value, self._root) if isinstance(value, (str, Path)) else value
            for name, value in vars(self._settings).items()
            if name not in _PRIVATE
        }


def _history(folder: Path, document: Document) -> History:
    """Return the runs before this one and itself, whose file is not written yet."""
    from pytest_ragmetrics.report.history import history_of

    return history_of(document, folder)


def _add_to_history(folder: Path, document: Document) -> None:
    """Write what a history keeps of the run."""
    from pytest_ragmetrics.report.history import history_run, write_history

    write_history(folder, history_run(document))


class DigestReport:
    """The hook that writes the digest of the failures in place of pytest's sections and lines on them."""

    def __init__(self, config: pytest.Config) -> None:
        config.option.no_header = True
        # Other styles leave out the lines that it is made of; workers make the reports.
        config.option.tbstyle = "auto"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Write the digest before all other sections."""
        reporter, option = terminalreporter, terminalreporter.config.option
        style, shown = option.tbstyle, reporter.reportchars
        reports = [*reporter.getreports("error"), *reporter.getreports("failed")]
        if reports:
            from pytest_ragmetrics.runs.wording.digest import digest
            from pytest_ragmetrics.text.unicode import printable_lines

            reporter.ensure_newline()
            for line in digest(map(_failure, reports)):
                reporter.write_line(printable_lines(line))
        option.tbstyle, reporter.reportchars = "no", shown.replace("f", "").replace("E", "")
        try:
            return (yield)
        finally:
            option.tbstyle, reporter.reportchars = style, shown


def _failure(report: Any) -> Failure:
    from pytest_ragmetrics.runs.wording.digest import Failure

    _, line, _ = report.location or ("", None, "")
    return Failure(
        test=report.nodeid,
        line=None if line is None else line + 1,
        phase="" if report.when == "call" else report.when,
        message=_failure_text(report),
        records=(carried(report).records or ()) if hasattr(report, ATTRIBUTE) else (),
    )


def read_baseline(file: Path | None) -> Document | None:
    """Return the document of an earlier run; raise ``pytest.UsageError`` for a file that is none."""
    if file is None:
        return None
    from pytest_ragmetrics.runs.records import DocumentError, read_document

    try:
        return read_document(file)
    except DocumentError as error:
        raise pytest.UsageError(f"--rag-baseline: {error}") from error
