"""A provider that does not answer is given up after a while, and tried again now and then."""

from __future__ import annotations

import asyncio

import pytest

from pytest_ragmetrics.circuit_breaker import CircuitBreaker, CircuitBreakers
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.transport import JudgeOutageError, JudgeUnavailableError, Providers, Reply, Request


class Model:
    """A provider that answers, or fails, and counts what it is asked."""

    is_paid = is_kept = True

    def __init__(self, name: str, answer: str | JudgeError) -> None:
        self.name = name
        self.answer = answer
        self.asked = 0

    async def complete(self, request: Request) -> Reply:
        """Answer or fail."""
        self.asked += 1
        if isinstance(self.answer, JudgeError):
            raise self.answer
        return Reply(text=self.answer)


def told(breaker: CircuitBreaker, answer: str | JudgeError, model: str = "mine") -> tuple[str, bool]:
    """Return what a request came to, and whether it was made."""
    provider = Model(model, answer)
    request = Request(task="t", kind="openai", model=model, messages=(), schema={}, parameters={}, provider=provider)
    try:
        came = asyncio.run(CircuitBreakers(Providers(), lambda: breaker).send(request)).text
    except JudgeError as error:
        came = str(error)
    return came, bool(provider.asked)


def test_an_outage_is_as_many_failures_in_a_row_as_may_be_in_flight() -> None:
    """One answer between them begins the count anew; after the last nothing is asked, and the reason stays."""
    breaker = CircuitBreaker(4)
    away = JudgeOutageError("away")
    assert [told(breaker, item) for item in (away, away, away, "here", away, away, away)][-1] == ("away", True)
    assert not breaker.is_open
    assert told(breaker, away) == ("away", True)
    gone = "not asked any more, as 4 requests in a row went unanswered; the last: away"
    assert told(breaker, "here") == (gone, False)
    assert told(breaker, "here", "other") == ("here", True)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_two_slow_questions_are_no_outage(width: int) -> None:
    """However few requests may be in flight, it takes three."""
    breaker = CircuitBreaker(width)
    assert [told(breaker, JudgeOutageError("slow"))[1] for _ in range(5)] == [True, True, True, False, False]


def test_where_nothing_can_succeed_one_failure_is_enough() -> None:
    """No credit is no credit for the next request; a rejected request says nothing about the next."""
    breaker = CircuitBreaker(32)
    assert [told(breaker, JudgeError("rejected"))[1] for _ in range(99)] == [True] * 99
    assert told(breaker, JudgeUnavailableError("no credit")) == ("no credit", True)
    assert told(breaker, "here") == ("no credit", False)


def test_it_is_tried_again_once_a_minute() -> None:
    """One more failure is enough then, and one answer makes all good."""
    now = [0.0]
    breaker = CircuitBreaker(4, clock=lambda: now[0])
    away = JudgeOutageError("away")
    for _ in range(4):
        told(breaker, away)
    breaker.half_open()
    assert [told(breaker, away)[1], told(breaker, away)[1]] == [True, False]
    breaker.half_open()
    assert told(breaker, "here")[1] is False
    now[0] = 60.0
    breaker.half_open()
    assert [told(breaker, item)[1] for item in ("here", away, away, away, "here")] == [True] * 5
