"""QuotedSpansAlignment: whether the quotations of a response are in its contexts; needs no judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from pytest_ragmetrics.metrics.assertion import assert_metric
from pytest_ragmetrics.metrics.base import Metric, check_choice, check_count, check_flag
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample, as_contexts
from pytest_ragmetrics.text.alignment import Matching, Sources
from pytest_ragmetrics.text.quotations import find_quotations


class QuotedSpansAlignment(Metric):
    """The fraction of quoted spans in the response that are found in one of the contexts.

    Spans shorter than ``min_span_words`` words do not count. ``matching="verbatim"`` overlooks white space, case
    (unless ``casefold=False``), typography and markup; ``"editorial"`` also ellipses, bracketed changes and punctuation
    at the ends. A response without quotations scores 1.0 and is ``vacuous``, or 0.0 with ``require_quotes=True``.
    Raises ``ValueError`` for a parameter out of range.

    >>> result = QuotedSpansAlignment().score(
    ...     response='It says "the tide turned at noon" and "the boats were lost".',
    ...     retrieved_contexts=["The tide turned at noon, and all boats came home."],
    ... )
    >>> result.value, result.reason
    (0.5, 'Matched 1/2 quoted spans')
    """

    name = "quoted_spans_alignment"
    noun = "quoted span"
    complaint = "not found"
    helper = "assert_quoted_spans_aligned"
    requires = ("response", "retrieved_contexts")

    def __init__(
        self,
        *,
        casefold: bool = True,
        min_span_words: int = 3,
        matching: Matching = "editorial",
        require_quotes: bool = False,
    ) -> None:
        self.casefold = check_flag("casefold", casefold)
        self.min_span_words = check_count("min_span_words", min_span_words)
        self.matching: Matching = check_choice("matching", matching, get_args(Matching))
        self.require_quotes = check_flag("require_quotes", require_quotes)

    def measure(self, sample: Sample) -> MetricResult:
        """Score the quoted spans of ``response`` against ``retrieved_contexts``."""
        verdicts = _judge_spans(
            sample.response or "",
            sample.retrieved_contexts or (),
            casefold=self.casefold,
            min_words=self.min_span_words,
            matching=self.matching,
        )
        if verdicts:
            matched = sum(verdict.ok for verdict in verdicts)
            reason = f"Matched {matched}/{len(verdicts)} quoted spans"
            return MetricResult(matched / len(verdicts), metric=self.name, reason=reason, verdicts=verdicts)
        reason = "No quoted spans found in response"
        if self.require_quotes:
            reason += f", and require_quotes asks for at least one of {self.min_span_words} or more words"
        return MetricResult(not self.require_quotes, metric=self.name, reason=reason, vacuous=not self.require_quotes)


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
    """Assert that the share of the response's quotations that are found in a context is at least ``min``.

    Raises ``AssertionError`` that shows each quotation not found, the passage nearest to it and the words that differ.
    Parameters and other errors are those of :class:`~pytest_ragmetrics.metrics.QuotedSpansAlignment`.

    >>> assert_quoted_spans_aligned('It says "open the valve slowly".', ["Open the valve slowly."]).value
    1.0
    """
    __tracebackhide__ = True
    metric = QuotedSpansAlignment(
        casefold=casefold, min_span_words=min_span_words, matching=matching, require_quotes=require_quotes
    )
    sample = Sample(response=response, retrieved_contexts=as_contexts(contexts))
    return assert_metric(metric, sample, min=min)


def quoted_spans_alignment(
    answers: Sequence[str], sources: Sequence[object], *, casefold: bool = True, min_len: int = 3
) -> dict[str, float]:
    """Return the fraction of quoted spans in all answers that are found in the sources of their answer.

    ``sources[i]`` are the contexts of ``answers[i]``; spans shorter than ``min_len`` words do not count. Without any
    span all three values are 0.0. Raises ``ValueError`` when the two lists differ in length.

    >>> quoted_spans_alignment(['He wrote "rain is on its way".'], [["Rain is on its way."]])
    {'citation_alignment_quoted_spans': 1.0, 'matched': 1.0, 'total': 1.0}
    """
    for name, value in (("answers", answers), ("sources", sources)):
        if isinstance(value, str):
            msg = f"{name} must be a list with one entry per answer, not one str"
            raise TypeError(msg)
    if len(answers) != len(sources):
        msg = f"answers and sources must be of the same length, not {len(answers)} and {len(sources)}"
        raise ValueError(msg)
    check_flag("casefold", casefold)
    check_count("min_len", min_len)
    for index, answer in enumerate(answers):
        if not isinstance(answer, str):
            msg = f"answers[{index}] must be a str, not {type(answer).__name__}"
            raise TypeError(msg)
    matched = total = 0
    for answer, contexts in zip(answers, sources, strict=True):
        verdicts = _judge_spans(answer, contexts, casefold=casefold, min_words=min_len, matching="editorial")
        matched += sum(verdict.ok for verdict in verdicts)
        total += len(verdicts)
    return {
        "citation_alignment_quoted_spans": matched / total if total else 0.0,
        "matched": float(matched),
        "total": float(total),
    }


def _judge_spans(
    response: str, contexts: object, *, casefold: bool, min_words: int, matching: Matching
) -> list[Verdict]:
    spans = [span for span in find_quotations(response) if span.words >= min_words]
    if not spans:
        return []
    verdicts = Sources(contexts, casefold=casefold, matching=matching).align(span.text for span in spans)
    return [replace(verdict, start=span.start, end=span.end) for verdict, span in zip(verdicts, spans, strict=True)]
