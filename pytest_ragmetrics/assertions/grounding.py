"""Helpers about whether what the response says stands in the contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.claims import Faithfulness
from pytest_ragmetrics.metrics.contexts import joined
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.metrics.judged import JudgeLike
from pytest_ragmetrics.metrics.quotes import QuotedSpansAlignment
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts


def assert_quoted_spans_aligned(
    response: str,
    contexts: object,
    *,
    min: float = 0.9,
    casefold: bool = True,
    min_span_words: int = 3,
    matching: Literal["editorial", "verbatim"] = "editorial",
    require_quotes: bool = False,
) -> MetricResult:
    """Assert that the share of the response's quotations that stand in a context is at least ``min``.

    ``contexts`` is a text, a document or a list of them. The other parameters are those of
    :class:`~pytest_ragmetrics.metrics.QuotedSpansAlignment`. Raises ``AssertionError`` that shows every quotation not
    found, the passage nearest to it and the words that differ. Needs no judge and no network.

    >>> assert_quoted_spans_aligned('It says "open the valve slowly".', ["Open the valve slowly."]).value
    1.0
    """
    __tracebackhide__ = True
    metric = QuotedSpansAlignment(
        casefold=casefold, min_span_words=min_span_words, matching=matching, require_quotes=require_quotes
    )
    sample = Sample(response=response, retrieved_contexts=as_contexts(contexts))
    return assert_metric(metric, sample, min=min)


def assert_faithful(
    response: str,
    contexts: object,
    *,
    question: str | None = None,
    min: float = 0.8,
    unit: Literal["claims", "sentences"] = "claims",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the share of the response's claims that the contexts support is at least ``min``.

    Raises ``AssertionError`` that shows the claims not supported and why; see
    :class:`~pytest_ragmetrics.metrics.Faithfulness` for the parameters and for when there is no score.

    >>> assert_faithful("Moths fly at night.", "Moths fly at night.", judge="local").value
    1.0
    """
    __tracebackhide__ = True
    sample = Sample(user_input=question, response=response, retrieved_contexts=as_contexts(contexts))
    return assert_metric(Faithfulness(unit=unit, if_empty=if_empty, judge=judge), sample, min=min, votes=votes)


def assert_lexically_grounded(response: str, contexts: object, *, min: float = 0.4) -> MetricResult:
    """Assert that the share of the response's content words that stand in the contexts is at least ``min``.

    >>> assert_lexically_grounded("Moths fly.", "Moths fly at night.").value
    1.0
    """
    __tracebackhide__ = True
    return assert_metric(LexicalGrounding(), _grounded(response, contexts), min=min)


def assert_lexically_recalled(contexts: object, reference: str | Sequence[str], *, min: float) -> MetricResult:
    """Assert that the share of the reference's content words that stand in the contexts is at least ``min``."""
    __tracebackhide__ = True
    sample = Sample(reference=joined(reference), retrieved_contexts=as_contexts(contexts))
    return assert_metric(LexicalContextRecall(), sample, min=min)


def assert_numbers_aligned(response: str, contexts: object, *, min: float = 1.0) -> MetricResult:
    """Assert that the share of the response's numbers and dates that stand in a context is at least ``min``."""
    __tracebackhide__ = True
    return assert_metric(NumbersAligned(), _grounded(response, contexts), min=min)


def assert_names_aligned(response: str, contexts: object, *, min: float = 1.0) -> MetricResult:
    """Assert that the share of the response's proper names that stand in a context is at least ``min``."""
    __tracebackhide__ = True
    return assert_metric(NamesAligned(), _grounded(response, contexts), min=min)


def _grounded(response: str, contexts: object) -> Sample:
    return Sample(response=response, retrieved_contexts=as_contexts(contexts))
