"""Helpers about the response: does it address the question, say what it should, and do no harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.answers import AnswerRelevancy, SemanticSimilarity
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.critiques import AspectCritique
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.ragas_score import RagasScore
from pytest_ragmetrics.metrics.ratings import Correctness, Relevance
from pytest_ragmetrics.metrics.registry import metric_for
from pytest_ragmetrics.metrics.summary import SummaryScore
from pytest_ragmetrics.metrics.votes import voting, wanted
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts

# A mean of votes of 0 and 1 lies above it where most of them are 1.
_MAJORITY = 0.5


def assert_answer_relevant(
    question: str,
    response: str,
    *,
    min: float = 0.7,
    strictness: int = 3,
    noncommittal: Literal["all", "any", "majority"] = "all",
    votes: int | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult:
    """Assert that questions which the response answers are, in the mean, at least ``min`` alike to the question.

    See :class:`~pytest_ragmetrics.metrics.AnswerRelevancy` for the parameters.
    """
    __tracebackhide__ = True
    metric = AnswerRelevancy(strictness=strictness, noncommittal=noncommittal, judge=judge, embedder=embedder)
    return assert_metric(metric, Sample(user_input=question, response=response), min=min, votes=votes)


def assert_summarizes(
    response: str,
    contexts: object,
    *,
    min: float = 0.5,
    length_penalty: bool = True,
    coeff: float = 0.5,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the response, as a summary of the contexts, scores at least ``min``.

    Raises ``AssertionError`` that shows the questions it leaves open; see
    :class:`~pytest_ragmetrics.metrics.SummaryScore` for the parameters and for when there is no score.
    """
    __tracebackhide__ = True
    metric = SummaryScore(length_penalty=length_penalty, coeff=coeff, if_empty=if_empty, judge=judge)
    sample = Sample(response=response, reference_contexts=as_contexts(contexts))
    return assert_metric(metric, sample, min=min, votes=votes)


def assert_aspect(
    sample: Sample | Mapping[str, Any],
    aspect: str,
    *,
    definition: str | None = None,
    good: Literal[0, 1] | None = None,
    strictness: int = 1,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the judgement of an aspect is the good one: harmless, coherent, but not harmful.

    ``aspect`` names a predefined one (harmfulness, maliciousness, coherence, correctness, conciseness, harmlessness)
    or, with its ``definition``, one of your own, where 1 is ``good`` unless you say 0. Several
    ``votes``, an odd number, decide by majority: they are held against 0.5, and 2 of 3 that agree are enough. See
    :class:`~pytest_ragmetrics.metrics.AspectCritique`.
    """
    __tracebackhide__ = True
    metric = AspectCritique(name=aspect, definition=definition, good=good, strictness=strictness, judge=judge)
    with voting(None, votes=votes):
        number = wanted()
    if number % 2 == 0:
        given = "votes=, the marker rag_votes or --rag-votes"
        msg = f"{metric.name}: {number} votes may have no majority of yes or no; make it an odd number ({given})"
        raise ValueError(msg)
    bound = float(metric.good) if number == 1 else _MAJORITY
    return assert_metric(metric, sample, **{"min" if metric.good else "max": bound}, votes=number)


def assert_relevant(
    question: str, response: str, *, min: float, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult:
    """Assert that the judge rates how the response addresses the question at least ``min``."""
    __tracebackhide__ = True
    sample = Sample(user_input=question, response=response)
    return assert_metric(Relevance(judge=judge), sample, min=min, votes=votes)


def assert_correct(
    response: str,
    reference: str,
    *,
    min: float,
    method: Literal["judge", "token_f1"] = "judge",
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the response says what the reference says: the judge's rating or the F1 of the words is ``min``.

    >>> assert_correct("in May 1903", "May 1903", min=0.8, method="token_f1").value
    0.8
    """
    __tracebackhide__ = True
    sample = Sample(response=response, reference=reference)
    return assert_metric(Correctness(method=method, judge=judge), sample, min=min, votes=votes)


def assert_semantically_similar(
    response: str, reference: str, *, min: float, embedder: EmbedderLike | None = None
) -> MetricResult:
    """Assert that the cosine similarity of the response and the reference is at least ``min``."""
    __tracebackhide__ = True
    return assert_metric(SemanticSimilarity(embedder=embedder), Sample(response=response, reference=reference), min=min)


def assert_ragas_score(
    sample: Sample | Mapping[str, Any],
    *,
    min: float,
    metrics: Sequence[str | Metric] = ("faithfulness", "answer_relevancy", "context_recall"),
    votes: int | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult:
    """Assert that the harmonic mean of several metrics of a sample is at least ``min``; they are scored together.

    Each of them is the mean of ``votes`` independent judgements.

    >>> fields = {"response": "Moths fly.", "retrieved_contexts": ["Moths fly at night."]}
    >>> assert_ragas_score(fields, metrics=("lexical_grounding", "numbers_aligned"), min=0.9).value
    1.0
    """
    __tracebackhide__ = True
    made = [metric_for(metric, judge=judge, embedder=embedder) for metric in metrics]
    return assert_metric(RagasScore(metrics=made), sample, min=min, votes=votes)
