"""What an interrupt leaves: no request that had not begun, and every answer that was paid for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from pytest_ragmetrics.cache.store import Store
from tests.fake_openai import FakeOpenAI, Reply, failing
from tests.plugin.conftest import write_files

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")

# Forty rows, each of which takes two requests one after the other.
SUITE = """
ROWS = [{"id": f"r{n}", "user_input": "?", "contexts": [f"Ivy {n} climbs."]} for n in range(40)]
@pytest.fixture(scope="session")
def rag_respond(): yield lambda sample: f"Ivy {sample.id} climbs."
@pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
def test_row(rag_sample, rag_scores): pass
"""
# Holds the run where it was interrupted, until what was in flight is answered and stored.
CONFTEST = """
import os, pathlib, time, pytest
@pytest.hookimpl(trylast=True)
def pytest_keyboard_interrupt():
    pathlib.Path(f"interrupted-{os.getpid()}").touch()
    while not pathlib.Path("go-on").exists():
        time.sleep(0.01)
"""
IN_FLIGHT = 8
OPTIONS = ("-p", "ragmetrics", f"--rag-concurrency={IN_FLIGHT}")


def until(condition: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stored(folder: Path) -> int:
    with Store(folder / ".ragmetrics") as store:
        return store.count()


def interrupted(folder: Path, server: FakeOpenAI, interrupt: Callable[[], object], processes: int) -> None:
    """Interrupt a run whose requests are all in flight, answer them, and let it end when the answers are stored.

    Of those that would be asked again, as they failed or cannot be used, none is.
    """
    until(lambda: server.in_flight == IN_FLIGHT)
    interrupt()
    until(lambda: len([*folder.glob("interrupted-*")]) == processes)
    server.release()
    until(lambda: server.calls >= IN_FLIGHT and stored(folder) >= IN_FLIGHT - len(ASKED_AGAIN))
    (folder / "go-on").touch()


ASKED_AGAIN = (failing(), failing(), failing(429), "no JSON", Reply(text='{"claims": 3}'))


@pytest.fixture
def held(server: FakeOpenAI, pytester: pytest.Pytester) -> FakeOpenAI:
    """Write the suite, and return a provider that answers nothing before it is released."""
    # A round that is never complete.
    server.waves = [1_000]
    server.script(*ASKED_AGAIN)
    write_files(pytester.path, test_rows=SUITE, conftest=CONFTEST)
    return server


def test_an_interrupt_sends_nothing_that_had_not_begun(held: FakeOpenAI, pytester: pytest.Pytester) -> None:
    interrupt = partial(signal.pthread_kill, threading.main_thread().ident or 0, signal.SIGINT)
    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(interrupted, pytester.path, held, interrupt, 1)
        result = pytester.runpytest_inprocess(*OPTIONS, no_reraise_ctrlc=True)
        ended.result()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert (held.calls, stored(pytester.path)) == (IN_FLIGHT, IN_FLIGHT - len(ASKED_AGAIN))


@pytest.mark.slow
def test_an_interrupt_reaches_workers(held: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """A shell interrupts the whole process group."""
    command = [sys.executable, "-m", "pytest", *OPTIONS, "-p", "xdist", "-n1"]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        interrupted(pytester.path, held, partial(os.killpg, process.pid, signal.SIGINT), 2)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert (held.calls, stored(pytester.path)) == (IN_FLIGHT, IN_FLIGHT - len(ASKED_AGAIN))
