"""Two scores of the same rows: the figures against scipy, and the edges."""

from __future__ import annotations

import itertools
import math
from random import Random

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.stats.paired import paired_difference, paired_t_p
from pytest_ragmetrics.stats.permutation import flip_p

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12)


def some_pairs(n: int) -> tuple[list[float], list[float]]:
    random = np.random.default_rng(3)
    before = random.beta(6, 2, n)
    return before.tolist(), np.clip(before + random.normal(0.05, 0.1, n), 0, 1).tolist()


@pytest.mark.parametrize("n", [2, 40])
def test_the_paired_t_test_is_that_of_scipy(n: int) -> None:
    """With its interval, which excludes zero just when the p-value is below what the confidence leaves."""
    before, after = some_pairs(n)
    expected = scipy.stats.ttest_rel(after, before)
    found = paired_difference(before, after, confidence=0.9, bounds=None)
    interval = expected.confidence_interval(0.9)
    assert found.t_p == pytest.approx(expected.pvalue, abs=1e-9)
    assert (found.interval.low, found.interval.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert (found.before, found.after) == pytest.approx((np.mean(before), np.mean(after)))
    assert found.n == n
    assert (found.t_p is not None and found.t_p < 0.1) == (not found.interval.low <= 0 <= found.interval.high)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_flips_of_few_signs_are_exact(n: int) -> None:
    before, after = some_pairs(n)
    differences = np.subtract(after, before)
    signs = itertools.product((1, -1), repeat=n)
    expected = np.mean([abs((differences * sign).sum()) >= abs(differences.sum()) - 1e-12 for sign in signs])
    assert flip_p(differences.tolist()) == pytest.approx(expected, abs=1e-12)
    if n > 1:
        exact = scipy.stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert flip_p(differences.tolist()) == pytest.approx(exact.pvalue, abs=1e-9)


def test_flips_of_many_signs_are_drawn() -> None:
    differences = [0.04, -0.03, 0.1, 0.02, -0.06, 0.05, 0.08, -0.01, 0.07, 0.03] * 2
    whole = scipy.stats.permutation_test(
        (np.array(differences),), np.sum, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
    )
    assert flip_p(differences) == pytest.approx(whole.pvalue, abs=0.01)
    assert flip_p(differences) == flip_p(differences)
    assert flip_p([0.1, 0.2] * 250) == 1 / 10_000


def test_signs_of_a_cluster_are_flipped_together() -> None:
    differences = [0.1, 0.2, -0.05, 0.3]
    assert flip_p(differences * 3, clusters=[*range(4)] * 3) == flip_p(differences)
    assert flip_p(differences * 3) < flip_p(differences)
    assert paired_t_p(differences * 3, clusters=[*range(4)] * 3) == pytest.approx(paired_t_p(differences))


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (0, 1), (3, 3), (1, 9), (12, 4), (40, 80), (2000, 2100)])
def test_mcnemar_s_test_is_the_exact_binomial_one(gained: int, lost: int) -> None:
    """Of the rows that changed each is gained or lost with a probability of one half (McNemar, 1947)."""
    expected = scipy.stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert flip_p([1.0] * gained + [0.0] * 3 + [-1.0] * lost) == pytest.approx(expected, abs=1e-9)


def test_passes_and_failures_are_compared_by_mcnemar_s_test() -> None:
    """And scores in between are not, nor rows that depend on one another, which it does not know of."""
    before, after = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    assert paired_difference(before, after).mcnemar_p == scipy.stats.binomtest(1, 4).pvalue
    assert paired_difference([0.5, 1.0], [1.0, 1.0]).mcnemar_p is None
    assert paired_difference(before, after, clusters="aabbcc").mcnemar_p is None


@pytest.mark.parametrize(
    ("gained", "lost", "n", "low", "high"),
    [
        (0, 0, 2, -0.8419, 0.8419),
        (0, 0, 183, -0.02, 0.02),
        (0, 0, 72, -0.0499, 0.0499),
        (0, 1, 300, -0.0184, 0.0099),
        (1, 1, 50, -0.0931, 0.0931),
        (5, 5, 200, -0.0382, 0.0382),
        (0, 5, 200, -0.0574, 0.0011),
        (10, 10, 1000, -0.0101, 0.0101),
    ],
)
def test_the_difference_of_rows_that_pass_or_fail(gained: int, lost: int, n: int, low: float, high: float) -> None:
    """Rows that do not change bound it as rows do, and no number of them makes it certain."""
    before, after = [0.0] * gained + [1.0] * (n - gained), [1.0] * (n - lost) + [0.0] * lost
    interval = paired_difference(before, after).interval
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=6e-5)


def test_on_an_unknown_scale_differences_without_a_spread_say_nothing() -> None:
    found = paired_difference([5.0, 6.0], [7.5, 8.5], bounds=None)
    assert (found.interval.low, found.interval.high) == (-math.inf, math.inf)
    assert (found.t_p, found.flip_p) == (None, 0.5)


def test_pairs_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="1 scores before and 2 after; pairs need as many of both"):
        paired_difference([0.5], [0.5, 0.6])
    with pytest.raises(ValueError, match="no pairs, and a comparison needs at least one"):
        paired_difference([], [])


@given(PAIRS, st.randoms(use_true_random=False))
def test_order_and_direction_change_no_figure(pairs: list[tuple[float, float]], random: Random) -> None:
    shuffled = sorted(pairs, key=lambda _: random.random())
    before, after = (list(side) for side in zip(*pairs, strict=True))
    there, back = paired_difference(before, after), paired_difference(after, before)
    assert paired_difference(*map(list, zip(*shuffled, strict=True))) == there
    assert back.interval.estimate == pytest.approx(-there.interval.estimate)
    assert back.interval.low == pytest.approx(-there.interval.high)
    assert back.flip_p == there.flip_p
    assert (back.t_p is None) == (there.t_p is None)
