"""The Anthropic judge through its official SDK and a real socket."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragmetrics.errors import JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.judges.anthropic import AnthropicJudge
from pytest_ragmetrics.judges.tasks import ListClaims, Task
from pytest_ragmetrics.judges.transport import DIRECT, JudgeUnavailableError, Reply
from pytest_ragmetrics.result import Usage
from tests import fake_openai as fake
from tests.asking import MemoryTransport, ask
from tests.every_task import EVERY_TASK
from tests.fake_openai import FakeOpenAI

KEY = "sk-ant-fake-0123456789"
CLAIMS = ListClaims(text="The lake is deep. Pike live in it.")
GOOD = json.dumps({"claims": ["Der See ist groß."]}, ensure_ascii=False)


def judge(server: FakeOpenAI, **options: Any) -> AnthropicJudge:
    """Return a judge that asks the server, and is soon tired of trying."""
    settings = {"base_url": server.root_url, "api_key": KEY, "retries": 2, "timeout": 5, **options}
    return AnthropicJudge("fake-1", **settings)


def failure(asked: AnthropicJudge) -> str:
    """Return what a failing judge says, after a look that the key is not in it."""
    with pytest.raises(JudgeError) as failed:
        ask(asked, CLAIMS)
    assert KEY not in f"{failed.value!r} {failed.getrepr(showlocals=True, chain=True)}"
    return str(failed.value)


@pytest.mark.parametrize("task", EVERY_TASK, ids=lambda task: str(task.prompt))
def test_every_task_is_asked_by_a_tool_that_must_be_called(server: FakeOpenAI, task: Task[Any]) -> None:
    """The schema goes along as the one tool, which the model is forced to call; the system message stands apart."""
    (answered,) = ask(judge(server), task)
    assert answered.answer is not None
    (request,) = server.requests
    assert request.path == "/v1/messages"
    (tool,) = request.body["tools"]
    assert (tool["name"], tool["input_schema"]) == (task.prompt, task.schema())
    assert request.body["tool_choice"] == {"type": "tool", "name": task.prompt}
    assert [message["role"] for message in request.body["messages"]] == ["user"]
    assert request.body["system"].startswith("You judge texts.")
    assert request.body["temperature"] == 0
    assert KEY in {request.headers.get("x-api-key"), request.headers.get("authorization", "").removeprefix("Bearer ")}


def test_usage_and_reply_are_kept(server: FakeOpenAI) -> None:
    """Tokens come from the server, and what is stored is the input of the tool call as readable JSON."""
    server.script(fake.Reply(text=GOOD, usage=(120, 7)))
    transport = MemoryTransport()
    (answered,) = ask(judge(server), CLAIMS, transport=transport)
    assert answered.usage == Usage(calls=1, prompt_tokens=120, completion_tokens=7, cost=None)
    ((request, reply),) = transport.kept
    assert (request.kind, reply.text) == ("anthropic", GOOD)


def test_a_text_in_place_of_a_tool_call_is_read(server: FakeOpenAI) -> None:
    """A server that ignores the tool may still answer with JSON in text."""
    server.script(f"Here you are: {GOOD}")
    assert ask(judge(server), CLAIMS)[0].answer == ("Der See ist groß.",)


def test_a_reply_that_does_not_fit_is_repaired(server: FakeOpenAI) -> None:
    """The reply and what is wrong with it go back once."""
    server.script('{"claims": [""]}', GOOD)
    (answered,) = ask(judge(server), CLAIMS)
    assert answered.usage.calls == 2
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert roles == ["user", "assistant", "user"]


def test_refused_parameters_are_dropped_but_stay_in_the_key(server: FakeOpenAI) -> None:
    """A parameter that the model refuses is left out from then on; the request that is handed in keeps it."""
    server.refuses = frozenset({"temperature"})
    asked = judge(server)
    transport = MemoryTransport()
    ask(asked, CLAIMS, ListClaims(text="It is blue."), transport=transport)
    assert "temperature" not in server.requests[-1].body
    assert server.requests[-1].body["max_tokens"] > 0
    assert all(request.parameters["temperature"] == 0 for request, _ in transport.kept)


def test_a_model_that_may_not_be_forced_answers_in_text(server: FakeOpenAI) -> None:
    """Where the tool cannot be forced, the schema stands in the prompt and the answer in the text."""
    server.script(fake.failing(400, "Thinking may not be enabled when tool_choice forces tool use."), f"So: {GOOD}")
    assert ask(judge(server), CLAIMS)[0].answer == ("Der See ist groß.",)
    body = server.requests[-1].body
    assert not {"tools", "tool_choice"} & body.keys()
    assert json.dumps(CLAIMS.schema(), separators=(",", ":")) in body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (fake.truncated(), "was cut off by its length limit"),
        (fake.refused("I will not."), "refused to answer: I will not."),
        (fake.Reply(text=""), "replied with nothing"),
        (fake.Reply(raw=b'{"ok": true}'), "does not answer like the Anthropic API; check ANTHROPIC_BASE_URL"),
        (fake.failing(401), "the key was refused; check ANTHROPIC_API_KEY"),
        (
            fake.failing(404, "model: fake-1"),
            "knows no model fake-1 (model: fake-1); check its name and ANTHROPIC_BASE",
        ),
        (fake.failing(400, f"{KEY} is too long"), "rejected with status 400 (*** is too long)"),
    ],
)
def test_failures_say_what_to_do(server: FakeOpenAI, reply: fake.Reply, message: str) -> None:
    """No failure is retried in vain or shows the key, and each names what to check."""
    server.script(reply)
    assert message in failure(judge(server))
    assert server.calls == 1


def test_no_credit_stops_a_run(server: FakeOpenAI) -> None:
    """Anthropic says with 400 that no credit is left."""
    server.script(fake.failing(400, "Your credit balance is too low to access the API."))
    with pytest.raises(JudgeUnavailableError, match="no credit left"):
        ask(judge(server), CLAIMS)


def test_overload_and_rate_limits_are_waited_for(server: FakeOpenAI) -> None:
    """The SDK retries both, and the engine is told of the rate limit."""
    told: list[int] = []
    asked = judge(server)
    request = replace(asked.request(CLAIMS), rate_limited=lambda: told.append(1))
    server.script(fake.rate_limited(), fake.failing(529, "Overloaded"))

    async def send() -> Reply:
        reply = await DIRECT.send(request)
        await asked.aclose()
        return reply

    assert asyncio.run(send()).text
    assert (server.calls, told) == (3, [1])


def test_a_missing_key_names_its_variable() -> None:
    """Without a key nothing is sent."""
    with pytest.raises(JudgeNotConfiguredError, match="anthropic:fake-1 needs a key: set ANTHROPIC_API_KEY"):
        ask(AnthropicJudge("fake-1"), CLAIMS)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the SDK the message is the command that installs it."""
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(JudgeNotConfiguredError) as failed:
        ask(AnthropicJudge("fake-1", api_key=KEY), CLAIMS)
    assert 'pip install "pytest-ragmetrics[anthropic]"' in str(failed.value)
