"""A result is a float that explains itself; errors share one base and say where."""

from __future__ import annotations

import copy
import json
import math
import operator
import pickle
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_ragmetrics
from pytest_ragmetrics import DatasetError, MetricResult, RagMetricsError, Usage, Verdict
from pytest_ragmetrics.core.result import ThresholdCheck


def result(value: float = 0.5) -> MetricResult:
    fields: dict[str, Any] = {"verdicts": [Verdict(text="t", ok=True)], "usage": Usage(calls=2), "judge": "j"}
    words: dict[str, Any] = {"reason": "because", "noun": "claim", "complaint": "not supported", "vacuous": True}
    return MetricResult(value, metric="m", samples=[0.25, 0.75], scale=(0.0, 1.0), **fields, **words)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False))
def test_it_compares_and_computes_as_its_float(value: float, other: float) -> None:
    score = MetricResult(value, metric="m")
    found = (score < other, score <= other, score > other, score >= other, other < score, other == score)
    assert found == (value < other, value <= other, value > other, value >= other, other < value, other == value)
    assert (hash(score), score.value, f"{score:.3f}") == (hash(value), value, f"{value:.3f}")
    assert type(score.value) is type(score + 1) is float


@pytest.mark.parametrize(
    ("scale", "bound", "meant"),
    [
        *(((0.0, 1.0), 90, "of m, 0 to 1: write 0.9,"), ((0.0, 1.0), 20.0, "of m, 0 to 1: write 0.2,")),
        ((0.0, 1.0), -0.5, "of m, 0 to 1: write a number on it,"),
        ((-1.0, 1.0), 55, "of m, -1 to 1: write 0.55,"),
        ((1.0, 5.0), 0.9, "of m, 1 to 5: write a number on it,"),
        ((0.0, 100.0), 101, "of m, 0 to 100: write a number on it,"),
    ],
)
def test_a_threshold_outside_of_the_scale_is_refused(scale: tuple[float, float], bound: float, meant: str) -> None:
    score = MetricResult(1.0, metric="m", scale=scale)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        for sides in ((score, bound), (bound, score)):
            with pytest.raises(ValueError, match=f"{bound:g} is outside of the scale {meant}"):
                compare(*sides)
    assert score.comparison is None
    assert not operator.eq(score, bound)
    assert -math.inf < score < math.inf
    assert score > MetricResult(-7, metric="n")
    assert all(scale[0] <= score <= end for end in (scale[1], 1))
    assert (MetricResult(1.0, metric="m") >= bound) is (bound <= 1)


def test_copies_keep_everything() -> None:
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="m: a score must be a finite number"):
            MetricResult(value, metric="m")
    for twin in (copy.copy(result()), copy.deepcopy(result()), pickle.loads(pickle.dumps(result()))):
        assert repr(twin) == "<m 0.5, vacuous: because>"
        assert all(getattr(twin, name) == getattr(result(), name) for name in MetricResult.__slots__)
    assert repr(MetricResult(1, metric="m")) == "<m 1>"
    assert json.dumps(result()) == "0.5"
    assert fmean([result(0.0), result(1.0)]) == 0.5


def test_the_last_comparison_with_a_number_is_kept() -> None:
    score = result(0.5)
    sorted([score, result(0.4)])
    assert score < result(0.6)
    assert score != "0.5"
    with pytest.raises(TypeError):
        score < "0.5"  # type: ignore[operator]  # noqa: B015
    assert score.comparison is None
    assert not score >= 0.9
    assert score.comparison == ThresholdCheck(operator=">=", bound=0.9, held=False)
    assert 0.1 <= score
    assert score.comparison == ThresholdCheck(operator=">=", bound=0.1, held=True)


def test_usages_add_up_and_unknown_prices_stay_unknown() -> None:
    known = Usage(calls=1, prompt_tokens=10, completion_tokens=2, cost=0.5)
    assert known + Usage(cached_calls=1, saved=0.25) == replace(known, cached_calls=1, saved=0.25)
    assert (known + Usage(calls=1, cost=None)).cost is None
    assert (known + Usage(calls=1, saved=None)).saved is None


@pytest.mark.parametrize(
    ("place", "text"),
    [
        *(({}, "bad"), ({"file": "a.jsonl"}, "a.jsonl: bad"), ({"file": "a.jsonl", "line": 3}, "a.jsonl:3: bad")),
        ({"file": "a.jsonl", "line": 3, "field": "response"}, "a.jsonl:3: field 'response': bad"),
        *(({"line": 3}, "line 3: bad"), ({"field": "id"}, "field 'id': bad")),
    ],
)
def test_a_dataset_error_says_where(place: dict[str, Any], text: str) -> None:
    error = DatasetError("bad", **place)
    assert str(error) == text
    assert (error.file, error.line, error.field) == tuple(place.get(name) for name in ("file", "line", "field"))


@pytest.mark.parametrize("name", [name for name in dir(pytest_ragmetrics) if name.endswith("Error")])
def test_an_error_goes_by_the_name_that_users_import(name: str) -> None:
    error = getattr(pytest_ragmetrics, name)("no reply")
    assert isinstance(error, RagMetricsError)
    assert f"{type(error).__module__}.{type(error).__qualname__}" == f"pytest_ragmetrics.{name}"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), "no reply")
