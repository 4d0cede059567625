"""Budgets of a whole run, over all its workers, with a provider that counts what it was asked."""

from __future__ import annotations

import gc

import pytest

from tests.fake_openai import Body, FakeOpenAI, Reply
from tests.plugin.conftest import RunPytest

# Each test asks something else, and no answer fails it.
SUITE = """
    import pytest
    from pytest_ragmetrics import assert_relevant

    @pytest.mark.parametrize("number", range(12))
    def test_it(number):
        assert_relevant(f"Does it hum {number}?", f"It hums {number}.", min=0.0)
"""
TOKENS = 275


def counted(server: FakeOpenAI) -> None:
    """Have each answer say that it took as many tokens."""
    answer = server.answer

    def told(body: Body) -> str | Reply:
        made = answer(body)
        return Reply(text=made, usage=(250, 25)) if isinstance(made, str) else made

    server.answer = told


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n4"]], ids=["alone", "xdist"])
def test_calls_never_pass_the_budget(run: RunPytest, server: FakeOpenAI, workers: list[str]) -> None:
    """One worker or four: the provider sees exactly as many requests, and the other tests say why they failed."""
    counted(server)
    result = run(*workers, "--rag-max-calls=5", test_it=SUITE)
    result.assert_outcomes(passed=5, failed=7)
    assert server.calls == 5
    result.stdout.fnmatch_lines(["budget: 5 of 5 calls, 1375 tokens, $0.00* used; reached, 7 requests were not made"])
    said = [line for line in result.outlines if line.startswith("E ") and "--rag-max-calls=5 is reached" in line]
    assert len(said) == 7
    assert not [line for line in result.outlines if "budget.py" in line]


def test_what_was_paid_for_is_kept(run: RunPytest, server: FakeOpenAI) -> None:
    """Cached answers are free: run by run the rest is paid for, until a run needs no budget any more."""
    for passed in (5, 10, 12):
        run("--rag-max-calls=5", test_it=SUITE).assert_outcomes(passed=passed, failed=12 - passed)
    result = run("--rag-max-calls=0", test_it=SUITE)
    result.assert_outcomes(passed=12)
    result.stdout.fnmatch_lines(["budget: 0 of 0 calls, 0 tokens used"])
    assert server.calls == 12


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n4"]], ids=["alone", "xdist"])
def test_tokens_pass_the_budget_by_no_more_than_what_is_in_flight(
    run: RunPytest, server: FakeOpenAI, workers: list[str]
) -> None:
    """A test asks one thing at a time, so as many requests are in flight as there are workers."""
    counted(server)
    result = run(*workers, f"--rag-max-tokens={3 * TOKENS}", test_it=SUITE)
    in_flight = 4 if workers else 1
    assert 3 <= server.calls < 3 + in_flight
    result.stdout.fnmatch_lines([f"budget: {server.calls} calls, {server.calls * TOKENS} of {3 * TOKENS} tokens, *"])


def test_dollars_stop_the_run(run: RunPytest, server: FakeOpenAI) -> None:
    """By the price of the model."""
    counted(server)
    result = run("--rag-judge=openai:gpt-4o-mini", "--rag-max-cost=0.0001", test_it=SUITE)
    result.assert_outcomes(passed=2, failed=10)
    result.stdout.fnmatch_lines(["E *--rag-max-cost=0.0001 is reached (2 calls, 550 tokens, $0.0001 of $0.0001 used)*"])


def test_an_unknown_price_is_no_price_of_zero(run: RunPytest, server: FakeOpenAI) -> None:
    """The first request is refused, and the error names the model and the way on."""
    result = run("--rag-judge=openai:house-model", "--rag-max-cost=5", test_it=SUITE)
    result.assert_outcomes(failed=12)
    result.stdout.fnmatch_lines(
        ["E *openai:house-model has no known price, so --rag-max-cost cannot be kept: use --rag-max-tokens or *"]
    )
    assert server.calls == 0


def test_embeddings_and_repairs_are_requests(run: RunPytest, server: FakeOpenAI) -> None:
    """A reply that has to be asked for again counts twice, and so do the vectors."""
    server.script("no JSON")
    suite = """
        from pytest_ragmetrics import assert_answer_relevant

        def test_it():
            assert_answer_relevant("Does it hum?", "It hums.", min=-1)
    """
    result = run("--rag-max-calls=2", test_it=suite)
    result.assert_outcomes(failed=1)
    assert server.calls == 2
    run("--rag-max-calls=1", test_it=suite).assert_outcomes(passed=1)
    assert [request.path for request in server.requests][-1] == "/v1/embeddings"
    result.stdout.fnmatch_lines(["budget: 2 of 2 calls, *reached, 1 request was not made"])


def test_a_table_stops_when_the_budget_is_spent(run: RunPytest, server: FakeOpenAI) -> None:
    """evaluate() raises, and asks for nothing more."""
    result = run(
        "--rag-max-calls=4",
        test_it="""
            from pytest_ragmetrics import evaluate

            def test_table():
                evaluate([{"question": "Does it hum?", "answer": f"It hums {n}."} for n in range(40)], ["relevance"])
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *BudgetExceededError: --rag-max-calls=4 is reached*"])
    assert server.calls == 4


def test_what_a_killed_worker_used_stays_counted(run: RunPytest, server: FakeOpenAI) -> None:
    """A worker that is killed in the middle of a test has spent what it spent, and the next one has less."""
    result = run(
        "-p",
        "xdist",
        "-n1",
        "--rag-max-calls=5",
        test_it=SUITE
        + """
        if number == 2:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)
    """,
    )
    assert server.calls == 5
    result.assert_outcomes(passed=4, failed=8)
    result.stdout.fnmatch_lines(["budget: 5 of 5 calls, *reached, 7 requests were not made"])


def test_a_judge_that_cannot_be_closed_keeps_nothing_else_open(
    run: RunPytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget is closed and its file is gone."""
    monkeypatch.setattr("tempfile.tempdir", str(pytester.mkdir("temporary")))
    broken = """
        class Judge:
            name = "broken"

            async def complete(self, messages, schema):
                return '{"reason": "It hums.", "rating": 4}'

            async def aclose(self):
                raise OSError("already gone")
    """
    result = run("--rag-judge=broken:Judge", "--rag-max-calls=12", test_it=SUITE, broken=broken)
    result.assert_outcomes(passed=12)
    assert "OSError: already gone" in result.stderr.str()
    assert not list((pytester.path / "temporary").glob("pytest-ragmetrics-run-*"))
    # Python 3.13 and later warn of a connection that nobody closed, once it is collected.
    gc.collect()


@pytest.mark.usefixtures("server")
def test_nothing_is_left_behind(run: RunPytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that the workers share goes with the run, and without a budget there is none."""
    folder = pytester.mkdir("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    run("--rag-max-calls=1", test_it=SUITE + "        import tempfile, os; assert os.listdir(tempfile.gettempdir())")
    result = run(test_it=SUITE)
    assert not list(folder.iterdir())
    result.stdout.no_fnmatch_line("budget:*")


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--rag-max-calls=-1", "'-1' is not a whole number of at least 0"),
        ("--rag-max-tokens=1.5", "'1.5' is not a whole number of at least 0"),
        ("--rag-max-cost=nan", "'nan' is not a number of at least 0"),
        ("--rag-max-cost=a lot", "'a lot' is not a number of at least 0"),
    ],
)
def test_a_budget_is_a_number(run: RunPytest, option: str, problem: str) -> None:
    """A wrong one is a usage error that names the option."""
    result = run(option, test_it="def test_it(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {option.partition('=')[0]}: {problem}"])


def test_the_ini_sets_a_budget(run: RunPytest, pytester: pytest.Pytester, server: FakeOpenAI) -> None:
    """A project may never want to spend more."""
    pytester.makeini("[pytest]\nrag_max_calls = 3")
    run(test_it=SUITE).assert_outcomes(passed=3, failed=9)
    assert server.calls == 3


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]], ids=["alone", "xdist"])
@pytest.mark.parametrize("ahead", [False, True], ids=["asserted", "ahead"])
def test_the_summary_counts_what_a_row_without_a_score_took(
    run: RunPytest, server: FakeOpenAI, workers: list[str], *, ahead: bool
) -> None:
    """The first step of an answer may be paid for, and the second refused: both lines tell of all three calls."""
    rows = """
        import pytest
        from pytest_ragmetrics import Sample, assert_faithful

        ROWS = [Sample(response=f"Moth {n} hums.", retrieved_contexts=(f"Moth {n} hums.",), id=f"q{n}") for n in (1, 2)]
    """
    asserted = """
        @pytest.mark.parametrize("row", ROWS, ids=str)
        def test_it(row):
            assert_faithful(row.response, row.retrieved_contexts, min=0.0)
    """
    scored = """
        @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
        def test_it(rag_sample, rag_scores):
            assert rag_scores["faithfulness"] >= 0.0
    """
    result = run(*workers, "--rag-max-calls=3", "--rag-concurrency=1", test_it=rows + (scored if ahead else asserted))
    assert server.calls == 3
    result.stdout.fnmatch_lines(["judge calls: 3 made *", "budget: 3 of 3 calls, *"])
