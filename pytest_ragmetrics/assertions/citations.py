"""Helpers about the citations of a response."""

from __future__ import annotations

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.citations import CitationValidity
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts


def assert_citations_valid(
    response: str, contexts: object, *, min: float = 1.0, require_citations: bool = False
) -> MetricResult:
    """Assert that the share of the response's citations that point to a context that exists is at least ``min``.

    Contexts are counted from 1. See :class:`~pytest_ragmetrics.metrics.CitationValidity`.

    >>> assert_citations_valid("Otters float [1].", ["Otters float."]).value
    1.0
    """
    __tracebackhide__ = True
    sample = Sample(response=response, retrieved_contexts=as_contexts(contexts))
    return assert_metric(CitationValidity(require_citations=require_citations), sample, min=min)
