"""What holds for every test."""

from __future__ import annotations

import asyncio
import compileall
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

if TYPE_CHECKING:
    from tests.fake_openai import FakeOpenAI

# A busy machine is no fault of a property: how long an example takes is not judged.
settings.register_profile("few", deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("many", settings.get_profile("few"), max_examples=40)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))

#: What the names of variables begin with that this package, or what judges it, reads.
_MEANT_ELSEWHERE = ("ANTHROPIC_", "CI_", "GITHUB_", "GITLAB_", "OPENAI_", "RAGMETRICS_")


def pytest_configure(config: pytest.Config) -> None:
    """Keep what hypothesis reads out of Unicode and this package in pytest's cache; heed interrupts."""
    # Before a test imports it: see `IMPORTED` of tests/forked.py.
    pytest.register_assert_rewrite("xdist")
    if cache := getattr(config, "cache", None):  # there is none with -p no:cacheprovider
        set_hypothesis_home_dir(cache.mkdir("hypothesis"))
    if not hasattr(config, "workerinput"):
        # Nested runs write no compiled modules, and would compile the package anew each. With PYTHONPYCACHEPREFIX in a
        # temporary folder they would compile openai and pytest as well: 8 s of processor time instead of 0.5 s.
        compileall.compile_dir(Path(__file__).parent.parent / "pytest_ragmetrics", quiet=2)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So it is in the background of a shell, and processes that a test interrupts would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector the thousands of tests: they stay, and going through them takes half of this time.

    Rewritten modules of tests are kept, as those of the package are: rewriting them takes 2 s.
    """
    gc.disable()
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = before
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


def pytest_sessionfinish() -> None:
    """Search for what nobody closed once: pytest does it ten times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_uninvited_plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have runs of pytest inside a test load the plugins they name and no others: those are slow, and warn.

    What they print does not depend on whether this run is one of CI, where pytest cuts nothing short, nor on the
    providers and proxies that this machine is set up for.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        # Temporary folders of nested runs are among those of this run: there they would delete those of earlier runs.
        patch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path_factory.mktemp("nested")))
        # Nor is what a test writes anew within a second taken for what it was.
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        patch.setattr(sys, "dont_write_bytecode", True)
        # Measured are the workers: all processes that tests start take half as long again, for 1 % of coverage.
        for variable in ("CI", "BUILD_NUMBER", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COVERAGE_PROCESS_CONFIG"):
            patch.delenv(variable, raising=False)
        for variable in list(os.environ):
            if variable.startswith(_MEANT_ELSEWHERE) or variable.lower().endswith("_proxy"):
                patch.delenv(variable)
        yield


@pytest.fixture(scope="session")
def lasting_modules() -> None:
    """Import what a request takes: a run inside a test forgets what it imports, and not all can be imported twice."""
    import pytest_ragmetrics
    from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
    from pytest_ragmetrics.judges.tasks import ListClaims
    from tests.fake_openai import FakeOpenAI
    from tests.forked import IMPORTED

    async def answered(judge: OpenAIJudge) -> None:
        await judge.ask(ListClaims(text="It hums."))
        await judge.aclose()

    for module in IMPORTED:
        import_module(module)
    for name in dir(pytest_ragmetrics):
        getattr(pytest_ragmetrics, name)
    with FakeOpenAI() as server, pytest.MonkeyPatch.context() as patch:
        for proxy in ("", "http://127.0.0.1:9"):  # behind one, which the server does not need, the client is httpx
            patch.setenv("http_proxy", proxy)
            patch.setenv("no_proxy", "127.0.0.1")
            asyncio.run(answered(OpenAIJudge("fake", base_url=server.base_url, api_key="sk-fake")))


@pytest.fixture(scope="session")
def _running() -> Iterator[FakeOpenAI]:
    """Run one server for all tests."""
    from tests.fake_openai import FakeOpenAI

    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def server(_running: FakeOpenAI) -> FakeOpenAI:
    """Return a running server as it begins."""
    _running.restart()
    return _running


@pytest.fixture
def named_server(_running: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> FakeOpenAI:
    """Return it with the environment naming it."""
    _running.restart()
    monkeypatch.setenv("OPENAI_BASE_URL", _running.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake")
    return _running


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test leaves a cache where those of others are found by looking upward: above its own folder."""
    yield
    assert not (tmp_path_factory.getbasetemp() / ".ragmetrics").exists()
