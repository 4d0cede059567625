"""What a process may open, hold and read: few files, little memory, and data without an end."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ragmetrics.datasets.reading import read_dataset
from pytest_ragmetrics.datasets.streaming import stream_rows
from pytest_ragmetrics.errors import DatasetError
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunOnce, RunPytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")

FEW_FILES = """
import pytest
ROWS = [
    {"id": f"r{n}", "user_input": "?", "response": f"Ivy {n} climbs.", "contexts": [f"Ivy {n} climbs."]}
    for n in range(150)
]
@pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
def test_row(rag_sample, rag_scores):
    assert rag_sample.id != "r7"
"""
LIMITED = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
"""


def test_requests_in_flight_fit_into_the_files_that_may_be_open(run_once: RunOnce, shared_server: FakeOpenAI) -> None:
    """All rows are scored, fewer at once, which is said once; a failure is reported."""
    shared_server.reset()
    run = run_once(
        *("-p", "limited", "-p", "no:cacheprovider", "--rag-concurrency=150", "--tb=short"),
        provider=shared_server,
        env={"PYTHONPATH": "."},
        limited=LIMITED,
        test_suite=FEW_FILES,
    )
    run.result.assert_outcomes(passed=149, failed=1, warnings=1)
    run.result.stdout.fnmatch_lines(["*requests are in flight at once, not 150: this process may have 128 files open*"])
    assert (shared_server.answered, shared_server.duplicates) == (300, 0)


LITTLE_MEMORY = """
import resource
from pathlib import Path
from pytest_ragmetrics.report.files import write_files
from pytest_ragmetrics.report.html import environment
from tests.documents import crowd

run, page = crowd(60, length=30_000), Path("page.html")
environment().get_template("report.html.jinja")
size = int(Path("/proc/self/status").read_text().split("VmSize:")[1].split()[0]) * 1024
states = []
for more in range(2, 90, 4):
    resource.setrlimit(resource.RLIMIT_AS, (size + more * 2**20, resource.RLIM_INFINITY))
    states.append(write_files(run, {"report": page}).lines[0])
    if states[-1].endswith("written"):
        break
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(*dict.fromkeys(states), sep="\\n")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_page_is_written_with_little_memory(tmp_path: Path) -> None:
    """Without the texts of tests that passed, which its line says, where those of all do not fit."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LITTLE_MEMORY]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment)
    *_, lean, whole = done.stdout.splitlines()
    assert whole == "page.html: written"
    assert lean == "page.html: written, without the texts of tests that passed: there was too little memory"


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of data without an end, where a megabyte is read of a file."""
    monkeypatch.setenv("RAGMETRICS_MAX_FILE", "1")
    row = b'{"response": "a", "reference": "a"}\n'
    for ending in (".jsonl", ".csv", ".json"):
        os.mkfifo(tmp_path / f"pipe{ending}")
        (tmp_path / f"device{ending}").symlink_to("/dev/zero")
        (tmp_path / f"bomb{ending}.gz").write_bytes(gzip.compress(b"response,reference\n" + b"a" * 3 * 10**6))
        (tmp_path / f"large{ending}").write_bytes(b"response,reference\n" + 1_100 * (b"a," + b"a" * 1_000 + b"\n"))
    (tmp_path / "cell.csv.gz").write_bytes(gzip.compress(b'response,reference\n"' + b"a\n" * 2 * 10**6))
    (tmp_path / "rows.jsonl").write_bytes(40_000 * row)
    (tmp_path / "small.jsonl").write_bytes(row)
    return tmp_path


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".json"])
def test_data_without_an_end_is_refused_by_name(endless: Path, ending: str) -> None:
    """A pipe that nobody writes to, a device, a packed file of any size, and a file beyond the limit."""
    for name, why in (
        (f"pipe{ending}", "device or a pipe"),
        (f"device{ending}", "device or a pipe"),
        (f"bomb{ending}.gz", "more than 1 MB: raise --rag-max-file"),
        (f"large{ending}", "more than 1 MB: raise --rag-max-file"),
    ):
        with pytest.raises(DatasetError, match=rf"{re.escape(name)}: .*{why}"):
            read_dataset(name, base=endless)


@pytest.mark.parametrize("name", ["bomb.jsonl.gz", "bomb.csv.gz", "bomb.json.gz", "pipe.jsonl", "device.csv"])
def test_rows_without_an_end_are_refused_by_name(endless: Path, name: str) -> None:
    """Files that are read row by row may be of any size, and their lines have an end."""
    with pytest.raises(DatasetError, match=rf"{re.escape(name)}: .*(more than 1 MB|device or a pipe)"):
        list(stream_rows([endless / name]))
    assert len(list(stream_rows([endless / "rows.jsonl"]))) == 40_000


def test_a_cell_without_an_end_is_at_fault(endless: Path) -> None:
    """It is not kept in memory."""
    assert next(stream_rows([endless / "cell.csv.gz"])).error


def test_an_option_raises_the_limit(endless: Path, run: RunPytest, pytester: pytest.Pytester) -> None:
    """And lowers it; a baseline is a file as well."""
    suite = f"""
        import pytest
        @pytest.mark.rag_dataset({str(endless / "rows.jsonl")!r}, metrics=["token_f1"], limit=3)
        def test_row(rag_sample): pass
    """
    run(test_suite=suite).stdout.fnmatch_lines(["*rows.jsonl: *it has more than 1 MB: raise --rag-max-file*"])
    run("--rag-max-file=2").assert_outcomes(passed=3)
    result = run(f"--rag-baseline={endless / 'pipe.json'}")
    result.stderr.fnmatch_lines(["*--rag-baseline: *pipe.json' is a device or a pipe: name a file*"])
