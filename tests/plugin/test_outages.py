"""A provider that fails harms what it failed to answer; whoever ends a run early keeps what is paid for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import count

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import Body, FakeOpenAI, Reply, dropped, failing, out_of_quota, rate_limited, refused, silent
from tests.fake_openai import truncated as cut
from tests.plugin.conftest import ONE, RunPytest, write_files

TABLE = """
    ROWS = [{"user_input": f"Is pump {n} blue?", "response": f"Pump {n} is blue."} for n in range(10)]
"""
#: Rows that get a bad reply, and the reason that each of them has then.
BAD = [
    (failing(500), "*the server failed with status 500, after 1 retry*"),
    (Reply(text="I would rather talk about the weather."), "*no usable answer, also after a repair: *weather*"),
    (Reply(raw=b"<html>gateway</html>"), "*sent what is no answer to the request*"),
    (cut('{"reason": "It do'), "*was cut off by its length limit*"),
    (Reply(text='{"reason": "It do'), "*no usable answer, also after a repair: *"),
    (refused("Not this one."), "*refused to answer: Not this one."),
    (dropped(), "*cannot be reached, after 1 retry*"),
]


def test_a_bad_answer_costs_one_score_and_is_not_kept(run: RunPytest, server: FakeOpenAI) -> None:
    def answer(body: Body) -> str | Reply:
        asked = str(body["messages"])
        return next((reply for row, (reply, _) in enumerate(BAD) if f"Pump {row} is" in asked), answer_sensibly(body))

    server.answer = answer
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
    result.shows(*(f"*REASON {reason}" for _, reason in BAD), "relevance * 3 * 7", passed=1)
    server.answer = answer_sensibly
    before = server.calls
    run().assert_outcomes(failed=1)
    assert server.calls == before + 7


@pytest.mark.parametrize(
    ("reply", "option", "reason", "at_most"),
    [
        (rate_limited(), "retries=2", "JudgeError: * no score of 10; *asked too fast, after 2 retries*--rag-conc*", 30),
        # One more may have begun before the first was read.
        (out_of_quota(), "concurrency=1", "the account has no credit left (You exceeded your current quota*", 2),
    ],
    ids=["busy", "no credit"],
)
def test_a_judge_that_answers_nothing_is_one_error(
    run: RunPytest, server: FakeOpenAI, reply: Reply, option: str, reason: str, at_most: int
) -> None:
    server.answer = lambda _: reply
    result = run(f"--rag-{option}", test_table=TABLE + "\n    def test_it(): evaluate(ROWS, ['relevance'])")
    result.shows(f"E *{reason}", failed=1)
    assert server.calls <= at_most


def test_tests_that_ask_one_by_one_do_not_wait_one_by_one(run: RunPytest, server: FakeOpenAI) -> None:
    """The first makes all attempts, the next makes one, and the others none."""
    server.answer = lambda _: failing(503)
    result = run("--rag-retries=3", test_rows=ONE_BY_ONE)
    result.assert_outcomes(failed=6)
    assert server.calls == 5
    since = "no answer since ??:??:??"
    result.shows(f"E *the server failed with status 503 (*); {since}*")
    result.shows(f"E *is not asked: {since}; the last: *status 503*")


ONE_BY_ONE = """
    import os, pathlib
    @pytest.mark.parametrize("n", range(6))
    def test_row(n):
        pathlib.Path(f"asks-{n}").write_text(str(os.getpid()))
        assert_relevant(f"Is pump {n} blue?", f"Pump {n} is blue.", min=0.1)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
@pytest.mark.slow
def test_what_was_paid_for_outlives_a_killed_worker_and_an_interrupt(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    write_files(pytester.path, test_rows=ONE_BY_ONE)
    command = [sys.executable, "-m", "pytest", "-p", "ragmetrics", *ONE, "--rag-cassette=answers.jsonl"]
    process = subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True)

    def answer(body: Body) -> str | Reply:
        if "Pump 3" in str(body["messages"]):
            os.kill(int((pytester.path / "asks-3").read_text("utf-8")), signal.SIGKILL)
            return silent()
        if "Pump 4" in str(body["messages"]):
            process.send_signal(signal.SIGINT)
            return Reply(text=answer_sensibly(body), latency=0.3)
        return answer_sensibly(body)

    server.answer = answer
    try:
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert f"answers.jsonl: written, {server.answered - 3} answers" in out
    server.answer = answer_sensibly
    begun = time.monotonic()
    run("--rag-cassette=answers.jsonl").assert_outcomes(passed=6)
    assert time.monotonic() - begun < 60
    assert (server.answered, server.duplicates) == (6, 0)
    assert len((pytester.path / "answers.jsonl").read_text("utf-8").splitlines()) == 6


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_an_interrupt_keeps_what_is_on_its_way(run: RunPytest, server: FakeOpenAI) -> None:
    came, main = count(1), threading.get_ident()

    def answer(body: Body) -> Reply:
        if next(came) == 8:
            signal.pthread_kill(main, signal.SIGINT)
        return Reply(text=answer_sensibly(body), latency=0.3)

    server.answer = answer
    table = "\n    def test_table(): assert evaluate(ROWS, ['relevance']).mean('relevance') > 0.1"
    with pytest.raises(KeyboardInterrupt):
        run("--rag-concurrency=4", test_table=TABLE + table)
    # On a busy machine the signal may come when the last two are in flight.
    assert server.answered == server.calls >= 8
    server.answer = answer_sensibly
    run().assert_outcomes(passed=1)
    assert (server.answered, server.duplicates) == (10, 0)
