"""A provider that fails harms what it failed to answer; whoever ends a run early keeps what is paid for."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import (
    Body,
    FakeOpenAI,
    Reply,
    dropped,
    failing,
    out_of_quota,
    rate_limited,
    refused,
    silent,
    truncated,
)
from tests.plugin.conftest import MANY, RunPytest, wait_until

TABLE = """
    import pytest
    from pytest_ragmetrics import JudgeError, evaluate
    ROWS = [{"user_input": f"Is pump {n} blue?", "response": f"Pump {n} is blue."} for n in range(10)]
"""
#: Rows that get a bad reply, and the reason that each of them has then.
BAD = [
    (failing(500), "*the server failed with status 500, after 1 retry*"),
    (Reply(text="I would rather talk about the weather."), "*no usable answer, also after a repair: *weather*"),
    (Reply(raw=b"<html>gateway</html>"), "*sent what is no answer to the request*"),
    (truncated('{"reason": "It do'), "*was cut off by its length limit*"),
    (Reply(text='{"reason": "It do'), "*no usable answer, also after a repair: *"),
    (refused("Not this one."), "*refused to answer: Not this one."),
    (dropped(), "*cannot be reached, after 1 retry*"),
]


def answering(bad: dict[int, Reply]) -> Callable[[Body], str | Reply]:
    """Return the answers of a server that has one reply for everything about some of the rows."""

    def answer(body: Body) -> str | Reply:
        asked = str(body["messages"])
        return next((reply for row, reply in bad.items() if f"Pump {row} is" in asked), answer_sensibly(body))

    return answer


@pytest.mark.parametrize("workers", [[], MANY], ids=["serial", "workers"])
def test_requests_that_were_given_up_are_sent_again_and_counted(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, workers: list[str]
) -> None:
    """No row is lost to a time-out; summary and JSON say what was sent for nothing."""
    server.script(*[silent()] * 3)
    test = """
    @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
    def test_golden(rag_scores):
        assert rag_scores["relevance"] >= 0.0
    """
    result = run("--rag-timeout=2", "--rag-json=out.json", *workers, test_table=TABLE + test)
    result.assert_outcomes(passed=10)
    (said,) = (line for line in result.outlines if "given up" in line)
    sent, given_up = map(int, re.findall(r"(\d+) requests? sent, (\d+) given up after their time-out", said)[0])
    assert (sent, given_up >= 3) == (10 + given_up, True)
    assert said in json.loads((pytester.path / "out.json").read_text("utf-8"))["run"]["notes"]


def test_a_bad_answer_costs_one_score_and_is_not_kept(run: RunPytest, server: FakeOpenAI) -> None:
    """Each row without a score says why it has none; the next run asks for those rows again and for no other."""
    server.answer = answering({row: reply for row, (reply, _) in enumerate(BAD)})
    test = """
    def test_it():
        table = evaluate(ROWS, ["relevance"])
        assert [n for n, row in enumerate(table.rows) if "relevance" in row.results] == [7, 8, 9]
        for row in table.rows[:7]:
            print("REASON", row.unscored["relevance"])
        assert table.stats()["relevance"].unscored == 7
    """
    # More in flight than rows, lest the circuit breaker opens.
    result = run("-s", "--rag-retries=1", "--rag-concurrency=20", test_table=TABLE + test)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([*(f"*REASON {reason}" for _, reason in BAD), "relevance * 3 * 7"])
    server.answer = answer_sensibly
    before = server.calls
    run().assert_outcomes(failed=1)
    assert server.calls == before + 7


@pytest.mark.parametrize(
    ("reply", "option", "reason", "at_most"),
    [
        (
            rate_limited(),
            "retries=2",
            "JudgeError: * none of 10 *asked too fast, after 2 retries*--rag-conc*",
            30,
        ),
        # One more may have begun before the first was read.
        (out_of_quota(), "concurrency=1", "the account has no credit left (You exceeded your current quota*", 2),
    ],
    ids=["busy", "no credit"],
)
def test_a_judge_that_answers_nothing_is_one_error(
    run: RunPytest, server: FakeOpenAI, reply: Reply, option: str, reason: str, at_most: int
) -> None:
    """A judge that is too busy throughout is asked again; without credit it is neither retried nor asked for more."""
    server.answer = lambda _: reply
    result = run(f"--rag-{option}", test_table=TABLE + "\n    def test_it(): evaluate(ROWS, ['relevance'])")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *{reason}"])
    assert server.calls <= at_most


def test_tests_that_ask_one_by_one_do_not_wait_one_by_one(run: RunPytest, server: FakeOpenAI) -> None:
    """After the first has made all attempts, the next makes one, and the others none: each says since when."""
    server.answer = lambda _: failing(503)
    result = run("--rag-retries=3", test_rows=ONE_BY_ONE)
    result.assert_outcomes(failed=6)
    assert server.calls == 5
    since = "no answer since ??:??:??"
    result.stdout.fnmatch_lines([f"E *the server failed with status 503 (*); {since}*"])
    result.stdout.fnmatch_lines([f"E *is not asked: {since}; the last: *status 503*"])


ONE_BY_ONE = """
    import os
    import signal
    import pytest
    from pytest_ragmetrics import assert_relevant
    @pytest.mark.parametrize("n", range(6))
    def test_row(n):
        if n == int(os.environ.get("KILL", -1)):
            os.kill(os.getpid(), signal.SIGKILL)
        assert_relevant(f"Is pump {n} blue?", f"Pump {n} is blue.", min=0.1)
"""
AT_ONCE = TABLE + "\n    def test_table(): assert evaluate(ROWS, ['relevance']).mean('relevance') > 0.1"


@contextmanager
def started(pytester: pytest.Pytester, *args: str) -> Iterator[subprocess.Popen[str]]:
    """Run pytest in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-p", "ragmetrics", "--color=no", *args]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_killed_process_loses_what_was_not_answered(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    """After SIGKILL in the middle of a request only that one is paid for again, and no lock is waited for."""
    server.answer = answering({3: silent()})
    pytester.makepyfile(test_rows=ONE_BY_ONE)
    with started(pytester) as process:
        # The fourth is asked when the third is stored.
        wait_until(lambda: server.calls == 4, process)
        process.kill()
    while server.in_flight:
        time.sleep(0.01)  # else it might be answered after all
    server.answer = answer_sensibly
    begun = time.monotonic()
    run().assert_outcomes(passed=6)
    assert time.monotonic() - begun < 60
    assert server.answered == 6
    assert server.duplicates == 0


def test_a_killed_worker_costs_nothing_twice(
    run: RunPytest, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    """When a worker dies the others go on; the next run pays for what was missing, and the cassette is whole then."""
    monkeypatch.setenv("KILL", "3")
    cassette = "--rag-cassette=answers.jsonl"
    result = run(*MANY, cassette, "--max-worker-restart=1", test_rows=ONE_BY_ONE)
    result.assert_outcomes(passed=5, failed=1)
    assert (server.answered, server.duplicates) == (5, 0)
    monkeypatch.delenv("KILL")
    run(cassette).assert_outcomes(passed=6)
    assert (server.answered, server.duplicates) == (6, 0)
    assert len((pytester.path / "answers.jsonl").read_text("utf-8").splitlines()) == 6


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_an_interrupt_keeps_what_is_on_its_way(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """Ctrl-C ends the run as an interrupt, and the requests in flight are waited for and kept."""
    # The second round is never complete.
    server.waves = [4, 1_000]
    pytester.makepyfile(test_rows=AT_ONCE)
    with started(pytester, "--rag-concurrency=4") as process:
        wait_until(lambda: server.in_flight == 4 and server.answered == 4, process)
        process.send_signal(signal.SIGINT)
        server.release()
        out, _ = process.communicate(timeout=30)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in out
    # On a busy machine the signal may come when the last two are in flight.
    assert server.answered == server.calls >= 8
    run().assert_outcomes(passed=1)
    assert server.answered == 10
    assert server.duplicates == 0


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_an_interrupt_of_workers_is_recorded(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """What they paid for until they ended stands in the cassette of the run, which replays without them."""
    server.latency = 0.3
    pytester.makepyfile(test_rows=ONE_BY_ONE)
    with started(pytester, *MANY, "--rag-cassette=answers.jsonl") as process:
        wait_until(lambda: server.answered >= 2, process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert f"answers.jsonl: written, {server.answered} answers" in out
    assert len((pytester.path / "answers.jsonl").read_text("utf-8").splitlines()) == server.answered == server.calls
