"""ragas_score: the harmonic mean of the means of several metrics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import MetricResult, Usage, assert_ragas_score
from pytest_ragmetrics import metrics as m
from tests.metrics.fake_session import FakeSession
from tests.scripted_judge import ScriptedEmbedder, ScriptedJudge, claims, verdicts, written

FIELDS = {"question": "Do moths fly?", "answer": "They do.", "contexts": ["Moths fly at night."]}
EMBEDDER = ScriptedEmbedder({text: [1.0] for text in ("Do moths fly?", "Do they?", "Do moths?", "Would they?")})


@pytest.mark.parametrize(
    ("results", "value"),
    [
        ({"faithfulness": 1.0, "context_recall": 0.5, "answer_relevancy": 0.25}, 3 / (1 + 2 + 4)),
        ({"faithfulness": [1.0, 0.0], "context_recall": [1.0]}, 2 / 3),
        ({"faithfulness": 0.0, "context_recall": 1.0}, 0.0),
        ({"faithfulness": np.float32(0.5), "context_recall": np.array([1.0, 0.0])}, 0.5),
        ({"faithfulness": 1.0, "answer_relevancy": -0.5}, 0.0),
        ({"faithfulness": 1.0, "context_recall": 0.5, "harmfulness": 0.0, "coherence": 1.0}, 2 / 3),
    ],
)
def test_the_harmonic_mean_of_the_means(results: dict[str, Any], value: float) -> None:
    """Any zero makes it zero instead of an error, and aspects of 0 or 1 are left out."""
    assert m.ragas_score(results).value == pytest.approx(value)


def test_a_list_of_results_is_grouped_by_metric() -> None:
    scores = (("one", 1.0, "a"), ("one", 0.0, "a"), ("two", 1.0, "b"), ("harmfulness", 0.0, "a"))
    usage = Usage(calls=1, prompt_tokens=10, cost=0.5)
    score = m.ragas_score([MetricResult(value, metric=name, judge=by, usage=usage) for name, value, by in scores])
    assert score.value == pytest.approx(2 / 3)
    assert (score.metric, score.judge, score.usage.calls, score.usage.cost) == ("ragas_score", "a, b", 3, 1.5)
    assert score.reason == "harmonic mean of one 0.50, two 1.00"


def result(score: float, metric: str, *, vacuous: bool = False) -> MetricResult:
    return MetricResult(score, metric=metric, vacuous=vacuous)


ALIGNED, SILENT = result(0.5, "numbers_aligned"), result(1.0, "numbers_aligned", vacuous=True)
FAITHFUL = result(0.25, "faithfulness")
BOTH = "harmonic mean of numbers_aligned {}, faithfulness {}"
SILENT_TOO = result(0.5, "faithfulness", vacuous=True)


@pytest.mark.parametrize(
    ("results", "way", "value", "vacuous", "reason"),
    [
        ([ALIGNED, SILENT, FAITHFUL], "skip", 1 / 3, False, BOTH.format("0.50", "0.25")),
        ([ALIGNED, SILENT, FAITHFUL], "count", 0.375, False, BOTH.format("0.75", "0.25")),
        ([SILENT, FAITHFUL], "skip", 0.25, False, "harmonic mean of faithfulness 0.25; nothing to check: numbers_al"),
        ([SILENT, SILENT_TOO], "skip", 2 / 3, True, f"{BOTH.format('1.00', '0.50')}; nothing to check: numbers"),
    ],
)
def test_what_had_nothing_to_check(results: Any, way: Any, value: float, *, vacuous: bool, reason: str) -> None:
    by_name: dict[str, list[float]] = {}
    for each in results:
        by_name.setdefault(each.metric, []).append(each)
    for given_as in (results, by_name):
        score = m.ragas_score(given_as, vacuous=way)
        assert score.value == pytest.approx(value)
        assert (score.vacuous, str(score.reason)[: len(reason)]) == (vacuous, reason)


def test_a_sample_with_nothing_to_check_passes() -> None:
    sample = {"response": "Moths fly.", "retrieved_contexts": ["Moths fly at night."]}
    metrics = ("numbers_aligned", "lexical_grounding")
    assert not assert_ragas_score(sample, metrics=metrics, min=0.9).vacuous
    assert assert_ragas_score(sample, metrics=("numbers_aligned", "citation_validity"), min=0.9).vacuous


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({}, "needs two metrics or more, not 0"),
        ([], "needs two metrics or more, not 0"),
        ({"faithfulness": 1.0, "harmfulness": 0.0, "coherence": 1.0}, "needs two metrics or more, not 1"),
        ({"faithfulness": 1.0, "hallucination": 0.0}, "lower scores of hallucination are better"),
        *(({"a": 1.0, "b": [0.5, bad]}, "score 1 of b is .*, not a finite number") for bad in (None, math.nan, "1.0")),
        ({"faithfulness": 1.0, "context_recall": [], "answer_relevancy": 1.0}, "context_recall has no score"),
    ],
)
def test_what_has_no_harmonic_mean_is_an_error(results: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"ragas_score:? {message}"):
        m.ragas_score(results)


@given(st.dictionaries(st.sampled_from(["one", "two", "three", "four"]), st.floats(0, 1), min_size=2))
def test_it_lies_between_the_least_and_the_mean(means: dict[str, float]) -> None:
    score = m.ragas_score(means).value
    assert min(means.values()) - 1e-9 <= score <= sum(means.values()) / len(means) + 1e-9


def judge() -> ScriptedJudge:
    asked = written("Do they?", "Do moths?", "Would they?")
    listed = claims("Moths fly.", "Moths sing.")
    return ScriptedJudge(list_claims=listed, verify_claims=verdicts([1], None), write_questions=asked)


def test_the_helper_scores_its_metrics_together() -> None:
    """All at the same time: the chain of requests is as long as the longest one, and the session records each."""
    asked, session, names = judge(), FakeSession(), ("faithfulness", "ResponseRelevancy")
    with session.running():
        result = assert_ragas_score(FIELDS, metrics=names, min=0.6, judge=asked, embedder=EMBEDDER)
    assert result.value == pytest.approx(2 / 3)
    assert (len(asked.tasks), asked.depth, result.usage.calls) == (3, 2, 3)
    assert result.judge == "scripted, custom:scripted-vectors"
    assert [scoring.metric for scoring in session.scorings][-1] == "ragas_score"
    spent = {scoring.metric: scoring.usage.calls for scoring in session.scorings}
    assert spent == {"faithfulness": 2, "answer_relevancy": 1, "ragas_score": 0}
    with pytest.raises(AssertionError) as caught:
        assert_ragas_score(FIELDS, metrics=names, min=0.9, judge=judge(), embedder=EMBEDDER)
    assert str(caught.value) == "ragas_score 0.67 < 0.90: harmonic mean of faithfulness 0.50, answer_relevancy 1.00"


def test_metrics_may_be_given_ready_made() -> None:
    asked = ScriptedJudge(verify_claims=verdicts([1]))
    metrics = (m.Faithfulness(unit="sentences", judge=asked), "lexical_grounding")
    with pytest.raises(ValueError, match="context_recall: reference is missing"):
        assert_ragas_score(FIELDS, metrics=(*metrics, "context_recall"), min=0.5, judge=asked)
    assert asked.requests == []
    assert assert_ragas_score({**FIELDS, "answer": "Moths fly."}, metrics=metrics, min=1.0) == 1.0
