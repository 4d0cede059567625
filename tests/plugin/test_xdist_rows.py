"""Data sets under xdist: each row is done by one worker, and every test gets its own row, whoever did it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import Body, FakeOpenAI, Reply, truncated
from tests.plugin.conftest import TEXTS, RunPytest

JUDGED = ("-p", "xdist", "--rag-judge=openai:gpt-mine", "--rag-json=out.json", "-rfE")
SUITE = """
    import asyncio, os, pathlib, time, pytest
    ROWS = [{"id": f"r{n}", "question": f"Is pool {n} blue?", "contexts": [f"Pool {n} is blue."]} for n in range(7)]
    @pytest.fixture(scope="module")
    def rag_respond():
        is_open = [True]
        async def respond(sample):
            assert is_open
            with pathlib.Path("asked.txt").open("a") as file:
                file.write(f"{sample.id}\\n")
            if os.environ.get("FAILING") == sample.id:
                raise KeyError(sample.id)
            if os.environ.get("CRASHING") and sample.id == "r5":
                await asyncio.sleep(1)  # under way at the crash
            return sample.retrieved_contexts[0]
        yield respond
        is_open.clear()
    @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness", "relevance"])
    def test_golden(rag_sample, rag_scores):
        if os.environ.get("CRASHING") == rag_sample.id:
            time.sleep(1)  # xdist fails where it sends to a worker that ends
            os._exit(3)
        assert rag_scores["faithfulness"] >= 0.5
        assert rag_scores["relevance"].usage.calls + rag_scores["relevance"].usage.cached_calls == 1
"""
#: Workers that find no folder to share rows in, and note how many rows are begun when a test has ended.
NOWHERE = """
    import pathlib, pytest
    def pytest_runtest_teardown():
        with pathlib.Path("begun.txt").open("a") as file:
            file.write(f"{len(pathlib.Path('asked.txt').read_text().split())} ")
    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_configure_node(node): node.workerinput["ragmetrics"]["folder"] = "/dev/null/nowhere"
"""


def cuts_pool_4(body: Body) -> str | Reply:
    """Answer all but what is asked about one row."""
    return truncated() if "ool 4" in str(body["messages"]) else answer_sensibly(body)


def test_every_row_is_done_once(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, asked = pytester.mkdir("temporary"), pytester.path / "asked.txt"
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    server.answer = cuts_pool_4
    found = []
    for workers in (["-n0"], ["-n2", "--dist=worksteal"]):
        result = run(*JUDGED, *workers, "--rag-cache=off", env={"FAILING": "r2"}, test_golden=SUITE)
        result.shows("*UnscoredError: row 'r2': rag_respond raised *KeyError: 'r2'*", passed=5, failed=1, errors=1)
        assert Counter(asked.read_text("utf-8").split()) == {f"r{n}": 1 for n in range(7)}
        asked.unlink()
        # Two for the row whose answers are cut, each asked once more, none for the row without a response.
        assert server.calls == 5 * 3 + 2 * 2
        server.requests.clear()
        found.append({name: test["records"] for name, test in result.tests.items()})
        for record in (record for records in found[-1].values() for record in records):
            record["sample"].get("metadata", {}).pop("latency", None)
    assert sum(record["usage"]["calls"] for records in found[0].values() for record in records) == 5 * 3 + 2 * 2
    assert found[1] == found[0]
    assert not list(temporary.glob("pytest-ragmetrics-run-*"))


@pytest.mark.slow
def test_the_rows_of_a_crashed_worker_are_taken_over(run: RunPytest, server: FakeOpenAI) -> None:
    ran = run(*JUDGED, "-n1", "--max-worker-restart=1", env={"CRASHING": "r2"}, test_golden=SUITE)
    ran.assert_outcomes(passed=6, failed=1)
    assert server.calls >= 7 * 3


def test_workers_elsewhere_have_what_the_controller_has(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    """Without the folder of the rows a worker begins the rows of its next two tests at most."""
    suite, far = pytester.mkdir("suite"), pytester.mkdir("far")
    cassette = pytester.path / "answers.jsonl"
    common = (*JUDGED, "-o", "rag_cassette=../answers.jsonl", f"--rootdir={suite}", str(suite))
    few = {"suite/test_golden": SUITE.replace("range(7)", "range(2)"), "suite/texts": TEXTS}
    run(*common, "--rag-cache-dir=cache", **few)
    before = cassette.read_text("utf-8").splitlines()
    assert len(before) == server.calls == 6
    elsewhere = ("--dist=load", f"--tx=popen//chdir={far}", f"--rsyncdir={suite}", "-W", "ignore::DeprecationWarning")
    files = {"suite/test_golden": SUITE.replace("range(7)", "range(4)"), "suite/conftest": NOWHERE}
    run(*common, *elsewhere, **files).shows("judge calls: 6 made *, 6 saved *", passed=4)
    assert int((far / "begun.txt").read_text("utf-8").split()[0]) <= 2
    assert sorted((far / "asked.txt").read_text("utf-8").split()) == ["r0", "r1", "r2", "r3"]
    after = cassette.read_text("utf-8").splitlines()
    assert (len(after), server.calls) == (12, 12)
    assert set(before) <= set(after)
