"""A model judges the answers once; every later run repeats what it said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics import assert_answer_relevant, assert_faithful
from pytest_ragmetrics.metrics import Relevance

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.judge import Judge

    from .conftest import Assistant

WINTER = "When does the ferry to Heron Island leave in winter?"
FARE = "What does a return ticket to Heron Island cost?"
DOG = "May I take my dog on the ferry?"


@pytest.mark.parametrize("question", [WINTER, FARE])
def test_claims_are_supported(bot: Assistant, question: str) -> None:
    """The judge lists the claims of the answer and looks for each in the passages."""
    answer = bot.ask(question)
    assert_faithful(answer.text, answer.contexts, question=question, min=0.8)


def test_the_question_is_answered(bot: Assistant) -> None:
    """The judge writes questions that the answer would fit, and they are compared with the one asked."""
    assert_answer_relevant(FARE, bot.ask(FARE).text, min=0.5)


def test_a_plain_assert_does_as_well(bot: Assistant, rag_judge: Judge) -> None:
    """The judge of the run is a fixture, for metrics that are built by hand."""
    result = Relevance(judge=rag_judge).score(user_input=FARE, response=bot.ask(FARE).text)
    assert result >= 0.5


# The assistant makes something up here. The test is expected to fail, so that the example passes and the report still
# explains it; in your own suite it would simply be a failure.


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="no passage says anything about muzzles")
def test_dogs(bot: Assistant) -> None:
    """One of the two claims is supported, which is not enough."""
    answer = bot.ask(DOG)
    assert_faithful(answer.text, answer.contexts, question=DOG, min=0.8)
