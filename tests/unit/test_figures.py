"""How numbers are worded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.explain.phrases import bound_text, duration_text, score_text, similarity_text, usage_text
from pytest_ragmetrics.result import Usage

_SCORES = st.floats(-1, 1, allow_subnormal=False)


@given(_SCORES, _SCORES)
def test_a_score_never_seems_to_be_on_the_other_side_of_its_bound(score: float, bound: float) -> None:
    """What is printed compares with the bound as the score itself does."""
    shown = float(score_text(score, bound))
    assert (shown > bound, shown < bound) == (score > bound, score < bound)


@given(_SCORES)
def test_only_a_perfect_score_is_printed_as_one(score: float) -> None:
    """0.999 is not 1.00."""
    assert (float(score_text(score)) == 1) == (score == 1)


def test_scores_take_two_decimals_where_these_tell_the_truth() -> None:
    """Short where possible, and zero has no sign."""
    assert [score_text(score) for score in (0.5, 1.0, 1 / 3, -0.0)] == ["0.50", "1.00", "0.33", "0.00"]


def test_bounds_are_written_as_their_authors_wrote_them() -> None:
    """No rounding of what somebody typed."""
    assert [bound_text(bound) for bound in (0.9, 1, 0.875, 1 / 3)] == ["0.90", "1.00", "0.875", repr(1 / 3)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0126, "13 ms"),
        (0.9, "900 ms"),
        (1, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (3725, "62 min 5 s"),
    ],
)
def test_durations_have_the_unit_they_need(seconds: float, text: str) -> None:
    """Milliseconds, seconds, minutes."""
    assert duration_text(seconds) == text


def test_only_the_same_is_fully_alike() -> None:
    """A passage with one wrong word is never 100 % alike."""
    assert [similarity_text(value) for value in (0, 0.286, 0.9999, 1)] == ["0%", "29%", "99%", "100%"]


def test_what_judging_cost() -> None:
    """Calls made and saved with their tokens and prices; an unknown price is said to be unknown."""
    assert usage_text(Usage()) == ""
    assert usage_text(Usage(calls=1, cost=None)) == "1 call, cost unknown"
    assert usage_text(Usage(calls=3, prompt_tokens=1200, cost=1.5)) == "3 calls, 1,200 tokens, $1.50"
    assert usage_text(Usage(calls=1, cost=0.0000314)) == "1 call, $0.000031"
    assert usage_text(Usage(cached_calls=2, saved=0.2)) == "2 calls saved by the cache, $0.20"
    assert usage_text(Usage(calls=1, cached_calls=1, cost=0.0)) == "1 call, $0.00; 1 saved by the cache"
    assert usage_text(Usage(calls=1, cost=-0.004)) == "1 call, $-0.0040"
