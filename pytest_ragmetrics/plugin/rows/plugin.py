"""The rows of data sets as tests: idle until a function has the marker ``rag_dataset``, or a test asks for a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics.plugin.gates.plugin import GatePlugin
from pytest_ragmetrics.plugin.session import PytestSession

if TYPE_CHECKING:
    from pytest_ragmetrics.plugin.rows.dataset_tests import Datasets, DatasetTests


class RowsPlugin:
    """The hook that makes a test per row, and what answers and scores rows, built with the first that needs it."""

    def __init__(self, session: PytestSession, gates: GatePlugin) -> None:
        self._session = session
        self._gates = gates
        self._datasets: Datasets | None = None
        self._tests: DatasetTests | None = None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test per row of a data set."""
        if (marker := metafunc.definition.get_closest_marker("rag_dataset")) is not None:
            from pytest_ragmetrics.plugin.rows.dataset_tests import Datasets

            self._datasets = self._datasets or Datasets(self._session)
            self._datasets.parametrize(metafunc, marker)

    def tests(self, request: pytest.FixtureRequest) -> DatasetTests:
        """Return the tests of rows in a session; from the first that asks on, their hooks are called."""
        if self._tests is None:
            from pytest_ragmetrics.plugin.rows.dataset_tests import DatasetTests

            items, config = request.session.items, request.config
            self._tests = DatasetTests(self._session, items, config, self._gates.drawn)
            config.pluginmanager.register(self._tests, "ragmetrics-row-tests")
            if self._session.settings.mutate is not None:
                from pytest_ragmetrics.plugin.rows.mutants import MutantTests

                config.pluginmanager.register(MutantTests(self._session, self._tests, items), "ragmetrics-mutants")
        return self._tests
