"""Data sets under xdist: each row is done by one worker, and every test gets its own row, whoever did it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import Body, FakeOpenAI, Reply, truncated
from tests.plugin.conftest import RunOnce, RunPytest

JUDGED = ("-p", "xdist", "--rag-judge=openai:gpt-mine", "--rag-json=out.json", "-rfE")
SUITE = """
    import os
    import pathlib
    import pytest
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
            return sample.retrieved_contexts[0]
        yield respond
        is_open.clear()
    @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness", "relevance"])
    def test_golden(rag_sample, rag_scores):
        if os.environ.get("CRASHING") == rag_sample.id:
            os._exit(3)
        assert rag_scores["faithfulness"] >= 0.5
        assert rag_scores["relevance"].usage.calls + rag_scores["relevance"].usage.cached_calls == 1
"""
#: Workers that find no folder to share rows in.
NOWHERE = """
    import pytest
    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_configure_node(node):
        node.workerinput["ragmetrics"]["folder"] = "/dev/null/nowhere"
"""
WAYS = {
    "one process": ["-n0"],
    "worksteal": ["-n2", "--dist=worksteal", "--rag-cache=off"],
    "nowhere": ["-n2"],
}


def cuts_pool_4(body: Body) -> str | Reply:
    """Answer all but what is asked about one row."""
    return truncated() if "ool 4" in str(body["messages"]) else answer_sensibly(body)


def test_every_row_is_done_once(run_once: RunOnce, tmp_path: Path) -> None:
    """The application is asked once a row, the judge as often as by one process, and the tests have the same records.

    What another worker scored comes back whole: verdicts, evidence, reasons, usage. What the application raised, and
    what the judge could not answer, reaches the test of the row. The folder of the rows is gone after the run.
    """
    env = {"FAILING": "r2", "TMPDIR": str(tmp_path)}
    found = []
    for way, args in WAYS.items():
        files = {"test_golden": SUITE, **({"conftest": NOWHERE} if way == "nowhere" else {})}
        with FakeOpenAI(answer=cuts_pool_4) as server:
            run = run_once(*JUDGED, *args, provider=server, env=env, **files)
        run.result.assert_outcomes(passed=5, failed=1, errors=1)
        run.result.stdout.fnmatch_lines(["*UnscoredError: row 'r2': rag_respond raised *KeyError: 'r2'*"])
        assert Counter(run.text("asked.txt").split()) == {f"r{n}": 1 for n in range(7)}, way
        # Two for the row whose answers are cut, each asked once more, none for the row without a response.
        assert server.calls == 5 * 3 + 2 * 2, way
        found.append({name: test["records"] for name, test in run.tests.items()})
        assert sum(record["usage"]["calls"] for records in found[-1].values() for record in records) == server.calls
        assert found[-1] == found[0], way
    assert not list(tmp_path.glob("pytest-ragmetrics-run-*"))


def test_the_rows_of_a_crashed_worker_are_taken_over(
    run: RunPytest, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies takes its own test with it; what it had in hand is done by the others."""
    monkeypatch.setenv("CRASHING", "r2")
    run(*JUDGED, "-n2", "--max-worker-restart=1", test_golden=SUITE).assert_outcomes(passed=6, failed=1)
    assert server.calls >= 7 * 3


def test_a_cassette_reaches_workers_that_cannot_read_it(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    """A worker elsewhere replays what the controller sent, and what it had to ask comes back into the cassette."""
    suite, far = pytester.mkdir("suite"), pytester.mkdir("far")
    cassette = pytester.path / "answers.jsonl"
    common = (*JUDGED, "-o", "rag_cassette=../answers.jsonl", f"--rootdir={suite}", str(suite))
    run(*common, "--rag-cache-dir=cache", **{"suite/test_golden": SUITE.replace("range(7)", "range(2)")})
    before = cassette.read_text("utf-8").splitlines()
    assert len(before) == server.calls == 6
    elsewhere = ("--dist=load", f"--tx=popen//chdir={far}", f"--rsyncdir={suite}", "-W", "ignore::DeprecationWarning")
    result = run(*common, *elsewhere, **{"suite/test_golden": SUITE.replace("range(7)", "range(3)")})
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["judge calls: 3 made *, 6 saved *"])
    after = cassette.read_text("utf-8").splitlines()
    assert (len(after), server.calls) == (9, 9)
    assert set(before) <= set(after)
