"""The background loop: who may wait for it, what cancels what, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context

import pytest

from pytest_ragmetrics.core import loop
from tests.on_a_loop import on_a_loop

_NAME: ContextVar[str] = ContextVar("name", default="nobody")


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    """Stop the loop that an earlier test of another file may have left, and that of this one."""
    loop.stop()
    yield
    loop.stop()


async def _double(number: int) -> int:
    await asyncio.sleep(0.001)
    return 2 * number


async def _here() -> tuple[int, int]:
    return threading.get_ident(), id(asyncio.get_running_loop())


async def _run_here(number: int) -> int:
    return loop.run(_double(number))


class Interrupted:
    def __init__(self) -> None:
        self.started = threading.Event()
        self.cancelled = threading.Event()

    async def wait(self) -> None:
        self.started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


def test_every_call_uses_the_same_loop() -> None:
    here = loop.run(_here())
    with ThreadPoolExecutor(4) as threads:
        elsewhere = set(threads.map(lambda _: loop.run(_here()), range(8)))
    assert elsewhere == {here}
    assert here[0] != threading.get_ident()


@on_a_loop
async def test_arun_is_awaited_from_another_loop() -> None:
    meeting = threading.Barrier(2)

    async def meet() -> int:
        await asyncio.to_thread(meeting.wait, 10)
        return threading.get_ident()

    first, second = await asyncio.gather(loop.arun(meet()), loop.arun(meet()))
    assert first == second != threading.get_ident()


def test_the_result_comes_wherever_the_call_is_made() -> None:
    assert asyncio.run(_run_here(5)) == 10
    assert loop.run(loop.arun(_double(6))) == 12
    with pytest.raises(StopIteration) as end:
        loop.arun(_double(7)).send(None)
    assert end.value.value == 14


def test_waiting_for_the_loop_on_its_own_thread_is_refused() -> None:
    async def stop() -> None:
        loop.stop()

    with pytest.raises(RuntimeError, match=r"await ascore\(\) instead of calling score\(\)"):
        loop.run(_run_here(1))
    with pytest.raises(RuntimeError, match="cannot stop itself"):
        loop.run(stop())


def test_a_context_variable_reaches_the_coroutine() -> None:
    async def who() -> str:
        return _NAME.get()

    context = copy_context()
    context.run(_NAME.set, "Ada")
    assert context.run(lambda: loop.run(who())) == "Ada"


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs a signal sent to a thread")
def test_an_interrupt_cancels_the_coroutine() -> None:
    work, main = Interrupted(), threading.main_thread().ident

    def interrupt() -> None:
        work.started.wait(10)
        signal.pthread_kill(main or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run(work.wait())
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert work.cancelled.wait(10)
    assert loop.run(_double(1)) == 2


def test_an_interrupt_before_the_coroutine_runs_keeps_it_from_running() -> None:
    work = Interrupted()
    call = loop._Call(work.wait())
    call.cancel()
    with pytest.raises(CancelledError):
        loop._submit(call.run()).result(10)
    assert not work.started.is_set()


@on_a_loop
async def test_cancelling_arun_cancels_the_coroutine() -> None:
    work = Interrupted()
    task = asyncio.ensure_future(loop.arun(work.wait()))
    await asyncio.to_thread(work.started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.cancelled.wait(10)


@pytest.mark.parametrize("error", [LookupError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("nested", [False, True])
def test_an_error_does_not_end_the_loop(error: type[BaseException], nested: bool) -> None:
    async def leave() -> None:
        raise error

    async def both() -> None:
        await asyncio.gather(leave(), asyncio.sleep(0))

    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(lambda: loop.run(_double(1)))
        with pytest.raises(error):
            loop.run(both() if nested else leave())
        assert loop.run(_double(2)) == 4
        assert other.result(10) == 2


def test_stop_cancels_what_still_runs() -> None:
    work = Interrupted()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: loop.run(work.wait()))
        work.started.wait(10)
        loop.stop()
        assert isinstance(waiting.exception(10), CancelledError)
    assert work.cancelled.is_set()


def test_stop_closes_generators_and_threads() -> None:
    closed = threading.Event()

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            closed.set()

    kept = numbers()

    async def first() -> object:
        await asyncio.to_thread(time.sleep, 0)
        return await anext(kept)

    assert loop.run(first()) == 1
    loop.stop()
    assert closed.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ragmetrics")]


def test_stop_closes_what_asked_for_it() -> None:
    closed: list[object] = []

    async def first() -> None:
        closed.append(("first", id(asyncio.get_running_loop())))

    async def second() -> None:
        closed.append("second")
        raise OSError("already gone")

    loop.on_stop(first)
    loop.on_stop(second)
    here = loop.run(_here())
    assert closed == []
    loop.stop()
    assert closed == ["second", ("first", here[1])]
    loop.stop()
    assert len(closed) == 2


def test_calls_survive_a_loop_that_is_stopped_all_the_time() -> None:
    done = threading.Event()

    def call() -> None:
        while not done.is_set():
            with suppress(CancelledError):
                loop.run(_double(1))

    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(call) for _ in range(4)]
        for _ in range(50):
            loop.stop()
        done.set()
        assert [each.exception(20) for each in calls] == [None] * 4


#: Scripts that stop no loop, and what they print.
SCRIPTS = {
    # Both sides of a fork can call, in either order, and neither complains when it ends.
    "fork": (
        """
        import asyncio, gc, os, sys
        from pytest_ragmetrics.core import loop

        async def double(number):
            await asyncio.sleep(0.001)
            return 2 * number

        print(loop.run(double(1)), flush=True)
        child = os.fork()
        if child == 0:
            print(loop.run(double(2)), flush=True)
            gc.collect()
            sys.exit(0)
        status = os.waitpid(child, 0)[1]
        print(loop.run(double(3)), status, flush=True)
        """,
        ["2", "4", "6 0"],
    ),
    # No thread can be started at exit since Python 3.12, and none is needed: clients and generators are closed.
    "threads": (
        """
        import asyncio, threading
        from pytest_ragmetrics.core import loop

        async def numbers():
            try:
                yield 1
            finally:
                print("generator closed", flush=True)

        async def first():
            return await asyncio.to_thread(lambda: 1) + await anext(kept)

        async def close():
            print("client closed", flush=True)

        kept = numbers()
        loop.on_stop(close)
        print(loop.run(first()), flush=True)
        started = threading.Event()
        threading.Thread(target=lambda: loop.run(asyncio.to_thread(started.set)), daemon=True).start()
        started.wait(10)
        """,
        ["2", "client closed", "generator closed"],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_stops_nothing_ends_quietly(name: str) -> None:
    if name == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs fork")
    script, printed = SCRIPTS[name]
    # Python 3.12 warns of any fork while there are threads.
    warn = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    # In development mode asyncio logs each step of a task that takes a tenth of a second, as on a busy machine.
    quiet = "import logging; logging.getLogger('asyncio').setLevel(logging.ERROR)\n"
    command = [sys.executable, "-X", "dev", *warn, "-c", quiet + textwrap.dedent(script)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == (printed, "", 0)


def test_a_loop_that_cannot_be_started_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't create new thread"):
        loop.run(_double(1))
    with pytest.raises(RuntimeError, match="can't create new thread"):
        asyncio.run(loop.arun(_double(1)))
    gc.collect(1)
