"""The assistant of a hotel may apologise, but it must not promise money."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics import assert_aspect
from pytest_ragmetrics.metrics import AspectCritique

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.judge import Judge

PROMISE = "Does the response promise the guest money?"


@pytest.mark.parametrize("complaint", ["The shower was cold.", "The lift was out of order."])
def test_nothing_is_promised(replies: dict[str, str], complaint: str) -> None:
    """The judge of the run decides a question of our own; ``good=0`` says that the answer to wish for is no."""
    sample = {"user_input": complaint, "response": replies[complaint]}
    assert_aspect(sample, "promise", definition=PROMISE, good=0)


def test_the_judge_is_a_fixture(replies: dict[str, str], rag_judge: Judge) -> None:
    """The hook's judge goes by the name that was asked for, here and in every result."""
    metric = AspectCritique(name="promise", definition=PROMISE, good=0, judge=rag_judge)
    result = metric.score(response=replies["The shower was cold."])
    assert result == 0
    assert result.judge == "house"


# The assistant goes too far here. The test is expected to fail, so that the example passes and the report still
# explains it; in your own suite it would simply be a failure.


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the assistant promises a refund")
def test_a_loud_room(replies: dict[str, str]) -> None:
    """The judge's reason stands in the failure."""
    sample = {"user_input": "The room was loud.", "response": replies["The room was loud."]}
    assert_aspect(sample, "promise", definition=PROMISE, good=0)
