"""A provider that does not answer is given up after a while, and tried again now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pytest_ragmetrics.circuit_breaker import CircuitBreaker
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.judge import JudgeOutageError, JudgeUnavailableError

MINE, OTHER = ("openai", "mine"), ("openai", "other")


def answering(answer: str | JudgeError, asked: list[object]) -> Callable[[], Awaitable[str]]:
    """Return a request that notes itself, and is answered or fails."""

    async def fetch() -> str:
        asked.append(answer)
        if isinstance(answer, JudgeError):
            raise answer
        return answer

    return fetch


def told(patience: CircuitBreaker, answer: str | JudgeError, provider: tuple[str, str] = MINE) -> tuple[str, bool]:
    """Return what a request came to, and whether it was made."""
    asked: list[object] = []
    try:
        came = asyncio.run(patience.ask(provider, answering(answer, asked)))
    except JudgeError as error:
        came = str(error)
    return came, bool(asked)


def test_an_outage_is_as_many_failures_in_a_row_as_may_be_in_flight() -> None:
    """One answer between them begins the count anew; after the last nothing is asked, and the reason stays."""
    patience = CircuitBreaker(4)
    away = JudgeOutageError("away")
    assert [told(patience, item) for item in (away, away, away, "here", away, away, away)][-1] == ("away", True)
    assert not patience.is_out
    assert told(patience, away) == ("away", True)
    gone = "not asked any more, as 4 requests in a row went unanswered; the last: away"
    assert told(patience, "here") == (gone, False)
    assert told(patience, "here", OTHER) == ("here", True)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_two_slow_questions_are_no_outage(width: int) -> None:
    """However few requests may be in flight, it takes three."""
    patience = CircuitBreaker(width)
    assert [told(patience, JudgeOutageError("slow"))[1] for _ in range(5)] == [True, True, True, False, False]


def test_where_nothing_can_succeed_one_failure_is_enough() -> None:
    """No credit is no credit for the next request; a rejected request says nothing about the next."""
    patience = CircuitBreaker(32)
    assert [told(patience, JudgeError("rejected"))[1] for _ in range(99)] == [True] * 99
    assert told(patience, JudgeUnavailableError("no credit")) == ("no credit", True)
    assert told(patience, "here") == ("no credit", False)


def test_it_is_tried_again_once_a_minute() -> None:
    """One more failure is enough then, and one answer makes all good."""
    now = [0.0]
    patience = CircuitBreaker(4, clock=lambda: now[0])
    away = JudgeOutageError("away")
    for _ in range(4):
        told(patience, away)
    patience.relent()
    assert [told(patience, away)[1], told(patience, away)[1]] == [True, False]
    patience.relent()
    assert told(patience, "here")[1] is False
    now[0] = 60.0
    patience.relent()
    assert [told(patience, item)[1] for item in ("here", away, away, away, "here")] == [True] * 5
