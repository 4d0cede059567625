"""Processes of nested runs are forks of one that has imported what they would import: 0.1 s of a core each, not 1 s.

``python -IS fork.py ARGUMENTS`` stands for ``python ARGUMENTS``, of which it takes ``-m pytest`` and ``-c``. The
process that forks has one thread, as those of multiprocessing that fork have.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import marshal
import os
import select
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import execnet

#: What is imported before, and what a run inside a test finds imported: plugins of pytest other than this one must not
#: be, unless pytest rewrites them, since it warns that it cannot.
IMPORTED = [
    *(("aiohttp", "openai._vendor.httpx_aiohttp") if find_spec("aiohttp") and find_spec("openai._vendor") else ()),
    *(name for name in ("httpcore", "httpcore2") if find_spec(name)),
    *("diskcache", "execnet", "filelock", "genai_prices.data", "genai_prices.validation", "jinja2"),
    *("numpy.fft", "numpy.random", "openai.resources.chat", "openai.resources.files", "pytest"),
    *("rapidfuzz.process", "sentencex", "xdist.remote", "xdist.scheduler"),
    *(f"pytest_ragmetrics.{name}" for name in ("judges.local", "judges.batches.queue", "judges.providers.openai")),
    *(f"pytest_ragmetrics.judges.embedders.{name}" for name in ("local", "openai")),
    *(f"pytest_ragmetrics.evaluation.{name}" for name in ("dry_run", "engine")),
    *(f"pytest_ragmetrics.plugin.{name}" for name in ("carried", "config", "gates.decide", "gates.plugin", "report")),
    *(f"pytest_ragmetrics.plugin.{name}" for name in ("rows.dataset_tests", "rows.drawn", "session", "settings")),
    *(f"pytest_ragmetrics.plugin.{name}" for name in ("terminal", "tracebacks")),
    *(f"pytest_ragmetrics.{name}" for name in ("report.files", "report.markdown", "runs.wording.power")),
    *(f"pytest_ragmetrics.{name}" for name in ("runs.wording.repeats", "plugin", "stats.means", "text.quotes.nearest")),
]
VARIABLE = "FORKED_FROM"
#: The Python of such a process.
PYTHON = [sys.executable, "-IS", str(Path(__file__).with_name("fork.py"))]


def workers() -> object:
    """Return a plugin: the workers of xdist in this run are such processes."""
    import pytest

    class Workers:
        @pytest.hookimpl(optionalhook=True)
        def pytest_xdist_setupnodes(self, specs: list[execnet.XSpec]) -> None:
            from xdist import workermanage

            workermanage._sys_path = list(sys.path)  # as if this process had begun with this run, and imported it now
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
        command = [sys.executable, __file__, str(descriptor)]
        parent = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[descriptor], env=environment)
    os.environ[VARIABLE] = address
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        parent.communicate()


def _fork_at(descriptor: int) -> list[str]:
    """Fork for each that asks until the suite has ended. Returns, in a fork, what it is to run."""
    import pytest

    sys.path.insert(0, str(Path(__file__).parent.parent))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(["-c", os.devnull, "--noconftest", "-p", "xdist", "-VV"])  # imports them as pytest does
    for name in IMPORTED:
        import_module(name)
    package = import_module("pytest_ragmetrics")
    for name in dir(package):
        getattr(package, name)
    gc.freeze()
    under_way: dict[int, tuple[int, socket.socket]] = {}
    with socket.socket(fileno=descriptor) as listening:
        while (ready := select.select([descriptor, 0, *under_way], [], [])[0]) != [0]:
            for ended in under_way.keys() & set(ready):
                _tell(ended, *under_way.pop(ended))
            if descriptor not in ready:
                continue
            asking = listening.accept()[0]
            if child := os.fork():
                under_way[os.pidfd_open(child)] = (child, asking)
                continue
            listening.close()
            for other, (_, waiting) in under_way.items():
                os.close(other)
                waiting.close()
            return _taken_over(asking)
    with contextlib.suppress(ChildProcessError):
        while os.wait():
            pass
    os._exit(0)


def _tell(ended: int, child: int, asking: socket.socket) -> None:
    """Tell the one that asked how its fork ended."""
    os.close(ended)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with asking, contextlib.suppress(OSError):  # it may have been killed
        asking.sendall(str(status if status >= 0 else 128 - status).encode())


def _taken_over(asking: socket.socket) -> list[str]:
    """Take over the streams, folder and environment of the one that asks; returns its arguments."""
    with asking:
        streams = socket.recv_fds(asking, 1, 3)[1]
        arguments, folder, environment = marshal.load(asking.makefile("rb"))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return list(arguments)


def _run(argv: list[str]) -> int:
    """Do what ``python`` does with ``-m pytest`` or, as execnet starts it, with ``-u -c CODE``."""
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [os.path.realpath("."), *given, *sys.path[2:]]
    if argv[:2] == ["-m", "pytest"]:
        import pytest

        sys.argv = argv[1:]
        return int(pytest.main(argv[2:], plugins=[workers()]))
    sys.argv = ["-c"]
    sys.modules["__main__"] = main = ModuleType("__main__")
    exec(argv[argv.index("-c") + 1], main.__dict__)
    return 0


def _end(argv: list[str]) -> NoReturn:
    """Run that and end as forks of multiprocessing do: taking modules down writes to all memory shared, 0.05 s each."""
    status = 1
    try:
        status = _run(argv)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - told as Python tells it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _end(_fork_at(int(sys.argv[1])))
