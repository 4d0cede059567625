"""What a process may open, hold and read: few files, little memory, and data without an end."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.datasets.reading import read_dataset
from pytest_ragmetrics.datasets.streaming import stream_rows
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")

FEW_FILES = """
import pytest
ROWS = [
    {"id": f"r{n}", "user_input": "?", "response": f"Ivy {n} climbs.", "contexts": [f"Ivy {n} climbs."]}
    for n in range(40)
]
@pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
def test_row(rag_sample, rag_scores): assert rag_sample.id != "r7"
"""


@pytest.fixture
def few_files() -> Iterator[int]:
    """Return how many files this process may have open: those of a run, and fifty for its requests."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sum(1 for _ in Path("/dev/fd").iterdir()) + 64 + 50
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_requests_in_flight_fit_into_the_files_that_may_be_open(
    run: RunPytest, server: FakeOpenAI, few_files: int
) -> None:
    result = run("-W", "default", "--rag-concurrency=40", "--tb=short", test_suite=FEW_FILES)
    said = f"*requests are in flight at once, not 40: this process may have {few_files} files open*"
    result.shows(said, passed=39, failed=1, warnings=1)
    assert (server.answered, server.duplicates) == (80, 0)


LITTLE_MEMORY = """
import resource
from pathlib import Path
from pytest_ragmetrics.report.files import write_files
from pytest_ragmetrics.report.page import environment
from pytest_ragmetrics.runs.compare import compare_documents
from tests.documents import crowd
run, page = crowd(60, length=30_000), Path("page.html")
environment().get_template("report.html.jinja")
comparison = compare_documents(run, run) if COMPARED else None
size = int(Path("/proc/self/status").read_text().split("VmSize:")[1].split()[0]) * 1024
states = []
for more in range(2, 90, 2):
    resource.setrlimit(resource.RLIMIT_AS, (size + more * 2**20, resource.RLIM_INFINITY))
    states.append(write_files(run, {"report": page}, comparison=comparison).lines[0])
    if states[-1].endswith("written"):
        break
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(*dict.fromkeys(states), sep="\\n")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize("compared", [False, True])
def test_a_page_is_written_with_little_memory(compared: bool, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", f"COMPARED = {compared}\n{LITTLE_MEMORY}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment)
    *_, lean, whole = done.stdout.splitlines()
    assert whole == "page.html: written"
    assert lean == "page.html: written, without the texts of tests that passed: there was too little memory"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of data without an end, and of JSON lines that have one."""
    folder = tmp_path_factory.mktemp("data")
    long = 1_000 * b"a"
    for ending in (".jsonl", ".csv", ".json"):
        os.mkfifo(folder / f"pipe{ending}")
        (folder / f"device{ending}").symlink_to("/dev/zero")
        (folder / f"bomb{ending}.gz").write_bytes(gzip.compress(b"response,reference\n" + 1_500 * long))
        (folder / f"large{ending}").write_bytes(b"response,reference\n" + 1_100 * (b"a," + long + b"\n"))
    (folder / "cell.csv.gz").write_bytes(gzip.compress(b'response,reference\n"' + 1_500 * (long + b"\n")))
    (folder / "rows.jsonl").write_bytes(1_100 * (b'{"response": "a", "reference": "%b"}\n' % long))
    return folder


@pytest.fixture
def endless(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder, where a megabyte is read of a file."""
    monkeypatch.setenv("RAGMETRICS_MAX_FILE", "1")
    return data


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".json"])
def test_data_without_an_end_is_refused_by_name(endless: Path, ending: str) -> None:
    special, large = "device or a pipe", "more than 1 MB: raise --rag-max-file"
    for file, why in {"pipe{}": special, "device{}": special, "bomb{}.gz": large, "large{}": large}.items():
        name = file.format(ending)
        with pytest.raises(DatasetError, match=rf"{re.escape(name)}: .*{why}"):
            read_dataset(name, base=endless)
        if file != "large{}":
            with pytest.raises(DatasetError, match=rf"{re.escape(name)}: .*{why}"):
                list(stream_rows([endless / name]))


def test_files_that_are_read_row_by_row_may_be_of_any_size(endless: Path) -> None:
    assert len(list(stream_rows([endless / "rows.jsonl"]))) == 1_100
    assert next(stream_rows([endless / "cell.csv.gz"])).error


def test_an_option_raises_the_limit(endless: Path, run: RunPytest) -> None:
    suite = f"""
        @pytest.mark.rag_dataset({str(endless / "rows.jsonl")!r}, metrics=["token_f1"], limit=3)
        def test_row(rag_sample): pass
    """
    run(test_suite=suite).shows("*rows.jsonl: *it has more than 1 MB: raise --rag-max-file*")
    run("--rag-max-file=2").assert_outcomes(passed=3)
    said = "*--rag-baseline: *pipe.json' is a device or a pipe: name a file*"
    run(f"--rag-baseline={endless / 'pipe.json'}").refused(said)
