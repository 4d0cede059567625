"""AnswerRelevancy, AnswerCorrectness, SemanticSimilarity, RefusalCorrectness and SummaryScore."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics import metrics as m
from pytest_ragmetrics.judges.embedders.embedder import cosines
from tests.asking import MemoryTransport
from tests.metrics.fake_session import FakeSession
from tests.metrics.test_claims import comparing
from tests.scripted_judge import ScriptedEmbedder, ScriptedJudge, answers, chosen, claims, questions, says, written

ASKED = "Do moths fly?"
VECTORS = {ASKED: [1.0, 0.0], "same": [3.0, 0.0], "near": [4.0, 3.0], "far": [0.0, 2.0], "against": [-5.0, 0.0]}
#: The cosine similarity of these two is 0.6.
VECTOR_PAIR = {"The response.": [1.0, 0.0], "The reference.": [3.0, 4.0]}
CONTRARY = ScriptedEmbedder({"The response.": [1.0, 0.0], "The reference.": [-1.0, 0.0]})
PAIR: dict[str, Any] = {"response": "The response.", "reference": "The reference."}
CONTEXTS = ["Moths fly at night.", "They like lamps."]  # 19 + 1 + 16 = 36 characters
CLOSED = ["Do moths fly?", "At night?", "Do they like lamps?", "Is that all?"]


def score(judge: ScriptedJudge, embedder: Any = None, **parameters: Any) -> Any:
    metric = m.AnswerRelevancy(judge=judge, embedder=embedder or ScriptedEmbedder(VECTORS), **parameters)
    return metric.score(user_input=ASKED, response="They do.")


@pytest.mark.parametrize(
    ("generated", "likeness", "least"),
    [
        (["same"], [1.0], "same"),
        (["against"], [-1.0], "against"),
        (["near", "near", "same"], [0.8, 0.8, 1.0], "near"),
        (["near", "against", "far", "same"], [0.8, -1.0, 0.0, 1.0], "against"),
    ],
)
def test_it_is_the_mean_cosine_similarity(generated: list[str], likeness: list[float], least: str) -> None:
    judge, embedder = ScriptedJudge(write_questions=written(*generated)), ScriptedEmbedder(VECTORS)
    result = score(judge, embedder, strictness=len(generated))
    assert result.value == pytest.approx(sum(likeness) / len(likeness), abs=1e-12)
    assert result.reason == f'mean similarity of {len(likeness)} generated questions; the least alike is "{least}"'
    said = [f"cosine similarity {value:.2f} to the question" for value in likeness]
    assert [(v.text, v.reason) for v in result.verdicts] == list(zip(generated, said, strict=True))
    assert f"exactly {len(generated)}" in judge.prompt("write_questions")
    assert ASKED not in judge.prompt("write_questions")
    assert embedder.asked == [[ASKED, *generated]]


@pytest.mark.parametrize(
    ("rule", "count", "evasive", "zero"),
    [
        ("all", 3, [1, 2], False),
        ("all", 3, [1, 2, 3], True),
        ("any", 3, [], False),
        ("any", 3, [2], True),
        ("majority", 3, [1, 3], True),
        ("majority", 2, [1], False),
    ],
)
def test_a_noncommittal_response_scores_zero(rule: Any, count: int, evasive: list[int], zero: bool) -> None:
    judge = ScriptedJudge(write_questions=written(*("same", "near", "far")[:count], evasive=evasive))
    embedder = ScriptedEmbedder(VECTORS)
    result = score(judge, embedder, noncommittal=rule, strictness=count)
    assert result.value == (0.0 if zero else pytest.approx(1.8 / count))
    assert [verdict.ok for verdict in result.verdicts] == [n not in evasive for n in range(1, count + 1)]
    assert bool(embedder.asked) is not zero
    said = f"the response is noncommittal: {len(evasive)} of {count} generated questions say so"
    assert (result.reason == said) is zero


NO_VECTORS: list[Any] = [
    [[1.0, 0.0]],
    *([[1.0, 0.0], [bad, 0.0]] for bad in (math.nan, math.inf, -math.inf, 1e39, 1e300)),
    np.array([[1.0], [1e300]]),
    [1.0, 2.0],
    "vectors",
    [[], []],
    *([[1.0, 0.0], [none, none]] for none in (0.0, -0.0, 1e-50)),
    [[0.0, 0.0], [1.0, 0.0]],
    [[0.0], [0.0]],
]


@pytest.mark.parametrize("vectors", NO_VECTORS)
def test_vectors_without_a_cosine(vectors: Any) -> None:
    """Too few rows, no finite numbers or nothing but zeros make the sample unscored: not NaN, and not 0.0 either."""
    script: Any = {"select_sentences": [chosen(1), chosen(2)], "list_claims": claims("Moths fly.")}
    judge = ScriptedJudge(write_questions=written("Two."), **script)
    asked: dict[str, Any] = {"judge": judge, "embedder": lambda _: vectors}
    for metric in (
        m.AnswerRelevancy(strictness=1, **asked),
        m.ContextRelevancy(strictness=2, **asked),
        m.AnswerCorrectness(**asked),
        m.SemanticSimilarity(embedder=asked["embedder"]),
        m.SemanticSimilarity(embedder=asked["embedder"], threshold=0.0),
    ):
        fields: Any = {"user_input": "One.", "response": "One.", "reference": "Two."}
        with pytest.raises(UnscoredError, match=r"^\w+: custom:.* returned (an array|a vector|rows)|did not return"):
            metric.score(**fields, retrieved_contexts=["One.", "Two."])


def test_equal_texts_are_alike_whole() -> None:
    """Two ways to write a letter have one vector, and rounding leaves nothing between equal directions and 1.0."""
    embedder = ScriptedEmbedder({"Café.": [1.0, 2.0]})
    result = m.SemanticSimilarity(embedder=embedder).score(response="Cafe\u0301.", reference="Caf\u00e9.")
    assert result.value == pytest.approx(1.0)
    vectors = {ASKED: [0.1, 0.7, 0.3], "same": [0.1, 0.7, 0.3], "longer": [0.2, 1.4, 0.6]}
    judge = ScriptedJudge(write_questions=written("same", "longer"))
    assert score(judge, ScriptedEmbedder(vectors), strictness=2).value == 1.0


@pytest.mark.parametrize("zero", ["One.", "Two."])
def test_a_vector_of_zeros_is_named(zero: str) -> None:
    embedder = ScriptedEmbedder({"One.": [1.0, 2.0], "Two.": [2.0, 1.0], zero: [0.0, 0.0]})
    said = f"semantic_similarity: custom:scripted-vectors returned a vector of zeros for '{zero}'; it has no cosine sim"
    with pytest.raises(UnscoredError, match=f"^{said}"):
        m.SemanticSimilarity(embedder=embedder).score(response="One.", reference="Two.")
    with pytest.raises(UnscoredError, match="a vector of zeros has no cosine similarity"):
        cosines(np.ones((1, 2), np.float32), np.zeros((1, 2), np.float32))


def correctness_score(judge: ScriptedJudge, *, embedder: Any = None, **parameters: Any) -> Any:
    vectors = embedder or ScriptedEmbedder(VECTOR_PAIR)
    return m.AnswerCorrectness(judge=judge, embedder=vectors, **parameters).score(**PAIR)


@pytest.mark.parametrize(
    ("said", "wanted", "f1"),
    [
        ([True], [True], 1.0),
        ([True], [True, False], 1 / 1.5),
        ([False], [False], 0.0),
        ([True, True, False], [True, False, False], 2 / 3.5),
    ],
)
def test_it_weighs_statements_and_similarity(said: list[bool], wanted: list[bool], f1: float) -> None:
    judge, embedder = comparing(said, wanted), ScriptedEmbedder(VECTOR_PAIR)
    assert correctness_score(judge, embedder=embedder) == pytest.approx(0.75 * f1 + 0.25 * 0.6)
    assert correctness_score(judge, weights=(3, 2)) == pytest.approx(0.6 * f1 + 0.4 * 0.6)
    assert correctness_score(judge, embedder=CONTRARY) == pytest.approx(0.75 * f1)
    right, wrong, missing = sum(said), said.count(False), wanted.count(False)
    # Recall counts twice; the similarity has no beta.
    twice = 5 * right / (5 * right + wrong + 4 * missing)
    assert correctness_score(judge, beta=2, weights=(1, 0)) == pytest.approx(twice)
    assert embedder.asked == [["The response.", "The reference."]]


def test_what_has_no_weight_is_not_asked_for() -> None:
    embedder, judge = ScriptedEmbedder({}), ScriptedJudge()
    alone = correctness_score(comparing([True], [True]), embedder=embedder, weights=(1, 0))
    assert (alone, alone.reason, embedder.asked) == (1.0, "1 statements right, 0 wrong, 0 missing", [])
    result = correctness_score(judge, weights=(0, 1))
    assert (result, judge.requests, result.reason) == (pytest.approx(0.6), [], "similarity 0.60")
    both = correctness_score(comparing([True, False], [True, False]))
    assert [(verdict.text, verdict.ok) for verdict in both.verdicts] == [("R0", True), ("R1", False), ("S1", False)]
    assert both.reason == "1 statements right, 1 wrong, 1 missing; similarity 0.60"


@pytest.mark.parametrize(("said", "wanted", "side"), [([], [True], "response"), ([True], [], "reference")])
def test_no_statement_on_one_side_is_zero(said: list[bool], wanted: list[bool], side: str) -> None:
    judge = comparing(said, wanted)
    result = correctness_score(judge)
    assert (result, result.reason, judge.tasks) == (0.0, f"the {side} has no statement", ["list_claims"] * 2)


def test_similarity_is_the_cosine_of_the_embedder() -> None:
    for threshold, value, reason in ((None, 0.6, "0.60"), (0.5, 1.0, "0.60 ≥ 0.5"), (0.7, 0.0, "0.60 < 0.7")):
        result = m.SemanticSimilarity(threshold=threshold, embedder=ScriptedEmbedder(VECTOR_PAIR)).score(**PAIR)
        assert result.value == pytest.approx(value)
        assert (result.judge, result.reason) == ("custom:scripted-vectors", f"cosine similarity {reason}")


@pytest.mark.parametrize(
    ("word", "sentences", "reason"),
    [
        ("answers", [2], "it gives an answer, and the contexts can answer the question"),
        ("refuses", [], "it refuses, and the contexts cannot answer the question"),
        ("refuses", [2], "it refuses, and the contexts can answer the question"),
        ("answers", [], "it gives an answer, and the contexts cannot answer the question"),
    ],
)
def test_refusing_and_being_able_to_answer_exclude_each_other(word: str, sentences: list[int], reason: str) -> None:
    """The verdict shows the sentences that answer; without contexts the right thing is to refuse, without asking."""

    def refusal_score(judge: ScriptedJudge, *contexts: str) -> Any:
        metric, fields = (
            m.RefusalCorrectness(judge=judge),
            {"user_input": "When do moths fly?", "response": "At night."},
        )
        return metric.score(**fields, retrieved_contexts=[*contexts])

    judge = ScriptedJudge(judge_refusal=says(word), select_sentences=chosen(*sentences))
    result, value = refusal_score(judge, "Bats hunt. Moths fly at night."), (word == "answers") == bool(sentences)
    assert (result, result.reason) == (float(value), reason)
    (verdict,) = result.verdicts
    assert (verdict.ok, verdict.reason, verdict.start, verdict.end) == (value, "Because.", 0, 9)
    assert [piece.text for piece in verdict.evidence] == ["Moths fly at night."] * len(sentences)
    alone = ScriptedJudge(judge_refusal=says(word))
    assert refusal_score(alone) == refusal_score(alone, " \n") == float(word == "refuses")


def summing(*words: str) -> ScriptedJudge:
    asked = questions(*CLOSED[: len(words)])
    return ScriptedJudge(write_closed_questions=asked, answer_questions=answers(*words))


@pytest.mark.parametrize(
    ("words", "summary", "parameters", "value"),
    [
        # conciseness of "Moths fly." is 1 - 10/36
        (["yes", "no"], "Moths fly.", {}, 0.5 * 0.5 + 0.5 * (26 / 36)),
        (["yes", "yes", "yes", "no"], "Moths fly.", {"coeff": 0.25}, 0.75 * 0.75 + 0.25 * (26 / 36)),
        (["yes"], "Moths fly.", {"coeff": 0.0}, 1.0),
        # white space counts once
        (["yes", "no"], "\r\n Moths  fly. \n ", {}, 0.5 * 0.5 + 0.5 * (26 / 36)),
        # characters, in every script
        (["no"], "蛾飞在夜间飞行吗吗", {"coeff": 1.0}, 27 / 36),
        # longer than the contexts: conciseness is 0
        (["yes", "yes"], "Moths fly. " * 10, {}, 0.5),
        # not halved without the penalty
        (["yes", "no", "no", "no"], "Moths fly.", {"length_penalty": False, "coeff": 0.9}, 0.25),
    ],
)
def test_a_summary_answers_and_is_short(words: list[str], summary: str, parameters: Any, value: float) -> None:
    result = m.SummaryScore(judge=summing(*words), **parameters).score(response=summary, reference_contexts=CONTEXTS)
    assert result.value == pytest.approx(value, abs=1e-9)
    assert [(v.text, v.ok, v.reason) for v in result.verdicts] == [
        (CLOSED[index], word == "yes", f"Reason {index + 1}.") for index, word in enumerate(words)
    ]
    share = f"{words.count('yes')} of {len(words)} questions answered by the summary"
    concise = 1 - min(len(" ".join(summary.split())), 36) / 36
    assert result.reason == (f"{share}, conciseness {concise:.2f}" if "length_penalty" not in parameters else share)


def test_a_changed_summary_costs_one_request() -> None:
    judge = summing("yes", "no")
    with FakeSession(transport=MemoryTransport()).running():
        cold = m.SummaryScore(judge=judge).score(response="Moths fly.", reference_contexts=CONTEXTS)
        warm = m.SummaryScore(judge=judge).score(response="Moths fly well.", reference_contexts=CONTEXTS)
    assert [(it.usage.calls, it.usage.cached_calls) for it in (cold, warm)] == [(2, 0), (1, 1)]
    assert judge.tasks[2:] == ["answer_questions"]
