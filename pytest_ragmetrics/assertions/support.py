"""Helpers about whether the contexts bear the response out: as a whole, without contradiction, as it cites them."""

from __future__ import annotations

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.citations import CitationPrecision, CitationRecall
from pytest_ragmetrics.metrics.claims import Hallucination
from pytest_ragmetrics.metrics.judged import JudgeLike
from pytest_ragmetrics.metrics.ratings import ResponseGroundedness
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts


def assert_grounded(
    response: str, contexts: object, *, min: float = 0.75, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult:
    """Assert that two ratings of how far the contexts bear the response out are ``min`` in the mean.

    See :class:`~pytest_ragmetrics.metrics.ResponseGroundedness`.
    """
    __tracebackhide__ = True
    return assert_metric(ResponseGroundedness(judge=judge), _given(response, contexts), min=min, votes=votes)


def assert_not_hallucinated(
    response: str, contexts: object, *, min: float = 1.0, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult:
    """Assert that the share of the contexts that the response does not contradict is at least ``min``.

    Raises ``AssertionError`` that shows the contexts contradicted; see
    :class:`~pytest_ragmetrics.metrics.Hallucination`.

    >>> assert_not_hallucinated("Moths fly at night.", ["Moths fly at night."], judge="local").value
    1.0
    """
    __tracebackhide__ = True
    return assert_metric(Hallucination(judge=judge), _given(response, contexts), min=min, votes=votes)


def assert_citations_recalled(
    response: str,
    contexts: object,
    *,
    min: float = 0.8,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the share of the response's sentences that the contexts they cite support is at least ``min``.

    Contexts are counted from 1. See :class:`~pytest_ragmetrics.metrics.CitationRecall`.

    >>> assert_citations_recalled("Moths fly at night [1].", ["Moths fly at night."], judge="local").value
    1.0
    """
    __tracebackhide__ = True
    metric = CitationRecall(if_empty=if_empty, judge=judge)
    return assert_metric(metric, _given(response, contexts), min=min, votes=votes)


def assert_citations_precise(
    response: str,
    contexts: object,
    *,
    min: float = 0.8,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the share of the response's citations that are of use for their sentence is at least ``min``.

    Contexts are counted from 1. See :class:`~pytest_ragmetrics.metrics.CitationPrecision`.
    """
    __tracebackhide__ = True
    metric = CitationPrecision(if_empty=if_empty, judge=judge)
    return assert_metric(metric, _given(response, contexts), min=min, votes=votes)


def _given(response: str, contexts: object) -> Sample:
    return Sample(response=response, retrieved_contexts=as_contexts(contexts))
