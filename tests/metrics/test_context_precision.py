"""ContextPrecision: average precision over what is of use, in rank order."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.metrics import ContextPrecision, ContextUtilization
from pytest_ragmetrics.metrics.retrieval import average_precision
from tests.scripted_judge import Answer, ScriptedJudge, useful

FIELDS = {"user_input": "When do moths fly?", "reference": "At night."}


def contexts(count: int) -> list[str]:
    """Return contexts that differ."""
    return [f"Moth {number} flies at night." for number in range(1, count + 1)]


def judging(verdicts: list[bool]) -> ScriptedJudge:
    """Return a judge that says of each of :func:`contexts` whether it is of use."""

    def answer(prompt: str) -> Answer:
        found = re.search(r"Moth (\d+) flies", prompt)
        return useful(1) if found and verdicts[int(found[1]) - 1] else useful()

    return ScriptedJudge(judge_usefulness=answer)


def score(judge: Any, count: int, **inputs: Any) -> Any:
    """Score so many contexts."""
    return ContextPrecision(judge=judge).score(**{**FIELDS, "retrieved_contexts": contexts(count), **inputs})


@pytest.mark.parametrize(
    ("verdicts", "value"),
    [
        ([True], 1.0),
        ([False], 0.0),
        ([True, True, True], 1.0),
        ([True, True, False], 1.0),
        ([False, True], 1 / 2),
        ([True, False, True], (1 + 2 / 3) / 2),
        ([False, False, True], 1 / 3),
        ([False, True, True], (1 / 2 + 2 / 3) / 2),
        ([False, False, False], 0.0),
    ],
)
def test_it_is_the_average_precision(verdicts: list[bool], value: float) -> None:
    """By hand; what is perfect is exactly 1.0, and nothing of use is 0.0."""
    result = score(judging(verdicts), len(verdicts))
    assert result == value
    assert [verdict.ok for verdict in result.verdicts] == verdicts
    assert result.reason == f"{sum(verdicts)} of {len(verdicts)} contexts of use"


@given(st.lists(st.booleans(), max_size=30))
def test_average_precision_is_the_definition(verdicts: list[bool]) -> None:
    """Against a straight-line count; in [0, 1], 1.0 exactly when all that are of use stand first."""
    total = hits = 0.0
    for rank, verdict in enumerate(verdicts):
        if verdict:
            hits += 1
            total += hits / (rank + 1)
    value = average_precision(verdicts)
    assert value == pytest.approx(total / hits if hits else 0.0)
    assert 0.0 <= value <= 1.0
    assert (value == 1.0) == (any(verdicts) and verdicts == sorted(verdicts, reverse=True))


def test_ten_contexts_are_judged_at_once() -> None:
    """One small request a context, none waits for another, and each shows its own context alone."""
    judge = judging([True] * 10)
    assert score(judge, 10) == 1.0
    assert (judge.tasks, judge.depth) == (["judge_usefulness"] * 10, 1)
    prompts = [request.messages[1]["content"] for request in judge.requests]
    assert [len(re.findall(r"Moth \d+ flies", prompt)) for prompt in prompts] == [1] * 10


def test_another_order_asks_the_same() -> None:
    """The prompt of a context does not depend on its rank, so that a re-ranked list costs nothing."""
    first, second = judging([True, False, True]), judging([True, False, True])
    assert score(first, 3) == pytest.approx(5 / 6)
    assert score(second, 3, retrieved_contexts=contexts(3)[::-1]) == pytest.approx(5 / 6)
    assert {str(request) for request in first.requests} == {str(request) for request in second.requests}


@pytest.mark.parametrize("metric", [ContextPrecision, ContextUtilization])
def test_without_contexts_it_is_zero_and_nobody_is_asked(metric: Any) -> None:
    """Nothing retrieved is nothing of use; a blank context is never of use either."""
    judge = ScriptedJudge()
    assert metric(judge=judge).score(**FIELDS, response="So.", retrieved_contexts=[]) == 0.0
    blank = metric(judge=judge).score(**FIELDS, response="So.", retrieved_contexts=["", " \n"])
    assert (blank, [verdict.reason for verdict in blank.verdicts]) == (0.0, ["It has no sentence."] * 2)
    assert judge.requests == []


def test_a_blank_context_keeps_its_rank() -> None:
    """It pushes down what follows it."""
    assert score(judging([True]), 1, retrieved_contexts=["", *contexts(1)]) == 0.5


def test_verdicts_show_what_was_of_use() -> None:
    """A verdict names the rank and the sentences; the reason is the judge's."""
    judge = ScriptedJudge(judge_usefulness=[useful(), useful(2)])
    result = score(judge, 2, retrieved_contexts=["Rain.", "Bats sing. Moths fly at night."])
    rain, moths = result.verdicts
    assert (rain.ok, rain.evidence, rain.reason) == (False, (), "So it is.")
    (evidence,) = moths.evidence
    assert (evidence.context, evidence.start, evidence.end, evidence.text) == (1, 11, 30, "Moths fly at night.")


def test_use_is_judged_by_the_reference_or_by_the_response() -> None:
    """The question and the answer are shown under the same names."""
    for metric, answer in ((ContextPrecision, "At night."), (ContextUtilization, "At noon.")):
        judge = judging([True])
        metric(judge=judge).score(**FIELDS, response="At noon.", retrieved_contexts=contexts(1))
        prompt = judge.prompt("judge_usefulness")
        assert answer in prompt
        assert len({"At night.", "At noon."} & set(prompt.splitlines())) == 1


def test_one_context_without_a_verdict_is_no_score() -> None:
    """It is never left out of the average; what the others cost is counted."""
    judge = ScriptedJudge(judge_usefulness=[useful(1), JudgeError("out of ink"), useful(1)])
    with pytest.raises(UnscoredError, match="context_precision: out of ink") as caught:
        score(judge, 3)
    assert caught.value.usage is not None
    assert caught.value.usage.calls == 2
