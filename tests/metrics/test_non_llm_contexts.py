"""EntailmentPassages told to be the same by their characters."""

from __future__ import annotations

from typing import Any

import pytest
from rapidfuzz.distance import Levenshtein

from pytest_ragmetrics import assert_contexts_alike
from pytest_ragmetrics.metrics import NonLLMContextPrecision, NonLLMContextRecall

# Ten characters each: a likeness is the number of characters that are the same.
TEN, NINE, FIVE, FOUR = "abcdefghij", "abcdefghi-", "abcde-----", "abcd------"


@pytest.mark.parametrize(
    ("retrieved", "reference", "threshold", "recall", "precision"),
    [
        ([TEN], [TEN], 0.5, 1.0, 1.0),
        # at the threshold is alike, in both
        ([FIVE], [TEN], 0.5, 1.0, 1.0),
        ([FOUR], [TEN], 0.5, 0.0, 0.0),
        ([NINE], [TEN], 0.9, 1.0, 1.0),
        ([NINE], [TEN], 1.0, 0.0, 0.0),
        ([NINE], [TEN, "0123456789"], 0.5, 0.5, 1.0),
        (["0123456789", NINE], [TEN], 0.5, 1.0, 0.5),
        ([NINE, "0123456789", TEN], [TEN], 0.5, 1.0, (1 + 2 / 3) / 2),
        ([], [TEN], 0.5, 0.0, 0.0),
        (["", TEN], [TEN], 0.5, 1.0, 0.5),
        ([FOUR], [TEN], 0, 1.0, 1.0),
        (["東京の天気は晴れです"], ["東京の天気は雨です"], 0.7, 1.0, 1.0),
    ],
)
def test_values_by_hand(
    retrieved: list[str], reference: list[str], threshold: float, recall: float, precision: float
) -> None:
    """Recall is a share of the references; precision the average precision in rank order."""
    fields: dict[str, Any] = {"retrieved_contexts": retrieved, "reference_contexts": reference}
    assert NonLLMContextRecall(threshold=threshold).score(**fields).value == recall
    assert NonLLMContextPrecision(threshold=threshold).score(**fields).value == pytest.approx(precision)


def test_what_was_missed_is_shown_with_what_is_nearest() -> None:
    """A reference that was not retrieved names the context most alike to it, and how much."""
    result = NonLLMContextRecall().score(retrieved_contexts=["-" * 10, FOUR], reference_contexts=[TEN, FIVE])
    missed, found = result.verdicts
    assert (missed.ok, missed.reason) == (False, "no context is 50% alike")
    assert missed.nearest is not None
    assert (missed.nearest.context, missed.nearest.text, missed.nearest.similarity) == (1, FOUR, 0.4)
    assert missed.nearest.similarity == Levenshtein.normalized_similarity(TEN, FOUR)
    assert (found.ok, found.reason, found.evidence[0].context) == (True, "90% alike", 1)
    assert result.reason == "1 of 2 reference contexts retrieved"
    nothing = NonLLMContextRecall().score(retrieved_contexts=[], reference_contexts=[TEN])
    assert [verdict.reason for verdict in nothing.verdicts] == ["nothing was retrieved"]


def test_a_context_that_is_of_no_use_says_which_reference_is_nearest() -> None:
    """The nearest stands in the reference, not in the contexts, so the reason names it."""
    result = NonLLMContextPrecision().score(retrieved_contexts=[FOUR, NINE], reference_contexts=["-" * 20, TEN])
    assert [(v.ok, v.reason) for v in result.verdicts] == [
        (False, "40% alike to reference_contexts[1], the nearest"),
        (True, "90% alike to reference_contexts[1], the nearest"),
    ]
    assert [piece.context for verdict in result.verdicts for piece in verdict.evidence] == [1]
    assert result.reason == "1 of 2 contexts alike to one of the reference"


@pytest.mark.parametrize("metric", [NonLLMContextPrecision, NonLLMContextRecall])
def test_wrong_parameters_and_inputs(metric: Any) -> None:
    """Each error names the parameter or the field."""
    for threshold in (-0.1, 1.1, "0.5", True):
        with pytest.raises(ValueError, match="threshold must be a number from 0 to 1"):
            metric(threshold=threshold)
    with pytest.raises(ValueError, match="measure must be 'levenshtein' or 'indel'"):
        metric(measure="cosine")
    with pytest.raises(ValueError, match=f"{metric.name}: reference_contexts is blank"):
        metric().score(retrieved_contexts=[TEN], reference_contexts=[])


def test_the_helper() -> None:
    """Contexts and what should have been retrieved, as texts or documents; one text is one context."""
    assert assert_contexts_alike(NINE, TEN, min=1.0).value == 1.0
    assert assert_contexts_alike([NINE], [TEN], metric="precision", measure="hamming", threshold=0.9).value == 1.0
    with pytest.raises(AssertionError) as failure:
        assert_contexts_alike([FOUR], [TEN])
    assert str(failure.value).splitlines() == [
        "non_llm_context_recall 0.00 < 0.80: 1 of 1 reference context not retrieved",
        '  not retrieved: "abcdefghij"',
        "    reason: no context is 50% alike",
        '    nearest: "abcd------" (contexts[0][0:10], 40% alike)',
    ]
