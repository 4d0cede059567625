"""Assertion helpers: score, hold against a threshold, and fail with the evidence.

A helper raises ``AssertionError`` with the whole explanation itself, so it explains under ``--assert=plain``
and ``python -O`` too.
"""

from __future__ import annotations

from pytest_ragmetrics.assertions.agents import assert_goal_reached, assert_topics_kept
from pytest_ragmetrics.assertions.answers import (
    assert_answer_relevant,
    assert_aspect,
    assert_correct,
    assert_ragas_score,
    assert_relevant,
    assert_semantically_similar,
    assert_summarizes,
)
from pytest_ragmetrics.assertions.citations import assert_citations_valid
from pytest_ragmetrics.assertions.contexts import (
    assert_context_recalled,
    assert_context_relevant,
    assert_contexts_precise,
)
from pytest_ragmetrics.assertions.correctness import (
    assert_answer_accurate,
    assert_answer_correct,
    assert_factually_correct,
    assert_noise_resisted,
    assert_refusal_correct,
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
from pytest_ragmetrics.assertions.passages import (
    assert_context_precision,
    assert_context_relevance,
    assert_context_utilization,
    assert_entities_recalled,
)
from pytest_ragmetrics.assertions.retrieval import assert_contexts_alike, assert_retrieved
from pytest_ragmetrics.assertions.sample import assert_sample
from pytest_ragmetrics.assertions.scales import assert_criteria, assert_rubric
from pytest_ragmetrics.assertions.support import (
    assert_citations_precise,
    assert_citations_recalled,
    assert_grounded,
    assert_not_hallucinated,
)
from pytest_ragmetrics.assertions.text import (
    assert_bleu,
    assert_chrf,
    assert_exact_match,
    assert_rouge,
    assert_string_present,
    assert_text_alike,
)
from pytest_ragmetrics.assertions.tools import assert_tools_called
from pytest_ragmetrics.suites import assert_mean, assert_not_worse, assert_pass_rate

__all__ = [
    "assert_answer_accurate",
    "assert_answer_correct",
    "assert_answer_relevant",
    "assert_aspect",
    "assert_bleu",
    "assert_chrf",
    "assert_citations_precise",
    "assert_citations_recalled",
    "assert_citations_valid",
    "assert_context_precision",
    "assert_context_recalled",
    "assert_context_relevance",
    "assert_context_relevant",
    "assert_context_utilization",
    "assert_contexts_alike",
    "assert_contexts_precise",
    "assert_correct",
    "assert_criteria",
    "assert_entities_recalled",
    "assert_exact_match",
    "assert_factually_correct",
    "assert_faithful",
    "assert_goal_reached",
    "assert_grounded",
    "assert_lexically_grounded",
    "assert_lexically_recalled",
    "assert_mean",
    "assert_metric",
    "assert_names_aligned",
    "assert_noise_resisted",
    "assert_not_hallucinated",
    "assert_not_worse",
    "assert_numbers_aligned",
    "assert_pass_rate",
    "assert_quoted_spans_aligned",
    "assert_ragas_score",
    "assert_refusal_correct",
    "assert_relevant",
    "assert_retrieved",
    "assert_rouge",
    "assert_rubric",
    "assert_sample",
    "assert_semantically_similar",
    "assert_string_present",
    "assert_summarizes",
    "assert_text_alike",
    "assert_tools_called",
    "assert_topics_kept",
]
