"""A provider that does not answer is given up after a while, and tried again now and then."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.judges.transports.breaker import Breaker, CircuitBreaker, CircuitBreakers, ProbingBreaker
from pytest_ragmetrics.judges.transports.limiter import Providers
from pytest_ragmetrics.judges.transports.values import (
    AnyRequest,
    JudgeOutageError,
    JudgeUnavailableError,
    Reply,
    Request,
)
from tests.on_a_loop import on_a_loop


class Model:
    """A provider that answers, or fails, and keeps of each request whether it is to be made but once."""

    is_paid = is_kept = True

    def __init__(self, name: str, answer: str | JudgeError) -> None:
        self.name, self.answer = name, answer
        self.single: list[bool] = []

    async def complete(self, request: Request) -> Reply:
        self.single.append(request.is_single)
        if isinstance(self.answer, JudgeError):
            raise self.answer
        return Reply(text=self.answer)


class Held:
    """Passes requests on a turn later, one of them not before it is let go."""

    def __init__(self, held: Request | None = None) -> None:
        self.held, self.let_go = held, asyncio.Event()

    async def send(self, request: AnyRequest) -> Reply:
        await (self.let_go.wait() if request == self.held else asyncio.sleep(0))
        return await Providers().send(request)


def request(provider: Model, vote: int = 0) -> Request:
    fields: dict[str, Any] = {"task": "t", "kind": "openai", "messages": (), "schema": {}, "parameters": {}}
    return Request(model=provider.name, provider=provider, vote=vote, **fields)


async def at_once(link: CircuitBreakers, requests: list[Request]) -> list[str]:
    replies = await asyncio.gather(*map(link.send, requests), return_exceptions=True)
    return [reply.text if isinstance(reply, Reply) else str(reply) for reply in replies]


def told(breaker: Breaker, answer: str | JudgeError, model: str = "mine") -> tuple[str, bool]:
    """Return what a request came to, and whether it was made."""
    provider = Model(model, answer)
    (came,) = asyncio.run(at_once(CircuitBreakers(Providers(), lambda: breaker), [request(provider)]))
    return came, bool(provider.single)


def test_an_outage_is_as_many_failures_in_a_row_as_may_be_in_flight() -> None:
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
    breaker = CircuitBreaker(width)
    assert [told(breaker, JudgeOutageError("slow"))[1] for _ in range(5)] == [True, True, True, False, False]


def test_where_nothing_can_succeed_one_failure_is_enough() -> None:
    """No credit is no credit for the next request; a rejected request says nothing about the next."""
    breaker = CircuitBreaker(32)
    assert [told(breaker, JudgeError("rejected"))[1] for _ in range(99)] == [True] * 99
    assert told(breaker, JudgeUnavailableError("no credit")) == ("no credit", True)
    assert told(breaker, "here") == ("no credit", False)


def test_it_is_tried_again_once_a_minute() -> None:
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


class TestProbing:
    """For tests that ask one by one: one probe at a time, with longer and longer pauses."""

    def test_the_attempts_of_one_request_are_enough(self) -> None:
        now = [100.0]
        breaker = ProbingBreaker(clock=lambda: now[0])
        away = JudgeOutageError("away", attempts=6)
        assert told(breaker, away) == ("away", True)
        said, asked = told(breaker, away)
        assert asked
        assert re.fullmatch(r"away; no answer since \d\d:\d\d:\d\d", said)
        for pause in (1, 2, 4, 8, 16, 32, 60, 60):
            now[0] += pause - 0.1
            said, asked = told(breaker, "here")
            assert not asked
            assert re.fullmatch(r"mine is not asked: no answer since \d\d:\d\d:\d\d; the last: away", said)
            assert told(breaker, "here", "other") == ("here", True)
            now[0] += 0.1
            assert told(breaker, away)[1]
        now[0] += 60
        assert [told(breaker, "here")[0] for _ in range(3)] == ["here"] * 3
        assert told(breaker, away) == ("away", True)
        assert told(breaker, "here") == ("here", True)

    @pytest.mark.parametrize("error", [JudgeError("rejected"), JudgeUnavailableError("no credit"), "here"])
    def test_any_answer_begins_anew(self, error: str | JudgeError) -> None:
        """A refusal is one; questions that take too long are counted one by one, and three are too many."""
        breaker = ProbingBreaker()
        slow = JudgeOutageError("slow")
        for _ in range(9):
            assert [told(breaker, item)[0] for item in (slow, slow, error)] == ["slow", "slow", str(error)]
        assert [told(breaker, slow)[0] for _ in range(3)] == ["slow"] * 3
        assert told(breaker, error) == (str(error), True)
        assert told(breaker, slow) == ("slow", True)

    @on_a_loop
    async def test_many_at_once(self) -> None:
        """As many attempts as were in flight; one probe, without retries, while the others fail at once."""
        breaker, model = ProbingBreaker(), Model("mine", JudgeOutageError("away"))
        link = CircuitBreakers(Held(), lambda: breaker)
        assert await at_once(link, [request(model)] * 7) == ["away"] * 7
        assert model.single == [False] * 7
        first, *others = await at_once(link, [request(model)] * 5)
        assert first.startswith("away; no answer since")
        assert all(other.startswith("mine is not asked") for other in others)
        assert model.single[7:] == [True]

    @on_a_loop
    async def test_as_many_as_were_in_flight(self) -> None:
        """Four of five without an answer are not enough."""
        breaker, model = ProbingBreaker(), Model("mine", JudgeOutageError("away"))
        one, last = request(model), request(model, vote=1)
        held = Held(last)
        link = CircuitBreakers(held, lambda: breaker)
        waiting = asyncio.ensure_future(at_once(link, [last]))
        for number in (4, 1, 1):
            await at_once(link, [one] * number)
        held.let_go.set()
        await waiting
        assert model.single == [False] * 5 + [True, False]
