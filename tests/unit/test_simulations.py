"""A few draws of the simulations that say how often intervals and decisions are wrong: what each came to, exactly."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.benchmarks import intervals
from tests.benchmarks.gates import figures


@pytest.mark.parametrize(
    ("part", "draws", "expected"),
    [
        # Alarms about an unchanged application, of one metric and of ten, and about one that lost ten points.
        pytest.param("regressions", 20, [0.0, 0.0, 0.05, 0.05, 0.0, 0.4, 1.0, 1.0], marks=pytest.mark.slow),
        # Red on an unchanged application whose passages fail, on one that none fails in, on one that lost ten points.
        ("shared_passages", 2, [*[0.0] * 6, 0.5, 0.0, 1.0, 0.0, 0.0, 1.0]),
        ("rates", 20, [0.25, 0.4, 0.2, 0.55]),
        ("margins", 5, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]),
        ("bounds", 8, [*[0.0] * 8, 0.5]),
        ("answers", 2, [*[0.0] * 10, 1.0, 1.0, 1.0]),
        # The share of rows that are asked, and that of decisions which the whole set contradicts.
        ("stops", 20, [it for one in (0.164, 0.033, 0.144, 0.568, 0.992, 0.969, 0.972, 0.408) for it in (one, 0.0)]),
        # Red at 0.9, at the worst of the runs before and at the bound from them, and where ten points are lost.
        (
            "bounds_of_runs",
            4,
            [
                *(0.0, 0.0, 0.0, 0.5, 0.75, 0.25, 0.0, 1.0, 0.0, 0.0, 0.0, 0.75),
                *(0.5, 0.25, 0.0, 0.5, 0.25, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.25),
                *(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
                *(0.0, 0.0, 0.0, 1.0, 0.25, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
            ],
        ),
        # Alarms about a judge that changed and, where there are some, the run in which half of them had come.
        ("drift", 20, [0.0, 0.0, *(it for run in (8, 14, 2, 4) for it in (1.0, run)), *[0.0] * 4, 7, 23, 3]),
        # Red where nothing changed since 1, 3, 5 and 10 runs of 50 rows, and where five points are lost, and ten.
        pytest.param(
            "several_runs", 2, [0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 1.0, 1.0, 0.5, 1.0], marks=pytest.mark.slow
        ),
        # Red where nothing changed, and where ten points are lost: 1 answer a row, 3 before and 1 now.
        ("several_answers", 1, [0.0, 1.0, 0.0, 1.0]),
        # By question and number of rows: how often right, how often wrong.
        pytest.param(
            "thresholds",
            1,
            [
                *(0, 0, 0, 0, 1, 0, 1, 0),
                *(0, 0, 0, 0, 1, 0, 1, 0),
                *(0, 0, 1, 0, 1, 0, 1, 0),
                *(0, 0, 0, 0, 1, 0, 1, 0),
                *(1, 0, 0, 0, 1, 0, 1, 0),
                *(0, 0, 1, 0, 0, 0, 1, 0),
                *(0, 0, 0, 0, 1, 0, 1, 0),
            ],
            marks=pytest.mark.slow,
        ),
        # Red under a stricter judge, judged anew, and judged anew where ten points are lost, of 50 and 200 rows.
        ("judged_anew", 2, [0.0, 0.0, 0.0, 1.0, 0.0, 1.0]),
        # Red, red by group, and the group named that lost: where none does, one loses 30 or 50, all 10, one of four 30.
        ("groups", 2, [0.0, 0.0, 0.0, 0.5, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
        # Red where 0, 5, 10, 30 % of 200 rows, and of 50, fall silent.
        ("silence", 2, [0.0, 0.5, 1.0, 1.0, 0.0, 0.0, 0.5, 1.0]),
        # Red with ten gates of 50 rows, and of 200, a limit each and one limit; where one loses ten points, and twenty.
        pytest.param("many_gates", 2, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0], marks=pytest.mark.slow),
        ("labels", 20, [1.0, 0.97, 1.0, 1.0, 1.0, 0.98, 1.0, 0.73]),
    ],
)
def test_decisions_are_as_often_right(part: str, draws: int, expected: list[float]) -> None:
    """Of a few simulated sets; the benchmark draws hundreds."""
    digits = 2 if part == "labels" else 3
    found = islice(figures(part, draws), len(expected))  # of parts that take long the first
    assert [round(each.found, digits) for each in found] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "missed"),
    [
        ("means", [(0, 0, 0.2237), (0, 0, 0.0611)]),
        ("clustered", [(1, 0, 0.0476), (0, 0, 0.2098), (0, 0, 0.2093)]),
        ("corrected", [(0, 0, 0.226), (3, 0, 0.0578), (0, 0, 0.0636), (0, 12, 0.0325)]),
        ("predicted", [(0, 0, 0.0922), (0, 0, 0.1385)]),
        ("agreements", [*((0, 0, half) for half in (0.1873, 0.2945, 0.1787, 0.2765, 0.3619)), (1, 0, 0.1341)]),
    ],
)
def test_intervals_miss_the_truth_as_seldom(part: str, missed: list[tuple[int, int, float]]) -> None:
    found = [(above, below, round(half, 4)) for _, above, below, half in intervals.missed(part, 20)]
    assert found == missed
