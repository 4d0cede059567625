"""Budgets of a whole run, over all its workers, with a provider that counts what it was asked."""

from __future__ import annotations

import gc
import time

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import Body, FakeOpenAI, Reply
from tests.plugin.conftest import MANY, ONE, RunPytest

# Each test asks something else, and no answer fails it.
SUITE = """
    @pytest.mark.parametrize("number", range(12))
    def test_it(number):
        assert_relevant(f"Does it hum {number}?", f"It hums {number}.", min=0.0)
"""
TOKENS = 275


def counted(body: Body) -> Reply:
    return Reply(text=answer_sensibly(body), usage=(250, 25))


@pytest.mark.slow
def test_a_worker_and_its_successor_never_pass_the_budget(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    server.answer = counted
    shared = {"RAGMETRICS_CACHE_URL": pytester.mkdir("shared").as_uri()}
    killed = """
        if number == 2:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
    """
    result = run(*ONE, "--max-worker-restart=1", "--rag-max-calls=5", env=shared, test_it=SUITE + killed)
    result.assert_outcomes(passed=4, failed=8)
    assert server.calls == 5
    used = "budget: 5 of 5 calls, 1375 tokens, $0.00* used; reached, 7 requests were not made"
    result.shows_all(used, "shared cache *: 0 answers found, 2 added")
    reasons = [line for line in result.outlines if line.startswith("E ") and "--rag-max-calls=5 is reached" in line]
    assert len(reasons) == 7
    assert not [line for line in result.outlines if "budget.py" in line]


def test_what_was_paid_for_is_kept(run: RunPytest, pytester: pytest.Pytester, server: FakeOpenAI) -> None:
    pytester.makeini("[pytest]\nrag_max_calls = 5")
    run(test_it=SUITE).assert_outcomes(passed=5, failed=7)
    run("--rag-max-calls=7", test_it=SUITE).shows("budget: 7 of 7 calls, * used", "*12 passed*")
    assert server.calls == 12
    pytester.makeini("[pytest]")
    run(test_it=SUITE).stdout.no_fnmatch_line("budget:*")


@pytest.mark.parametrize(
    ("args", "made", "reason"),
    [
        ([f"--rag-max-tokens={2 * TOKENS}"], 2, "--rag-max-tokens=550 is reached (2 calls, 550 of 550 tokens*"),
        (
            ["--rag-judge=openai:house-model", "--rag-max-cost=5"],
            0,
            "openai:house-model has no known price, so --rag-max-cost cannot be kept: use --rag-max-tokens or *",
        ),
    ],
)
def test_tokens_and_dollars_stop_the_run(
    run: RunPytest, server: FakeOpenAI, args: list[str], made: int, reason: str
) -> None:
    """A model without a price is not free: its first request is refused."""
    server.answer = counted
    run(*args, test_it=SUITE).shows(f"E *{reason}", passed=made, failed=12 - made)
    assert server.calls == made


def test_the_budget_is_closed_beside_a_judge_that_cannot_be(
    run: RunPytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(pytester.mkdir("temporary")))
    broken = """
        class Judge:
            name = "broken"
            async def complete(self, messages, schema): return '{"reason": "It hums.", "rating": 4}'
            async def aclose(self): raise OSError("already gone")
    """
    suite = SUITE + "        import tempfile, os; assert os.listdir(tempfile.gettempdir())"
    result = run("--rag-judge=broken:Judge", "--rag-max-calls=12", test_it=suite, broken=broken)
    result.assert_outcomes(passed=12)
    assert "OSError: already gone" in result.stderr.str()
    assert not list((pytester.path / "temporary").iterdir())
    # Python 3.13 and later warn of a connection that nobody closed, once it is collected.
    gc.collect(1)


@pytest.mark.parametrize("ahead", [False, True], ids=["asserted", "ahead"])
def test_the_summary_counts_what_a_row_without_a_score_took(run: RunPytest, server: FakeOpenAI, *, ahead: bool) -> None:
    """The first step of an answer is paid for, and the second is refused: both lines count all three calls."""
    rows = """
        import pytest
        from pytest_ragmetrics import Sample, assert_faithful
        ROWS = [Sample(response=f"Moth {n} hums.", retrieved_contexts=(f"Moth {n} hums.",), id=f"q{n}") for n in (1, 2)]
    """
    asserted = """
        @pytest.mark.parametrize("row", ROWS, ids=str)
        def test_it(row): assert_faithful(row.response, row.retrieved_contexts, min=0.0)
    """
    scored = """
        @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
        def test_it(rag_sample, rag_scores): assert rag_scores["faithfulness"] >= 0.0
    """
    result = run("--rag-max-calls=3", "--rag-concurrency=1", test_it=rows + (scored if ahead else asserted))
    assert server.calls == 3
    result.shows("judge calls: 3 made *", "budget: 3 of 3 calls, *")


@pytest.mark.slow
def test_workers_keep_one_pace(run: RunPytest, server: FakeOpenAI) -> None:
    """The twelve requests of two workers are 0.1 s apart, whoever makes them; what is in the cache takes no share."""
    began = time.monotonic()
    run(*MANY, "--rag-rpm=600", test_it=SUITE).assert_outcomes(passed=12)
    assert time.monotonic() - began >= 0.9
    run("--rag-rpm=1", test_it=SUITE).stdout.no_fnmatch_line("waited *")
    assert server.calls == 12


def test_a_server_that_takes_nothing_more_is_not_asked(run: RunPytest, server: FakeOpenAI) -> None:
    """Without an option: what the first reply says of the limit is waited for, and the summary says so."""
    headers = {"limit": "60", "remaining": "0", "reset": "3s"}
    said = {f"x-ratelimit-{name}-requests": value for name, value in headers.items()}
    server.answer = lambda body: Reply(text=answer_sensibly(body), headers={} if server.calls else said)
    began = time.monotonic()
    result = run("--rag-concurrency=1", test_it=SUITE.replace("range(12)", "range(3)"))
    result.shows("waited [123] s for the provider's limit of 60 requests", passed=3)
    assert time.monotonic() - began >= 3
    assert server.calls == 3
