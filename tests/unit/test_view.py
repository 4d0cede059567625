"""The view model of the page: the first screen and the list of tests."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics.report import tests_view
from pytest_ragmetrics.report.page import environment
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.runs import records as shapes
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.wording.runs import gate_line
from tests.documents import FILE, document, gate, record, row, verdict

FAILED = record(score=0.4, outcome="failed", reason="Matched 2/5 quoted spans")
UNSCORED = record(score=None, outcome="unscored", reason="no claims")


def only(test: shapes.TestRecord) -> tests_view.TestView:
    (view,) = build_report_view(document(test)).tests
    return view


def test_the_worst_test_comes_first() -> None:
    tests = [
        *(row("passed", record(score=0.95)), row("skipped", outcome="skipped")),
        *(row("close", record(score=0.89, outcome="failed"), outcome="failed"), row("edge", record(score=0.9))),
        row("high", record(score=0.9, outcome="failed", at_most=0.1), outcome="failed"),
        row("far", record(score=0.3, outcome="failed"), outcome="failed"),
        *(row("unscored", UNSCORED, outcome="failed"), row("error", outcome="error")),
        *(row("xpassed", record(), outcome="xpassed"), row("xfailed", FAILED, outcome="xfailed")),
        row("measured", record(score=0.1, outcome="measured")),
    ]
    order = "high far close error unscored xpassed xfailed edge passed measured skipped"
    assert [test.name for test in build_report_view(document(*tests)).tests] == order.split()
    # What newly fails comes before what failed before.
    far, near = (record(score=score, outcome="failed") for score in (0.1, 0.8))
    now = document(row("test_far", far, outcome="failed"), row("test_near", near, outcome="failed"))
    before = document(row("test_far", far, outcome="failed"), row("test_near", record()))
    tests = build_report_view(now, compare_documents(now, before)).tests
    assert [test.name for test in tests] == ["test_near", "test_far"]


def test_links_are_the_ids_of_the_tests() -> None:
    alone = only(row("TestBot::test_refund[annual plan]"))
    assert alone.anchor == f"{FILE}::TestBot::test_refund[annual plan]"
    assert alone.name == "TestBot::test_refund[annual plan]"
    among = build_report_view(document(row("test_b"), row(alone.name), row(alone.name))).tests
    assert [test.anchor for test in among] == [f"{FILE}::test_b", alone.anchor, f"{alone.anchor} (2)"]
    assert len({test.key for test in among}) == 3


def test_a_test_is_marked_with_what_its_scores_are() -> None:
    flaky = record(score=0.9, votes=[0.5, 0.9, 0.95])
    odd = record(verdicts=[verdict("a", ok=True, suspicious=True)])
    test = only(row("test_a", flaky, odd, record(vacuous=True)))
    assert test.flags == ("flaky", "suspicious", "vacuous")
    assert only(row("test_a", record(votes=[0.9, 0.95]))).flags == ()


TRACEBACK = "    def test_a():\n>       assert x\nE       assert 41 < 20\nE        +  where\n\na.py:3: AssertionError"
WORSE = record("recall", 0.1, outcome="failed", reason="1 of 10 sentences")
UNREASONED = record(score=0.5, outcome="failed", verdicts=[verdict("a", ok=True), verdict("b", ok=False)])


@pytest.mark.parametrize(
    ("test", "why", "explained"),
    [
        (row("t", record(), FAILED, WORSE, outcome="failed"), "1 of 10 sentences", False),
        (row("t", UNREASONED, outcome="failed"), "1 of 2 not ok", False),
        (row("t", FAILED, outcome="failed", message=TRACEBACK), "Matched 2/5 quoted spans", False),
        (row("t", record(), outcome="failed", message=TRACEBACK), "assert 41 < 20", True),
        (row("t", FAILED, outcome="xfailed", message="not indexed yet"), "not indexed yet", True),
        *((row("t", record()), "", True), (row("t", outcome="error", message="\n \n"), "", True)),
        (row("t", gate=gate(), outcome="failed", message="E   no"), gate_line(gate()), True),
    ],
    ids=["worst score", "no reason", "score before pytest", "pytest", "xfail", "passed", "blank", "gate"],
)
def test_a_test_says_why(test: shapes.TestRecord, why: str, *, explained: bool) -> None:
    assert (only(test).why, only(test).explained) == (why, explained)


def test_a_row_leads_with_a_score_that_says_something() -> None:
    vacuous, other = record("quotations", 1.0, vacuous=True), record("faithfulness", 0.95)
    baseline = document(row("test_a", vacuous, record("faithfulness", 0.5, outcome="failed")))
    comparison = compare_documents(document(row("test_a", vacuous, other)), baseline)
    (view,) = build_report_view(comparison.document, comparison).tests
    assert [it.metric for it in view.records] == ["faithfulness", "quotations"]
    macros: Any = environment().get_template("test.html.jinja").module
    assert 'faithfulness</bdi> <span class="change">was 0.50' in macros.row(view)
    both = document(row("test_a", record("faithfulness", 0.92), record("relevancy", 0.99)))
    earlier = document(row("test_a", record("faithfulness", 0.92), record("relevancy", 0.91)))
    (view,) = build_report_view(both, compare_documents(both, earlier)).tests
    assert "was" not in macros.row(view)
