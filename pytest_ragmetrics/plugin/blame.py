"""``--rag-blame``: at the end of a run, which part of the application made scores worse than in the baseline."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics.plugin.report import RunReport
from pytest_ragmetrics.plugin.session import PytestSession

if TYPE_CHECKING:
    from pytest_ragmetrics.runs.blame import Blame

_NO_TEXTS = "blame: no texts to compare with: give --rag-baseline=FILE, which --rag-json wrote"
_REDACTED = "what pytest_ragmetrics_redact takes out may be what changed: the judge alone cannot be blamed"
_STOPPED = (
    "blame: nothing was asked, as the run ended early (-x, --maxfail or an interrupt) and its gates were not decided"
)


class BlamePlugin:
    """The hook that asks once all tests and gates have ended, in the process that reports."""

    def __init__(self, session: PytestSession, report: RunReport) -> None:
        self._session = session
        self._report = report

    # Inside of what RunReport does, which is tried first, and around the gates of xdist, registered before.
    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Find which parts are to blame, and keep it with the records."""
        report, session = self._report, self._session
        try:
            ran = yield
        except BaseException:
            report.unblamed = [_STOPPED] if report.collector.has_scores and not session.dry_run else []
            raise
        if session.dry_run or not report.collector.has_scores:
            return ran
        if (comparison := report.compared()) is None:
            report.unblamed = [_NO_TEXTS]
            return ran
        from pytest_ragmetrics.core import loop
        from pytest_ragmetrics.evaluation.blame import blame_worse
        from pytest_ragmetrics.judges import context

        found: dict[int, Blame] = {}
        try:
            with context.changed(private=session):
                loop.run(blame_worse(comparison, session, found, way=session.way_of, rows=session.settings.blame_rows))
        finally:
            if session.recorder.redacts():
                found = {
                    key: replace(it, part="unknown", reason=_REDACTED) if it.part == "judge" else it
                    for key, it in found.items()
                }
            report.collector.blame(comparison.document, found)
        return ran
