"""Both HTTP clients for judges."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["aiohttp", "httpx"])
def _both_clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use both HTTP clients: behind a proxy, which the server does not need, it is httpx."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    if request.param == "httpx":
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
