"""How tests came out: the status of each, and all of them in a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.plugin.report import run_properties
from pytest_ragmetrics.report.markdown import why
from pytest_ragmetrics.report.outcomes import paired_tests
from pytest_ragmetrics.report.page import environment
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.runs.merge import merge_documents
from pytest_ragmetrics.runs.records import TestOutcome as Outcome
from pytest_ragmetrics.runs.records import Threshold, held_to_bounds, read_document, render_json
from pytest_ragmetrics.runs.wording import runs as wording
from pytest_ragmetrics.runs.wording.runs import Status, blamed, headline, outcome_of, status_of, tallies
from tests.documents import document, gate, record, row, usage

FAILED = record(score=0.4, outcome="failed")
UNSCORED = record(score=None, outcome="unscored", reason="no claims")


def test_a_test_that_failed_for_want_of_a_score_is_unscored() -> None:
    failing: list[Outcome] = ["failed", "error"]
    others: list[Outcome] = ["passed", "xfailed", "skipped", "xpassed"]
    for outcome in (*failing, *others):
        short = outcome in failing
        assert status_of(row("test_a", record(), UNSCORED, outcome=outcome)) == ("unscored" if short else outcome)
        assert status_of(row("test_a", FAILED, UNSCORED, outcome=outcome)) == outcome


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({}, "No test was recorded"),
        ({"passed": 1}, "The test passed"),
        ({"passed": 1200}, "All 1,200 tests passed"),
        ({"failed": 1}, "1 of 1 test fell short"),
        ({"failed": 3, "passed": 24}, "3 of 27 tests fell short"),
        ({"unscored": 2, "passed": 3}, "2 of 5 tests could not be scored"),
        ({"failed": 1, "error": 1, "unscored": 1},
         "1 of 3 tests fell short, 1 broke off with an error, 1 could not be scored"),
        ({"xfailed": 2, "passed": 1}, "No test failed: 1 passed, 2 fell short as expected"),
        ({"skipped": 2}, "No test failed: 2 were skipped"),
    ],
)  # fmt: skip
def test_the_outcome_in_one_sentence(counts: dict[Status, int], sentence: str) -> None:
    assert headline(counts) == sentence
    assert headline(counts, cut_short=True) == f"{sentence}, then the run stopped early"


def test_a_run_may_stop_early() -> None:
    assert [status for status in range(6) if wording.is_cut_short(document(exit_status=status).run)] == [2, 3]


def scored(metric: str, score: float | None, bound: float | None = None) -> Any:
    held = "measured" if bound is None else "passed" if (score or 0.0) >= bound else "failed"
    made = record(metric, score, at_least=bound, outcome="unscored" if score is None else held)
    return replace(made, threshold=None if bound is None else Threshold(operator=">=", bound=bound))


#: A row that compared both metrics.
WHOLE = row("test_a[1]", scored("tone", 0.9, 0.8), scored("fit", 0.9, 0.5))
OTHER = row("test_a[2]", scored("tone", 0.9, 0.8), scored("fit", 0.4, 0.5), outcome="failed")


def ended(*records: Any, outcome: Outcome = "failed") -> Any:
    return row("test_a[0]", *records, outcome=outcome)


SHORT, MEASURED = scored("tone", 0.1, 0.8), ("measured", None)


@pytest.mark.parametrize(
    ("others", "test", "expected"),
    [
        # The first assert fails, the second is not reached: the other rows tell its bound.
        ([WHOLE], ended(SHORT, scored("fit", 0.3)), ("failed", 0.5)),
        ([WHOLE, OTHER], ended(SHORT, scored("fit", 0.6), outcome="xfailed"), ("passed", 0.5)),
        ([OTHER], ended(scored("fit", 0.5), outcome="error"), ("passed", 0.5)),
        # Of one test, its own comparisons tell it as well.
        ([], ended(scored("fit", 0.1, 0.5), scored("fit", 0.2)), ("failed", 0.5)),
        # A test that went to its end, or was skipped, meant not to compare it.
        ([WHOLE], ended(scored("fit", 0.3), outcome="passed"), MEASURED),
        ([WHOLE], ended(scored("fit", 0.3), outcome="skipped"), MEASURED),
        # Nobody tells it, another function does, or the rows differ.
        ([], ended(SHORT, scored("fit", 0.3)), MEASURED),
        ([replace(WHOLE, id=WHOLE.id.replace("test_a[", "test_ab["))], ended(scored("fit", 0.3)), MEASURED),
        ([WHOLE, row("test_a[3]", scored("fit", 0.9, 0.7))], ended(scored("fit", 0.6)), MEASURED),
        ([WHOLE], ended(scored("fit", None)), ("unscored", None)),
    ],
)
def test_a_score_is_held_to_the_bound_of_its_function(others: Any, test: Any, expected: tuple[str, Any]) -> None:
    *same, found = held_to_bounds([*others, test])
    last = found.records[-1]
    assert (last.outcome, last.threshold and last.threshold.bound) == expected
    assert last.asserted == (last.outcome == test.records[-1].outcome)
    assert same == others
    assert held_to_bounds([*same, found]) == (*same, found)
    assert found.records[:-1] == test.records[:-1]
    together = merge_documents([document(*others), document(test)])
    assert {each.id: each for each in together.tests}[test.id] == found


def test_files_of_earlier_releases_are_held_to_it_too(tmp_path: Path) -> None:
    """They have the comparisons that were made alone."""
    (tmp_path / "run.json").write_text(render_json(document(WHOLE, ended(SHORT, scored("fit", 0.3)))))
    *_, found = read_document(tmp_path / "run.json").tests
    assert (found.records[1].outcome, found.records[1].asserted) == ("failed", False)


def test_what_is_not_asserted_fell_short_and_failed_no_test() -> None:
    *_, found = held_to_bounds([WHOLE, row("test_a[0]", scored("tone", None), scored("fit", 0.3), outcome="failed")])
    assert status_of(found) == "unscored"
    counts = [(each.metric, each.n, each.failing, each.unscored) for each in tallies(document(WHOLE, found))]
    assert counts == [("fit", 2, 1, 0), ("tone", 1, 0, 1)]


def test_a_test_that_broke_is_not_explained_by_what_it_did_not_assert() -> None:
    broken = replace(ended(scored("fit", 0.3)), message="E   KeyError: 'topic'")
    _, found = held_to_bounds([WHOLE, broken])
    assert found.records[0].outcome == "failed"
    assert blamed(found) == []
    assert why(found) == "KeyError: 'topic'"
    (view,) = build_report_view(document(found)).tests
    assert "not reached, needs ≥ 0.50" in environment().get_template("test.html.jinja").module.body(view)  # type: ignore[attr-defined] # a macro
    assert (view.why, view.explained) == ("KeyError: 'topic'", True)
    assert [pair.cause for pair in paired_tests(document(found))] == ["error"]


def made() -> Any:
    """Return a run of two functions, in one of which tests were skipped and not needed."""
    rows = [
        row("test_a[0]", replace(scored("tone", 0.5, 0.8), usage=usage(cost=0.25)), outcome="failed"),
        row("test_a[1]", replace(scored("tone", 1.0, 0.8), vacuous=True, usage=usage(cost=None))),
        row("test_b", scored("fit", 0.75, 0.5), scored("tone", None)),
        row("test_a[gate]", gate=gate("tone", outcome="failed"), outcome="failed"),
        row("test_b[gate]", gate=gate("tone")),
    ]
    counts = {"tests/test_assistant.py::test_a": 3, "tests/test_assistant.py::test_b": 1}
    whole = document(*rows)
    return replace(whole, run=replace(whole.run, skipped=counts, not_needed={"tests/test_assistant.py::test_a": 40}))


def test_what_is_in_no_mean_stands_beside_it() -> None:
    tone = "1 of 2 had something to check, 4 tests skipped, 40 tests not needed"
    assert {each.metric: each.beside for each in tallies(made())} == {"fit": "1 test skipped", "tone": tone}


def test_gates_are_not_among_the_tests() -> None:
    assert outcome_of(made()) == "1 of 3 tests fell short, 1 of 2 gates failed"
    stopped = document(row("test_a", record()), row("test_g", gate=gate()), exit_status=2)
    assert outcome_of(stopped) == "The test passed, then the run stopped early"


def test_the_properties_of_a_run() -> None:
    found = dict(run_properties(made()))
    tone = {"n": 1, "mean": 0.5, "fell_short": 1, "unscored": 1, "vacuous": 1, "skipped": 4, "not_needed": 40}
    assert found.items() >= {f"rag.tone.{name}": value for name, value in tone.items()}.items()
    assert (found["rag.tests.failed"], found["rag.tests.passed"], "rag.cost" in found) == (1, 2, False)
    assert "$0.25 and 1 of unknown price" in wording.spent_text([each.records[0].usage for each in made().tests[:2]])
