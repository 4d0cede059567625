"""From the scorings of a test to its reports: the recorder, and what reports carry, say and hide."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.context import Scoring
    from pytest_ragmetrics.plugin.carried import Carried
    from pytest_ragmetrics.runs.records import GateRecord, Record
    from pytest_ragmetrics.runs.wording.repeats import RowReply

#: The attribute of a test report that carries what this plugin says of its test.
ATTRIBUTE = "ragmetrics"


def carried(report: pytest.TestReport) -> Carried:
    """Return what a report carries, to be added to."""
    from pytest_ragmetrics.plugin.carried import Carried

    if not hasattr(report, ATTRIBUTE):
        setattr(report, ATTRIBUTE, Carried())
    found: Carried = getattr(report, ATTRIBUTE)
    return found


class Recorder:
    """Collects the scorings of the running test and puts their records on its reports, redacted as a hook says."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._redact: Callable[[str], str] | None = None
        self.test: str | None = None
        self._scorings: list[Scoring] = []
        #: The records of the last attempt at the test that ran last, complete once it is torn down.
        self.records: tuple[Record, ...] = ()
        self._calibration: list[Record] = []
        self._replies: list[RowReply] = []
        self._answers: dict[str, int] = {}
        #: Whether the row of the running test has a response, where others get several answers.
        self.has_response = False
        self._made: dict[int, tuple[object, Record]] = {}
        self._explained: set[int] = set()

    def scored(self, scoring: Scoring) -> None:
        """Add a scoring; one of a labelled answer is no score of the application, and nothing compares it later."""
        if scoring.exchanges:
            from pytest_ragmetrics.runs.wording.repeats import replies_of

            self._replies += replies_of(scoring, self._redact)
        if not scoring.calibration:
            if scoring.answers:
                self._answers[scoring.sample.id or self.test or ""] = scoring.answers
            self._scorings.append(scoring)
            return
        from pytest_ragmetrics.runs.records import record_of

        self._calibration.append(record_of(scoring, redact=self._redact))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep what belongs to the running test while others run inside of it."""
        kept = dict(vars(self))
        try:
            yield
        finally:
            vars(self).update(kept)

    def redacts(self) -> bool:
        """Tell whether a hook redacts texts."""
        return bool(self._config.hook.pytest_ragmetrics_redact.get_hookimpls())

    def redacted(self, text: str) -> str:
        """Return a text as the hook redacts it."""
        found: str | None = self._config.hook.pytest_ragmetrics_redact(text=text)
        return text if found is None else found

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Start one attempt at a test; scorings of an earlier attempt, or of code outside any test, are dropped."""
        # Asked anew each time: the conftest.py files of folders are loaded after the start.
        self._redact = self.redacted if self.redacts() else None
        if item.nodeid != self.test:
            self.records = ()
        self.test = item.nodeid
        self._scorings, self._calibration, self._replies, self._answers = [], [], [], {}
        self._made, self.has_response = {}, False
        self._explained = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the records of the running test on a report of it, and redact what the report says."""
        is_of_user = True
        if call.excinfo is not None and not self._config.getoption("fulltrace", default=False):
            from pytest_ragmetrics.plugin.tracebacks import hide_own_frames  # not at start-up

            is_of_user = hide_own_frames(call.excinfo)
        report = yield
        if call.excinfo is not None and type(call.excinfo.value).__module__.startswith("pytest_ragmetrics"):
            # What a server or an application said may be in it.
            from pytest_ragmetrics.core.credentials import masked
            from pytest_ragmetrics.core.errors import RagMetricsError
            from pytest_ragmetrics.text.unicode import printable_lines

            is_told = isinstance(call.excinfo.value, RagMetricsError) and not isinstance(report.longrepr, str)
            if report.failed and is_told and not is_of_user:
                report.longrepr = call.excinfo.exconly()
            redact_failure(report, lambda text: masked(printable_lines(text)))
        self._attach(report)
        if (redact := self._redact) is not None:
            report.sections[:] = [(title, redact(text)) for title, text in report.sections]
            redact_failure(report, redact)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
        """Turn what a report carries into JSON builtins, which xdist can send."""
        data = yield
        if not data or ATTRIBUTE not in data:
            return data
        from pytest_ragmetrics.core.codec import dump

        return data | {ATTRIBUTE: dump(data[ATTRIBUTE])}

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> Generator[None, object, object]:
        """Read what a report carries that a worker sent."""
        from_json(data)
        return (yield)

    def _attach(self, report: pytest.TestReport) -> None:
        """Put all records of this attempt on a report of it, and the explanations if it failed."""
        if report.when == "teardown" and (self._calibration or self._replies or self._answers or self.has_response):
            carried(report).calibration, carried(report).replies = tuple(self._calibration), tuple(self._replies)
            carried(report).answers, carried(report).has_response = self._answers, self.has_response
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
            record = record_of(scoring, redact=self._redact)
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
                    report.sections.append(("RAG metrics", text))


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

    One without anything to check has a second property, as it is in no mean, and so has that of a turn of a
    conversation.
    """
    from pytest_ragmetrics.core.sample import turn_of

    properties: list[tuple[str, object]] = []
    for record in records:
        properties.append((property_name(record.metric), "unscored" if record.score is None else record.score))
        properties += [(property_name(record.metric, ".vacuous"), True)] if record.vacuous else []
        turn = turn_of(record.sample)
        properties += [(property_name(record.metric, ".turn"), turn)] if isinstance(turn, int) else []
    return properties


def gate_properties(gate: GateRecord) -> list[tuple[str, object]]:
    """Return the properties of a test over a whole set: what it found, what was needed, and how it came out."""
    name = property_name(gate.metric, f".{gate.statistic}")
    value = "unscored" if gate.value is None else gate.value
    found: list[tuple[str, object]] = [(name, value), (f"{name}.bound", gate.bound), (f"{name}.outcome", gate.outcome)]
    if gate.regression is not None:
        shown = {"p": gate.regression.adjusted_p, "smallest_drop": gate.regression.smallest}
        found += [(f"{name}.{figure}", number) for figure, number in shown.items() if number is not None]
    return found


def property_name(metric: str, statistic: str = "") -> str:
    """Return the name of a figure of a metric in junit's file."""
    if not (metric.isascii() and metric.isprintable()):
        # All that XML 1.0 does not allow, not even as a reference.
        metric = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", metric)
    return f"rag.{metric}{statistic}"


def redact_failure(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Redact what a report says of a failure or of a skip.

    The representation of a failure keeps its parts, of which pytest makes the short summary. Where a text that is to
    go runs from one part into another, the whole becomes a plain text.
    """
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


def skip(report: pytest.TestReport, reason: str) -> None:
    """Make a report that of a skipped test."""
    report.outcome = "skipped"
    report.longrepr = (report.location[0], (report.location[1] or 0) + 1, f"Skipped: {reason}")
    if hasattr(report, "wasxfail"):
        del report.wasxfail
