"""A result is a float that explains itself."""

from __future__ import annotations

import copy
import json
import math
import pickle
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import MetricResult, Usage, Verdict
from pytest_ragmetrics.result import ThresholdCheck


def result(value: float = 0.5) -> MetricResult:
    """Build a result with something in every field."""
    return MetricResult(
        value,
        metric="m",
        reason="because",
        verdicts=[Verdict(text="t", ok=True)],
        vacuous=True,
        judge="j",
        usage=Usage(calls=2),
        samples=[0.25, 0.75],
        noun="claim",
        complaint="not supported",
    )


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False))
def test_it_compares_and_computes_as_its_float(value: float, other: float) -> None:
    """Every comparison and the hash are those of the float, from either side."""
    score = MetricResult(value, metric="m")
    assert (score < other, score <= other, score > other, score >= other) == (
        value < other,
        value <= other,
        value > other,
        value >= other,
    )
    assert (other < score, other <= score, other == score) == (other < value, other <= value, other == value)
    assert hash(score) == hash(value)
    assert score.value == value
    assert type(score.value) is float
    assert type(score + 1) is float
    assert f"{score:.3f}" == f"{value:.3f}"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_not_a_number_is_refused(value: float) -> None:
    """A result is never NaN or infinite: construction refuses and names the metric."""
    with pytest.raises(ValueError, match="m: a score must be a finite number"):
        MetricResult(value, metric="m")


def test_copies_keep_everything() -> None:
    """Copying and pickling keep the score and all that explains it."""
    for twin in (copy.copy(result()), copy.deepcopy(result()), pickle.loads(pickle.dumps(result()))):  # noqa: S301
        assert twin == 0.5
        names = (name for name in MetricResult.__slots__ if name != "comparison")
        assert all(getattr(twin, name) == getattr(result(), name) for name in names)


def test_it_serialises_and_averages_as_a_number() -> None:
    """JSON and statistics see a number."""
    assert json.dumps(result()) == "0.5"
    assert fmean([result(0.0), result(1.0)]) == 0.5
    assert sorted([result(0.7), result(0.2)]) == [0.2, 0.7]


def test_the_last_comparison_with_a_number_is_kept() -> None:
    """What a result was held against is remembered as said from the result's side; sorting leaves no trace."""
    score = result(0.5)
    assert score.comparison is None
    sorted([score, result(0.4)])
    assert score < result(0.6)
    assert score.comparison is None
    assert not score >= 0.9
    assert score.comparison == ThresholdCheck(operator=">=", bound=0.9, held=False)
    assert 0.1 <= score
    assert score.comparison == ThresholdCheck(operator=">=", bound=0.1, held=True)


def test_foreign_operands_are_foreign() -> None:
    """Comparing with what is no number behaves as it does for any float and is not remembered."""
    score = result()
    assert score != "0.5"
    with pytest.raises(TypeError):
        score < "0.5"  # type: ignore[operator]  # noqa: B015
    assert score.comparison is None


def test_its_repr_reads_as_a_sentence() -> None:
    """The repr names metric, score, reason and whether there was anything to check."""
    assert repr(result()) == "<m 0.5, vacuous: because>"
    assert repr(MetricResult(1, metric="m")) == "<m 1>"


def test_usages_add_up_and_unknown_prices_stay_unknown() -> None:
    """Adding usages adds every figure; an unknown cost makes the sum unknown, never zero."""
    known = Usage(calls=1, prompt_tokens=10, completion_tokens=2, cost=0.5)
    assert known + Usage(cached_calls=1, saved=0.25) == Usage(
        calls=1, cached_calls=1, prompt_tokens=10, completion_tokens=2, cost=0.5, saved=0.25
    )
    assert (known + Usage(calls=1, cost=None)).cost is None
