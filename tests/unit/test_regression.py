"""Whether scores dropped: the one-sided test, several metrics at once, and what a set could have shown."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy

from pytest_ragmetrics.stats.drop import adjusted_p
from pytest_ragmetrics.stats.permutation import PairedScores, drop_test


def drop_p(changes: Sequence[float], *, clusters: Any = None) -> float:
    return drop_test([PairedScores((0.0,), (change,)) for change in changes], clusters=clusters).p


def changes(lost: int, gained: int, same: int = 3) -> list[float]:
    return [-1.0] * lost + [1.0] * gained + [0.0] * same


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [
        *((0, 0, 1.0), (4, 0, 0.0625), (5, 0, 0.03125), (6, 1, 0.0625), (8, 2, 0.054688), (25, 5, 0.000162)),
        (1_100, 1_000, 0.01536035),  # where whole numbers would take long
    ],
)
def test_rows_that_pass_or_fail_are_tested_by_mcnemar_s_test(lost: int, gained: int, p: float) -> None:
    found = drop_p(changes(lost, gained))
    assert found == pytest.approx(p, abs=1e-6)
    if lost:
        exact = scipy.stats.binomtest(lost, lost + gained, alternative="greater").pvalue
        assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        *(([-0.1, -0.2, -0.3, -0.4], 0.0625), ([-0.5] * 5, 0.03125), ([-1.0, -1.0, 2.0], 0.625)),
        *(([0.25, -0.25, -0.5, -0.75, -1.0], 0.09375), ([0.1, 0.2], 1.0)),
    ],
)
def test_graded_scores_are_tested_by_flips_of_their_signs(differences: list[float], p: float) -> None:
    assert drop_p(differences) == p == drop_p(differences[::-1])
    signs = itertools.product((1, -1), repeat=len(differences))
    sums = [sum(np.multiply(differences, sign)) for sign in signs]
    assert p == sum(total <= sum(differences) + 1e-9 for total in sums) / len(sums)


def test_flips_of_many_rows_are_drawn() -> None:
    differences = [0.04, -0.03, -0.1, 0.02, -0.06, -0.05, 0.08, -0.01, -0.07, 0.03] * 2
    signs: dict[str, Any] = {"permutation_type": "samples", "alternative": "less", "n_resamples": 20_000}
    whole = scipy.stats.permutation_test((np.array(differences),), np.sum, **signs, rng=np.random.default_rng(1))
    assert drop_p(differences) == pytest.approx(whole.pvalue, abs=0.015)
    assert drop_p(differences) == drop_p(differences)
    # The signs of a cluster are flipped together.
    assert drop_p([-0.1, -0.2, -0.3] * 4, clusters=[*"abc"] * 4) == drop_p([-0.1, -0.2, -0.3]) == 0.125
    assert drop_p([-1.0, 1.0, -1.0], clusters="aab") == 0.5


def all_choices(rows: list[PairedScores]) -> float:
    """Return the share of all ways to choose the scores of now whose sum of means is at most the one found."""
    ways = [[*itertools.combinations((*row.before, *row.now), len(row.now))] for row in rows]
    means = [sum(sum(choice) / len(choice) for choice in way) for way in itertools.product(*ways)]
    return sum(mean <= sum(sum(row.now) / len(row.now) for row in rows) + 1e-9 for mean in means) / len(means)


@pytest.mark.parametrize(
    "rows",
    [
        [((1, 1, 0, 1), (0,)), ((1, 1, 1, 1), (0,)), ((0, 0, 1, 0), (0,)), ((1, 1, 1, 1), (1,))],
        [((1, 1), (0,)), ((1, 0, 1), (0,)), ((1,), (0,)), ((0, 1), (1,))],
        [((1, 1, 1), (0, 1, 0)), ((1, 0, 1), (0, 0, 1)), ((1, 1, 0), (0, 1, 1))],
        [((0.9, 0.8), (0.7,)), ((0.5, 0.6), (0.5,)), ((1.0, 0.2), (0.1,)), ((0.4, 0.4), (0.4,))],
        [((0.9, 0.8), (0.7, 0.3)), ((0.5, 0.6), (0.5, 0.55)), ((1.0,), (0.1, 0.2))],
    ],
    ids=["pass and fail", "some rows are new", "several answers", "graded", "graded answers"],
)
def test_scores_of_several_runs_are_tested_by_all_ways_to_choose_today_s(rows: list[Any]) -> None:
    scores = [PairedScores(*row) for row in rows]
    found = drop_test(scores)
    assert found == drop_test(scores[::-1])
    assert found.p == pytest.approx(all_choices(scores), abs=1e-12)
    whole = [(sorted((*row.before, *row.now)), len(row.now)) for row in scores]
    lowest = [PairedScores(tuple(values[now:]), tuple(values[:now])) for values, now in whole]
    assert found.least == pytest.approx(drop_test(lowest).p, abs=1e-12)
    assert found.changed == sum(len({*row.before, *row.now}) > 1 for row in scores)


@pytest.mark.parametrize("now", [1, 3])
def test_ways_of_many_rows_are_drawn(now: int) -> None:
    """And agree with the exact test, which takes over where scores pass or fail."""
    random = np.random.default_rng(3)
    rows = [PairedScores(tuple(row[now:]), tuple(row[:now])) for row in (random.random((40, now + 15)) < 0.8) * 1.0]
    moved = [PairedScores(row.before, tuple(score * 0.7 for score in row.now)) for row in rows]
    nearly = [PairedScores(row.before, tuple(score + 1e-7 for score in row.now)) for row in rows]
    assert drop_test(nearly).p == pytest.approx(drop_test(rows).p, abs=0.02)
    assert drop_test(moved) == drop_test(moved)
    assert drop_test(moved).p < 0.01


def test_rows_of_a_cluster_are_chosen_together() -> None:
    rows = [PairedScores((1.0, 0.0, 1.0), (0.0,))] * 3
    assert drop_test(rows, clusters="aaa").p == drop_test(rows[:1]).p == 0.5
    assert drop_test(rows).p == pytest.approx(0.5**3)
    # A row that the first run did not have is compared, with its cluster, from the second on.
    assert drop_test([*rows, PairedScores((1.0, 1.0), (0.0,))], clusters="aaaa").p == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("p", "changed", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [20] * 4, [0.03, 0.06, 0.06, 0.02]),
        ([0.03125, 1.0, 1.0, 1.0], [5, 0, 1, 2], [0.03125, 1.0, 1.0, 1.0]),
        *(([0.03125, 0.5, 0.5], [5, 1, 5], [1.0, 1.0, 1.0]), ([], [], [])),
    ],
)
def test_several_metrics_share_the_error(
    p: list[float], changed: list[int], adjusted: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [str(number) for number in range(len(p))]
    least = [0.5**count for count in changed]
    found = adjusted_p(dict(zip(names, p, strict=True)), dict(zip(names, least, strict=True)))
    assert [found[name] for name in names] == pytest.approx(adjusted)
    if p and min(changed) > 10:
        from statsmodels.stats.multitest import multipletests

        monkeypatch.setattr("gc.collect", int)  # multipletests collects all garbage, which takes half a second
        assert list(found.values()) == pytest.approx(multipletests(p, method="holm")[1])
