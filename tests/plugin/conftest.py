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
from unittest import mock

import pytest

from pytest_ragmetrics.runs.records import Document, read_document
from tests.fake_openai import FakeOpenAI
from tests.forked import PYTHON, forking, workers

SERIAL: list[str] = []
ONE = ["-p", "xdist", "-n1"]
MANY = ["-p", "xdist", "-n2"]
HOW = pytest.mark.parametrize("how", [SERIAL, ONE], ids=["one process", "worker"])

# What the inner tests score: one quotation is real, the other has one word changed.
SOURCE = "Open the valve slowly. The pump needs two minutes to fill."
TRUE = 'It says "open the valve slowly".'
FALSE = 'It says "the pump needs nine minutes to fill".'
TEXTS = f"import pytest\nfrom pytest_ragmetrics import *\nSOURCE = {SOURCE!r}\nTRUE = {TRUE!r}\nFALSE = {FALSE!r}"


def write_files(folder: Path, **files: str) -> None:
    """Write files given by name, and ``texts.py``: each test file begins with all of that, and with the package."""
    for name, text in {"texts": TEXTS, **files}.items():
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        begin = "from texts import *\n" if file.name.startswith("test_") else ""
        file.write_text(begin + dedent(text).strip("\n") + "\n", "utf-8")


@dataclass(frozen=True)
class Run:
    """A run of pytest that has ended: what it printed, and the folder it ran in; the rest is that of its result."""

    result: pytest.RunResult
    folder: Path

    def __getattr__(self, name: str) -> Any:
        return getattr(self.result, name)

    def shows(self, *lines: str, **outcomes: int) -> None:
        """Check that the output has lines that match, in this order, and how many tests passed, failed and so on."""
        self.result.stdout.fnmatch_lines(lines)
        if outcomes:
            self.result.assert_outcomes(**outcomes)

    def shows_all(self, *lines: str, **outcomes: int) -> None:
        """Check the same with lines in any order."""
        self.result.stdout.fnmatch_lines_random(lines)
        self.shows(**outcomes)

    def text(self, name: str) -> str:
        """Return the text of a file in the folder."""
        return (self.folder / name).read_text("utf-8")

    def refused(self, line: str) -> None:
        """Check that the run ended before any test, with this on standard error."""
        assert self.ret == pytest.ExitCode.USAGE_ERROR
        self.result.stderr.fnmatch_lines([line])
        self.result.stdout.no_fnmatch_line("*passed*")

    @property
    def tests(self) -> dict[str, dict[str, Any]]:
        """The tests of the JSON file that the run wrote to ``out.json``, by id."""
        return {row["id"]: row for row in json.loads(self.text("out.json"))["tests"]}

    @property
    def document(self) -> Document:
        """The document that the run wrote to ``out.json``."""
        return read_document(self.folder / "out.json")

    @property
    def named(self) -> dict[str, dict[str, Any]]:
        """The same by their names alone."""
        return {name.partition("::")[2]: row for name, row in self.tests.items()}

    @property
    def gates(self) -> dict[str, dict[str, Any]]:
        """The gates of these tests, by the names of the tests."""
        return {name: row["gate"] for name, row in self.named.items() if row["gate"]}


RunPytest = Callable[..., Run]


@pytest.fixture(scope="session", autouse=True)
def _lasting(lasting_modules: None) -> Iterator[None]:
    """All of these tests run pytest inside a test.

    These runs do not look through all names of all plugins for fixtures that other decorators hide, about which pytest
    warns: it takes 7 of the 35 ms of the shortest run.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("_pytest.fixtures.FixtureManager._check_for_wrapped_fixture", lambda *_: None, raising=False)
        yield


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
    """Run pytest in-process with the plugin, on files given by name.

    ``env`` are further variables. An interrupt ends this test as well, unless the run is to be ``interrupted``.
    """
    # Neither the colours nor the verbosity that CI variables switch on are what these tests are about.
    write_files(pytester.path)
    pytester.syspathinsert()

    def run_pytest(*args: str, interrupted: bool = False, env: dict[str, str] | None = None, **files: str) -> Run:
        write_files(pytester.path, **files)
        how: dict[str, Any] = {"plugins": [workers()], "no_reraise_ctrlc": interrupted}
        with mock.patch.dict(os.environ, env or {}):
            return Run(pytester.runpytest_inprocess("-p", "ragmetrics", *args, **how), pytester.path)

    return run_pytest


@pytest.fixture
def server(named_server: FakeOpenAI) -> FakeOpenAI:
    """Return a running provider, which the environment names to every run inside the test."""
    return named_server


def unpacked(page: str) -> str:
    """Return a page with what is packed in it written out: in the base64 of it any short word may stand by chance."""
    return re.sub(
        r'(?<=<script type="application/octet-stream")([^>]*>)([^<]*)',
        lambda found: found[1] + zlib.decompress(base64.b64decode(found[2]), -15).decode(),
        page,
    )


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> RunPytest:
    """Run pytest in a process of its own for a fixture whose run several tests read.

    Takes arguments and files like ``run``; ``provider`` is the server that the environment names, ``env`` are further
    variables.
    """

    def run_pytest(
        *args: str, provider: FakeOpenAI | None = None, env: dict[str, str] | None = None, **files: str
    ) -> Run:
        folder = tmp_path_factory.mktemp("run")
        write_files(folder, **files)
        foreign = ("OPENAI_", "ANTHROPIC_", "RAGMETRICS_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
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
