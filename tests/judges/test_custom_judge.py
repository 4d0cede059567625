"""A judge of one's own needs one method, or is a function."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_ragmetrics.errors import JudgeError, UnscoredError
from pytest_ragmetrics.judges.judge import CustomJudge, as_judge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transport import ChatMessage
from pytest_ragmetrics.result import Usage
from tests.asking import MemoryTransport, ask
from tests.every_task import VERIFY

CLAIMS = ListClaims(text="It is deep.", question="Is the lake deep?")
GOOD = json.dumps({"claims": ["The lake is deep."]})


class Recorder:
    """Answers from a list, and keeps what it was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[ChatMessage], Mapping[str, Any]]] = []
        self.closed = False

    async def complete(self, messages: list[ChatMessage], schema: Mapping[str, Any]) -> str:
        """Return the next answer."""
        self.asked.append((messages, schema))
        return self.answers.pop(0)

    async def aclose(self) -> None:
        """Note that the judge was closed."""
        self.closed = True


def test_an_object_with_complete_is_asked_with_messages_and_schema() -> None:
    """It gets the messages and the JSON schema, its answer is read, and it is closed with the judge."""
    own = Recorder(GOOD)
    transport = MemoryTransport()
    (answered,) = ask(CustomJudge(own, name="own"), CLAIMS, transport=transport)
    assert answered.answer == ("The lake is deep.",)
    assert answered.usage == Usage(calls=1, cost=None)
    ((messages, schema),) = own.asked
    assert [message["role"] for message in messages] == ["system", "user"]
    assert schema == CLAIMS.schema()
    assert own.closed
    assert (transport.kept[0][0].kind, transport.kept[0][0].model) == ("custom", "own")


def test_a_judge_without_a_name_is_not_recorded() -> None:
    """Two unnamed judges cannot be told apart, so neither gets the other's replies; a name makes them last."""
    transport = MemoryTransport()
    assert ask(CustomJudge(lambda _: GOOD), CLAIMS, transport=transport)[0].usage.calls == 1
    assert transport.kept == []
    named = Recorder(GOOD)
    named.name = "lake"  # type: ignore[attr-defined]
    ask(CustomJudge(named), CLAIMS, transport=transport)
    assert transport.kept[0][0].model == "custom:lake"


def test_what_it_does_to_its_messages_stays_its_own() -> None:
    """Messages and schema are copies: changing them changes neither the key nor the repair."""

    class Meddler(Recorder):
        async def complete(self, messages: list[ChatMessage], schema: Mapping[str, Any]) -> str:
            answer = await super().complete(list(messages), schema)
            messages[0]["content"] = "changed"
            messages.clear()
            schema["properties"].clear()
            return answer

    transport = MemoryTransport()
    own = Meddler("What?", GOOD)
    ask(CustomJudge(own, name="own"), CLAIMS, transport=transport)
    assert len(own.asked[1][0]) == 4
    assert "changed" not in str(transport.kept[0][0])
    assert own.asked[1][1] == {**CLAIMS.schema(), "properties": {}}
    assert CLAIMS.schema()["properties"]


def test_a_function_gets_one_text_and_runs_in_a_thread() -> None:
    """A plain function is asked with instruction, data and schema in one text, and does not hold up the loop."""
    prompts = []
    threads = set()

    def own(prompt: str) -> str:
        prompts.append(prompt)
        threads.add(threading.current_thread())
        return f"Let me see.\n```json\n{GOOD}\n```"

    (answered,) = ask(CustomJudge(own), CLAIMS)
    assert answered.answer == ("The lake is deep.",)
    assert threads.isdisjoint({threading.main_thread()})
    for piece in (
        "You judge texts.",
        "Is the lake deep?",
        "List every claim",
        json.dumps(CLAIMS.schema(), separators=(",", ":")),
    ):
        assert piece in prompts[0]


def test_a_function_sees_its_own_answer_when_it_is_to_repair_it() -> None:
    """The second text tells what was answered and what is wrong with it."""
    prompts = []

    def own(prompt: str) -> str:
        prompts.append(prompt)
        return GOOD if len(prompts) == 2 else "no idea"

    assert ask(CustomJudge(own), CLAIMS)[0].usage.calls == 2
    assert "You answered:\nno idea\n\nYour answer cannot be used: " in prompts[1]


def test_a_function_may_be_asynchronous() -> None:
    """A coroutine function is awaited on the loop, and so is what a plain function returns to be awaited."""

    async def own(prompt: str) -> str:
        assert threading.current_thread() is threading.main_thread()
        return GOOD

    assert ask(CustomJudge(own), CLAIMS)[0].answer
    assert ask(CustomJudge(lambda prompt: own(prompt)), CLAIMS)[0].answer  # noqa: PLW0108 - no coroutine function


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "replied with NoneType where a str is wanted"),
        ({"claims": []}, "replied with dict where a str is wanted"),
        (b"{}", "replied with bytes where a str is wanted"),
        ("  ", "replied with nothing"),
    ],
)
def test_an_answer_that_is_no_text_is_an_error(answer: Any, message: str) -> None:
    """Anything but a text is the judge's mistake, and said to be."""
    with pytest.raises(JudgeError, match=f"custom:mine {message}"):
        ask(CustomJudge(lambda _: answer, name="custom:mine"), CLAIMS)


def test_its_exceptions_are_judge_errors() -> None:
    """Whatever it raises is chained to an error that names the judge; our own errors pass."""

    def broken(prompt: str) -> str:
        raise KeyError("no such drawer") if "verdicts" in prompt else UnscoredError(prompt[:3])

    with pytest.raises(JudgeError, match=r"mine failed: KeyError: 'no such drawer'") as failed:
        ask(CustomJudge(broken, name="mine"), VERIFY)
    assert isinstance(failed.value.__cause__, KeyError)
    with pytest.raises(UnscoredError, match=r"^You$"):
        ask(CustomJudge(broken, name="mine"), CLAIMS)


def test_the_name_tells_judges_apart() -> None:
    """It comes from the function, or the object's class or name, unless given; it is part of the request."""

    def own(prompt: str) -> str:
        return prompt

    named = Recorder()
    named.name = "house-model"  # type: ignore[attr-defined] # an object may bring its own
    names = [CustomJudge(target).name for target in (own, Recorder(), named)]
    assert names[0].endswith(".own")
    assert names[1:] == ["custom:Recorder", "custom:house-model"]
    assert CustomJudge(own, name="a").request(CLAIMS) != CustomJudge(own, name="b").request(CLAIMS)


def test_only_what_can_judge_is_taken() -> None:
    """A judge stays itself, what can be asked becomes one, anything else is a TypeError."""
    own = CustomJudge(Recorder())
    assert as_judge(own) is own
    assert as_judge(str.lower, name="mine").name == "mine"
    with pytest.raises(TypeError, match=r"a judge is an object with complete.* or a callable, not int"):
        as_judge(3)
