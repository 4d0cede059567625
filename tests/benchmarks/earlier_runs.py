"""How often gates find a loss, and are wrong, by the runs before and the number of rows; parts of ``gates``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from pytest_ragmetrics import assert_no_regression, assert_not_worse, assert_pass_rate
from pytest_ragmetrics.evaluation.table import Evaluation
from pytest_ragmetrics.report.bounds import run_bounds
from tests.benchmarks.simulated import (
    APPLICATIONS,
    Figure,
    Random,
    Scores,
    coins,
    judged,
    part,
    past,
    ran,
    red,
    several,
    share,
    share_of,
    table,
    unsteady,
    worse,
)


@part
def several_runs(random: Random, draws: int) -> Iterator[Figure]:
    """No regression since 1, 3, 5 and 10 runs: an unchanged application, and one that lost five and ten points."""
    expected = {
        (50, "coins"): ((0.002, 0.015, 0.008, 0.015), (0.13, 0.34, 0.45, 0.48), (0.46, 0.73, 0.81, 0.83)),
        (50, "unsteady"): ((0.015, 0.033, 0.030, 0.030), (0.13, 0.20, 0.21, 0.23), (0.30, 0.46, 0.53, 0.58)),
        (200, "coins"): ((0.017, 0.037, 0.023, 0.027), (0.69, 0.88, 0.90, 0.92), (0.98, 1.0, 1.0, 1.0)),
        (200, "unsteady"): ((0.037, 0.038, 0.042, 0.042), (0.40, 0.51, 0.57, 0.64), (0.84, 0.95, 0.96, 0.98)),
        (200, "judged"): ((0.023, 0.060, 0.042, 0.025), (0.21, 0.32, 0.30, 0.41), (0.54, 0.74, 0.79, 0.81)),
    }

    def is_red(n: int, kind: str, runs: int, drop: float) -> bool:
        rows = APPLICATIONS.get(kind, coins)(random, n, 0.9)
        asked = [*[rows] * runs, worse(random, rows, drop) if drop else rows]
        scores = [ran(random, chances) for chances in asked]
        *before, now = [table(judged(random, it) if kind == "judged" else it) for it in scores]
        return red(assert_no_regression, now, before)

    for (n, kind), known in expected.items():
        for drop, shares in zip((0.0, 0.05, 0.1), known, strict=True):
            for runs, figure in zip((1, 3, 5, 10), shares, strict=True):
                what = f"{n} rows, {kind}, {runs} runs before, {drop:.0%} lost: red"
                yield share(what, draws, partial(is_red, n, kind, runs, drop), figure)


@part
def several_answers(random: Random, draws: int) -> Iterator[Figure]:
    """No regression of 200 rows with several answers each; the judge finds 90 % of the good, 80 % of the bad."""

    def asked(chances: Scores, answers: int) -> Evaluation:
        scores = judged(random, ran(random, np.repeat(chances, answers)))
        ids, numbers = several(len(chances), answers)
        return table(scores, ids=ids, metadata=numbers if answers > 1 else ())

    def is_red(then: int, now: int, drop: float) -> bool:
        rows = coins(random, 200)
        return red(assert_no_regression, asked(worse(random, rows, drop), now), asked(rows, then))

    for then, now, figure in ((1, 1, 0.58), (3, 1, 0.79), (3, 3, 0.91)):
        what = f"{then} answers a row before, {now} now"
        yield share(f"{what}, unchanged: red", draws, partial(is_red, then, now, 0.0))
        yield share(f"{what}, ten points lost: red", draws, partial(is_red, then, now, 0.1), figure)


def bound_of(runs: Iterable[Scores]) -> float:
    """Return the bound of a rate that runs give."""
    return run_bounds(past(runs))[0].bound or 0.0


@part
def bounds_of_runs(random: Random, draws: int) -> Iterator[Figure]:
    """Bound a rate by the runs that were: an application at 0.92, unchanged and with ten points lost."""
    # By rows and application, and by 5, 10 and 20 runs.
    expected = {
        (50, "coins"): ((0.22, 0.086, 0.007, 0.59), (0.21, 0.041, 0.003, 0.75), (0.20, 0.017, 0.005, 0.80)),
        (50, "unsteady"): ((0.20, 0.12, 0.012, 0.28), (0.19, 0.06, 0.015, 0.44), (0.19, 0.03, 0.016, 0.50)),
        (200, "coins"): ((0.12, 0.13, 0.007, 0.98), (0.12, 0.07, 0.011, 1.0), (0.14, 0.03, 0.008, 1.0)),
        (200, "unsteady"): ((0.12, 0.14, 0.013, 0.72), (0.11, 0.07, 0.009, 0.91), (0.11, 0.04, 0.008, 0.96)),
    }
    said = ("unchanged, red at 0.9", "unchanged, red at the worst of them", "unchanged: red", "ten points lost: red")

    def reds(n: int, kind: str, runs: int) -> tuple[bool, ...]:
        rows = APPLICATIONS[kind](random, n, 0.92)
        before, now, then = [ran(random, rows) for _ in range(runs)], ran(random, rows), worse(random, rows, 0.1)
        bound, least = bound_of(before), min(float(scores.mean()) for scores in before)
        held = [(now, 0.9), (now, least), (now, bound), (ran(random, then), bound)]
        return tuple(red(assert_pass_rate, scores.tolist(), 1.0, rate) for scores, rate in held)

    for (n, kind), known in expected.items():
        for runs, figures in zip((5, 10, 20), known, strict=True):
            columns = zip(*(reds(n, kind, runs) for _ in range(draws)), strict=True)
            for what, flags, figure in zip(said, columns, figures, strict=True):
                yield share_of(f"{n} rows, {kind}, {runs} runs: {what}", flags, figure)


@part
def thresholds(random: Random, draws: int) -> Iterator[Figure]:
    """Answer the questions of the page on thresholds: how often right, and how often wrong, by the number of rows."""

    def worse_than(runs: int, k: int, n: int, drop: float) -> bool:
        """Compare with runs of the application, which answers each row k times."""
        rows = coins(random, n)
        ids, numbers = several(n, k)

        def asked(chances: Scores) -> Evaluation:
            return table(ran(random, np.repeat(chances, k)), ids=ids, metadata=numbers if k > 1 else ())

        before = [asked(rows) for _ in range(runs)]
        return red(assert_no_regression, asked(worse(random, rows, drop)), before if runs > 1 else before[0])

    def below_the_bound_of_ten_runs(n: int, drop: float) -> bool:
        rows = coins(random, n)
        now = ran(random, worse(random, rows, drop)).tolist()
        return red(assert_pass_rate, now, 1.0, bound_of(ran(random, rows) for _ in range(10)))

    def below_two_points_less(n: int, drop: float) -> bool:
        rows = coins(random, n)
        figure = float(ran(random, rows).mean())
        return red(assert_pass_rate, ran(random, worse(random, rows, drop)).tolist(), 1.0, figure - 0.02)

    def surely_above(n: int, above: float) -> bool:
        scores = ran(random, unsteady(random, n, 0.9 + above)).tolist()
        return not red(assert_pass_rate, scores, 1.0, 0.9, confidence=0.95)

    def surely_not_worse(n: int, drop: float) -> bool:
        rows = coins(random, n)
        before, now = ran(random, rows), ran(random, worse(random, rows, drop))
        return not red(assert_not_worse, table(now), table(before), margin=0.05)

    questions: dict[str, tuple[Callable[[int, float], bool], float, float]] = {
        "worse than one run: red where ten points are lost, where none": (partial(worse_than, 1, 1), 0.1, 0.0),
        "worse than five runs: red": (partial(worse_than, 5, 1), 0.1, 0.0),
        "three answers a row, worse than one run: red": (partial(worse_than, 1, 3), 0.1, 0.0),
        "below the bound of ten runs: red": (below_the_bound_of_ten_runs, 0.1, 0.0),
        "two points below the last figure: red": (below_two_points_less, 0.1, 0.0),
        "confidence=0.95: passes five points above its bound, on it": (surely_above, 0.05, 0.0),
        "margin=0.05: passes where nothing is lost, where the margin is": (surely_not_worse, 0.0, 0.05),
    }
    for what, (is_so, right, wrong) in questions.items():
        for n in (20, 50, 200, 1000):
            for side, change in (("right", right), ("wrong", wrong)):
                yield share(f"{what}, {n} rows: {side}", draws, partial(is_so, n, change))
