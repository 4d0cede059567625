"""What is sent without the SDK is what the SDK sends, and what fails is the SDK's to try again."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from typing import Any

import anthropic
import openai
import pytest

from pytest_ragmetrics.judges.providers.wire import Wire, http_client
from tests import fake_openai as fake
from tests.fake_openai import FakeOpenAI
from tests.fake_server import Recorded

Use = Callable[[Wire], Awaitable[object]]
BOTH = pytest.mark.parametrize(("sdk", "path"), [(openai, "/chat/completions"), (anthropic, "/v1/messages")])
COUNT = "x-stainless-retry-count"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Wie groß ist der See?"}], "temperature": 0}
pytestmark = pytest.mark.usefixtures("_both_clients")
OK = fake.Reply(raw=b'{"ok": true}')


def post(sdk: Any, server: FakeOpenAI, *uses: Use, retries: int = 0, timeout: float = 7) -> list[object]:
    """Return the results of uses of one wire, one after the other; of one that fails, the error."""

    async def run() -> list[object]:
        url = server.base_url if sdk is openai else server.root_url
        http = http_client(sdk, url)
        make = sdk.AsyncOpenAI if sdk is openai else sdk.AsyncAnthropic
        wire = Wire(make(api_key="k", base_url=url, http_client=http, max_retries=retries, timeout=timeout), http)
        async with wire.client:
            return [(await asyncio.gather(use(wire), return_exceptions=True))[0] for use in uses]

    return asyncio.run(run())


def shown(request: Recorded) -> tuple[Any, ...]:
    """Return all of a request that may differ."""
    return request.path, dict(request.headers), request.body


@BOTH
@pytest.mark.parametrize(
    "body", [BODY, {**BODY, "metadata": {"at": datetime(2026, 1, 2, tzinfo=timezone.utc)}}], ids=["JSON", "a date"]
)
def test_a_request_is_the_one_of_the_sdk(
    sdk: Any, path: str, body: dict[str, Any], server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all headers, those of the environment and cookies too, and the same bytes."""
    monkeypatch.setenv(f"{sdk.__name__.upper()}_CUSTOM_HEADERS", "x-team: lake")
    cookie = {"set-cookie": "route=7; Path=/", "content-type": "application/json; charset=utf-8"}
    server.script(fake.Reply(raw=b'{"ok": true}', headers=cookie), OK, OK)

    async def by_the_sdk(wire: Wire) -> object:
        return await wire.client.post(path, body=body, cast_to=object)

    ours = [lambda wire: wire.post(path, body)] * 2
    assert post(sdk, server, *ours, by_the_sdk) == [{"ok": True}] * 3
    first, second, third = map(shown, server.requests)
    assert second == third
    assert (second[1].pop("cookie"), second[1]["x-team"]) == ("route=7", "lake")
    assert first == second


@BOTH
@pytest.mark.parametrize("encoding", [{}, {"content-encoding": "gzip"}], ids=["plain", "gzip"])
def test_an_answer_of_success_passes_by_httpx(
    sdk: Any, path: str, encoding: dict[str, str], server: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    """Where aiohttp sends: httpx logs each request that it is given."""
    raw = gzip.compress(b'{"ok": true}') if encoding else b'{"ok": true}'
    server.script(fake.Reply(raw=raw, headers=encoding))
    with caplog.at_level(logging.INFO, logger="httpx2"):
        assert post(sdk, server, lambda wire: wire.post(path, BODY)) == [{"ok": True}]
    assert len(caplog.records) == ("http_proxy" in os.environ)


@BOTH
def test_what_fails_is_tried_again_by_the_sdk(sdk: Any, path: str, server: FakeOpenAI) -> None:
    """After the pause that the answer asks for, as a further attempt: none is made that the SDK would not make."""
    headers = {"retry-after-ms": "150"}
    server.script(fake.Reply(status=503, error={"message": "Busy."}, headers=headers), fake.failing(500), OK)

    async def timed(wire: Wire) -> float:
        began = asyncio.get_running_loop().time()
        assert await wire.post(path, BODY) == {"ok": True}
        return asyncio.get_running_loop().time() - began

    (took,) = post(sdk, server, timed, retries=2)
    assert isinstance(took, float), took
    assert took >= 0.15
    assert [request.headers[COUNT] for request in server.requests] == ["0", "1", "2"]
    assert len({json.dumps(request.body) for request in server.requests}) == 1


@BOTH
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (fake.failing(400, "No."), "BadRequestError"),
        (fake.failing(401, "No."), "AuthenticationError"),
        (fake.failing(500, "No."), "InternalServerError"),
        (fake.dropped(), "APIConnectionError"),
        # The limit of the HTTP client is ten minutes.
        (fake.silent(), "APITimeoutError"),
        (fake.Reply(raw=b"<html>", headers={"content-type": "text/html"}), None),
    ],
)
def test_an_outcome_is_the_one_of_the_sdk(
    sdk: Any, path: str, server: FakeOpenAI, reply: fake.Reply, error: str | None
) -> None:
    """One request each; the same error, or the same text."""
    server.script(reply, reply)

    async def by_the_sdk(wire: Wire) -> object:
        return await wire.client.post(path, body=BODY, cast_to=object)

    ours, its = post(
        sdk, server, lambda wire: wire.post(path, BODY), by_the_sdk, timeout=0.2 if reply.does == "hang" else 7
    )
    assert (type(ours), str(ours)) == (type(its), str(its))
    assert server.calls == 2
    assert ours == "<html>" if error is None else isinstance(ours, getattr(sdk, error))


@BOTH
def test_an_outcome_is_that_of_its_request(sdk: Any, path: str, server: FakeOpenAI) -> None:
    """Of many at once each that fails is tried again by itself, and nothing is left for the next."""
    failed: set[str] = set()

    def answer(body: dict[str, Any]) -> fake.Reply:
        if int(body["model"]) % 3 == 0 and body["model"] not in failed:
            failed.add(body["model"])
            return fake.failing(500)
        return fake.Reply(raw=json.dumps({"to": body["model"]}).encode())

    server.answer = answer

    async def many(wire: Wire) -> list[Any]:
        return await asyncio.gather(*(wire.post(path, {"model": str(number)}) for number in range(30)))

    assert post(sdk, server, many, retries=1) == [[{"to": str(number)} for number in range(30)]]
    assert (server.calls, server.answered) == (40, 30)
