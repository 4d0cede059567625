"""What a process of a pytest run may ask for: its budget, or in a dry run nothing at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from pytest_ragmetrics.budget import Budget
    from pytest_ragmetrics.dry_run.forecast import Forecast
    from pytest_ragmetrics.settings import Settings


class Allowance:
    """The budget and the forecast of a process; ``workerinput`` is that of xdist, where this is one of its workers."""

    def __init__(self, settings: Settings, workerinput: Mapping[str, Any] | None) -> None:
        self._settings = settings
        self._workerinput = workerinput
        self._rows: list[Mapping[str, Any]] = []
        self._lost = 0

    @cached_property
    def budget(self) -> Budget | None:
        """What the run may ask for, shared by all its processes; a worker that cannot see the file has its part."""
        settings, worker = self._settings, self._workerinput
        limits = (settings.max_calls, settings.max_tokens, settings.max_cost)
        if settings.dry_run or all(limit is None for limit in limits):
            return None
        from pytest_ragmetrics.budget import budget_of

        if worker is None:
            return budget_of(*limits, file=None, workers=None)
        return budget_of(*limits, file=self._told_of.get("budget"), workers=worker.get("workercount", 1))

    @cached_property
    def forecast(self) -> Forecast | None:
        """What the run would ask for, if nothing is to be asked."""
        if not self._settings.dry_run:
            return None
        from pytest_ragmetrics.dry_run.forecast import Forecast

        return Forecast()

    def excuse(self, report: pytest.TestReport) -> None:
        """Skip a test that scored anything in a dry run, whatever came of it: its scores are none."""
        requests = None if self.forecast is None else self.forecast.requests_of(report.nodeid)
        if requests is None or (report.when != "call" and not report.failed):
            return
        report.outcome = "skipped"
        reason = f"Skipped: dry run: {requests} {'request' if requests == 1 else 'requests'}"
        report.longrepr = (report.location[0], (report.location[1] or 0) + 1, reason)
        if hasattr(report, "wasxfail"):
            del report.wasxfail

    def for_worker(self) -> dict[str, Any]:
        """Return what a worker must know, as JSON builtins."""
        return {"budget": None if self.budget is None else str(self.budget.file)}

    def to_row(self) -> dict[str, Any]:
        """Return what a worker tells at its end, as JSON builtins."""
        return {
            "spent": None if self.budget is None else self.budget.own_row(),
            "forecast": None if self.forecast is None else self.forecast.to_row(),
        }

    def add_worker(self, row: Mapping[str, Any] | None) -> None:
        """Take in what a worker told; ``None`` of one that crashed."""
        if row is None:
            self._lost += 1
        else:
            self._rows.append(row)

    def notes(self) -> list[str]:
        """Return what there is to say about the budget, or the forecast, at the end of a run."""
        if self.budget is not None:
            from pytest_ragmetrics.budget import told

            return [told(self.budget, [row["spent"] for row in self._rows if row["spent"]])]
        if self.forecast is None:
            return []
        for row in self._rows:
            self.forecast.add(row["forecast"])
        self._rows.clear()
        unwritten = [f"{path}: not written, this was a dry run" for path in self._settings.files().values()]
        return [*self.forecast.told(lost=self._lost), *unwritten]

    def close(self) -> None:
        """Close the budget, if there is one."""
        if self.budget is not None:
            self.budget.close()

    @property
    def _told_of(self) -> Mapping[str, Any]:
        return (self._workerinput or {}).get("ragmetrics_allowance") or {}
