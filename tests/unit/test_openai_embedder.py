"""The OpenAI embedder against a real server on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics.embedders.batches import Batches
from pytest_ragmetrics.embedders.embedder import Embedder
from pytest_ragmetrics.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.errors import JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.judges.transport import Providers
from tests import fake_openai
from tests.fake_answers import embed
from tests.fake_openai import FakeOpenAI


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """Run a server that embeds."""
    with FakeOpenAI(dimensions=8) as running:
        yield running


class Batched:
    """An embedder whose texts pass the link that makes batches of them."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.link = Batches(Providers())

    async def aembed(self, texts: Sequence[str]) -> Any:
        """Return the vectors."""
        return (await self.link.send(self.embedder.request(texts))).vectors


def asked(server: FakeOpenAI, use: Callable[[Batched], Awaitable[Any]], **options: Any) -> Any:
    """Return what a use of an embedder returns, closing it in the same loop."""

    async def run() -> Any:
        embedder = OpenAIEmbedder("fake", base_url=server.base_url, api_key="sk-fake", **options)
        try:
            return await use(Batched(embedder))
        finally:
            await embedder.aclose()

    return asyncio.run(run())


def test_vectors_come_in_the_order_of_the_texts(server: FakeOpenAI) -> None:
    """Each text gets the server's vector for it, a repeated text is sent once, base64 is asked for."""
    vectors = asked(server, lambda embedder: embedder.aembed(["one", "two", "one"]))
    assert np.allclose(vectors, [embed(text, 8) for text in ("one", "two", "one")], atol=1e-6)
    assert vectors.dtype == np.float32
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "fake", "input": ["one", "two"], "encoding_format": "base64"}


def test_no_texts_need_no_request(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no shape that nothing could have; an embedder can be made without a key, which asking it names."""
    with pytest.raises(JudgeError, match="for 0 texts"):
        asked(server, lambda batched: batched.embedder.aembed([]))
    assert server.calls == 0
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    embedder = OpenAIEmbedder("m", dimensions=256)
    assert embedder.dimensions == 256
    with pytest.raises(JudgeNotConfiguredError, match="OPENAI_API_KEY"):
        asyncio.run(embedder.aembed(["one"]))


def test_concurrent_calls_share_one_request(server: FakeOpenAI) -> None:
    """Each gets its own vectors; nothing is kept for later calls: that is the cache's business."""

    async def use(embedder: Batched) -> list[Any]:
        calls = [embedder.aembed([f"text {number}", "shared"]) for number in range(20)]
        return [*await asyncio.gather(*calls), await embedder.aembed(["text 7"])]

    results = asked(server, use, dimensions=256)
    assert [len(request.body["input"]) for request in server.requests] == [21, 1]
    assert server.requests[0].body["dimensions"] == 256
    assert np.allclose(results[7], [embed("text 7", 8), embed("shared", 8)], atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        ([str(number) for number in range(4100)], [4, 2048, 2048]),
        ([letter * 200_000 for letter in "abc"], [1, 1, 1]),
        (["ä" * 100_000, "b" * 100_000, "c"], [1, 2]),
    ],
)
def test_requests_keep_to_the_limits_of_the_server(server: FakeOpenAI, texts: list[str], sizes: list[int]) -> None:
    """At most 2,048 texts and 300,000 bytes stand in one request; the vectors still come in order."""
    for use in (lambda embedder: embedder.aembed(texts), lambda embedder: embedder.embedder.aembed(texts)):
        vectors = asked(server, use)
        assert sorted(len(request.body["input"]) for request in server.requests) == sizes
        assert np.allclose(vectors[-1], embed(texts[-1], 8), atol=1e-6)
        server.requests.clear()


def test_a_server_without_base64_is_asked_for_numbers() -> None:
    """A server that refuses base64 gets the request again without, and is remembered."""
    with FakeOpenAI(dimensions=8) as server:
        server.script(fake_openai.failing(400, "encoding_format is not supported", param="encoding_format"))

        async def use(embedder: Batched) -> Any:
            await embedder.aembed(["one"])
            return await embedder.aembed(["two"])

        vectors = asked(server, use)
    assert [request.body["encoding_format"] for request in server.requests] == ["base64", "float", "float"]
    assert np.allclose(vectors, [embed("two", 8)], atol=1e-6)


ONE = b'{"object": "list", "model": "m", "data": [{"object": "embedding", "index": 1, "embedding": [1.0]}]}'


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (fake_openai.failing(400, "This input is too long."), "too long"),
        (fake_openai.Reply(raw=ONE), "the vectors of 2 texts, the server sent 1"),
    ],
)
def test_rejections_and_incomplete_answers_are_errors(
    server: FakeOpenAI, reply: fake_openai.Reply, problem: str
) -> None:
    """The request is not repeated; a server that leaves a vector out is found out, whatever order it keeps."""
    server.script(reply)
    with pytest.raises(JudgeError, match=problem):
        asked(server, lambda embedder: embedder.aembed(["one", "two"]))
    assert server.calls == 1


def test_rows_are_put_in_order(server: FakeOpenAI) -> None:
    """Rows count by their index, not by where they stand; plain numbers are taken too."""
    rows = b'{"data": [{"index": 1, "embedding": [0.0, 2.0]}, {"index": 0, "embedding": [1.0, 0.0]}], "model": "m"}'
    server.script(fake_openai.Reply(raw=rows))
    vectors = asked(server, lambda embedder: embedder.aembed(["one", "two"]))
    assert vectors.tolist() == [[1.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize("text", ["", "\ud800"])
def test_texts_the_server_would_refuse_are_sent_as_something_it_takes(server: FakeOpenAI, text: str) -> None:
    """An empty text and half a surrogate pair do not break the request they stand in."""
    assert asked(server, lambda embedder: embedder.aembed([text, "two"])).shape == (2, 8)


def test_being_asked_too_fast_is_waited_out_and_passed_on(server: FakeOpenAI) -> None:
    """A 429 is retried, and whoever limits the requests hears of it."""
    heard: list[bool] = []
    server.script(fake_openai.rate_limited())

    async def use(embedder: Batched) -> Any:
        request = replace(embedder.embedder.request(["one"]), rate_limited=lambda: heard.append(True))
        return (await embedder.link.send(request)).vectors

    assert asked(server, use).shape == (1, 8)
    assert heard == [True]


class Lengths(Embedder):
    """Embeds by length; fails for what is bad."""

    name, kind, model = "lengths", "custom", "lengths"

    def __init__(self, max_texts: int = 10) -> None:
        self.batch = (max_texts, 100)

    async def aembed(self, texts: Sequence[str]) -> Any:
        """Take a while."""
        await asyncio.sleep(0.01)
        if "bad" in texts:
            raise JudgeError
        return np.array([[len(text)] for text in texts], dtype=np.float32)


def test_a_cancelled_call_takes_nobody_with_it() -> None:
    """When one of two calls that wait for the same text is cancelled, the other still gets its vector."""

    async def run() -> Any:
        batched = Batched(Lengths())
        first = asyncio.create_task(batched.aembed(["shared"]))
        second = asyncio.create_task(batched.aembed(["shared"]))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(run()).tolist() == [[6.0]]


def test_a_failing_batch_fails_only_those_who_wait_for_it() -> None:
    """What sending a batch raises reaches its callers and no others."""

    async def run() -> Sequence[Any]:
        batched = Batched(Lengths(max_texts=1))
        return await asyncio.gather(batched.aembed(["bad"]), batched.aembed(["good"]), return_exceptions=True)

    failed, vectors = asyncio.run(run())
    assert isinstance(failed, JudgeError)
    assert vectors.tolist() == [[4.0]]


def test_closing_cancels_what_is_under_way() -> None:
    """Nobody waits for ever on a run that was closed."""

    async def run() -> Sequence[Any]:
        batched = Batched(Lengths())
        sent = asyncio.create_task(batched.aembed(["sent"]))
        await asyncio.sleep(0.008)
        waiting = asyncio.create_task(batched.aembed(["waiting"]))
        await asyncio.sleep(0)
        await batched.link.aclose()
        return await asyncio.gather(sent, waiting, return_exceptions=True)

    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in asyncio.run(run()))
