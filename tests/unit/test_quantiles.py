"""The distributions, against another implementation of them."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from pytest_ragmetrics.stats.intervals import normal_quantile, t_quantile, t_tail

DEGREES = (0.3, 1.0, 1.5, 2.0, 4.7, 9.0, 29.0, 99.0, 100.0, 101.0, 1e3, 1e5, 1e7)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("probability", [1e-6, 0.025, 0.3, 0.5, 0.6, 0.9, 0.975, 0.9995])
def test_quantiles_of_t_are_those_of_scipy(probability: float, df: float) -> None:
    """To nine digits, for any degrees of freedom."""
    assert t_quantile(probability, df) == pytest.approx(stats.t.ppf(probability, df), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("value", [-1e4, -30.0, -2.0, 0.0, 0.1, 1.0, 5.0, 30.0, math.inf, -math.inf])
def test_tails_of_t_are_those_of_scipy(value: float, df: float) -> None:
    """On both sides, and at the ends of the line."""
    assert t_tail(value, df) == pytest.approx(stats.t.sf(value, df), rel=1e-9, abs=1e-15)


def test_a_tail_close_to_the_median_keeps_its_digits() -> None:
    """The density of t with one degree of freedom is 1/pi there."""
    assert t_tail(1e-9, 1.0) == pytest.approx(0.5 - 1e-9 / math.pi, abs=1e-16)


def test_quantiles_of_the_normal_are_those_of_scipy() -> None:
    """The same, without degrees of freedom."""
    for probability in (1e-6, 0.025, 0.5, 0.975):
        assert normal_quantile(probability) == pytest.approx(stats.norm.ppf(probability), abs=1e-9)
