"""The OpenAI judge through the official SDK and a real socket: what it asks, and what each failure becomes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragmetrics.errors import JudgeError, JudgeNotConfiguredError, UnscoredError
from pytest_ragmetrics.judges.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims, Task
from pytest_ragmetrics.judges.transport import DIRECT, JudgeUnavailableError, Reply, UnreadableReplyError
from pytest_ragmetrics.result import Usage
from tests import fake_openai as fake
from tests.asking import MemoryTransport, ask
from tests.every_task import EVERY_TASK, VERIFY
from tests.fake_openai import FakeOpenAI

KEY = "sk-fake-0123456789"
CLAIMS = ListClaims(text="The lake is deep. Pike live in it.")
GOOD = json.dumps({"claims": ["The lake is deep."]})


def judge(server: FakeOpenAI, **options: Any) -> OpenAIJudge:
    """Return a judge that asks the server, and is soon tired of trying."""
    return OpenAIJudge("fake-1", **{"base_url": server.base_url, "api_key": KEY, "retries": 2, "timeout": 5, **options})


def failure(asked: OpenAIJudge) -> str:
    """Return what a failing judge says, after a look that the key is not in it."""
    with pytest.raises(JudgeError) as failed:
        ask(asked, CLAIMS)
    assert KEY not in f"{failed.value!r} {failed.getrepr(showlocals=True, chain=True)}"
    return str(failed.value)


@pytest.mark.parametrize("task", EVERY_TASK, ids=lambda task: str(task.prompt))
def test_every_task_is_asked_with_a_strict_schema_and_answered(server: FakeOpenAI, task: Task[Any]) -> None:
    """One request with strict structured output answers each task."""
    (answered,) = ask(judge(server), task)
    assert answered.answer is not None
    (request,) = server.requests
    form = request.body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"] == {"name": task.prompt, "strict": True, "schema": task.schema()}
    assert request.body["temperature"] == 0
    assert [message["role"] for message in request.body["messages"]] == ["system", "user"]
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_usage_is_what_the_server_counted(server: FakeOpenAI) -> None:
    """Tokens come from the server, where it counts them; what an unknown model costs is unknown."""
    message = {"role": "assistant", "content": GOOD}
    body = {"id": "x", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    server.script(fake.Reply(text=GOOD, usage=(120, 7)), fake.Reply(raw=json.dumps(body).encode()))
    counted, uncounted = (ask(judge(server), CLAIMS)[0].usage for _ in "ab")
    assert counted == Usage(calls=1, prompt_tokens=120, completion_tokens=7, cost=None)
    assert (uncounted.calls, uncounted.prompt_tokens) == (1, 0)


def test_a_known_model_has_a_price(server: FakeOpenAI) -> None:
    """The cost is computed from the tokens; a cached reply says what it saved and costs nothing."""
    server.script(fake.Reply(text=GOOD, usage=(1_000_000, 0)))
    transport = MemoryTransport()
    live, cached = (
        ask(OpenAIJudge("gpt-4o", base_url=server.base_url), CLAIMS, transport=transport)[0].usage for _ in "ab"
    )
    assert live.cost is not None
    assert live.cost > 0.1
    assert cached == Usage(cached_calls=1, saved=live.cost)
    assert server.calls == 1


class TestRepair:
    """A reply that does not fit is repaired once."""

    BAD = json.dumps({"verdicts": [{"number": 1, "reason": "", "sentences": [1], "verdict": "supported"}]})
    FULL = json.dumps(
        {"verdicts": [{"number": n, "reason": "", "sentences": [], "verdict": "unsupported"} for n in (1, 2)]}
    )

    def test_one_request_repairs_and_both_are_counted(self, server: FakeOpenAI) -> None:
        """The judge sees its own reply and what is wrong with it; the tokens of both requests are counted."""
        server.script(fake.Reply(text=self.BAD, usage=(100, 10)), fake.Reply(text=self.FULL, usage=(130, 20)))
        transport = MemoryTransport()
        (answered,) = ask(judge(server), VERIFY, transport=transport)
        assert [judgement.ok for judgement in answered.answer] == [False, False]
        assert (answered.usage.calls, answered.usage.prompt_tokens, answered.usage.completion_tokens) == (2, 230, 30)
        first, second = server.requests
        assert second.body["messages"][:2] == first.body["messages"]
        assert second.body["messages"][2] == {"role": "assistant", "content": self.BAD}
        assert "nothing for claim 2" in second.body["messages"][3]["content"]
        ((request, reply),) = transport.kept
        assert [message["content"] for message in request.messages] == [m["content"] for m in first.body["messages"]]
        assert reply == Reply(text=self.FULL, prompt_tokens=230, completion_tokens=30, calls=2)

    def test_a_second_misfit_is_unscored(self, server: FakeOpenAI) -> None:
        """After one repair there is no third request: the failure says what is wrong, what came back, what it took."""
        server.script(fake.Reply(text=self.BAD, usage=(100, 10)), fake.Reply(text=self.BAD, usage=(130, 20)))
        transport = MemoryTransport()
        with pytest.raises(UnreadableReplyError) as failed:
            ask(judge(server), VERIFY, transport=transport)
        assert server.calls == 2
        assert transport.kept == []
        assert "openai:fake-1, verify_claims" in str(failed.value)
        assert "nothing for claim 2" in str(failed.value)
        assert '"sentences": [1]' in str(failed.value)
        assert (failed.value.reply.prompt_tokens, failed.value.reply.calls) == (230, 2)

    @pytest.mark.parametrize("reply", ["Yes, all of it.", '{"claims": [1]}', '{"claims": []', "[]"])
    def test_nonsense_is_repaired_too(self, server: FakeOpenAI, reply: str) -> None:
        """Prose, wrong types and broken JSON get the same one chance."""
        server.script(reply, GOOD)
        assert ask(judge(server), CLAIMS)[0].answer == ("The lake is deep.",)
        assert server.calls == 2

    def test_what_is_kept_is_the_object_alone(self, server: FakeOpenAI) -> None:
        """Fences and prose around the object are not stored."""
        server.script(f"Here you are:\n```json\n{GOOD}\n```")
        transport = MemoryTransport()
        ask(judge(server), CLAIMS, transport=transport)
        assert [reply.text for _, reply in transport.kept] == [GOOD]

    @pytest.mark.parametrize("text", ["edited by hand", '{"claims": 3}', f"{GOOD} and more"])
    def test_a_recorded_reply_that_does_not_fit_is_unscored(self, server: FakeOpenAI, text: str) -> None:
        """A record that was tampered with is named as such, and not asked for again."""
        transport = MemoryTransport()
        asked = judge(server)
        transport.kept.append((asked.request(CLAIMS), Reply(text=text)))
        with pytest.raises(UnscoredError, match="recorded reply does not fit"):
            ask(asked, CLAIMS, transport=transport)
        assert server.calls == 0


class TestNegotiation:
    """What a server refuses is given up, remembered, and kept out of the key."""

    @pytest.mark.parametrize(
        ("refuses", "form", "calls"),
        [
            ({"json_schema"}, {"type": "json_object"}, 2),
            ({"json_schema", "json_object"}, None, 3),
            ({"response_format"}, None, 3),
        ],
    )
    def test_output_steps_down(self, server: FakeOpenAI, refuses: set[str], form: object, calls: int) -> None:
        """Schema, then JSON mode, then text: found out once per judge, the schema then stands in the prompt."""
        server.refuses = frozenset(refuses)
        asked = judge(server)

        async def twice() -> None:
            await asked.ask(CLAIMS)
            await asked.ask(VERIFY)
            await asked.aclose()

        asyncio.run(twice())
        assert [request.status for request in server.requests] == [400] * (calls - 1) + [200, 200]
        last = server.requests[-1].body
        assert last.get("response_format") == form
        assert json.dumps(VERIFY.schema(), separators=(",", ":")) in last["messages"][-1]["content"]

    def test_refused_parameters_are_dropped(self, server: FakeOpenAI) -> None:
        """Each parameter that the model refuses is left out from then on, the others stay."""
        server.refuses = frozenset({"temperature", "top_p"})
        asked = judge(server, parameters={"temperature": 0.3, "top_p": 0.9, "seed": 7, "min_p": 0.1})
        ask(asked, CLAIMS)
        assert [request.status for request in server.requests] == [400, 400, 200]
        body = server.requests[-1].body
        assert not {"temperature", "top_p"} & body.keys()
        assert (body["seed"], body["min_p"]) == (7, 0.1)

    def test_the_key_does_not_depend_on_what_was_negotiated(self, server: FakeOpenAI) -> None:
        """The request that is handed in is the one that was asked for, before and after a refusal."""
        asked = judge(server, parameters={"temperature": 0.3})
        before = asked.request(CLAIMS)
        server.refuses = frozenset({"temperature", "json_schema"})
        transport = MemoryTransport()
        ask(asked, CLAIMS, transport=transport)
        assert transport.kept[0][0] == before == asked.request(CLAIMS)
        assert before.parameters == {"temperature": 0.3}
        assert asked.request(CLAIMS, vote=1) != before

    def test_many_find_out_at_once(self, server: FakeOpenAI) -> None:
        """Requests that are refused together step down once, not once each."""
        server.refuses = frozenset({"json_schema"})
        server.latency = 0.05
        ask(judge(server), *[ListClaims(text=f"Lake {number} is deep.") for number in range(10)])
        assert server.answered == 10
        assert all(r.body["response_format"] == {"type": "json_object"} for r in server.requests if r.status == 200)

    @pytest.mark.parametrize(
        "message",
        [
            "This model does not support response format `json_schema`.",
            "'response_format.type' must be in ['text', 'json_object']",
            "Structured output is not available.",
        ],
    )
    def test_other_servers_words_are_understood(self, server: FakeOpenAI, message: str) -> None:
        """A refusal is also recognised by its text, with 422 as with 400."""
        for status in (400, 422):
            server.script(fake.failing(status, message))
            assert ask(judge(server), CLAIMS)[0].answer

    def test_any_other_rejection_is_an_error(self, server: FakeOpenAI) -> None:
        """What cannot be given up is not tried again."""
        server.script(fake.failing(400, "This model's maximum context length is 8192 tokens."))
        assert "rejected with status 400 (This model's maximum context length is 8192" in failure(judge(server))
        assert server.calls == 1


class TestFailures:
    """Each failure of a provider becomes a JudgeError that says what to do, and never shows the key."""

    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (fake.truncated(), "was cut off by its length limit"),
            (fake.truncated(GOOD), "was cut off by its length limit"),
            (fake.filtered(), "was stopped by the provider's content filter"),
            (fake.refused("I will not."), "refused to answer: I will not."),
            (fake.Reply(text=""), "replied with nothing"),
            (fake.Reply(text=None), "replied with nothing"),
            (fake.Reply(raw=b'{"choices": []}'), "does not answer like the OpenAI API; check OPENAI_BASE_URL"),
            (fake.Reply(raw=b'{"ok": true}'), "does not answer like the OpenAI API"),
            (fake.Reply(raw=b'["ok"]'), "does not answer like the OpenAI API"),
            (fake.Reply(raw=b"<html>"), "sent what is no answer to the request"),
            (fake.Reply(raw=b"ok", headers={"content-type": "text/plain"}), "does not answer like the OpenAI API"),
        ],
    )
    def test_replies_that_are_no_answers(self, server: FakeOpenAI, reply: fake.Reply, message: str) -> None:
        """Cut-off, filtered, refused, empty and foreign replies are told apart, and neither repaired nor retried."""
        server.script(reply)
        assert message in failure(judge(server))
        assert server.calls == 1

    def test_no_credit_stops_at_once(self, server: FakeOpenAI) -> None:
        """A 429 for want of credit is not retried, and is marked as one after which a run should stop."""
        server.answer = lambda _: fake.out_of_quota()
        asked = judge(server, retries=5)
        with pytest.raises(JudgeUnavailableError, match=r"no credit left .*check your plan and billing details"):
            ask(asked, CLAIMS)
        assert server.calls == 1

    @pytest.mark.parametrize(
        ("status", "message"),
        [
            (401, "the key was refused; check OPENAI_API_KEY"),
            (403, "the key may not use the model fake-1 (You shall not pass.); check OPENAI_API_KEY"),
            (404, "knows no model fake-1 (You shall not pass.); check its name and OPENAI_BASE_URL"),
        ],
    )
    def test_what_no_retry_can_cure(self, server: FakeOpenAI, status: int, message: str) -> None:
        """A wrong key, right or model is told at once with the name of what to check, and stops a run."""
        server.answer = lambda _: fake.failing(status, "You shall not pass.")
        asked = judge(server)
        assert message in failure(asked)
        with pytest.raises(JudgeUnavailableError):
            ask(asked, CLAIMS)
        assert server.calls == 2

    def test_a_key_that_the_server_repeats_is_not_shown(self, server: FakeOpenAI) -> None:
        """Servers that quote the key in their errors do not get it into ours."""
        server.key = "sk-other"
        assert "the key was refused" in failure(judge(server))
        server.key = None
        server.script(fake.failing(400, f"Bad header: Bearer {KEY}"))
        assert "Bad header: Bearer ***" in failure(judge(server))

    def test_a_rate_limit_is_waited_for(self, server: FakeOpenAI) -> None:
        """The pause that the server asks for is kept, the request answered, and the engine told."""
        told: list[int] = []
        server.script(fake.rate_limited(0.3), fake.rate_limited(0.01))
        asked = judge(server)
        request = replace(asked.request(CLAIMS), rate_limited=lambda: told.append(1))

        async def timed() -> float:
            began = asyncio.get_running_loop().time()
            await DIRECT.send(request)
            await asked.aclose()
            return asyncio.get_running_loop().time() - began

        assert asyncio.run(timed()) >= 0.31
        assert server.calls == 3
        assert told == [1, 1]

    def test_a_rate_limit_without_end(self, server: FakeOpenAI) -> None:
        """When the retries are used up, the message names the two settings that help."""
        server.answer = lambda _: fake.rate_limited()
        message = failure(judge(server))
        assert "asked too fast, after 2 retries (Rate limit reached.); lower --rag-concurrency" in message
        assert server.calls == 3

    def test_a_server_error_is_retried(self, server: FakeOpenAI) -> None:
        """A failing server is given another chance, as often as asked for."""
        server.script(fake.failing(500), fake.failing(503))
        assert ask(judge(server), CLAIMS)[0].usage.calls == 1
        server.answer = lambda _: fake.failing(500, "Out of coffee.")
        assert "failed with status 500, after 2 retries (Out of coffee.)" in failure(judge(server))
        assert server.calls == 6

    def test_a_dropped_connection_is_retried(self, server: FakeOpenAI) -> None:
        """A connection that breaks is made again; one that always breaks names the address."""
        server.script(fake.dropped())
        assert ask(judge(server), CLAIMS)[0].answer
        server.answer = lambda _: fake.dropped()
        message = failure(judge(server, retries=1))
        assert f"{server.base_url} cannot be reached, after 1 retry" in message
        assert "OPENAI_BASE_URL" in message

    def test_nobody_listens(self) -> None:
        """A refused connection names address and variable, an unusable one too; neither shows a password or token."""
        with FakeOpenAI() as gone:
            plain = gone.base_url
        url = plain.replace("//", "//me:s3cret@") + "?token=t0ken"
        with pytest.raises(JudgeNotConfiguredError) as refused:
            ask(OpenAIJudge("fake-1", base_url=url.replace("http://", "ftp://"), api_key=KEY), CLAIMS)
        message = failure(OpenAIJudge("fake-1", base_url=url, api_key=KEY, retries=0))
        assert plain.replace("//", "//***@") in message
        assert "check the network and OPENAI_BASE_URL" in message
        for shown in (message, str(refused.value)):
            assert "//***@127.0.0.1" in shown
            assert "s3cret" not in shown
            assert "t0ken" not in shown

    def test_silence_ends_with_the_timeout(self, server: FakeOpenAI) -> None:
        """A silent server is given up after the timeout of each attempt; all attempts together have a deadline."""
        server.answer = lambda _: fake.silent()
        message = failure(judge(server, timeout=0.2, retries=1))
        assert "no answer within 0.2 s, after 1 retry; see --rag-timeout" in message
        assert server.calls == 2
        server.answer = lambda _: fake.rate_limited(30)
        assert "no answer within 0.3 s in all" in failure(judge(server, deadline=0.3))


class TestKeyAndAddress:
    """Where key and address come from, and what is said where they are missing."""

    def test_a_missing_key_names_its_variable(self) -> None:
        """Without a key nothing is sent, and an address without its scheme is not tried for minutes."""
        with pytest.raises(JudgeNotConfiguredError, match=r"openai:gpt-5\.4-mini needs a key: set OPENAI_API_KEY"):
            ask(OpenAIJudge("gpt-5.4-mini"), CLAIMS)
        message = "must begin with http:// or https://, not 'localhost:8000/v1'"
        with pytest.raises(JudgeNotConfiguredError, match=message):
            ask(OpenAIJudge("fake-1", base_url="localhost:8000/v1", api_key=KEY), CLAIMS)

    def test_the_environment_gives_both(self, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
        """Key and address are read from it without white space; an address alone is enough, and no key is made up."""
        monkeypatch.setenv("OPENAI_BASE_URL", f" {server.base_url} ")
        assert ask(OpenAIJudge("fake-1"), CLAIMS)[0].answer
        assert server.requests[0].headers["authorization"] == "Bearer none"
        monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
        server.key = KEY
        assert ask(OpenAIJudge("fake-1"), CLAIMS)[0].answer

    @pytest.mark.parametrize("key", ["sk-zwölf", "sk-two words", "sk-a\r\nx-evil: 1"])
    def test_a_key_that_cannot_be_one(self, server: FakeOpenAI, key: str) -> None:
        """A key with characters that no header may hold is named as a slip, without being shown."""
        with pytest.raises(JudgeNotConfiguredError) as failed:
            ask(judge(server, api_key=key), CLAIMS)
        assert "OPENAI_API_KEY holds characters that no key has" in str(failed.value)
        assert key not in str(failed.value)

    def test_nothing_shows_the_key(self, server: FakeOpenAI) -> None:
        """Neither the judge nor what it hands in shows the key or the address."""
        asked = judge(server)
        shown = f"{asked!r} {asked.request(CLAIMS)!r} {asked._connection!r}"
        assert KEY not in shown
        assert "127.0.0.1" not in shown
        assert repr(asked) == "<OpenAIJudge openai:fake-1>"


def test_requests_are_made_at_the_same_time(server: FakeOpenAI) -> None:
    """Many questions asked together are in flight together, each vote its own request."""
    server.latency = 0.1
    ask(judge(server), *[ListClaims(text=f"Lake {number} is deep.") for number in range(8)], votes=2)
    assert server.calls == 16
    assert server.in_flight_max == 16


def test_further_samples_are_varied(server: FakeOpenAI) -> None:
    """The first sample is as steady as can be, the next are free to differ; parameters of one's own hold for all."""
    ask(judge(server), CLAIMS, votes=2)
    ask(judge(server, parameters={"temperature": 0.3}), CLAIMS, votes=2)
    temperatures = [request.body["temperature"] for request in server.requests]
    # The two samples of a question are in flight together: either may arrive first.
    assert (sorted(temperatures[:2]), temperatures[2:]) == ([0, 1], [0.3, 0.3])


def test_importing_the_judge_does_not_import_the_sdk() -> None:
    """The SDK, which takes a second to import, is loaded with the first request."""
    code = (
        "import sys; from pytest_ragmetrics.judges.openai import OpenAIJudge; OpenAIJudge('m');"
        "print({name.split('.')[0] for name in sys.modules} & {'openai', 'httpx', 'httpx2', 'numpy', 'pydantic'})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
