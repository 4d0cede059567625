"""The tests of data sets as the plugin sees them: a light front of ``run_ahead``, which the first marker loads."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.files.shared_folder import folder_of

if TYPE_CHECKING:
    from pytest_ragmetrics.run.running import Running
    from pytest_ragmetrics.run_ahead.application import Respond
    from pytest_ragmetrics.run_ahead.marker import Datasets
    from pytest_ragmetrics.run_ahead.scores import Scores
    from pytest_ragmetrics.run_ahead.suite import Suite
    from pytest_ragmetrics.run_ahead.table import Evaluate
    from pytest_ragmetrics.sample import Sample

# What the controller hands to a worker on the same machine: the folder where workers share rows.
_BOARD = "ragmetrics_board"
_NO_MARKER = '{0} is of a test per row; write @pytest.mark.rag_dataset("golden.jsonl", metrics=[...]) above the test'
_NO_ROWS = (
    "marker rag_dataset: it means nothing on a method of unittest.TestCase, nor where a hook adds it: write it above a "
    "function, or a method of another class"
)


class Rows:
    """The rows of a session's data sets: one test each, done ahead of the tests."""

    def __init__(self, running: Running, config: pytest.Config) -> None:
        self._running = running
        self._config = config
        self._suite: Suite | None = None
        worker = getattr(config, "workerinput", None)
        told = folder_of(running.run) if worker is None else worker.get(_BOARD)
        #: Where the workers of this machine share rows; made by the first that has any.
        self.board = None if told is None else Path(told)

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Make a test per row where the test has the marker."""
        if metafunc.definition.get_closest_marker("rag_dataset") is not None:
            self._datasets.parametrize(metafunc)

    def check(self, items: Sequence[pytest.Item]) -> None:
        """Raise ``pytest.UsageError`` for a marker that cannot be used, also where no test per row was made of it."""
        faults = list(self._datasets.faults) if "_datasets" in self.__dict__ else []
        marked = (item for item in items if item.get_closest_marker("rag_dataset") is not None)
        faults += [f"{item.nodeid}: {_NO_ROWS}" for item in marked if not hasattr(item, "callspec")]
        if faults:
            raise pytest.UsageError("\n".join(faults))

    def sample(self, request: pytest.FixtureRequest) -> Sample:
        """Return the row of a test with its response, and tell the session of its scores."""
        __tracebackhide__ = True
        if not hasattr(request, "param"):
            pytest.fail(_NO_MARKER.format("rag_sample"), pytrace=False)
        if self._suite is None:
            from pytest_ragmetrics.run_ahead.suite import Suite

            self._suite = Suite(self._running, self, request.session)
            self._config.pluginmanager.register(self._suite, "ragmetrics-rows")
        return self._suite.sample(request)

    def scores(self) -> Scores:
        """Return the scores of the row of the running test."""
        if self._suite is None:
            pytest.fail(_NO_MARKER.format("rag_scores"), pytrace=False)
        return self._suite.scores()

    def evaluate(self, request: pytest.FixtureRequest) -> Evaluate:
        """Return what scores a whole data set inside a test."""
        from pytest_ragmetrics.run_ahead.table import Evaluate

        return Evaluate(request.path.parent)

    def application(self, request: pytest.FixtureRequest) -> Respond | None:
        """Return what answers the rows of a test that have no response; nothing does in a dry run."""
        if self._running.dry_run:
            return None
        respond = request.getfixturevalue("rag_respond")
        if respond is not None and not callable(respond):
            msg = f"rag_respond must return a function from Sample to response, not {type(respond).__name__}"
            raise TypeError(msg)
        found: Respond | None = respond
        return found

    def share(self, node: Any) -> None:
        """Tell a worker on this machine where to share rows with the others."""
        if node.gateway.spec.popen:
            node.workerinput[_BOARD] = str(self.board)

    def close(self) -> None:
        """Remove what the workers shared."""
        if self.board is not None and not hasattr(self._config, "workerinput"):
            shutil.rmtree(self.board, ignore_errors=True)

    @cached_property
    def _datasets(self) -> Datasets:
        from pytest_ragmetrics.run_ahead.marker import Datasets

        return Datasets()
