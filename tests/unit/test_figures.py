"""How numbers are worded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.runs.wording.figures import bound_text, duration_text, score_text, similarity_text, usage_text

_SCORES = st.floats(-1, 1, allow_subnormal=False)


@given(_SCORES, _SCORES)
@example(0.1 + 0.2, 0.3)
def test_a_score_never_seems_to_be_on_the_other_side_of_its_bound(score: float, bound: float) -> None:
    shown = float(score_text(score, bound))
    assert (shown > bound, shown < bound) == (score > bound, score < bound)
    assert (float(score_text(score)) == 1) == (score == 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (score_text, {0.5: "0.50", 1.0: "1.00", 1 / 3: "0.33", -0.0: "0.00"}),
        (bound_text, {0.9: "0.90", 1: "1.00", 0.875: "0.875", 1 / 3: repr(1 / 3)}),
        (duration_text, {0: "0 ms", 0.0126: "13 ms", 0.9: "900 ms", 1: "1.0 s"}),
        (duration_text, {59.94: "59.9 s", 59.96: "1 min 0 s", 3725: "62 min 5 s"}),
        (similarity_text, {0: "0%", 0.286: "29%", 0.9999: "99%", 1: "100%"}),
        (
            usage_text,
            {
                Usage(): "",
                Usage(calls=1, cost=None): "1 call, cost unknown",
                Usage(calls=3, prompt_tokens=1200, cost=1.5): "3 calls, 1,200 tokens, $1.50",
                Usage(calls=1, cost=0.0000314): "1 call, $0.000031",
                Usage(cached_calls=2, saved=0.2): "2 calls saved by the cache, $0.20",
                Usage(calls=1, cached_calls=1, cost=0.0): "1 call, $0.00; 1 saved by the cache",
                Usage(calls=1, cost=-0.004): "1 call, $-0.0040",
            },
        ),
    ],
)
def test_figures_take_the_digits_and_the_unit_they_need(text: Callable[[Any], str], expected: dict[Any, str]) -> None:
    assert {value: text(value) for value in expected} == expected
