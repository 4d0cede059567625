"""The budget and the forecast of a session in one process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics.plugin.recorder import skip
from pytest_ragmetrics.plugin.settings import Settings
from pytest_ragmetrics.plugin.xdist import FromWorker

if TYPE_CHECKING:
    from pytest_ragmetrics.evaluation.dry_run import Forecast
    from pytest_ragmetrics.judges.transports.budget import Budget


class SessionBudget:
    """The budget and the forecast of one process.

    ``workers`` is the number of workers of xdist in a worker, else ``None``; ``file`` is the one that all processes
    count in, where a worker can see it.
    """

    def __init__(self, settings: Settings, *, workers: int | None, file: str | None) -> None:
        self._settings = settings
        self._workers = workers
        self._file = file

    @cached_property
    def budget(self) -> Budget | None:
        """What the run may ask for, shared by all its processes; a worker that cannot see the file has its part."""
        settings = self._settings
        limits = (settings.max_calls, settings.max_tokens, settings.max_cost)
        if settings.dry_run or all(limit is None for limit in limits):
            return None
        from pytest_ragmetrics.judges.transports.budget import budget_of

        return budget_of(*limits, file=self._file, workers=self._workers)

    @cached_property
    def forecast(self) -> Forecast | None:
        """What the run would ask for, in a dry run."""
        settings = self._settings
        if not settings.dry_run:
            return None
        from pytest_ragmetrics.evaluation.dry_run import Forecast
        from pytest_ragmetrics.judges.transports.pace import Pace

        # Batches have limits of their own.
        return Forecast(limits={} if settings.batch else Pace(settings.rpm, settings.tpm).limits)

    def skip_scored(self, report: pytest.TestReport) -> None:
        """Skip a test that scored anything in a dry run, passed or failed: its scores are placeholders."""
        requests = None if self.forecast is None else self.forecast.requests_of(report.nodeid)
        if requests is None or (report.when != "call" and not report.failed):
            return
        from pytest_ragmetrics.runs.wording.figures import counted

        skip(report, f"dry run: {counted(requests, 'request')}")

    def notes(self, workers: Sequence[FromWorker | None], planned: Sequence[str] = ()) -> list[str]:
        """Return the line on the budget, or the forecast with what is ``planned`` of gates, at the end of a run."""
        rows = [row for row in workers if row is not None]
        if self.budget is not None:
            from pytest_ragmetrics.judges.transports.budget import budget_line

            return [budget_line(self.budget, [row.spent for row in rows if row.spent])]
        if self.forecast is None:
            return []
        for row in rows:
            self.forecast.add(row.forecast or {})
        paths = [*self._settings.files().values(), *filter(None, [self._settings.history])]
        unwritten = [f"{path}: not written, this was a dry run" for path in paths]
        settings = self._settings
        blame = [self.forecast.blame_line(settings.blame_rows)] if settings.blame and settings.baseline else []
        return [*self.forecast.summary(lost=len(workers) - len(rows)), *planned, *blame, *unwritten]
