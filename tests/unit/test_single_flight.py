"""Single flight: concurrent requests for one key are fetched once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from filelock import FileLock

import pytest_ragmetrics
from pytest_ragmetrics.cache.single_flight import Fetched, SingleFlight

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pytest_ragmetrics.__file__).parent.parent)}

A, B, C = (hashlib.sha256(name.encode()).hexdigest() for name in "ABC")

#: A process that keeps what it fetches in files, and notes each fetch in one more.
PROCESS = """
import asyncio, hashlib, sys
from pathlib import Path
from pytest_ragmetrics.cache.single_flight import SingleFlight

folder = Path(sys.argv[1])
batch = int(sys.argv[2])
keys = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(20)]

async def look(wanted):
    return {key: (folder / key).read_text() for key in wanted if (folder / key).exists()}

async def fetch(wanted, depart):
    depart()
    await asyncio.sleep(0.02)
    with (folder / "till").open("a") as till:
        till.writelines(f"{key}\\n" for key in wanted)
    for key in wanted:
        (folder / key).write_text(key[::-1])
    return {key: key[::-1] for key in wanted}

async def main():
    flight = SingleFlight(folder / "locks")
    shift = int(sys.argv[3]) * 3
    order = keys[shift:] + keys[:shift]
    parts = [order[at:at + batch] for at in range(0, len(order), 1 if batch > 1 else batch)]
    for found in await asyncio.gather(*(flight.share(part, look, fetch) for part in parts)):
        assert all(landed.value == key[::-1] for key, landed in found.items())

asyncio.run(main())
"""

#: A process that fetches for ever, and says when it has begun.
HOLDER = """
import asyncio, sys
from pathlib import Path
from pytest_ragmetrics.cache.single_flight import SingleFlight

async def look(wanted):
    return {}

async def fetch(wanted, depart):
    print("begun", flush=True)
    await asyncio.sleep(600)

asyncio.run(SingleFlight(Path(sys.argv[1])).share([sys.argv[2]], look, fetch))
"""


class Shop:
    """What can be looked for and fetched, and a record of every fetch."""

    def __init__(self) -> None:
        self.shelf: dict[str, str] = {}
        self.bills: list[tuple[str, ...]] = []
        self.counter_open = asyncio.Event()
        self.begun = asyncio.Event()
        self.paying = asyncio.Event()
        self.at_the_counter = 0
        self.error: Exception | None = None

    async def look(self, keys: Sequence[str]) -> dict[str, str]:
        """Return what is on the shelf."""
        return {key: self.shelf[key] for key in keys if key in self.shelf}

    async def fetch(self, keys: Sequence[str], depart: Callable[[], None]) -> dict[str, str]:
        """Fetch as soon as the counter is open, and put what was fetched on the shelf."""
        self.begun.set()
        self.at_the_counter += 1
        await self.counter_open.wait()
        depart()
        self.bills.append(tuple(keys))
        self.paying.set()
        await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error
        self.shelf.update({key: key[:4] for key in keys})
        return {key: self.shelf[key] for key in keys}


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never became true")


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    """Start another process."""
    command = [sys.executable, "-W", "error", "-c", script, *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for a process, which must end well and in silence."""
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")


def lock_files(folder: Path) -> list[Path]:
    """Return the lock files there are."""
    return list(folder.iterdir())


def play(story: Callable[[SingleFlight[str], Shop], Awaitable[None]], locks: Path | None = None) -> None:
    """Run a story with a flight and an open shop."""

    async def main() -> None:
        flight: SingleFlight[str] = SingleFlight(locks)
        shop = Shop()
        shop.counter_open.set()
        await asyncio.wait_for(story(flight, shop), 60)

    asyncio.run(main())


@pytest.fixture(params=[True, False], ids=["with-locks", "without-locks"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where the lock files are, if there are any."""
    return tmp_path / "locks" if request.param else None


def test_many_who_ask_at_once_share_one_fetch(locks: Path | None) -> None:
    """One of them has fetched it, the others are told."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        found = await asyncio.gather(*(flight.share([A], shop.look, shop.fetch) for _ in range(50)))
        assert shop.bills == [(A,)]
        assert {each[A].value for each in found} == {A[:4]}
        assert [each[A].fetched for each in found].count(True) == 1

    play(story, locks)


def test_what_is_there_is_not_fetched(locks: Path | None) -> None:
    """The second look finds what somebody stored since the first."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        shop.shelf[A] = "there"
        assert await flight.share([A], shop.look, shop.fetch) == {A: Fetched(value="there", fetched=False)}
        assert shop.bills == []

    play(story, locks)


def test_overlapping_batches_fetch_each_key_once(locks: Path | None) -> None:
    """A batch fetches together what nobody is fetching yet, and waits for the rest."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        batches = ([A, B], [B, C], [C, A, A])
        found = await asyncio.gather(*(flight.share(batch, shop.look, shop.fetch) for batch in batches))
        assert sorted(shop.bills) == [(A, B), (C,)]
        assert [sorted(each) for each in found] == [sorted(set(batch)) for batch in batches]
        assert [each[B].fetched for each in found[:2]] == [True, False]

    play(story, locks)


def test_different_keys_are_fetched_side_by_side(locks: Path | None) -> None:
    """Keys whose locks happen to be the same file do not wait for one another within a process."""
    keys = [f"00{n:062x}" for n in range(20)]

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        shop.counter_open.clear()
        asked = [asyncio.ensure_future(flight.share([key], shop.look, shop.fetch)) for key in keys]
        await until(lambda: shop.at_the_counter == 20)
        shop.counter_open.set()
        await asyncio.gather(*asked)
        assert len(shop.bills) == 20

    play(story, locks)


def test_an_error_reaches_all_who_wait_and_is_not_kept(locks: Path | None) -> None:
    """The next one who asks tries again."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        shop.error = ValueError("sold out")
        found = await asyncio.gather(
            *(flight.share([A], shop.look, shop.fetch) for _ in range(3)), return_exceptions=True
        )
        assert found == [shop.error] * 3
        shop.error = None
        assert (await flight.share([A], shop.look, shop.fetch))[A].fetched
        assert len(shop.bills) == 2

    play(story, locks)


def test_one_who_leaves_does_not_take_the_others_along(locks: Path | None) -> None:
    """The fetch belongs to all who wait, also when the one who caused it is cancelled."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        shop.counter_open.clear()
        first = asyncio.ensure_future(flight.share([A], shop.look, shop.fetch))
        second = asyncio.ensure_future(flight.share([A], shop.look, shop.fetch))
        await shop.begun.wait()
        first.cancel()
        await asyncio.sleep(0)
        shop.counter_open.set()
        assert (await second)[A] == Fetched(value=A[:4], fetched=False)
        assert first.cancelled()

    play(story, locks)


def test_a_fetch_that_costs_nothing_yet_ends_with_the_last_who_waits(locks: Path | None) -> None:
    """After an interrupt no further request is begun, and who asks then starts anew."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        shop.counter_open.clear()
        waiting = [asyncio.ensure_future(flight.share([A], shop.look, shop.fetch)) for _ in range(2)]
        await shop.begun.wait()
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        shop.counter_open.set()
        assert (await flight.share([A], shop.look, shop.fetch))[A].fetched
        assert shop.bills == [(A,)]

    play(story, locks)


def test_who_asks_while_a_fetch_is_being_called_off_starts_anew(locks: Path | None) -> None:
    """The cancellation of those who left is not handed to those who come."""

    async def slow_to_end(keys: Sequence[str], _: Callable[[], None]) -> dict[str, str]:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.2)
        return dict.fromkeys(keys, "never")

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        leaving = asyncio.ensure_future(flight.share([A], shop.look, slow_to_end))
        await asyncio.sleep(0.05)
        leaving.cancel()
        await asyncio.wait([leaving])
        assert (await flight.share([A], shop.look, shop.fetch))[A].fetched

    play(story, locks)


def test_a_fetch_that_is_being_paid_for_is_finished(locks: Path | None) -> None:
    """Nobody waits any more, and the answer is stored all the same."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        waiting = asyncio.ensure_future(flight.share([A], shop.look, shop.fetch))
        await shop.paying.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert shop.shelf == {}
        await flight.settle()
        assert shop.shelf == {A: A[:4]}

    play(story, locks)


def test_settling_calls_off_what_has_not_begun(locks: Path | None) -> None:
    """At the end of a run only what costs something already is waited for."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        paid = asyncio.ensure_future(flight.share([A], shop.look, shop.fetch))
        await shop.paying.wait()
        shop.counter_open.clear()
        begun = asyncio.ensure_future(flight.share([B], shop.look, shop.fetch))
        await until(lambda: shop.at_the_counter == 2)
        await flight.settle(timeout=10)
        await asyncio.wait([begun], timeout=1)
        assert begun.cancelled()
        assert (await paid)[A].fetched
        assert shop.bills == [(A,)]

    play(story, locks)


def test_an_error_that_nobody_waits_for_is_quiet(locks: Path | None, caplog: pytest.LogCaptureFixture) -> None:
    """It is no "exception was never retrieved"."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        shop.error = ValueError("sold out")
        waiting = asyncio.ensure_future(flight.share([A], shop.look, shop.fetch))
        await shop.paying.wait()
        waiting.cancel()
        await flight.settle()

    play(story, locks)
    assert caplog.records == []


def test_no_more_trips_are_under_way_than_allowed(tmp_path: Path) -> None:
    """A process keeps no locks of requests that wait for their turn."""

    async def main() -> None:
        flight: SingleFlight[str] = SingleFlight(tmp_path, width=3)
        shop = Shop()
        keys = [hashlib.sha256(bytes([n])).hexdigest() for n in range(30)]
        asked = asyncio.gather(*(flight.share([key], shop.look, shop.fetch) for key in keys))
        await until(lambda: shop.at_the_counter == 3)
        await asyncio.sleep(0.1)
        assert shop.at_the_counter == len(lock_files(tmp_path)) == 3
        shop.counter_open.set()
        await asked
        assert len(shop.bills) == 30

    asyncio.run(main())


def test_two_loops_in_one_process_share_a_fetch(tmp_path: Path) -> None:
    """Threads with a loop of their own are held apart by the lock files."""
    shelf: dict[str, str] = {}
    bills: list[str] = []

    async def look(keys: Sequence[str]) -> dict[str, str]:
        return {key: shelf[key] for key in keys if key in shelf}

    async def fetch(keys: Sequence[str], _: Callable[[], None]) -> dict[str, str]:
        bills.extend(keys)
        await asyncio.sleep(0.05)
        shelf.update(dict.fromkeys(keys, "value"))
        return dict(shelf)

    flight: SingleFlight[str] = SingleFlight(tmp_path / "locks")
    threads = [threading.Thread(target=lambda: asyncio.run(flight.share([A], look, fetch))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bills == [A]


def test_locks_that_cannot_be_had_keep_nobody_from_fetching(tmp_path: Path) -> None:
    """Where no file can be made, each process pays for itself."""
    (tmp_path / "file").write_text("")

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        found = await asyncio.gather(*(flight.share([A], shop.look, shop.fetch) for _ in range(3)))
        assert [each[A].value for each in found] == [A[:4]] * 3
        assert shop.bills == [(A,)]

    play(story, tmp_path / "file" / "locks")


@pytest.mark.parametrize("batch", [1, 5], ids=["one-by-one", "in-batches"])
def test_processes_that_ask_the_same_pay_once(tmp_path: Path, batch: int) -> None:
    """Four processes that ask for the same twenty keys at once fetch twenty, alone and in overlapping batches."""
    for process in [start(PROCESS, str(tmp_path), str(batch), str(number)) for number in range(4)]:
        finish(process)
    bill = (tmp_path / "till").read_text().split()
    assert (len(bill), len(set(bill))) == (20, 20)


def test_a_killed_process_holds_nobody_up(tmp_path: Path) -> None:
    """The lock of a process is free the moment it is gone."""
    with start(HOLDER, str(tmp_path), A) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "begun\n"

        async def story(flight: SingleFlight[str], shop: Shop) -> None:
            waiting = asyncio.ensure_future(flight.share([A], shop.look, shop.fetch))
            await asyncio.sleep(0.3)
            assert shop.bills == []
            holder.kill()
            killed = time.monotonic()
            assert (await waiting)[A].fetched
            assert time.monotonic() - killed < 5

        play(story, tmp_path)
        holder.communicate()


def test_a_process_that_hangs_is_waited_for_no_longer_than_the_lease(tmp_path: Path) -> None:
    """A stopped process cannot stop a whole run."""
    with start(HOLDER, str(tmp_path), A) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "begun\n"

        async def main() -> None:
            flight: SingleFlight[str] = SingleFlight(tmp_path, lease=0.2)
            shop = Shop()
            shop.counter_open.set()
            assert (await flight.share([A], shop.look, shop.fetch))[A].fetched

        asyncio.run(asyncio.wait_for(main(), 30))
        assert holder.poll() is None
        holder.kill()
        holder.communicate()


def test_who_leaves_while_waiting_for_a_lock_takes_none_along(tmp_path: Path) -> None:
    """Whoever comes next gets the lock as soon as its holder is gone."""
    with start(HOLDER, str(tmp_path), A) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "begun\n"

        async def story(flight: SingleFlight[str], shop: Shop) -> None:
            leaving = asyncio.ensure_future(flight.share([A], shop.look, shop.fetch))
            await asyncio.sleep(0.05)
            leaving.cancel()
            await asyncio.wait([leaving])
            assert leaving.cancelled()
            holder.kill()
            assert (await flight.share([A], shop.look, shop.fetch))[A].fetched
            assert shop.bills == [(A,)]

        play(story, tmp_path)
        holder.communicate()


def test_a_lock_is_free_again_once_its_trip_has_landed(tmp_path: Path) -> None:
    """Another process need not wait for the end of the run."""

    async def story(flight: SingleFlight[str], shop: Shop) -> None:
        await flight.share([A], shop.look, shop.fetch)
        (file,) = lock_files(tmp_path)
        with FileLock(file, timeout=0):
            assert file.exists()

    play(story, tmp_path)
