"""assert_metric: score a sample, compare with a threshold, record, and explain a failure. Every helper ends here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from pytest_ragmetrics.core.result import MetricResult, check_on_scale
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.votes import voting
from pytest_ragmetrics.runs.wording.failures import explain


def assert_metric(
    metric: Metric,
    sample: Sample | Mapping[str, Any],
    *,
    min: float | None = None,
    max: float | None = None,
    votes: int | None = None,
) -> MetricResult:
    """Assert that a metric scores a sample at least ``min`` (or at most ``max``) and return the result.

    ``sample`` is a :class:`Sample` or a mapping that :meth:`Sample.from_mapping` takes; ``min`` and ``max`` are in
    the units of the metric. The score is the mean of ``votes`` independent judgements, unless given as many as the
    session says; those that cannot change the outcome are not asked, and a metric without a judge has one. Raises
    ``AssertionError`` with the explanation, ``UnscoredError`` when there is no score, ``ValueError`` when neither bound
    is given or one is outside of the metric's scale.

    >>> from pytest_ragmetrics.metrics import QuotedSpansAlignment
    >>> sample = Sample(response='It says "open the valve slowly".', retrieved_contexts=["Open the valve slowly."])
    >>> assert_metric(QuotedSpansAlignment(), sample, min=0.9).value
    1.0
    """
    __tracebackhide__ = True
    _check_metric(metric)
    if min is None and max is None:
        raise ValueError("give min= or max=, the score to hold the metric against")
    for name, bound in (("min", min), ("max", max)):
        if bound is not None:
            check_bound(name, bound, metric=metric.name, scale=metric.scale)
    given = sample if isinstance(sample, Sample) else Sample.from_mapping(sample)
    with voting(metric, votes=votes, least=min, most=max):
        result = metric.score_sample(given)
    if (min is not None and not result >= min) or (max is not None and not result <= max):
        comparison = result.comparison
        raise AssertionError("\n".join(explain(result, comparison)) if comparison else repr(result))
    return result


def _check_metric(given: object) -> None:
    """Raise ``TypeError`` that says what to write for what is no metric."""
    __tracebackhide__ = True
    if isinstance(given, Metric):
        return
    if isinstance(given, type) and issubclass(given, Metric):
        raise TypeError(f"{given.__name__} is the class of a metric: write assert_metric({given.__name__}(), sample)")
    name = given if isinstance(given, str) and given.isidentifier() else "faithfulness"
    what = "the name of one" if name is given else type(given).__name__
    form = f"write assert_metric(metric, sample, min=...), or assert_sample(sample, {name}=...)"
    raise TypeError(f"a metric comes first, not {what}: {form}")


def check_bound(
    name: str, bound: object, *, metric: str = "the metric", scale: tuple[float, float] | None = None
) -> float:
    """Return a bound as a float; raise ``TypeError`` unless it is a number, ``ValueError`` unless it is on the scale.

    ``scale`` are the lowest and the highest score of the metric, where they are known.

    >>> check_bound("min", 1)
    1.0
    >>> check_bound("min", 90, metric="faithfulness", scale=(0.0, 1.0))
    Traceback (most recent call last):
    ValueError: min=90 is outside of the scale of faithfulness, 0 to 1: write 0.9, or give your own metric its scale
    """
    if isinstance(bound, bool) or not isinstance(bound, Real):
        raise TypeError(f"{name} must be a number, not {bound!r}")
    number = float(bound)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, not {bound!r}")
    check_on_scale(f"{name}={number:g}", number, metric=metric, scale=scale)
    return number
