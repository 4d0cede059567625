"""The OpenAI embedder against a real server on this machine, and the link that joins texts into batches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.embedders.batches import Batches
from pytest_ragmetrics.judges.embedders.embedder import Embedder
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.transports.limiter import Limiter, Providers
from pytest_ragmetrics.judges.transports.values import Repair, UnusableReplyError
from tests import asking, fake_openai
from tests.fake_answers import embed
from tests.fake_openai import FakeOpenAI


def vectors_answer(*embeddings: object, **more: object) -> fake_openai.Reply:
    rows = [{"index": index, "embedding": embedding} for index, embedding in enumerate(embeddings)]
    return fake_openai.Reply(raw=json.dumps({"data": rows, **more}).encode())


class Batched:
    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.link = Batches(Providers())

    async def aembed(self, texts: Sequence[str]) -> Any:
        return (await self.link.send(self.embedder.request(texts))).vectors


def asked(server: FakeOpenAI, use: Callable[[Batched], Awaitable[Any]], **options: Any) -> Any:
    embedder = OpenAIEmbedder("fake", base_url=server.base_url, api_key="sk-fake", **options)
    return asking.use(embedder, use(Batched(embedder)))[0]


def test_vectors_come_in_the_order_of_the_texts(server: FakeOpenAI) -> None:
    texts = ["one", "two", "one"]
    for use in (lambda batched: batched.aembed(texts), lambda batched: batched.embedder.aembed(texts)):
        vectors = asked(server, use)
        assert np.allclose(vectors, [embed(text, 64) for text in texts], atol=1e-6)
        assert vectors.dtype == np.float32
    for request in server.requests:
        assert request.path == "/v1/embeddings"
        assert request.body == {"model": "fake", "input": ["one", "two"], "encoding_format": "base64"}
    assert server.calls == 2


def test_no_texts_need_no_request(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JudgeError, match="for 0 texts"):
        asked(server, lambda batched: batched.embedder.aembed([]))
    assert server.calls == 0
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(JudgeNotConfiguredError, match="OPENAI_API_KEY"):
        asyncio.run(OpenAIEmbedder("m").aembed(["one"]))


def test_concurrent_calls_share_one_request(server: FakeOpenAI) -> None:
    async def use(embedder: Batched) -> list[Any]:
        calls = [embedder.aembed([f"text {number}", "shared"]) for number in range(20)]
        return [*await asyncio.gather(*calls), await embedder.aembed(["text 7"])]

    results = asked(server, use, dimensions=256)
    assert [len(request.body["input"]) for request in server.requests] == [21, 1]
    assert server.requests[0].body["dimensions"] == 256
    assert np.allclose(results[7], [embed("text 7", 64), embed("shared", 64)], atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        ([str(number) for number in range(2050)], [2, 2048]),
        (["ä" * 100_000, "b" * 100_000, "c"], [1, 2]),
        (["a" * 300_001, "b"], [1, 1]),
    ],
)
def test_requests_keep_to_the_limits_of_the_server(server: FakeOpenAI, texts: list[str], sizes: list[int]) -> None:
    """At most 2,048 texts and 300,000 bytes are in one request; the vectors are in order."""
    for use in (lambda embedder: embedder.aembed(texts), lambda embedder: embedder.embedder.aembed(texts)):
        server.requests.clear()
        vectors = asked(server, use)
        assert sorted(len(request.body["input"]) for request in server.requests) == sizes
        assert np.allclose(vectors[-1], embed(texts[-1], 64), atol=1e-6)


def test_a_server_without_base64_is_asked_for_numbers(server: FakeOpenAI) -> None:
    server.script(fake_openai.failing(400, "encoding_format is not supported", param="encoding_format"))

    async def use(embedder: Batched) -> Any:
        return [await embedder.aembed([text]) for text in ("one", "two")]

    vectors = asked(server, use)
    assert [request.body["encoding_format"] for request in server.requests] == ["base64", "float", "float"]
    assert np.allclose(vectors[1], [embed("two", 64)], atol=1e-6)


def test_a_rejection_is_an_error(server: FakeOpenAI) -> None:
    server.script(fake_openai.failing(400, "This input is too long."))
    with pytest.raises(JudgeError, match="too long"):
        asked(server, lambda embedder: embedder.aembed(["one", "two"]))
    assert server.calls == 1


def test_texts_and_rows_are_put_right(server: FakeOpenAI) -> None:
    assert asked(server, lambda embedder: embedder.aembed(["", "\ud800", "two"])).shape == (3, 64)
    assert server.requests[0].body["input"] == [" ", "?", "two"]
    rows = [{"index": 1, "embedding": [0.0, 2.0]}, {"index": 0, "embedding": [1.0, 0.0]}]
    server.script(vectors_answer(data=rows))
    assert asked(server, lambda batched: batched.aembed(["one", "two"])).tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_a_rate_limit_is_waited_for_and_reported(server: FakeOpenAI) -> None:
    limiter = Limiter(8)
    server.script(fake_openai.rate_limited())

    async def use(embedder: Batched) -> Any:
        return (await limiter.send(embedder.embedder.request(["one"]))).vectors

    assert asked(server, use).shape == (1, 64)
    assert (limiter.sent, limiter.width) == (2, 4)


class Lengths(Embedder):
    name, kind, model = "lengths", "custom", "lengths"

    def __init__(self, max_texts: int = 10) -> None:
        self.batch = (max_texts, 100)
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def aembed(self, texts: Sequence[str]) -> Any:
        self.begun.set()
        await self.go_on.wait()
        if "bad" in texts:
            raise JudgeError
        return np.array([[len(text)] for text in texts], dtype=np.float32)


def test_a_cancelled_call_and_a_failing_batch_affect_no_other() -> None:
    async def run() -> Sequence[Any]:
        embedder = Lengths(max_texts=1)
        batched = Batched(embedder)
        cancelled, *others = (asyncio.create_task(batched.aembed([text])) for text in ("good", "good", "bad"))
        await embedder.begun.wait()
        cancelled.cancel()
        embedder.go_on.set()
        return await asyncio.gather(*others, return_exceptions=True)

    vectors, failed = asyncio.run(run())
    assert vectors.tolist() == [[4.0]]
    assert isinstance(failed, JudgeError)


def test_closing_cancels_what_is_under_way() -> None:
    async def run() -> Sequence[Any]:
        embedder = Lengths()
        batched = Batched(embedder)
        sent = asyncio.create_task(batched.aembed(["sent"]))
        await embedder.begun.wait()
        waiting = asyncio.create_task(batched.aembed(["waiting"]))
        await asyncio.sleep(0)
        await batched.link.aclose()
        return await asyncio.gather(sent, waiting, return_exceptions=True)

    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in asyncio.run(run()))


def test_tokens_are_those_of_the_batch_and_counted_once(server: FakeOpenAI) -> None:
    long, short = "a long text about the ferry, " * 20, "pike"

    async def use(batched: Batched) -> list[Any]:
        requests = [[long, short], [short, "perch", "perch"], [long]]
        return list(await asyncio.gather(*(batched.link.send(batched.embedder.request(texts)) for texts in requests)))

    first, second, third = (reply.prompt_tokens for reply in asked(server, use))
    (request,) = server.requests
    assert first + second + third == sum(map(len, request.body["input"])) // 4
    assert first > 50 * second > 0
    assert third == 0
    assert len(request.body["input"]) == 3


@pytest.mark.parametrize(
    ("usage", "cost", "tokens"),
    [
        # Then there are none, and the price is not said to be unknown.
        *((none, 0.0, 0) for none in (None, {}, *({"prompt_tokens": wrong} for wrong in (None, "9", -2)))),
        # A router states its price with each answer; half of two equal texts is half of it.
        ({"prompt_tokens": 5, "cost": 0.25}, 0.125, 5),
    ],
)
def test_what_the_server_bills_is_the_bill(server: FakeOpenAI, usage: object, cost: float, tokens: int) -> None:
    server.script(vectors_answer([1.0, 0.0], [1.0, 0.0], usage=usage))

    async def use(batched: Batched) -> list[Usage]:
        requests = [batched.embedder.request([text]) for text in ("pike", "bass")]
        replies = await asyncio.gather(*map(batched.link.send, requests))
        return [reply.usage(request) for reply, request in zip(replies, requests, strict=True)]

    used = asked(server, use)
    assert [each.cost for each in used] == [cost, cost]
    assert sum(each.embedding_tokens for each in used) == tokens


#: What is no vector beside one of two numbers.
NO_VECTOR: list[Any] = [
    *(None, 5, [], {}, "%%%=", "AAAAA", "AAAA", "", [None], ["1.0"], True),
    *([[1.0, 2.0]], [1.0, "x"], [1.0], [1.0, 1e99], [True, False], "AACAfwAAgH8="),
]
#: What is no answer with the vectors of two texts.
_EMPTY = (b"", b"<html>", b"null", b"[]", b"{}", b'{"data": 5}', b'{"data": [5, null]}')
_INDEXES = (None, "1", 1.0, True, -1, 2)
NO_VECTORS = [
    *(fake_openai.Reply(raw=raw) for raw in _EMPTY),
    fake_openai.Reply(raw=b"<html>", headers={"content-type": "text/html"}),
    fake_openai.Reply(raw=b"\x1f\x8b\x00", headers={"content-encoding": "gzip"}),
    fake_openai.Reply(error={"message": "Overloaded"}),
    *(vectors_answer([1.0, 2.0], wrong) for wrong in NO_VECTOR),
    vectors_answer([1.0]),
    *(vectors_answer(data=[{"index": at, "embedding": [1.0]} for at in (0, wrong)]) for wrong in _INDEXES),
    vectors_answer(data=[{"index": 0, "embedding": [1.0]}, {"index": 1}]),
]


# Vectors are read alike whichever encoding was asked for.
@pytest.mark.parametrize(("encoding", "replies"), [("base64", NO_VECTORS), ("float", NO_VECTORS[-2:])])
def test_a_second_question_is_answered(server: FakeOpenAI, encoding: str, replies: list[fake_openai.Reply]) -> None:
    async def use(batched: Batched) -> list[Any]:
        batched.embedder._connection.terms = encoding  # type: ignore[attr-defined] # of the one for OpenAI
        link = Repair(batched.link)
        outcomes: list[Any] = []
        for reply in replies:
            server.script(reply)
            first = await link.send(batched.embedder.request(["pike", "bass"]))
            server.script(reply, reply)
            both = (link.send(batched.embedder.request([text])) for text in ("pike", "bass"))
            outcomes += [first.vectors, *await asyncio.gather(*both, return_exceptions=True)]
        return outcomes

    outcomes = asked(server, use, retries=0)
    assert [len(vectors) for vectors in outcomes[::3]] == [2] * len(replies)
    failures = [*outcomes[1::3], *outcomes[2::3]]
    assert [failure for failure in failures if not isinstance(failure, UnusableReplyError)] == []
    assert all("openai:fake" in str(failure) and "; asked once more: " in str(failure) for failure in failures)
    assert server.calls == 4 * len(replies)
