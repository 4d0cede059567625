"""Parameters of metrics and the errors on wrong ones; F scores."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import Sample, assert_faithful, metric, metrics
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.metrics.base import Metric, code_of, f_beta, f_of_counts, rule_of


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.just(0.0) | st.floats(0.01, 20))
def test_f_scores(found: int, surplus: int, missing: int, beta: float) -> None:
    precision = found / (found + surplus) if found + surplus else 0.0
    recall = found / (found + missing) if found + missing else 0.0
    below = beta * beta * precision + recall
    expected = (1 + beta * beta) * precision * recall / below if below else 0.0
    assert f_beta(precision, recall, beta) == pytest.approx(expected, abs=1e-9)
    assert f_of_counts(found, surplus, missing, beta=beta) == pytest.approx(f_beta(precision, recall, beta))
    assert f_of_counts(found, surplus, missing) == pytest.approx(f_beta(precision, recall))


@pytest.mark.parametrize(("score", "bound", "is_refused"), [(0.5, 50, True), (0.5, 0.5, False), (3.0, 2.5, False)])
def test_a_result_knows_the_scale_of_its_metric(score: float, bound: float, is_refused: bool) -> None:
    """A plain comparison with a number outside of it is refused, unless the metric has left it by itself."""
    result = metric(name="mine")(lambda response: len(response) * score).score(response=".")
    with pytest.raises(ValueError, match=r"of mine, 0 to 1: write 0\.5,") if is_refused else nullcontext():
        assert result >= bound


ROW: Any = {"answer": "So it is.", "contexts": ["So it is."]}
SAMPLE: Any = Sample.from_mapping(ROW)
ALIGNED: Any = metrics.QuotedSpansAlignment()
FIELDS = r"takes fields by name, score\(response=\.\.\., retrieved_contexts=\.\.\.\); write score_sample\(sample\)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ALIGNED.score(SAMPLE), FIELDS),
        (lambda: ALIGNED.score(ROW), FIELDS),
        (lambda: ALIGNED.score("So.", ["So."]), FIELDS),
        (lambda: ALIGNED.score(sample=SAMPLE), FIELDS),
        (lambda: ALIGNED.score(row=ROW), FIELDS),
        (lambda: asyncio.run(ALIGNED.ascore(SAMPLE)), FIELDS),
        (lambda: ALIGNED.score_sample(ROW), r"a Sample, not dict: .* score_sample\(Sample\.from_mapping\(row\)\)"),
        (lambda: asyncio.run(ALIGNED.ascore_sample("So.")), "a Sample, not str: write"),
        (lambda: assert_faithful(ROW, ["So."]), r"response must be a str, .*; assert_sample\(row, \.\.\.\) takes"),
    ],
)
def test_a_sample_in_the_wrong_place_is_told_where_it_goes(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def _brevity(limit: int) -> type[Metric]:
    if limit:

        class Brevity(Metric):
            limit = 80

            def measure(self, sample: Sample) -> MetricResult:
                return MetricResult(float(len(sample.response or "") <= self.limit), metric="brevity")

        return Brevity

    class Brevity(Metric):  # type: ignore[no-redef] # of the same name
        def measure(self, sample: Sample) -> MetricResult:
            return MetricResult(1.0, metric="brevity")

    return Brevity


def test_the_code_of_a_class_is_known_without_parsing_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two threads parse at once Python 3.11.7 raises SystemError in either, and a score would be lost."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", refuse)
    limited, unlimited = code_of(_brevity(1)), code_of(_brevity(0))
    assert "" not in (limited, unlimited)
    assert limited == code_of(_brevity(2)) != unlimited


@pytest.mark.parametrize("usual", [np.ones(2), 0.5])
def test_no_class_and_no_parameter_keeps_a_score_from_being_recorded(usual: Any) -> None:
    """A class without source or signature, and a default that does not compare to true or false."""

    class Weighted(Metric):
        name = "weighted"

        def __init__(self, weights: Any = usual) -> None:
            super().__init__()
            self.weights = weights

        def measure(self, sample: Sample) -> MetricResult:
            return MetricResult(1.0, metric="weighted")

    made: Any = type("weighted (", (Weighted,), {})
    made.__signature__ = "none"
    assert rule_of(Weighted(weights=(0.5, 0.5))) != rule_of(Weighted())
    assert rule_of(made(weights=(0.5, 0.5))) == "/"
    assert made().score(response="Moths.").value == 1.0
