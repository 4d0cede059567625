"""Suggested thresholds: their place in a gap, and their figures on further answers."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.stats.agreement import agreement
from pytest_ragmetrics.stats.cutoffs import calibration_figures, reliability, roundest, suggest_threshold
from pytest_ragmetrics.stats.intervals import mean_interval

SCORES = [0.0, 0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0]
GOOD = [False, False, False, True, False, True, True, True, True, True]


def noise(n: int) -> tuple[list[float], list[bool]]:
    chance = random.Random(1)
    return [chance.random() for _ in range(n)], [index % 2 == 0 for index in range(n)]


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=6, max_size=40), st.sampled_from([1, -1]))
def test_no_other_threshold_does_better(rows: list[tuple[int, bool]], sign: int) -> None:
    rows = [*rows, (2, False), (8, True), (2, False), (8, True)]
    scores, good = [sign * score / 10 for score, _ in rows], [flag for _, flag in rows]
    found = suggest_threshold(scores, good, better="higher" if sign > 0 else "lower")

    def reached(cut: float) -> float:
        return agreement([sign * score >= sign * cut for score in scores], good).balanced_accuracy.estimate

    steps = sorted(set(scores))
    cuts = [(low + high) / 2 for low, high in pairwise(steps)]
    assert reached(found.threshold) == pytest.approx(max(map(reached, cuts)))


def test_it_lies_in_the_middle_of_a_gap() -> None:
    assert suggest_threshold([0.1, 0.2, 0.3, 0.8, 0.9, 1.0], [False] * 3 + [True] * 3).threshold == 0.6
    assert suggest_threshold([0.1, 0.2, 0.71, 0.76, 0.9, 1.0], [False] * 3 + [True] * 3).threshold == 0.73
    assert suggest_threshold([0.9, 0.8, 0.3, 0.2], [False, False, True, True], better="lower").threshold == 0.6
    # Two cuts have the same balanced accuracy: the widest gap is taken.
    scores, good = [0.0, 0.1, 0.3, 0.35, 0.9, 1.0], [False, False, True, False, True, True]
    assert suggest_threshold(scores, good).threshold == 0.6
    # Neighbouring floats have no number between them.
    low = 0.1 + 0.2
    assert roundest(0.3, low) in {0.3, low}
    assert roundest(0.0, 1.0) in {0.0, 0.5, 1.0}
    assert 0.5 < roundest(0.5, 0.5000001) < 0.5000001


def test_kappa_may_be_the_aim() -> None:
    scores = [0.2] * 2 + [0.4] * 20 + [0.4] * 2 + [0.8] * 80
    good = [False] * 2 + [True] * 20 + [False] * 2 + [True] * 80
    assert suggest_threshold(scores, good, aim="balanced_accuracy").threshold == 0.6
    assert suggest_threshold(scores, good, aim="kappa").threshold == 0.3
    with pytest.raises(ValueError, match="aim must be one of balanced_accuracy, kappa, not 'f1'"):
        suggest_threshold(scores, good, aim="f1")  # type: ignore[arg-type]


def test_cross_validated_figures_are_those_of_further_answers() -> None:
    claimed, true, hits, runs = 0.0, 0.0, 0, 40
    for seed in range(runs):
        chance = random.Random(seed)
        good = [chance.random() < 0.7 for _ in range(80)]
        found = suggest_threshold([chance.gauss(1.5 * flag, 1.0) for flag in good], good)
        reached = 1 - (NormalDist(1.5).cdf(found.threshold) + 1 - NormalDist().cdf(found.threshold)) / 2
        interval = found.agreement.balanced_accuracy
        claimed, true = claimed + interval.estimate / runs, true + reached / runs
        hits += interval.low <= reached <= interval.high
    assert claimed == pytest.approx(true, abs=0.025)
    assert hits / runs >= 0.9


def test_a_seed_repeats_and_order_of_clusters_does_not_leak() -> None:
    scores, good = noise(60)
    clusters = [index // 3 for index in range(60)]
    first, again = (suggest_threshold(scores, good, clusters=clusters, seed=3) for _ in range(2))
    assert first == again
    # Copies of an answer teach nothing about that answer: in one cluster they are never on both sides.
    copies = suggest_threshold(scores * 2, good * 2, clusters=list(range(60)) * 2).agreement
    assert copies.balanced_accuracy.estimate < 0.6


@pytest.mark.parametrize(
    ("scores", "good", "clusters", "reason"),
    [
        ([0.5] * 4, [True, False] * 2, None, "all scores are 0.5, and no threshold parts them"),
        ([0.1, 0.9] * 2, [False, True] * 2, ["a"] * 4, "all good answers are in one group"),
        ([0.1, 0.2, 0.9], [False, False, True], None, "all good answers are in one group"),
        ([0.1, 0.9] * 3, [False, True] * 3, list("abacad"), "all bad answers are in one group"),
    ],
)
def test_what_suggests_nothing(scores: list[float], good: list[bool], clusters: list[str] | None, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        suggest_threshold(scores, good, clusters=clusters)
    with pytest.raises(ValueError, match=f"no threshold can be suggested: {reason}.*; give the threshold"):
        calibration_figures(scores, good, clusters=clusters)
    figures = calibration_figures(scores, good, clusters=clusters, threshold=0.5)
    assert figures.suggestion is None
    assert reason in (figures.no_suggestion or "")


def test_no_fold_is_left_without_a_class_to_learn_from() -> None:
    good = [True] * 30 + [False, False]
    scores = [0.9 - index / 1000 for index in range(30)] + [0.1, 0.2]
    for seed in range(40):
        found = suggest_threshold(scores, good, clusters=[*range(30), 0, 30], seed=seed).agreement
        assert (found.failed_bad, found.passed_bad, found.failed_good) == (2, 0, 0)
    # Where the others show no gap, their one score is the threshold.
    equal = suggest_threshold([0.5] * 4 + [0.9, 0.1], [True, True, False, False, True, False], clusters=list("abcdee"))
    # The group "e" is judged by 0.5, and rightly; the others by what it shows.
    assert (equal.threshold, equal.agreement.passed_good, equal.agreement.failed_bad) == (0.3, 1, 1)


def test_figures_at_a_given_threshold_are_not_cross_validated() -> None:
    given_ = calibration_figures(SCORES, GOOD, threshold=0.65)
    assert (given_.is_given, given_.threshold) == (True, 0.65)
    assert given_.agreement == agreement([score >= 0.65 for score in SCORES], GOOD)
    figures = calibration_figures(SCORES, GOOD)
    assert figures.suggestion
    assert figures.suggestion == given_.suggestion
    suggested = (False, figures.suggestion.agreement, figures.suggestion.threshold)
    assert (figures.is_given, figures.agreement, figures.threshold) == suggested
    # Of a metric whose lower scores are better they are the same, the threshold turned around.
    down = calibration_figures([-score for score in SCORES], GOOD, better="lower", scale=(-1.0, 0.0))
    assert (down.auroc, down.agreement, down.threshold) == (figures.auroc, figures.agreement, -figures.threshold)
    given_down = calibration_figures([-score for score in SCORES], GOOD, better="lower", threshold=-0.65)
    assert given_down.agreement == given_.agreement


def test_the_reliability_curve() -> None:
    curve = reliability([0.0, 0.05, 0.3, 0.7, 0.95, 1.0], [False, False, True, False, True, True])
    bins = [(0.0, 0.1, 2), (0.3, 0.4, 1), (0.7, 0.8, 1), (0.9, 1.0, 2)]
    assert [(found.low, found.high, found.n) for found in curve] == bins
    assert curve[0].mean == pytest.approx(0.025)
    assert curve[3].good == mean_interval([True, True])
    # A score outside of the scale is in the outermost bin; 1.4 is on an edge, but for rounding.
    curve = reliability([0.0, 1.4, 5.0, 6.0], [False, True, True, True], scale=(1.0, 5.0), clusters=list("aabb"))
    assert [(found.low, found.n) for found in curve] == [(1.0, 1), (1.4, 1), (4.6, 2)]


@pytest.mark.parametrize(
    ("scores", "confidence", "said"),
    [
        ([float("nan"), 0.9, 0.2, 0.8], 0.95, r"scores\[0\] is nan, not a finite number"),
        ([float("inf"), 0.9, 0.2, 0.8], 0.95, r"scores\[0\] is inf, not a finite number"),
        ([0.1, 0.9, 0.2, 0.8], 95, "confidence must be a number between 0 and 1, such as 0.95, not 95"),
    ],
)
def test_no_threshold_is_suggested_of_what_is_no_number(scores: list[float], confidence: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        suggest_threshold(scores, [False, True, False, True], confidence=confidence)
