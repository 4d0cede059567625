"""AnswerRelevancy, AnswerCorrectness and RefusalCorrectness."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.metrics import AnswerCorrectness, AnswerRelevancy, RefusalCorrectness
from tests.metrics.test_claims import comparing
from tests.scripted_judge import Answer, ScriptedEmbedder, ScriptedJudge, chosen, says, written

# Answer relevancy


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
    """The questions come together, so that they differ, with one embedding; the judge does not see the real one."""
    judge, embedder = ScriptedJudge(write_questions=written("same", "near", "far")), ScriptedEmbedder(VECTORS)
    score(judge, embedder)
    assert "exactly 3" in judge.prompt("write_questions")
    assert ASKED not in judge.prompt("write_questions")
    assert embedder.asked == [[ASKED, "same", "near", "far"]]


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


# Answer correctness


#: The cosine similarity of these two is 0.6.
EMBEDDER = ScriptedEmbedder({"The response.": [1.0, 0.0], "The reference.": [3.0, 4.0]})
CONTRARY = ScriptedEmbedder({"The response.": [1.0, 0.0], "The reference.": [-1.0, 0.0]})


def correctness_score(judge: ScriptedJudge, *, embedder: Any = EMBEDDER, **parameters: Any) -> Any:
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
    assert correctness_score(comparing(said, wanted)) == pytest.approx(0.75 * f1 + 0.25 * 0.6)
    assert correctness_score(comparing(said, wanted), weights=(3, 2)) == pytest.approx(0.6 * f1 + 0.4 * 0.6)


def test_what_has_no_weight_is_not_asked_for() -> None:
    """The judge alone, or the embedder alone."""
    judge = comparing([True], [True])
    embedder = ScriptedEmbedder({})
    assert correctness_score(judge, embedder=embedder, weights=(1, 0)) == 1.0
    assert embedder.asked == []
    judge = ScriptedJudge()
    result = correctness_score(judge, weights=(0, 1))
    assert (result, judge.requests, result.reason) == (pytest.approx(0.6), [], "similarity 0.60")


def test_every_statement_is_counted_once() -> None:
    """Those of the response, and of the reference those that are missing."""
    result = correctness_score(comparing([True, False], [True, False]))
    assert [(verdict.text, verdict.ok) for verdict in result.verdicts] == [("R0", True), ("R1", False), ("S1", False)]
    assert result.reason == "1 statements right, 1 wrong, 1 missing; similarity 0.60"


def test_the_opposite_direction_counts_as_no_similarity() -> None:
    """The correctness_score stays within its scale."""
    assert correctness_score(comparing([False], [False]), embedder=CONTRARY) == 0.0
    assert correctness_score(comparing([True], [True]), embedder=CONTRARY) == 0.75


def test_it_takes_two_rounds() -> None:
    """Both texts are split at the same time, and then held against each other at the same time; one embedding."""
    judge, embedder = comparing([True], [True]), ScriptedEmbedder({"The response.": [1.0], "The reference.": [1.0]})
    assert correctness_score(judge, embedder=embedder) == 1.0
    assert (judge.tasks, judge.depth) == (["list_claims"] * 2 + ["verify_claims"] * 2, 2)
    assert embedder.asked == [["The response.", "The reference."]]


@pytest.mark.parametrize(("said", "wanted", "side"), [([], [True], "response"), ([True], [], "reference")])
def test_no_statement_on_one_side_is_zero(said: list[bool], wanted: list[bool], side: str) -> None:
    """A refusal is no correct answer, however alike the words are."""
    judge = comparing(said, wanted)
    result = correctness_score(judge)
    assert (result, result.reason, judge.tasks) == (0.0, f"the {side} has no statement", ["list_claims"] * 2)


def test_no_statement_on_either_side_is_no_score() -> None:
    """Unless the caller says what it is worth."""
    with pytest.raises(UnscoredError, match="answer_correctness: neither text has a statement"):
        correctness_score(comparing([], []))
    assert correctness_score(comparing([], []), if_empty=1.0).vacuous


@pytest.mark.parametrize("weights", [(1,), (1, 1, 1), (-1, 1), (0, 0), 0.75, "11", None, (True, 1), (float("nan"), 1)])
def test_weights_are_two_numbers(weights: Any) -> None:
    """Anything else is an error that says so."""
    with pytest.raises(ValueError, match="weights must"):
        AnswerCorrectness(weights=weights)


# Refusal


FIELDS: dict[str, Any] = {
    "user_input": "When do moths fly?",
    "response": "At night.",
    "retrieved_contexts": ["Bats hunt. Moths fly at night."],
}


def refusal_score(judge: Any, **inputs: Any) -> Any:
    """Score a response about moths."""
    return RefusalCorrectness(judge=judge).score(**{**FIELDS, **inputs})


@pytest.mark.parametrize(
    ("word", "sentences", "value", "reason"),
    [
        ("answers", [2], 1.0, "it gives an answer, and the contexts can answer the question"),
        ("refuses", [], 1.0, "it refuses, and the contexts cannot answer the question"),
        ("refuses", [2], 0.0, "it refuses, and the contexts can answer the question"),
        ("answers", [], 0.0, "it gives an answer, and the contexts cannot answer the question"),
    ],
)
def test_refusing_and_being_able_to_answer_exclude_each_other(
    word: str, sentences: list[int], value: float, reason: str
) -> None:
    """Two requests at the same time; the verdict shows the sentences that answer."""
    judge = ScriptedJudge(judge_refusal=says(word), select_sentences=chosen(*sentences))
    result = refusal_score(judge)
    assert (result, result.reason) == (value, reason)
    (verdict,) = result.verdicts
    assert (verdict.ok, verdict.reason, verdict.start, verdict.end) == (bool(value), "Because.", 0, 9)
    assert [piece.text for piece in verdict.evidence] == ["Moths fly at night."] * len(sentences)
    assert (sorted(judge.tasks), judge.depth) == (["judge_refusal", "select_sentences"], 1)


@pytest.mark.parametrize("contexts", [[], [""], [" \n"]])
def test_without_contexts_the_right_thing_is_to_refuse(contexts: list[str]) -> None:
    """Nothing retrieved cannot answer, and nobody is asked whether it can."""
    for word, value in (("refuses", 1.0), ("answers", 0.0)):
        judge = ScriptedJudge(judge_refusal=says(word))
        assert refusal_score(judge, retrieved_contexts=contexts) == value
        assert judge.tasks == ["judge_refusal"]


@pytest.mark.parametrize(
    "script",
    [
        {"judge_refusal": says("yes"), "select_sentences": chosen()},
        {"judge_refusal": says("answers"), "select_sentences": chosen(3)},
        {"judge_refusal": JudgeError("out of ink"), "select_sentences": chosen()},
        {"judge_refusal": says("answers"), "select_sentences": JudgeError("out of ink")},
    ],
)
def test_one_judgement_alone_is_no_score(script: dict[str, Answer]) -> None:
    """Whichever is missing, and what was paid for is counted."""
    with pytest.raises(UnscoredError, match=r"no usable answer|out of ink") as caught:
        refusal_score(ScriptedJudge(**script))
    assert caught.value.usage is not None
    assert caught.value.usage.calls in (1, 3)


def test_the_local_judge_knows_the_usual_words() -> None:
    """By rule: words of refusal, and the sentences with the words of the question."""
    assert refusal_score("local", response="Moths fly at night.") == 1.0
    assert refusal_score("local", response="I do not know.") == 0.0
    assert refusal_score("local", response="I do not know.", user_input="Who owns the old mill?") == 1.0
