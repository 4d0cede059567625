"""What an interrupt leaves: no request that had not begun, and every answer that was paid for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ragmetrics.cache.store import Store
from tests.fake_openai import FakeOpenAI, Reply, failing
from tests.plugin.conftest import MANY, SERIAL, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")

# Forty rows, each of which takes two requests one after the other.
SUITE = """
import pytest
ROWS = [{"id": f"r{n}", "user_input": "?", "contexts": [f"Ivy {n} climbs."]} for n in range(40)]
@pytest.fixture(scope="session")
def rag_respond():
    yield lambda sample: f"Ivy {sample.id} climbs."
@pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
def test_row(rag_sample, rag_scores):
    pass
"""
# Holds the run where it was interrupted, until what was in flight is answered and stored.
CONFTEST = """
import os, pathlib, time
import pytest
@pytest.hookimpl(trylast=True)
def pytest_keyboard_interrupt():
    pathlib.Path(f"interrupted-{os.getpid()}").touch()
    while not pathlib.Path("go-on").exists():
        time.sleep(0.01)
"""
IN_FLIGHT = 8


def begin(folder: Path, server: FakeOpenAI, *args: str) -> subprocess.Popen[str]:
    """Start pytest in a process group of its own, as a shell does."""
    (folder / "test_rows.py").write_text(SUITE, "utf-8")
    (folder / "conftest.py").write_text(CONFTEST, "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "ragmetrics", f"--rag-concurrency={IN_FLIGHT}", *args]
    environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-fake", "HOME": str(folder)}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def stored(folder: Path) -> int:
    """Return how many answers are in the local cache."""
    with Store(folder / ".ragmetrics") as store:
        return store.count()


@pytest.mark.parametrize("workers", [SERIAL, MANY], ids=["one process", "workers"])
def test_an_interrupt_sends_nothing_that_had_not_begun(no_provider: None, tmp_path: Path, workers: list[str]) -> None:
    """No further row, no next request of a row, no repair and no retry; what was in flight is stored."""
    with FakeOpenAI() as server:
        # A round that is never complete.
        server.waves = [1_000]
        asked_again = (failing(), failing(), failing(429), "no JSON", Reply(text='{"claims": 3}'))
        server.script(*asked_again)
        kept = IN_FLIGHT - len(asked_again)
        process = begin(tmp_path, server, *workers)
        wait_until(lambda: server.in_flight == IN_FLIGHT, process)
        os.killpg(process.pid, signal.SIGINT)
        processes = 3 if workers else 1
        wait_until(lambda: len([*tmp_path.glob("interrupted-*")]) == processes, process)
        server.release()
        wait_until(lambda: server.calls >= IN_FLIGHT and stored(tmp_path) >= kept, process)
        (tmp_path / "go-on").touch()
        process.communicate()
        assert process.returncode == pytest.ExitCode.INTERRUPTED
        assert server.calls == IN_FLIGHT
    assert stored(tmp_path) == kept
