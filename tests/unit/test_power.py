"""How many samples settle what is open."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.stats.agreement import auroc
from pytest_ragmetrics.stats.corrected import prediction_powered_mean
from pytest_ragmetrics.stats.cutoffs import suggest_threshold
from pytest_ragmetrics.stats.intervals import mean_interval, verdict
from pytest_ragmetrics.stats.means import samples_to_settle, set_threshold

SCORES = [0.9, 0.8, 1.0, 0.7, 0.85] * 4


@pytest.mark.parametrize(("passed", "n", "total"), [(18, 20, 292), (46, 50, 101), (90, 100, 248), (80, 100, 474)])
def test_the_forecast_of_student_s_t_is_that_of_the_normal_distribution(passed: int, n: int, total: int) -> None:
    """Nearly: its quantiles are a little larger."""
    more = samples_to_settle([1.0] * passed + [0.0] * (n - passed), 0.85, bounds=None) or 0
    assert n + more == pytest.approx(total, rel=0.03)


def test_clusters_need_more() -> None:
    """Of ten documents with four rows that are alike as many rows are worth a fourth."""
    scores, clusters = [1.0] * 32 + [0.0] * 8, [index // 4 for index in range(40)]
    assert samples_to_settle(scores, 0.6) == 0
    assert (samples_to_settle(scores, 0.6, clusters=clusters) or 0) > 3 * 40


@pytest.mark.parametrize(
    ("values", "bound", "clusters", "more"),
    [
        *((SCORES, 0.5, None, 0), (SCORES, 0.98, None, 0), (SCORES, mean_interval(SCORES).low, None, 0)),
        *(([0.5, 1.0], 0.75, None, None), ([1.0] * 20, 1.0, None, None), ([0.8] * 25, 0.8, None, None)),
        # Fewer than 20 scores, and a mean within half a standard error of the bound.
        *((SCORES[:19], 0.75, None, None), ([0.4, 0.6] * 30, 0.501, None, None)),
        ([0.8, 0.9] * 10, 0.7, "a" * 20, None),
    ],
)
def test_what_is_settled(values: list[float], bound: float, clusters: str | None, more: int | None) -> None:
    assert samples_to_settle(values, bound, clusters=clusters) == more


@given(
    st.lists(st.sampled_from([0.0, 0.5, 0.75, 1.0]), min_size=1, max_size=30),
    st.sampled_from([0.3, 0.6, 0.9]),
    st.integers(1, 4),
)
def test_more_are_needed_just_where_the_interval_is_inconclusive(values: list[float], bound: float, size: int) -> None:
    clusters = [index // size for index in range(len(values))]
    interval = mean_interval(values, clusters=clusters)
    more = samples_to_settle(values, bound, clusters=clusters)
    assert (more == 0) == (verdict(interval, bound) != "inconclusive")


def test_a_threshold_result_has_the_figures_of_a_report() -> None:
    mean = set_threshold(SCORES, 0.83, metric="faithfulness", confidence=0.95, unscored=2)
    assert (mean.metric, mean.statistic, mean.outcome) == ("faithfulness", "mean", "inconclusive")
    assert (mean.n, mean.unscored, mean.interval) == (20, 2, mean_interval(SCORES))
    assert mean.more is not None
    plain = set_threshold(SCORES, 0.83)
    assert plain.value == pytest.approx(0.85)
    assert (plain.outcome, plain.interval, plain.more) == ("passed", None, None)
    assert set_threshold(SCORES, 0.83, better="lower").outcome == "failed"
    rate = set_threshold(SCORES, 0.9, score_bound=0.8, confidence=0.95)
    assert (rate.value, rate.reached, rate.score_bound, rate.outcome) == (0.8, 16, 0.8, "inconclusive")
    assert rate.interval == mean_interval([float(score >= 0.8) for score in SCORES])
    assert set_threshold(SCORES, 0.4, score_bound=0.8, better="lower").value == 0.4


@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "no scores, and a mean needs at least one"),
        ([0.5, math.nan], r"scores\[1\] is nan, not a finite number"),
        ([0.5, math.inf], r"scores\[1\] is inf, not a finite number"),
    ],
)
def test_no_number_meets_no_bound(scores: list[float], confidence: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        set_threshold(scores, 0.4, confidence=confidence)
    with pytest.raises(ValueError, match=message):
        set_threshold(scores, 0.9, score_bound=0.4, confidence=confidence)


def test_arrays_are_read_like_lists() -> None:
    scores, good = [0.9, 0.1, 0.4, 0.6] * 3, [True, False, True, False] * 3
    array: Any = np.array(scores)
    assert auroc(array, good) == auroc(scores, good)
    assert suggest_threshold(array, good) == suggest_threshold(scores, good)
    assert prediction_powered_mean(array, [1.0, None, 0.0] * 4) == prediction_powered_mean(scores, [1.0, None, 0.0] * 4)
    assert samples_to_settle(array, 0.3) == samples_to_settle(scores, 0.3)
    result = set_threshold(array, np.float64(0.5), score_bound=0.3, confidence=np.float64(0.95))
    assert type(result.value) is float
    assert result == set_threshold(scores, 0.5, score_bound=0.3, confidence=0.95)
