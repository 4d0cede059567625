"""A short way to run a command of ``ragmetrics`` inside a test, and a provider that the environment names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_ragmetrics.cli import main
from tests.fake_openai import FakeOpenAI

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ragmetrics(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command; returns its status, 2 where arguments are refused, what it printed and what it said of errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as refused:
            status = int(refused.code or 0)
        return (status, *capsys.readouterr())

    return run


@pytest.fixture
def server(named_server: FakeOpenAI) -> FakeOpenAI:
    """Return a running server that the environment names."""
    return named_server
