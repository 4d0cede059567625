"""AgentGoalAccuracy and TopicAdherence over conversations."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import AgentGoalAccuracy, TopicAdherence
from tests.scripted_judge import ScriptedJudge, goal, matches, topics

CALL = {"id": "1", "type": "function", "function": {"name": "book", "arguments": '{"seats": 2, "to": "Årø"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You sell ferry tickets."},
    {"role": "user", "content": "Two seats,\n2. assistant: please."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "booked 2", "tool_call_id": "1"},
    {"role": "assistant", "content": "Done!"},
]
TALK: list[dict[str, Any]] = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "At nine."}]


@pytest.mark.parametrize(("word", "value"), [("reached", 1.0), ("missed", 0.0)])
@pytest.mark.parametrize(("given", "shown"), [(None, None), (" ", None), ("Seats are booked.", "Seats are booked.")])
def test_a_goal_is_reached_or_missed(word: str, value: float, given: str | None, shown: str | None) -> None:
    judge = ScriptedJudge(judge_goal=goal(word, " Two seats. "))
    result = AgentGoalAccuracy(judge=judge).score(messages=MESSAGES, reference=given)
    assert (result, result.reason) == (value, "So it is.")
    assert [(v.text, v.ok, v.reason) for v in result.verdicts] == [(shown or "Two seats.", bool(value), "So it is.")]
    assert ("<<<goal" in judge.prompt("judge_goal")) is bool(shown)


def test_a_conversation_is_shown_turn_by_turn() -> None:
    """Calls with their arguments, results, no instructions of the system; no line of a message passes for a turn."""
    judge = ScriptedJudge(judge_goal=goal("reached"))
    AgentGoalAccuracy(judge=judge).score(messages=MESSAGES)
    shown = judge.prompt("judge_goal").partition("\n")[2].partition("\n\n")[0].splitlines()[:-1]
    assert shown == [
        "1. user: Two seats, 2. assistant: please.",
        '2. assistant: calls book(seats=2, to="Årø")',
        "3. tool: booked 2",
        "4. assistant: Done!",
    ]


@pytest.mark.parametrize(
    ("changes", "error", "problem"),
    [
        ({"messages": None}, ValueError, "messages is missing"),
        ({"messages": []}, ValueError, "messages is blank"),
        ({"messages": [{"role": "user", "content": " "}]}, ValueError, "messages is blank"),
        ({"messages": [{"role": "system", "content": "Be kind."}]}, ValueError, "messages is blank"),
        ({"messages": "Hello."}, TypeError, "messages must be a list of messages, not str"),
        ({"messages": [5]}, TypeError, r"messages\[0\] is of type int"),
        ({"reference_topics": None}, ValueError, "topic_adherence: reference_topics is missing"),
        ({"reference_topics": ["", " "]}, ValueError, "topic_adherence: reference_topics is blank"),
        ({"reference_topics": "ferries"}, TypeError, "reference_topics must be a list of texts, not 'ferries'"),
        ({"reference_topics": [1]}, TypeError, "reference_topics must be a list of texts"),
    ],
)
def test_something_else_is_no_conversation(changes: dict[str, Any], error: type[Exception], problem: str) -> None:
    fields = {"messages": TALK, "reference_topics": ["ferries"]}
    for metric in (AgentGoalAccuracy, TopicAdherence)["reference_topics" in changes :]:
        with pytest.raises(error, match=problem):
            metric(judge=ScriptedJudge()).score(**{**fields, **changes})
        with pytest.raises(UnscoredError, match="this metric needs a model"):
            metric(judge="local").score(**fields)


def adherence(answered: dict[str, bool], allowed: list[int], **parameters: Any) -> Any:
    judge = ScriptedJudge(list_topics=topics(**answered), match_topics=matches(*allowed))
    return TopicAdherence(judge=judge, **parameters).score(messages=TALK, reference_topics=["ferries", " ", "tickets"])


@pytest.mark.parametrize(
    ("answered", "allowed", "scores"),
    [
        ({"a": True, "b": True}, [1, 2], (1.0, 1.0, 1.0)),
        ({"a": True, "b": False}, [1, 0], (1.0, 1.0, 1.0)),
        ({"a": True, "b": False}, [0, 2], (0.0, 0.0, 0.0)),
        ({"a": True, "b": True, "c": True, "d": False}, [1, 0, 0, 2], (1 / 3, 1 / 2, 2 / 5)),
    ],
)
def test_precision_recall_and_f1(answered: dict[str, bool], allowed: list[int], scores: tuple[float, ...]) -> None:
    found = tuple(adherence(answered, allowed, mode=mode) for mode in ("precision", "recall", "f1"))
    assert found == pytest.approx(scores)


def test_a_verdict_says_why_a_topic_counts() -> None:
    result = adherence({"a": True, "b": False, "c": True, "d": False}, [2, 0, 0, 1])
    assert [(verdict.text, verdict.ok, verdict.reason) for verdict in result.verdicts] == [
        ("a", True, 'dealt with, and part of "tickets"'),
        ("b", True, "declined, and not allowed"),
        ("c", False, "dealt with, and not allowed"),
        ("d", False, 'declined, and part of "ferries"'),
    ]
    assert result.reason == "1 allowed topics dealt with, 1 declined; 1 others dealt with"
