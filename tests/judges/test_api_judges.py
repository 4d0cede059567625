"""The OpenAI and the Anthropic judge through their SDKs and a real socket: requests, replies, and what fails."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from traceback import TracebackException
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError, RagMetricsError, UnscoredError
from pytest_ragmetrics.judges.providers.bounds import bounded
from pytest_ragmetrics.judges.providers.connection import ApiJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.limiter import Limiter
from pytest_ragmetrics.judges.transports.values import (
    JudgeOutageError,
    JudgeUnavailableError,
    Reply,
    UnreadableReplyError,
)
from tests import fake_openai as fake
from tests.asking import BOTH, KEY, KINDS, MemoryTransport, ask, judge_at, use
from tests.every_task import EVERY_TASK, VERIFY
from tests.fake_openai import FakeOpenAI

pytestmark = pytest.mark.usefixtures("_short_pauses")
CLAIMS = ListClaims(text="The lake is deep. Pike live in it.")
GOOD = json.dumps({"claims": ["Der See ist groß."]}, ensure_ascii=False)


def judge(server: FakeOpenAI, kind: str = "openai", **options: Any) -> ApiJudge[Any]:
    return judge_at(server, kind, **{"retries": 2, **options})


def failure(asked: ApiJudge[Any], error: type[RagMetricsError] = JudgeError) -> str:
    with pytest.raises(error) as failed:
        ask(asked, CLAIMS)
    assert failed.type is error
    shown = TracebackException.from_exception(failed.value, capture_locals=True).format()
    assert KEY not in f"{failed.value!r} {''.join(shown)}"
    return str(failed.value)


@BOTH
def test_a_reply_has_the_model_that_answered(server: FakeOpenAI, kind: str) -> None:
    secret = "sk-" + "a1B2" * 8
    server.script(*(fake.Reply(text=GOOD, served=(model, None)) for model in ("fake-2026-01-31", "fake-1", secret)))
    for served in ("fake-2026-01-31", "", "***"):
        ask(judge(server, kind), CLAIMS, transport=(transport := MemoryTransport()))
        assert [reply.served for _, reply in transport.kept] == [served]


@BOTH
def test_every_task_is_asked_with_its_schema(server: FakeOpenAI, kind: str) -> None:
    server.waves = [len(EVERY_TASK)]
    assert all(answered.answer is not None for answered in ask(judge(server, kind), *EVERY_TASK))
    found = {}
    for request in server.requests:
        body = request.body
        assert body["temperature"] == 0
        if kind == "openai":
            form = body["response_format"]["json_schema"]
            assert (body["response_format"]["type"], form["strict"]) == ("json_schema", True)
            assert [message["role"] for message in body["messages"]] == ["system", "user"]
            assert request.headers["authorization"] == f"Bearer {KEY}"
            found[form["name"]] = form["schema"]
        else:
            (tool,) = body["tools"]
            assert body["tool_choice"] == {"type": "tool", "name": tool["name"]}
            assert [message["role"] for message in body["messages"]] == ["user"]
            assert body["system"].startswith("You judge texts.")
            assert request.path == "/v1/messages"
            assert KEY in (request.headers.get("x-api-key"), request.headers.get("authorization", "")[7:])
            found[tool["name"]] = tool["input_schema"]
    wanted = (
        (task, bounded(task.schema(), task)[0]) if kind == "openai" else (task, task.schema()) for task in EVERY_TASK
    )
    assert found == {task.prompt: schema for task, schema in wanted}


BAD = json.dumps({"verdicts": [{"number": 1, "reason": "", "sentences": [1], "verdict": "supported"}]})
NONE = {"reason": "", "sentences": [], "verdict": "unsupported"}
FULL = json.dumps({"verdicts": [{"number": 1, **NONE}, {"number": 2, **NONE}]})


@BOTH
def test_one_request_repairs_and_both_are_counted(server: FakeOpenAI, kind: str) -> None:
    server.script(fake.Reply(text=BAD, usage=(100, 10)), fake.Reply(text=FULL, usage=(130, 20)))
    transport = MemoryTransport()
    (answered,) = ask(judge(server, kind), VERIFY, transport=transport)
    assert [judgement.ok for judgement in answered.answer] == [False, False]
    first, second = (request.body["messages"] for request in server.requests)
    assert second[:-1] == [*first, {"role": "assistant", "content": BAD}]
    assert "nothing for claim 2" in second[-1]["content"]
    ((request, reply),) = transport.kept
    assert request.messages[-1] == first[-1]
    parts = Reply(prompt_tokens=100, completion_tokens=10), Reply(prompt_tokens=130, completion_tokens=20)
    assert reply == Reply(text=FULL, prompt_tokens=230, completion_tokens=30, calls=2, parts=parts)
    assert answered.usage == reply.usage(request)


def test_a_second_misfit_is_unscored(server: FakeOpenAI) -> None:
    server.script(*[fake.Reply(text=BAD, usage=(100, 10))] * 2)
    transport = MemoryTransport()
    with pytest.raises(UnreadableReplyError, match=r"openai:fake-1, verify_claims.*nothing for claim 2") as failed:
        ask(judge(server), VERIFY, transport=transport)
    assert '"sentences": [1]' in str(failed.value)
    assert (server.calls, transport.kept) == (2, [])
    assert (failed.value.reply.prompt_tokens, failed.value.reply.calls) == (200, 2)


@pytest.mark.parametrize(("kind", "text"), [("openai", "```json\n{}\n```"), ("anthropic", "Here you are: {}.")])
def test_prose_around_the_object_is_not_stored(server: FakeOpenAI, kind: str, text: str) -> None:
    server.script(text.replace("{}", GOOD))
    transport = MemoryTransport()
    ask(judge(server, kind), CLAIMS, transport=transport)
    assert ([reply.text for _, reply in transport.kept], server.calls) == ([GOOD], 1)


@pytest.mark.parametrize("text", ["edited by hand", '{"claims": 3}', f"{GOOD} and more"])
def test_a_recorded_reply_that_does_not_fit_is_unscored(server: FakeOpenAI, text: str) -> None:
    asked, transport = judge(server), MemoryTransport()
    transport.kept.append((asked.request(CLAIMS), Reply(text=text)))
    with pytest.raises(UnscoredError, match="recorded reply does not fit"):
        ask(asked, CLAIMS, transport=transport)
    assert server.calls == 0


@pytest.mark.parametrize(
    ("refuses", "form", "calls"),
    [("json_schema", "json_object", 2), ("json_schema json_object", None, 3), ("response_format", None, 3)],
)
def test_output_steps_down(server: FakeOpenAI, refuses: str, form: str | None, calls: int) -> None:
    server.refuses = frozenset(refuses.split())
    asked = judge(server)
    use(asked, asked.ask(CLAIMS), asked.ask(VERIFY))
    assert [request.status for request in server.requests] == [400] * (calls - 1) + [200, 200]
    last = server.requests[-1].body
    assert last.get("response_format") == (form and {"type": form})
    assert json.dumps(VERIFY.schema(), separators=(",", ":")) in last["messages"][-1]["content"]


@BOTH
def test_refused_parameters_are_dropped_but_stay_in_the_key(server: FakeOpenAI, kind: str) -> None:
    server.refuses = frozenset({"temperature", "top_p"})
    asked = judge(server, kind, parameters={"temperature": 0.3, "top_p": 0.9, "seed": 7, "min_p": 0.1})
    before, transport = asked.request(CLAIMS), MemoryTransport()
    ask(asked, CLAIMS, transport=transport)
    assert [request.status for request in server.requests] == [400, 400, 200]
    body = server.requests[-1].body
    assert not {"temperature", "top_p"} & body.keys()
    assert (body["seed"], body["min_p"], "max_tokens" in body) == (7, 0.1, True)
    assert transport.kept[0][0] == before == asked.request(CLAIMS)
    assert before.parameters["temperature"] == 0.3
    assert asked.request(CLAIMS, vote=1) != before


def test_many_step_down_at_once(server: FakeOpenAI) -> None:
    server.refuses = frozenset({"json_schema"})
    server.waves = [10, 10]
    ask(judge(server), *[ListClaims(text=f"Lake {number} is deep.") for number in range(10)])
    assert (server.calls, server.answered) == (20, 10)
    assert all(r.body["response_format"] == {"type": "json_object"} for r in server.requests if r.status == 200)


@pytest.mark.parametrize(
    "message",
    [
        "This model does not support response format `json_schema`.",
        "'response_format.type' must be in ['text', 'json_object']",
        "Structured output is not available.",
        "response_format is not supported together with temperature",
    ],
)
def test_the_words_of_other_servers_are_understood(server: FakeOpenAI, message: str) -> None:
    for status in (400, 422):
        server.script(fake.failing(status, message))
        assert ask(judge(server), CLAIMS)[0].answer
        assert server.requests[-1].body["temperature"] == 0


def test_a_model_that_may_not_be_forced_answers_in_text(server: FakeOpenAI) -> None:
    server.script(fake.failing(400, "Thinking may not be enabled when tool_choice forces tool use."), f"So: {GOOD}")
    assert ask(judge(server, "anthropic"), CLAIMS)[0].answer == ("Der See ist groß.",)
    body = server.requests[-1].body
    assert not {"tools", "tool_choice"} & body.keys()
    assert json.dumps(CLAIMS.schema(), separators=(",", ":")) in body["messages"][0]["content"]


def replies() -> Iterator[tuple[str, fake.Reply, type[JudgeError], str]]:
    plain, gone = JudgeError, JudgeUnavailableError
    for kind in ("openai", "anthropic"):
        name = kind.upper()
        yield kind, fake.refused("I will not."), plain, "refused to answer: I will not."
        yield kind, fake.failing(401, f"Wrong key: {KEY}."), gone, f"the key was refused; check {name}_API_KEY"
        unknown = f"knows no model fake-1 (Gone.); check its name and {name}_BASE_URL"
        yield kind, fake.failing(404, "Gone."), gone, unknown
        yield kind, fake.failing(400, f"{KEY} is too long"), plain, "rejected with status 400 (*** is too long)"
    yield "openai", fake.failing(403, "No."), gone, "may not use the model fake-1 (No.); check OPENAI_API_KEY"
    yield "openai", fake.out_of_quota(), gone, "no credit left (You exceeded your current quota, please check your plan"
    yield "anthropic", fake.failing(400, "Your credit balance is too low to go on."), gone, "no credit left"
    # The API requires it.
    yield "anthropic", fake.failing(400, "max_tokens is not supported"), plain, "rejected with status 400 (max_tokens"
    yield "openai", fake.filtered(), plain, "was stopped by the provider's content filter"


@pytest.mark.parametrize(("kind", "reply", "error", "message"), list(replies()))
def test_what_no_retry_can_cure(server: FakeOpenAI, kind: str, reply: fake.Reply, error: Any, message: str) -> None:
    server.script(reply)
    assert message in failure(judge(server, kind), error)
    assert server.calls == 1


@BOTH
def test_overload_is_waited_for(server: FakeOpenAI, kind: str) -> None:
    server.script(fake.rate_limited(0.1), fake.dropped(), fake.failing(529, "Overloaded"), fake.rate_limited())
    asked, limiter = judge(server, kind, retries=4), Limiter(8, clock=itertools.count(0, 1).__next__)
    began = time.monotonic()
    assert use(asked, limiter.send(asked.request(CLAIMS)))[0].calls == 1
    assert time.monotonic() - began >= 0.1
    assert (server.calls, limiter.sent, limiter.width) == (5, 5, 2)


@pytest.mark.parametrize(
    ("reply", "options", "calls", "message"),
    [
        (fake.rate_limited(), {}, 3, "asked too fast, after 2 retries (Rate limit reached.); lower --rag-concurr"),
        (fake.failing(500, "No coffee."), {}, 3, "failed with status 500, after 2 retries (No coffee.)"),
        (fake.dropped(), {"retries": 1}, 2, "{url} cannot be reached, after 1 retry"),
        (fake.silent(), {"retries": 0, "timeout": 0.2}, 1, "no answer within 0.2 s; see --rag-timeout"),
        # A pause that the server asks for does not extend the time of all attempts together.
        (fake.rate_limited(30), {"deadline": 0.2}, 1, "no answer within 0.2 s in all"),
    ],
)
def test_an_outage_names_the_settings_that_help(
    server: FakeOpenAI, reply: fake.Reply, options: dict[str, Any], calls: int, message: str
) -> None:
    server.answer = lambda _: reply
    assert message.format(url=server.base_url) in failure(judge(server, **options), JudgeOutageError)
    assert server.calls == calls


@pytest.mark.parametrize(("scheme", "error"), [("http", JudgeOutageError), ("ftp", JudgeNotConfiguredError)])
def test_nobody_listens(scheme: str, error: type[RagMetricsError]) -> None:
    with FakeOpenAI() as gone:
        plain = gone.base_url
    url = plain.replace("http://", f"{scheme}://me:s3cret@") + "?token=t0ken"
    message = failure(OpenAIJudge("fake-1", base_url=url, api_key=KEY, retries=0), error)
    assert plain.replace("http://", "//***@") in message
    found = [name for name in ("OPENAI_BASE_URL", "s3cret", "t0ken") if name in message]
    assert found == ["OPENAI_BASE_URL"]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("openai", {}, "openai:m needs a key: set OPENAI_API_KEY"),
        ("anthropic", {}, "anthropic:m needs a key: set ANTHROPIC_API_KEY"),
        ("openai", {"base_url": "host:80", "api_key": KEY}, "must begin with http:// or https://, not 'host:80'"),
        ("openai", {"api_key": "sk-zwölf"}, "OPENAI_API_KEY contains characters that no key has$"),
        ("openai", {"api_key": "sk-two words"}, "OPENAI_API_KEY contains characters that no key has$"),
        ("openai", {"api_key": "sk-a\r\nx-evil: 1"}, "OPENAI_API_KEY contains characters that no key has$"),
    ],
)
def test_what_is_missing_is_named(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(JudgeNotConfiguredError, match=message):
        ask(KINDS[kind]("m", **options), CLAIMS)


def test_the_environment_gives_both(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f" {server.base_url} ")
    assert ask(OpenAIJudge("fake-1"), CLAIMS)[0].answer
    assert server.requests[0].headers["authorization"] == "Bearer none"
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    server.key, asked = KEY, OpenAIJudge("fake-1")
    assert ask(asked, CLAIMS)[0].answer
    assert repr(asked) == "<OpenAIJudge openai:fake-1>"
    assert not re.search(rf"{KEY}|127\.0\.0\.1", f"{asked.request(CLAIMS)!r} {asked._connection!r}")


@pytest.mark.parametrize(("kind", "wanted"), [("openai", ""), ("anthropic", "[anthropic]")])
def test_a_missing_package_names_what_to_install(monkeypatch: pytest.MonkeyPatch, kind: str, wanted: str) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(JudgeNotConfiguredError, match=re.escape(f'pip install "pytest-ragmetrics{wanted}"')):
        ask(KINDS[kind]("fake-1", api_key=KEY), CLAIMS)


def test_further_samples_are_varied(server: FakeOpenAI) -> None:
    ask(judge(server), CLAIMS, votes=2)
    ask(judge(server, parameters={"temperature": 0.3}), CLAIMS, votes=2)
    temperatures = [request.body["temperature"] for request in server.requests]
    # The two samples of a question are in flight together: either may arrive first.
    assert (sorted(temperatures[:2]), temperatures[2:]) == ([0, 1], [0.3, 0.3])


def test_importing_the_judge_does_not_import_the_sdk() -> None:
    """The SDK, which takes a second to import, is loaded with the first request."""
    code = (
        "import sys; from pytest_ragmetrics.judges.providers.openai import OpenAIJudge; OpenAIJudge('m');"
        "print({name.split('.')[0] for name in sys.modules} & {'openai', 'httpx', 'httpx2', 'numpy', 'pydantic'})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def refusals(name: str) -> Iterator[bytes]:
    """Yield the bodies in which servers say that they do not take a parameter; some repeat the whole request."""
    said = f"Unknown name {json.dumps(name)}: Cannot find field."
    fault = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
    input_ = {"top_p": 0.9, "seed": 7, "temperature": 0.3, "response_format": {}}
    for body in (
        {"detail": f"{name} is not supported"},
        {"detail": [{**fault, "input": input_}]},
        {"detail": {"error": said}},
        [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}],
        {"object": "error", "message": {"detail": [{**fault, "input": input_}]}, "code": 1},
        {"error": f"invalid parameter: {name}"},
        {"error": {"message": json.dumps({"detail": [fault]})}},
        {"errors": [{"reason": said}]},
        {"error": {"param": name, "message": "No."}},
        {"message": f"{name}: forbidden", "request": input_},
        f"got an unexpected keyword argument '{name}'",
        {"error": {"message": f"invalid {name}: only 1 is allowed for this model"}},
        *([f"{name} 不支持"], [f"{name} はサポートされていません"]),
        *([f"{name} wird nicht unterstützt"], [f"{name} n'est pas pris en charge"]),
        {"fault": {"text": said}},
    ):
        yield json.dumps(body).encode()
    yield f"{name} is not a valid field".encode()
    yield f"<!DOCTYPE html><style>seed {{}}</style><h1>400</h1><p>Unrecognised &quot;{name}&quot;</p>".encode()


@pytest.mark.parametrize(("kind", "name", "status"), [("openai", "top_p", 400), ("anthropic", "seed", 422)])
def test_refusals_are_understood_in_every_shape(server: FakeOpenAI, kind: str, name: str, status: int) -> None:
    for body in refusals(name):
        server.script(fake.Reply(raw=body, status=status))
        ask(judge(server, kind, parameters={"temperature": 0.3, "top_p": 0.9, "seed": 7}), CLAIMS)
        assert {"temperature", "top_p", "seed"} - server.requests[-1].body.keys() == {name}, body
    for body in refusals("stop"):
        server.answer = lambda _, body=body: fake.Reply(raw=body, status=400)  # type: ignore[misc] # bound here
        said = failure(judge(server, kind))
        assert "stop" in said or '"No."' in said or "(No.)" in said
        assert "top_p" not in said


@BOTH
def test_what_cannot_be_left_out_is_shown(server: FakeOpenAI, kind: str) -> None:
    for said in ("top_p must be at most 1", "top_p: only numbers from 0 to 1", "top_p muss kleiner als 1 sein"):
        server.script(*[fake.failing(400, said)] * 2)
        assert said in failure(judge(server, kind, parameters={"top_p": 9}))
        assert server.requests[-1].body["top_p"] == 9
        server.reset()
    for body in (b"", b"{}", b"[]", b"null", b'{"error": null}', b'{"error": {}}', b'{"detail": []}'):
        server.script(*[fake.Reply(raw=body, status=400)] * 9)
        assert "rejected with status 400 (Error code: 400" in failure(judge(server))
        server.reset()
