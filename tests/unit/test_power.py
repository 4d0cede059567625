"""How many samples settle what is open."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from pytest_ragmetrics.stats.agreement import auroc
from pytest_ragmetrics.stats.corrected import prediction_powered_mean
from pytest_ragmetrics.stats.decisions import mean_threshold, rate_threshold, samples_to_settle
from pytest_ragmetrics.stats.intervals import mean_interval, rate_interval, shape_of, verdict
from pytest_ragmetrics.stats.thresholds import suggest_threshold

SCORES = [0.9, 0.8, 1.0, 0.7, 0.85] * 4


def test_it_is_what_makes_a_t_test_significant_half_of_the_time() -> None:
    """The mean stays where it is just as often as not, and statsmodels says the same."""
    scores = np.random.default_rng(3).normal(0.8, 0.1, 30).tolist()
    gap = float(np.mean(scores)) - 0.78
    more = samples_to_settle(scores, 0.78, bounds=None)
    assert more is not None
    power = TTestPower().power(gap / np.std(scores, ddof=1), 30 + more, 0.05)
    assert power == pytest.approx(0.5, abs=0.02)


def test_that_many_more_like_them_settle_a_rate() -> None:
    """By Wilson's interval of the same rate, of counts that need not be whole."""
    more = samples_to_settle([1.0] * 18 + [0.0] * 2, 0.8, shape="rate")
    assert more == 42
    low_61, low_62 = (proportion_confint(0.9 * n, n, method="wilson")[0] for n in (61, 62))
    assert low_62 >= 0.8 > low_61


def test_scores_that_are_all_perfect_need_more_of_them() -> None:
    """Alone, and in clusters, whose number counts."""
    more = samples_to_settle([1.0] * 10, 0.9)
    assert more == 26
    assert verdict(mean_interval([1.0] * 36), 0.9) == "passed"
    assert verdict(mean_interval([1.0] * 35), 0.9) == "inconclusive"
    in_pairs = samples_to_settle([1.0] * 10, 0.9, clusters=[index // 2 for index in range(10)])
    assert in_pairs == pytest.approx(2 * 26 + 10, abs=1)


@pytest.mark.parametrize(
    ("values", "bound", "clusters", "more"),
    [
        (SCORES, 0.5, None, 0),
        (SCORES, 0.95, None, 0),
        (SCORES, mean_interval(SCORES).low, None, 0),
        ([0.5, 1.0], 0.75, None, None),
        ([1.0] * 10, 1.0, None, None),
        ([0.8] * 5, 0.8, None, None),
        ([0.4, 0.6], 0.5001, None, None),
        ([0.8, 0.9], 0.7, "aa", None),
    ],
)
def test_what_is_settled_or_cannot_be(
    values: list[float], bound: float, clusters: str | None, more: int | None
) -> None:
    """No more are needed on either side of the bound; none suffice on it, close to it, or in one cluster."""
    assert samples_to_settle(values, bound, clusters=clusters) == more


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from([0.0, 0.5, 0.75, 1.0]), min_size=1, max_size=20),
    st.sampled_from([0.3, 0.6, 0.9]),
    st.integers(1, 4),
)
def test_more_are_needed_just_where_the_interval_is_inconclusive(values: list[float], bound: float, size: int) -> None:
    """Whatever the scores, the clusters and the shape."""
    clusters = [index // size for index in range(len(values))]
    shape = shape_of(values, (0.0, 1.0))
    interval = mean_interval(values, clusters=clusters, method="auto")
    more = samples_to_settle(values, bound, clusters=clusters, shape=shape)
    assert (more == 0) == (verdict(interval, bound) != "inconclusive")


def test_a_threshold_result_has_the_figures_of_a_report() -> None:
    """Of a mean and of a rate, with an interval or without."""
    mean = mean_threshold(SCORES, 0.83, metric="faithfulness", confidence=0.95, unscored=2)
    assert (mean.metric, mean.statistic, mean.outcome) == ("faithfulness", "mean", "inconclusive")
    assert (mean.n, mean.unscored, mean.interval) == (20, 2, mean_interval(SCORES, method="auto"))
    assert mean.more is not None
    plain = mean_threshold(SCORES, 0.83)
    assert plain.value == pytest.approx(0.85)
    assert (plain.outcome, plain.interval, plain.more) == ("passed", None, None)
    assert mean_threshold(SCORES, 0.83, better="lower").outcome == "failed"
    rate = rate_threshold(SCORES, 0.8, 0.9, confidence=0.95)
    assert (rate.value, rate.reached, rate.score_bound, rate.outcome) == (0.8, 16, 0.8, "inconclusive")
    assert rate.interval == rate_interval([score >= 0.8 for score in SCORES])
    assert rate_threshold(SCORES, 0.8, 0.4, score_better="lower").value == 0.4


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
    """It is neither below a bound nor above it, so it is no failure: it is an error."""
    with pytest.raises(ValueError, match=message):
        mean_threshold(scores, 0.4, confidence=confidence)
    with pytest.raises(ValueError, match=message):
        rate_threshold(scores, 0.4, 0.9, confidence=confidence)


def test_arrays_are_read_like_lists() -> None:
    """Scores in an array, and a bound of numpy, give the same plain numbers."""
    scores, good = [0.9, 0.1, 0.4, 0.6] * 3, [True, False, True, False] * 3
    array: Any = np.array(scores)
    assert auroc(array, good) == auroc(scores, good)
    assert suggest_threshold(array, good) == suggest_threshold(scores, good)
    assert prediction_powered_mean(array, [1.0, None, 0.0] * 4) == prediction_powered_mean(scores, [1.0, None, 0.0] * 4)
    assert samples_to_settle(array, 0.3) == samples_to_settle(scores, 0.3)
    result = rate_threshold(array, 0.3, np.float64(0.5), confidence=np.float64(0.95))
    assert type(result.value) is float
    assert result == rate_threshold(scores, 0.3, 0.5, confidence=0.95)
