"""The list of tests: what happened to each, why, and in which order."""

from __future__ import annotations

from pytest_ragmetrics.report.page.entries import list_entries
from tests.documents import FILE, document, gate, record, row, usage, verdict

FAILED = record(score=0.4, outcome="failed", reason="Matched 2/5 quoted spans")
UNSCORED = record(score=None, outcome="unscored", reason="no claims")


def test_the_worst_comes_first() -> None:
    """By outcome, then by the distance from the threshold, in whichever direction it is; then as they came."""
    tests = [
        row("test_passed", record(score=0.95)),
        row("test_skipped", outcome="skipped"),
        row("test_close", record(score=0.89, outcome="failed"), outcome="failed"),
        row("test_edge", record(score=0.9)),
        row("test_high", record(score=0.9, outcome="failed", at_most=0.1), outcome="failed"),
        row("test_far", record(score=0.3, outcome="failed"), outcome="failed"),
        row("test_unscored", UNSCORED, outcome="failed"),
        row("test_error", outcome="error"),
        row("test_xpassed", record(), outcome="xpassed"),
        row("test_xfailed", FAILED, outcome="xfailed"),
        row("test_measured", record(score=0.1, outcome="measured")),
    ]
    assert [entry.name.removeprefix("test_") for entry in list_entries(document(*tests).tests)] == [
        "high", "far", "close", "error", "unscored", "xpassed", "xfailed", "edge", "passed", "measured", "skipped",
    ]  # fmt: skip


def test_links_are_the_ids_of_the_tests() -> None:
    """A link does not depend on what else ran; the same id twice is two links; half a character is no obstacle."""
    alone = list_entries([row("test_refund[annual plan]")])[0]
    among = list_entries([row("test_b"), row("test_refund[annual plan]"), row("test_refund[annual plan]")])
    assert alone.anchor == f"{FILE}::test_refund[annual plan]"
    assert [entry.anchor for entry in among] == [f"{FILE}::test_b", alone.anchor, f"{alone.anchor} (2)"]
    assert len({entry.key for entry in among}) == 3
    assert list_entries([row("test_é[\ud83d]")])[0].anchor == f"{FILE}::test_é[\\ud83d]"


def test_a_test_is_marked_with_what_its_scores_are() -> None:
    """Votes on both sides of the threshold, verdicts that want a second look, nothing to check."""
    flaky = record(score=0.9, votes=[0.5, 0.9, 0.95])
    odd = record(verdicts=[verdict("a", ok=True, suspicious=True)])
    (entry,) = list_entries([row("test_a", flaky, odd, record(vacuous=True))])
    assert entry.flags == ("flaky", "suspicious", "vacuous")
    assert list_entries([row("test_a", record(votes=[0.9, 0.95]))])[0].flags == ()


def test_a_test_costs_what_its_scores_cost() -> None:
    """An unknown price counts its tokens."""
    costs = record(usage=usage(tokens=800, cost=0.01)), record(usage=usage(tokens=80, cost=None))
    (entry,) = list_entries([row("test_a", *costs)])
    assert (entry.cost, entry.tokens) == (0.01, 990)


def test_a_gate_says_its_numbers() -> None:
    """A gate has no record of its own; its numbers are why it failed."""
    (entry,) = list_entries([row("test_gate", gate=gate(outcome="failed"), outcome="failed", message="E   no")])
    assert entry.why == "mean faithfulness 0.830, between 0.780 and 0.880 (95%), needs ≥ 0.80: 40 scores, 0 unscored"


def test_the_name_is_what_follows_the_file() -> None:
    """The file is said once."""
    (entry,) = list_entries([row("TestBot::test_a", file=FILE)])
    assert (entry.name, entry.file) == ("TestBot::test_a", FILE)


def test_the_reason_is_that_of_the_worst_score() -> None:
    """The list says why without a click."""
    worse = record("recall", 0.1, outcome="failed", reason="1 of 10 sentences")
    assert list_entries([row("test_a", record(), FAILED, worse, outcome="failed")])[0].why == "1 of 10 sentences"
    unreasoned = record(score=0.5, outcome="failed", verdicts=[verdict("a", ok=True), verdict("b", ok=False)])
    assert list_entries([row("test_a", unreasoned, outcome="failed")])[0].why == "1 of 2 not ok"


def test_without_a_failing_score_the_reason_is_pytests() -> None:
    """The error line of a traceback, or the reason of a skip or an expected failure."""
    traceback = (
        "    def test_a():\n>       assert x\nE       assert 41 < 20\nE        +  where\n\na.py:3: AssertionError"
    )
    (entry,) = list_entries([row("test_a", record(), outcome="failed", message=traceback)])
    assert (entry.why, entry.explained) == ("assert 41 < 20", True)
    (entry,) = list_entries([row("test_a", FAILED, outcome="xfailed", message="not indexed yet")])
    assert (entry.why, entry.explained) == ("not indexed yet", True)
    (entry,) = list_entries([row("test_a", FAILED, outcome="failed", message=traceback)])
    assert entry.explained is False
    assert list_entries([row("test_a", record())])[0].why == ""
    assert list_entries([row("test_a", outcome="error", message="\n \n")])[0].why == ""


def test_a_score_stands_beside_what_it_needed() -> None:
    """Enough decimals to see why it failed."""
    (entry,) = list_entries([row("test_a", record(score=0.8999, outcome="failed"), UNSCORED, outcome="failed")])
    assert [(chip.score, chip.needs, chip.value) for chip in entry.chips] == [
        ("0.8999", "≥ 0.90", 0.8999),
        ("unscored", None, None),
    ]
