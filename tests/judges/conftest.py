"""Both HTTP clients for judges, and SDKs that do not pause."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.fixture(params=["aiohttp", "httpx"])
def _both_clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use both HTTP clients: behind a proxy, which the server does not need, it is httpx."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    if request.param == "httpx":
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")


@pytest.fixture
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the SDKs try again after 10 ms, not half a second, unless the server says when."""
    for name in ("openai", "anthropic"):
        monkeypatch.setattr(import_module(f"{name}._base_client"), "MAX_RETRY_DELAY", 0.01)
