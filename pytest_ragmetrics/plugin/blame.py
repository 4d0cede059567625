"""``--rag-blame``: at the end of a run, which part of the application made scores worse than in the baseline."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics.plugin.report import RunReport
from pytest_ragmetrics.plugin.session import PytestSession

if TYPE_CHECKING:
    from pytest_ragmetrics.evaluation.blame import Way
    from pytest_ragmetrics.runs.blame import Blame
    from pytest_ragmetrics.runs.compare import RunComparison
    from pytest_ragmetrics.runs.records import Record


class BlamePlugin:
    """The hook that asks once all tests and gates have ended, in the process that reports."""

    def __init__(self, session: PytestSession, report: RunReport) -> None:
        self._session = session
        self._report = report

    # Inside of what RunReport does, which is tried first, and around the gates of xdist, registered before.
    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Find which parts are to blame, and keep it with the records."""
        ran = yield
        report, settings = self._report, self._session.settings
        if settings.dry_run or not report.collector.has_scores:
            return ran
        comparison = report.compared()
        if comparison is None:
            report.unblamed = ["blame: no texts to compare with: give --rag-baseline=FILE, which --rag-json wrote"]
            return ran
        found: dict[int, Blame] = {}
        try:
            self._ask(comparison, found)
        finally:
            report.collector.blame(comparison.document, found)
        return ran

    def _ask(self, comparison: RunComparison, found: dict[int, Blame]) -> None:
        from pytest_ragmetrics.core import loop
        from pytest_ragmetrics.evaluation.blame import blame_worse
        from pytest_ragmetrics.judges import context

        with context.changed(private=self._session):
            asking = blame_worse(
                comparison, self._session, found, way=self._way, rows=self._session.settings.blame_rows
            )
            loop.run(asking)

    def _way(self, record: Record) -> Way:
        from pytest_ragmetrics.evaluation.blame import Way, known_way

        metric, judge = self._session.way_of(record)
        return Way(metric=metric or known_way(record).metric, judge=judge)
