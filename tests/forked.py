"""Processes of nested runs are forks of one that has imported what they would import: 0.2 s of a core each, not 1 s.

``python -IS forked.py ARGUMENTS`` stands for ``python ARGUMENTS``, of which it takes ``-m`` and ``-c``. It hands its
streams, folder, environment and arguments to the process that ``FORKED_FROM`` names, and ends as the fork of it ends.
That process has one thread, as those of multiprocessing that fork have.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import execnet

#: What is imported before, and what a run inside a test finds imported: plugins of pytest other than this one must not
#: be, since it warns that it cannot rewrite them.
IMPORTED = [
    *(("aiohttp", "openai._vendor.httpx_aiohttp") if find_spec("aiohttp") and find_spec("openai._vendor") else ()),
    *("diskcache", "execnet", "filelock", "genai_prices.data", "numpy.fft", "numpy.random"),
    *("openai.resources.chat", "openai.resources.files", "pytest"),
    *("rapidfuzz.process", "sentencex"),
    *(f"pytest_ragmetrics.{name}" for name in ("judges.local", "judges.batches.queue", "judges.providers.openai")),
    *(f"pytest_ragmetrics.judges.embedders.{name}" for name in ("local", "openai")),
    *(f"pytest_ragmetrics.evaluation.{name}" for name in ("dry_run", "engine")),
    *(f"pytest_ragmetrics.plugin.{name}" for name in ("carried", "gates.plugin", "report", "rows.dataset_tests")),
    *(f"pytest_ragmetrics.plugin.{name}" for name in ("rows.drawn", "session", "settings", "terminal", "tracebacks")),
    *("pytest_ragmetrics.report.files", "pytest_ragmetrics.report.markdown", "pytest_ragmetrics.runs.wording.repeats"),
    *("pytest_ragmetrics.plugin", "pytest_ragmetrics.stats.means"),
]
VARIABLE = "FORKED_FROM"
#: The Python of such a process.
PYTHON = [sys.executable, "-IS", __file__]


def workers() -> object:
    """Return a plugin: the workers of xdist in this run are such processes."""
    import pytest

    class Workers:
        @pytest.hookimpl(optionalhook=True)
        def pytest_xdist_setupnodes(self, specs: list[execnet.XSpec]) -> None:
            for spec in specs:
                spec.python = " ".join(PYTHON)

    return Workers()


@contextlib.contextmanager
def forking(address: str) -> Iterator[None]:
    """Have a process at that address of a socket, from which nested runs are forked; environment variables name it."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        descriptor = listening.fileno()
        command = [sys.executable, __file__, "--fork-at", str(descriptor)]
        parent = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[descriptor], env=environment)
    os.environ[VARIABLE] = address
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        parent.communicate()


def _begin() -> int:
    """Ask for a fork that goes on with the streams of this process; returns how it ended."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(os.environ[VARIABLE])
        begun = {"argv": sys.argv[1:], "cwd": os.path.realpath("."), "environ": dict(os.environ)}
        socket.send_fds(asking, [b"-"], [0, 1, 2])
        asking.sendall(json.dumps(begun).encode())
        asking.shutdown(socket.SHUT_WR)
        return int(asking.recv(16) or b"1")


def _fork_at(descriptor: int) -> list[str]:
    """Fork for each that asks until the suite has ended. Returns, in a fork, what it is to run."""
    import gc
    from importlib import import_module
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parent.parent))
    for name in IMPORTED:
        import_module(name)
    package = import_module("pytest_ragmetrics")
    for name in dir(package):
        getattr(package, name)
    gc.freeze()
    with socket.socket(fileno=descriptor) as listening:
        while descriptor in select.select([descriptor, 0], [], [])[0]:
            asking = listening.accept()[0]
            if os.fork():
                asking.close()
                with contextlib.suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
                continue
            with asking:
                streams = socket.recv_fds(asking, 1, 3)[1]
                begun = json.load(asking.makefile())
                if child := os.fork():
                    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                    asking.sendall(str(status if status >= 0 else 128 - status).encode())
                    os._exit(0)
            listening.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.chdir(begun["cwd"])
            os.environ.clear()
            os.environ.update(begun["environ"])
            return list(begun["argv"])
    with contextlib.suppress(ChildProcessError):
        while os.wait():
            pass
    os._exit(0)


def _run(argv: list[str]) -> None:
    """Do what ``python`` does with ``-m pytest`` or, as execnet starts it, with ``-u -c CODE``."""
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [os.path.realpath("."), *given, *sys.path[2:]]
    if argv[:2] == ["-m", "pytest"]:
        import pytest

        sys.argv = argv[1:]
        sys.exit(pytest.main(argv[2:], plugins=[workers()]))
    sys.argv = ["-c"]
    sys.modules["__main__"] = main = ModuleType("__main__")
    exec(argv[argv.index("-c") + 1], main.__dict__)


if __name__ == "__main__":
    if sys.argv[1] == "--fork-at":
        _run(_fork_at(int(sys.argv[2])))
    else:
        sys.exit(_begin())
