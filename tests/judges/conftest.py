"""A fake provider and a clean environment for every judge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fake_openai import FakeOpenAI


@pytest.fixture(scope="package")
def _running() -> Iterator[FakeOpenAI]:
    """Run one server for all tests of judges."""
    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def server(_running: FakeOpenAI) -> FakeOpenAI:
    """Return a running server as it begins."""
    _running.reset()
    return _running


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide whatever providers this machine is set up for."""
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
        monkeypatch.delenv(f"{provider}_BASE_URL", raising=False)
