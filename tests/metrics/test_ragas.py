"""ragas_score: the harmonic mean of the means of several metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import MetricResult, Usage, assert_ragas_score
from pytest_ragmetrics.metrics import AspectCritique, Faithfulness, NumbersAligned, RagasScore, ragas_score
from tests.metrics.fake_session import FakeSession
from tests.scripted_judge import ScriptedEmbedder, ScriptedJudge, claims, verdicts, written


@pytest.mark.parametrize(
    ("results", "value"),
    [
        ({"faithfulness": 1.0, "context_recall": 1.0}, 1.0),
        ({"faithfulness": 0.5, "context_recall": 1.0}, 2 / 3),
        ({"faithfulness": 1.0, "context_recall": 0.5, "answer_relevancy": 0.25}, 3 / (1 + 2 + 4)),
        ({"faithfulness": [1.0, 0.0], "context_recall": [1.0]}, 2 / 3),
        ({"faithfulness": 0.0, "context_recall": 1.0}, 0.0),
        ({"faithfulness": [0.0, 0.0], "context_recall": 1.0}, 0.0),
        ({"faithfulness": 1.0, "answer_relevancy": -0.5}, 0.0),
        ({"faithfulness": 1.0, "context_recall": 0.5, "harmfulness": 0.0, "coherence": 1.0}, 2 / 3),
    ],
)
def test_the_harmonic_mean_of_the_means(results: dict[str, Any], value: float) -> None:
    """Any zero makes it zero instead of an error, and aspects of 0 or 1 are left out."""
    assert ragas_score(results).value == pytest.approx(value)


def test_a_list_of_results_is_grouped_by_metric() -> None:
    """Results know their metric; what they cost and who judged them is added up."""
    usage = Usage(calls=1, prompt_tokens=10, cost=0.5)
    results = [
        MetricResult(1.0, metric="faithfulness", judge="a", usage=usage),
        MetricResult(0.0, metric="faithfulness", judge="a", usage=usage),
        MetricResult(1.0, metric="context_recall", judge="b", usage=usage),
        MetricResult(0.0, metric="harmfulness", judge="a", usage=usage),
    ]
    score = ragas_score(results)
    assert score.value == pytest.approx(2 / 3)
    assert (score.metric, score.judge, score.usage.calls, score.usage.cost) == ("ragas_score", "a, b", 3, 1.5)
    assert score.reason == "harmonic mean of faithfulness 0.50, context_recall 1.00"


@pytest.mark.parametrize(
    "results", [{}, [], {"faithfulness": 1.0}, {"faithfulness": 1.0, "harmfulness": 0.0, "coherence": 1.0}]
)
def test_fewer_than_two_metrics_are_an_error(results: Any) -> None:
    """A mean of one is no mean."""
    with pytest.raises(ValueError, match=f"ragas_score needs two metrics or more, not {min(len(results), 1)}"):
        ragas_score(results)


@pytest.mark.parametrize("score", [None, float("nan"), float("inf"), "1.0"])
def test_a_sample_without_a_score_is_an_error(score: Any) -> None:
    """A table has ``None`` where a row has no score; neither it nor a metric without any is left out in silence."""
    given: Any = {"faithfulness": 1.0, "context_recall": [0.5, score]}
    with pytest.raises(ValueError, match=r"ragas_score: score 1 of context_recall is .*, not a finite number"):
        ragas_score(given)
    given = {"faithfulness": 1.0, "context_recall": [], "answer_relevancy": 1.0}
    with pytest.raises(ValueError, match="ragas_score: context_recall has no score"):
        ragas_score(given)


def test_numbers_of_numpy_are_scores() -> None:
    """A mean that numpy computed is a score, and an array is several."""
    given: Any = {"faithfulness": np.float32(0.5), "context_recall": np.array([1.0, 0.0])}
    assert ragas_score(given).value == 0.5


@given(st.dictionaries(st.sampled_from(["one", "two", "three", "four"]), st.floats(0, 1), min_size=2))
def test_it_lies_between_the_least_and_the_mean(means: dict[str, float]) -> None:
    """A harmonic mean is never above the arithmetic one, and never below the least value."""
    score = ragas_score(means).value
    assert min(means.values()) - 1e-9 <= score <= sum(means.values()) / len(means) + 1e-9


def judge() -> ScriptedJudge:
    """Return a judge for faithfulness 0.5 and relevancy 1.0."""
    return ScriptedJudge(
        list_claims=claims("Moths fly.", "Moths sing."),
        verify_claims=verdicts([1], None),
        write_questions=written("Do they?", "Do moths?", "Would they?"),
    )


FIELDS = {"question": "Do moths fly?", "answer": "They do.", "contexts": ["Moths fly at night."]}
EMBEDDER = ScriptedEmbedder({text: [1.0] for text in ("Do moths fly?", "Do they?", "Do moths?", "Would they?")})


def test_the_helper_scores_its_metrics_together() -> None:
    """All metrics of a sample at the same time: as deep as the deepest one, and each is told to the session."""
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
    """A metric with parameters of its own, beside one by name that needs no judge."""
    metrics = (Faithfulness(unit="sentences", judge=ScriptedJudge(verify_claims=verdicts([1]))), "lexical_grounding")
    fields = {**FIELDS, "answer": "Moths fly."}
    assert assert_ragas_score(fields, metrics=metrics, min=1.0) == 1.0


def test_a_field_that_one_metric_misses_is_an_error() -> None:
    """It comes up before anything is asked."""
    asked = judge()
    with pytest.raises(ValueError, match="context_recall: reference is missing"):
        assert_ragas_score(FIELDS, metrics=("faithfulness", "context_recall"), min=0.5, judge=asked)
    assert asked.requests == []


@pytest.mark.parametrize(
    "metrics",
    [
        [NumbersAligned()],
        [NumbersAligned(), NumbersAligned()],
        [NumbersAligned(), AspectCritique(definition="Is it polite?"), AspectCritique(name="harmfulness")],
        [],
    ],
)
def test_two_different_metrics_are_needed(metrics: list[Any]) -> None:
    """Aspects do not count, one's own neither."""
    with pytest.raises(ValueError, match="ragas_score needs two metrics or more"):
        RagasScore(metrics=metrics)
