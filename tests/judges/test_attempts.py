"""What one attempt may take: time as a whole, bytes of a reply, the host that was named, and a key of its own."""

from __future__ import annotations

import asyncio
import gzip
import re
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.values import JudgeOutageError, JudgeUnavailableError, UnusableReplyError
from tests import fake_openai as fake
from tests.asking import BOTH, KEY, ask, judge_at, use
from tests.fake_openai import FakeOpenAI

pytestmark = pytest.mark.usefixtures("_both_clients", "_short_pauses")
CLAIMS = ListClaims(text="The lake is deep.")


@dataclass(kw_only=True)
class Sending(FakeOpenAI):
    """A server that answers each request with this head, and pieces until there are no more or the client leaves."""

    head: str
    pieces: Callable[[], AsyncIterator[bytes]]

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{self.head}\r\n\r\n".encode())
        async for piece in self.pieces():
            writer.write(piece)
            await writer.drain()
        return False


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


async def drip() -> AsyncIterator[bytes]:
    while True:
        yield chunk(b" ")
        await asyncio.sleep(0.05)


async def flood() -> AsyncIterator[bytes]:
    piece = chunk(b" " * 1_000_000)
    while True:
        yield piece


async def bomb() -> AsyncIterator[bytes]:
    yield gzip.compress(b" " * 20_000_000)


CHUNKED = "Transfer-Encoding: chunked"
LIMIT = "10,000,000 bytes"


@BOTH
def test_an_attempt_is_bounded_as_a_whole(kind: str) -> None:
    with Sending(head=CHUNKED, pieces=drip) as server:
        began = time.monotonic()
        with pytest.raises(JudgeOutageError, match=r"no answer within 0\.3 s, after 1 retry; see --rag-timeout"):
            ask(judge_at(server, kind, timeout=0.3, retries=1), CLAIMS)
        assert 0.6 < time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("head", "pieces", "said"),
    [
        pytest.param(CHUNKED, flood, f"more than {LIMIT}, which was read no further", id="without end"),
        pytest.param("Content-Length: 52428800", drip, f"52,428,800 bytes, of which at most {LIMIT[:-6]}", id="length"),
        pytest.param("Content-Encoding: gzip\r\nConnection: close", bomb, f"more than {LIMIT}", id="compressed"),
    ],
)
def test_a_reply_has_a_size(head: str, pieces: Any, said: str) -> None:
    with Sending(head=head, pieces=pieces) as server:
        began = time.monotonic()
        with pytest.raises(UnusableReplyError, match=f"fake-1 sent a reply of {said}.*asked once more: the same"):
            ask(judge_at(server, retries=5), CLAIMS)
        assert time.monotonic() - began < 5


def test_vectors_may_be_as_many_as_texts() -> None:
    with Sending(head=CHUNKED, pieces=flood) as server:
        embedder = OpenAIEmbedder("fake", base_url=server.base_url, api_key="sk-fake-key", retries=0)
        with pytest.raises(UnusableReplyError, match="more than 1,400,000 bytes"):
            use(embedder, embedder.aembed(["a", "b"]))


def moved(to: str) -> fake.Reply:
    return fake.Reply(raw=b"", status=307, headers={"location": to})


@BOTH
@pytest.mark.parametrize(
    "address", ["http://judge.test:81/v1/x", "//127.0.0.2/v1", "https://127.0.0.1/v", "gopher://a"]
)
def test_another_host_gets_nothing(server: FakeOpenAI, kind: str, address: str) -> None:
    server.answer = lambda _: moved(address)
    host = re.escape(re.sub(r"^\w*:?//|/.*", "", address))
    with pytest.raises(JudgeUnavailableError, match=rf"127\.0\.0\.1:\d+.* redirects to \w+://{host}, where nothing"):
        ask(judge_at(server, kind, retries=3), CLAIMS)
    assert server.calls == 1


@BOTH
def test_the_same_host_is_followed(server: FakeOpenAI, kind: str) -> None:
    server.script(*[moved("../v1/messages" if kind == "anthropic" else "/v1/chat/completions")] * 2)
    assert ask(judge_at(server, kind), CLAIMS)[0].answer
    assert server.calls == 3
    server.answer = lambda _: moved(server.requests[0].path)
    with pytest.raises(JudgeUnavailableError, match=r"redirects in a circle; check \w+_BASE_URL"):
        ask(judge_at(server, kind, retries=3), CLAIMS)
    assert server.calls < 30


class Tokens:
    def __init__(self) -> None:
        self.given: list[str] = []
        self.threads: set[str] = set()

    def __call__(self) -> str:
        self.threads.add(threading.current_thread().name)
        self.given.append(f"token-{len(self.given)}-0123456789")
        return self.given[-1]

    async def later(self) -> str:
        return self()


@BOTH
@pytest.mark.parametrize("take", [lambda given: given, lambda given: given.later, lambda given: partial(given.later)])
def test_a_key_is_asked_for_before_each_attempt(server: FakeOpenAI, kind: str, take: Any) -> None:
    tokens = Tokens()
    asked = judge_at(server, kind, api_key=take(tokens), retries=2)
    server.script(fake.failing(500), fake.failing(500))
    ask(asked, CLAIMS, ListClaims(text="Pike live in it."))
    headers = [request.headers for request in server.requests]
    sent = [each.get("x-api-key") or each["authorization"].removeprefix("Bearer ") for each in headers]
    assert sorted(sent) == tokens.given
    assert (len(tokens.given), "MainThread" in tokens.threads) == (4, asked._connection._asked_for is not tokens)
    assert "0123456789" not in f"{asked!r} {asked.request(CLAIMS)!r} {asked._connection!r}"
    server.reset()
    server.answer = lambda _: fake.failing(400, f"{tokens.given[-1]} is of yesterday")
    with pytest.raises(JudgeError, match=r"\(\*\*\* is of yesterday\)"):
        ask(asked, CLAIMS)


@BOTH
@pytest.mark.parametrize("fault", [fake.failing(503), fake.dropped(), fake.rate_limited()])
def test_a_single_request_is_not_tried_again(server: FakeOpenAI, kind: str, fault: fake.Reply) -> None:
    """Whatever fails: it only asks whether the provider is there."""
    server.script(fault)
    asked = judge_at(server, kind, retries=3)
    with pytest.raises(JudgeOutageError, match=r"^((?!retr(y|ies) \().)*$"):
        use(asked, asked.complete(replace(asked.request(CLAIMS), is_single=True)))
    assert server.calls == 1


@BOTH
def test_a_key_that_is_refused_is_asked_for_once_more(server: FakeOpenAI, kind: str) -> None:
    tokens = Tokens()
    server.key = "token-1-0123456789"
    ask(judge_at(server, kind, api_key=tokens), CLAIMS)
    assert [request.status for request in server.requests] == [401, 200]
    for asked in (judge_at(server, kind, api_key=tokens), judge_at(server, kind)):
        with pytest.raises(JudgeUnavailableError, match="the key was refused"):
            ask(asked, CLAIMS)
    assert server.calls == 5


def failing() -> str:
    raise OSError("no token at https://me:s3cret@login.test/x?code=c0de for sk-proj-0123456789abcdefghij")


@BOTH
@pytest.mark.parametrize(
    ("key", "said"),
    [
        (failing, r"failed with OSError: no token at https://\*\*\*@login.test/x for \*\*\*$"),
        (lambda: None, "returned what is no key; it must return a text"),
        (lambda: " ", "returned what is no key"),
        (lambda: "two words", "returned what contains characters that no key has"),
    ],
)
def test_a_key_that_is_not_to_be_had_is_named(server: FakeOpenAI, kind: str, key: Any, said: str) -> None:
    with pytest.raises(JudgeNotConfiguredError, match=rf"{kind}:fake-1: api_key\(\) {said}") as failed:
        ask(judge_at(server, kind, api_key=key, retries=3), CLAIMS)
    assert failed.value.__cause__ is None
    assert server.calls == 0


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("http://a..b/v1", {}, r"openai:fake-1.* http://a\.\.b/v1.*check .*OPENAI_BASE_URL"),
        ("http://127.0.0.1:abc/v1", {}, r"no connection to http://127\.0\.0\.1:abc/v1 can be made \(Invalid port.*\)"),
        ("http://127.0.0.1:1/v1", {"parameters": {"seed": float("nan")}}, "not JSON compliant.*and the parameters"),
    ],
)
def test_what_cannot_be_sent_is_no_reply(url: str, options: Any, said: str) -> None:
    with pytest.raises((JudgeError, JudgeNotConfiguredError), match=said) as failed:
        ask(OpenAIJudge("fake-1", **{"base_url": url, "api_key": KEY, "retries": 0, **options}), CLAIMS)
    assert "asked once more" not in str(failed.value)
