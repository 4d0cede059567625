"""A server that answers one request at a time, as llama.cpp does on a laptop, loses no row to its queue."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import httpx2
import pytest

from pytest_ragmetrics import evaluate
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.judges.judge import AnsweringJudge, Judge
from pytest_ragmetrics.judges.providers.attempts import Call, attempt
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports import values
from pytest_ragmetrics.judges.transports.limiter import DIRECT, WIDTH, Limiter, at_home
from pytest_ragmetrics.judges.transports.values import JudgeOutageError, Reply, Request, Transport
from pytest_ragmetrics.plugin.settings import Settings
from tests import fake_openai as fake
from tests.asking import ask, judge_at, use
from tests.fake_openai import FakeOpenAI
from tests.virtual_time import virtual_time

HOME, ELSEWHERE = "http://127.0.0.1:8080/v1", "https://llm.example/v1"
TIMEOUT = 6.0
CLAIMS = ListClaims(text="The pump needs two minutes to fill.")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no other workers, whose requests would be in flight too."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)


@dataclass
class Slots:
    """A provider of ``count`` slots, first come, first served, which drops the request of a client that leaves."""

    seconds: float
    count: int = 1
    retries: int = 5
    seen: Counter[str] = field(default_factory=Counter)
    in_flight: set[Call] = field(default_factory=set)
    name = "slots"
    is_paid = False
    is_kept = True

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.count)

    async def complete(self, request: Request) -> Reply:
        call = Call(timeout=TIMEOUT, steady=True, in_flight=self.in_flight)
        for tried in range(self.retries + 1):
            try:
                return await attempt(call, self._served, httpx2.Request("POST", HOME))
            except httpx2.ReadTimeout:
                await asyncio.sleep(0.5 * 2**tried)
        raise JudgeOutageError(request.task)

    async def _served(self) -> Reply:
        self.seen["sent"] += 1
        async with self._slots:
            await asyncio.sleep(self.seconds)
        self.seen["done"] += 1
        return Reply(text="{}")


class Impatient(Slots):
    """A provider whose HTTP library is the first to reach the limit of the first attempt."""

    async def _served(self) -> Reply:
        self.seen["sent"] += 1
        if self.seen["sent"] == 1:
            await asyncio.sleep(TIMEOUT - 0.1)
            raise httpx2.ReadTimeout("")
        return Reply(text="{}")


def story(rows: int, width: int, slots: Slots, home: int | None, *, url: str = HOME) -> tuple[Limiter, float, int]:
    """Send rows at once; return the limiter, the seconds that it took, and how many rows were lost."""

    async def run() -> tuple[Limiter, float, int]:
        slots.__post_init__()
        clock = asyncio.get_running_loop().time
        limiter = Limiter(width, at_home=home, clock=clock)
        request = Request(task="", kind="", model="", messages=(), schema={}, parameters={}, provider=slots, url=url)
        began = clock()
        ended = await asyncio.gather(*(limiter.send(request) for _ in range(rows)), return_exceptions=True)
        lost = [each for each in ended if isinstance(each, BaseException)]
        assert all(isinstance(each, JudgeOutageError) for each in lost)
        return limiter, clock() - began, len(lost)

    with virtual_time():
        return loop.run(run())


@pytest.mark.parametrize("seconds", [0.2, 1.0, 1.9, 2.9, 3.0, 3.1, 5.5])
@pytest.mark.parametrize(("width", "home"), [(32, at_home(32)), (32, 32), (8, 8), (2, 2), (1, 1)])
def test_no_row_is_lost_in_the_queue(seconds: float, width: int, home: int) -> None:
    """Forty rows take hardly longer than one at a time, also where someone asked for too many in flight."""
    slots = Slots(seconds)
    limiter, took, lost = story(40, width, slots, home)
    assert lost == 0
    # Of those in flight at first all but one may have to be sent again, after a pause.
    assert took <= 1.2 * 40 * seconds + (2 if home == 32 else 0)
    assert limiter.sent == slots.seen["sent"] == 40 + limiter.given_up
    assert limiter.answered == slots.seen["done"] == 40
    assert limiter.given_up <= 2 * home


def test_a_time_out_of_the_http_library_is_counted() -> None:
    limiter, _, lost = story(1, 1, Impatient(0.0), 1)
    assert (limiter.sent, limiter.given_up, lost) == (2, 1, 0)


def test_what_narrowed_the_limiter_widens_it_again() -> None:
    slow, _, _ = story(40, 32, Slots(3.0), 4)
    fast, took, _ = story(400, 32, Slots(1.0, count=64), 4)
    assert (slow.width, fast.width, fast.given_up) == (1, 32, 0)
    assert took < 2 * 400 / 32


@pytest.mark.parametrize(
    ("url", "home", "width"), [(HOME, 4, 4), ("http://ollama:11434/v1", 4, 4), (HOME, None, 32), (ELSEWHERE, 4, 32)]
)
def test_a_server_of_ones_own_begins_with_four(url: str, home: int | None, width: int) -> None:
    seen = []

    class Watched(Slots):
        async def complete(self, request: Request) -> Reply:
            seen.append(len(self.in_flight) + 1)
            return await super().complete(request)

    story(40, 32, Watched(5.0, count=64), home, url=url)
    assert max(seen) == width


def test_the_width_that_nobody_set_is_the_default_of_the_option() -> None:
    """By it a number that someone chose is told from it."""
    assert vars(Settings)["concurrency"].default == WIDTH
    assert signature(evaluate).parameters["concurrency"].default == WIDTH


class Loading(Slots):
    """A server that loads its model for the first request."""

    async def _served(self) -> Reply:
        self.seconds = 1.0 if self.seen["sent"] else 100.0
        return await super()._served()


@pytest.mark.parametrize(("kind", "found"), [(Slots, (1, 2, 2)), (Loading, (0, 2, 1))])
def test_a_lone_request_is_not_sent_five_times_more(kind: type[Slots], found: tuple[int, int, int]) -> None:
    """After a second time-out with nothing else in flight the server was still writing; a model may be there then."""
    limiter, took, lost = story(1, 32, kind(100.0), 4)
    assert (lost, limiter.sent, limiter.given_up) == found
    assert [took, limiter.width] == pytest.approx([2 * TIMEOUT + 0.5 if lost else TIMEOUT + 1.5, 4])


@pytest.mark.usefixtures("_short_pauses")
@pytest.mark.parametrize(
    ("vote", "options", "workers", "calls"),
    [
        *((0, {}, 1, 2), (1, {}, 1, 3), (0, {"parameters": {"temperature": 0.4}}, 1, 3), (0, {"retries": 0}, 1, 1)),
        # Other workers may be in flight: then nobody knows whether the server wrote.
        (0, {}, 2, 3),
    ],
)
def test_what_would_be_answered_alike_is_given_up(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, vote: int, options: Any, workers: int, calls: int
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", f"{workers}")
    server.answer = lambda _: fake.silent()
    judge, limiter = judge_at(server, **{"retries": 2, "timeout": 0.2, **options}), Limiter(8)
    with pytest.raises(JudgeOutageError) as failed:
        use(judge, judge.ask(CLAIMS, vote=vote, transport=limiter))
    assert (limiter.sent, limiter.given_up) == (calls, calls)
    late = f"openai:fake-1: no answer within 0.2 s{', after 1 retry' if calls == 2 else ''}; see --rag-timeout"
    why = "nothing else was in flight, so the server was still writing, or answers nothing"
    alone = f"{late}: {why}; bound the reply ('openai:fake-1?max_tokens=N'), or check OPENAI_BASE_URL"
    busy = "after 2 retries; see --rag-timeout, --rag-retries and --rag-concurrency"
    assert (alone if calls < 3 else busy) in str(failed.value)


def test_a_judge_of_ones_own_may_ask_several_judges_inside(server: FakeOpenAI) -> None:
    """What it asks has no place of its own in the limiter: two that are tried again would give up the same one."""
    pair = [judge_at(server, model=name, retries=5) for name in "ab"]

    class Pair(Judge):
        name = "pair"

        async def ask(self, task: Any, *, vote: int = 0, transport: Transport = DIRECT) -> values.Answered[Any]:
            first, _ = await asyncio.gather(*(judge.ask(task, vote=vote) for judge in pair))
            return first

        async def aclose(self) -> None:
            for judge in pair:
                await judge.aclose()

    server.script(*[fake.rate_limited()] * 8)
    limiter = Limiter(1)
    rows = [ListClaims(text=f"Pump {number} needs two minutes.") for number in range(6)]
    assert len(ask(AnsweringJudge(Pair()), *rows, transport=limiter)) == 6
    assert (limiter._busy, limiter._waiting, limiter._again) == (0, deque(), deque())
