"""How many samples settle what is open, and what a set can find before it is scored."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.runs.records import Gate
from pytest_ragmetrics.runs.wording.power import finds_text, limit_text
from pytest_ragmetrics.stats.agreement import auroc
from pytest_ragmetrics.stats.corrected import prediction_powered_mean
from pytest_ragmetrics.stats.cutoffs import suggest_threshold
from pytest_ragmetrics.stats.intervals import mean_interval, verdict
from pytest_ragmetrics.stats.means import samples_to_settle, set_threshold
from pytest_ragmetrics.stats.permutation import PairedScores
from pytest_ragmetrics.stats.power import Plan, rows_needed, smallest_drop, unit_scores
from tests.benchmarks.gates import figures

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


def pairs(lost: int, gained: int, n: int) -> list[PairedScores]:
    """Return rows that pass or fail, most of them alike."""
    sides = [(1.0, 0.0)] * lost + [(0.0, 1.0)] * gained + [(1.0, 1.0)] * (n - lost - gained)
    return [PairedScores((before,), (now,)) for before, now in sides]


def graded(n: int, *, before: int = 1, seed: int = 1) -> list[PairedScores]:
    random = np.random.default_rng(seed)
    scores = np.clip(random.normal(0.8, 0.15, (n, 1)) + random.normal(0, 0.1, (n, before + 1)), 0, 1)
    return [PairedScores(tuple(row[1:]), (row[0],)) for row in scores.tolist()]


@pytest.mark.parametrize(
    ("lost", "gained", "n", "span", "drop"),
    [
        # More rows show less, and rows that change without a cause hide it.
        *((0, 0, 4, 1.0, None), (0, 0, 10, 1.0, 0.70), (0, 0, 20, 1.0, 0.40), (0, 0, 50, 1.0, 0.16)),
        *((5, 5, 200, 1.0, 0.065), (10, 10, 200, 1.0, 0.08), (1, 1, 50, 1.0, 0.18), (25, 25, 1000, 1.0, 0.023)),
        # A row without any change may lose the whole scale.
        *((0, 0, 50, 4.0, 0.64), (0, 0, 50, math.inf, 0.16)),
    ],
)
def test_the_smallest_drop_of_rows_that_pass_or_fail(
    lost: int, gained: int, n: int, span: float, drop: float | None
) -> None:
    found = smallest_drop(pairs(lost, gained, n), span=span)
    assert found == (drop if drop is None else pytest.approx(drop, abs=1e-4))


def test_the_smallest_drop_of_graded_scores_is_drawn() -> None:
    rows = graded(50)
    found = smallest_drop(rows) or 0.0
    assert found == smallest_drop(rows)
    assert 0.08 < found < 0.13
    # It moves with the scale, and with its direction; more runs before show less, more rows in clusters no less.
    larger = [PairedScores((4 * row.before[0] - 7,), (4 * row.now[0] - 7,)) for row in rows]
    assert smallest_drop(larger, span=4.0) == pytest.approx(4 * found, rel=0.05)
    assert (smallest_drop(graded(50, before=5)) or 1.0) < 0.8 * found
    assert smallest_drop(rows * 3, clusters=[*range(50)] * 3) == pytest.approx(found, rel=0.05)
    # Where the scale is not known, no score is below the lowest one; of one cluster, nothing can be shown.
    assert (smallest_drop(rows, span=math.inf) or 1.0) < found
    assert smallest_drop(rows, clusters="a" * 50) is smallest_drop(rows[:4]) is None
    assert smallest_drop(pairs(0, 0, 9), clusters=[*range(9)]) == pytest.approx(0.63, abs=0.05)
    assert smallest_drop([PairedScores((0.0, 0.0), (0.0,))] * 9, span=math.inf) is None


def test_rows_that_were_not_in_all_runs_take_part() -> None:
    whole = graded(40, before=3)
    assert smallest_drop([*whole, PairedScores((0.8,), (0.9,))]) == pytest.approx(smallest_drop(whole), rel=0.1)


@pytest.mark.parametrize(
    ("plan", "n", "drop", "power"),
    [
        *((Plan(), 50, 0.1, 0.42), (Plan(), 50, 0.2, 0.88), (Plan(), 200, 0.1, 0.98), (Plan(), 4, 0.9, 0.0)),
        *((Plan(before=5), 50, 0.1, 0.81), (Plan(before=3), 50, 0.1, 0.73), (Plan(before=5, now=5), 20, 0.0, 0.0)),
        (Plan(runs=((1.0, 1.0),) * 9 + ((1.0, 0.0),)), 50, 0.0, 0.02),
        (Plan(runs=((0.0, 0.0),) * 9), 50, 0.1, 0.0),
    ],
)
def test_the_power_of_a_loss(plan: Plan, n: int, drop: float, power: float) -> None:
    assert plan.power(n, drop) == pytest.approx(power, abs=0.06 if plan.is_drawn else 0.005)


@pytest.mark.parametrize(
    ("plan", "drop", "rows"),
    [
        *((Plan(), 0.1, (100, 100)), (Plan(quiet=0.0), 0.1, (70, 70)), (Plan(), 0.002, (None,))),
        *((Plan(alpha=0.005), 0.1, (180, 180)), (Plan(before=5), 0.1, (45, 65)), (Plan(before=5), 0.001, (None,))),
        (Plan(runs=unit_scores([(*row.before, *row.now) for row in graded(50)])), 0.1, (40, 65)),
    ],
)
def test_the_rows_that_find_a_loss_in_8_of_10_runs(plan: Plan, drop: float, rows: Sequence[int | None]) -> None:
    found = plan.rows(drop)
    assert found is rows[0] if found is None or rows[0] is None else rows[0] <= found <= (rows[-1] or 0)


def test_what_is_planned_is_what_is_found() -> None:
    for figure in itertools.islice(figures("planned", 60), 2):
        assert not figure.is_far, figure


def gate(statistic: Any, bound: float, **named: Any) -> Gate:
    return Gate(metric="m", statistic=statistic, bound=bound, **named)


SURE: dict[str, Any] = {"confidence": 0.95}
OPEN: dict[str, Any] = {"confidence": 0.95, "inconclusive": "pass"}


@pytest.mark.parametrize(
    ("asked", "n", "given", "limit"),
    [
        # A confidence that no scores reach.
        (
            gate("rate", 0.9, min_score=0.8, **SURE),
            35,
            {},
            r"even 35 of 35 gives .* from 0\.89; take 36 rows or",
        ),
        (gate("rate", 0.9, min_score=0.8, **SURE), 36, {}, None),
        (gate("rate", 1.0, min_score=0.8, **SURE), 99, {}, r"never pass: .* from 0\.96; take a bound of 0\.96"),
        (gate("mean", 0.9, **SURE), 1, {}, r"even 1 score of 1 gives an interval from 0\.02; take 36 rows"),
        (gate("mean", 4.8, **SURE), 50, {"scale": (1.0, 5.0)}, r"even 50 scores of 5 give .* from 4\.71; take 72 rows"),
        (
            gate("mean", 0.1, better="lower", **SURE),
            20,
            {},
            r"20 scores of 0 give .* to 0\.17; take 36 rows or",
        ),
        (gate("mean", 0.9, **SURE), 60, {"clusters": [*range(20)] * 3}, r"60 scores of 1 .*0\.83; take 36 clusters or"),
        (gate("mean", 0.9, **SURE), 5, {"scale": None}, None),
        # A bound that no scores miss.
        (gate("rate", 0.0, min_score=0.8), 20, {}, "never fail: no rate is below 0"),
        (gate("rate", 0.9, min_score=0.0), 20, {}, "never fail: every score reaches min=0"),
        (gate("rate", 0.9, min_score=1.0, better="lower"), 20, {}, "never fail: every score reaches max=1"),
        (gate("mean", 1.0, better="lower"), 20, {}, "never fail: no mean is above 1"),
        (gate("mean", 1.0), 20, {}, None),
        (gate("mean", 0.0), 0, {}, None),
        # Scores that are inconclusive, which passes.
        (gate("mean", 0.9, **OPEN), 1, {}, r"never fail: .* even 1 score at 0 .*; take 2 rows"),
        (gate("rate", 0.3, min_score=0.8, **OPEN), 10, {}, r"even 10 scores at 0 are inconclusive, .* take 11 rows"),
        (gate("mean", 1.0, **OPEN), 1, {}, None),
        (gate("mean", 0.9, **OPEN), 20, {}, None),
        # Pairs of too few rows or clusters, at a level; more runs before need fewer.
        (gate("regression", 0.0), 4, {"alpha": 0.05}, "never pass: 4 rows, and 5 are the least that a regression gate"),
        (gate("regression", 0.0, inconclusive="pass"), 4, {"alpha": 0.05}, "never fail: 4 rows, and 5 are the least"),
        (
            gate("regression", 0.0),
            6,
            {"alpha": 0.01},
            r"all 6 rows become .* 1\.56 % of runs \(limit 1 %\); take 7 rows",
        ),
        (gate("regression", 0.0), 5, {"alpha": 0.05}, None),
        (
            gate("regression", 0.0),
            9,
            {"alpha": 0.05, "clusters": "abc" * 3},
            "all 3 clusters become .* take 5 clusters",
        ),
        (gate("regression", 0.0), 9, {"alpha": 0.05, "clusters": "a" * 9}, "its only cluster becomes worse in 50 %"),
        (gate("regression", 0.0), 9, {"alpha": 0.05, "clusters": "abc" * 3, "earlier": 5}, None),
    ],
)
def test_what_a_gate_can_never_do(asked: Gate, n: int, given: Any, limit: str | None) -> None:
    found = limit_text(asked, n, **given)
    assert re.search(limit, found) if limit else not found


@pytest.mark.parametrize("n", [1, 7, 20, 35, 36])
@pytest.mark.parametrize("bound", [0.3, 0.9])
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_a_gate_passes_and_fails_where_it_can(n: int, bound: float, better: Any) -> None:
    def passes(scores: list[float], inconclusive: str) -> bool:
        outcome = set_threshold(scores, bound, confidence=0.95, better=better).outcome
        return outcome == "passed" or (outcome, inconclusive) == ("inconclusive", "pass")

    best, worst = (1.0, 0.0) if better == "higher" else (0.0, 1.0)
    never_pass = "can never pass" in limit_text(gate("mean", bound, better=better, **SURE), n)
    never_fail = "can never fail" in limit_text(gate("mean", bound, better=better, **OPEN), n)
    assert (never_pass, never_fail) == (not passes([best] * n, "fail"), passes([worst] * n, "pass"))


def test_a_gate_that_no_rows_make_fine_enough() -> None:
    assert finds_text(Plan(alpha=0.0), 20).endswith("for 8 of 10 at 10 points 9,500 rows are too few")
    assert finds_text(Plan(), 1000) == (
        "1,000 rows find a loss of 10 points in nearly every run, of 20 points in nearly every run"
    )
    assert rows_needed(0.1, 50, 9.0, lost=20, gained=21) is None
