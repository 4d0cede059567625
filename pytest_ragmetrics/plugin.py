"""The pytest plugin: every hook and fixture, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics import context as session
from pytest_ragmetrics import hookspec
from pytest_ragmetrics.gate_plugin import GatePlugin
from pytest_ragmetrics.report.terminal import header
from pytest_ragmetrics.reporting import RunReport
from pytest_ragmetrics.session import PytestSession
from pytest_ragmetrics.settings import add_options, read_settings

if TYPE_CHECKING:
    from pytest_ragmetrics.cache.transport import CachedTransport
    from pytest_ragmetrics.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.prefetch.dataset_tests import Evaluate, Scores
    from pytest_ragmetrics.sample import Sample

RUNNING = pytest.StashKey[PytestSession]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options and ini keys."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    pluginmanager.add_hookspecs(hookspec)


def pytest_configure(config: pytest.Config) -> None:
    """Check the settings, start recording, and report where this process is the one that reports."""
    config.addinivalue_line(
        "markers", "rag_dataset(source, *, metrics=(), limit=None, where=None): one test per row, scored ahead."
    )
    config.addinivalue_line(
        "markers", "rag_gate(metric, *, mean=, rate=, min=, max=, confidence=): a bound for all tests of a function."
    )
    config.addinivalue_line("markers", "rag_judge(spec): the judge of this test, as --rag-judge takes it.")
    config.addinivalue_line("markers", "rag_votes(k): how many judgements make a score in this test.")
    running = config.stash[RUNNING] = PytestSession(config, read_settings(config))
    session.enter(running)
    config.pluginmanager.register(Recording(running), "ragmetrics-recording")
    config.pluginmanager.register(Gating(running.gates), "ragmetrics-gating")
    if not hasattr(config, "workerinput"):
        leavings = RunReport(running, config.rootpath)
        running.gates.collector = leavings.collector
        config.pluginmanager.register(Reporting(running, leavings), "ragmetrics-reporting")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop recording and close what the run opened."""
    running = config.stash.get(RUNNING, None)
    if running is not None:
        session.leave(running)
        running.close()


def pytest_report_header(config: pytest.Config) -> str:
    """Say who judges, who embeds, and what the cache does."""
    return header(config.stash[RUNNING].settings)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test per row of a data set."""
    metafunc.config.stash[RUNNING].rows.parametrize(metafunc)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain a failed comparison with a result, on whichever side it stands."""
    if "pytest_ragmetrics.result" not in sys.modules:
        return None
    from pytest_ragmetrics.explain import explain_comparison

    return explain_comparison(op, left, right)


class Recording:
    """The hooks that gather what a test scored, in every process that runs tests."""

    def __init__(self, running: PytestSession) -> None:
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
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Hand the records of a test to the observers, once all of it has run."""
        ran = yield
        self._running.show_observers(item)
        return ran

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the records on the report."""
        report = yield
        self._running.attach(report)
        self._running.gates.attach(item, report)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that is skipped."""
        self._running.cassette.ended(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that is skipped."""
        self._running.cassette.ended(report)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note that this run leaves tests out."""
        self._running.cassette.left_out += len(items)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the controller what this worker used."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["ragmetrics"] = self._running.to_row()


class Gating:
    """The hooks that make a test of each threshold over a whole set."""

    def __init__(self, gates: GatePlugin) -> None:
        self._gates = gates

    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makeitem(self) -> Generator[None, object, object]:
        """Look for gates on what a function makes."""
        made = yield
        self._gates.found(made)
        return made

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Place the gates when all others have selected and ordered the tests."""
        yield
        self._gates.place(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Report the gates that workers told of."""
        ran = yield
        self._gates.report(session)
        return ran


class Reporting:
    """The hooks that turn reports into tables and files, in the process that reports."""

    def __init__(self, running: PytestSession, leavings: RunReport) -> None:
        self._running = running
        self._leavings = leavings

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in a report, made here or by a worker."""
        self._leavings.add(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which run it belongs to."""
        self._running.equip(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what a worker used; one that crashed has nothing to tell."""
        self._running.add_worker(node)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the cassette and the files, once xdist has shut down its workers."""
        session.exitstatus = self._leavings.finish(exitstatus)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Show the table of metrics and where the files are."""
        self._leavings.tell(terminalreporter, exitstatus)

    def pytest_unconfigure(self) -> None:
        """Say what the summary did not get to say."""
        self._leavings.close()


@pytest.fixture(name="rag_judge")
def _rag_judge(request: pytest.FixtureRequest) -> Judge:
    """Return the judge of this test: that of the rag_judge marker, else of --rag-judge."""
    return request.config.stash[RUNNING].judge()


@pytest.fixture(name="rag_embedder")
def _rag_embedder(request: pytest.FixtureRequest) -> Embedder:
    """Return the embedder of this run."""
    return request.config.stash[RUNNING].embedder()


@pytest.fixture(name="rag_cache")
def _rag_cache(request: pytest.FixtureRequest) -> CachedTransport:
    """Return the cache of this run, which counts the requests it made and those it saved."""
    return request.config.stash[RUNNING].desk


@pytest.fixture(name="rag_respond", scope="session")
def _rag_respond() -> None:
    """Override this to return the application under test: a function from ``Sample`` to its response, async or not.

    It is asked once for each test of a row: two tests over one data set ask it twice, the judge only once if they are
    answered alike. A rerun of a test does not ask it again. It may be called before its test runs and from several
    threads; what it raises fails the test of the row, and a skip skips it.
    """


@pytest.fixture(name="rag_sample")
def _rag_sample(request: pytest.FixtureRequest) -> Sample:
    """Return the row of this test, with the response that ``rag_respond`` gave where it had none."""
    __tracebackhide__ = True
    return request.config.stash[RUNNING].rows.sample(request)


@pytest.fixture(name="rag_scores")
def _rag_scores(request: pytest.FixtureRequest, rag_sample: Sample) -> Scores:  # noqa: ARG001 - its row is done then
    """Return the results of this row by metric; one that is unscored raises when it is looked up."""
    return request.config.stash[RUNNING].rows.scores()


@pytest.fixture(name="rag_evaluate")
def _rag_evaluate(request: pytest.FixtureRequest) -> Evaluate:
    """Return ``rag_evaluate(samples_or_path, metrics) -> Evaluation``, for a whole table in one test."""
    return request.config.stash[RUNNING].rows.evaluate(request)
