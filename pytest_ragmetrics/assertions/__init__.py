"""Assertion helpers: score, hold against a threshold, and fail with the evidence.

A helper raises ``AssertionError`` with the whole explanation itself, so it explains under ``--assert=plain``
and ``python -O`` too.
"""

from pytest_ragmetrics.assertions.answers import (
    assert_answer_relevant,
    assert_aspect,
    assert_correct,
    assert_ragas_score,
    assert_relevant,
    assert_semantically_similar,
    assert_summarizes,
)
from pytest_ragmetrics.assertions.contexts import (
    assert_context_recalled,
    assert_context_relevant,
    assert_contexts_precise,
)
from pytest_ragmetrics.assertions.grounding import (
    assert_faithful,
    assert_lexically_grounded,
    assert_lexically_recalled,
    assert_names_aligned,
    assert_numbers_aligned,
    assert_quoted_spans_aligned,
)
from pytest_ragmetrics.assertions.metric import assert_metric

__all__ = [
    "assert_answer_relevant",
    "assert_aspect",
    "assert_context_recalled",
    "assert_context_relevant",
    "assert_contexts_precise",
    "assert_correct",
    "assert_faithful",
    "assert_lexically_grounded",
    "assert_lexically_recalled",
    "assert_metric",
    "assert_names_aligned",
    "assert_numbers_aligned",
    "assert_quoted_spans_aligned",
    "assert_ragas_score",
    "assert_relevant",
    "assert_semantically_similar",
    "assert_summarizes",
]
