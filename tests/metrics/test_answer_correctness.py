"""AnswerCorrectness: statements and similarity together."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import AnswerCorrectness
from tests.metrics.test_factual_correctness import comparing
from tests.scripted_judge import ScriptedEmbedder, ScriptedJudge

#: The cosine similarity of these two is 0.6.
EMBEDDER = ScriptedEmbedder({"The response.": [1.0, 0.0], "The reference.": [3.0, 4.0]})
CONTRARY = ScriptedEmbedder({"The response.": [1.0, 0.0], "The reference.": [-1.0, 0.0]})


def score(judge: ScriptedJudge, *, embedder: Any = EMBEDDER, **parameters: Any) -> Any:
    """Score a response against a reference."""
    metric = AnswerCorrectness(judge=judge, embedder=embedder, **parameters)
    return metric.score(response="The response.", reference="The reference.")


@pytest.mark.parametrize(
    ("said", "wanted", "f1"),
    [
        ([True], [True], 1.0),
        ([True, False], [True], 1 / 1.5),
        ([True], [True, False], 1 / 1.5),
        ([True, False], [True, False], 1 / 2),
        ([False], [False], 0.0),
        ([True, True, False], [True, False, False], 2 / 3.5),
    ],
)
def test_it_weighs_statements_and_similarity(said: list[bool], wanted: list[bool], f1: float) -> None:
    """TP / (TP + (FP + FN) / 2), three to one with the cosine, or by other weights."""
    assert score(comparing(said, wanted)) == pytest.approx(0.75 * f1 + 0.25 * 0.6)
    assert score(comparing(said, wanted), weights=(3, 2)) == pytest.approx(0.6 * f1 + 0.4 * 0.6)


def test_what_has_no_weight_is_not_asked_for() -> None:
    """The judge alone, or the embedder alone."""
    judge = comparing([True], [True])
    embedder = ScriptedEmbedder({})
    assert score(judge, embedder=embedder, weights=(1, 0)) == 1.0
    assert embedder.asked == []
    judge = ScriptedJudge()
    result = score(judge, weights=(0, 1))
    assert (result, judge.requests, result.reason) == (pytest.approx(0.6), [], "similarity 0.60")


def test_every_statement_is_counted_once() -> None:
    """Those of the response, and of the reference those that are missing."""
    result = score(comparing([True, False], [True, False]))
    assert [(verdict.text, verdict.ok) for verdict in result.verdicts] == [("R0", True), ("R1", False), ("S1", False)]
    assert result.reason == "1 statements right, 1 wrong, 1 missing; similarity 0.60"


def test_the_opposite_direction_counts_as_no_similarity() -> None:
    """The score stays within its scale."""
    assert score(comparing([False], [False]), embedder=CONTRARY) == 0.0
    assert score(comparing([True], [True]), embedder=CONTRARY) == 0.75


def test_it_takes_two_rounds() -> None:
    """Both texts are split at the same time, and then held against each other at the same time; one embedding."""
    judge, embedder = comparing([True], [True]), ScriptedEmbedder({"The response.": [1.0], "The reference.": [1.0]})
    assert score(judge, embedder=embedder) == 1.0
    assert (judge.tasks, judge.depth) == (["list_claims"] * 2 + ["verify_claims"] * 2, 2)
    assert embedder.asked == [["The response.", "The reference."]]


@pytest.mark.parametrize(("said", "wanted", "side"), [([], [True], "response"), ([True], [], "reference")])
def test_no_statement_on_one_side_is_zero(said: list[bool], wanted: list[bool], side: str) -> None:
    """A refusal is no correct answer, however alike the words are."""
    judge = comparing(said, wanted)
    result = score(judge)
    assert (result, result.reason, judge.tasks) == (0.0, f"the {side} has no statement", ["list_claims"] * 2)


def test_no_statement_on_either_side_is_no_score() -> None:
    """Unless the caller says what it is worth."""
    with pytest.raises(UnscoredError, match="answer_correctness: neither text has a statement"):
        score(comparing([], []))
    assert score(comparing([], []), if_empty=1.0).vacuous


@pytest.mark.parametrize("weights", [(1,), (1, 1, 1), (-1, 1), (0, 0), 0.75, "11", None, (True, 1), (float("nan"), 1)])
def test_weights_are_two_numbers(weights: Any) -> None:
    """Anything else is an error that says so."""
    with pytest.raises(ValueError, match="weights must"):
        AnswerCorrectness(weights=weights)
