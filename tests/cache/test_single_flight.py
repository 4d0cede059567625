"""Single flight: concurrent requests for one key are fetched once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock

import pytest_ragmetrics
from pytest_ragmetrics.cache.single_flight import SingleFlight
from tests.on_a_loop import on_a_loop

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pytest_ragmetrics.__file__).parent.parent)}

A, B, C = (hashlib.sha256(name.encode()).hexdigest() for name in "ABC")

#: A process that fetches for ever, and says when it has begun.
HOLDER = """
import asyncio, sys
from pathlib import Path
from pytest_ragmetrics.cache.single_flight import SingleFlight

def look(wanted):
    return {}

async def fetch(wanted, depart):
    print("begun", flush=True)
    await asyncio.sleep(600)

asyncio.run(SingleFlight(Path(sys.argv[1])).share([sys.argv[2]], look, fetch))
"""


class Fetched(NamedTuple):
    """A value, and whether its caller fetched it."""

    value: str
    fetched: bool


class Source:
    """Values that can be looked up and fetched, and a record of every fetch."""

    def __init__(self) -> None:
        self.stored: dict[str, str] = {}
        self.fetches: list[tuple[str, ...]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.begun = asyncio.Event()
        self.departed = asyncio.Event()
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
    assert source.fetches == [(A,)]
    assert {each[A].value for each in found} == {A[:4]}
    assert [each[A].fetched for each in found].count(True) == 1
    assert await source.share(flight, A) == {A: Fetched(value=A[:4], fetched=False)}
    assert len(source.fetches) == 1


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
    first = source.share(flight, A)
    second = source.share(flight, A)
    await source.begun.wait()
    first.cancel()
    await asyncio.sleep(0)
    source.open.set()
    assert (await second)[A] == Fetched(value=A[:4], fetched=False)
    assert first.cancelled()


@on_a_loop
async def test_a_fetch_that_costs_nothing_yet_ends_with_the_last_who_waits(
    flight: SingleFlight[str], source: Source
) -> None:
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
async def test_who_asks_while_a_fetch_is_being_called_off_starts_anew(
    flight: SingleFlight[str], source: Source
) -> None:
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
    assert source.stored == {}
    await flight.settle()
    assert source.stored == {A: A[:4]}


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


def test_an_error_that_nobody_waits_for_is_quiet(
    flight: SingleFlight[str], source: Source, caplog: pytest.LogCaptureFixture
) -> None:
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


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "error", "-c", HOLDER, str(tmp_path), A]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process
        process.kill()
        process.communicate()


@on_a_loop
async def test_the_lock_of_a_killed_process_is_free(
    source: Source, tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    flight: SingleFlight[str] = SingleFlight(tmp_path)
    other: SingleFlight[str] = SingleFlight(tmp_path)
    leaving = source.share(other, A)
    waiting = source.share(flight, A)
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
async def test_a_process_that_hangs_is_waited_for_no_longer_than_the_lease(
    source: Source, tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    flight: SingleFlight[str] = SingleFlight(tmp_path, lease=0.2)
    assert (await source.share(flight, A))[A].fetched
    assert holder.poll() is None


@on_a_loop
async def test_a_lock_is_released_after_its_fetch(source: Source, tmp_path: Path) -> None:
    flight: SingleFlight[str] = SingleFlight(tmp_path)
    await source.share(flight, A)
    (file,) = tmp_path.iterdir()  # noqa: ASYNC240 - a local folder
    with FileLock(file, timeout=0):
        assert file.exists()
