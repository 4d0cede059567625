"""The tools that an agent called, against those that it should have called."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import Sample, UnscoredError, assert_tools_called, evaluate
from pytest_ragmetrics.metrics import ToolCallAccuracy, ToolCallF1


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a call as Ragas has it."""
    return {"name": tool, "args": arguments}


OSLO, ROME, TIME = call("weather", city="Oslo", days=2), call("weather", city="Rome", days=2), call("time")


@pytest.mark.parametrize(
    ("made", "wanted", "strict", "loose", "f1"),
    [
        ([], [], 1.0, 1.0, 1.0),
        ([], [TIME], 0.0, 0.0, 0.0),
        ([TIME], [], 0.0, 0.0, 0.0),
        ([TIME, OSLO], [OSLO, TIME], 0.0, 1.0, 1.0),
        # the share of right arguments, in the mean
        ([call("weather", city="Oslo", days=3), TIME], [OSLO, TIME], 0.75, 0.75, 0.5),
        ([call("weather", city="Oslo")], [OSLO], 0.5, 0.5, 0.0),
        # too many arguments
        ([call("weather", city="Oslo", days=2, unit="C")], [OSLO], 1.0, 1.0, 0.0),
        ([call("time", zone="UTC")], [TIME], 0.0, 0.0, 0.0),
        # too many calls, too few, the wrong ones
        ([OSLO, OSLO], [OSLO], 0.0, 0.0, 2 / 3),
        ([TIME], [OSLO], 0.0, 0.0, 0.0),
        # then no arguments are compared, however right they are
        ([TIME, OSLO, ROME], [OSLO, ROME], 0.0, 0.0, 0.8),
        # one tool twice: in order, or equal ones first
        ([ROME, OSLO], [OSLO, ROME], 0.5, 1.0, 1.0),
        ([ROME, call("weather", city="Bonn", days=2)], [OSLO, ROME], 0.5, 0.75, 0.5),
        ([ROME, call("weather", city="Bonn", days=2)], [ROME, OSLO], 0.75, 0.75, 0.5),
        # equal as JSON
        ([call("f", x=1, y=[1, {"a": 2.0}])], [call("f", y=[1.0, {"a": 2}], x=1.0)], 1.0, 1.0, 1.0),
        ([call("f", x="1")], [call("f", x=1)], 0.0, 0.0, 0.0),
        ([call("f", x=True)], [call("f", x=1)], 0.0, 0.0, 0.0),
        ([call("f", x=None)], [call("f", x="None")], 0.0, 0.0, 0.0),
    ],
)
def test_values_by_hand(made: list[Any], wanted: list[Any], strict: float, loose: float, f1: float) -> None:
    """Accuracy in order and in any order, and F1."""
    fields = {"tool_calls": made, "reference_tool_calls": wanted}
    assert ToolCallAccuracy().score(**fields).value == strict
    assert ToolCallAccuracy(strict_order=False).score(**fields).value == loose
    assert ToolCallF1().score(**fields).value == pytest.approx(f1)


CALLS = st.lists(st.builds(call, st.sampled_from("fg"), x=st.integers(0, 2)), max_size=5)


@given(CALLS, CALLS)
def test_f1_of_bags(made: list[Any], wanted: list[Any]) -> None:
    """Each call counts as often as it was made; loose accuracy is 1.0 just where F1 is."""
    fields = {"tool_calls": made, "reference_tool_calls": wanted}
    bags = [Counter((c["name"], c["args"]["x"]) for c in calls) for calls in (made, wanted)]
    total = len(made) + len(wanted)
    result = ToolCallF1().score(**fields)
    f1 = result.value
    assert (result.vacuous, result.reason == "no tool was to be called, and none was") == (not total, not total)
    assert f1 == pytest.approx(2 * (bags[0] & bags[1]).total() / total if total else 1.0)
    assert (ToolCallAccuracy(strict_order=False).score(**fields) == 1.0) is (f1 == 1.0)


@pytest.mark.parametrize(
    ("metric", "made", "reason", "verdicts"),
    [
        (
            ToolCallAccuracy(),
            [call("weather", city="Bonn", unit="C"), TIME],
            "the right tools, 1 of 2 calls with all arguments",
            [(False, 'city is "Bonn"; days is missing; unit is not in the reference'), (True, None)],
        ),
        (
            ToolCallAccuracy(),
            [TIME, TIME],
            "called time, time instead of weather, time",
            [(False, "not called as number 1"), (True, "called, arguments not compared")],
        ),
        (
            ToolCallAccuracy(strict_order=False),
            [TIME, TIME],
            "called time, time instead of weather, time, in any order",
            [(False, "not called"), (True, "called, arguments not compared")],
        ),
        (
            ToolCallAccuracy(),
            [],
            "called none instead of weather, time",
            [(False, "not called as number 1"), (False, "not called as number 2")],
        ),
        (
            ToolCallF1(),
            [TIME, TIME],
            "1 calls in common of 2 made and 2 in the reference",
            [(False, "not called"), (True, "called"), (False, "called and not in the reference")],
        ),
    ],
)
def test_a_verdict_for_each_call(metric: Any, made: list[Any], reason: str, verdicts: list[Any]) -> None:
    """Of the reference, with the problem or the place where it lacks, and for F1 of those made beyond it."""
    result = metric.score(tool_calls=made, reference_tool_calls=[OSLO, TIME])
    assert result.reason == reason
    texts = ['weather(city="Oslo", days=2)', "time()", "time()"]
    assert [(v.text, v.ok, v.reason) for v in result.verdicts] == [
        (text, *verdict) for text, verdict in zip(texts, verdicts, strict=False)
    ]
    twice = ToolCallAccuracy(strict_order=False).score(tool_calls=[TIME], reference_tool_calls=[TIME, TIME])
    assert [verdict.ok for verdict in twice.verdicts] == [True, False]


TALK = [
    # A call of anybody but the assistant is none of its own.
    {"role": "user", "content": "Rain in Oslo?", "tool_calls": [TIME]},
    {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "weather", "arguments": '{"city": "Oslo", "days": 2}'}}],
    },
]


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": TALK},
        {"user_input": TALK},
        {"user_input": "Rain in Oslo?", "metadata": {"messages": TALK}},
        {"tool_calls": [OSLO]},
        # the names of DeepEval
        {"tools_called": [{"name": "weather", "input_parameters": {"city": "Oslo", "days": 2}}]},
    ],
)
@pytest.mark.parametrize("name", ["reference_tool_calls", "expected_tools"])
def test_where_the_calls_come_from(fields: dict[str, Any], name: str) -> None:
    """Messages or calls, as an input, as the user's input, in the metadata, in a row of a table."""
    for metric in (ToolCallAccuracy(), ToolCallF1()):
        assert metric.score(**fields, **{name: [OSLO]}).value == 1.0
        sample = Sample.from_mapping({**fields, name: [OSLO]})
        assert metric.score_sample(sample).value == 1.0
    table = evaluate([{**fields, name: [OSLO]}], ["tool_call_accuracy", "ToolCallF1"])
    assert (table.scores("tool_call_accuracy"), table.scores("tool_call_f1")) == ([1.0], [1.0])


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"messages": TALK}, ValueError, "tool_call_f1: reference_tool_calls is missing; it needs messages"),
        ({"reference_tool_calls": []}, ValueError, "tool_call_f1: messages is missing"),
        ({"messages": "Hi", "reference_tool_calls": []}, TypeError, "messages must be a list of messages, not str"),
        ({"messages": TALK, "reference_tool_calls": [{}]}, TypeError, r"reference_tool_calls\[0\] has no name"),
        (
            {"tool_calls": OSLO, "reference_tool_calls": []},
            TypeError,
            "tool_calls must be a list of tool calls, not dict",
        ),
        ({"messages": TALK, "tools": []}, TypeError, "takes no tools=; it takes user_input, .* messages, tool_calls"),
    ],
)
def test_what_cannot_be_scored(fields: dict[str, Any], error: type[Exception], message: str) -> None:
    """The error names what is missing or wrong."""
    with pytest.raises(error, match=message):
        ToolCallF1().score(**fields)


def test_arguments_nested_too_deep() -> None:
    """A call that a model made up is no reason for a crash."""
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"x": deep}
    calls = [{"name": "f", "args": deep}]
    for metric in (ToolCallAccuracy(), ToolCallF1()):
        with pytest.raises(UnscoredError, match="nested too deep"):
            metric.score(tool_calls=calls, reference_tool_calls=calls)


def test_the_helper() -> None:
    """A conversation and the calls that it should have."""
    assert assert_tools_called(TALK, [OSLO]).value == 1.0
    assert assert_tools_called(TALK, [OSLO], metric="f1").metric == "tool_call_f1"
    assert assert_tools_called([{"role": "assistant", "tool_calls": [TIME, OSLO]}], [OSLO, TIME], strict_order=False)
    with pytest.raises(AssertionError) as failure:
        assert_tools_called(TALK, [ROME])
    assert str(failure.value).splitlines() == [
        "tool_call_accuracy 0.50 < 1.00: 1 of 1 tool call not as in the reference",
        '  not as in the reference: "weather(city="Rome", days=2)"',
        '    reason: city is "Oslo"',
    ]
    with pytest.raises(ValueError, match="metric must be 'accuracy' or 'f1'"):
        assert_tools_called(TALK, [OSLO], metric="recall")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="strict_order must be True or False"):
        ToolCallAccuracy(strict_order=None)  # type: ignore[arg-type]
