"""Helpers for scales of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.critiques import Rubric, SimpleCriteria
from pytest_ragmetrics.metrics.judged import JudgeLike
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample


def assert_rubric(
    sample: Sample | Mapping[str, Any],
    steps: Sequence[str] | Mapping[int, str] | Mapping[str, str],
    *,
    name: str | None = None,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the step of your scale that fits a sample best, brought to [0, 1], is at least ``min``.

    See :class:`~pytest_ragmetrics.metrics.Rubric`.

    >>> judge = lambda prompt: '{"reason": "It says please.", "rating": 2}'
    >>> assert_rubric({"response": "Please wait."}, ["Rude.", "Polite."], judge=judge).value
    1.0
    """
    __tracebackhide__ = True
    return assert_metric(Rubric(steps=steps, name=name, judge=judge), sample, min=min, votes=votes)


def assert_criteria(
    sample: Sample | Mapping[str, Any],
    definition: str,
    *,
    highest: int = 5,
    name: str | None = None,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the number from 0 to ``highest`` that a sample is given, divided by ``highest``, is at least ``min``.

    See :class:`~pytest_ragmetrics.metrics.SimpleCriteria`.

    >>> judge = lambda prompt: '{"reason": "It says please.", "rating": 4}'
    >>> assert_criteria({"response": "Please wait."}, "How polite is it?", judge=judge).value
    0.8
    """
    __tracebackhide__ = True
    metric = SimpleCriteria(definition=definition, highest=highest, name=name, judge=judge)
    return assert_metric(metric, sample, min=min, votes=votes)
