"""What an answer costs: every shape of usage that a provider sends, through the real SDKs, and what it is priced at."""

from __future__ import annotations

import json
import warnings
from contextlib import closing, nullcontext
from typing import Any

import genai_prices
import pytest

from pytest_ragmetrics.cache.entry import CacheEntry, key_of, new_entry, request_row
from pytest_ragmetrics.core.errors import warn_once
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.prices import price
from pytest_ragmetrics.judges.providers import openai as openai_module
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.specs import make_judge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.budget import Budget, Budgeted, Limits, UnpricedError
from pytest_ragmetrics.judges.transports.limiter import Limiter, Providers
from pytest_ragmetrics.judges.transports.values import SERVICE_TIER, JudgeOutageError, Repair, Reply, Request
from tests import fake_openai as fake
from tests.asking import MemoryTransport, ask, judge_at
from tests.fake_openai import FakeOpenAI

CLAIMS = ListClaims(text="The lake is deep. Pike live in it.")
GOOD = json.dumps({"claims": ["The lake is deep."]})
_OPENAI = "openai", "gpt-5.4-mini"
_ANTHROPIC = "anthropic", "claude-sonnet-5-5"


def openai_answer(usage: object, text: str = GOOD, **more: object) -> fake.Reply:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    counted = {} if usage is ... else {"usage": usage}
    return fake.Reply(raw=json.dumps({"id": "x", "choices": [choice], **counted, **more}).encode())


def anthropic_answer(usage: object, text: str = GOOD) -> fake.Reply:
    block = {"type": "tool_use", "id": "t", "name": "list_claims", "input": json.loads(text)}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "tool_use"}
    return fake.Reply(raw=json.dumps({**head, "content": [block], "usage": usage}).encode())


def reply_to(server: FakeOpenAI, kind: str, model: str, answer: fake.Reply) -> tuple[Reply, Usage]:
    server.script(answer)
    transport = MemoryTransport()
    (answered,) = ask(judge_at(server, kind, model), CLAIMS, transport=transport)
    return transport.kept[0][1], answered.usage


_FULL = {
    "prompt_tokens": 2006,
    "completion_tokens": 300,
    "prompt_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 50, "audio_tokens": None},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
_CLAUDE = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 2000,
    "cache_read_input_tokens": 3000,
    "cache_creation": {"ephemeral_5m_input_tokens": 1500, "ephemeral_1h_input_tokens": 500},
    "output_tokens": 50,
}
_NO_COUNTS = {"prompt_tokens": None, "completion_tokens": -1}
_DETAILS = (None, {}, [1], *({"cached_tokens": wrong} for wrong in (None, "many", -5, True)))


@pytest.mark.parametrize(
    ("usage", "tier", "counts"),
    [
        *((_FULL, tier, (2006, 300, 1920, 50, None, None)) for tier in (..., "default", None, 3)),
        (_FULL, "flex", (2006, 300, 1920, 50, "flex", None)),
        *(({**_FULL, "prompt_tokens_details": each}, ..., (2006, 300, 0, 0, None, None)) for each in _DETAILS),
        ({"prompt_tokens": 9, "completion_tokens": 1}, ..., (9, 1, 0, 0, None, None)),
        *((no, ..., (0, 0, 0, 0, None, None)) for no in (_NO_COUNTS, None, ..., "9")),
        *(({**_FULL, "cost": cost}, ..., (2006, 300, 1920, 50, None, cost)) for cost in (0.00125, 0)),
        *(({**_FULL, "cost": no}, ..., (2006, 300, 1920, 50, None, None)) for no in (-1, "0.1", True, float("nan"))),
    ],
)
def test_an_openai_usage_is_read(server: FakeOpenAI, usage: object, tier: object, counts: tuple[Any, ...]) -> None:
    more: Any = {} if tier is ... else {"service_tier": tier}
    reply, used = reply_to(server, *_OPENAI, openai_answer(usage, **more))
    prompt, completion, cached, written, reported, billed = counts
    assert (reply.prompt_tokens, reply.completion_tokens) == (prompt, completion)
    assert (reply.cached_prompt_tokens, reply.cache_write_tokens) == (cached, written)
    assert (reply.tier, reply.billed) == (reported, billed)
    listed = price(*_OPENAI, prompt, completion, cached=cached, written=written, tier=reported)
    assert used.cost == pytest.approx(listed if billed is None else billed)
    assert (used.cached_prompt_tokens, used.cache_write_tokens) == (cached, written)


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (_CLAUDE, (5100, 50, 3000, 2000, 500, None)),
        ({**_CLAUDE, "cache_creation": None}, (5100, 50, 3000, 2000, 0, None)),
        ({**_CLAUDE, "cache_creation": {"ephemeral_1h_input_tokens": 9000}}, (5100, 50, 3000, 2000, 2000, None)),
        ({**_CLAUDE, "service_tier": "standard"}, (5100, 50, 3000, 2000, 500, None)),
        ({**_CLAUDE, "service_tier": "batch"}, (5100, 50, 3000, 2000, 500, "batch")),
        ({**_CLAUDE, "cache_read_input_tokens": None}, (2100, 50, 0, 2000, 500, None)),
        ({"input_tokens": 100, "output_tokens": 50}, (100, 50, 0, 0, 0, None)),
        ({"input_tokens": None, "output_tokens": 50, "cache_creation_input_tokens": -4}, (0, 50, 0, 0, 0, None)),
        ({}, (0, 0, 0, 0, 0, None)),
        (None, (0, 0, 0, 0, 0, None)),
    ],
)
def test_an_anthropic_usage_is_read(server: FakeOpenAI, usage: object, counts: tuple[Any, ...]) -> None:
    """Input tokens exclude those of the cache; all together are the prompt."""
    reply, used = reply_to(server, *_ANTHROPIC, anthropic_answer(usage))
    prompt, completion, cached, written, written_1h, tier = counts
    assert (reply.prompt_tokens, reply.completion_tokens, reply.tier) == (prompt, completion, tier)
    caching = (reply.cached_prompt_tokens, reply.cache_write_tokens, reply.cache_write_1h_tokens)
    assert caching == (cached, written, written_1h)
    details = {"cached": cached, "written": written, "written_1h": written_1h, "tier": tier}
    assert used.cost == price(*_ANTHROPIC, prompt, completion, **details)


@pytest.mark.parametrize(
    ("cached", "written", "kept"), [(4000, 0, (2006, 0)), (2000, 50, (2000, 6)), (9, 9**9, (9, 1997))]
)
def test_more_cached_tokens_than_there_are_are_cut(server: FakeOpenAI, cached: int, written: int, kept: Any) -> None:
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    warn_once.cache_clear()
    answer = openai_answer({**_FULL, "prompt_tokens_details": details})
    with pytest.warns(UserWarning, match="openai:gpt-5.4-mini reports more cached tokens than the prompt has") as said:
        (reply, used), _ = [reply_to(server, *_OPENAI, answer) for _ in "ab"]
    assert (len(said), (reply.cached_prompt_tokens, reply.cache_write_tokens)) == (1, kept)
    assert used.cost
    warn_once.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reply_to(server, *_OPENAI, answer)[1] == used


def test_each_part_of_a_repaired_answer_is_priced_by_itself(server: FakeOpenAI) -> None:
    """The rates above 100,000 prompt tokens are those of one request, not of two of 60,000 together."""
    kind, model = "anthropic", "claude-haiku-5-5"
    usage = {"input_tokens": 20_000, "cache_read_input_tokens": 40_000, "output_tokens": 1000}
    server.script(anthropic_answer(usage, '{"no": 1}'), anthropic_answer({**usage, "service_tier": "batch"}))
    transport = MemoryTransport()
    (answered,) = ask(judge_at(server, kind, model), CLAIMS, transport=transport)
    whole, half = (price(kind, model, 60_000, 1000, cached=40_000, tier=tier) or 0 for tier in (None, "batch"))
    assert [half, answered.usage.cost] == pytest.approx([whole / 2, whole + half])
    assert (answered.usage.calls, answered.usage.cached_prompt_tokens) == (2, 80_000)
    assert (price(kind, model, 120_000, 2000, cached=80_000) or 0) > 4 * whole > 0
    # Kept and read again it has saved the same.
    ((request, reply),) = transport.kept
    assert (reply.tier, [part.tier for part in reply.parts]) == (None, [None, "batch"])
    row = request_row(request)
    entry = new_entry(key_of(row), row, reply, salt="", redact=None)
    again = CacheEntry.from_row(json.loads(json.dumps(entry.to_row())))
    assert again.answer() == reply
    assert again.answer(cached=True).usage(request) == Usage(cached_calls=1, saved=answered.usage.cost)


def test_a_budget_counts_what_is_billed(server: FakeOpenAI) -> None:
    budget = Budget(Limits(cost=1.0))
    chain = Repair(Budgeted(Providers(), budget))
    cut = {"id": "x", "choices": [{"index": 0, "finish_reason": "length", "message": {"content": "{"}}], "usage": _FULL}
    server.script(openai_answer(_FULL), openai_answer({**_FULL, "cost": 0.5}), openai_answer({**_FULL, "cost": 0}))
    asked = judge_at(server, *_OPENAI)
    ask(asked, *[CLAIMS] * 3, transport=chain)
    listed = price(*_OPENAI, 2006, 300, cached=1920, written=50) or 0
    assert budget.used().cost == pytest.approx(listed + 0.5)
    server.script(*[fake.Reply(raw=json.dumps(cut).encode())] * 2)
    with pytest.raises(Exception, match="cut off"):
        ask(asked, CLAIMS, transport=chain)
    assert budget.used().cost == pytest.approx(3 * listed + 0.5)
    assert (budget.used().unpriced, listed > 0) == (0, True)
    budget.close()


_REQUEST = Request(task="t", kind="openai", model="gpt-5.4-mini", messages=(), schema={}, parameters={})
_PARTS: list[object] = [{}, [3], [{"text": "x"}], [{"prompt_tokens": -3}], [{"parts": []}]]
_CACHED = {"cached_prompt_tokens": 4, "tier": "flex", "billed": 0.25}


@pytest.mark.parametrize("details", [{}, _CACHED, {"cache_write_tokens": 2, "cache_write_1h_tokens": 1}])
def test_an_entry_has_only_the_details_there_are(details: dict[str, Any]) -> None:
    """So that what is recorded of a server without details is what it was."""
    reply = Reply(text="{}", prompt_tokens=9, **details)
    entry = new_entry("a" * 64, request_row(_REQUEST), reply, salt="", redact=None)
    plain = {"text": "{}", "prompt_tokens": 9, "completion_tokens": 0, "calls": 1}
    assert list(entry.reply.items()) == list({**plain, **details}.items())
    assert CacheEntry.from_row(entry.to_row()).answer() == reply


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("cached_prompt_tokens", -1), ("cache_write_tokens", 1.5), ("tier", 3), ("tier", None)),
        *(("billed", wrong) for wrong in ("0.1", -0.1, True)),
        *(("parts", wrong) for wrong in _PARTS),
    ],
)
def test_an_entry_with_wrong_details_is_refused(name: str, value: object) -> None:
    row = new_entry("a" * 64, request_row(_REQUEST), Reply(text="{}"), salt="", redact=None).to_row()
    with pytest.raises(ValueError, match="the reply is not one"):
        CacheEntry.from_row({**row, "reply": {**row["reply"], name: value}})


def no_capacity(**error: object) -> fake.Reply:
    said = {"message": "Not enough resources.", "type": "rate_limit", "code": "resource_unavailable", **error}
    return fake.Reply(status=429, error=said, headers={"retry-after": "7"})


@pytest.mark.parametrize(
    ("failures", "tiers"),
    [
        ([], ["flex"]),
        *(([failure], ["flex"] * 2) for failure in (no_capacity(), fake.rate_limited(), fake.failing(500))),
        ([no_capacity(code=None, message="Resource Unavailable")] * 2, ["flex"] * 3),
        *(([no_capacity()] * times, ["flex"] * 3 + ["default"]) for times in (3, 4)),
        ([fake.failing(400, "Unsupported.", param="service_tier")], ["flex", None]),
    ],
)
def test_flex_without_capacity_ends_in_the_ordinary_tier(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, failures: list[fake.Reply], tiers: list[str]
) -> None:
    """After two retries of ours, which no limiter hears of; what the answer reports is the price."""
    monkeypatch.setattr(openai_module, "_FLEX_PAUSES", (0.0, 0.0, 0.0))
    server.script(*failures, openai_answer(_FULL, service_tier=tiers[-1]))
    limiter, retries = Limiter(8), 0 if len(failures) == 4 else 2
    asked = judge_at(server, *_OPENAI, parameters={SERVICE_TIER: "flex"}, retries=retries)
    with nullcontext() if retries else pytest.raises(JudgeOutageError, match="Not enough resources"):
        (answered,) = ask(asked, CLAIMS, transport=Repair(limiter))
        tier = "flex" if tiers[-1] == "flex" else None
        assert answered.usage.cost == price(*_OPENAI, 2006, 300, cached=1920, written=50, tier=tier)
        assert limiter.width == (4 if failures[:1] == [fake.rate_limited()] else 8)
    assert [request.body.get("service_tier") for request in server.requests] == tiers


def test_the_tier_is_a_parameter_that_determines_no_answer(server: FakeOpenAI) -> None:
    made: Any = [make_judge(f"openai:gpt-5.4-mini{tier}", timeout=7) for tier in ("", "?service_tier=flex")]
    plain, flex = made
    assert plain.name == flex.name == "openai:gpt-5.4-mini"
    assert flex.parameters == {**plain.parameters, "service_tier": "flex"}
    assert (flex.varied, plain.varied) == ({"temperature": 1}, {"temperature": 1})
    rows = [request_row(each.request(CLAIMS, vote=vote)) for each in (plain, flex) for vote in (0, 1)]
    assert (rows[:2], [each._connection._timeout for each in (plain, flex)]) == (rows[2:], [7, 900])
    own = OpenAIJudge("m", parameters={"service_tier": "priority", "top_p": 0.1}, timeout=7)
    assert (own.parameters, own.varied) == ({"service_tier": "priority", "top_p": 0.1}, {})
    assert (own._connection._timeout, OpenAIJudge("m", parameters={}).parameters) == (7, {})


@pytest.mark.parametrize(
    ("url", "model", "seller"),
    [
        ("https://me:secret@openrouter.ai/api/v1?key=secret", "openai/gpt-5.4-mini", "openrouter"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini-2.5-flash", "google"),
        ("https://house.openai.azure.com/openai/v1", "gpt-4o", "azure"),
        ("http://127.0.0.1:1/v1", "gpt-4o", "openai"),
        (None, "gpt-4o", "openai"),
        ("http://127.0.0.1:1/v1", "house-model", None),
        ("https://openrouter.ai/api/v1", "house-model", None),
    ],
)
def test_the_price_is_that_of_who_sells(url: str | None, model: str, seller: str | None) -> None:
    asked = OpenAIJudge(model, base_url=url)
    request = asked.request(CLAIMS)
    assert "secret" not in str(request.url)
    assert OpenAIEmbedder(model, base_url=url).request(["a"]).url == request.url
    found = Reply(prompt_tokens=10_000, completion_tokens=1000).cost(request)
    usage = genai_prices.Usage(input_tokens=10_000, output_tokens=1000)
    expected = seller and float(genai_prices.calc_price(usage, model, provider_id=seller).total_price)
    assert found == expected
    with (
        closing(Budget(Limits(cost=1.0))) as budget,
        nullcontext() if seller else pytest.raises(UnpricedError),
        budget.request("it", kind="openai", model=model, url=request.url),
    ):
        pass
