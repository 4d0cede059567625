"""Deciding a gate before all rows are scored: the capital of the paper, the order, and the errors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics.stats.sequential import SequentialTest, Unit, drawn_order, limit, uniform


def run(scores: Sequence[float], total: int, bound: float = 0.85, **options: Any) -> tuple[int, str | None]:
    """Return after how many scores there is a decision, and which."""
    test = SequentialTest(total, bound, alpha=0.05, **options)
    for number, score in enumerate(scores, 1):
        if outcome := test.add(Unit(low=score, high=score)):
            return number, outcome
    return len(scores), None


def capital(scores: Sequence[float], total: int, mean: float) -> float:
    """Return the capital of a gambler against a mean, as the paper defines it: a mean of products."""
    growths = []
    for share in range(1, 21):
        grown, seen = 1.0, 0.0
        for number, score in enumerate(scores):
            rest = (total * mean - seen) / (total - number)
            grown *= 1 + share / 21 * (score / rest - 1)
            seen += score
        growths.append(grown)
    return sum(growths) / 20


@pytest.mark.parametrize(("total", "passed"), [(20, 13), (50, 20), (200, 26), (500, 27), (2_000, 28)])
def test_rows_that_are_alike_decide_early(total: int, passed: int) -> None:
    assert run([1.0] * total, total) == (passed, "passed")
    assert run([0.0] * total, total) == (10, "failed")
    # Two failures among the first rows delay a decision.
    scores = [1.0] * 500
    scores[3] = scores[40] = 0.0
    assert run(scores, 500) == (52, "passed")


@pytest.mark.parametrize("is_rate", [True, False])
def test_the_capital_is_that_of_the_paper(is_rate: bool) -> None:
    random = np.random.default_rng(3)
    scores = (random.random(60) < 0.8).astype(float) if is_rate else random.beta(5, 2, 60)
    test = SequentialTest(100, 0.7, alpha=0.05, is_rate=is_rate)
    for score in scores.tolist():
        test.add(Unit(low=score, high=score))
    refuted = 0.69 if is_rate else 0.7
    assert math.exp(test._for.log) == pytest.approx(capital(scores.tolist(), 100, refuted), rel=1e-9)
    assert math.exp(test._against.log) == pytest.approx(capital((1 - scores).tolist(), 100, 0.3), rel=1e-9)


def test_at_the_last_row_the_decision_is_exact() -> None:
    assert run([0.0, 1.0] * 10, 20, 0.5) == (20, "passed")
    assert run([0.0, 1.0] * 9 + [0.0, 0.0], 20, 0.5) == (20, "failed")
    assert run([0.6, 0.8] * 10, 20, 0.7, is_rate=False) == (20, "passed")
    assert run([1.0] * 5, 5, 0.8)[1] == "passed"
    # A row without a score counts for neither side.
    test = SequentialTest(30, 0.5, alpha=0.05)
    outcomes = [test.add(Unit(low=0.0, high=1.0)) for _ in range(30)]
    assert outcomes[:29] == [None] * 29
    # A failure needs more evidence where several gates are decided together; a pass does not.
    scores = [1.0, 1.0, 1.0, 0.0] * 50
    assert run(scores, 200, gates=10)[0] > run(scores, 200)[0]
    assert run([1.0] * 200, 200, gates=10) == run([1.0] * 200, 200)


def test_the_order_is_drawn_by_size() -> None:
    sizes = {f"row {number}": 1 for number in range(50)}
    order = drawn_order(sizes, "a")
    assert sorted(order) == sorted(sizes)
    assert order == drawn_order(dict(reversed(sizes.items())), "a") != drawn_order(sizes, "b")
    # Leaving a row out does not change the order of the others.
    rest = {name: size for name, size in sizes.items() if name != order[0]}
    assert drawn_order(rest, "a") == order[1:]
    firsts = Counter(drawn_order({"large": 9, "small": 1}, str(seed))[0] for seed in range(2_000))
    assert firsts["large"] / 2_000 == pytest.approx(0.9, abs=0.02)
    draws = [uniform("seed", str(number)) for number in range(2_000)]
    assert 0.0 < min(draws) < max(draws) <= 1.0
    assert np.mean(draws) == pytest.approx(0.5, abs=0.02)


def test_the_limit_is_valid_at_any_stop() -> None:
    rows = [Unit(low=1.0, high=1.0)] * 26
    low = limit(rows, 200, alpha=0.05, side="low")
    assert capital([1.0] * 26, 200, low) == pytest.approx(20, rel=1e-3)
    assert limit(rows, 200, alpha=0.05, side="high") == pytest.approx(1.0)
    assert limit([Unit(low=0.0, high=0.0)] * 26, 200, alpha=0.05, side="high") == pytest.approx(1 - low)
    assert limit(rows, 26, alpha=0.05, side="low") == pytest.approx(1.0)
    assert (limit([], 9, alpha=0.05, side="low"), limit([], 9, alpha=0.05, side="high")) == pytest.approx((0, 1))
