"""Both HTTP clients for judges."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest


@pytest.fixture(params=["aiohttp", "httpx"])
def _both_clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use both HTTP clients: behind a proxy, which the server does not need, it is httpx."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    if request.param == "httpx":
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")


@pytest.fixture
def sdk(request: pytest.FixtureRequest) -> ModuleType:
    """Import the SDK of that name, where it is used: that of Anthropic takes a second."""
    return import_module(request.param)
