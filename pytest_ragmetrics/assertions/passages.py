"""Helpers about what was retrieved, judged passage by passage, by rating, or by what it names."""

from __future__ import annotations

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.contexts import ContextEntityRecall, ContextPrecision, ContextUtilization
from pytest_ragmetrics.metrics.judged import JudgeLike
from pytest_ragmetrics.metrics.ratings import ContextRelevance
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts


def assert_context_precision(
    question: str,
    contexts: object,
    reference: str,
    *,
    min: float = 0.7,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the average precision of the contexts, by their use for the reference answer, is at least ``min``.

    See :class:`~pytest_ragmetrics.metrics.ContextPrecision`.
    """
    __tracebackhide__ = True
    sample = Sample(user_input=question, reference=reference, retrieved_contexts=as_contexts(contexts))
    return assert_metric(ContextPrecision(judge=judge), sample, min=min, votes=votes)


def assert_context_utilization(
    question: str,
    contexts: object,
    response: str,
    *,
    min: float = 0.7,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the average precision of the contexts, by their use for the response, is at least ``min``.

    See :class:`~pytest_ragmetrics.metrics.ContextUtilization`.
    """
    __tracebackhide__ = True
    sample = Sample(user_input=question, response=response, retrieved_contexts=as_contexts(contexts))
    return assert_metric(ContextUtilization(judge=judge), sample, min=min, votes=votes)


def assert_context_relevance(
    question: str, contexts: object, *, min: float = 0.5, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult:
    """Assert that two ratings of how far the contexts hold what the question asks for are ``min`` in the mean.

    See :class:`~pytest_ragmetrics.metrics.ContextRelevance`.
    """
    __tracebackhide__ = True
    sample = Sample(user_input=question, retrieved_contexts=as_contexts(contexts))
    return assert_metric(ContextRelevance(judge=judge), sample, min=min, votes=votes)


def assert_entities_recalled(
    contexts: object,
    reference: str,
    *,
    min: float = 0.8,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the share of the reference's entities that the contexts name is at least ``min``.

    Raises ``AssertionError`` that lists those missing; see
    :class:`~pytest_ragmetrics.metrics.ContextEntityRecall`.

    >>> assert_entities_recalled("The harbour of Lindow silted up.", "It was Lindow.", judge="local").value
    1.0
    """
    __tracebackhide__ = True
    sample = Sample(reference=reference, retrieved_contexts=as_contexts(contexts))
    return assert_metric(ContextEntityRecall(if_empty=if_empty, judge=judge), sample, min=min, votes=votes)
