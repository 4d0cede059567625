"""Rates corrected for the errors of the judge, and the coverage of their intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.stats.corrected import corrected_rate, prediction_powered_mean
from pytest_ragmetrics.stats.intervals import Interval, mean_interval


def certain(rate: float) -> Interval:
    return Interval(estimate=rate, low=rate, high=rate, confidence=0.95, n=100)


@given(st.floats(0, 1), st.floats(0.55, 1), st.floats(0.55, 1))
def test_the_correction_undoes_the_errors_of_the_judge(truth: float, tpr: float, tnr: float) -> None:
    passed = truth * tpr + (1 - truth) * (1 - tnr)
    found = corrected_rate(certain(passed), tpr=tpr, tnr=tnr)
    assert found.estimate == pytest.approx(truth, abs=1e-9)
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0


def test_doubt_about_the_judge_widens_the_interval() -> None:
    passed = mean_interval([True] * 300 + [False] * 100)
    same = corrected_rate(passed, tpr=1.0, tnr=1.0)
    assert (same.estimate, same.low, same.high) == pytest.approx((passed.estimate, passed.low, passed.high))
    sure = corrected_rate(passed, tpr=0.9, tnr=0.8)
    tpr, tnr = mean_interval([True] * 27 + [False] * 3), mean_interval([True] * 16 + [False] * 4)
    unsure = corrected_rate(passed, tpr=tpr, tnr=tnr)
    assert unsure.estimate == pytest.approx(sure.estimate)
    assert unsure.half_width > 2 * sure.half_width


def test_a_share_beyond_the_rates_is_cut_and_says_so() -> None:
    """More answers pass than the judge would pass of good ones alone: all are good, as far as one can tell."""
    passed = Interval(estimate=0.93, low=0.90, high=0.95, confidence=0.95, n=100)
    high = corrected_rate(passed, tpr=Interval(estimate=0.9, low=0.85, high=0.94, confidence=0.95, n=50), tnr=0.7)
    assert (high.estimate, high.high) == (1.0, 1.0)
    assert high.note == "cut from 1.05: the judge passes more or less than its rates allow"
    low = corrected_rate(replace(passed, estimate=0.07, low=0.05, high=0.1), tpr=0.9, tnr=0.92)
    assert (low.estimate, low.low) == (0.0, 0.0)
    assert low.note is not None
    assert corrected_rate(replace(passed, estimate=0.85, low=0.8, high=0.9), tpr=0.9, tnr=0.7).note is None


@pytest.mark.parametrize(("estimate", "tpr", "tnr"), [(0.8, 0.55, 0.5), (0.2, 0.9, 0.7)])
def test_rates_that_cannot_belong_to_a_table_are_refused(estimate: float, tpr: float, tnr: float) -> None:
    passed = Interval(estimate=estimate, low=estimate - 0.05, high=estimate + 0.04, confidence=0.95, n=300)
    with pytest.raises(ValueError, match=r"these rates cannot belong to this table: the judge passes 0\.[28]0 "):
        corrected_rate(passed, tpr=tpr, tnr=tnr)


def test_a_judge_no_better_than_chance_is_refused() -> None:
    passed = mean_interval([True, False] * 20)
    with pytest.raises(ValueError, match=r"true positive rate of 0\.6 and a true negative rate of 0\.4 is no better"):
        corrected_rate(passed, tpr=0.6, tnr=0.4)
    few = mean_interval([True] * 60 + [False] * 140)
    doubtful = {"tpr": mean_interval([True] * 4 + [False] * 3), "tnr": mean_interval([True] * 6 + [False])}
    found = corrected_rate(few, **doubtful)
    assert (found.low, found.high) == (0.0, 1.0)


@pytest.mark.parametrize("rate", [1.5, -0.1, float("nan"), True, "0.9"])
def test_what_is_no_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="tnr must be a rate between 0 and 1, not"):
        corrected_rate(certain(0.5), tpr=0.9, tnr=rate)


@pytest.mark.parametrize(
    ("known", "rest", "estimate", "low", "high"),
    [
        # Scores and labels of the labelled rows, scores of the rest: a judge that is right, without and with an error
        # among the labels, one that is wrong three times each way, and one that tosses a coin.
        ([(1, 1)] * 9 + [(0, 0)], (81, 90), 0.9, 0.5815, 1.0),
        ([(1, 1)] * 10, (81, 90), 1.0, 0.6915, 1.0),
        ([(1, 1)] * 45 + [(0, 1)] * 3 + [(0, 0)] * 9 + [(1, 0)] * 3, (352, 440), 0.8, 0.6981, 0.8867),
        ([(1, 1), (0, 1)] * 24 + [(1, 0), (0, 0)] * 6, (220, 440), 0.8, 0.6767, 0.8922),
    ],
)
def test_labels_correct_the_scores_of_all_rows(known: Any, rest: Any, estimate: float, low: float, high: float) -> None:
    passed, others = rest
    scores = [float(score) for score, _ in known] + [1.0] * passed + [0.0] * (others - passed)
    found = prediction_powered_mean(scores, [float(label) for _, label in known] + [None] * others)
    assert (found.estimate, found.low, found.high) == pytest.approx((estimate, low, high), abs=6e-5)


@pytest.mark.parametrize("accuracy", [0.5, 0.7, 0.85, 1.0])
def test_it_is_never_wider_than_the_labels_alone(accuracy: float) -> None:
    random = np.random.default_rng(11)
    for n in (1, 2, 10, 60):
        good = (random.random(300) < 0.8).astype(float)
        judged = np.where(random.random(300) < accuracy, good, 1 - good)
        labels = [float(label) if row < n else None for row, label in enumerate(good)]
        alone = mean_interval(good[:n].tolist())
        assert prediction_powered_mean(judged.tolist(), labels).half_width <= alone.half_width


def test_labels_for_all_rows_are_the_answer() -> None:
    labels = [1.0, 0.0, 1.0, 1.0]
    assert prediction_powered_mean([0.0, 1.0, 0.2, 0.3], labels) == mean_interval(labels)
    # Where all are bad no negative zero is left.
    found = prediction_powered_mean([1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    assert (found.estimate, str(found.low)) == (0.0, "0.0")


def test_common_clusters_of_both_parts_widen_the_interval() -> None:
    """What is rare among the labelled rows of a document is rare among its other rows, too."""
    random = np.random.default_rng(4)
    documents = random.random(40)
    good = (random.random(80) < np.tile(documents, 2)).astype(float)
    scores = np.clip(np.tile(documents, 2) + random.normal(0, 0.2, 80), 0, 1).tolist()
    labels = [*good[:40].tolist(), *[None] * 40]
    common = prediction_powered_mean(scores, labels, clusters=[*range(40)] * 2)
    assert common.half_width > prediction_powered_mean(scores, labels).half_width


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        ([0.5, 0.5], [None, None], "there is no label"),
        ([0.5], [1.0, None], "2 labels for 1 scores"),
        ([1.5, 0.5], [1.0, None], r"scores\[0\] is 1.5"),
        ([0.5, 0.5], [2.0, None], r"scores\[0\] is 2.0"),
    ],
)
def test_what_cannot_be_corrected(scores: list[float], labels: list[float | None], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        prediction_powered_mean(scores, labels)
