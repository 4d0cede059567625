"""A few draws of the simulations that say how often intervals and decisions are wrong: what each came to, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks import gates, intervals

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("part", "figures"),
    [
        # Alarms about an unchanged application, of one metric and of ten, and about one that lost ten points.
        ("regressions", ["0.000", "0.000", "0.050", "0.050", "0.000", "0.400", "1.000", "1.000"]),
        ("margins", ["0.000", "0.000", "0.000", "0.050", "1.000", "1.000"]),
        ("bounds", ["0.000", "0.000", "0.000", "0.000", "0.050", "0.000", "0.000", "0.000", "0.500"]),
        # The share of rows that are asked, and that of decisions which the whole set contradicts.
        ("stops", [f"{asked:.3f}, 0.000" for asked in (0.164, 0.033, 0.144, 0.568, 0.992, 0.969, 0.972, 0.408)]),
        ("labels", ["1.000, 0.97", "1.000, 1.00", "1.000, 0.98", "1.000, 0.73"]),
    ],
)
def test_decisions_are_as_often_right(part: str, figures: list[str]) -> None:
    """Of twenty simulated sets; the benchmark draws hundreds."""
    assert [figure for _, figure in gates.PARTS[part](np.random.default_rng(1), 20)] == figures


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
