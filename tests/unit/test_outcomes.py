"""How tests came out: the status of each, and all of them in a sentence."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.explain.runs import Status, headline, is_cut_short, status_of
from pytest_ragmetrics.records import TestOutcome as Outcome
from tests.documents import document, record, row

FAILED = record(score=0.4, outcome="failed")
UNSCORED = record(score=None, outcome="unscored", reason="no claims")


@pytest.mark.parametrize("outcome", ["failed", "error"])
def test_a_test_that_failed_for_want_of_a_score_is_unscored(outcome: Outcome) -> None:
    """Neither passed nor failed; but a score that fell short is a failure."""
    assert status_of(row("test_a", record(), UNSCORED, outcome=outcome)) == "unscored"
    assert status_of(row("test_a", FAILED, UNSCORED, outcome=outcome)) == outcome


@pytest.mark.parametrize("outcome", ["passed", "xfailed", "skipped", "xpassed"])
def test_other_tests_are_what_pytest_says(outcome: Outcome) -> None:
    """A test that handled the missing score itself passed."""
    assert status_of(row("test_a", UNSCORED, outcome=outcome)) == outcome


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({}, "No test was recorded"),
        ({"passed": 1}, "The test passed"),
        ({"passed": 1200}, "All 1,200 tests passed"),
        ({"failed": 1}, "1 of 1 test fell short"),
        ({"failed": 3, "passed": 24}, "3 of 27 tests fell short"),
        ({"unscored": 2, "passed": 3}, "2 of 5 tests could not be scored"),
        (
            {"failed": 1, "error": 1, "unscored": 1},
            "1 of 3 tests fell short, 1 broke off with an error, 1 could not be scored",
        ),
        ({"xfailed": 2, "passed": 1}, "No test fell short: 1 passed, 2 fell short as expected"),
        ({"skipped": 2}, "No test fell short: 2 were skipped"),
    ],
)
def test_the_outcome_in_one_sentence(counts: dict[Status, int], sentence: str) -> None:
    """What went wrong comes first; only when all passed does it say so."""
    assert headline(counts) == sentence


def test_a_run_that_stopped_early_says_so() -> None:
    """Nobody takes the half of it that passed for the whole."""
    assert headline({"passed": 12}, cut_short=True) == "All 12 tests passed, then the run stopped early"
    assert headline({"failed": 1}, cut_short=True) == "1 of 1 test fell short, then the run stopped early"
    assert [is_cut_short(document(exit_status=status).run) for status in range(6)] == [
        False, False, True, True, False, False,
    ]  # fmt: skip
