"""Gates in numbers, on a line and in words."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.page.distribution import WIDTH
from pytest_ragmetrics.report.page.gates import tell
from tests.documents import gate

_SCORES = st.floats(-3, 5)


def test_a_gate_without_scores_has_no_value() -> None:
    """It is not zero, and there is nothing to draw."""
    told = tell(gate(value=None, between=None, n=0, unscored=3, outcome="inconclusive"))
    assert (told.value, told.between, told.interval) == ("\u2013", "", None)
    assert told.told == "inconclusive: too few scores to tell"


def test_a_share_says_of_what() -> None:
    """A rate counts the scores that reach a minimum."""
    told = tell(gate("recall", 0.875, statistic="rate", min_score=0.8, bound=0.9, between=None))
    assert told.text == "share ≥ 0.80 of recall 0.875, needs ≥ 0.90: 40 scores, 0 unscored"


def test_a_mean_of_what_should_be_low_has_to_be_low() -> None:
    """The bound turns around for a mean, a share still has to be high."""
    assert tell(gate("noise", 0.1, bound=0.2, better="lower")).needs == "≤ 0.20"
    share = tell(gate("noise", 0.9, statistic="rate", min_score=0.2, bound=0.8, better="lower"))
    assert (share.asked, share.needs) == ("share ≤ 0.20 of", "≥ 0.80")


def test_a_gate_over_a_part_of_its_set_says_so() -> None:
    """Tests that were not selected are neither scored nor unscored."""
    part = replace(gate(between=None, n=2, unscored=1), total=9)
    assert tell(part).text == "mean faithfulness 0.830, needs ≥ 0.80: 2 scores, 1 unscored, of 9 tests"


@given(_SCORES, _SCORES, _SCORES, _SCORES)
def test_everything_is_on_the_line(value: float, bound: float, low: float, high: float) -> None:
    """Whatever the scale of the metric, nothing is drawn outside of the picture."""
    interval = tell(gate(value=value, bound=bound, between=(low, high))).interval
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    assert all(0 <= place <= WIDTH for place in (interval.value, interval.bound, interval.low, interval.high))
