"""The tools that an agent called, against those that it should have called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import Sample, UnscoredError
from pytest_ragmetrics import metrics as m
from pytest_ragmetrics.metrics.tool_calls import best_assignment

STRICT, LOOSE, F1 = m.ToolCallAccuracy(), m.ToolCallAccuracy(strict_order=False), m.ToolCallF1()
INSTEAD = "time instead of weather, time"
VALUES = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=3)
PAIRED = st.integers(0, 5).flatmap(lambda size: st.tuples(*[st.lists(VALUES, min_size=size, max_size=size)] * 2))


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "args": arguments}


OSLO, ROME, TIME = call("weather", city="Oslo", days=2), call("weather", city="Rome", days=2), call("time")
BONN = call("weather", city="Bonn", unit="C")
WRONG = 'city is "Bonn"; days is missing; unit is not in the reference'
NOT_COMPARED, BEYOND = "called, arguments not compared", "called and not in the reference"
CALLS = st.lists(st.builds(call, st.sampled_from("fg"), x=st.integers(0, 2)), max_size=5)


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
    fields = {"tool_calls": made, "reference_tool_calls": wanted}
    assert [metric.score(**fields).value for metric in (STRICT, LOOSE, F1)] == [strict, loose, pytest.approx(f1)]


@given(CALLS, CALLS)
def test_f1_of_bags(made: list[Any], wanted: list[Any]) -> None:
    """Each call counts as often as it was made; loose accuracy is 1.0 just where F1 is."""
    fields = {"tool_calls": made, "reference_tool_calls": wanted}
    bags = [Counter((c["name"], c["args"]["x"]) for c in calls) for calls in (made, wanted)]
    total = len(made) + len(wanted)
    result = F1.score(**fields)
    f1 = result.value
    assert (result.vacuous, result.reason == "no tool was to be called, and none was") == (not total, not total)
    assert f1 == pytest.approx(2 * (bags[0] & bags[1]).total() / total if total else 1.0)
    assert (LOOSE.score(**fields) == 1.0) is (f1 == 1.0)


@pytest.mark.parametrize(
    ("metric", "made", "reason", "verdicts"),
    [
        (STRICT, [BONN, TIME], "the right tools, 1 of 2 calls with all arguments", [WRONG, None]),
        (STRICT, [TIME, TIME], f"called time, {INSTEAD}", ["not called as number 1", NOT_COMPARED]),
        (LOOSE, [TIME, TIME], f"called time, {INSTEAD}, in any order", ["not called", NOT_COMPARED]),
        (STRICT, [], "called none instead of weather, time", ["not called as number 1", "not called as number 2"]),
        (F1, [TIME, TIME], "1 calls in common of 2 made and 2 in the reference", ["not called", "called", BEYOND]),
    ],
)
def test_a_verdict_for_each_call(metric: Any, made: list[Any], reason: str, verdicts: list[Any]) -> None:
    result = metric.score(tool_calls=made, reference_tool_calls=[OSLO, TIME])
    assert result.reason == reason
    texts = ['weather(city="Oslo", days=2)', "time()", "time()"]
    assert [(v.text, v.reason) for v in result.verdicts] == list(zip(texts, verdicts, strict=False))
    assert [v.ok for v in result.verdicts] == [said in {None, "called", NOT_COMPARED} for said in verdicts]
    twice = LOOSE.score(tool_calls=[TIME], reference_tool_calls=[TIME, TIME])
    assert [verdict.ok for verdict in twice.verdicts] == [True, False]


SUBSET, SUPERSET = m.ToolCallAccuracy(match="subset"), m.ToolCallAccuracy(match="superset")


@pytest.mark.parametrize(
    ("made", "wanted", "superset", "subset"),
    [
        ([TIME, OSLO], [OSLO, TIME], 1.0, 1.0),
        ([TIME, OSLO, TIME], [OSLO, TIME], 1.0, 0.0),
        ([OSLO], [OSLO, TIME], 0.0, 1.0),
        ([], [TIME], 0.0, 1.0),
        ([TIME], [], 1.0, 0.0),
        # the best pairs of one tool, of those made as of those wanted
        ([BONN, ROME, call("weather", city="Oslo")], [OSLO, ROME], 0.75, 0.0),
        ([ROME], [OSLO, ROME], 0.0, 1.0),
        ([call("weather", city="Oslo")], [ROME, OSLO], 0.0, 0.5),
        ([call("news")], [OSLO], 0.0, 0.0),
    ],
)
def test_some_calls_of_many(made: list[Any], wanted: list[Any], superset: float, subset: float) -> None:
    fields = {"tool_calls": made, "reference_tool_calls": wanted}
    results = [metric.score(**fields) for metric in (SUPERSET, SUBSET)]
    assert [result.value for result in results] == [superset, subset]
    # Nothing was compared where no call had to be made, or none was.
    assert [result.vacuous for result in results] == [not wanted, not made]


@given(CALLS, CALLS)
def test_all_matches_agree_on_what_is_equal(made: list[Any], wanted: list[Any]) -> None:
    """By bags of calls: those of the reference are among the calls made, or the other way round, or both."""
    fields = {"tool_calls": made, "reference_tool_calls": wanted}
    bags = [Counter((c["name"], c["args"]["x"]) for c in calls) for calls in (made, wanted)]
    same = m.ToolCallAccuracy(match="any order").score(**fields)
    assert same == LOOSE.score(**fields)
    found = [metric.score(**fields) == 1.0 for metric in (SUPERSET, SUBSET)] + [same == 1.0]
    assert found == [bags[0] >= bags[1], bags[0] <= bags[1], bags[0] == bags[1]]


def test_calls_beyond_a_limit() -> None:
    fields = {"tool_calls": [TIME, OSLO, TIME, TIME], "reference_tool_calls": [OSLO, TIME]}
    result = m.ToolCallAccuracy(match="superset", max_calls=2).score(**fields)
    assert (result.value, result.reason) == (0.0, "4 calls, and max_calls is 2")
    assert [verdict.ok for verdict in result.verdicts] == [True, True, False, False]
    assert m.ToolCallAccuracy(match="superset", max_calls=4).score(**fields) == 1.0
    compared = m.ToolCallAccuracy(match="superset", max_calls=2, arg_comparison=m.NonLLMStringSimilarity())
    assert compared.score(**fields) == 0.0


def test_a_call_outside_of_the_reference_is_named() -> None:
    made = [call("news"), TIME, TIME]
    result = SUBSET.score(tool_calls=made, reference_tool_calls=[OSLO, TIME])
    assert result.reason == "called news, time, time, of which not all are among weather, time"
    assert [verdict.reason for verdict in result.verdicts] == [
        "not in the reference",
        NOT_COMPARED,
        "not in the reference",
    ]
    result = SUPERSET.score(tool_calls=made, reference_tool_calls=[OSLO, TIME])
    assert result.reason == "called news, time, time, which lacks some of weather, time"
    assert [verdict.reason for verdict in result.verdicts] == ["not called", NOT_COMPARED]


def right(wanted: dict[str, int], made: dict[str, int]) -> float:
    """Return the share of the arguments that are right, by its definition."""
    return sum(made.get(name) == wanted[name] for name in wanted) / len(wanted) if wanted else float(not made)


@given(PAIRED)
def test_no_pairing_is_better(calls: tuple[list[dict[str, int]], list[dict[str, int]]]) -> None:
    made, wanted = calls
    called, reference = ([call("f", **arguments) for arguments in each] for each in calls)
    score = LOOSE.score(tool_calls=called, reference_tool_calls=reference)
    totals = (sum(map(right, wanted, order)) / len(wanted) for order in permutations(made) if wanted)
    assert score.value == pytest.approx(max(totals, default=1.0))


def test_a_hidden_assignment_is_found() -> None:
    hidden = [(37 * row + 5) % 100 for row in range(100)]
    gains = [[1.0 if column == hidden[row] else 0.99 * (column % 2) for column in range(100)] for row in range(100)]
    assert best_assignment(gains) == hidden
    assert best_assignment([]) == []


def by_length(texts: Sequence[str]) -> list[list[float]]:
    """Return the vector (1, 0) for one character, and (1, -1) for two."""
    return [[1.0, 1.0 - len(text)] for text in texts]


def opposite(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0 if text == "a" else -1.0] for text in texts]


@pytest.mark.parametrize(
    ("metric", "made", "wanted", "value"),
    [
        (m.NonLLMStringSimilarity(), [call("f", x="Osla", y=2)], [call("f", x="Oslo", y=2)], (0.75 + 1) / 2),
        ("non_llm_string_similarity", [call("f", x=["a"], y="")], [call("f", x=["b"], y=0)], 0.4),
        (m.StringPresence(), [call("f", x="in Oslo", z=1)], [call("f", x="Oslo", y=1)], 0.5),
        (m.ExactMatch(), [call("f", x=1.0)], [call("f", x=1)], 1.0),
        (m.SemanticSimilarity(embedder=by_length), [call("f", x="ab")], [call("f", x="a")], 0.5**0.5),
        (m.NonLLMStringSimilarity(), [TIME], [OSLO], 0.0),
        # The opposite is no less than wrong, and what is equal is not asked for.
        (m.SemanticSimilarity(embedder=opposite), [call("f", x="a")], [call("f", x="b")], 0.0),
        (m.SemanticSimilarity(embedder=lambda _: 1 / 0), [OSLO, TIME], [OSLO, TIME], 1.0),
    ],
)
def test_another_metric_compares_values_that_differ(metric: Any, made: Any, wanted: Any, value: float) -> None:
    """As texts, unless one of them is blank; what is missing stays wrong, and what is equal is not asked for."""
    result = m.ToolCallAccuracy(arg_comparison=metric).score(tool_calls=made, reference_tool_calls=wanted)
    assert result.value == pytest.approx(value)
    asked = isinstance(metric, m.SemanticSimilarity) and made != wanted
    assert (result.judge is not None) is asked


def test_a_metric_that_compares_values_decides_on_the_pairs() -> None:
    made, wanted = ([call("f", x=place) for place in places] for places in (["Rom", "Oslos"], ["Oslo", "Rome"]))
    metric = m.ToolCallAccuracy(strict_order=False, arg_comparison=m.NonLLMStringSimilarity())
    result = metric.score(tool_calls=made, reference_tool_calls=wanted)
    assert result.value == pytest.approx((0.8 + 0.75) / 2)
    assert [verdict.reason for verdict in result.verdicts] == ['x is "Oslos"', 'x is "Rom"']


TALK = [
    # A call of anybody but the assistant is none of its own.
    {"role": "user", "content": "Rain in Oslo?", "tool_calls": [TIME]},
    {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": json.dumps(OSLO["args"])}}]},
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
    for metric in (STRICT, F1):
        assert metric.score(**fields, **{name: [OSLO]}).value == 1.0
        assert metric.score_sample(Sample.from_mapping({**fields, name: [OSLO]})).value == 1.0


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"messages": TALK}, ValueError, "tool_call_f1: reference_tool_calls is missing; it needs messages"),
        ({"reference_tool_calls": []}, ValueError, "tool_call_f1: messages is missing"),
        ({"messages": "Hi", "reference_tool_calls": []}, TypeError, "messages must be a list of messages, not str"),
        ({"messages": TALK, "reference_tool_calls": [{}]}, TypeError, r"reference_tool_calls\[0\] has no name"),
        ({"tool_calls": OSLO, "reference_tool_calls": []}, TypeError, "must be a list of tool calls, not dict"),
        ({"messages": TALK, "tools": []}, TypeError, "takes no tools=; it takes user_input, .* messages, tool_calls"),
    ],
)
def test_what_cannot_be_scored(fields: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        F1.score(**fields)


@pytest.mark.parametrize("metric", [STRICT, F1])
def test_arguments_nested_too_deep(metric: Any) -> None:
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"x": deep}
    with pytest.raises(UnscoredError, match="nested too deep"):
        metric.score(tool_calls=[call("f", x=deep)], reference_tool_calls=[call("f", x=deep)])
