"""What llama.cpp's server really sends, as it was recorded (`tests/data/llama_cpp.jsonl`), and what is read of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.providers.connection import ApiJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.values import JudgeUnavailableError, UnusableReplyError
from tests import fake_openai as fake
from tests.asking import MemoryTransport, ask, judge_at, use
from tests.fake_openai import FakeOpenAI

CLAIMS = ListClaims(text="The lake is deep. Pike live in it.")
_RECORDED = (Path(__file__).parents[1] / "data/llama_cpp.jsonl").read_text("utf-8")
REPLIES = {
    recorded["name"]: fake.Reply(raw=json.dumps(recorded["body"]).encode(), status=recorded["status"])
    for recorded in map(json.loads, _RECORDED.splitlines())
}


def judge(server: FakeOpenAI, retries: int = 2) -> ApiJudge[Any]:
    return judge_at(server, model="smollm2-135m", retries=retries)


def test_a_completion_is_read(server: FakeOpenAI) -> None:
    server.script(REPLIES["completion"])
    transport = MemoryTransport()
    (answered,) = ask(judge(server), CLAIMS, transport=transport)
    assert answered.answer == (CLAIMS.text, "The lake is deep. The lake is deep. The lake is deep. The pf")
    assert answered.usage == Usage(calls=1, prompt_tokens=49, completion_tokens=42, cached_prompt_tokens=48, cost=None)
    ((_, reply),) = transport.kept
    assert (reply.cached_prompt_tokens, reply.cache_write_tokens, reply.billed, reply.tier) == (48, 0, None, None)
    assert json.loads(reply.text) == {"claims": list(answered.answer)}


@pytest.mark.parametrize(("name", "prompt", "completion"), [("cut", 49, 6), ("context full", 502, 10)])
def test_a_cut_reply_is_paid_for(server: FakeOpenAI, name: str, prompt: int, completion: int) -> None:
    """At a limit that was sent, and at the end of the context, "length" stands alike; the tokens are counted."""
    asked = judge(server)
    with pytest.raises(UnusableReplyError, match="was cut off") as failed:
        asked.read(json.loads(REPLIES[name].raw or b""), asked.request(CLAIMS))
    spent: Any = failed.value.spent
    assert (spent.prompt_tokens, spent.completion_tokens, failed.value.is_cut) == (prompt, completion, True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("prompt too long", "rejected with status 400 (request (1631 tokens) exceeds the available context size (512 "),
        ("no route", "knows no model smollm2-135m (File Not Found); check its name and OPENAI_BASE_URL"),
        ("no embeddings", "status 501 (This server does not support embeddings. Start it with `--embeddings`)"),
        ("text too long", "input (1201 tokens) is too large to process. increase the physical batch size"),
    ],
)
def test_what_the_server_says_is_shown_at_once(server: FakeOpenAI, name: str, said: str) -> None:
    embedder, asked = OpenAIEmbedder("m", base_url=server.base_url, retries=2, timeout=5), judge(server)
    server.script(*[REPLIES[name]] * 2)
    is_vector = name in ("no embeddings", "text too long")
    with pytest.raises(JudgeError, match=re.escape(said)) as failed:
        use(*((embedder, embedder.aembed(["A lake."])) if is_vector else (asked, asked.ask(CLAIMS))))
    assert (failed.type, server.calls) == (JudgeUnavailableError if name.startswith("no ") else JudgeError, 1)


def test_a_model_that_loads_is_waited_for_and_bounds_that_cannot_be_read_are_left_out(server: FakeOpenAI) -> None:
    """The server listens before it has its model, and refuses a list of two thousand entries."""
    loading = replace(REPLIES["loading"], headers={"retry-after-ms": "5"})
    server.script(loading, REPLIES["grammar"], REPLIES["completion"])
    (answered,) = ask(judge(server), CLAIMS)
    schemas = [request.body["response_format"]["json_schema"]["schema"] for request in server.requests]
    assert ["maxItems" in json.dumps(schema) for schema in schemas] == [True, True, False]
    assert (schemas[2], len(answered.answer)) == (CLAIMS.schema(), 2)
