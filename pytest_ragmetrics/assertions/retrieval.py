"""Helpers about which passages were retrieved, and in what order; they ask no judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.base import check_choice
from pytest_ragmetrics.metrics.retrieval import (
    MAP,
    MRR,
    NDCG,
    HitRate,
    NonLLMContextPrecision,
    NonLLMContextRecall,
    PrecisionAtK,
    RankingMetric,
    RecallAtK,
)
from pytest_ragmetrics.metrics.strings import Measure
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts

_RANKINGS: Mapping[str, type[RankingMetric]] = {
    "recall": RecallAtK,
    "precision": PrecisionAtK,
    "hit_rate": HitRate,
    "mrr": MRR,
    "map": MAP,
    "ndcg": NDCG,
}


def assert_retrieved(
    retrieved_ids: Sequence[str | int],
    reference_ids: Sequence[str | int] | Mapping[str | int, float],
    *,
    metric: Literal["recall", "precision", "hit_rate", "mrr", "map", "ndcg"] = "recall",
    k: int | None = 5,
    min: float = 0.8,
) -> MetricResult:
    """Assert that a metric of the ids retrieved, best first, is at least ``min`` for the top ``k`` of them.

    For ndcg, ``reference_ids`` may be a mapping of ids to grades. Raises ``AssertionError`` that shows the ids that
    are missing, or retrieved in vain; see the classes in ``pytest_ragmetrics.metrics`` for the formulas.

    >>> assert_retrieved(["a", "b", "c"], ["a", "c"], k=3).value
    1.0
    """
    __tracebackhide__ = True
    kind = _RANKINGS[check_choice("metric", metric, tuple(_RANKINGS))]
    if isinstance(retrieved_ids, (AbstractSet, Mapping)):
        msg = f"retrieved_ids must be a list, best first, not {type(retrieved_ids).__name__}"
        raise TypeError(msg)
    if isinstance(reference_ids, Mapping):
        if kind is not NDCG:
            msg = f"reference_ids with grades are for metric='ndcg', not {metric!r}: give a list of ids"
            raise TypeError(msg)
        sample = Sample(retrieved_context_ids=retrieved_ids, metadata={"relevance": reference_ids})
    else:
        sample = Sample(retrieved_context_ids=retrieved_ids, reference_context_ids=reference_ids)
    return assert_metric(kind(k=k), sample, min=min)


def assert_contexts_alike(
    contexts: object,
    reference_contexts: object,
    *,
    metric: Literal["recall", "precision"] = "recall",
    threshold: float = 0.5,
    measure: Measure = "levenshtein",
    min: float = 0.8,
) -> MetricResult:
    """Assert that the share of the reference contexts that were retrieved is at least ``min``, told by characters.

    With ``metric="precision"``, that the average precision of the contexts is. See
    :class:`~pytest_ragmetrics.metrics.NonLLMContextRecall` for ``threshold`` and ``measure``.

    >>> assert_contexts_alike(["Whales sing.", "Moths fly at night"], ["Moths fly at night."]).value
    1.0
    """
    __tracebackhide__ = True
    kinds = {"recall": NonLLMContextRecall, "precision": NonLLMContextPrecision}
    kind = kinds[check_choice("metric", metric, tuple(kinds))]
    sample = Sample(
        retrieved_contexts=as_contexts(contexts),
        reference_contexts=as_contexts(reference_contexts, name="reference_contexts"),
    )
    return assert_metric(kind(threshold=threshold, measure=measure), sample, min=min)
