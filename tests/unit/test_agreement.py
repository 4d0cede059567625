"""The agreement of a judge with people: the figures of other tools, and intervals with the coverage that they claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.stats.agreement import agreement, auroc
from pytest_ragmetrics.stats.intervals import mean_interval, t_quantile


def rows_of(passed_good: int, failed_good: int, failed_bad: int, passed_bad: int) -> tuple[list[bool], list[bool]]:
    """Return the verdicts of a judge and those of people that make these counts."""
    passed = [True] * passed_good + [False] * (failed_good + failed_bad) + [True] * passed_bad
    return passed, [True] * (passed_good + failed_good) + [False] * (failed_bad + passed_bad)


def test_figures_are_those_of_a_table_by_hand() -> None:
    """40 of 50 good answers pass, 15 of 20 bad ones are caught."""
    found = agreement(*rows_of(40, 10, 15, 5))
    assert (found.passed_good, found.failed_good, found.failed_bad, found.passed_bad) == (40, 10, 15, 5)
    rates = [found.tpr.estimate, found.tnr.estimate, found.balanced_accuracy.estimate]
    # Precision 15 / 25, recall 15 / 20.
    assert [*rates, found.f1_bad.estimate] == pytest.approx([0.8, 0.75, 0.775, 2 * 0.6 * 0.75 / (0.6 + 0.75)])


@given(st.tuples(*[st.integers(1, 60)] * 4))
def test_kappa_is_that_of_statsmodels(counts: tuple[int, int, int, int]) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    passed_good, failed_good, failed_bad, passed_bad = counts
    expected = cohens_kappa([[passed_good, failed_good], [passed_bad, failed_bad]], return_results=False)
    found = agreement(*rows_of(*counts)).kappa
    assert found.estimate == pytest.approx(float(expected), abs=1e-9)
    assert -1.0 <= found.low <= found.estimate <= found.high <= 1.0


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=60))
def test_auroc_is_that_of_the_rank_sum(rows: list[tuple[int, bool]]) -> None:
    """The area is Mann and Whitney's U over the number of pairs, ties counted half."""
    rows = [*rows, (3, True), (3, False)]
    good = [score for score, flag in rows if flag]
    bad = [score for score, flag in rows if not flag]
    expected = scipy.stats.mannwhitneyu(good, bad, method="asymptotic").statistic / (len(good) * len(bad))
    found = auroc([score / 6 for score, _ in rows], [flag for _, flag in rows])
    assert found.estimate == pytest.approx(float(expected))
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0


def test_the_error_of_auroc_is_that_of_delong() -> None:
    """The variances of the shares of pairs won, by good answers and by bad ones, over the number of each."""
    good, bad = np.array([0.9, 0.8, 0.4, 0.7]), np.array([0.1, 0.5, 0.6])
    won = good[:, None] > bad[None, :]
    area = float(won.mean())
    moves = [*(won.mean(1) - area) / 4, *(won.mean(0) - area) / 3]
    variance = sum(move * move for move in moves) * 7 / 6
    found = auroc([*good, *bad], [True] * 4 + [False] * 3)
    # The roots of (area - p)^2 = t^2 p (1 - p) / n.
    stretch = t_quantile(0.975, 2) ** 2 * variance / (area * (1 - area))
    ends = np.roots([1 + stretch, -2 * area - stretch, area**2])
    assert [found.low, found.high] == pytest.approx(sorted(ends))


def test_scores_that_part_both_kinds_leave_doubt() -> None:
    found = auroc([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [False] * 3 + [True] * 3)
    assert (found.estimate, found.high) == (1.0, 1.0)
    assert 0.0 < found.low < 0.5
    perfect = agreement(*rows_of(20, 0, 20, 0))
    assert perfect.kappa.estimate == perfect.kappa.high == 1.0
    assert 0.6 < perfect.kappa.low < 0.9
    assert 0.8 < perfect.balanced_accuracy.low < 0.95


def test_equal_scores_tell_nothing() -> None:
    assert auroc([0.5] * 8, [True, False] * 4).estimate == 0.5
    found = agreement([True] * 8, [True, False] * 4)
    assert (found.kappa.estimate, found.balanced_accuracy.estimate, found.f1_bad.estimate) == (0.0, 0.5, 0.0)


@pytest.mark.parametrize(
    ("scores", "good", "clusters", "said"),
    [
        ([1.0, 0.0, 1.0], [True] * 3, None, "people found all 3 answers good: agreement shows only where some"),
        ([1.0, 0.0, 1.0], [False] * 3, None, "people found all 3 answers bad"),
        ([1.0], [True, False], None, "1 verdicts or scores for 2 labels"),
        ([1.0, 0.0], [True, False], ["a"], "1 clusters for 2 labels"),
        ([], [], None, "there are no labelled answers"),
    ],
)
def test_labels_that_show_no_agreement(scores: list[float], good: list[bool], clusters: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        agreement([bool(score) for score in scores], good, clusters=clusters)
    with pytest.raises(ValueError, match=said):
        auroc(scores, good, clusters=clusters)


def test_scores_that_are_no_numbers_have_no_ranks() -> None:
    """Sorted anywhere, they would change the area."""
    with pytest.raises(ValueError, match=r"scores\[0\] is nan, not a finite number"):
        auroc([float("nan"), 0.5, 0.2], [True, False, True])


def test_rates_have_the_interval_of_a_mean() -> None:
    passed, good = rows_of(12, 4, 6, 2)
    clusters = [index % 6 for index in range(24)]
    found = agreement(passed, good, clusters=clusters, confidence=0.9)
    assert found.tpr == mean_interval([True] * 12 + [False] * 4, confidence=0.9, clusters=clusters[:16])
    assert found.tnr == mean_interval([True] * 6 + [False] * 2, confidence=0.9, clusters=clusters[16:])


def test_copies_in_a_cluster_are_no_evidence() -> None:
    passed, good = rows_of(12, 5, 9, 4)
    clusters = list(range(30)) * 5
    single, naive = agreement(passed, good), agreement(passed * 5, good * 5)
    copied = agreement(passed * 5, good * 5, clusters=clusters)
    for name in ("tpr", "tnr", "balanced_accuracy", "f1_bad", "kappa"):
        one, many, none = (getattr(found, name).half_width for found in (single, copied, naive))
        assert many > 0.9 * one > 1.8 * none, name
    scores = [index % 7 / 7 for index in range(30)]
    width = auroc(scores, good).half_width
    assert auroc(scores * 5, good * 5, clusters=clusters).half_width == pytest.approx(width, rel=0.05)
