"""The pytest plugin: every hook and fixture, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics import hookspec, session
from pytest_ragmetrics.report.recording import Collector
from pytest_ragmetrics.report.terminal import header, write_summary
from pytest_ragmetrics.running import Running
from pytest_ragmetrics.settings import add_options, read_settings

if TYPE_CHECKING:
    from pytest_ragmetrics.cache.desk import CachingDesk
    from pytest_ragmetrics.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge

RUNNING = pytest.StashKey[Running]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options and ini keys."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    pluginmanager.add_hookspecs(hookspec)


def pytest_configure(config: pytest.Config) -> None:
    """Check the settings, start recording, and report where this process is the one that reports."""
    config.addinivalue_line("markers", "rag_judge(spec): the judge of this test, as --rag-judge takes it.")
    running = config.stash[RUNNING] = Running(config, read_settings(config))
    session.enter(running)
    config.pluginmanager.register(Recording(running), "ragmetrics-recording")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporting(running), "ragmetrics-reporting")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop recording and close what the run opened."""
    running = config.stash.get(RUNNING, None)
    if running is not None:
        session.leave(running)
        running.close()


def pytest_report_header(config: pytest.Config) -> str:
    """Say who judges, who embeds, and what the cache does."""
    return header(config.stash[RUNNING].settings)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain a failed comparison with a result, on whichever side it stands."""
    if "pytest_ragmetrics.result" not in sys.modules:
        return None
    from pytest_ragmetrics.explain import explain_comparison

    return explain_comparison(op, left, right)


class Recording:
    """The hooks that gather what a test scored, in every process that runs tests."""

    def __init__(self, running: Running) -> None:
        self._running = running

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Check the markers of the tests that are to run."""
        self._running.check(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin an attempt at a test."""
        self._running.begin(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the records on the report."""
        report = yield
        self._running.attach(report)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that is skipped."""
        self._running.ended(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that is skipped."""
        self._running.ended(report)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note that this run leaves tests out."""
        self._running.left_out += len(items)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the controller what this worker used."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["ragmetrics"] = self._running.to_row()


class Reporting:
    """The hooks that turn reports into tables and files, in the process that reports."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._collector = Collector()
        self._notes: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in a report, made here or by a worker."""
        self._collector.add(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which run it belongs to."""
        node.workerinput["ragmetrics"] = self._running.run

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what a worker used; one that crashed has nothing to tell."""
        self._running.add_worker(getattr(node, "workeroutput", {}).get("ragmetrics"))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the cassette and the files."""
        self._notes = self._running.save_cassette(exitstatus)
        files = self._running.settings.files()
        if files:
            from pytest_ragmetrics.report.files import write_files

            self._notes += write_files(self._collector.document(exitstatus), files)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Show the table of metrics and where the files are."""
        write_summary(terminalreporter, self._collector.document(exitstatus), self._notes)


@pytest.fixture(name="rag_judge")
def _rag_judge(request: pytest.FixtureRequest) -> Judge:
    """Return the judge of this test: that of the rag_judge marker, else of --rag-judge."""
    return request.config.stash[RUNNING].judge()


@pytest.fixture(name="rag_embedder")
def _rag_embedder(request: pytest.FixtureRequest) -> Embedder:
    """Return the embedder of this run."""
    return request.config.stash[RUNNING].embedder()


@pytest.fixture(name="rag_cache")
def _rag_cache(request: pytest.FixtureRequest) -> CachingDesk:
    """Return the cache of this run, which counts the requests it made and those it saved."""
    return request.config.stash[RUNNING].desk
