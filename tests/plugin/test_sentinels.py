"""Stored answers that a run asks for again: what they say of the judge, and what they cost."""

from __future__ import annotations

import json

import pytest

from pytest_ragmetrics.report.history import read_history
from tests.fake_openai import FakeOpenAI, Reply, failing
from tests.plugin.conftest import MANY, SERIAL, Run, RunPytest

SUITE = """
    @pytest.mark.parametrize("n", range(30))
    def test_row(n):
        assert_relevant(f"Question {n}?", f"Answer {n}.", min=0)
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
    run("--rag-judge=openai:m", test_suite=SUITE).assert_outcomes(passed=30)
    server.requests.clear()
    return server


@pytest.mark.parametrize("how", [SERIAL, MANY], ids=["alone", "xdist"])
def test_a_judge_that_changed_is_an_alarm(run: RunPytest, stored: FakeOpenAI, how: list[str]) -> None:
    same = past(run(*ASK, *FILES, *how))
    # The part of a worker with few rows is not asked elsewhere.
    total = 20 if how == SERIAL else len(stored.requests)
    assert 10 <= total <= 20
    assert (asked(same), len(stored.requests)) == ((total, 0.0, False), total)
    same.shows(f"judge calls: {total} made*, 30 saved*", passed=30)
    same.shows(f"sentinels: 0 of {total} stored answers of openai:m came out otherwise: no alarm")
    first = {str(request.body) for request in stored.requests}
    stored.requests.clear()
    rate(stored, 2)
    changed = past(run(*ASK, *FILES, *how))
    again = len(stored.requests)
    assert asked(changed) == (again, again / 2, True)
    assert {str(request.body) for request in stored.requests} != first
    said = f"{again / 2:g} of {again} stored answers of openai:m came out otherwise"
    both = f"over the last 2 runs {again / 2:g} of {total + again}"
    changed.shows(f"warning: {said}; {both}: more than the 5% *", passed=30)
    (text,) = (it for it in changed.document.run.warnings if "came out otherwise" in it)
    assert text in changed.text("out.html")
    assert text.partition(" of openai")[0] in changed.text("out.md")
    if how == MANY:
        return
    # What is stored stays, until it is asked anew: then all begins anew.
    run("--rag-judge=openai:m", *how).shows("relevance*1.000*", passed=30)
    assert asked(past(run(*ASK, *FILES, "--rag-cache=refresh", *how))) == (0, 0.0, False)
    after = run(*ASK, *FILES, *how)
    assert asked(after) == (len(stored.requests) - again - 30, 0.0, False)
    after.shows(f"sentinels: 0 of {asked(after)[0]} stored answers of openai:m came out otherwise: no alarm")
    kept = read_history(after.folder / "runs", last=9).runs
    numbers = [it.run.sentinels["openai:m"].asked for it in kept]
    assert sorted(numbers) == sorted([total, again, 0, asked(after)[0]])


def test_a_run_is_tested_alone_without_a_history(run: RunPytest, stored: FakeOpenAI) -> None:
    rate(stored, 3)
    result = run(*ASK)
    assert asked(result) == (20, 5.0, True)
    rate(stored, 4)
    run(*ASK).shows("sentinels: 0 of 20 *; this run is tested alone, --rag-history=DIR adds the earlier ones")


def test_an_outage_is_a_note(run: RunPytest, stored: FakeOpenAI) -> None:
    stored.answer = lambda _: failing(500)
    result = run(*ASK, "--rag-retries=0")
    result.shows("sentinels: 20 stored answers could not be asked for again: openai:m*", passed=30)
    assert asked(result) == (0, 0.0, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rag-cache=replay"], "none asked, with --rag-cache=replay nothing is asked"),
        (["--rag-cache=off"], "none asked, with --rag-cache=off nothing is stored"),
        (["--rag-cache=refresh"], "none asked, with --rag-cache=refresh all is asked anew"),
        (["--rag-cache-dir=other"], "none asked, no stored answer with a verdict was used"),
        (["--rag-batch=collect"], "none asked, answers of --rag-batch come too late"),
        (["--rag-max-calls=5"], "15 stored answers could not be asked for again: --rag-max-calls=5 is reached*"),
    ],
)
def test_why_none_is_asked(run: RunPytest, stored: FakeOpenAI, options: list[str], said: str) -> None:
    run(*ASK, *options).shows(f"sentinels: {said}", passed=30)
    assert len(stored.requests) in (0, 5, 30)


def test_without_a_key_they_are_a_note(run: RunPytest, stored: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name)
    run(*ASK).shows("sentinels: 20 stored answers could not be asked for again: *OPENAI_API_KEY*", passed=30)
    assert stored.requests == []


@pytest.mark.parametrize("how", [SERIAL, MANY], ids=["alone", "xdist"])
def test_a_dry_run_counts_them(run: RunPytest, stored: FakeOpenAI, how: list[str]) -> None:
    result = run("--rag-judge=openai:m", "--rag-sentinels=20", "--rag-dry-run", *how)
    result.shows("(sentinels) *", "relevance *30 *0 *30*", "total *30*")
    assert 10 <= int(next(line.split()[2] for line in result.outlines if line.startswith("(sentinels)"))) <= 20
    assert stored.requests == []
