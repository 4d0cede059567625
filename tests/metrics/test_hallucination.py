"""Hallucination: the share of contexts that the response does not contradict."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics.metrics import Hallucination
from tests.scripted_judge import ScriptedJudge, contradicted

CONTEXTS = ["Moths fly at night. They like lamps.", "Bats hunt them."]


def score(judge: Any, **inputs: Any) -> Any:
    """Score a response about moths."""
    fields = {"response": "Moths fly by day.", "retrieved_contexts": CONTEXTS, **inputs}
    return Hallucination(judge=judge).score(**fields)


@pytest.mark.parametrize(
    ("cited", "value"), [([[], []], 1.0), ([[1], []], 0.5), ([[], [3]], 0.5), ([[1, 2], [3]], 0.0)]
)
def test_it_is_the_share_of_contexts_not_contradicted(cited: list[list[int]], value: float) -> None:
    """Higher is better; one request for all contexts."""
    judge = ScriptedJudge(find_contradictions=contradicted(*cited))
    result = score(judge)
    assert (result, result.metric, Hallucination.better) == (value, "hallucination", "higher")
    assert result.reason == f"{int(value * 2)} of 2 contexts not contradicted"
    assert (judge.tasks, judge.depth) == (["find_contradictions"], 1)


def test_verdicts_show_what_is_contradicted() -> None:
    """The sentence of the context, and the judge's reason."""
    first, second = score(ScriptedJudge(find_contradictions=contradicted([1], []))).verdicts
    assert (first.ok, first.reason, first.text) == (False, "Reason 1.", CONTEXTS[0])
    assert [(piece.context, piece.text) for piece in first.evidence] == [(0, "Moths fly at night.")]
    assert (second.ok, second.evidence) == (True, ())


def test_the_local_judge_sees_other_numbers_and_negations() -> None:
    """By rule: a sentence that is nearly the same, with another number or negated."""
    assert (
        score("local", response="In 1905 ten boats lay here.", retrieved_contexts=["In 1904 ten boats lay here."])
        == 0.0
    )
    assert (
        score("local", response="Moths do not fly at night.", retrieved_contexts=["Rain.", "Moths fly at night."])
        == 0.5
    )
    assert score("local", response="Moths fly at night.", retrieved_contexts=["Moths fly at night."]) == 1.0
    assert score("local", response="Bats sing.", retrieved_contexts=["Moths fly at night.", ""]) == 1.0
