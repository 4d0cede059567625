"""Intervals: against scipy and statsmodels, at the edges, and whether they contain the truth as often as they say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.stats import bounded
from pytest_ragmetrics.stats.intervals import (
    Interval,
    mean_error,
    mean_interval,
    propagated,
    t_quantile,
    t_tail,
    verdict,
    whole_clusters,
)

BOUNDS = ((0.0, 1.0), None)
SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)
DEGREES = (0.3, 1.0, 4.7, 99.0, 101.0, 1e7)


@pytest.mark.parametrize("df", DEGREES)
def test_student_s_t_is_that_of_scipy(df: float) -> None:
    for probability in (1e-6, 0.025, 0.5, 0.6, 0.975, 0.9995):
        assert t_quantile(probability, df) == pytest.approx(scipy.stats.t.ppf(probability, df), rel=1e-9, abs=1e-9)
    for value in (-1e4, -2.0, 0.0, 0.1, 1.0, 30.0, math.inf, -math.inf):
        assert t_tail(value, df) == pytest.approx(scipy.stats.t.sf(value, df), rel=1e-9, abs=1e-15)


def test_a_tail_close_to_the_median_keeps_its_digits() -> None:
    """The density of t with one degree of freedom is 1/pi there."""
    assert t_tail(1e-9, 1.0) == pytest.approx(0.5 - 1e-9 / math.pi, abs=1e-16)


def some_scores(n: int) -> list[float]:
    scores: list[float] = np.random.default_rng(1).beta(6, 1.5, n).tolist()
    return scores


@pytest.mark.parametrize(("n", "confidence"), [(2, 0.95), (10, 0.999), (200, 0.8)])
def test_the_t_interval_is_that_of_scipy(n: int, confidence: float) -> None:
    scores = some_scores(n)
    found = mean_interval(scores, confidence=confidence, bounds=None)
    expected = scipy.stats.t.interval(confidence, n - 1, loc=np.mean(scores), scale=scipy.stats.sem(scores))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    assert found.estimate == pytest.approx(np.mean(scores))
    assert (found.n, found.confidence) == (n, confidence)
    assert found.half_width == pytest.approx((expected[1] - expected[0]) / 2, abs=1e-9)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("passed", "n"), [(0, 10), (1, 10), (7, 10), (10, 10), (1, 1), (90, 1000), (39_800, 40_000)])
def test_the_interval_of_a_mean_of_zeros_and_ones_is_exact(passed: int, n: int, confidence: float) -> None:
    """That of Clopper and Pearson."""
    found = mean_interval([1.0] * passed + [0.0] * (n - passed), confidence=confidence)
    tail = (1 - confidence) / 2
    low = scipy.stats.beta.ppf(tail, passed, n - passed + 1) if passed else 0.0
    high = scipy.stats.beta.ppf(1 - tail, passed + 1, n - passed) if passed < n else 1.0
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-8)


@pytest.mark.parametrize(
    ("scores", "clusters", "arguments", "low", "high"),
    [
        ([1.0], None, {}, 0.0250, 1.0),
        ([4e-258], None, {}, 0.0, 0.9750),
        ([0.9] * 5, None, {}, 0.4304, 0.9522),
        ([0.9, 0.8, 1.0, 0.7, 0.85], None, {}, 0.4036, 0.9506),
        ([1.0] * 9 + [0.0], None, {"confidence": 0.9}, 0.6058, 0.9949),
        ([0.95] * 17 + [0.05] * 3, None, {}, 0.6041, 0.9240),
        ([5.0, 5.0, 4.0, 5.0, 3.0], None, {"bounds": (1.0, 5.0)}, 2.5720, 4.9252),
        ([1.0] * 10 + [0.0] * 5 + [1.0] * 5, [*"aaaaabbbbbcccccddddd"], {}, 0.1941, 0.9937),
        ([1.0] * 9 + [0.0] * 2 + [1.0] * 12, [*"aaaaabbbbbcddeeeeeeeeee"], {}, 0.2284, 0.9921),
        # One cluster says as little as one score, whatever the number of its rows.
        ([1.0] * 20, [*"a" * 20], {}, 0.0250, 1.0),
        ([0.2, 0.8], ["a", "a"], {}, 0.0125, 0.9875),
        ([0.5], None, {}, 0.0125, 0.9875),
        ([3.0], None, {"bounds": None}, -math.inf, math.inf),
        # The smallest number above 0 has no half; looking for an end within a share of it went on for ever.
        ([5e-324], None, {}, 0.0, 0.975),
    ],
)
def test_the_interval_of_a_mean_on_a_scale(scores: Any, clusters: Any, arguments: Any, low: float, high: float) -> None:
    found = mean_interval(scores, clusters=clusters, **arguments)
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


def test_the_interval_of_a_mean_is_that_of_drawn_weights() -> None:
    scores = np.array([0.3, 0.35, 0.9, 0.62, 0.62, 1.0, 0.05])
    weights = np.random.default_rng(5).dirichlet(np.ones(8), 300_000)
    found = mean_interval(scores.tolist(), confidence=np.float64(0.95))
    assert {type(value) for value in (found.estimate, found.low, found.high, found.confidence)} == {float}
    assert found.low == pytest.approx(np.quantile(weights @ np.append(scores, 0.0), 0.025), abs=2e-3)
    assert found.high == pytest.approx(np.quantile(weights @ np.append(scores, 1.0), 0.975), abs=2e-3)


def test_many_different_scores_are_parted_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which keeps the mean, and changes the interval of 150 of them by less than a hundredth of its width."""
    scores = some_scores(150)
    parted = mean_interval(scores)
    monkeypatch.setattr(bounded, "_MOST_KINDS", 1_000)
    exact = mean_interval(scores)
    assert (parted.low, parted.high) == pytest.approx((exact.low, exact.high), abs=0.01 * (exact.high - exact.low))
    assert parted != exact


def test_clustered_errors_are_those_of_statsmodels() -> None:
    """With clusters of one size CR2 is the sandwich of statsmodels with its correction for few clusters."""
    from statsmodels.regression.linear_model import OLS

    scores, clusters = some_scores(60), np.repeat(np.arange(12), 5)
    fit = OLS(scores, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    # statsmodels also corrects for the number of coefficients, which is n - 1 over n - 1 for a mean alone.
    found = mean_error(scores, clusters.tolist())
    assert (found.mean, found.error) == pytest.approx((fit.params[0], fit.bse[0]), abs=1e-9)
    assert found.df == pytest.approx(11)
    interval = mean_interval(scores, clusters=clusters.tolist(), bounds=None)
    half = scipy.stats.t.ppf(0.975, 11) * fit.bse[0]
    assert (interval.low, interval.high) == pytest.approx((fit.params[0] - half, fit.params[0] + half), abs=1e-9)


def satterthwaite(sizes: Sequence[int], within: float) -> float:
    """Return the degrees of freedom of CR2 from the matrices that define it; ``within`` is the working correlation."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n = len(labels)
    residual = np.eye(n) - np.ones((n, n)) / n
    covariance = np.where(labels[:, None] == labels[None, :], within, 0.0)
    np.fill_diagonal(covariance, 1.0)
    chosen = [np.where(labels == at, 1.0 / math.sqrt(1.0 - size / n), 0.0) for at, size in enumerate(sizes)]
    columns = [residual @ each for each in chosen]
    weights = np.array(columns) @ covariance @ np.array(columns).T
    return float(np.trace(weights) ** 2 / (weights**2).sum())


@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 1, 2, 2, 5), (1, 2, 3, 30), (1,) * 9, (40, 1, 1)])
def test_degrees_of_freedom_follow_from_their_definition(sizes: tuple[int, ...]) -> None:
    """The closed form equals the matrices, under no dependence in the clusters or full one, whichever leaves fewer."""
    clusters = np.repeat(np.arange(len(sizes)), sizes).tolist()
    expected = min(satterthwaite(sizes, 0.0), satterthwaite(sizes, 1.0))
    assert mean_error(some_scores(sum(sizes)), clusters).df == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("sizes", [(1, 10**4), (1, 1, 10**4), (50, 10**5)])
def test_a_cluster_of_nearly_all_rows_leaves_one_degree_of_freedom(sizes: tuple[int, ...]) -> None:
    scores = [float(row % 3) for row in range(sum(sizes))]
    clusters = [cluster for cluster, size in enumerate(sizes) for _ in range(size)]
    assert mean_error(scores, clusters).df == pytest.approx(1.0, abs=0.01)
    interval = mean_interval(scores, clusters=clusters, bounds=None)
    assert -math.inf < interval.low < 1.0 < interval.high < math.inf


@pytest.mark.parametrize("score", [0.0, 0.4, 1.0])
def test_scores_that_are_all_equal_have_the_interval_of_their_scale(score: float) -> None:
    """Any mean outside makes so many equal scores less probable than the confidence allows, by Markov's inequality."""
    found = mean_interval([score] * 20)
    share = 0.025 ** (1 / 20)
    assert (found.estimate, found.low, found.high) == pytest.approx((score, score * share, 1 - (1 - score) * share))
    # Of copies in clusters only the clusters count, and Student's t says nothing.
    assert mean_interval([score] * 20, clusters=[0, 1] * 10).low == pytest.approx(score * 0.025**0.5)
    found = mean_interval([score] * 20, bounds=None)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_clusters_that_mix_too_well_do_not_make_an_interval_of_no_width() -> None:
    """Each document has one good answer and one bad one: the error is taken to be half of that of independent ones."""
    scores, clusters = [0.0, 1.0] * 10, [index // 2 for index in range(20)]
    assert mean_error(scores, clusters).error == pytest.approx(mean_error(scores).error / 2)


@pytest.mark.parametrize(
    ("scores", "arguments", "message"),
    [
        ([], {}, "no scores, and an interval needs at least one"),
        ([0.5, math.nan], {}, r"scores\[1\] is nan, not a finite number"),
        ([0.5, math.inf], {"bounds": None}, r"scores\[1\] is inf"),
        ([0.5, 3.0], {}, r"scores\[1\] is 3.0, not between 0 and 1; say bounds="),
        ([0.5, 0.6], {"clusters": ["a"]}, "1 clusters for 2 scores"),
        ([0.5], {"confidence": 95}, "confidence must be a number between 0 and 1, such as 0.95, not 95"),
        ([0.5], {"confidence": 1.0}, "not 1.0"),
        ([0.5], {"confidence": math.nan}, "not nan"),
        ([0.5], {"confidence": True}, "not True"),
    ],
)
def test_wrong_arguments_are_named(scores: list[float], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mean_interval(scores, **arguments)


def test_rows_without_a_cluster_are_clusters() -> None:
    assert whole_clusters([None, None]) is None
    assert whole_clusters([None, "a", None]) == [("row", 0), ("cluster", "a"), ("row", 2)]


def test_a_verdict_needs_the_whole_interval() -> None:
    interval = Interval(estimate=0.5, low=0.4, high=0.6, confidence=0.95, n=10)
    passed, failed, open_ = "passed", "failed", "inconclusive"
    assert [verdict(interval, bound) for bound in (0.4, 0.41, 0.6, 0.61)] == [passed, open_, open_, failed]
    assert [verdict(interval, bound, "lower") for bound in (0.39, 0.4, 0.59, 0.6)] == [failed, open_, open_, passed]


def test_a_figure_moves_with_its_parts() -> None:
    certain, parts = ([Interval(estimate=0.5, low=low, high=1 - low, confidence=0.95, n=9)] * 2 for low in (0.5, 0.4))

    def total(one: float, other: float) -> float:
        return one + other

    assert propagated(total, certain, n=9, bounds=(0.0, 2.0)).half_width == 0.0
    assert propagated(total, parts, n=9, bounds=(0.0, 2.0)).half_width == pytest.approx(0.1 * 2**0.5)
    assert propagated(total, parts, n=9, bounds=(0.0, 2.0), correlation=1.0).half_width == pytest.approx(0.2)
    assert propagated(total, parts, n=9, bounds=(0.0, 1.05)).high == 1.05


@given(SCORES, st.floats(0.01, 0.999), st.sampled_from(BOUNDS), st.integers(1, 4), st.randoms(use_true_random=False))
def test_intervals_of_any_scores(
    scores: list[float], confidence: float, bounds: tuple[float, float] | None, size: int, random: Random
) -> None:
    def interval(rows: list[tuple[float, int]], confidence: float) -> Interval:
        values, clusters = [score for score, _ in rows], [cluster for _, cluster in rows]
        return mean_interval(values, clusters=clusters, confidence=confidence, bounds=bounds)

    rows = [(score, index // size) for index, score in enumerate(scores)]
    found, wider = interval(rows, confidence), interval(rows, 0.9995)
    assert interval(random.sample(rows, len(rows)), confidence) == found
    assert (bounds or (-math.inf,))[0] <= found.low <= found.estimate <= found.high <= (bounds or (math.inf,))[-1]
    assert wider.low <= found.low + 1e-9
    assert wider.high >= found.high - 1e-9


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.floats(0.01, 0.999), st.integers(1, 7))
def test_intervals_of_rates_lie_around_the_rate(flags: list[bool], confidence: float, size: int) -> None:
    clusters = [index // size for index in range(len(flags))]
    found = mean_interval(flags, confidence=confidence, clusters=clusters)
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0
    mirrored = mean_interval([not flag for flag in flags], confidence=confidence, clusters=clusters)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high))


@pytest.mark.parametrize("n", [10, 100])
def test_intervals_of_rates_contain_the_truth_as_often_as_they_say(n: int) -> None:
    """At all rates from 0.5 to 0.98, exactly: every count has its probability, and for one rate it jumps."""
    intervals = [mean_interval([True] * k + [False] * (n - k)) for k in range(n + 1)]
    low, high = (np.array([getattr(interval, end) for interval in intervals]) for end in ("low", "high"))
    truths = np.linspace(0.5, 0.98, 481)
    inside = (low[None, :] <= truths[:, None]) & (truths[:, None] <= high[None, :])
    shares = (scipy.stats.binom.pmf(np.arange(n + 1)[None, :], n, truths[:, None]) * inside).sum(1)
    assert 0.95 <= shares.min() <= shares.mean() <= 0.985
