"""Several votes in a run: from the option, the marker and the argument, and what the summary says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI, Reply
from tests.plugin.conftest import RunPytest

SUITE = """
    import pytest
    from pytest_ragmetrics import assert_relevant
    from pytest_ragmetrics.metrics import Relevance

    def test_option():
        assert_relevant("Does it hum?", "It hums.", min=0.1)

    @pytest.mark.rag_votes(1)
    def test_marker():
        assert_relevant("Does it hum?", "It hums, one.", min=0.1)

    @pytest.mark.rag_votes(1)
    def test_argument():
        assert_relevant("Does it hum?", "It hums, five.", min=1.0, votes=5)

    def test_plain():
        assert Relevance().score(user_input="Does it hum?", response="It hums, plainly.") >= 0.1
"""


def rating(step: int) -> str:
    """Return a reply that rates with this step."""
    return f'{{"reason": "Because.", "rating": {step}}}'


def samples_of(rows: dict[str, dict[str, Any]]) -> dict[str, list[float]]:
    """Return the single votes by the name of the test."""
    return {name.partition("::")[2]: row["records"][0]["samples"] for name, row in rows.items()}


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]], ids=["alone", "xdist"])
def test_the_argument_wins_over_the_marker_and_that_over_the_option(
    run: RunPytest, server: FakeOpenAI, scored: Callable[[], dict[str, dict[str, Any]]], workers: list[str]
) -> None:
    """Each test has the number of votes of whoever is nearest to it, and asks for no more than it takes."""
    server.answer = lambda _: rating(4)
    run(*workers, "--rag-votes=3", "--rag-json=out.json", test_it=SUITE).assert_outcomes(passed=4)
    votes = samples_of(scored())
    assert {name: len(samples) for name, samples in votes.items()} == {
        "test_option": 1,
        "test_marker": 0,
        "test_argument": 5,
        "test_plain": 3,
    }
    assert server.calls == 10


def test_the_ini_sets_the_votes(run: RunPytest, pytester: pytest.Pytester, server: FakeOpenAI) -> None:
    """A project may want two votes on everything."""
    pytester.makeini("[pytest]\nrag_votes = 2")
    server.answer = lambda _: rating(4)
    suite = SUITE[: SUITE.index("@pytest")].replace("min=0.1", "min=0.9")
    run(test_it=suite).assert_outcomes(passed=1)
    assert server.calls == 2


def test_votes_that_disagree_are_flaky(run: RunPytest, server: FakeOpenAI) -> None:
    """The summary names the test that could have gone the other way; one that is clear it does not."""
    server.script(*map(rating, (4, 0, 4)))
    server.answer = lambda _: rating(4)
    result = run(
        "--rag-votes=3",
        test_it="""
            from pytest_ragmetrics import assert_relevant

            def test_close():
                assert_relevant("Does it hum?", "It hums.", min=0.5)

            def test_clear():
                assert_relevant("Does it hum?", "It hums clearly.", min=0.5)
        """,
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["flaky: 1 test whose votes disagree: test_it.py::test_close"])


def test_a_failure_says_which_votes_were_asked(run: RunPytest, server: FakeOpenAI) -> None:
    """The state stands in the first line, also of a plain assert."""
    server.answer = lambda _: rating(0)
    result = run("--rag-votes=3", test_it=SUITE[: SUITE.index("@pytest")].replace("min=0.1", "min=0.5"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E * relevance 0.00 < 0.50: *; mean of 2 votes (0.00, 0.00); 2 of 3 votes asked, the rest cannot change it"]
    )
    assert server.calls == 2


def test_votes_are_kept_one_by_one(run: RunPytest, server: FakeOpenAI) -> None:
    """A second run with more votes pays for the further ones only."""
    server.answer = lambda _: rating(4)
    suite = SUITE[: SUITE.index("@pytest")].replace("min=0.1", "min=1.0")
    calls = []
    for votes in (1, 3, 3, 2):
        run(f"--rag-votes={votes}", test_it=suite).assert_outcomes(passed=1)
        calls.append(server.calls)
    assert calls == [1, 3, 3, 3]
    assert [request.body["temperature"] for request in server.requests] == [0, 1, 1]


def test_a_table_is_voted_on(run: RunPytest, server: FakeOpenAI) -> None:
    """evaluate() takes as many votes as it is told, else as the run says."""
    server.answer = lambda _: rating(4)
    run(
        "--rag-votes=2",
        test_it="""
            from pytest_ragmetrics import evaluate

            def test_table():
                rows = [{"question": "Does it hum?", "answer": f"It hums {n}."} for n in range(2)]
                for table, votes in ((evaluate(rows, ["relevance"]), 2), (evaluate(rows, ["relevance"], votes=3), 3)):
                    assert [len(row.results["relevance"].samples) for row in table.rows] == [votes, votes]
        """,
    ).assert_outcomes(passed=1)
    assert server.calls == 6


def test_a_vote_that_fails_is_no_vote(run: RunPytest, server: FakeOpenAI) -> None:
    """Two scored votes that agree decide although the third got no answer."""
    server.script(rating(4), Reply(text="", refusal="No."), rating(4))
    result = run("--rag-votes=3", test_it=SUITE[: SUITE.index("@pytest")].replace("min=0.1", "min=0.5"))
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("votes", ["0", "-1", "1.5", "many"])
def test_the_option_takes_whole_numbers(run: RunPytest, votes: str) -> None:
    """A wrong number is a usage error that names the option."""
    result = run(f"--rag-votes={votes}", test_it="def test_it(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --rag-votes: '{votes}' is not a whole number of at least 1"])


@pytest.mark.parametrize("arguments", ["", "0", "True", "'3'", "1, 2", "k=1.5"])
def test_the_marker_takes_one_whole_number(run: RunPytest, arguments: str) -> None:
    """A wrong marker is a usage error that names the test, before any test runs."""
    result = run(test_it=f"import pytest\n@pytest.mark.rag_votes({arguments})\ndef test_it(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_it.py::test_it: marker rag_votes(*write @pytest.mark.rag_votes(3)"])


def test_a_worker_reports_a_wrong_marker(run: RunPytest) -> None:
    """Under xdist nothing runs either, and the error is shown."""
    marked = "import pytest\n@pytest.mark.rag_votes(0)\ndef test_it(): pass"
    result = run("-p", "xdist", "-n1", test_it=marked)
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*ERROR: test_it.py::test_it: marker rag_votes(0): it takes one whole number*"])


def test_the_marker_is_a_known_one(run: RunPytest) -> None:
    """--strict-markers accepts it, by name too."""
    run("--strict-markers", test_it="import pytest\n@pytest.mark.rag_votes(k=3)\ndef test_it(): pass").assert_outcomes(
        passed=1
    )
