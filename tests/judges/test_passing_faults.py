"""A fault that passes is asked about once more: each here is the first answer, and a good one follows."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.providers.anthropic import AnthropicJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import UnreadableReplyError, UnusableReplyError
from tests import fake_openai as fake
from tests.asking import BOTH, ask, judge_at, use
from tests.fake_openai import FakeOpenAI

CLAIMS = ListClaims(text="The lake is deep.")
GOOD = json.dumps({"claims": ["The lake is deep."]})
WRONG: tuple[object, ...] = (None, 5, "x", [], {}, True, [None])
OPENAI = {"choices": [{"finish_reason": "stop", "message": {"content": GOOD}}], "usage": {"prompt_tokens": 9}}
ANTHROPIC = {
    "content": [{"type": "tool_use", "input": {"claims": []}}, {"type": "text", "text": "x"}],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 9, "output_tokens": 1},
}


def wrong_types(value: Any) -> Iterator[Any]:
    """Yield a value with one part of it, itself too, replaced by something of another type, or left out."""
    yield from (wrong for wrong in WRONG if type(wrong) is not type(value) or not wrong)
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        for wrong in wrong_types(value[key]):
            changed = value.copy()
            changed[key] = wrong
            yield changed
        if isinstance(value, dict):
            yield {name: part for name, part in value.items() if name != key}


def bodies(good: bytes) -> Iterator[fake.Reply]:
    """Yield what servers and what is between them send in the place of an answer."""
    html = b"<!doctype html><h1>502 Bad Gateway</h1>"
    between = (b"", html, b"upstream connect error", good[:-9])
    spoilt = good.replace(b"content", b"c\xff", 1), good.decode().encode("utf-16")[:-1]
    errors = {"error": "internal"}, {"error": {"message": "Overloaded", "code": 529}}, {"detail": ["x"]}, html.decode()
    said = (json.dumps(error).encode() for error in errors)
    for raw in (*between, b" \n", good + good, b"NaN", b"data: " + good, *spoilt, *said):
        yield fake.Reply(raw=raw)
    for raw in between:
        yield fake.Reply(raw=raw, headers={"content-type": "text/html; charset=utf-8"})
    for encoding in ("gzip", "deflate", "x-unknown"):
        for raw in (gzip.compress(good)[:40], gzip.compress(good)[:20] + bytes(30)):
            yield fake.Reply(raw=raw, headers={"content-encoding": encoding})
    yield fake.Reply(raw=b"", status=204)


def texts() -> Iterator[fake.Reply]:
    for text in ("", " \n", "\0", "I would rather talk.", '{"claims": ["It', GOOD + '{"claims": []}', "null", "[1]"):
        yield fake.Reply(text=text)
    for text in ("", GOOD[:-5], GOOD):
        yield fake.Reply(text=text, finish="length")


@pytest.mark.parametrize(("kind", "good"), [("openai", OPENAI), ("anthropic", ANTHROPIC)])
def test_a_second_question_is_answered(server: FakeOpenAI, kind: str, good: Any) -> None:
    asked = judge_at(server, kind)
    faults = [*bodies(json.dumps(good).encode()), *texts()]
    faults += [fake.Reply(raw=json.dumps(value).encode()) for value in wrong_types(good)]
    failed = []

    async def each() -> None:
        for number, fault in enumerate(faults):
            server.reset()
            server.script(fault, GOOD)
            try:
                await asked.ask(ListClaims(text=f"Lake {number} is deep."))
            except JudgeError as error:
                failed.append(f"{fault}: {error}")
            if server.calls > 2:
                failed.append(f"{fault}: {server.calls} requests")

    use(asked, each())
    assert failed == []
    assert len(faults) > 80


@BOTH
def test_what_comes_twice_is_unscored(server: FakeOpenAI, kind: str) -> None:
    key = "sk-proj-0123456789abcdefghij"
    page = f"<html>\x1b[31m {key} {'a' * 300}"
    server.answer = lambda _: fake.Reply(raw=page.encode(), headers={"content-type": "text/html"})
    with pytest.raises(UnusableReplyError) as failed:
        ask(judge_at(server, kind), CLAIMS)
    said = rf"{kind}:fake-1 does not answer like the .*it sent '<html>\[31m \*\*\* a{{150,200}}\W.*"
    assert re.fullmatch(f"{said}; asked once more: the same", str(failed.value))
    server.script(fake.Reply(text="", usage=(100, 1)), fake.Reply(raw=b"<html>gone"))
    with pytest.raises(UnusableReplyError, match=r"replied with nothing; asked once more: .*gone") as failed:
        ask(judge_at(server, kind), CLAIMS)
    assert failed.value.usage == Usage(calls=1, prompt_tokens=100, completion_tokens=1, cost=None)
    server.reset()
    server.script(fake.Reply(text="", usage=(100, 1)), fake.Reply(text="no", usage=(100, 2)))
    with pytest.raises(UnreadableReplyError, match=r"after .* replied with nothing: .*it replied 'no'") as unreadable:
        ask(judge_at(server, kind), CLAIMS)
    assert unreadable.value.usage == Usage(calls=2, prompt_tokens=200, completion_tokens=3, cost=None)
    assert server.calls == 2


@pytest.mark.parametrize(
    ("kind", "parameters", "limits"),
    [
        ("openai", {"max_tokens": 40}, {"max_tokens": 80}),
        ("openai", {"max_completion_tokens": 40}, {"max_completion_tokens": 80}),
        ("openai", {}, {"max_tokens": 16_384}),
        ("anthropic", {}, {"max_tokens": 16_384}),
        ("anthropic", {"max_tokens": 300}, {"max_tokens": 600}),
    ],
)
def test_a_reply_that_was_cut_off_gets_more_room(server: FakeOpenAI, kind: str, parameters: Any, limits: Any) -> None:
    asked = judge_at(server, kind, parameters=parameters)
    needed = {} if kind == "openai" else AnthropicJudge.needed
    server.script(fake.truncated())
    ask(asked, CLAIMS)
    sent = [{name: limit for name, limit in r.body.items() if name.startswith("max_")} for r in server.requests]
    assert sent[1] == limits
    assert sent[0] != limits
    # A server that is not the provider's own has a limit from the start.
    assert asked.request(CLAIMS).parameters.get("max_tokens") == parameters.get("max_tokens", needed.get("max_tokens"))
    server.answer = lambda _: fake.truncated()
    with pytest.raises(UnusableReplyError, match=r"was cut off .*; asked once more with more room: the same"):
        ask(asked, CLAIMS)
    assert server.calls == 4


def test_a_server_may_have_no_more_room(server: FakeOpenAI) -> None:
    """The name that a model refuses is given up; for a length it cannot have, both reasons are told."""
    server.script(fake.truncated(), fake.failing(400, "max_tokens is not supported", param="max_tokens"))
    ask(judge_at(server, "openai"), CLAIMS)
    assert "max_tokens" not in server.requests[-1].body
    # With a wide limit, and without any.
    full = fake.failing(400, "This model's maximum context length is 8192 tokens.")
    server.script(fake.truncated(), full, full)
    with pytest.raises(UnusableReplyError, match=r"was cut off .* asked once more with more room: .* length is 8192"):
        ask(judge_at(server, "openai"), CLAIMS)


def test_a_repair_that_is_no_reply_is_the_last_question(server: FakeOpenAI) -> None:
    server.script("no", fake.Reply(text=""))
    with pytest.raises(UnusableReplyError, match=r"replied with nothing"):
        ask(judge_at(server, "openai"), CLAIMS)
    assert server.calls == 2
    asked = judge_at(server, "openai")
    server.script(fake.Reply(text=""))
    assert use(asked, DIRECT.send(asked.request(CLAIMS)))[0].calls == 2
