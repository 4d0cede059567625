"""Rows as runs of a LangSmith project, their scores as feedback."""

from __future__ import annotations

import json
import os
import uuid
from datetime import datetime, timezone
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest


OUTPUTS = ("response", "retrieved_contexts")


class Observer:
    """Sends to the server of ``LANGSMITH_ENDPOINT``, into the project ``LANGSMITH_PROJECT``."""

    def __init__(self, config: pytest.Config) -> None:
        del config
        self._client: Any = import_module("langsmith").Client()
        self._name = os.environ.get("LANGSMITH_PROJECT", "pytest-ragmetrics")
        self._project: Any = None
        self._runs: dict[str, uuid.UUID] = {}

    def pytest_ragmetrics_result(self, item: pytest.Item, record: Mapping[str, Any]) -> None:
        """Send a score as feedback to the run of its row; an unscored one comes without a score."""
        if self._project is None:
            self._project = self._client.create_project(self._name, upsert=True)
        sample = record["sample"]
        row = f"{item.nodeid} {json.dumps(sample, sort_keys=True)}"
        if row not in self._runs:
            self._runs[row] = self._sent(item.nodeid, sample)
        self._client.create_feedback(
            self._runs[row],
            key=record["metric"],
            score=record["score"],
            value=record["outcome"],
            comment=record["reason"],
            session_id=self._project.id,
        )

    def pytest_sessionfinish(self) -> None:
        """Wait until all is sent."""
        self._client.flush()

    def _sent(self, name: str, sample: Mapping[str, Any]) -> uuid.UUID:
        run, now = uuid.uuid4(), datetime.now(timezone.utc)
        self._client.create_run(
            name=name,
            run_type="chain",
            project_name=self._name,
            id=run,
            inputs={field: value for field, value in sample.items() if field not in OUTPUTS},
            outputs={field: sample[field] for field in OUTPUTS if field in sample},
            start_time=now,
            end_time=now,
        )
        return run
