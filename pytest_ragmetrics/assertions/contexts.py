"""Helpers about what was retrieved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.contexts import ContextRecall, ContextRelevancy, joined
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.ratings import ContextPrecisionProportion
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts


def assert_context_relevant(
    question: str,
    contexts: object,
    *,
    min: float,
    strictness: int = 1,
    agreement: Literal["bert_score", "jaccard", "jaccard_score"] = "bert_score",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult:
    """Assert that the share of context sentences needed to answer the question is at least ``min``.

    See :class:`~pytest_ragmetrics.metrics.ContextRelevancy` for the parameters.
    """
    __tracebackhide__ = True
    metric = ContextRelevancy(
        strictness=strictness, agreement=agreement, if_empty=if_empty, judge=judge, embedder=embedder
    )
    sample = Sample(user_input=question, retrieved_contexts=as_contexts(contexts))
    return assert_metric(metric, sample, min=min, votes=votes)


def assert_context_recalled(
    contexts: object,
    reference: str | Sequence[str],
    *,
    question: str | None = None,
    min: float = 0.8,
    unit: Literal["sentences", "claims"] = "sentences",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the share of the reference's sentences that the contexts hold is at least ``min``.

    ``reference`` is a text or several. Raises ``AssertionError`` that shows what is not in the contexts; see
    :class:`~pytest_ragmetrics.metrics.ContextRecall` for the parameters.
    """
    __tracebackhide__ = True
    sample = Sample(user_input=question, reference=joined(reference), retrieved_contexts=as_contexts(contexts))
    return assert_metric(ContextRecall(unit=unit, if_empty=if_empty, judge=judge), sample, min=min, votes=votes)


def assert_contexts_precise(
    question: str, contexts: object, *, min: float, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult:
    """Assert that the share of the contexts that help to answer the question is at least ``min``."""
    __tracebackhide__ = True
    sample = Sample(user_input=question, retrieved_contexts=as_contexts(contexts))
    return assert_metric(ContextPrecisionProportion(judge=judge), sample, min=min, votes=votes)
