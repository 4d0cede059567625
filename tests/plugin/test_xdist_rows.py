"""Data sets under xdist: each row is done by one worker, and every test gets its own row, whoever did it."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.fake_openai import FakeOpenAI, truncated
from tests.plugin.conftest import RunPytest, Scored

JUDGED = ("-p", "xdist", "--rag-judge=openai:gpt-mine", "--rag-json=out.json")
SUITE = """
    import os
    import pathlib
    import pytest
    ROWS = [{"id": f"r{n}", "question": f"Is pool {n} blue?", "contexts": [f"Pool {n} is blue."]} for n in range(10)]
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


def asked(pytester: pytest.Pytester) -> Counter[str]:
    """Return how often the application was asked for each row."""
    return Counter((pytester.path / "asked.txt").read_text("utf-8").split())


@pytest.mark.parametrize(
    "how",
    [
        ["-n4"],
        ["-n2", "--dist=worksteal", "--rag-cache=off"],
        ["--tx=2*popen", "--dist=load", "--maxschedchunk=1"],
    ],
    ids=" ".join,
)
def test_every_row_is_done_once(  # noqa: PLR0917 - fixtures
    run: RunPytest,
    server: FakeOpenAI,
    pytester: pytest.Pytester,
    scored: Scored,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: list[str],
) -> None:
    """The application is asked once a row and the judge as often as by one process, and each test has its records.

    The folder where workers share rows is gone after the run.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run(*JUDGED, *how, test_golden=SUITE).assert_outcomes(passed=10)
    assert asked(pytester) == {f"r{n}": 1 for n in range(10)}
    assert server.calls == 10 * 3
    tests = scored()
    assert [len(test["records"]) for test in tests.values()] == [2] * 10
    assert sum(record["usage"]["calls"] for test in tests.values() for record in test["records"]) == server.calls
    assert not list(tmp_path.glob("pytest-ragmetrics-run-*"))


def test_the_records_are_those_of_one_process(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, scored: Scored
) -> None:
    """What another worker scored comes back whole: verdicts, evidence, reasons, usage."""
    found = []
    for how in (["-n0"], ["-n2"]):
        run(*JUDGED, *how, f"--rag-cache-dir={how[0]}", test_golden=SUITE).assert_outcomes(passed=10)
        found.append({name: test["records"] for name, test in scored().items()})
    assert found[0] == found[1]


def test_a_row_that_another_worker_could_not_do(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the application raised, and what the judge could not answer, reaches the test of the row."""
    monkeypatch.setenv("FAILING", "r7")
    server.script(truncated())
    result = run(*JUDGED, "-n2", "-rfE", test_golden=SUITE)
    result.assert_outcomes(passed=8, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*UnscoredError: row 'r7': rag_respond raised *KeyError: 'r7'*"])
    assert asked(pytester)["r7"] == 1


def test_the_rows_of_a_crashed_worker_are_taken_over(
    run: RunPytest, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies takes its own test with it; what it had in hand is done by the others."""
    monkeypatch.setenv("CRASHING", "r2")
    run(*JUDGED, "-n2", test_golden=SUITE).assert_outcomes(passed=9, failed=1)
    assert server.calls >= 10 * 3


def test_without_a_place_to_share_each_does_its_own(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    """Workers that cannot share rows still do each of them once."""
    conftest = """
        import pytest
        @pytest.hookimpl(optionalhook=True, trylast=True)
        def pytest_configure_node(node):
            node.workerinput["ragmetrics"]["folder"] = "/dev/null/nowhere"
    """
    run(*JUDGED, "-n2", conftest=conftest, test_golden=SUITE).assert_outcomes(passed=10)
    assert asked(pytester) == {f"r{n}": 1 for n in range(10)}
    assert server.calls == 10 * 3


def test_a_cassette_reaches_workers_that_cannot_read_it(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    """A worker elsewhere replays what the controller sent, and what it had to ask comes back into the cassette."""
    suite = pytester.mkdir("suite")
    pytester.makepyfile(**{"suite/test_golden": SUITE.replace("range(10)", "range(4)")})
    cassette = pytester.path / "answers.jsonl"
    common = (
        *JUDGED,
        "-o",
        "rag_cassette=../answers.jsonl",
        "--dist=load",
        f"--rsyncdir={suite}",
        f"--rootdir={suite}",
    )

    def elsewhere(name: str) -> str:
        folder = pytester.path / "far" / name
        folder.mkdir(parents=True)
        return f"--tx=popen//chdir={folder}"

    warned = ("-W", "ignore::DeprecationWarning", str(suite))
    run(*common, elsewhere("a"), *warned).assert_outcomes(passed=4)
    assert len(list(map(json.loads, cassette.read_text("utf-8").splitlines()))) == server.calls == 12
    before = cassette.read_bytes()
    result = run(*common, elsewhere("b"), "--rag-cache=replay", *warned)
    result.assert_outcomes(passed=4)
    assert server.calls == 12
    assert cassette.read_bytes() == before
    result.stdout.fnmatch_lines(["judge calls: 0 made *, 12 saved *"])
