"""Rankings of ids, and contexts compared by their characters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import Sample, assert_retrieved
from pytest_ragmetrics import metrics as m
from pytest_ragmetrics.core.result import Nearest
from pytest_ragmetrics.metrics.retrieval import RankingMetric

LOG3 = math.log2(3)
RANKING: list[Any] = [m.PrecisionAtK, m.RecallAtK, m.HitRate, m.MRR, m.MAP, m.NDCG]
IDS = st.lists(st.sampled_from("abcdefgh"), max_size=10)
GRADES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 4), min_size=1)
# Ten characters each: a likeness is the number of characters that are the same.
TEN, NINE, FIVE, FOUR = "abcdefghij", "abcdefghi-", "abcde-----", "abcd------"


@pytest.mark.parametrize(
    ("metric", "retrieved", "reference", "value"),
    [
        # hits / what is actually there, where others would divide by ten
        (m.PrecisionAtK(k=10), "ab", "ac", 0.5),
        (m.PrecisionAtK(k=2), "", "a", 0.0),
        (m.RecallAtK(), "ab", "aaae", 0.5),
        # the ideal is cut at k, not at what was retrieved
        (m.NDCG(k=5), "a", "ac", 1 / (1 + 1 / LOG3)),
        (m.NDCG(k=1), "a", "ac", 1.0),
        (m.IDBasedContextPrecision(), "abbc", "bx", 1 / 3),
        (m.IDBasedContextRecall(), "abbc", "bx", 0.5),
    ],
)
def test_values_by_hand(metric: RankingMetric, retrieved: str, reference: str, value: float) -> None:
    """Each value is worked out from the definition; `test_equal_to_trec_eval` has all others."""
    result = metric.score(retrieved_context_ids=list(retrieved), reference_context_ids=list(reference))
    assert result.value == pytest.approx(value, abs=1e-15)
    assert (result.metric, result.usage.calls, result.judge) == (metric.name, 0, None)


@pytest.mark.parametrize(
    ("grades", "gain", "k", "value"),
    [
        ({"c": 3, "b": 2, "a": 1}, "exponential", None, (1 + 3 / LOG3 + 7 / 2) / (7 + 3 / LOG3 + 1 / 2)),
        ({"c": 3, "b": 2, "a": 1}, "linear", 1, 1 / 3),
        ({"x": 1.5, "a": 0}, "linear", None, 0.0),
    ],
)
def test_graded_gains(grades: dict[str, float], gain: Any, k: int | None, value: float) -> None:
    """Grades of score(), of metadata and of a row are the same, and take the place of the reference ids."""
    metric = m.NDCG(k=k, gain=gain)
    fields: Any = {"retrieved_context_ids": list("abc"), "relevance": grades}
    result = metric.score(**fields)
    assert metric.score_sample(Sample.from_mapping(fields)) == result == pytest.approx(value)
    assert [verdict.text for verdict in result.verdicts] == [key for key, grade in grades.items() if grade]


def test_numbers_of_numpy_are_ids_cuts_and_grades() -> None:
    """An index of vectors returns its ids as an array; 2 ** 1e-18 - 1 is nothing in floats, and it has a share."""
    ids: Any = np.array([7, 8, 9])
    assert m.RecallAtK(k=np.int64(2)).score(retrieved_context_ids=ids, reference_context_ids=[8, 9]).value == 0.5
    assert m.NDCG().score(retrieved_context_ids=ids, relevance={7: np.float32(2)}).value == 1.0
    assert m.NDCG(gain="exponential").score(retrieved_context_ids=["a"], relevance={"a": 1e-18}).value == 1.0
    # In this order they add up to 2e-16 more than in the ideal one.
    grades = {"a": 0.3, "b": 0.1 + 0.2, "c": 0.1 + 0.2, "d": 0.1 + 0.2}
    assert m.NDCG().score(retrieved_context_ids=[*grades], relevance=grades).value == 1.0


def test_grades_out_of_json_find_ids_that_are_numbers() -> None:
    fields: Any = {"retrieved_context_ids": [7, 8, 9], "retrieved_contexts": ["A.", "B.", "C."]}
    result = m.NDCG().score(**fields, relevance={"7": 2, "9": 1, "5": 1})
    assert result.value == pytest.approx((2 + 1 / 2) / (2 + 1 / LOG3 + 1 / 2))
    assert [verdict.reason for verdict in result.verdicts] == ["rank 1", "rank 3", "not retrieved"]
    assert [piece.text for verdict in result.verdicts for piece in verdict.evidence] == ["A.", "C."]
    assert m.NDCG(k=1).score(**fields, relevance={7: 1, 8: 1}).verdicts[1].reason == "below the top 1"


@pytest.mark.parametrize(
    ("grades", "error", "message"),
    [
        ([3, 1], TypeError, "relevance must be a mapping of ids to grades, not list"),
        ({"a": -1}, ValueError, r"relevance\['a'\] must be a number from 0 to 100, not -1"),
        ({"a": 101}, ValueError, "not 101"),
        ({"a": 0}, ValueError, "no grade above 0"),
        ({}, ValueError, "no grade above 0"),
    ],
)
def test_wrong_grades_are_refused(grades: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        m.NDCG().score(retrieved_context_ids=["a"], relevance=grades)


def test_verdicts_have_the_rank_of_each_id() -> None:
    ids: dict[str, Any] = {"retrieved_context_ids": list("abc"), "reference_context_ids": list("bcx")}
    found, below, missed = [(True, "rank 2"), (False, "below the top 2"), (False, "not retrieved")]
    result = m.RecallAtK(k=2).score(**ids, retrieved_contexts=["Moths.", "Bees.", "Ants."])
    assert [(v.text, (v.ok, v.reason)) for v in result.verdicts] == [("b", found), ("c", below), ("x", missed)]
    (piece,) = result.verdicts[0].evidence
    assert (piece.context, piece.start, piece.end, piece.text) == (1, 0, 5, "Bees.")
    assert (result.verdicts[1].evidence, result.reason) == ((), "1 of 3 reference ids among 2 retrieved")
    said = [(v.text, v.ok, v.reason) for v in m.PrecisionAtK().score(**ids).verdicts]
    assert said == [("a", False, "rank 1, not among the reference ids"), ("b", *found), ("c", True, "rank 3")]
    first = m.MRR().score(**ids)
    assert ([v.text for v in first.verdicts], first.reason) == (["a", "b"], "first hit at rank 2")
    assert m.MRR(k=1).score(**ids).reason == "no hit among 1 retrieved"


@pytest.mark.parametrize("metric", RANKING)
def test_ids_are_compared_as_given_and_a_slip_is_named(metric: Any) -> None:
    result = metric().score(retrieved_context_ids=[7, 8], reference_context_ids=["7"])
    assert result == 0.0
    assert metric is m.NDCG or result.verdicts[0].reason.endswith("; ids are compared as given, and 7 is not '7'")
    with pytest.raises(TypeError, match="retrieved_context_ids must be a list of ids, not str"):
        metric().score(retrieved_context_ids="a", reference_context_ids=["a"])


def test_the_helper_takes_grades_only_for_ndcg() -> None:
    assert assert_retrieved([*"cdefgab"], {"a": 2, "b": 1}, metric="ndcg", k=None, min=0.1) < 0.5
    with pytest.raises(TypeError, match="reference_ids with grades are for metric='ndcg', not 'recall'"):
        assert_retrieved(["a"], {"a": 2}, min=1.0)
    with pytest.raises(TypeError, match="retrieved_ids must be a list, best first, not set"):
        assert_retrieved({"a", "b"}, ["a"])  # type: ignore[arg-type]


def trec(retrieved: Sequence[str], grades: Mapping[str, int], measure: str) -> float:
    """Return what trec_eval says of a ranking; of an id that comes twice the first rank is taken, as here."""
    run = {key: float(-rank) for rank, key in enumerate(dict.fromkeys(retrieved))}
    evaluated = pytrec_eval.RelevanceEvaluator({"q": dict(grades)}, {measure}).evaluate({"q": run})
    # It leaves a question without a ranking out; nothing retrieved is 0.0 here.
    return float(evaluated["q"][measure.replace(".", "_")]) if run else 0.0


@given(IDS, GRADES, st.integers(1, 10))
def test_equal_to_trec_eval(retrieved: list[str], grades: dict[str, int], k: int) -> None:
    """On any ranking; precision where trec_eval divides by k and we by what is there is brought to the same."""
    fields: dict[str, Any] = {"retrieved_context_ids": retrieved, "reference_context_ids": list(grades)}
    binary = dict.fromkeys(grades, 1)
    there = min(k, len(set(retrieved)))
    measures = {m.MAP: "map_cut", m.RecallAtK: "recall", m.HitRate: "success", m.PrecisionAtK: "P", m.NDCG: "ndcg_cut"}
    for metric, measure in measures.items():
        value = metric(k=k).score(**fields).value * (there / k if metric is m.PrecisionAtK else 1)
        assert value == pytest.approx(trec(retrieved, binary, f"{measure}.{k}")), measure
    assert m.MRR().score(**fields).value == pytest.approx(trec(retrieved, binary, "recip_rank"))
    graded = m.NDCG(k=k).score(retrieved_context_ids=retrieved, relevance=grades)
    assert graded.value == pytest.approx(trec(retrieved, grades, f"ndcg_cut.{k}"))


@pytest.mark.parametrize(
    ("retrieved", "reference", "threshold", "recall", "precision"),
    [
        # at the threshold is alike, in both
        ([FIVE], [TEN], 0.5, 1.0, 1.0),
        ([FOUR], [TEN], 0.5, 0.0, 0.0),
        (["0123456789", NINE], [TEN], 0.5, 1.0, 0.5),
        ([NINE, "0123456789", TEN], [TEN], 0.5, 1.0, (1 + 2 / 3) / 2),
        ([], [TEN], 0.5, 0.0, 0.0),
        (["", TEN], [TEN], 0.5, 1.0, 0.5),
        ([FOUR], [TEN], 0, 1.0, 1.0),
        (["東京の天気は晴れです"], ["東京の天気は雨です"], 0.7, 1.0, 1.0),
    ],
)
def test_values_by_hand_of_non_llm_contexts(
    retrieved: list[str], reference: list[str], threshold: float, recall: float, precision: float
) -> None:
    fields: dict[str, Any] = {"retrieved_contexts": retrieved, "reference_contexts": reference}
    assert m.NonLLMContextRecall(threshold=threshold).score(**fields).value == recall
    assert m.NonLLMContextPrecision(threshold=threshold).score(**fields).value == pytest.approx(precision)


def test_what_was_missed_is_shown_with_what_is_nearest() -> None:
    result = m.NonLLMContextRecall().score(retrieved_contexts=["-" * 10, FOUR], reference_contexts=[TEN, FIVE])
    missed, found = result.verdicts
    assert (missed.ok, missed.reason) == (False, "no context is 50% alike")
    assert missed.nearest == Nearest(context=1, start=0, end=10, text=FOUR, similarity=0.4)
    assert (found.ok, found.reason, found.evidence[0].context) == (True, "90% alike", 1)
    assert result.reason == "1 of 2 reference contexts retrieved"
    nothing = m.NonLLMContextRecall().score(retrieved_contexts=[], reference_contexts=[TEN])
    assert [verdict.reason for verdict in nothing.verdicts] == ["nothing was retrieved"]
    precise = m.NonLLMContextPrecision().score(retrieved_contexts=[FOUR, NINE], reference_contexts=["-" * 20, TEN])
    assert [(v.ok, v.reason, [piece.context for piece in v.evidence]) for v in precise.verdicts] == [
        (False, "40% alike to reference_contexts[1], the nearest", []),
        (True, "90% alike to reference_contexts[1], the nearest", [1]),
    ]
    assert precise.reason == "1 of 2 contexts alike to one of the reference"
