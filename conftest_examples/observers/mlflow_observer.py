"""Scores as metrics of an MLflow run, one run for each process that runs tests."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping


class Observer:
    """Logs to the server or folder of ``MLFLOW_TRACKING_URI``, under the experiment of ``MLFLOW_EXPERIMENT_NAME``."""

    def __init__(self, config: pytest.Config) -> None:
        self._library: Any = import_module("mlflow")
        self._client: Any = None
        self._name = getattr(config, "workerinput", {}).get("workerid", "pytest")
        self._run: str | None = None
        self._rows: list[dict[str, Any]] = []
        self._steps: dict[str, int] = {}

    def pytest_ragmetrics_result(self, item: pytest.Item, record: Mapping[str, Any]) -> None:
        """Log a score as the next step of its metric; what is unscored stands in the rows alone."""
        run, metric, score = self._started(), record["metric"], record["score"]
        self._rows.append({"test": item.nodeid, **record})
        if score is not None:
            step = self._steps[metric] = self._steps.get(metric, -1) + 1
            self._client.log_metric(run, metric, score, step=step)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """End the run, if one was begun; a server that is gone by now does not fail the tests."""
        if self._run is not None:
            try:
                self._end(self._run, "FINISHED" if exitstatus == pytest.ExitCode.OK else "FAILED")
            except Exception as error:  # noqa: BLE001 - whatever its store raises
                warnings.warn(f"MLflow was not told how the run ended: {error}", stacklevel=1)

    def _end(self, run: str, status: str) -> None:
        """Log the rows, and how many of them failed and were unscored."""
        for outcome in ("failed", "unscored"):
            self._client.log_metric(run, outcome, sum(row["outcome"] == outcome for row in self._rows))
        self._client.log_dict(run, {"records": self._rows}, "records.json")
        self._client.set_terminated(run, status)

    def _started(self) -> str:
        """Return the id of the run, which is begun with the first score."""
        if self._run is None:
            self._client = self._library.MlflowClient()
            self._run = self._client.create_run(self._experiment(), run_name=self._name).info.run_id
        return self._run

    def _experiment(self) -> str:
        """Return the id of the experiment, which another worker may be making at the same time."""
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "pytest-ragmetrics")
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name))
            except self._library.MlflowException:
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)
