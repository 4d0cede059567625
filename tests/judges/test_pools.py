"""Requests through several pools: few connections for few requests, and all of them closed."""

from __future__ import annotations

import asyncio
import ssl

import openai
import pytest

from pytest_ragmetrics.judges.api import pooled_transport
from pytest_ragmetrics.judges.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from tests.asking import ask
from tests.fake_openai import FakeOpenAI


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the proxies of the machine."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


class Served(FakeOpenAI):
    """A server that counts connections."""

    connections = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await super()._serve(reader, writer)


def test_one_after_the_other_needs_one_connection() -> None:
    """As in a suite that asks from test to test."""

    async def one_by_one(judge: OpenAIJudge) -> None:
        for number in range(6):
            await judge.complete(judge.request(ListClaims(text=f"{number}.")))
        await judge.aclose()

    with Served() as server:
        asyncio.run(one_by_one(OpenAIJudge("fake", base_url=server.base_url, api_key="k")))
        assert (server.calls, server.connections) == (6, 1)


def test_many_at_once_share_pools_of_a_few_connections() -> None:
    """The fifth request in flight is the first of the second pool; when all are done, the first pool is used again."""
    with Served(waves=[20]) as server:
        judge = OpenAIJudge("fake", base_url=server.base_url, api_key="k")
        ask(judge, *(ListClaims(text=f"{number}.") for number in range(20)))
        assert (server.in_flight_max, server.connections) == (20, 20)
    with Served(waves=[5, 1]) as server:
        transport = pooled_transport(openai, secure=False)

        async def main() -> None:
            http = openai.DefaultAsyncHttpxClient(transport=transport)
            async with openai.AsyncOpenAI(api_key="k", base_url=server.base_url, http_client=http) as sdk:
                for count in (5, 1):
                    await asyncio.gather(*(sdk.embeddings.create(model="m", input=f"{n}") for n in range(count)))

        asyncio.run(main())
        assert (len(transport._pools), transport._busy, server.connections) == (2, [0, 0], 5)


def test_proxies_and_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pools share the certificates that they check; behind a proxy the client of the SDK is used instead."""
    verify = pooled_transport(openai, secure=True)._verify
    assert isinstance(verify, ssl.SSLContext)
    assert (verify.verify_mode, verify.check_hostname) == (ssl.CERT_REQUIRED, True)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert pooled_transport(openai, secure=True) is None
