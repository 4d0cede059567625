"""Gathering: the scorings of a test become records on its reports, the reports become the document of the run.

The recorder works in every process that runs tests; the collector in the one that reports, which under xdist is
the controller and runs none. Both are part of every run, so what only a run with scores needs is imported then.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import pytest

    from pytest_ragmetrics.report.records import Document, Record, RunRow, TestOutcome, TestRow
    from pytest_ragmetrics.session import Scoring

#: The attribute of a test report that carries its records; serialised by pytest like any other.
ATTRIBUTE = "rag_records"
SECTION = "RAG metrics"


class Recorder:
    """Takes note of every scoring inside the running test and puts the records on its reports."""

    def __init__(self, *, redact: Callable[[str], str] | None = None) -> None:
        """Take what is applied to every text before it is reported."""
        self.redact = redact
        self.test: str | None = None
        self._scorings: list[Scoring] = []
        self._sent: list[Record] = []
        self._explained: set[int] = set()

    def scored(self, scoring: Scoring) -> None:
        """Note a scoring."""
        self._scorings.append(scoring)

    def begin(self, test: str) -> None:
        """Start one attempt at a test: what an earlier attempt scored, or code outside any test, is forgotten."""
        if test != self.test:
            self._sent = []
        self.test = test
        self._scorings = []
        self._explained = set()

    def attach(self, report: pytest.TestReport) -> None:
        """Put all records of this attempt on a report of it, and the explanations if it failed."""
        if not self._scorings and not self._sent:
            return
        from pytest_ragmetrics.report.records import record_of

        records = [record_of(scoring, redact=self.redact) for scoring in self._scorings]
        # A plugin that repeats tests may log reports of subtests before that of the setup, so every report
        # but an unchanged last one carries the whole list.
        if report.when != "teardown" or records != self._sent:
            setattr(report, ATTRIBUTE, records)
        self._sent = records
        if report.failed:
            self._explain(report)
        if report.when == "teardown":
            report.user_properties.extend(_properties(records))

    def _explain(self, report: pytest.TestReport) -> None:
        from pytest_ragmetrics.explain import explain
        from pytest_ragmetrics.result import MetricResult

        for index, scoring in enumerate(self._scorings):
            result = scoring.outcome
            if index in self._explained or not isinstance(result, MetricResult):
                continue
            if result.comparison is not None and not result.comparison.held:
                self._explained.add(index)
                text = "\n".join(explain(result, result.comparison))
                # Where the traceback already says all of it, saying it again only makes it longer.
                if _unindented(text) not in _unindented(report.longreprtext):
                    report.sections.append((SECTION, text))


def _unindented(text: str) -> str:
    return "\n".join(re.sub(r"^(E\s|\s)\s*", "", line) for line in text.splitlines())


def _properties(records: Sequence[Record]) -> list[tuple[str, object]]:
    """Return the junit properties of a test: its scores as plain floats, by metric."""
    return [(f"rag.{r['metric']}", "unscored" if r["score"] is None else r["score"]) for r in records]


class Collector:
    """Builds the document of the run out of test reports, in whatever order they come."""

    def __init__(self) -> None:
        self._rows: dict[str, TestRow] = {}
        self._started = time.time()

    def add(self, report: pytest.TestReport) -> None:
        """Take in one report; tests that scored nothing are kept only if they went wrong."""
        row = self._rows.get(report.nodeid)
        if row is None:
            row = self._rows[report.nodeid] = _new_row(report)
        if report.when == "setup":
            row["outcome"], row["message"], row["duration"] = "passed", None, 0.0
            row["attempts"] += 1
        records = getattr(report, ATTRIBUTE, None)
        if records is not None:
            row["records"] = records
        row["duration"] = round(row["duration"] + report.duration, 6)
        outcome = _outcome(report)
        if outcome != "passed" and row["outcome"] not in ("failed", "error"):
            row["outcome"], row["message"] = outcome, _message(report)
        if report.when == "teardown" and not row["records"] and row["outcome"] not in ("failed", "error"):
            del self._rows[report.nodeid]

    def document(self, exit_status: int) -> Document:
        """Return everything gathered so far, in the order of the files."""
        from pytest_ragmetrics.report.records import VERSION

        rows = sorted(self._rows.values(), key=_position)
        return {"version": VERSION, "run": self._run(exit_status), "tests": rows}

    def _run(self, exit_status: int) -> RunRow:
        import platform
        from importlib.metadata import version

        return {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started)),
            "duration": round(time.time() - self._started, 3),
            "exit_status": int(exit_status),
            "python": platform.python_version(),
            "pytest": version("pytest"),
            "ragmetrics": version("pytest-ragmetrics"),
            "settings": {},
            "notes": [],
        }


def _new_row(report: pytest.TestReport) -> TestRow:
    file, line, _ = report.location
    return {
        "id": report.nodeid,
        "file": file.replace("\\", "/"),
        "line": None if line is None else line + 1,
        "outcome": "passed",
        "duration": 0.0,
        "attempts": 0,
        "message": None,
        "records": [],
        "gate": None,
    }


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
    return "\n\n".join(part for part in (reason, report.longreprtext if report.failed else "") if part) or None


def _position(row: TestRow) -> tuple[str, int, list[tuple[int, int, str]]]:
    """Sort by file and line, and numbers inside ids by their value, however the run was split or shuffled."""
    parts = re.findall(r"(\d+)|(\D+)", row["id"])
    return row["file"], row["line"] or 0, [(0, int(number), "") if number else (1, 0, word) for number, word in parts]
