"""A server of llama.cpp as a process, and runs of pytest that ask it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.remote.servers import free_port

_START = 60.0
_OPTIONS = ("--rag-judge=openai:smollm2", "--rag-json=out.json")


@dataclass(kw_only=True)
class LlamaServer:
    """A server that runs: its port, and its process with its log."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def begun(self) -> int:
        """How many requests came to a slot: what costs time, whether its answer was waited for or not."""
        return self.log.read_text("utf-8", "replace").count("processing task")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def llama_server(
    folder: Path, *, context: int = 8192, slots: int = 1, embeds: bool = False, port: int = 0
) -> Iterator[LlamaServer]:
    port = port or free_port()
    log = folder / f"server-{time.monotonic_ns()}.log"
    program = Path(__file__).with_name("serve.py")
    command = [sys.executable, str(program), os.environ["REAL_MODEL"], str(port), str(context), str(slots)]
    with log.open("wb") as written:
        process = subprocess.Popen([*command, *(["embedding"] if embeds else [])], stdout=written, stderr=written)
    try:
        _await_model(port, process, log)
        yield LlamaServer(port=port, process=process, log=log)
    finally:
        process.kill()
        process.wait()


def _await_model(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START
    while True:
        # It answers 503 while it loads the model.
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return
        assert process.poll() is None, log.read_text("utf-8", "replace")
        assert time.monotonic() < deadline, "the server does not load its model"
        time.sleep(0.05)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of pytest that has ended: its status, what it printed, and the tests and the run of its JSON file."""

    status: int
    out: str
    written: dict[str, Any]

    @property
    def records(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (test["id"].rpartition("::")[2], record["metric"]): record
            for test in self.written["tests"]
            for record in test["records"]
        }

    @property
    def outcomes(self) -> list[tuple[Any, ...]]:
        tests = [(test["id"], test["outcome"]) for test in self.written["tests"]]
        return [*tests, *((*names, found["outcome"], found["score"]) for names, found in self.records.items())]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(dedent(text), "utf-8")


def asking(url: str, **more: str) -> dict[str, str]:
    """Return the environment of a process that asks a server."""
    return {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "PY_COLORS": "0", **more}


def start(folder: Path, url: str, *args: str, before: Sequence[str] = (), **more: str) -> subprocess.Popen[str]:
    """Start pytest in a folder, with a judge at an address; ``before`` comes before the command."""
    command = [*before, sys.executable, "-m", "pytest", "-q", "-p", "ragmetrics", *_OPTIONS, *args]
    return subprocess.Popen(
        command, cwd=folder, env=asking(url, **more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ended(process: subprocess.Popen[str], folder: Path) -> Run:
    out, _ = process.communicate(timeout=600)
    # It is shown where a test fails.
    print(out)
    return Run(status=process.returncode, out=out, written=json.loads((folder / "out.json").read_text("utf-8")))


def run(folder: Path, url: str, *args: str, before: Sequence[str] = (), **more: str) -> Run:
    return ended(start(folder, url, *args, before=before, **more), folder)
