"""Judges and embedders at servers of every dialect: what is refused is left out, in whatever form answers come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics.core.errors import JudgeError, warn_once
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.providers.anthropic import AnthropicJudge
from pytest_ragmetrics.judges.providers.connection import ApiJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge, _Longest
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.values import JudgeUnavailableError
from tests import fake_openai as fake
from tests.asking import ask, use
from tests.every_task import EVERY_TASK
from tests.fake_answers import embed
from tests.fake_dialects import DIALECTS, DialectServer

KEY = "sk-of-this-dialect-0123456789"
CLAIMS = ListClaims(text="The lake is deep. Pike live in it.")
MODELS = {
    "openrouter": "qwen/qwen3-32b",
    "anthropic": "claude-haiku-5-5",
    "gemini": "gemini-2.5-flash",
    "vertex": "google/gemini-2.5-flash",
    "bedrock": "openai.gpt-oss-120b",
    "claude on bedrock": "anthropic.claude-haiku-5-5",
}
#: What a dialect refuses of a first request, in turn; and those that are asked without a form in the end.
REFUSED = {
    "openai": ["max_tokens", "temperature"],
    "azure": ["max_tokens", "temperature"],
    "bedrock": ["json_schema", "json_object"],
    "litellm": ["temperature"],
}
FORMLESS = {"anthropic", "bedrock", "claude on bedrock"}
TASKS = EVERY_TASK[::3]
SPOKEN = pytest.mark.parametrize("name", DIALECTS)


@pytest.fixture(scope="module")
def server() -> Iterator[DialectServer]:
    """Run one server for all dialects, which begins anew with each that it is to speak."""
    with DialectServer(dimensions=8) as running:
        yield running


def tokens() -> Iterator[str]:
    """Yield each token four times, of which the server takes three."""
    for number in count():
        yield from (f"token-{number}",) * 4


def judge(server: DialectServer, name: str, *, expires: bool = False) -> ApiJudge[Any]:
    """Return a judge that asks in this dialect, with a key that expires where the dialect has such keys."""
    server.speak(name)
    server.key = None if DIALECTS[name].uses else KEY
    kind = AnthropicJudge if DIALECTS[name].fault is DIALECTS["anthropic"].fault else OpenAIJudge
    url, given = f"{server.root_url}{DIALECTS[name].base}", tokens()
    key: Any = (lambda: next(given)) if expires and DIALECTS[name].uses else KEY
    return kind(MODELS.get(name, "gpt-5-mini"), base_url=url, api_key=key, retries=1, timeout=5)


def embedded(server: DialectServer, *batches: list[str]) -> Any:
    embedder = OpenAIEmbedder("m", base_url=f"{server.root_url}{server.dialect.base}", api_key=KEY)
    return use(embedder, *(embedder.complete(embedder.request(texts)) for texts in batches))[0]


@SPOKEN
def test_tasks_are_answered(server: DialectServer, name: str) -> None:
    asked, refused = judge(server, name, expires=True), REFUSED.get(name, [])
    answers = use(asked, *map(asked.ask, TASKS))
    assert all(answered.usage.calls == 1 and answered.usage.prompt_tokens > 0 for answered in answers)
    bodies = [(request.body, request.status) for request in server.requests if request.status != 401]
    assert [status for _, status in bodies] == [DIALECTS[name].status] * len(refused) + [200] * len(TASKS)
    for body, _ in bodies[len(refused) :]:
        assert body.get("response_format", {}).get("type") == (None if name in FORMLESS else "json_schema")
        assert ("temperature" in body) == ("temperature" not in refused)
    expired = sum(request.status == 401 for request in server.requests)
    assert expired == ((len(bodies) - 1) // 3 if DIALECTS[name].uses else 0)


@SPOKEN
def test_a_wrong_key_and_a_wrong_model_are_named(server: DialectServer, name: str) -> None:
    asked = judge(server, name)
    server.key = "another" if DIALECTS[name].headers else None
    server.answer = lambda _: fake.failing(404, "No such model.")
    with pytest.raises(JudgeUnavailableError) as failed:
        ask(asked, CLAIMS)
    assert ("the key was refused" if DIALECTS[name].headers else "knows no model") in str(failed.value)
    assert KEY not in str(failed.value)


@pytest.mark.parametrize("name", ["openai", "azure", "mistral", "litellm", "vllm", "llama.cpp"])
def test_a_cut_reply_gets_more_room_in_the_word_of_the_server(server: DialectServer, name: str) -> None:
    """Also where a server that is not OpenAI has OpenAI's newer models, which know another word for it."""
    asked = judge(server, name, expires=True)
    server.script(fake.truncated())
    assert ask(asked, CLAIMS)[0].answer
    takes = DIALECTS[name].takes or {"max_tokens"}
    word = "max_tokens" if "max_tokens" in takes else "max_completion_tokens"
    last = server.requests[-1]
    assert (last.status, last.body[word]) == (200, 16_384)
    assert len({"max_tokens", "max_completion_tokens"} & last.body.keys()) == 1


def reply_of(content: object) -> fake.Reply:
    return fake.Reply(raw=json.dumps({"choices": [{"message": {"content": content}}]}).encode())


NO_TEXT: tuple[object, ...] = ([{"type": "thinking"}], [{"type": "text", "text": None}], [], {"type": "text"})


@pytest.mark.parametrize(
    ("reply", "said", "calls"),
    [
        # What other servers call a cut, a full window and a filter.
        (fake.Reply(text="{", finish="max_tokens"), "cut off by its length limit", 2),
        (fake.Reply(text="{", finish="model_length"), "cut off by the context window", 1),
        (fake.Reply(text="{", finish="content_filter: PROHIBITED_CONTENT"), "content filter", 1),
        # Parts without text are no reply: it is asked for once more, like an empty one.
        *((reply_of(content), "replied with what is no text", 2) for content in NO_TEXT),
        (reply_of([{"type": "text", "text": " "}]), "replied with nothing", 2),
    ],
)
def test_what_is_no_whole_reply(server: DialectServer, reply: fake.Reply, said: str, calls: int) -> None:
    asked = judge(server, "llama.cpp")
    server.answer = lambda _: reply
    with pytest.raises(JudgeError, match=said):
        ask(asked, CLAIMS)
    assert server.calls == calls


@pytest.mark.parametrize(
    ("name", "sizes"),
    # Gemini says how many it takes, and is asked for as many from then on.
    [("gemini", [250, 100, 100, 50, 1]), ("mistral", [300, 150, 75, 75, 75, 75, 1]), ("ollama", [300, 1])],
)
def test_an_embedder_learns_how_many_texts_a_server_takes(server: DialectServer, name: str, sizes: list[int]) -> None:
    server.speak(name)
    texts = [f"text {number}" for number in range(sizes[0])]
    reply = embedded(server, texts, ["one"])
    assert [len(request.body["input"]) for request in server.requests] == sizes
    assert np.allclose(reply.vectors, [embed(text, 8) for text in texts], atol=1e-6)
    answered = [request for request in server.requests[:-1] if request.status == 200]
    assert reply.prompt_tokens == sum(sum(map(len, request.body["input"])) // 4 for request in answered)
    assert sum(len(request.body["input"]) for request in answered) == len(texts)


MANY_TOKENS = b'{"error": {"message": "Requested 350000 tokens, max 300000 tokens per request"}}'


@pytest.mark.parametrize("body", [b"<h1>Entity Too Large</h1>", b'{"error": "too many inputs"}', MANY_TOKENS])
def test_a_text_that_is_too_much_by_itself_is_an_error(server: DialectServer, body: bytes) -> None:
    server.speak("ollama")
    server.script(*[fake.Reply(status=413, raw=body)] * 4)
    with pytest.raises(JudgeError, match="413"):
        embedded(server, ["one", "two", "three", "four"])
    assert [len(request.body["input"]) for request in server.requests] == [4, 2, 1]


@pytest.mark.parametrize(("name", "said"), [("ollama", 1), ("vllm", 0)])
def test_a_server_that_cuts_prompts_is_noticed(
    server: DialectServer, name: str, said: int, recwarn: pytest.WarningsRecorder
) -> None:
    """It counts as many tokens for each prompt that is longer, and the judge misses texts."""
    warn_once.cache_clear()
    asked = judge(server, name)
    ask(asked, *[ListClaims(text="Salmon " * count) for count in (500, 3000, 4000, 5000, 6000)])
    found = [str(warning.message) for warning in recwarn.list]
    assert len(found) == said
    assert all("counts 4096 tokens for prompts of several lengths" in text for text in found)


@pytest.mark.parametrize(
    ("counts", "is_cut"),
    [
        ([(4096, 5000), (600, 600), (4096, 4400), (4096, 6000)], True),
        ([(2048, 5000), (2048, 4400), (2048, 6000), (3000, 6000)], False),
        # Two are chance, as are some that hardly differ, and votes on one prompt.
        ([(4096, 5000), (4096, 7000)], False),
        ([(4096, 5000), (4096, 5100), (4096, 5200), (4096, 5300)], False),
        ([(4096, 5000)] * 9, False),
        # No count at all, and one that is the same for everything.
        *(([(count, 5000), (count, 4400), (count, 7000)], False) for count in (0, 100)),
    ],
)
def test_a_window_is_told_by_the_longest_prompts(counts: list[tuple[int, int]], is_cut: bool) -> None:
    longest = _Longest()
    assert [longest.is_cut(*count) for count in counts][-1] is is_cut
