"""A short way to run pytest inside a test, and a provider for it to ask."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI
from tests.forked import PYTHON, forking, workers

RunPytest = Callable[..., pytest.RunResult]
Scored = Callable[[], dict[str, dict[str, Any]]]
SERIAL: list[str] = []
MANY = ["-p", "xdist", "-n2"]

# What the inner tests score: one quotation is real, the other has one word changed.
SOURCE = "Open the valve slowly. The pump needs two minutes to fill."
TRUE = 'It says "open the valve slowly".'
FALSE = 'It says "the pump needs nine minutes to fill".'
TEXTS = f"SOURCE = {SOURCE!r}\nTRUE = {TRUE!r}\nFALSE = {FALSE!r}"


@pytest.fixture(scope="session", autouse=True)
def _lasting(lasting_modules: None) -> None:
    """All of these tests run pytest inside a test."""


@pytest.fixture(scope="session", autouse=True)
def _forking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fork the processes of nested runs."""
    with forking(str(tmp_path_factory.mktemp("forking") / "socket")):
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what only reads runs in processes of their own."""
    for item in items:
        if "run_once" in getattr(item, "fixturenames", ()):
            item.add_marker("processes")


@pytest.fixture
def run(pytester: pytest.Pytester) -> RunPytest:
    """Run pytest in-process with the plugin, on files given by name and the texts every example uses."""
    # Neither the colours nor the verbosity that CI variables switch on are what these tests are about.
    pytester.makepyfile(texts=TEXTS)
    pytester.syspathinsert()

    def run_pytest(*args: str, **files: str) -> pytest.RunResult:
        if files:
            pytester.makepyfile(**files)
        return pytester.runpytest_inprocess("-p", "ragmetrics", *args, plugins=[workers()])

    return run_pytest


@pytest.fixture
def scored(pytester: pytest.Pytester) -> Callable[[], dict[str, dict[str, Any]]]:
    """Return the tests of the JSON file that the run wrote to ``out.json``, by id."""

    def read() -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in json.loads((pytester.path / "out.json").read_text("utf-8"))["tests"]}

    return read


@pytest.fixture
def server(named_server: FakeOpenAI) -> FakeOpenAI:
    """Return a running provider, which the environment names to every run inside the test."""
    return named_server


@dataclass(frozen=True)
class Run:
    """A run of pytest that has ended: what it printed, and the folder it ran in."""

    result: pytest.RunResult
    folder: Path

    def text(self, name: str) -> str:
        """Return the text of a file in the folder."""
        return (self.folder / name).read_text("utf-8")

    @property
    def tests(self) -> dict[str, dict[str, Any]]:
        """The tests of the JSON file that the run wrote to ``out.json``, by id."""
        return {row["id"]: row for row in json.loads(self.text("out.json"))["tests"]}


RunOnce = Callable[..., Run]


def unpacked(page: str) -> str:
    """Return a page with what is packed in it written out: in the base64 of it any short word may stand by chance."""
    return re.sub(
        r'(?<=<script type="application/octet-stream")([^>]*>)([^<]*)',
        lambda found: found[1] + zlib.decompress(base64.b64decode(found[2]), -15).decode(),
        page,
    )


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> RunOnce:
    """Run pytest in a process of its own for a fixture whose run several tests read.

    Takes arguments and files like ``run``; ``provider`` is the server that the environment names, ``env`` are further
    variables, ``folder`` is that of an earlier run.
    """

    def run_pytest(
        *args: str,
        provider: FakeOpenAI | None = None,
        env: dict[str, str] | None = None,
        folder: Path | None = None,
        **files: str,
    ) -> Run:
        folder = folder or tmp_path_factory.mktemp("run")
        for name, text in {"texts": TEXTS, **files}.items():
            file = folder / f"{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text), "utf-8")
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OPENAI_", "ANTHROPIC_", "RAGMETRICS_"))
        }
        environment |= {"PY_COLORS": "0", "HOME": str(folder), **(env or {})}
        if provider is not None:
            environment |= {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "sk-fake"}
        command = [*PYTHON, "-m", "pytest", "-p", "ragmetrics", *args]
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        result = pytest.RunResult(ended.returncode, ended.stdout.splitlines(), ended.stderr.splitlines(), 0.0)
        return Run(result=result, folder=folder)

    return run_pytest


@pytest.fixture(scope="module")
def shared_server() -> Iterator[FakeOpenAI]:
    """Return a running provider for the shared runs of a module; pass it as ``provider``."""
    with FakeOpenAI() as running:
        yield running
