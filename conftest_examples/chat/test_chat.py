"""Each answer of a conversation is tested: against its passages, those of earlier answers, and what the user said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics import MetricResult, Sample, assert_conversation, assert_sample

if TYPE_CHECKING:
    from .conftest import Chat

LOGS = Path(__file__).with_name("conversations.jsonl")
BOUNDS = {"faithfulness": 0.9, "quoted_spans_alignment": 1.0, "numbers_aligned": 1.0, "names_aligned": 1.0}


def is_right(sample: Sample) -> bool:
    """Tell the conversations without a fault from the others."""
    return "fault" not in sample.metadata


@pytest.mark.rag_dataset("conversations.jsonl", where=is_right, turns="each", metrics=BOUNDS)
def test_every_answer(rag_sample: Sample, rag_scores: Mapping[str, MetricResult]) -> None:
    """A test for each answer: what was found or told earlier is right, and thanks have nothing to check."""
    assert rag_sample.metadata["turn"] >= 1
    assert rag_scores["faithfulness"].vacuous or rag_scores["faithfulness"] == 1.0


LINES = (
    "I need a bike for 45 kilometres. What is it a day?",
    "Does the battery last?",
    "And the price once more?",
    "Thanks, bye!",
)
SCRIPT = {"id": "ride", "messages": [{"role": "user", "content": line} for line in LINES]}


@pytest.mark.rag_dataset([SCRIPT], turns="each", metrics=BOUNDS)
def test_every_answer_to_a_script(rag_sample: Sample) -> None:
    """What users say is fixed; ``rag_respond`` gives the answers, one after the other."""
    assert rag_sample.response


def test_a_session(chat: Chat) -> None:
    """The test holds the conversation itself; the messages, with their contexts, are what is asserted."""
    messages: list[Any] = []
    for line in LINES:
        messages.append({"role": "user", "content": line})
        messages.append(chat.reply(messages))
    results = assert_conversation(messages, BOUNDS)
    assert [*results["faithfulness"]] == [1, 2, 3, 4]
    assert results["faithfulness"][4].vacuous


def logged(id: str) -> dict[str, Any]:
    """Return a conversation of the logs."""
    rows = map(json.loads, LOGS.read_text(encoding="utf-8").splitlines())
    return next(row for row in rows if row["id"] == id)


def test_the_last_answer_alone_hides_an_early_fault() -> None:
    """What ``turns="last"`` scores, the default: the answer to the last question is right."""
    assert_sample(logged("early-claim"), faithfulness=0.9)


# The chat goes wrong in these five. They are expected to fail, so that the example passes and the report still explains
# them; in your own suite they would simply be failures.


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="turn 1 claims what no passage says; turn 2 is right")
def test_a_false_claim_in_an_early_turn() -> None:
    """It counts like any other, whenever it was said."""
    assert_conversation(logged("early-claim"), faithfulness=0.9)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="turn 3 repeats what turn 1 invented")
def test_an_invention_is_repeated() -> None:
    """What the assistant said before is no evidence, however often it says it."""
    assert_conversation(logged("repeated-claim"), faithfulness=0.9)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the rules have no such sentence")
def test_an_invented_quotation() -> None:
    """The quotation of turn 1 is real, that of turn 2 is not."""
    assert_conversation(logged("quotation"), quoted_spans_alignment=1.0)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="no passage and no message has 45 kilometres")
def test_a_number_that_no_passage_has() -> None:
    """Turn 1 retrieved 60 kilometres, and nobody said 45."""
    assert_conversation(logged("number"), numbers_aligned=1.0)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the user has no children, the answer speaks of two")
def test_what_the_user_said_is_contradicted() -> None:
    """Passages have the belts of children: only the user's own words show that it is wrong."""
    assert_conversation(logged("user-fact"), knowledge_retention=1.0)
