"""Assertion helpers: score, hold against a threshold, and fail with the evidence.

A helper raises ``AssertionError`` with the whole explanation itself, so it explains under ``--assert=plain``
and ``python -O`` too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pytest_ragmetrics.explain import explain
from pytest_ragmetrics.metrics.answer_relevancy import AnswerRelevancy
from pytest_ragmetrics.metrics.context_recall import ContextRecall, joined
from pytest_ragmetrics.metrics.context_relevancy import ContextRelevancy
from pytest_ragmetrics.metrics.critique import AspectCritique
from pytest_ragmetrics.metrics.faithfulness import Faithfulness
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.quoted_spans import QuotedSpansAlignment
from pytest_ragmetrics.metrics.ragas_score import RagasScore
from pytest_ragmetrics.metrics.ratings import ContextPrecisionProportion, Correctness, Relevance
from pytest_ragmetrics.metrics.registry import metric_for
from pytest_ragmetrics.metrics.similarity import SemanticSimilarity
from pytest_ragmetrics.metrics.summary import SummaryScore
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts


def assert_metric(
    metric: Metric, sample: Sample | Mapping[str, Any], *, min: float | None = None, max: float | None = None
) -> MetricResult:
    """Assert that a metric scores a sample at least ``min`` (or at most ``max``) and return the result.

    ``sample`` is a :class:`Sample` or a mapping that :meth:`Sample.from_mapping` takes; ``min`` and ``max`` are in
    the units of the metric. Raises ``AssertionError`` with the explanation, ``UnscoredError`` when there is no
    score, ``ValueError`` when neither bound is given.

    >>> from pytest_ragmetrics.metrics import QuotedSpansAlignment
    >>> sample = Sample(response='It says "open the valve slowly".', retrieved_contexts=["Open the valve slowly."])
    >>> assert_metric(QuotedSpansAlignment(), sample, min=0.9).value
    1.0
    """
    __tracebackhide__ = True
    _check_bounds(min, max)
    result = metric.score_sample(sample if isinstance(sample, Sample) else Sample.from_mapping(sample))
    if (min is not None and not result >= min) or (max is not None and not result <= max):
        raise AssertionError(_explanation(result))
    return result


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
    return assert_metric(Faithfulness(unit=unit, if_empty=if_empty, judge=judge), sample, min=min)


def assert_answer_relevant(
    question: str,
    response: str,
    *,
    min: float = 0.7,
    strictness: int = 3,
    noncommittal: Literal["all", "any", "majority"] = "all",
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult:
    """Assert that questions which the response answers are, in the mean, at least ``min`` alike to the question.

    See :class:`~pytest_ragmetrics.metrics.AnswerRelevancy` for the parameters.
    """
    __tracebackhide__ = True
    metric = AnswerRelevancy(strictness=strictness, noncommittal=noncommittal, judge=judge, embedder=embedder)
    return assert_metric(metric, Sample(user_input=question, response=response), min=min)


def assert_summarizes(
    response: str,
    contexts: object,
    *,
    min: float = 0.5,
    length_penalty: bool = True,
    coeff: float = 0.5,
    if_empty: float | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the response, as a summary of the contexts, scores at least ``min``.

    Raises ``AssertionError`` that shows the questions it leaves open; see
    :class:`~pytest_ragmetrics.metrics.SummaryScore` for the parameters and for when there is no score.
    """
    __tracebackhide__ = True
    metric = SummaryScore(length_penalty=length_penalty, coeff=coeff, if_empty=if_empty, judge=judge)
    return assert_metric(metric, Sample(response=response, reference_contexts=as_contexts(contexts)), min=min)


def assert_context_relevant(
    question: str,
    contexts: object,
    *,
    min: float,
    strictness: int = 1,
    agreement: Literal["bert_score", "jaccard", "jaccard_score"] = "bert_score",
    if_empty: float | None = None,
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
    return assert_metric(metric, Sample(user_input=question, retrieved_contexts=as_contexts(contexts)), min=min)


def assert_context_recalled(
    contexts: object,
    reference: str | Sequence[str],
    *,
    question: str | None = None,
    min: float = 0.8,
    unit: Literal["sentences", "claims"] = "sentences",
    if_empty: float | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the share of the reference's sentences that the contexts hold is at least ``min``.

    ``reference`` is a text or several. Raises ``AssertionError`` that shows what is not in the contexts; see
    :class:`~pytest_ragmetrics.metrics.ContextRecall` for the parameters.
    """
    __tracebackhide__ = True
    sample = Sample(user_input=question, reference=joined(reference), retrieved_contexts=as_contexts(contexts))
    return assert_metric(ContextRecall(unit=unit, if_empty=if_empty, judge=judge), sample, min=min)


def assert_aspect(
    sample: Sample | Mapping[str, Any],
    aspect: str,
    *,
    definition: str | None = None,
    good: Literal[0, 1] | None = None,
    strictness: int = 1,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the judgement of an aspect is the good one: harmless, coherent, but not harmful.

    ``aspect`` names a predefined one (harmfulness, maliciousness, coherence, correctness, conciseness, harmlessness)
    or, with its ``definition``, one of your own, where 1 is ``good`` unless you say 0. See
    :class:`~pytest_ragmetrics.metrics.AspectCritique`.
    """
    __tracebackhide__ = True
    metric = AspectCritique(name=aspect, definition=definition, good=good, strictness=strictness, judge=judge)
    return assert_metric(metric, sample, **{"min" if metric.good else "max": float(metric.good)})


def assert_relevant(question: str, response: str, *, min: float, judge: JudgeLike | None = None) -> MetricResult:
    """Assert that the judge rates how the response addresses the question at least ``min``."""
    __tracebackhide__ = True
    return assert_metric(Relevance(judge=judge), Sample(user_input=question, response=response), min=min)


def assert_correct(
    response: str,
    reference: str,
    *,
    min: float,
    method: Literal["judge", "token_f1"] = "judge",
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the response says what the reference says: the judge's rating or the F1 of the words is ``min``.

    >>> assert_correct("in May 1903", "May 1903", min=0.8, method="token_f1").value
    0.8
    """
    __tracebackhide__ = True
    return assert_metric(
        Correctness(method=method, judge=judge), Sample(response=response, reference=reference), min=min
    )


def assert_semantically_similar(
    response: str, reference: str, *, min: float, embedder: EmbedderLike | None = None
) -> MetricResult:
    """Assert that the cosine similarity of the response and the reference is at least ``min``."""
    __tracebackhide__ = True
    return assert_metric(SemanticSimilarity(embedder=embedder), Sample(response=response, reference=reference), min=min)


def assert_contexts_precise(
    question: str, contexts: object, *, min: float, judge: JudgeLike | None = None
) -> MetricResult:
    """Assert that the share of the contexts that help to answer the question is at least ``min``."""
    __tracebackhide__ = True
    sample = Sample(user_input=question, retrieved_contexts=as_contexts(contexts))
    return assert_metric(ContextPrecisionProportion(judge=judge), sample, min=min)


def assert_ragas_score(
    sample: Sample | Mapping[str, Any],
    *,
    min: float,
    metrics: Sequence[str | Metric] = ("faithfulness", "answer_relevancy", "context_recall"),
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult:
    """Assert that the harmonic mean of several metrics of a sample is at least ``min``; they are scored together.

    >>> fields = {"response": "Moths fly.", "retrieved_contexts": ["Moths fly at night."]}
    >>> assert_ragas_score(fields, metrics=("lexical_grounding", "numbers_aligned"), min=0.9).value
    1.0
    """
    __tracebackhide__ = True
    made = [metric_for(metric, judge=judge, embedder=embedder) for metric in metrics]
    return assert_metric(RagasScore(metrics=made), sample, min=min)


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


def _check_bounds(min: float | None, max: float | None) -> None:
    if min is None and max is None:
        msg = "give min= or max=, the score to hold the metric against"
        raise ValueError(msg)
    for name, bound in (("min", min), ("max", max)):
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, (int, float))):
            msg = f"{name} must be a number, not {bound!r}"
            raise TypeError(msg)
        if bound is not None and not math.isfinite(bound):
            msg = f"{name} must be a finite number, not {bound!r}"
            raise ValueError(msg)


def _explanation(result: MetricResult) -> str:
    comparison = result.comparison
    return "\n".join(explain(result, comparison)) if comparison else repr(result)
