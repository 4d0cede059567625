"""The pytest plugin: options, fixtures, and the objects that have its hooks, one for each concern."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics.plugin import hookspec
from pytest_ragmetrics.plugin.digest import DigestReport
from pytest_ragmetrics.plugin.gates.plugin import GatePlugin
from pytest_ragmetrics.plugin.observers import Observers
from pytest_ragmetrics.plugin.report import RunReport
from pytest_ragmetrics.plugin.rows.plugin import RowsPlugin
from pytest_ragmetrics.plugin.session import PytestSession
from pytest_ragmetrics.plugin.settings import Settings, add_options, read_settings

if TYPE_CHECKING:
    from pytest_ragmetrics.cache.transport import CachedTransport
    from pytest_ragmetrics.core.sample import Sample
    from pytest_ragmetrics.judges.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.plugin.rows.dataset_tests import Evaluate, Scores

SESSION = pytest.StashKey[PytestSession]()
ROWS = pytest.StashKey[RowsPlugin]()

#: The local judge is a heuristic, and every mention of it says so.
_LABELS = {"local": "local (heuristic)"}

MARKERS = (
    "rag_dataset(source, *, metrics=[...] or {metric: bound}, limit=None, where=None): one test per row, scored ahead.",
    'rag_dataset(source, ..., turns="each", contexts_from=None): one test per answer of each conversation.',
    "rag_dataset(source, ..., answers=3): rag_respond answers each row three times, and each answer is a test.",
    "rag_gate(metric, *, mean=, rate=, min=, max=, p95=, confidence=, vacuous=): a bound for all tests of a function.",
    "rag_gate(metric, *, rate=, min=, all_pass=True): a row is good only if all its answers are.",
    "rag_gate(metric, ..., confidence=, stop_when_decided=True): no further row is scored once its set is decided.",
    "rag_gate(metric, *, regression=True, alpha=, by=, inconclusive=, vacuous=): no drop since a baseline.",
    "rag_judge(spec): the judge of this test, as --rag-judge takes it.",
    "rag_votes(k): how many judgements make a score in this test.",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options and ini keys."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    pluginmanager.add_hookspecs(hookspec)


def pytest_configure(config: pytest.Config) -> None:
    """Check the settings, start recording, and report where this process is the one that reports."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    session = config.stash[SESSION] = PytestSession(config, read_settings(config))
    report = None if session.is_worker else RunReport(session, config.rootpath)
    gates = GatePlugin(session, config, report)
    mutation = None
    if report is not None and session.settings.mutate is not None:
        from pytest_ragmetrics.plugin.rows.mutants import MutationReport

        mutation = MutationReport(session, gates)
    config.stash[ROWS] = RowsPlugin(session, gates)
    # A wrapper runs outside those that are registered before it.
    parts = {
        "cassette": session.cassette,
        "workers": session.workers,
        "session": session,
        "markers": session.markers,
        "recorder": session.recorder,
        "observers": Observers(session.recorder),
        "digest": DigestReport(config) if session.settings.digest else None,
        "reporting": report,
        "gating": gates,
        "mutation": mutation,
        "rows": config.stash[ROWS],
    }
    for name, part in parts.items():
        if part is not None:
            config.pluginmanager.register(part, f"ragmetrics-{name}")


def pytest_report_header(config: pytest.Config) -> str:
    """Return the line on judge, embedder and cache."""
    settings = config.stash[SESSION].settings
    judge, embedder = (_LABELS.get(spec, spec) for spec in (settings.judge, settings.embedder))
    dry = ", dry run: nothing is asked" if settings.dry_run else ""
    shared = "" if settings.cache_url is None else _shared_cache(settings)
    return f"ragmetrics: judge {judge}, embedder {embedder}, cache {settings.cache}{shared}{dry}"


def _shared_cache(settings: Settings) -> str:
    from pytest_ragmetrics.cache.remote import is_written, shown_url

    url = settings.cache_url or ""
    if settings.cassette is not None:
        return ", shared cache not used beside a cassette"
    if settings.cache == "off":
        return ""
    mode = settings.cache_url_mode if is_written(url, settings.cache_url_mode) else "read"
    return f", shared cache {shown_url(url)} ({mode})"


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain a failed comparison with a result, on either side."""
    result = sys.modules.get("pytest_ragmetrics.core.result")
    if result is None or (not isinstance(left, result.MetricResult) and not isinstance(right, result.MetricResult)):
        return None
    from pytest_ragmetrics.runs.wording.failures import explain_comparison

    return explain_comparison(op, left, right)


@pytest.fixture(name="rag_judge")
def _rag_judge(request: pytest.FixtureRequest) -> Judge:
    """Return the judge of this test: that of the rag_judge marker, else of --rag-judge."""
    return request.config.stash[SESSION].judge()


@pytest.fixture(name="rag_embedder")
def _rag_embedder(request: pytest.FixtureRequest) -> Embedder:
    """Return the embedder of this run."""
    return request.config.stash[SESSION].embedder()


@pytest.fixture(name="rag_cache")
def _rag_cache(request: pytest.FixtureRequest) -> CachedTransport:
    """Return the cache of this run, which counts the requests it made and those it saved."""
    return request.config.stash[SESSION].engine.cache


@pytest.fixture(name="rag_respond", scope="session")
def _rag_respond() -> None:
    """Override this to return the application under test: a function from ``Sample`` to its response, async or not.

    It is called once for each test of a row, with ``answers=3`` or ``--rag-answers=3`` three times, where
    ``sample.metadata["answer"]`` is 1, 2, 3; a rerun does not call it again. It may be called before its test runs, and
    from several threads. An exception fails the test of the row, and a skip skips it. A conversation that ends in
    messages of the user is answered message by message, in one process; see ``ragmetrics docs rows``.
    """


@pytest.fixture(name="rag_sample")
def _rag_sample(request: pytest.FixtureRequest) -> Sample:
    """Return the row of this test, with the response that ``rag_respond`` gave where it had none."""
    __tracebackhide__ = True
    return request.config.stash[ROWS].tests(request).sample(request)


@pytest.fixture(name="rag_scores")
def _rag_scores(request: pytest.FixtureRequest, rag_sample: Sample) -> Scores:  # noqa: ARG001 - its row is done then
    """Return the results of this row by metric; looking up an unscored one raises."""
    return request.config.stash[ROWS].tests(request).scores()


@pytest.fixture(name="rag_evaluate")
def _rag_evaluate(request: pytest.FixtureRequest) -> Evaluate:
    """Return ``rag_evaluate(samples_or_path, metrics) -> Evaluation``, for a whole table in one test."""
    from pytest_ragmetrics.plugin.rows.dataset_tests import Evaluate

    return Evaluate(request.path.parent)
