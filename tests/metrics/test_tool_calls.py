"""The tools that an agent called, against those that it should have called."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import Sample, UnscoredError, assert_tools_called, evaluate
from pytest_ragmetrics.metrics import (
    AnswerRelevancy,
    ExactMatch,
    Faithfulness,
    NonLLMStringSimilarity,
    SemanticSimilarity,
    StringPresence,
    ToolCallAccuracy,
    ToolCallF1,
)
from pytest_ragmetrics.metrics.tool_calls import best_assignment


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


VALUES = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=3)
PAIRED = st.integers(0, 5).flatmap(
    lambda size: st.tuples(*(st.lists(VALUES, min_size=size, max_size=size) for _ in "mw"))
)


def right(wanted: dict[str, int], made: dict[str, int]) -> float:
    """Return the share of the arguments that are right, by its definition."""
    return sum(made.get(name) == wanted[name] for name in wanted) / len(wanted) if wanted else float(not made)


@given(PAIRED)
def test_no_pairing_is_better(calls: tuple[list[dict[str, int]], list[dict[str, int]]]) -> None:
    """In any order, calls are paired as the best of all permutations does it; no greedy rule is behind it."""
    made, wanted = calls
    score = ToolCallAccuracy(strict_order=False).score(
        tool_calls=[call("f", **arguments) for arguments in made],
        reference_tool_calls=[call("f", **arguments) for arguments in wanted],
    )
    totals = (sum(map(right, wanted, order)) / len(wanted) for order in permutations(made) if wanted)
    assert score.value == pytest.approx(max(totals, default=1.0))


def test_calls_are_paired_within_their_name() -> None:
    """The whole is better where a call that is equal has another partner."""
    made = [call("f", x=1, y=2), TIME, call("f", x=5, y=2), OSLO]
    wanted = [OSLO, call("f", x=1), call("f", x=1, y=2), TIME]
    result = ToolCallAccuracy(strict_order=False).score(tool_calls=made, reference_tool_calls=wanted)
    assert result.value == (1 + 1 + 0.5 + 1) / 4
    assert [verdict.reason for verdict in result.verdicts] == [None, "y is not in the reference", "x is 5", None]


def test_a_hidden_assignment_is_found() -> None:
    """Among a hundred rows whose other gains are nearly as large, and for none."""
    hidden = [(37 * row + 5) % 100 for row in range(100)]
    gains = [[1.0 if column == hidden[row] else 0.99 * (column % 2) for column in range(100)] for row in range(100)]
    assert best_assignment(gains) == hidden
    assert best_assignment([]) == []


@pytest.mark.parametrize(
    ("metric", "made", "wanted", "value"),
    [
        (NonLLMStringSimilarity(), [call("f", x="Osla", y=2)], [call("f", x="Oslo", y=2)], (0.75 + 1) / 2),
        ("non_llm_string_similarity", [call("f", x=["a"], y="")], [call("f", x=["b"], y=0)], 0.4),
        (StringPresence(), [call("f", x="in Oslo", z=1)], [call("f", x="Oslo", y=1)], 0.5),
        (ExactMatch(), [call("f", x=1.0)], [call("f", x=1)], 1.0),
        (SemanticSimilarity(embedder=lambda texts: [[1.0, len(text)] for text in texts]), [], [], 1.0),
        (
            SemanticSimilarity(embedder=lambda texts: [[1.0, -1.0][: len(t)] + [0.0] * (2 - len(t)) for t in texts]),
            [call("f", x="ab")],
            [call("f", x="a")],
            0.5**0.5,
        ),
        (NonLLMStringSimilarity(), [TIME], [OSLO], 0.0),
        # The opposite is no less than wrong, and what is equal is not asked for.
        (
            SemanticSimilarity(embedder=lambda texts: [[1.0 if text == "a" else -1.0] for text in texts]),
            [call("f", x="a")],
            [call("f", x="b")],
            0.0,
        ),
        (SemanticSimilarity(embedder=lambda _: 1 / 0), [OSLO, TIME], [OSLO, TIME], 1.0),
    ],
)
def test_another_metric_compares_values_that_differ(
    metric: Any, made: list[Any], wanted: list[Any], value: float
) -> None:
    """As texts, unless one of them is blank; what is missing stays wrong, and what is equal is not asked for."""
    result = ToolCallAccuracy(arg_comparison=metric).score(tool_calls=made, reference_tool_calls=wanted)
    assert result.value == pytest.approx(value)
    asked = isinstance(metric, SemanticSimilarity) and made != wanted
    assert (result.judge is not None) is asked


def test_a_metric_that_compares_values_decides_on_the_pairs() -> None:
    """In any order, those that are most alike belong together; a verdict names every value that is not equal."""
    made = [call("f", x="Rom"), call("f", x="Oslos")]
    wanted = [call("f", x="Oslo"), call("f", x="Rome")]
    metric = ToolCallAccuracy(strict_order=False, arg_comparison=NonLLMStringSimilarity())
    result = metric.score(tool_calls=made, reference_tool_calls=wanted)
    assert result.value == pytest.approx((0.8 + 0.75) / 2)
    assert [verdict.reason for verdict in result.verdicts] == ['x is "Oslos"', 'x is "Rom"']
    assert assert_tools_called(
        [{"role": "assistant", "tool_calls": made}],
        wanted,
        strict_order=False,
        arg_comparison="non_llm_string_similarity",
        min=0.7,
    )


@pytest.mark.parametrize("metric", [Faithfulness(), "hallucination", AnswerRelevancy()])
def test_a_metric_that_cannot_compare_values(metric: Any) -> None:
    """It must take two texts, and be better the higher it is."""
    with pytest.raises(ValueError, match=r"arg_comparison must score response and reference, .*; .* does not"):
        ToolCallAccuracy(arg_comparison=metric)


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
