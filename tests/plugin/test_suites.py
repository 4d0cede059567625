"""Assertions over a whole set inside a run, against the scores that an earlier run left behind."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import RunPytest

SUITE = """
    from pytest_ragmetrics import assert_mean, assert_not_worse, evaluate
    from texts import FALSE, SOURCE, TRUE

    ANSWERS = [TRUE, TRUE, {second}, TRUE]

    def test_golden(request):
        rows = [{{"id": f"q{{n}}", "answer": answer, "contexts": [SOURCE]}} for n, answer in enumerate(ANSWERS)]
        table = evaluate(rows, ["quoted_spans_alignment"])
        assert_mean(table, 0.5)
        if request.config.getoption("--rag-baseline"):
            assert_not_worse(table)
"""


def test_a_run_is_held_against_the_file_of_an_earlier_one(run: RunPytest, pytester: pytest.Pytester) -> None:
    """The same scores pass; a quotation that became wrong fails the test and is named."""
    run("--rag-json=main.json", test_it=SUITE.format(second="TRUE")).assert_outcomes(passed=1)
    run("--rag-baseline=main.json").assert_outcomes(passed=1)
    result = run("--rag-baseline=main.json", test_it=SUITE.format(second="FALSE"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: quoted_spans_alignment 1.00 -> 0.75: -0.250 (95 % interval *n=4*margin 0: inconclusive",
            "E*about * more samples would settle it if the difference stays where it is; with 95 % confidence it is*",
            "E*regressed: 1",
            "E*-1.00  1.00 -> 0.00  q2",
        ]
    )
    # The frames of the package say nothing that the message does not.
    result.stdout.no_fnmatch_line("*suites.py*")


def test_a_baseline_that_is_none_fails_with_the_place(run: RunPytest, pytester: pytest.Pytester) -> None:
    """Naming the file."""
    pytester.path.joinpath("main.json").write_text('{"rows": 1, "metrics": []}', encoding="utf-8")
    suite = """
        from pytest_ragmetrics import assert_not_worse, evaluate

        def test_golden():
            table = evaluate([{"id": "q", "answer": "Moss.", "contexts": []}], ["quoted_spans_alignment"])
            assert_not_worse(table, "main.json")
    """
    result = run(test_it=suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*DocumentError: main.json: rows must be a valid array, not 1"])
    result.stdout.no_fnmatch_line("*pydantic_core*")
