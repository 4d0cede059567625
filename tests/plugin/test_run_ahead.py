"""PytestSession ahead: the rows of all tests are answered and scored at once, and each test gets its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI, Reply, dropped, failing, out_of_quota, rate_limited

RunPytest = Callable[..., pytest.RunResult]
Scored = Callable[[], dict[str, dict[str, Any]]]

JUDGED = ("--rag-judge=openai:gpt-mine",)
ROWS = 'ROWS = [{"id": f"r{n}", "question": f"Is pool {n} blue?", "answer": f"Pool {n}."} for n in range(COUNT)]'
GOLDEN = f"""
    import pytest
    {ROWS.replace("COUNT", "8")}
    @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
    def test_golden(rag_sample, rag_scores):
        assert rag_scores["relevance"] > 0
"""
#: Rows without a response, and an application that notes what it is asked.
ASKING = """
    import asyncio
    import pathlib
    import pytest
    ROWS = [{"id": f"r{n}", "question": f"Is pool {n} blue?", "reference": "Yes."} for n in range(6)]
    def note(sample):
        with pathlib.Path("asked.txt").open("a") as file:
            file.write(f"{sample.id}\\n")
    FIXTURE
    @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
    def test_golden(rag_sample, rag_scores):
        assert rag_sample.response == f"Pool {rag_sample.id} is blue."
        assert (rag_sample.reference, rag_sample.user_input[:7]) == ("Yes.", "Is pool")
        assert rag_scores["relevance"] > 0
"""
SYNC = """
    @pytest.fixture
    def rag_respond():
        def respond(sample):
            note(sample)
            return f"Pool {sample.id} is blue."
        return respond
"""
ASYNC = """
    @pytest.fixture(scope="session")
    def rag_respond():
        async def respond(sample):
            note(sample)
            await asyncio.sleep(0)
            return {"answer": f"Pool {sample.id} is blue.", "contexts": ["Pools."]}
        return respond
"""
CLOSING = """
    @pytest.fixture(scope="SCOPE")
    def rag_respond():
        from dataclasses import replace
        is_open = [True]
        def respond(sample):
            assert is_open, "asked after it was closed"
            note(sample)
            return replace(sample, response=f"Pool {sample.id} is blue.")
        yield respond
        is_open.clear()
"""


def asking(fixture: str) -> str:
    """Return the suite with an application."""
    return ASKING.replace("    FIXTURE\n", fixture.lstrip("\n"))


def asked(pytester: pytest.Pytester) -> list[str]:
    """Return the rows that the application was asked for, in their order."""
    return (pytester.path / "asked.txt").read_text("utf-8").split()


def test_all_rows_are_judged_at_once(run: RunPytest, server: FakeOpenAI) -> None:
    """The first test starts all rows: the judge has many of them in hand at a time, and is asked once for each."""
    server.latency = 0.1
    run(*JUDGED, test_it=GOLDEN).assert_outcomes(passed=8)
    assert server.calls == 8
    assert server.in_flight_max == 8


def test_concurrency_is_bounded(run: RunPytest, server: FakeOpenAI) -> None:
    """No more requests are in flight than the option allows."""
    server.latency = 0.02
    run(*JUDGED, "--rag-concurrency=3", test_it=GOLDEN).assert_outcomes(passed=8)
    assert server.in_flight_max == 3


def test_only_what_is_selected_is_judged(run: RunPytest, server: FakeOpenAI) -> None:
    """Rows of tests that are not to run cost nothing."""
    run(*JUDGED, "-k", "r1 or r5", test_it=GOLDEN).assert_outcomes(passed=2, deselected=6)
    assert server.calls == 2


def test_tests_of_all_files_are_in_it(run: RunPytest, server: FakeOpenAI) -> None:
    """The rows of later files start with the first."""
    server.latency = 0.1
    run(*JUDGED, test_it=GOLDEN, test_more=GOLDEN.replace("Is pool", "Is the pool")).assert_outcomes(passed=16)
    assert server.in_flight_max == 16


@pytest.mark.parametrize("fixture", [SYNC, ASYNC, *(CLOSING.replace("SCOPE", s) for s in ("function", "module"))])
def test_the_application_answers_each_row_once(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, fixture: str
) -> None:
    """Whatever the scope of its fixture, sync or async, and never after the fixture has ended."""
    run(*JUDGED, test_it=asking(fixture)).assert_outcomes(passed=6)
    assert sorted(asked(pytester)) == [f"r{n}" for n in range(6)]


def test_async_applications_answer_concurrently(run: RunPytest, server: FakeOpenAI) -> None:
    """All rows are asked for before the first has been answered, as far as the concurrency goes."""
    fixture = """
    @pytest.fixture(scope="session")
    def rag_respond():
        waiting = []
        async def respond(sample):
            waiting.append(sample)
            for _ in range(500):
                if len(waiting) == 6:
                    return f"Pool {sample.id} is blue."
                await asyncio.sleep(0.01)
            raise TimeoutError("alone")
        return respond
"""
    run(*JUDGED, test_it=asking(fixture)).assert_outcomes(passed=6)


@pytest.mark.parametrize("threads", [1, 3])
def test_sync_applications_are_called_in_threads(run: RunPytest, server: FakeOpenAI, threads: int) -> None:
    """As many calls at once as the setting says; one thread is for applications that cannot take more."""
    fixture = f"""
    @pytest.fixture(scope="session")
    def rag_respond():
        import threading
        barrier, inside, most = threading.Barrier({threads}), [], [0]
        def respond(sample):
            inside.append(sample)
            most[0] = max(most[0], len(inside))
            barrier.wait(10)
            inside.remove(sample)
            return f"Pool {{sample.id}} is blue."
        yield respond
        assert most == [{threads}]
"""
    run(*JUDGED, "-o", f"rag_respond_threads={threads}", test_it=asking(fixture)).assert_outcomes(passed=6)


def test_a_test_waits_for_its_own_row_alone(run: RunPytest, server: FakeOpenAI) -> None:
    """Tests end while later rows are under way: here the last is answered only when the one before it has ended."""
    suite = """
        import threading
        import pytest
        ENDED = {name: threading.Event() for name in ("r0", "r1", "r2")}
        ROWS = [{"id": name, "question": f"Is pool {name} blue?"} for name in ENDED]
        @pytest.fixture(scope="module")
        def rag_respond():
            def respond(sample):
                assert sample.id != "r2" or ENDED["r1"].wait(60), "the test before it waits too"
                return f"Pool {sample.id} is blue."
            return respond
        @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
        def test_golden(rag_sample, rag_scores):
            ENDED[rag_sample.id].set()
    """
    run(*JUDGED, test_it=suite).assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyError('lost')", "E *UnscoredError: row 'r2': rag_respond raised KeyError: 'lost'"),
        ("raise SystemExit(3)", "E *UnscoredError: row 'r2': rag_respond raised SystemExit: 3"),
        ("return None", "E *UnscoredError: row 'r2': rag_respond returned NoneType; it must return a text, *"),
        ("return {'contexts': []}", "E *UnscoredError: row 'r2': rag_respond returned no response; write *"),
        ("return {'answer': 4}", "E *UnscoredError: row 'r2': rag_respond returned a mapping that is no sample: *"),
    ],
)
@pytest.mark.parametrize("how", ["def", "async def"])
def test_an_application_that_fails_fails_its_row(
    run: RunPytest, server: FakeOpenAI, how: str, body: str, said: str
) -> None:
    """What goes wrong in one row is told with its id, and the others pass."""
    fixture = f"""
    @pytest.fixture
    def rag_respond():
        {how} respond(sample):
            if sample.id == "r2":
                {body}
            return f"Pool {{sample.id}} is blue."
        return respond
"""
    result = run(*JUDGED, test_it=asking(fixture))
    result.assert_outcomes(passed=5, errors=1)
    result.stdout.fnmatch_lines([said])


def test_an_application_may_skip_a_row(run: RunPytest, server: FakeOpenAI) -> None:
    """pytest.skip in the application skips the test of that row."""
    fixture = SYNC.replace("note(sample)", "sample.id == 'r2' and pytest.skip('no answer today')")
    result = run(*JUDGED, "-rs", test_it=asking(fixture))
    result.assert_outcomes(passed=5, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED *: no answer today"])


def test_without_an_application_rows_stay_as_they_are(run: RunPytest, server: FakeOpenAI) -> None:
    """Metrics that need no response score rows without one; those that do say that it is missing."""
    result = run(
        *JUDGED,
        test_it="""
            import pytest
            @pytest.mark.rag_dataset([{"id": "r0", "contexts": ["Moss."], "reference": "Moss."}], metrics=METRICS)
            def test_it(rag_scores):
                assert rag_scores["context_recall"] >= 0
                rag_scores["relevance"]
        """.replace("METRICS", '["context_recall", "relevance"]'),
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *row 'r0': relevance: *is missing*"])


def test_what_is_no_application_is_told(run: RunPytest, server: FakeOpenAI) -> None:
    """A fixture that returns something else than a function says what it must return."""
    result = run(*JUDGED, test_it=asking("    @pytest.fixture\n    def rag_respond():\n        return 'blue'\n"))
    result.assert_outcomes(errors=6)
    result.stdout.fnmatch_lines(["E *rag_respond must return a function from Sample to response, not str"])


def test_an_application_per_parameter(run: RunPytest, server: FakeOpenAI) -> None:
    """A parametrized application answers the rows of its own tests."""
    run(
        *JUDGED,
        test_it="""
            import pytest
            @pytest.fixture(params=["moss", "fern"])
            def rag_respond(request):
                return lambda sample: f"{request.param} {sample.id}"
            @pytest.mark.rag_dataset([{"id": "a", "question": "Is it?"}, {"id": "b", "question": "Is it?"}])
            def test_it(rag_sample, rag_respond, request):
                assert rag_sample.response == f"{request.node.callspec.params['rag_respond']} {rag_sample.id}"
        """,
    ).assert_outcomes(passed=4)


def test_a_rerun_takes_what_there_is(run: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """A test that is run again has the same scores, held against nothing yet, and nothing is paid twice."""
    run(
        *JUDGED,
        "-p",
        "rerunfailures",
        "--reruns=2",
        "--rag-json=out.json",
        test_it="""
            import pytest
            @pytest.mark.rag_dataset([{"question": "Is it blue?", "answer": "Blue."}], metrics=["relevance"])
            def test_it(rag_scores, request):
                assert rag_scores["relevance"].comparison is None
                assert rag_scores["relevance"] > 0
                assert request.node.execution_count == 3
        """,
    ).assert_outcomes(passed=1)
    assert server.calls == 1
    (test,) = scored().values()
    assert [record["usage"]["calls"] for record in test["records"]] == [1]


def test_a_rerun_of_an_unscored_row_asks_again(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """A row that has no score is judged anew; the response that it has is kept."""
    server.script(Reply(text="moss"), Reply(text="moss"))
    fixture = SYNC.replace("range(6)", "range(1)")
    suite = asking(fixture).replace("range(6)", "range(1)")
    result = run(*JUDGED, "-p", "rerunfailures", "--reruns=1", test_it=suite)
    result.assert_outcomes(passed=1)
    assert asked(pytester) == ["r0"]
    assert server.calls == 3


def test_a_judge_without_credit_is_not_asked_for_every_row(run: RunPytest, server: FakeOpenAI) -> None:
    """When no further request can succeed the rest of the rows fail with the same reason, unasked."""
    server.answer = lambda _: out_of_quota()
    result = run(*JUDGED, "--rag-concurrency=1", test_it=GOLDEN.replace("range(8)", "range(40)"))
    result.assert_outcomes(failed=40)
    assert server.calls < 10


def test_one_failure_harms_no_other_row(run: RunPytest, server: FakeOpenAI) -> None:
    """Rows whose requests fail are unscored; the rest pass."""

    def answer(body: dict[str, Any]) -> str | Reply:
        return failing(400) if "pool 3" in str(body["messages"]) else answer_sensibly(body)

    server.answer = answer
    run(*JUDGED, test_it=GOLDEN).assert_outcomes(passed=7, failed=1)


def test_stopping_early_calls_off_the_rest(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """After -x nothing more is asked, and what was asked is kept."""
    server.latency = 0.05
    suite = GOLDEN.replace("range(8)", "range(60)").replace("> 0", "> 9")
    run(*JUDGED, "--rag-concurrency=2", "-x", test_it=suite).assert_outcomes(failed=1)
    paid = server.calls
    assert paid < 60
    run(*JUDGED, "--rag-concurrency=2", test_it=suite.replace("> 9", "> 0")).assert_outcomes(passed=60)
    assert server.calls == 60


def test_an_interrupt_ends_the_wait(server: FakeOpenAI, pytester: pytest.Pytester, tmp_path: Path) -> None:
    """Ctrl-C while a test waits for its row ends the run, with what was answered kept for the next."""
    pytester.makepyfile(test_it=GOLDEN)
    answered = []

    def answer(body: dict[str, Any]) -> str | Reply:
        answered.append(body)
        slow = "pool 0" in str(body["messages"]) and not interrupted
        if len(answered) == 8 and not interrupted:
            interrupted.append(True)
            os.kill(started[0], signal.SIGINT)
        return Reply(text=str(answer_sensibly(body)), latency=30) if slow else answer_sensibly(body)

    interrupted: list[bool] = []
    started: list[int] = []
    server.answer = answer
    command = [sys.executable, "-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider", *JUDGED, "--rag-retries=0"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with subprocess.Popen(
        [*command, "--rag-timeout=3"], cwd=pytester.path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        started.append(process.pid)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, out
    before = server.calls
    again = subprocess.run(command, cwd=pytester.path, env=environment, capture_output=True, text=True, check=False)
    assert "8 passed" in again.stdout
    assert server.calls - before == 1


def test_scores_belong_to_the_test_of_the_row(run: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """What was scored ahead is recorded once, in its own test, whatever ran meanwhile; cassettes name that test too."""
    run(
        *JUDGED,
        "--rag-json=out.json",
        "-o",
        "rag_cassette=answers.jsonl",
        test_it=GOLDEN
        + """
    def test_between():
        pass
    @pytest.mark.rag_dataset(ROWS[:2], metrics=["relevance", "lexical_grounding"])
    def test_last(rag_sample):
        pass
""",
    ).assert_outcomes(passed=11)
    records = {name.partition("::")[2]: test["records"] for name, test in scored().items()}
    assert {name: [r["metric"] for r in found] for name, found in records.items()} == {
        **{f"test_golden[r{n}]": ["relevance"] for n in range(8)},
        **{f"test_last[r{n}]": ["relevance", "lexical_grounding"] for n in range(2)},
    }
    assert sum(r["usage"]["calls"] for found in records.values() for r in found) == server.calls == 8
    assert {r["outcome"] for found in records.values() for r in found} == {"passed", "measured", "unscored"}


def test_a_dry_run_asks_no_application(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """Where requests are only forecast, the application is left alone too."""
    run(*JUDGED, "--rag-dry-run", test_it=asking(SYNC))
    assert not (pytester.path / "asked.txt").exists()
    assert server.calls == 0


def test_a_terminal_sees_how_far_it_is(server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """While a test waits, one line counts the rows; the results that follow are whole lines."""
    pty = pytest.importorskip("pty", reason="a terminal is needed")
    server.latency = 0.6
    pytester.makepyfile(test_it=GOLDEN)
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider", *JUDGED]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(command, cwd=pytester.path, env=environment, stdout=its, stderr=its):
        os.close(its)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how Linux says that the other end is closed
            pass
    os.close(ours)
    text = shown.decode()
    assert "\rragmetrics: 0 of 8 rows done ahead" in text
    assert all(line.count("rows done ahead") == line.count("\r") or "done" not in line for line in text.split("\r\n"))
    assert "8 passed" in text


def test_no_line_where_nobody_watches(run: RunPytest, server: FakeOpenAI) -> None:
    """In a file or a pipe there is no progress."""
    server.latency = 0.5
    result = run(*JUDGED, test_it=GOLDEN)
    result.stdout.no_fnmatch_line("*done ahead*")
    assert json.dumps(result.outlines).count("rows done") == 0


@pytest.mark.parametrize("reply", [failing(500), dropped(), rate_limited()], ids=["500", "dropped", "busy"])
def test_an_outage_in_the_middle_is_not_waited_for_row_by_row(run: RunPytest, server: FakeOpenAI, reply: Reply) -> None:
    """After as many requests in a row as may be in flight got no answer the other rows fail unasked, and say so."""
    answered = iter(range(6))
    server.answer = lambda body: answer_sensibly(body) if next(answered, None) is not None else reply
    options = (*JUDGED, "--rag-concurrency=3", "--rag-retries=1")
    result = run(*options, test_it=GOLDEN.replace("range(8)", "range(60)"))
    result.assert_outcomes(passed=6, failed=54)
    result.stdout.fnmatch_lines(
        ["E * relevance: not asked any more, as 3 requests in a row *; the last: openai:gpt-mine: *"]
    )
    # Two attempts each, of those that were counted and of those that were on their way.
    assert server.calls <= 6 + 2 * (3 + 3)
    server.answer = answer_sensibly
    run(*options).assert_outcomes(passed=60)
    assert (server.answered, server.duplicates) == (60, 0)


def test_what_is_kept_is_scored_while_the_judge_is_away(run: RunPytest, server: FakeOpenAI) -> None:
    """Rows that were judged before have their scores, whatever happens to the rows between them."""
    run(*JUDGED, test_it=GOLDEN).assert_outcomes(passed=8)
    server.answer = lambda _: out_of_quota()
    longer = GOLDEN.replace("range(8)]", "[*range(20, 26), *range(8), *range(30, 36)]]")
    run(*JUDGED, "--rag-concurrency=2", test_it=longer).assert_outcomes(passed=8, failed=12)


def test_reruns_do_not_wait_for_a_judge_that_is_away(run: RunPytest, server: FakeOpenAI) -> None:
    """A judge that was given up is tried once by a rerun, and not by that of every row."""
    server.answer = lambda _: out_of_quota()
    reruns = ("-p", "rerunfailures", "--reruns=2")
    run(*JUDGED, *reruns, "--rag-concurrency=1", test_it=GOLDEN.replace("range(8)", "range(40)"))
    assert server.calls <= 3


@pytest.mark.parametrize("how", [(), ("-p", "xdist", "-n2")], ids=["serial", "xdist"])
def test_repetitions_are_tests_of_their_own(run: RunPytest, server: FakeOpenAI, how: tuple[str, ...]) -> None:
    """Every repetition of a test has the scores of its row, and all of them are paid once and stand in the gate."""
    gated = GOLDEN.replace(
        "    def test_golden", '    @pytest.mark.rag_gate("relevance", mean=0.1)\n    def test_golden'
    )
    result = run(*JUDGED, *how, "-p", "pytest_repeat", "--count=2", test_it=gated)
    result.assert_outcomes(passed=17)
    result.stdout.fnmatch_lines(["gate: mean relevance * passed (n 16), *"])
    assert (server.answered, server.duplicates) == (8, 0)


def test_subtests_and_coroutines_have_scores(run: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """A test with parts, and one that an event loop runs, look at the scores like any other."""
    suite = """
        import asyncio
        import pytest
        ROWS = [{"id": "r1", "question": "Is it blue?", "answer": "Blue."}]
        @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
        def test_parts(rag_scores, subtests):
            for bound in (0, 9):
                with subtests.test(bound=bound):
                    assert rag_scores["relevance"] > bound
        @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
        @pytest.mark.asyncio
        async def test_coroutine(rag_scores):
            await asyncio.sleep(0)
            assert rag_scores["relevance"] > 0
    """
    run(
        *JUDGED,
        "-p",
        "asyncio",
        "-o",
        "asyncio_default_fixture_loop_scope=function",
        "--rag-json=out.json",
        test_it=suite,
    )
    tests = scored()
    assert {name: (test["outcome"], len(test["records"])) for name, test in tests.items()} == {
        "test_it.py::test_parts[r1]": ("failed", 1),
        "test_it.py::test_coroutine[r1]": ("passed", 1),
    }
    assert server.calls == 1
