"""Intervals: their figures, what they do at the edges, and whether they contain the truth as often as they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from pytest_ragmetrics.stats.intervals import Interval, Method, mean_error, mean_interval, rate_interval, verdict

Scores = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Scores]

DRAWS = 2_000
METHODS: tuple[Method, ...] = ("t", "bootstrap", "auto")
SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def some_scores(n: int, *, seed: int = 1) -> list[float]:
    """Return scores that crowd at the top of the scale."""
    return np.random.default_rng(seed).beta(6, 1.5, n).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_the_t_interval_is_that_of_scipy(n: int, confidence: float) -> None:
    """Scores that are independent give the interval of every textbook."""
    scores = some_scores(n)
    found = mean_interval(scores, confidence=confidence, bounds=None)
    expected = stats.t.interval(confidence, n - 1, loc=np.mean(scores), scale=stats.sem(scores))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    assert found.estimate == pytest.approx(np.mean(scores))
    assert (found.n, found.confidence) == (n, confidence)
    assert found.half_width == pytest.approx((expected[1] - expected[0]) / 2, abs=1e-9)


@pytest.mark.parametrize(("passed", "n"), [(0, 10), (1, 10), (7, 10), (10, 10), (180, 200), (1, 1)])
def test_the_rate_interval_is_wilson_s(passed: int, n: int) -> None:
    """As statsmodels has it."""
    found = rate_interval([True] * passed + [False] * (n - passed))
    expected = proportion_confint(passed, n, alpha=0.05, method="wilson")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    assert found.estimate == passed / n


def test_clustered_errors_are_those_of_statsmodels() -> None:
    """With clusters of one size CR2 is the sandwich of statsmodels with its correction for few clusters."""
    scores, clusters = some_scores(60), np.repeat(np.arange(12), 5)
    fit = sm.OLS(scores, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    # statsmodels also corrects for the number of coefficients, which is n - 1 over n - 1 for a mean alone.
    found = mean_error(scores, clusters.tolist())
    assert (found.mean, found.error) == pytest.approx((fit.params[0], fit.bse[0]), abs=1e-9)
    assert found.df == pytest.approx(11)
    interval = mean_interval(scores, clusters=clusters.tolist())
    half = stats.t.ppf(0.975, 11) * fit.bse[0]
    assert (interval.low, interval.high) == pytest.approx((fit.params[0] - half, fit.params[0] + half), abs=1e-9)


def satterthwaite(sizes: Sequence[int], within: float) -> float:
    """Return the degrees of freedom of CR2 from the matrices that define it; ``within`` is the working correlation."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n = len(labels)
    residual = np.eye(n) - np.ones((n, n)) / n
    covariance = np.where(labels[:, None] == labels[None, :], within, 0.0)
    np.fill_diagonal(covariance, 1.0)
    columns = []
    for cluster, size in enumerate(sizes):
        chosen = np.where(labels == cluster, 1.0 / math.sqrt(1.0 - size / n), 0.0)
        columns.append(residual @ chosen)
    weights = np.array(columns) @ covariance @ np.array(columns).T
    return float(np.trace(weights) ** 2 / (weights**2).sum())


@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 1, 2, 2, 5), (1, 2, 3, 30), (1,) * 9, (40, 1, 1)])
def test_degrees_of_freedom_follow_from_their_definition(sizes: tuple[int, ...]) -> None:
    """The closed form equals the matrices, under no dependence in the clusters or full one, whichever leaves fewer."""
    clusters = np.repeat(np.arange(len(sizes)), sizes).tolist()
    expected = min(satterthwaite(sizes, 0.0), satterthwaite(sizes, 1.0))
    assert mean_error(some_scores(sum(sizes)), clusters).df == pytest.approx(expected, abs=1e-9)


def test_the_interval_of_the_bootstrap_is_close_to_that_of_t_where_both_are_right() -> None:
    """Many scores, hardly skewed; and it is the same every time."""
    scores = np.random.default_rng(4).uniform(0.2, 0.8, 400).tolist()
    found, expected = mean_interval(scores, method="bootstrap"), mean_interval(scores)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.003)
    assert found == mean_interval(scores, method="bootstrap")
    assert found != mean_interval(scores, method="bootstrap", seed=1)


def test_the_bootstrap_resamples_clusters() -> None:
    """Copies of a score add nothing to it."""
    scores = some_scores(40)
    once = mean_interval(scores, method="bootstrap")
    thrice = mean_interval(scores * 3, method="bootstrap", clusters=[*range(40)] * 3)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    # Every resample of clusters with the same mean is without a spread, and t takes over.
    alike = mean_interval([0.5, 1.0, 0.5, 1.0], method="bootstrap", clusters=["a", "a", "b", "b"])
    assert alike == mean_interval([0.5, 1.0, 0.5, 1.0], clusters=["a", "a", "b", "b"])


@pytest.mark.parametrize("scores", [[0.2, 0.9], [0.0, 1.0], [0.2, 0.9, 0.4], [0.2, 0.2, 0.9]])
def test_the_bootstrap_of_a_few_scores_is_student_s(scores: list[float]) -> None:
    """Resamples of two scores that differ are those two: an interval of no width would say that nothing is in doubt."""
    assert mean_interval(scores, method="bootstrap") == mean_interval(scores, method="t")
    pairs = ["a", "a", "b", "b", "c", "c"][: 2 * len(scores)]
    doubled = [score for score in scores for _ in range(2)]
    found = mean_interval(doubled, method="bootstrap", clusters=pairs)
    assert found == mean_interval(doubled, method="t", clusters=pairs)


def test_a_confidence_of_numpy_gives_numbers_of_python() -> None:
    """No number of numpy gets from there into records."""
    found = mean_interval([0.5, 0.6], confidence=np.float64(0.9))
    rate = rate_interval([True, False], confidence=np.float64(0.9))
    assert {type(value) for value in (found.low, found.high, found.confidence, rate.low, rate.confidence)} == {float}


def test_binary_scores_have_the_interval_of_a_rate() -> None:
    """Where the method is left to us."""
    flags = [True] * 27 + [False] * 3
    found = mean_interval([float(flag) for flag in flags], method="auto")
    assert found == rate_interval(flags)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("score", [0.0, 0.4, 1.0])
def test_scores_that_are_all_equal_have_the_interval_of_their_scale(score: float, method: Method) -> None:
    """Any mean outside makes so many equal scores less probable than the confidence allows, by Markov's inequality."""
    found = mean_interval([score] * 20, method=method)
    share = 0.025 ** (1 / 20)
    assert found.estimate == pytest.approx(score)
    assert found.low == pytest.approx(score * share)
    assert found.high == pytest.approx(1 - (1 - score) * share)
    # What differs by rounding is equal.
    assert mean_interval([0.1 + 0.2, 0.3] * 10).low == pytest.approx(0.3 * share)
    # And copies of few are as many as these.
    few = mean_interval([score] * 20, clusters=[0, 1] * 10)
    assert few.low == pytest.approx(score * 0.025**0.5)


def test_what_says_nothing_has_the_widest_interval() -> None:
    """One score on a scale that is not known, or one cluster."""
    everything = (-math.inf, math.inf)
    one = mean_interval([3.0], bounds=None)
    assert (one.low, one.high) == everything
    assert (mean_interval([0.5]).low, mean_interval([0.5]).high) == pytest.approx((0.0125, 0.9875))
    cluster = mean_interval([0.2, 0.8], clusters=["a", "a"])
    assert (cluster.low, cluster.high) == (0.0, 1.0)
    assert rate_interval([True, False], clusters=["a", "a"]).low < 0.1


def test_clusters_that_mix_too_well_do_not_make_an_interval_of_no_width() -> None:
    """Each document has one good answer and one bad one: the error is taken to be half of that of independent ones."""
    scores, clusters = [0.0, 1.0] * 10, [index // 2 for index in range(20)]
    assert mean_error(scores, clusters).error == pytest.approx(mean_error(scores).error / 2)
    found = rate_interval([bool(score) for score in scores], clusters=clusters)
    assert found.low < 0.45


@pytest.mark.parametrize("flags", [[True] * 20, [False] * 20])
def test_flags_that_are_all_equal_count_by_cluster(flags: list[bool]) -> None:
    """Twenty passes in four documents prove as much as four."""
    found = rate_interval(flags, clusters=[index // 5 for index in range(20)])
    expected = rate_interval(flags[:4])
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


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
        ([0.5], {"method": "guess"}, "method must be one of auto, t, bootstrap, not 'guess'"),
    ],
)
def test_what_makes_no_sense_is_named(scores: list[float], arguments: dict[str, object], message: str) -> None:
    """With what to write instead."""
    with pytest.raises(ValueError, match=message):
        mean_interval(scores, **arguments)  # type: ignore[arg-type]


def test_a_verdict_needs_the_whole_interval() -> None:
    """On the bound is on the good side."""
    interval = Interval(estimate=0.5, low=0.4, high=0.6, confidence=0.95, n=10)
    assert [verdict(interval, bound) for bound in (0.4, 0.41, 0.6, 0.61)] == [
        "passed",
        "inconclusive",
        "inconclusive",
        "failed",
    ]
    assert [verdict(interval, bound, "lower") for bound in (0.39, 0.4, 0.59, 0.6)] == [
        "failed",
        "inconclusive",
        "inconclusive",
        "passed",
    ]


@given(SCORES, st.randoms(use_true_random=False), st.sampled_from(METHODS), st.booleans())
def test_the_order_of_the_rows_changes_nothing(
    scores: list[float],
    random: object,
    method: Method,
    clustered: bool,  # noqa: FBT001
) -> None:
    """Neither with clusters nor without."""
    rows = [(score, index // 3 if clustered else index) for index, score in enumerate(scores)]
    shuffled = sorted(rows, key=lambda _: random.random())  # type: ignore[attr-defined]
    found, expected = (
        mean_interval([score for score, _ in some], clusters=[name for _, name in some], method=method)
        for some in (shuffled, rows)
    )
    assert found == expected


@given(SCORES, st.floats(0.01, 0.999), st.sampled_from(METHODS), st.booleans())
def test_intervals_lie_around_the_mean_and_on_the_scale(
    scores: list[float],
    confidence: float,
    method: Method,
    clustered: bool,  # noqa: FBT001
) -> None:
    """Whatever the scores; and a greater confidence has a wider one, but for the resampling of the bootstrap."""
    clusters = [index // 4 for index in range(len(scores))] if clustered else None
    found = mean_interval(scores, confidence=confidence, method=method, clusters=clusters)
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0
    wider = mean_interval(scores, confidence=0.9995, method=method, clusters=clusters)
    assert method == "bootstrap" or (wider.low <= found.low + 1e-9 and wider.high >= found.high - 1e-9)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.floats(0.01, 0.999), st.integers(1, 7))
def test_intervals_of_rates_lie_around_the_rate(flags: list[bool], confidence: float, size: int) -> None:
    """Within 0 and 1, for clusters of any size; whoever asks for the share that fails gets the mirror image."""
    clusters = [index // size for index in range(len(flags))]
    found = rate_interval(flags, confidence=confidence, clusters=clusters)
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0
    mirrored = rate_interval([not flag for flag in flags], confidence=confidence, clusters=clusters)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high))


@pytest.mark.parametrize("method", METHODS)
def test_more_scores_narrow_the_interval_on_average(method: Method) -> None:
    """Four times as many make it about half as wide."""
    random = np.random.default_rng(8)
    widths = [
        np.mean([mean_interval(random.beta(6, 1.5, n).tolist(), method=method).half_width for _ in range(50)])
        for n in (20, 80, 320)
    ]
    assert widths[0] / widths[1] == pytest.approx(2, rel=0.25)
    assert widths[1] / widths[2] == pytest.approx(2, rel=0.15)


def covered(intervals: Sequence[Interval], truth: float) -> float:
    """Return the share of intervals that contain the truth."""
    return sum(interval.low <= truth <= interval.high for interval in intervals) / len(intervals)


def bell(random: np.random.Generator, shape: tuple[int, int]) -> Scores:
    """Draw scores of a normal distribution around 0.6 that [0, 1] hardly cuts."""
    return np.clip(random.normal(0.6, 0.12, shape), 0, 1)


def crowded(random: np.random.Generator, shape: tuple[int, int]) -> Scores:
    """Draw scores of a Beta(6, 1.5) distribution, mean 0.8, which crowd at the top (skewness -0.9)."""
    return random.beta(6, 1.5, shape)


def tenths(random: np.random.Generator, shape: tuple[int, int]) -> Scores:
    """Draw the shares of ten claims of which each is supported with probability 0.8."""
    return random.binomial(10, 0.8, shape) / 10


@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize(("draw", "truth"), [(bell, 0.6), (crowded, 0.8), (tenths, 0.8)])
def test_intervals_of_means_contain_the_truth_as_often_as_they_say(draw: Draw, truth: float, n: int) -> None:
    """95 of 100 do, give or take two, by the method that the assertions use."""
    samples = draw(np.random.default_rng(n), (DRAWS, n)).tolist()
    assert 0.93 <= covered([mean_interval(scores, method="auto") for scores in samples], truth) <= 0.97


def test_plain_t_says_too_much_of_few_crowded_scores() -> None:
    """Which is why it is not what the assertions use: its low end is too high more than twice as often as it says."""
    samples = np.random.default_rng(5).beta(9, 1, (DRAWS, 10)).tolist()
    plain = [mean_interval(scores) for scores in samples]
    corrected = [mean_interval(scores, method="auto") for scores in samples]
    assert covered(plain, 0.9) < 0.93
    assert 0.93 <= covered(corrected, 0.9) <= 0.97


def test_bootstrapped_intervals_contain_the_truth_as_often_as_they_say() -> None:
    """Fewer draws, for each takes two thousand resamples."""
    samples = crowded(np.random.default_rng(6), (400, 30)).tolist()
    assert 0.93 <= covered([mean_interval(scores, method="bootstrap") for scores in samples], 0.8) <= 0.975


#: Clusters of one size, and of very different ones, for 10, 30 and 100 scores.
CLUSTERS = {10: (2,) * 5, 30: (3,) * 10, 100: (5,) * 20, 101: (1, 3, 5, 11) * 5 + (1,)}


def dependent(sizes: Sequence[int], *, within: float, seed: int) -> tuple[Scores, list[int]]:
    """Return draws of standard normal variables that correlate as much as ``within`` in a cluster, and the clusters."""
    random = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    common = random.standard_normal((DRAWS, len(sizes)))[:, clusters]
    own = random.standard_normal((DRAWS, len(clusters)))
    return math.sqrt(within) * common + math.sqrt(1 - within) * own, clusters.tolist()


@pytest.mark.parametrize("within", [0.0, 0.4])
@pytest.mark.parametrize("n", CLUSTERS)
@pytest.mark.parametrize("crowds", [False, True])
def test_intervals_of_clustered_means_contain_the_truth(n: int, within: float, crowds: bool) -> None:  # noqa: FBT001
    """Whether the scores of a cluster have nothing in common or much; 2,000 draws, normal or crowded at the top."""
    normal, clusters = dependent(CLUSTERS[n], within=within, seed=n)
    grid = np.linspace(-6, 6, 4001)
    scores = np.interp(normal, grid, stats.beta.ppf(stats.norm.cdf(grid), 6, 1.5)) if crowds else 0.6 + normal / 10
    intervals = [mean_interval(draw, clusters=clusters, method="auto", bounds=None) for draw in scores.tolist()]
    assert 0.93 <= covered(intervals, 0.8 if crowds else 0.6) <= 0.97


def test_who_ignores_the_clusters_is_wrong_too_often() -> None:
    """Five questions about each of twenty documents."""
    normal, _ = dependent(CLUSTERS[100], within=0.4, seed=1)
    assert covered([mean_interval(draw, bounds=None) for draw in (0.6 + normal / 10).tolist()], 0.6) < 0.8


@pytest.mark.parametrize("n", [10, 30, 100])
def test_intervals_of_rates_contain_the_truth_as_often_as_they_say(n: int) -> None:
    """On average over rates from 0.5 to 0.98: of few samples there are few counts, and for one rate the share jumps.

    This is exact, and no simulation: every count has its probability.
    """
    intervals = [rate_interval([True] * k + [False] * (n - k)) for k in range(n + 1)]
    low, high = (np.array([getattr(interval, end) for interval in intervals]) for end in ("low", "high"))
    truths = np.linspace(0.5, 0.98, 481)
    inside = (low[None, :] <= truths[:, None]) & (truths[:, None] <= high[None, :])
    shares = (stats.binom.pmf(np.arange(n + 1)[None, :], n, truths[:, None]) * inside).sum(1)
    assert 0.94 <= shares.mean() <= 0.96
    assert shares.min() >= 0.83


@pytest.mark.parametrize("within", [0.0, 0.4])
@pytest.mark.parametrize("n", CLUSTERS)
@pytest.mark.parametrize("rate", [0.6, 0.8])
def test_intervals_of_clustered_rates_contain_the_truth(n: int, within: float, rate: float) -> None:
    """Of a hundred samples as often as they say; of five pairs or ten triples more often, for there are few counts."""
    normal, clusters = dependent(CLUSTERS[n], within=within, seed=n)
    flags = (normal < stats.norm.ppf(rate)).tolist()
    share = covered([rate_interval(draw, clusters=clusters) for draw in flags], rate)
    assert 0.93 <= share <= (0.97 if n >= 100 else 1.0)
