"""Helpers that hold the response against the reference as strings; they ask no judge."""

from __future__ import annotations

from typing import Literal

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.base import check_choice
from pytest_ragmetrics.metrics.strings import (
    BleuScore,
    CHRFScore,
    ExactMatch,
    Measure,
    NonLLMStringSimilarity,
    RougeMode,
    RougeScore,
    RougeType,
    StringPresence,
    TokenF1,
    Tokenizer,
)
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample


def assert_exact_match(response: str, reference: str, *, min: float = 1.0) -> MetricResult:
    """Assert that the response is the reference, character for character.

    >>> assert_exact_match("Oslo", "Oslo").value
    1.0
    """
    __tracebackhide__ = True
    return assert_metric(ExactMatch(), Sample(response=response, reference=reference), min=min)


def assert_string_present(response: str, reference: str, *, min: float = 1.0) -> MetricResult:
    """Assert that the reference stands in the response, character for character.

    >>> assert_string_present("The capital is Oslo.", "Oslo").value
    1.0
    """
    __tracebackhide__ = True
    return assert_metric(StringPresence(), Sample(response=response, reference=reference), min=min)


def assert_text_alike(
    response: str,
    reference: str,
    *,
    metric: Literal["similarity", "token_f1"] = "similarity",
    measure: Measure = "levenshtein",
    min: float = 0.8,
) -> MetricResult:
    """Assert that response and reference are at least ``min`` alike, by their characters or by the words they share.

    >>> assert_text_alike("In May 1903.", "May 1903", metric="token_f1").value
    0.8
    """
    __tracebackhide__ = True
    kinds = {"similarity": NonLLMStringSimilarity(measure=measure), "token_f1": TokenF1()}
    return assert_metric(
        kinds[check_choice("metric", metric, tuple(kinds))], Sample(response=response, reference=reference), min=min
    )


def assert_bleu(response: str, reference: str, *, min: float = 0.3, tokenize: Tokenizer = "auto") -> MetricResult:
    """Assert that the BLEU score of the response is at least ``min``, in [0, 1]; needs the extra ``[text]``.

    >>> assert_bleu("The pump needs two minutes.", "The pump needs two minutes.").value
    1.0
    """
    __tracebackhide__ = True
    return assert_metric(BleuScore(tokenize=tokenize), Sample(response=response, reference=reference), min=min)


def assert_chrf(
    response: str, reference: str, *, min: float = 0.5, char_order: int = 6, word_order: int = 0, beta: int = 2
) -> MetricResult:
    """Assert that the chrF score of the response is at least ``min``, in [0, 1]; needs the extra ``[text]``."""
    __tracebackhide__ = True
    metric = CHRFScore(char_order=char_order, word_order=word_order, beta=beta)
    return assert_metric(metric, Sample(response=response, reference=reference), min=min)


def assert_rouge(
    response: str,
    reference: str,
    *,
    min: float = 0.5,
    rouge_type: RougeType = "rougeL",
    mode: RougeMode = "fmeasure",
    use_stemmer: bool = False,
) -> MetricResult:
    """Assert that the ROUGE score of the response is at least ``min``; needs the extra ``[text]``."""
    __tracebackhide__ = True
    metric = RougeScore(rouge_type=rouge_type, mode=mode, use_stemmer=use_stemmer)
    return assert_metric(metric, Sample(response=response, reference=reference), min=min)
