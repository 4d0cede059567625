"""A judge of one's own needs one method, or is a function."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_ragmetrics.cache.transport import CachedTransport
from pytest_ragmetrics.core.errors import JudgeError, UnscoredError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.judge import CustomJudge, as_judge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import ChatMessage
from tests.asking import MemoryTransport, ask

CLAIMS = ListClaims(text="It is deep.", question="Is the lake deep?")
GOOD = json.dumps({"claims": ["The lake is deep."]})


class Recorder:
    """Answers from a list, records what it was asked, and then changes it."""

    closed = False

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[ChatMessage], Mapping[str, Any]]] = []

    async def complete(self, messages: list[ChatMessage], schema: Mapping[str, Any]) -> str:
        self.asked.append((list(messages), dict(schema)))
        messages[-1]["content"] += " changed"
        messages.clear()
        schema["properties"].clear()
        return self.answers.pop(0)

    async def aclose(self) -> None:
        self.closed = True


def test_an_object_with_complete_is_asked_with_messages_and_schema() -> None:
    own, transport = Recorder("What?", GOOD), MemoryTransport()
    (answered,) = ask(CustomJudge(own, name="own"), CLAIMS, transport=transport)
    assert (answered.answer, answered.usage, own.closed) == (("The lake is deep.",), Usage(calls=2, cost=None), True)
    roles = ["system", "user", "assistant", "user"]
    assert [[message["role"] for message in messages] for messages, _ in own.asked] == [roles[:2], roles]
    assert own.asked[0][1].keys() == CLAIMS.schema().keys()
    assert CLAIMS.schema()["properties"]
    ((request, _),) = transport.kept
    assert (request.kind, request.model, "changed" in str(request)) == ("custom", "own", False)


def test_the_name_is_part_of_the_request_and_without_one_nothing_is_recorded() -> None:
    def own(_: str) -> str:
        return GOOD

    transport = MemoryTransport()
    assert (ask(CustomJudge(own), CLAIMS, transport=transport)[0].usage.calls, transport.kept) == (1, [])
    ask(CustomJudge(type("Named", (Recorder,), {"name": "lake"})(GOOD)), CLAIMS, transport=transport)
    assert transport.kept[0][0].model == "custom:lake"
    assert (CustomJudge(own).name[-4:], CustomJudge(Recorder()).name) == (".own", "custom:Recorder")
    assert CustomJudge(own, name="a").request(CLAIMS) != CustomJudge(own, name="b").request(CLAIMS)


def test_a_function_gets_one_text_and_runs_in_a_thread() -> None:
    prompts: list[str] = []

    def own(prompt: str) -> str:
        assert threading.current_thread() is not threading.main_thread()
        prompts.append(prompt)
        return f"Let me see.\n```json\n{GOOD}\n```" if len(prompts) == 2 else "no idea"

    (answered,) = ask(CustomJudge(own), CLAIMS)
    assert (answered.answer, answered.usage.calls) == (("The lake is deep.",), 2)
    pieces = "You judge texts.", "Is the lake deep?", "List every claim"
    for piece in (*pieces, json.dumps(CLAIMS.schema(), separators=(",", ":"))):
        assert piece in prompts[0]
    assert "You answered:\nno idea\n\nYour answer cannot be used: " in prompts[1]


def test_a_function_may_be_asynchronous() -> None:
    async def own(prompt: str) -> str:
        assert threading.current_thread() is threading.main_thread()
        return GOOD

    assert ask(CustomJudge(own), CLAIMS)[0].answer
    assert ask(CustomJudge(lambda prompt: own(prompt)), CLAIMS)[0].answer  # noqa: PLW0108 - no coroutine function


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (None, JudgeError, "custom:mine replied with NoneType where a str is wanted"),
        ({"claims": []}, JudgeError, "custom:mine replied with dict where a str is wanted"),
        (b"{}", JudgeError, "custom:mine replied with bytes where a str is wanted"),
        ("  ", JudgeError, "custom:mine replied with nothing"),
        (KeyError("no such drawer"), JudgeError, "mine failed: KeyError: 'no such drawer'"),
        (UnscoredError("It is late."), UnscoredError, r"^It is late\.$"),
    ],
)
def test_an_answer_that_is_no_text_is_an_error(answer: Any, error: type[Exception], message: str) -> None:
    def own(_: str) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(error, match=message) as failed:
        ask(CustomJudge(own, name="custom:mine"), CLAIMS)
    assert isinstance(failed.value.__cause__, KeyError) is isinstance(answer, KeyError)


def test_only_what_can_judge_is_taken() -> None:
    own = CustomJudge(Recorder())
    assert as_judge(own) is own
    assert as_judge(str.lower, name="mine").name == "mine"
    with pytest.raises(TypeError, match=r"a judge is a spec .*, a callable or an object with complete.*, not int"):
        as_judge(3)


def test_a_reply_is_parsed_and_validated_once() -> None:
    read: list[object] = []

    class Counted(ListClaims):
        __slots__ = ()

        def read(self, data: object) -> tuple[str, ...]:
            read.append(data)
            return ListClaims.read(self, data)

    replies = iter(['{"claims": "Ivy climbs."}', 'Here: {"claims": ["Ivy climbs."]}'])
    judge = CustomJudge(lambda _: next(replies), name="mine")
    answered = asyncio.run(judge.ask(Counted(text="It climbs."), transport=CachedTransport(DIRECT)))
    assert (answered.answer, read) == (("Ivy climbs.",), [{"claims": "Ivy climbs."}, {"claims": ["Ivy climbs."]}])
