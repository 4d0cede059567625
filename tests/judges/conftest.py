"""A clean environment for every judge."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide whatever providers and proxies this machine is set up for."""
    hidden = [f"{provider}_{part}" for provider in ("OPENAI", "ANTHROPIC") for part in ("API_KEY", "BASE_URL")]
    proxies = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    for name in [*hidden, *proxies, *map(str.upper, proxies)]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["aiohttp", "httpx"])
def _both_clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use both HTTP clients: behind a proxy, which the server does not need, it is httpx."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    if request.param == "httpx":
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
