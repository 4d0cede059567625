"""Stored answers that a run asks for again: what they say of the judge, and what they cost."""

from __future__ import annotations

import json

import pytest

from pytest_ragmetrics.report.history import read_history
from tests.fake_openai import FakeOpenAI, Reply, failing
from tests.plugin.conftest import MANY, Run, RunPytest

SUITE = """
    @pytest.mark.parametrize("n", range(0, 30, 5))
    def test_rows(n):
        for row in range(n, n + 5):
            assert_relevant(f"Question {row}?", f"Answer {row}.", min=0)
"""
ASK = ("--rag-judge=openai:m", "--rag-sentinels=20", "--rag-json=out.json")
FILES = ("--rag-history=runs", "--rag-markdown=out.md", "--rag-report=out.html")


def rate(server: FakeOpenAI, rating: int) -> None:
    server.answer = lambda _: Reply(text=json.dumps({"reason": "So.", "rating": rating}))


def asked(result: Run) -> tuple[int, float, bool]:
    (record,) = result.document.run.sentinels.values()
    return record.asked, record.changed, record.drifts


def past(result: Run) -> Run:
    """Return a run once it is of an earlier second than the next one, whose files sort by it."""
    for file in (result.folder / "runs").iterdir():
        file.rename(file.with_name(f"1{file.name}"))
    return result


@pytest.fixture
def stored(run: RunPytest, server: FakeOpenAI) -> FakeOpenAI:
    """Return a provider whose answers are stored."""
    rate(server, 4)
    run("--rag-judge=openai:m", test_suite=SUITE).assert_outcomes(passed=6)
    server.requests.clear()
    return server


def test_a_judge_that_changed_is_an_alarm(run: RunPytest, stored: FakeOpenAI) -> None:
    same = past(run(*ASK, *FILES))
    assert (asked(same), len(stored.requests)) == ((20, 0.0, False), 20)
    same.shows("judge calls: 20 made*, 30 saved*", passed=6)
    same.shows("sentinels: 0 of 20 stored answers of openai:m came out otherwise: no alarm")
    first = {str(request.body) for request in stored.requests}
    stored.requests.clear()
    rate(stored, 2)
    changed = past(run(*ASK, *FILES))
    assert (asked(changed), len(stored.requests)) == ((20, 10.0, True), 20)
    assert {str(request.body) for request in stored.requests} != first
    said = "10 of 20 stored answers of openai:m came out otherwise"
    changed.shows(f"warning: {said}; over the last 2 runs 10 of 40: more than the 5% *", passed=6)
    (text,) = (it for it in changed.document.run.warnings if "came out otherwise" in it)
    assert text in changed.text("out.html")
    assert text.partition(" of openai")[0] in changed.text("out.md")
    # What is stored stays, until it is asked anew: then all begins anew.
    run("--rag-judge=openai:m").shows("relevance*1.000*", passed=6)
    assert asked(past(run(*ASK, *FILES, "--rag-cache=refresh"))) == (0, 0.0, False)
    after = run(*ASK, *FILES)
    assert (asked(after), len(stored.requests)) == ((20, 0.0, False), 20 + 30 + 20)
    after.shows("sentinels: 0 of 20 stored answers of openai:m came out otherwise: no alarm")
    kept = read_history(after.folder / "runs", last=9).runs
    assert sorted(it.run.sentinels["openai:m"].asked for it in kept) == [0, 20, 20, 20]


def test_workers_ask_a_part_each_and_a_run_is_tested_alone_without_a_history(
    run: RunPytest, stored: FakeOpenAI
) -> None:
    rate(stored, 3)
    result = run(*ASK, *MANY)
    assert (asked(result), len(stored.requests)) == ((20, 5.0, True), 20)
    result.shows("warning: 5 of 20 stored answers of openai:m came out otherwise*", passed=6)
    rate(stored, 4)
    run(*ASK).shows("sentinels: 0 of 20 *; this run is tested alone, --rag-history=DIR adds the earlier ones")


def test_why_none_is_asked(run: RunPytest, stored: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    for options, asked_for, said in (
        (["--rag-cache=replay"], 0, "none asked, with --rag-cache=replay nothing is asked"),
        (["--rag-batch=collect"], 0, "none asked, answers of --rag-batch come too late"),
        (["--rag-max-calls=5"], 5, "15 stored answers could not be asked for again: --rag-max-calls=5 is reached*"),
        (["--rag-cache=off"], 30, "none asked, with --rag-cache=off nothing is stored"),
        (["--rag-cache=refresh"], 30, "none asked, with --rag-cache=refresh all is asked anew"),
        (["--rag-cache-dir=other"], 30, "none asked, no stored answer with a verdict was used"),
    ):
        stored.requests.clear()
        run(*ASK, *options).shows(f"sentinels: {said}", passed=6)
        assert len(stored.requests) == asked_for
    stored.answer = lambda _: failing(500)
    result = run(*ASK, "--rag-retries=0")
    result.shows("sentinels: 20 stored answers could not be asked for again: openai:m*", passed=6)
    assert asked(result) == (0, 0.0, False)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name)
    run(*ASK).shows("sentinels: 20 stored answers could not be asked for again: *OPENAI_API_KEY*", passed=6)


def test_a_dry_run_counts_them(run: RunPytest, stored: FakeOpenAI) -> None:
    result = run("--rag-judge=openai:m", "--rag-sentinels=20", "--rag-dry-run")
    result.shows("(sentinels) *", "relevance *30 *0 *30*", "total *30*")
    assert [line.split()[2] for line in result.outlines if line.startswith("(sentinels)")] == ["20"]
    assert stored.requests == []
