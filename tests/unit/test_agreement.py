"""The agreement of a judge with people: the figures of other tools, and intervals that keep their promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from statsmodels.stats.inter_rater import cohens_kappa

from pytest_ragmetrics.stats.agreement import agreement, auroc, kappa_of
from pytest_ragmetrics.stats.intervals import rate_interval


def rows_of(passed_good: int, failed_good: int, failed_bad: int, passed_bad: int) -> tuple[list[bool], list[bool]]:
    """Return the verdicts of a judge and those of people that make these counts."""
    counts = (passed_good, failed_good, failed_bad, passed_bad)
    kinds = [(True, True), (False, True), (False, False), (True, False)]
    rows = [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
    return [passed for passed, _ in rows], [good for _, good in rows]


def test_figures_are_those_of_a_table_by_hand() -> None:
    """40 of 50 good answers pass, 15 of 20 bad ones are caught."""
    found = agreement(*rows_of(40, 10, 15, 5))
    assert (found.passed_good, found.failed_good, found.failed_bad, found.passed_bad) == (40, 10, 15, 5)
    assert found.tpr.estimate == pytest.approx(0.8)
    assert found.tnr.estimate == pytest.approx(0.75)
    assert found.balanced_accuracy.estimate == pytest.approx(0.775)
    # Precision 15 / 25, recall 15 / 20.
    assert found.f1_bad.estimate == pytest.approx(2 * 0.6 * 0.75 / (0.6 + 0.75))
    # Observed 55 / 70, expected (50 * 45 + 20 * 25) / 70**2.
    assert found.kappa.estimate == pytest.approx((55 / 70 - 2750 / 4900) / (1 - 2750 / 4900))


@settings(deadline=None, max_examples=50)
@given(st.tuples(*[st.integers(1, 60)] * 4))
def test_kappa_is_that_of_statsmodels(counts: tuple[int, int, int, int]) -> None:
    """Cohen's kappa of any table is what statsmodels computes."""
    passed_good, failed_good, failed_bad, passed_bad = counts
    expected = cohens_kappa([[passed_good, failed_good], [passed_bad, failed_bad]], return_results=False)
    found = agreement(*rows_of(*counts)).kappa
    assert found.estimate == pytest.approx(float(expected), abs=1e-9)
    assert -1.0 <= found.low <= found.estimate <= found.high <= 1.0


def test_kappa_intervals_are_close_to_those_of_statsmodels() -> None:
    """With many rows the asymptotic interval of statsmodels and ours are nearly the same."""
    theirs = cohens_kappa([[400, 100], [50, 150]])
    ours = agreement(*rows_of(400, 100, 150, 50)).kappa
    assert (ours.low, ours.high) == pytest.approx((theirs.kappa_low, theirs.kappa_upp), abs=0.01)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=60))
def test_auroc_is_that_of_the_rank_sum(rows: list[tuple[int, bool]]) -> None:
    """The area is Mann and Whitney's U over the number of pairs, ties counted half."""
    rows = [*rows, (3, True), (3, False)]
    good = [score for score, flag in rows if flag]
    bad = [score for score, flag in rows if not flag]
    expected = mannwhitneyu(good, bad, method="asymptotic").statistic / (len(good) * len(bad))
    found = auroc([score / 6 for score, _ in rows], [flag for _, flag in rows])
    assert found.estimate == pytest.approx(float(expected))
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0


def test_scores_that_part_both_kinds_leave_doubt() -> None:
    """No error among few answers does not prove that there is none."""
    found = auroc([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [False] * 3 + [True] * 3)
    assert (found.estimate, found.high) == (1.0, 1.0)
    assert 0.0 < found.low < 0.5
    perfect = agreement(*rows_of(20, 0, 20, 0))
    assert perfect.kappa.estimate == perfect.kappa.high == 1.0
    assert 0.6 < perfect.kappa.low < 0.9
    assert 0.8 < perfect.balanced_accuracy.low < 0.95


def test_equal_scores_tell_nothing() -> None:
    """The area of a judge that says the same of all is a half, and its verdicts agree by chance alone."""
    assert auroc([0.5] * 8, [True, False] * 4).estimate == 0.5
    found = agreement([True] * 8, [True, False] * 4)
    assert (found.kappa.estimate, found.balanced_accuracy.estimate, found.f1_bad.estimate) == (0.0, 0.5, 0.0)


@pytest.mark.parametrize(("flag", "kind"), [(True, "good"), (False, "bad")])
def test_one_kind_of_answers_is_refused(flag: bool, kind: str) -> None:  # noqa: FBT001 - the label of all answers
    """Where people found all answers alike there is no agreement to speak of."""
    with pytest.raises(ValueError, match=f"people found all 3 answers {kind}: agreement shows only where some"):
        agreement([True, False, True], [flag] * 3)
    with pytest.raises(ValueError, match=f"all 3 answers {kind}"):
        auroc([1.0, 0.5, 0.0], [flag] * 3)


def test_lists_of_other_lengths_are_refused() -> None:
    """Verdicts, labels and clusters come in as many."""
    with pytest.raises(ValueError, match="1 verdicts or scores for 2 labels"):
        agreement([True], [True, False])
    with pytest.raises(ValueError, match="1 clusters for 2 labels"):
        auroc([0.1, 0.2], [True, False], clusters=["a"])
    with pytest.raises(ValueError, match="there are no labelled answers"):
        agreement([], [])


def test_rates_are_those_of_the_rate_interval() -> None:
    """TPR and TNR are rates over the good and over the bad answers, with their clusters."""
    passed, good = rows_of(12, 4, 6, 2)
    clusters = [index % 6 for index in range(24)]
    found = agreement(passed, good, clusters=clusters, confidence=0.9)
    assert found.tpr == rate_interval([True] * 12 + [False] * 4, confidence=0.9, clusters=clusters[:16])
    assert found.tnr == rate_interval([True] * 6 + [False] * 2, confidence=0.9, clusters=clusters[16:])


def test_copies_in_a_cluster_are_no_evidence() -> None:
    """Rows repeated in their clusters leave every figure as uncertain as the single ones do, or nearly."""
    passed, good = rows_of(12, 5, 9, 4)
    single = agreement(passed, good)
    copied = agreement(passed * 5, good * 5, clusters=list(range(30)) * 5)
    naive = agreement(passed * 5, good * 5)
    for name in ("tpr", "tnr", "balanced_accuracy", "f1_bad", "kappa"):
        one, many, none = (getattr(found, name).half_width for found in (single, copied, naive))
        assert many > 0.9 * one > 1.8 * none, name
    scores = [index % 7 / 7 for index in range(30)]
    assert auroc(scores * 5, good * 5, clusters=list(range(30)) * 5).half_width == pytest.approx(
        auroc(scores, good).half_width, rel=0.05
    )


def simulated(
    random: np.random.Generator, groups: int, rates: tuple[float, float, float]
) -> tuple[list[bool], list[bool], list[int]]:
    """Return verdicts, labels and clusters of one to six, whose rows are alike in both respects."""
    share, tpr, tnr = rates
    sizes = random.integers(1, 7, groups)
    cluster = np.repeat(np.arange(groups), sizes)
    uniforms = [_uniforms(random, cluster, groups) for _ in range(2)]
    good = uniforms[0] < share
    right = uniforms[1] < np.where(good, tpr, tnr)
    return (good == right).tolist(), good.tolist(), cluster.tolist()


def _uniforms(random: np.random.Generator, cluster: np.ndarray, groups: int) -> np.ndarray:
    normal = math.sqrt(0.3) * random.normal(size=groups)[cluster] + math.sqrt(0.7) * random.normal(size=len(cluster))
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in normal])


NAMES = ("tpr", "tnr", "balanced_accuracy", "f1_bad", "kappa")


def truths(share: float, tpr: float, tnr: float) -> dict[str, float]:
    """Return the figures of a whole population."""
    found = (1 - share) * tnr
    f1 = 2 * found / (found + share * (1 - tpr) + 1 - share)
    values = (tpr, tnr, (tpr + tnr) / 2, f1, kappa_of(tpr, tnr, share))
    return dict(zip(NAMES, values, strict=True))


@pytest.mark.parametrize(("groups", "rates"), [(20, (0.7, 0.9, 0.7)), (40, (0.85, 0.97, 0.8))])
def test_intervals_hold_the_truth_as_often_as_they_say(groups: int, rates: tuple[float, float, float]) -> None:
    """Over simulated sets of answers in clusters each interval of 95 % holds the figure of the population."""
    random = np.random.default_rng(groups)
    true = truths(*rates)
    hits = dict.fromkeys(NAMES, 0)
    runs = 0
    for _ in range(250):
        passed, good, clusters = simulated(random, groups, rates)
        if 0 < sum(good) < len(good):
            runs += 1
            found = agreement(passed, good, clusters=clusters)
            for name in NAMES:
                interval = getattr(found, name)
                hits[name] += interval.low <= true[name] <= interval.high
    for name, count in hits.items():
        # Three standard errors of a simulated 0.95 are 0.041.
        assert count / runs >= 0.905, (name, count / runs)


@pytest.mark.parametrize(("groups", "distance"), [(20, 1.0), (40, 2.0)])
def test_the_interval_of_auroc_holds_the_truth_as_often_as_it_says(groups: int, distance: float) -> None:
    """Scores of good answers are those of bad ones and a distance, in clusters that share half of their chance."""
    random = np.random.default_rng(groups)
    truth = 0.5 * math.erfc(-distance / 2.0)
    hits = runs = 0
    for _ in range(250):
        cluster = np.repeat(np.arange(groups), random.integers(1, 6, groups))
        good = random.random(len(cluster)) < 0.7
        shared, own = random.normal(size=groups)[cluster], random.normal(size=len(cluster))
        scores = distance * good + math.sqrt(0.3) * shared + math.sqrt(0.7) * own
        if 0 < good.sum() < len(good):
            runs += 1
            found = auroc(scores.tolist(), good.tolist(), clusters=cluster.tolist())
            hits += found.low <= truth <= found.high
    assert hits / runs >= 0.905


def test_scores_that_are_no_numbers_have_no_ranks() -> None:
    """They would be sorted somewhere, and the area be that of nothing."""
    with pytest.raises(ValueError, match=r"scores\[0\] is nan, not a finite number"):
        auroc([float("nan"), 0.5, 0.2], [True, False, True])
