"""A reply of a server that is not the provider's own is bounded: a small model would write without an end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import jsonschema
import pytest

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.providers.bounds import bounded, repeats_itself
from pytest_ragmetrics.judges.providers.errors import cut
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.transports.values import UnusableReplyError
from tests import fake_openai as fake
from tests.asking import ask, judge_at
from tests.every_task import EVERY_TASK
from tests.fake_answers import answer_sensibly, unbounded
from tests.fake_openai import FakeOpenAI

CLAIMS = tasks.ListClaims(text="The pump needs two minutes to fill.")
NAMES = [task.prompt for task in EVERY_TASK]


def schema_of(body: Mapping[str, Any]) -> Any:
    return body["response_format"]["json_schema"]["schema"]


def _parts(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    below = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return [schema, *(part for each in below for part in _parts(each))]


@pytest.mark.parametrize("task", EVERY_TASK, ids=NAMES)
def test_every_text_and_list_has_a_bound_that_honest_answers_keep(server: FakeOpenAI, task: Task[Any]) -> None:
    asked = judge_at(server)
    assert ask(asked, task)[0].answer is not None
    body = server.requests[0].body
    schema = schema_of(body)
    assert unbounded(schema) == task.schema() == asked.request(task).schema
    for part in _parts(schema):
        assert part["type"] != "array" or part["maxItems"] <= 500
        assert part["type"] != "string" or "enum" in part or part["maxLength"] <= 1000
    jsonschema.validate(json.loads(answer_sensibly(body)), schema)
    assert len(answer_sensibly(body)) / 2 < body["max_tokens"] <= 8192
    assert "max_tokens" not in asked.request(task).parameters


@pytest.mark.parametrize("count", [1, 7, 50, 51, 500, 501])
def test_numbered_answers_have_exactly_as_many_entries(count: int) -> None:
    task = tasks.VerifyClaims(claims=tuple(f"Pump {n} hums." for n in range(count)), contexts=("It hums.",))
    verdicts = bounded(task.form, task)[0]["properties"]["verdicts"]
    assert {verdicts.get(name) for name in ("minItems", "maxItems")} == {count if count <= 500 else None}
    numbers = verdicts["items"]["properties"]["number"].get("enum")
    assert numbers == ([*range(1, count + 1)] if count <= 50 else None)
    sentences = verdicts["items"]["properties"]["sentences"].get("maxItems")
    assert sentences is None if count > 50 * 7 else sentences > 8
    written = bounded(tasks.WriteQuestions.form, tasks.WriteQuestions(response="It hums.", count=count))[0]
    assert written["properties"]["questions"].get("minItems") == (count if count <= 500 else None)


def test_bounds_grow_with_the_texts() -> None:
    found = [bounded(CLAIMS.form, tasks.ListClaims(text="x" * size)) for size in (10, 1_000, 100_000)]
    claims = [(schema["properties"]["claims"], most) for schema, most in found]
    bounds = [(each.get("maxItems"), each["items"]["maxLength"], most) for each, most in claims]
    assert bounds == [(9, 210, 552), (133, 1000, 4512), (None, 1000, 8192)]


def test_what_goes_first(server: FakeOpenAI) -> None:
    """The provider's own server takes no such words, and a limit of one's own is the only one, under either name."""
    own = OpenAIJudge("gpt-5.4-mini", api_key="k")
    body = own.wire(own.request(CLAIMS))
    assert (schema_of(body), "max_tokens" in body) == (CLAIMS.form, False)
    for name in ("max_tokens", "max_completion_tokens"):
        ask(judge_at(server, parameters={name: 77}), CLAIMS)
        body = server.requests[-1].body
        assert {key: value for key, value in body.items() if key.startswith("max_")} == {name: 77}


@pytest.mark.parametrize(
    "message",
    [
        "Failed to initialize samplers: failed to parse grammar",
        "Invalid schema for response_format 'list_claims': In context=('properties'), 'maxItems' is not permitted.",
    ],
)
def test_a_schema_without_bounds_follows_one_that_is_refused(server: FakeOpenAI, message: str) -> None:
    asked = judge_at(server)
    server.script(fake.failing(400, message))
    ask(asked, CLAIMS, CLAIMS)
    # The other one may have been on its way with bounds.
    are_plain = [schema_of(request.body) == CLAIMS.form for request in server.requests]
    assert (are_plain.count(False) in (1, 2), are_plain.count(True) in (1, 2), are_plain[0]) == (True, True, False)
    server.reset()
    server.script(fake.failing(400, message))
    ask(asked, CLAIMS)
    assert [request.body["response_format"]["type"] for request in server.requests] == ["json_schema", "json_object"]


def test_a_model_that_thinks_first_in_a_small_window_is_answered(server: FakeOpenAI) -> None:
    """A limit of ours cuts its first reply, and vLLM has no room for the wide one of the second."""
    full = "'max_tokens' is too large. This model's maximum context length is 8192 tokens"

    def answer(body: dict[str, Any]) -> fake.Reply | str:
        if (most := body.get("max_tokens", 0)) > 8000:
            return fake.failing(400, full, param="max_tokens")
        return fake.truncated("<think>So. The user asks") if most else answer_sensibly(body)

    server.answer = answer
    ask(judge_at(server), *[tasks.ListClaims(text=f"Pump {number} hums.") for number in range(4)])


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        *(("Request contains an invalid argument.", 2), ("Provider returned error", 2)),
        ("The specified schema produces a constraint that has too many states for serving.", 2),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096", 2),
        ("the request exceeds the available context size, try increasing it", 1),
    ],
)
def test_what_was_added_loses_no_row(server: FakeOpenAI, message: str, calls: int) -> None:
    def answer(body: dict[str, Any]) -> fake.Reply | str:
        is_bounded = schema_of(body) != CLAIMS.form and "max_tokens" in body
        return fake.failing(400, message) if is_bounded or calls == 1 else answer_sensibly(body)

    server.answer = answer
    with pytest.raises(JudgeError, match="context size") if calls == 1 else nullcontext():
        assert ask(judge_at(server), CLAIMS)[0].answer
    assert server.calls == calls


def test_what_lifts_the_limit(server: FakeOpenAI) -> None:
    """A window too small for it, as vLLM refuses what might not fit, and a reply cut without repeating itself."""
    said = "This model's maximum context length is 512 tokens. However, you requested 900 tokens. Please reduce it."
    server.script(fake.failing(400, said))
    ask(judge_at(server), CLAIMS)
    asked = judge_at(server)
    server.script(fake.truncated("<think>The user asks for claims. Perhaps"))
    ask(asked, CLAIMS)
    ask(asked, CLAIMS)
    assert [request.body.get("max_tokens", 0) > 0 for request in server.requests] == [True, False, True, True, False]
    assert all(schema_of(request.body) != CLAIMS.form for request in server.requests)


FORTY = " ".join(f"word{index}" for index in range(40))
ENTRY = ', {"number": 12, "reason": "It says so."}'


@pytest.mark.parametrize("loop", ["The pump needs two minutes. ", ENTRY, "\n", "水泵需要两分钟。", "a", FORTY])
@pytest.mark.parametrize("kind", ["content", "reasoning_content"])
def test_a_reply_that_repeats_itself_is_not_asked_for_with_more_room(server: FakeOpenAI, loop: str, kind: str) -> None:
    message = {"content": None, kind: '{"claims": ["It is.' + loop * 400}
    answer = {"choices": [{"finish_reason": "length", "message": message}], "usage": {}}
    server.script(fake.Reply(raw=json.dumps(answer).encode()))
    with pytest.raises(JudgeError, match=r"repeats itself without an end: .*'openai:fake-1\?frequency_penalty=0\.5'"):
        ask(judge_at(server), CLAIMS)
    assert server.calls == 1


def test_the_advice_fits_the_provider(server: FakeOpenAI) -> None:
    text = "The pump hums. " * 40
    assert cut("anthropic:m", text).text.endswith("; name a larger model")
    assert cut("openai:m", text).text.endswith("; write 'openai:m?frequency_penalty=0.5', or name a larger model")
    server.answer = lambda _: fake.truncated()
    with pytest.raises(UnusableReplyError, match=r"raise max_tokens \('openai:fake-1\?max_tokens=N'\)"):
        ask(judge_at(server), CLAIMS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The pump needs two minutes. The pump needs three minutes to fill.",
        json.dumps({"verdicts": [{"number": n, "reason": "It says so."} for n in range(30)]}),
        "".join(f"Pump {word} needs a minute. " for word in ("one", "red", "old", "new", "big", "low", "wet", "dry")),
    ],
)
def test_an_honest_text_does_not_repeat_itself(text: str) -> None:
    assert not repeats_itself(text)
    assert not any(repeats_itself(text[:end]) for end in range(0, len(text), 7))
