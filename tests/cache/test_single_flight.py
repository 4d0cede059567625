"""Single flight: concurrent requests for one key are fetched once."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from filelock import FileLock

from pytest_ragmetrics.cache.single_flight import SingleFlight
from tests.on_a_loop import on_a_loop

A, B, C = (hashlib.sha256(name.encode()).hexdigest() for name in "ABC")


class Fetched(NamedTuple):
    value: str
    fetched: bool


class Source:
    """Values that can be looked up and fetched, and a record of every fetch."""

    def __init__(self) -> None:
        self.stored: dict[str, str] = {}
        self.fetches: list[tuple[str, ...]] = []
        self.open, self.begun, self.departed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.open.set()
        self.waiting = 0
        self.error: Exception | None = None

    def share(self, flight: SingleFlight[str], *keys: str) -> asyncio.Task[dict[str, Fetched]]:
        async def shared() -> dict[str, Fetched]:
            values, fetched = await flight.share(keys, self.look, self.fetch)
            return {key: Fetched(value, key in fetched) for key, value in values.items()}

        return asyncio.ensure_future(shared())

    def look(self, keys: Sequence[str]) -> dict[str, str]:
        return {key: self.stored[key] for key in keys if key in self.stored}

    async def fetch(self, keys: Sequence[str], depart: Callable[[], None]) -> dict[str, str]:
        self.begun.set()
        self.waiting += 1
        await self.open.wait()
        depart()
        self.fetches.append(tuple(keys))
        self.departed.set()
        await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error
        self.stored.update({key: key[:4] for key in keys})
        return {key: self.stored[key] for key in keys}


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never became true")


@pytest.fixture(params=["locks", "file/locks", None], ids=["with-locks", "no-locks-possible", "without-locks"])
def flight(request: pytest.FixtureRequest, tmp_path: Path) -> SingleFlight[str]:
    """Return a single flight with lock files; where none can be made, each process pays for itself."""
    (tmp_path / "file").write_text("")
    return SingleFlight(tmp_path / request.param if request.param else None)


@pytest.fixture
def source() -> Source:
    return Source()


@on_a_loop
async def test_many_who_ask_at_once_share_one_fetch(flight: SingleFlight[str], source: Source) -> None:
    found = await asyncio.gather(*(source.share(flight, A) for _ in range(50)))
    assert Counter(each[A] for each in found) == {Fetched(A[:4], fetched=True): 1, Fetched(A[:4], fetched=False): 49}
    assert (await source.share(flight, A), source.fetches) == ({A: Fetched(A[:4], fetched=False)}, [(A,)])


@on_a_loop
async def test_overlapping_batches_fetch_each_key_once(flight: SingleFlight[str], source: Source) -> None:
    batches = ([A, B], [B, C], [C, A, A])
    found = await asyncio.gather(*(source.share(flight, *batch) for batch in batches))
    assert sorted(source.fetches) == [(A, B), (C,)]
    assert [sorted(each) for each in found] == [sorted(set(batch)) for batch in batches]
    assert [each[B].fetched for each in found[:2]] == [True, False]


@on_a_loop
async def test_different_keys_are_fetched_side_by_side(flight: SingleFlight[str], source: Source) -> None:
    """Keys whose locks happen to be the same file do not wait for one another within a process."""
    keys = [f"00{n:062x}" for n in range(20)]
    source.open.clear()
    asked = [source.share(flight, key) for key in keys]
    await until(lambda: source.waiting == 20)
    source.open.set()
    await asyncio.gather(*asked)
    assert len(source.fetches) == 20


@on_a_loop
async def test_an_error_reaches_all_who_wait_and_is_not_kept(flight: SingleFlight[str], source: Source) -> None:
    source.error = ValueError("no value")
    found = await asyncio.gather(*(source.share(flight, A) for _ in range(3)), return_exceptions=True)
    assert found == [source.error] * 3
    source.error = None
    assert (await source.share(flight, A))[A].fetched
    assert len(source.fetches) == 2


@on_a_loop
async def test_cancelling_one_caller_does_not_cancel_the_fetch(flight: SingleFlight[str], source: Source) -> None:
    source.open.clear()
    first, second = source.share(flight, A), source.share(flight, A)
    await source.begun.wait()
    first.cancel()
    await asyncio.sleep(0)
    source.open.set()
    assert (await second)[A] == Fetched(A[:4], fetched=False)
    assert first.cancelled()


@on_a_loop
async def test_a_fetch_that_costs_nothing_yet_ends_with_who_waits(flight: SingleFlight[str], source: Source) -> None:
    source.open.clear()
    callers = [source.share(flight, A) for _ in range(2)]
    await source.begun.wait()
    for each in callers:
        each.cancel()
    await asyncio.wait(callers)
    source.open.set()
    assert (await source.share(flight, A))[A].fetched
    assert source.fetches == [(A,)]


@on_a_loop
async def test_who_asks_while_a_fetch_is_called_off_starts_anew(flight: SingleFlight[str], source: Source) -> None:
    async def slow_to_end(keys: Sequence[str], _: Callable[[], None]) -> dict[str, str]:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.2)
        return dict.fromkeys(keys, "never")

    leaving = asyncio.ensure_future(flight.share([A], source.look, slow_to_end))
    await asyncio.sleep(0.05)
    leaving.cancel()
    await asyncio.wait([leaving])
    assert (await source.share(flight, A))[A].fetched


@on_a_loop
async def test_a_fetch_that_is_being_paid_for_is_finished(flight: SingleFlight[str], source: Source) -> None:
    waiting = source.share(flight, A)
    await source.departed.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not source.stored
    await flight.settle()
    assert source.stored


@on_a_loop
async def test_settling_calls_off_what_has_not_begun(flight: SingleFlight[str], source: Source) -> None:
    paid = source.share(flight, A)
    await source.departed.wait()
    source.open.clear()
    begun = source.share(flight, B)
    await until(lambda: source.waiting == 2)
    await flight.settle(timeout=10)
    await asyncio.wait([begun], timeout=1)
    assert begun.cancelled()
    assert (await paid)[A].fetched
    assert source.fetches == [(A,)]


def test_an_error_that_nobody_waits_for_is_quiet(flight: Any, source: Source, caplog: pytest.LogCaptureFixture) -> None:
    @on_a_loop
    async def given_up() -> None:
        source.error = ValueError("no value")
        waiting = source.share(flight, A)
        await source.departed.wait()
        waiting.cancel()
        await flight.settle()

    given_up()
    assert caplog.records == []


@on_a_loop
async def test_no_more_fetches_run_than_allowed(source: Source, tmp_path: Path) -> None:
    """A request that waits for its turn has no lock."""
    flight: SingleFlight[str] = SingleFlight(tmp_path, width=3)
    source.open.clear()
    asked = [source.share(flight, hashlib.sha256(bytes([n])).hexdigest()) for n in range(30)]
    await until(lambda: source.waiting == 3)
    await asyncio.sleep(0.1)
    assert source.waiting == len(list(tmp_path.iterdir())) == 3  # noqa: ASYNC240 - a local folder
    source.open.set()
    await asyncio.gather(*asked)
    assert len(source.fetches) == 30


def _hold(folder: Path) -> None:
    """Fetch A for ever, and say when it has begun."""

    async def fetch(*_: object) -> dict[str, str]:
        (folder / "begun").touch()
        await asyncio.sleep(600)
        return {}

    asyncio.run(SingleFlight[str](folder / "locks").share([A], lambda _: {}, fetch))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[multiprocessing.process.BaseProcess]:
    process = multiprocessing.get_context("spawn").Process(target=_hold, args=[tmp_path])
    process.start()
    while not (tmp_path / "begun").exists():
        assert process.exitcode is None
        time.sleep(0.01)
    yield process
    process.kill()
    process.join()


@on_a_loop
async def test_the_lock_of_a_killed_process_is_free(source: Source, tmp_path: Path, holder: Any) -> None:
    """A waiting process fetches then; a caller that was cancelled while it waited takes no lock."""
    flight, other = SingleFlight[str](tmp_path / "locks"), SingleFlight[str](tmp_path / "locks")
    leaving, waiting = source.share(other, A), source.share(flight, A)
    await asyncio.sleep(0.3)
    assert source.fetches == []
    leaving.cancel()
    await asyncio.wait([leaving])
    assert leaving.cancelled()
    holder.kill()
    killed = time.monotonic()
    assert (await waiting)[A].fetched
    assert time.monotonic() - killed < 5
    assert source.fetches == [(A,)]


@on_a_loop
async def test_a_process_that_hangs_is_waited_for_during_its_lease(source: Source, tmp_path: Path, holder: Any) -> None:
    flight = SingleFlight[str](tmp_path / "locks", lease=0.2)
    assert (await source.share(flight, A))[A].fetched
    assert holder.is_alive()


@on_a_loop
async def test_a_lock_is_released_after_its_fetch(source: Source, tmp_path: Path) -> None:
    flight: SingleFlight[str] = SingleFlight(tmp_path)
    await source.share(flight, A)
    (file,) = tmp_path.iterdir()  # noqa: ASYNC240 - a local folder
    with FileLock(file, timeout=0):
        assert file.exists()
