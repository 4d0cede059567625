"""Helpers about whether the response is right, and whether it should have been given at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.answers import AnswerCorrectness, RefusalCorrectness
from pytest_ragmetrics.metrics.claims import FactualCorrectness, NoiseSensitivity
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.ratings import AnswerAccuracy
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts


def assert_factually_correct(
    response: str,
    reference: str,
    *,
    question: str | None = None,
    min: float = 0.7,
    mode: Literal["precision", "recall", "f1"] = "f1",
    beta: float = 1.0,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the claims of the response and of the reference bear each other out to the degree ``min``.

    Raises ``AssertionError`` that shows the claims that are wrong or missing; see
    :class:`~pytest_ragmetrics.metrics.FactualCorrectness` for the parameters and for when there is no score.

    >>> assert_factually_correct("Moths fly at night.", "Moths fly at night.", judge="local").value
    1.0
    """
    __tracebackhide__ = True
    metric = FactualCorrectness(mode=mode, beta=beta, if_empty=if_empty, judge=judge)
    sample = Sample(user_input=question, response=response, reference=reference)
    return assert_metric(metric, sample, min=min, votes=votes)


def assert_answer_correct(
    response: str,
    reference: str,
    *,
    question: str | None = None,
    min: float = 0.7,
    weights: Sequence[float] = (0.75, 0.25),
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult:
    """Assert that the F1 of the statements and the similarity of the texts are, weighed, at least ``min``.

    See :class:`~pytest_ragmetrics.metrics.AnswerCorrectness` for the parameters and for when there is no score.
    """
    __tracebackhide__ = True
    metric = AnswerCorrectness(weights=weights, if_empty=if_empty, judge=judge, embedder=embedder)
    sample = Sample(user_input=question, response=response, reference=reference)
    return assert_metric(metric, sample, min=min, votes=votes)


def assert_answer_accurate(
    question: str,
    response: str,
    reference: str,
    *,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that two ratings of how far response and reference agree are ``min`` in the mean.

    See :class:`~pytest_ragmetrics.metrics.AnswerAccuracy`.
    """
    __tracebackhide__ = True
    sample = Sample(user_input=question, response=response, reference=reference)
    return assert_metric(AnswerAccuracy(judge=judge), sample, min=min, votes=votes)


def assert_noise_resisted(
    response: str,
    contexts: object,
    reference: str,
    *,
    question: str | None = None,
    max: float = 0.2,
    mode: Literal["relevant", "irrelevant"] = "relevant",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the share of claims that are wrong because contexts have them is at most ``max``.

    Raises ``AssertionError`` that shows these claims and the contexts to blame; see
    :class:`~pytest_ragmetrics.metrics.NoiseSensitivity`.
    """
    __tracebackhide__ = True
    metric = NoiseSensitivity(mode=mode, if_empty=if_empty, judge=judge)
    passages = as_contexts(contexts)
    sample = Sample(user_input=question, response=response, reference=reference, retrieved_contexts=passages)
    return assert_metric(metric, sample, max=max, votes=votes)


def assert_refusal_correct(
    question: str,
    response: str,
    contexts: object,
    *,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the response refuses exactly if the contexts cannot answer; several ``votes`` decide by majority.

    See :class:`~pytest_ragmetrics.metrics.RefusalCorrectness`.

    >>> assert_refusal_correct("Who owns the mill?", "I do not know.", "Moths fly at night.", judge="local").value
    1.0
    """
    __tracebackhide__ = True
    sample = Sample(user_input=question, response=response, retrieved_contexts=as_contexts(contexts))
    return assert_metric(RefusalCorrectness(judge=judge), sample, min=min, votes=votes)
