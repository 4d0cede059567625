"""The engine: how many requests are in flight, and that what a run opens is made late, shared and closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import JudgeNotConfiguredError
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges.embedders.embedder import CustomEmbedder
from pytest_ragmetrics.judges.embedders.local import LocalEmbedder
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.local import LocalJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.limiter import Limiter, Place
from pytest_ragmetrics.judges.transports.values import Answered
from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI, rate_limited
from tests.on_a_loop import on_a_loop


class Room:
    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self.inside: list[int] = []
        self.came: list[int] = []
        self._home: dict[int, asyncio.Event] = {}

    def invite(self, *guests: int) -> list[asyncio.Task[None]]:
        return [asyncio.ensure_future(self._stay(guest)) for guest in guests]

    async def send_home(self, *guests: int) -> None:
        for guest in guests:
            self._home[guest].set()
        await calm()

    async def _stay(self, guest: int) -> None:
        self._home[guest] = asyncio.Event()
        async with Place(self.limiter):
            self.inside.append(guest)
            self.came.append(guest)
            try:
                await self._home[guest].wait()
            finally:
                self.inside.remove(guest)


async def calm() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@on_a_loop
async def test_as_many_as_there_is_room_for_are_let_in_in_the_order_they_came() -> None:
    room = Room(Limiter(2))
    room.invite(1, 2, 3, 4)
    await calm()
    assert room.inside == [1, 2]
    room._home[1].set()
    await asyncio.sleep(0)
    room.invite(5)
    await calm()
    assert room.inside == [2, 3]
    await room.send_home(2, 3)
    assert room.inside == [4, 5]
    await room.send_home(4, 5)
    assert room.came == [1, 2, 3, 4, 5]


#: Of one guest: how long it stays, whether it fails, who is cancelled and how long nothing happens once it has come.
GUEST = st.tuples(st.integers(0, 2), st.booleans(), st.none() | st.integers(0, 24), st.integers(0, 1))


@given(width=st.integers(1, 4), guests=st.lists(GUEST, max_size=25))
@on_a_loop
async def test_no_place_is_lost_or_given_twice(width: int, guests: list[tuple[int, bool, int | None, int]]) -> None:
    limiter = Limiter(width)
    inside = most = 0

    async def stay(turns: int, *, fails: bool) -> None:
        nonlocal inside, most
        async with Place(limiter):
            inside += 1
            most = max(most, inside)
            try:
                for _ in range(turns):
                    await asyncio.sleep(0)
                if fails:
                    raise LookupError
            finally:
                inside -= 1

    came: list[asyncio.Task[None]] = []
    for turns, fails, cancelled, pause in guests:
        came.append(asyncio.ensure_future(stay(turns, fails=fails)))
        if cancelled is not None:
            came[cancelled % len(came)].cancel()
        if pause:
            await asyncio.sleep(0)
    outcomes = await asyncio.gather(*came, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} <= {type(None), LookupError, asyncio.CancelledError}
    assert most <= width
    room = Room(limiter)
    room.invite(*range(width + 1))
    await calm()
    assert len(room.inside) == width
    await room.send_home(*room.inside)
    await room.send_home(*room.inside)


def test_an_overload_halves_the_width_at_most_once_a_second() -> None:
    """One overload answers many requests at once, and is one reason; at least one request remains."""
    now = [1000.0]
    limiter = Limiter(32, clock=lambda: now[0])
    for passed, width in ((0, 16), (0, 16), (0.9, 16), (0.1, 8), (1, 4), (1, 2), (1, 1), (1, 1)):
        now[0] += passed
        limiter.narrow()
        assert limiter.width == width


@on_a_loop
async def test_a_narrowed_limiter_lets_in_as_many_as_it_is_wide() -> None:
    limiter = Limiter(4)
    room = Room(limiter)
    room.invite(1, 2, 3, 4, 5)
    await calm()
    limiter.narrow()
    await room.send_home(1, 2)
    assert room.inside == [3, 4]
    await room.send_home(3)
    assert room.inside == [4, 5]
    await room.send_home(4, 5)


@on_a_loop
async def test_the_width_comes_back_with_what_succeeds_after_a_while() -> None:
    now = [1000.0]
    limiter = Limiter(4, clock=lambda: now[0])

    async def width_after_asking(error: type[Exception] | None = None) -> int:
        with suppress(LookupError):
            async with Place(limiter):
                if error is not None:
                    raise error
        return limiter.width

    limiter.narrow()
    now[0] += 4.9
    assert await width_after_asking() == 2
    now[0] += 0.1
    assert await width_after_asking(LookupError) == 2
    assert [await width_after_asking() for _ in range(4)] == [3, 4, 4, 4]


def test_a_limiter_lets_at_least_one_in() -> None:
    with pytest.raises(ValueError, match="at least 1 request must be allowed in flight, not 0"):
        Limiter(0)


@pytest.fixture(autouse=True)
def _own_loop() -> Iterator[None]:
    yield
    loop.stop()


def ask(engine: Engine, text: str, judge: Any = None) -> Answered[tuple[str, ...]]:
    async def asked() -> Answered[tuple[str, ...]]:
        return await engine.judge(judge).ask(ListClaims(text=text), transport=engine.transport)

    return loop.run(asked())


def test_nothing_is_made_before_it_is_asked_for(tmp_path: Path) -> None:
    engine = Engine(cache_dir=tmp_path / "cache", cassette=tmp_path / "cassette.jsonl")
    with pytest.raises(JudgeNotConfiguredError, match='judge="local"'):
        engine.judge()
    with pytest.raises(JudgeNotConfiguredError, match='embedder="local"'):
        engine.embedder()
    engine.close()
    assert list(tmp_path.iterdir()) == []


def test_a_spec_is_made_once_whoever_asks_for_it() -> None:
    barrier = threading.Barrier(4)
    engine = Engine(judge="local", embedder="local")

    def get() -> tuple[int, int]:
        barrier.wait(10)
        return id(engine.judge()), id(engine.embedder("local"))

    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: get(), range(4)))
    engine.close()
    assert len(found) == 1


def test_offers_go_before_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake")
    engine = Engine(
        judge="house",
        embedder="house",
        offer_judge=lambda spec: (lambda prompt: '{"claims": ["One."]}') if spec == "house" else None,
        offer_embedder=lambda spec: (lambda texts: [[1.0] for _ in texts]) if spec == "house" else None,
    )
    assert engine.judge().name == "house"
    assert isinstance(engine.embedder(), CustomEmbedder)
    assert isinstance(engine.judge("local"), LocalJudge)
    assert isinstance(engine.embedder("local"), LocalEmbedder)
    assert ask(engine, "One.").answer == ("One.",)
    engine.close()


def test_a_judge_that_is_given_is_asked_and_stays_open(server: FakeOpenAI) -> None:
    judge, embedder = OpenAIJudge("fake"), OpenAIEmbedder("fake")
    for _ in range(2):
        engine = Engine()
        assert engine.judge(judge) is judge
        assert engine.embedder(embedder) is embedder
        ask(engine, "One. Two.", judge)
        engine.close()
        assert judge._connection._client is not None
    assert server.calls == 2
    loop.run(judge.aclose())
    loop.run(embedder.aclose())


def test_everything_is_closed_even_if_one_thing_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, embedder = LocalJudge(), LocalEmbedder()
    monkeypatch.setattr(judge, "aclose", AsyncMock(side_effect=RuntimeError("the hinge broke")))
    monkeypatch.setattr(embedder, "aclose", AsyncMock())
    engine = Engine(cache_dir=tmp_path / "cache", offer_judge=lambda _: judge, offer_embedder=lambda _: embedder)
    engine.judge()
    engine.embedder()
    length = CustomEmbedder(lambda texts: [[float(len(text))] for text in texts], name="length")
    loop.run(engine.transport.send(length.request(["One."])))
    with pytest.raises(RuntimeError, match="the hinge broke"):
        engine.close()
    embedder.aclose.assert_awaited_once_with()  # type: ignore[attr-defined] # a mock
    assert [thread.name for thread in threading.enumerate() if "ragmetrics-store" in thread.name] == []


def test_closing_waits_for_what_is_being_paid_for(server: FakeOpenAI, tmp_path: Path) -> None:
    server.latency = 0.3
    begun = threading.Event()

    def answer(body: dict[str, Any]) -> str:
        begun.set()
        return answer_sensibly(body)

    server.answer = answer
    engine = Engine(cache_dir=tmp_path / "cache")

    async def start() -> None:
        asking = asyncio.ensure_future(engine.judge().ask(ListClaims(text="One. Two."), transport=engine.transport))
        await asyncio.to_thread(begun.wait, 10)
        asking.cancel()

    loop.run(start())
    engine.close()
    with Store(tmp_path / "cache") as store:
        assert store.count() == 1
    # It opens again when it is asked, with a new client.
    assert ask(engine, "One. Two.").usage.cached_calls == 1
    assert ask(engine, "Three.").usage.calls == 1
    engine.close()
    assert server.calls == 2


def test_no_more_requests_are_in_flight_than_allowed(server: FakeOpenAI) -> None:
    server.latency = 0.05
    engine = Engine(concurrency=3)

    async def all_of_them() -> None:
        embedder, judge = engine.embedder(), engine.judge()
        vectors = [engine.transport.send(embedder.request([f"Text {n}."])) for n in range(4)]
        claims = [judge.ask(ListClaims(text=f"{n}."), transport=engine.transport) for n in range(9)]
        await asyncio.gather(*vectors, *claims)

    loop.run(all_of_them())
    engine.close()
    assert server.in_flight_max == 3
    # Texts that were asked for together are one request, and wait for nothing but a place for that.
    assert server.calls == 10


def test_being_asked_too_fast_narrows_what_is_in_flight(server: FakeOpenAI) -> None:
    engine = Engine(concurrency=8)
    server.script(rate_limited())
    assert ask(engine, "One.").answer == ("One.",)
    assert engine.limiter.width == 4
    server.script(rate_limited())
    engine.limiter._narrowed -= 2
    loop.run(engine.transport.send(engine.embedder().request(["One."])))
    engine.close()
    assert engine.limiter.width == 2
