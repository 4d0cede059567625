"""A short way to run pytest inside a test, and a provider for it to ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from pytest_ragmetrics.judges.judge import DirectTransport
from pytest_ragmetrics.judges.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from tests.fake_openai import FakeOpenAI

RunPytest = Callable[..., pytest.RunResult]

# What the inner tests score: one quotation is real, the other has one word changed.
SOURCE = "Open the valve slowly. The pump needs two minutes to fill."
TRUE = 'It says "open the valve slowly".'
FALSE = 'It says "the pump needs nine minutes to fill".'


@pytest.fixture(scope="session", autouse=True)
def _lasting_modules() -> None:
    """Import what a request takes: a run inside a test forgets what it imports, and not all can be imported twice."""
    for module in (
        "numpy",
        "diskcache",
        "filelock",
        "genai_prices",
        "pytest_ragmetrics.engine",
        "pytest_ragmetrics.metrics",
    ):
        import_module(module)
    with FakeOpenAI() as server:
        judge = OpenAIJudge("fake", base_url=server.base_url, api_key="sk-fake")
        asyncio.run(_answered(judge))


async def _answered(judge: OpenAIJudge) -> None:
    await judge.ask(ListClaims(text="It hums."), desk=DirectTransport())
    await judge.aclose()


@pytest.fixture
def run(pytester: pytest.Pytester) -> RunPytest:
    """Run pytest in-process with the plugin, on files given by name and the texts every example uses."""
    # Neither the colours nor the verbosity that CI variables switch on are what these tests are about.
    pytester.makepyfile(texts=f"SOURCE = {SOURCE!r}\nTRUE = {TRUE!r}\nFALSE = {FALSE!r}")
    pytester.syspathinsert()

    def run_pytest(*args: str, **files: str) -> pytest.RunResult:
        if files:
            pytester.makepyfile(**files)
        return pytester.runpytest_inprocess("-p", "ragmetrics", *args)

    return run_pytest


@pytest.fixture
def scored(pytester: pytest.Pytester) -> Callable[[], dict[str, dict[str, Any]]]:
    """Return the tests of the JSON file that the run wrote to ``out.json``, by id."""

    def read() -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in json.loads((pytester.path / "out.json").read_text("utf-8"))["tests"]}

    return read


@pytest.fixture
def no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide whatever providers this machine is set up for."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    for setting in ("JUDGE", "EMBEDDER", "CACHE", "CACHE_DIR", "CONCURRENCY"):
        monkeypatch.delenv(f"RAGMETRICS_{setting}", raising=False)


@pytest.fixture
def server(no_provider: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    """Return a running provider, which the environment names to every run inside the test."""
    with FakeOpenAI() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-fake")
        yield running
