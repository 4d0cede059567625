"""Connections of both HTTP clients: few for few requests, many for many, and what is said of those that fail."""

from __future__ import annotations

import asyncio
import gc
import json
import ssl
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, repeat
from threading import Thread
from typing import Any

import anthropic
import openai
import pytest

from pytest_ragmetrics import loop
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.anthropic import AnthropicJudge
from pytest_ragmetrics.judges.api import ApiJudge
from pytest_ragmetrics.judges.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transport import JudgeOutageError
from pytest_ragmetrics.judges.wire import http_client
from tests.asking import ask
from tests.fake_openai import FakeOpenAI

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True, params=["own", "behind a proxy"])
def _clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the proxies of the machine; with one, that this server does not need, httpx is used."""
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    if request.param != "own":
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")


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


def test_many_at_once_wait_for_no_connection() -> None:
    """The limiter bounds them, not a pool; by itself aiohttp has 100 connections."""
    with Served(waves=[130]) as server:
        judge = OpenAIJudge("fake", base_url=server.base_url, api_key="k")
        ask(judge, *(ListClaims(text=f"{number}.") for number in range(130)))
        assert (server.in_flight_max, server.connections) == (130, 130)


@pytest.mark.parametrize("sdk", [openai, anthropic])
@pytest.mark.parametrize(("url", "checked"), [("https://judge.test/v1", True), ("http://judge.test/v1", False)])
def test_certificates_are_checked_where_there_are_some(sdk: Any, url: str, checked: bool) -> None:
    """Loading them takes long."""
    transport = http_client(sdk, url)._transport
    context: ssl.SSLContext = getattr(transport, "ssl_context", None) or transport._pool._ssl_context
    wanted = (ssl.CERT_REQUIRED, True) if checked else (ssl.CERT_NONE, False)
    assert (context.verify_mode, context.check_hostname) == wanted


@contextmanager
def raw_server(*contents: bytes) -> Iterator[str]:
    """Answer each request with the next of these bytes, the last as often as asked, and close the connection."""
    served = asyncio.new_event_loop()
    following = chain(contents, repeat(contents[-1]))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(next(following))
        writer.close()

    server = served.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = Thread(target=served.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        served.call_soon_threadsafe(served.stop)
        thread.join()
        server.close()
        served.close()


_FULL = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n"


@pytest.mark.parametrize("make", [OpenAIJudge, AnthropicJudge])
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", id="another protocol"),
        pytest.param(_FULL[:20], id="half a head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", id="an impossible length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA b\x01: 1\r\nContent-Length: 0\r\n\r\n", id="an impossible header"),
    ],
)
def test_a_lost_connection_is_no_timeout(make: Callable[..., ApiJudge[Any]], content: bytes) -> None:
    """It names the address to check without the token in it, and is an outage."""
    with raw_server(content) as url:
        judge = make("fake", base_url=f"{url}?token=t0ken", api_key="k3y-k3y", retries=0, timeout=5)
        with pytest.raises(JudgeError) as failed:
            ask(judge, ListClaims(text="It climbs."))
    message = str(failed.value)
    assert isinstance(failed.value, JudgeOutageError), message
    assert f"{judge.name}: {url} " in message
    assert f"check the network and {judge.vendor.url_variable}" in message
    assert not any(hidden in message for hidden in ("no answer within", "t0ken", "k3y-k3y"))


def test_what_is_not_http_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """With aiohttp, whose error OpenAI's SDK does not know; a single request is not."""
    monkeypatch.delenv("http_proxy", raising=False)
    claims = ListClaims(text="It climbs.")
    content = json.dumps({"choices": [{"message": {"content": '{"claims": ["It climbs."]}'}}]}).encode()
    good = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content) + content
    with raw_server(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", good) as url:
        (answered,) = ask(OpenAIJudge("fake", base_url=url, api_key="k", retries=0), claims)
        assert answered.answer == ("It climbs.",)
    with raw_server(b"SSH-2.0-OpenSSH_9.6\r\n\r\n") as url:
        with pytest.raises(JudgeOutageError, match=r"does not answer in HTTP, after 1 retry \("):
            ask(OpenAIJudge("fake", base_url=url, api_key="k", retries=0), claims)
        judge = OpenAIJudge("fake", base_url=url, api_key="k", retries=0)

        async def once() -> None:
            try:
                await judge.complete(replace(judge.request(claims), is_single=True))
            finally:
                await judge.aclose()

        with pytest.raises(JudgeOutageError, match=r"does not answer in HTTP \("):
            asyncio.run(once())


def test_a_password_in_the_address_is_sent() -> None:
    """A server behind a gate of its own takes it instead of the key."""
    with FakeOpenAI() as server:
        url = server.base_url.replace("//", "//me:s3cret@")
        ask(OpenAIJudge("fake", base_url=url, api_key="k"), ListClaims(text="It climbs."))
        assert server.requests[0].headers["authorization"] == "Basic bWU6czNjcmV0"


@pytest.mark.parametrize("closed", [True, False])
def test_a_client_ends_with_the_loop(caplog: pytest.LogCaptureFixture, closed: bool) -> None:
    """Nobody needs to close a judge that was asked there, and nothing keeps one that was closed."""

    async def use(judge: OpenAIJudge) -> None:
        await judge.ask(ListClaims(text="It climbs."))
        if closed:
            await judge.aclose()

    with FakeOpenAI() as server:
        judge = OpenAIJudge("fake", base_url=server.base_url, api_key="k")
        connection = weakref.ref(judge._connection)
        loop.run(use(judge))
        del judge
        gc.collect()
        assert (connection() is None) is closed
        loop.stop()
        gc.collect()
    assert (connection(), caplog.messages) == (None, [])


def test_a_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """By httpx, which knows every kind of proxy."""
    with FakeOpenAI() as server:
        monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
        url = "http://judge.test/v1"
        ask(OpenAIJudge("fake", base_url=url, api_key="k"), ListClaims(text="It climbs."))
        assert server.requests[0].path == f"{url}/chat/completions"
    assert isinstance(http_client(openai, url), openai.DefaultAsyncHttpxClient)
