"""AnswerRelevancy: how close the question is to questions that the response answers."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import AnswerRelevancy
from tests.scripted_judge import ScriptedEmbedder, ScriptedJudge, written

ASKED = "Do moths fly?"
VECTORS = {
    ASKED: [1.0, 0.0],
    "same": [3.0, 0.0],
    "near": [4.0, 3.0],
    "far": [0.0, 2.0],
    "against": [-5.0, 0.0],
    "zero": [0.0, 0.0],
}


def score(judge: ScriptedJudge, embedder: Any = None, **parameters: Any) -> Any:
    """Score the answer to a question about moths."""
    metric = AnswerRelevancy(judge=judge, embedder=embedder or ScriptedEmbedder(VECTORS), **parameters)
    return metric.score(user_input=ASKED, response="They do.")


@pytest.mark.parametrize(
    ("generated", "value"),
    [
        (["same"], 1.0),
        (["near"], 0.8),
        (["far"], 0.0),
        (["against"], -1.0),
        (["zero"], 0.0),
        (["same", "near", "far"], 0.6),
        (["same", "against"], 0.0),
        (["near", "against", "far", "same"], 0.2),
    ],
)
def test_it_is_the_mean_cosine_similarity(generated: list[str], value: float) -> None:
    """Lengths of vectors do not matter, opposite directions count below zero, and a vector of zeros is like nothing."""
    judge = ScriptedJudge(write_questions=written(*generated))
    result = score(judge, strictness=len(generated))
    assert result.value == pytest.approx(value, abs=1e-12)
    assert [verdict.text for verdict in result.verdicts] == generated
    assert (len(judge.tasks), judge.depth, result.usage.calls) == (1, 1, 1)


def test_the_same_direction_is_exactly_one() -> None:
    """Rounding in the vectors leaves nothing between equal texts and 1.0."""
    vectors = {ASKED: [0.1, 0.7, 0.3], "same": [0.1, 0.7, 0.3], "longer": [0.2, 1.4, 0.6]}
    judge = ScriptedJudge(write_questions=written("same", "longer"))
    assert score(judge, ScriptedEmbedder(vectors), strictness=2).value == 1.0


def test_three_questions_are_one_request_and_one_embedding() -> None:
    """The questions come together, so that they differ, and all texts are embedded at once."""
    judge, embedder = ScriptedJudge(write_questions=written("same", "near", "far")), ScriptedEmbedder(VECTORS)
    score(judge, embedder)
    assert "exactly 3" in judge.prompt("write_questions")
    assert embedder.asked == [[ASKED, "same", "near", "far"]]


def test_the_judge_does_not_see_the_question() -> None:
    """Whoever is to guess the question must not be told it."""
    judge = ScriptedJudge(write_questions=written("same", "near", "far"))
    score(judge)
    assert ASKED not in judge.prompt("write_questions")


@pytest.mark.parametrize(
    ("rule", "evasive", "zero"),
    [
        ("all", [], False),
        ("all", [1, 2], False),
        ("all", [1, 2, 3], True),
        ("any", [], False),
        ("any", [2], True),
        ("majority", [1], False),
        ("majority", [1, 3], True),
    ],
)
def test_a_noncommittal_response_scores_zero(rule: Any, evasive: list[int], zero: bool) -> None:  # noqa: FBT001
    """Which flags make it noncommittal is the caller's rule; then nothing is embedded."""
    judge = ScriptedJudge(write_questions=written("same", "near", "far", evasive=evasive))
    embedder = ScriptedEmbedder(VECTORS)
    result = score(judge, embedder, noncommittal=rule)
    assert result.value == (0.0 if zero else pytest.approx(0.6))
    assert [verdict.ok for verdict in result.verdicts] == [number not in evasive for number in (1, 2, 3)]
    assert bool(embedder.asked) is not zero
    assert ("noncommittal" in result.reason) is zero


def test_half_is_no_majority() -> None:
    """Of two flags, one is not most of them."""
    judge = ScriptedJudge(write_questions=written("same", "near", evasive=[1]))
    assert score(judge, strictness=2, noncommittal="majority").value == pytest.approx(0.9)


def test_the_reason_names_the_question_that_is_least_alike() -> None:
    """A low score says what the response seems to answer instead."""
    result = score(ScriptedJudge(write_questions=written("same", "far", "near")))
    assert result.reason == 'mean similarity of 3 generated questions; the least alike is "far"'
    assert [verdict.reason for verdict in result.verdicts] == [
        f"cosine similarity {value} to the question" for value in ("1.00", "0.00", "0.80")
    ]


@pytest.mark.parametrize("vectors", [[[1.0, 0.0]], [[1.0], [float("nan")]], [1.0, 2.0], "vectors", [[], []]])
def test_vectors_that_are_none(vectors: Any) -> None:
    """An embedder that returns too few rows or no finite numbers makes the sample unscored, not NaN."""
    judge = ScriptedJudge(write_questions=written("same"))
    with pytest.raises(UnscoredError, match=r"^answer_relevancy: "):
        score(judge, lambda texts: vectors, strictness=1)


def test_an_unknown_rule_is_an_error() -> None:
    """The rules are named."""
    with pytest.raises(ValueError, match="noncommittal must be 'all' or 'any' or 'majority', not 'some'"):
        AnswerRelevancy(noncommittal="some")  # type: ignore[arg-type]
