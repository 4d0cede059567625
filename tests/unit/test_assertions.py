"""The helpers hold a score against a threshold and hand it back."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import MetricResult, Sample, assert_metric, assert_quoted_spans_aligned
from pytest_ragmetrics.metrics import Metric, QuotedSpansAlignment

SOURCE = "Open the valve slowly. The pump needs two minutes to fill."
TWO = 'It says "open the valve slowly" and "the pump needs nine minutes to fill".'


class Fixed(Metric):
    """A metric that reads its score off the response."""

    name = "fixed"

    def measure(self, sample: Sample) -> MetricResult:
        """Return the response as a number."""
        return MetricResult(float(sample.response or 0), metric=self.name)


def test_the_result_is_returned() -> None:
    """A helper that does not raise returns the whole result."""
    result = assert_quoted_spans_aligned(TWO, [SOURCE], min=0.5)
    assert result == 0.5
    assert [verdict.ok for verdict in result.verdicts] == [True, False]


def test_falling_short_raises_with_the_explanation() -> None:
    """The error's first line has score, threshold and counts; the quotation found is not listed."""
    with pytest.raises(AssertionError) as caught:
        assert_quoted_spans_aligned(TWO, [SOURCE])
    lines = str(caught.value).splitlines()
    assert lines[0] == "quoted_spans_alignment 0.50 < 0.90: 1 of 2 quoted spans not found"
    assert "nine minutes" in lines[1]
    assert "open the valve" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "score"),
    [
        ({"casefold": False}, 0.0),
        ({"min_span_words": 5}, 1.0),
        ({"require_quotes": True, "min_span_words": 5}, 0.0),
        ({"matching": "verbatim"}, 1.0),
    ],
)
def test_parameters_reach_the_metric(parameters: dict[str, Any], score: float) -> None:
    """Every parameter of the metric is one of the helper."""
    assert assert_quoted_spans_aligned('"open the valve slowly"', SOURCE, min=0.0, **parameters) == score


@pytest.mark.parametrize(
    ("bounds", "holds"),
    [
        ({"min": 0.5}, True),
        ({"min": 0.51}, False),
        ({"max": 0.5}, True),
        ({"max": 0.49}, False),
        ({"min": 0.4, "max": 0.6}, True),
        ({"min": 0.6, "max": 0.7}, False),
    ],
)
def test_both_bounds_hold(bounds: dict[str, Any], holds: bool) -> None:  # noqa: FBT001
    """A score must be at least min and at most max, the bounds included."""
    if holds:
        assert assert_metric(Fixed(), Sample(response="0.5"), **bounds) == 0.5
    else:
        with pytest.raises(AssertionError, match=r"^fixed 0\.50 [<>] "):
            assert_metric(Fixed(), Sample(response="0.5"), **bounds)


def test_a_mapping_is_a_sample() -> None:
    """A row of another tool may be given as it is."""
    row = {"answer": '"open the valve slowly"', "contexts": [SOURCE]}
    assert assert_metric(QuotedSpansAlignment(), row, min=1.0) == 1.0


@pytest.mark.parametrize(
    ("bounds", "error", "said"),
    [
        ({}, ValueError, "give min= or max="),
        ({"min": "0.9"}, TypeError, "min must be a number, not '0.9'"),
        ({"max": True}, TypeError, "max must be a number, not True"),
        ({"min": float("nan")}, ValueError, "min must be a finite number, not nan"),
    ],
)
def test_wrong_bounds_are_refused_before_scoring(bounds: dict[str, Any], error: type[Exception], said: str) -> None:
    """A threshold that is none is an error that names it; nothing is scored, so nothing is paid."""
    with pytest.raises(error, match=said):
        assert_metric(Fixed(), Sample(response="not even a number"), **bounds)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "quoted_spans_alignment: response is missing; it needs response and retrieved_contexts"),
        ({"response": "r"}, "retrieved_contexts is missing"),
        ({"response": " \n", "retrieved_contexts": []}, "response is blank"),
    ],
)
def test_required_fields_are_named(inputs: dict[str, Any], said: str) -> None:
    """A missing or blank required field is a ValueError that names it and all that is needed."""
    with pytest.raises(ValueError, match=said):
        QuotedSpansAlignment().score(**inputs)


def test_unknown_inputs_are_refused() -> None:
    """A misspelt input is an error, not ignored."""
    with pytest.raises(TypeError, match="respose"):
        QuotedSpansAlignment().score(respose="r")
