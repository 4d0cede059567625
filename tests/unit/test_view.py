"""The view model of the page: the first screen and the list of tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics import records as shapes
from pytest_ragmetrics.report.sample_view import Scale
from pytest_ragmetrics.report.view import (
    ChangesView,
    ReportView,
    build_distribution,
    build_gate_view,
    build_report_view,
    build_test_views,
)
from pytest_ragmetrics.run_comparison import compare_documents
from tests.documents import FILE, document, gate, record, row, usage, verdict

if TYPE_CHECKING:
    from pytest_ragmetrics.report.view import TestView

FAILED = record(score=0.4, outcome="failed", reason="Matched 2/5 quoted spans")
UNSCORED = record(score=None, outcome="unscored", reason="no claims")


def view_of(*tests: shapes.TestRecord, exit_status: int = 1) -> ReportView:
    """Return the view of a run of these tests."""
    return build_report_view(document(*tests, exit_status=exit_status))


def only(test: shapes.TestRecord) -> TestView:
    """Return the view of a test."""
    (view,) = build_test_views([test])
    return view


def test_the_worst_test_comes_first() -> None:
    """By outcome, then by the distance from the threshold, in whichever direction it is; then as they came."""
    tests = [
        row("passed", record(score=0.95)),
        row("skipped", outcome="skipped"),
        row("close", record(score=0.89, outcome="failed"), outcome="failed"),
        row("edge", record(score=0.9)),
        row("high", record(score=0.9, outcome="failed", at_most=0.1), outcome="failed"),
        row("far", record(score=0.3, outcome="failed"), outcome="failed"),
        row("unscored", UNSCORED, outcome="failed"),
        row("error", outcome="error"),
        row("xpassed", record(), outcome="xpassed"),
        row("xfailed", FAILED, outcome="xfailed"),
        row("measured", record(score=0.1, outcome="measured")),
    ]
    assert [test.name for test in build_test_views(tests)] == [
        "high", "far", "close", "error", "unscored", "xpassed", "xfailed", "edge", "passed", "measured", "skipped",
    ]  # fmt: skip


def test_links_are_the_ids_of_the_tests() -> None:
    """A link does not depend on what else ran; the same id twice is two links."""
    alone = only(row("TestBot::test_refund[annual plan]"))
    assert alone.anchor == f"{FILE}::TestBot::test_refund[annual plan]"
    assert (alone.name, alone.file, alone.place) == ("TestBot::test_refund[annual plan]", FILE, f"{FILE}:12")
    among = build_test_views([row("test_b"), row(alone.name), row(alone.name)])
    assert [test.anchor for test in among] == [f"{FILE}::test_b", alone.anchor, f"{alone.anchor} (2)"]
    assert len({test.key for test in among}) == 3


def test_a_test_is_marked_with_what_its_scores_are() -> None:
    """Votes on both sides of the threshold, verdicts that want a second look, nothing to check; and it costs."""
    flaky = record(score=0.9, votes=[0.5, 0.9, 0.95], usage=usage(tokens=800, cost=0.01))
    odd = record(verdicts=[verdict("a", ok=True, suspicious=True)], usage=usage(tokens=80, cost=None))
    test = only(row("test_a", flaky, odd, record(vacuous=True)))
    assert test.flags == ("flaky", "suspicious", "vacuous")
    assert (test.cost, test.tokens) == (0.01, 990)
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
        (row("t", record()), "", True),
        (row("t", outcome="error", message="\n \n"), "", True),
        (row("t", gate=gate(outcome="failed"), outcome="failed", message="E   no"), build_gate_view(gate()).text, True),
    ],
    ids=["worst score", "no reason", "score before pytest", "pytest", "xfail", "passed", "blank", "gate"],
)
def test_a_test_says_why(test: shapes.TestRecord, why: str, *, explained: bool) -> None:
    """The reason of the worst score; without a failing one pytest's words; the numbers of a gate."""
    assert (only(test).why, only(test).explained) == (why, explained)


def test_tiles_count_tests_and_name_the_metrics_to_blame() -> None:
    """The reader sees how many and because of what; a tile of nothing leads nowhere, rare outcomes have none."""
    view = view_of(
        row("test_a", FAILED),
        row("test_b", FAILED, WORSE, record(votes=[0.5, 0.95]), outcome="failed"),
        row("test_c", FAILED, outcome="xfailed"),
        row("test_d", outcome="skipped"),
    )
    failed, unscored, passed, flaky = view.tiles
    assert (failed.figure, failed.label, failed.notes) == ("1", "failed", ("1 quoted_spans_alignment", "1 recall"))
    assert failed.anchor == flaky.anchor == f"{FILE}::test_b"
    assert (unscored.figure, unscored.anchor, passed.figure) == ("0", None, "1")
    assert (flaky.label, dict(flaky.query)) == ("flaky", {"mark": "flaky"})
    assert [(tile.figure, tile.label) for tile in view.others] == [("1", "failed as expected"), ("1", "skipped")]
    assert dict(view.facts)["Scored"] == "5 scores of 2 metrics in 3 tests"


def test_a_metric_in_a_line() -> None:
    """Number, mean and worst of the scores, failures and unscored; all thresholds that were used."""
    view = view_of(
        row("test_a", record(score=0.5, outcome="failed", at_least=0.8), outcome="failed"),
        row("test_b", record(score=1.0, at_least=0.7)),
        row("test_c", UNSCORED, outcome="failed"),
    )
    (line,) = view.metrics
    assert (line.tally.n, line.mean, line.worst, line.tally.failing, line.tally.unscored) == (2, "0.750", 0.5, 1, 1)
    assert [threshold.bound for threshold in line.thresholds] == [0.7, 0.8]
    assert (line.first_failing, line.first_unscored) == (f"{FILE}::test_a", f"{FILE}::test_c")
    (line,) = view_of(row("test_a", UNSCORED, outcome="failed")).metrics
    assert (line.mean, line.worst, line.distribution) == ("\u2013", None, None)
    low, high = record("h", 0.1, at_most=0.5), record("h", 0.9, at_most=0.5, outcome="failed")
    assert view_of(row("test_a", low), row("test_b", high)).metrics[0].worst == 0.9


def test_a_metric_leaves_out_what_had_nothing_to_check() -> None:
    """Of its drawing, mean and worst; the count stands beside them and leads to the first of these tests."""
    failed, fine = record(score=0.4, outcome="failed"), record(score=0.9)
    vacuous = [record(score=score, vacuous=True) for score in (1.0, 1.0, 0.0)]
    with_all, without = (
        view_of(row("test_a", failed), *more, row("test_b", fine))
        for more in ([row(f"test_v{number}", each) for number, each in enumerate(vacuous)], [])
    )
    (shown,), (plain,) = with_all.metrics, without.metrics
    assert (shown.distribution, shown.mean, shown.worst) == (plain.distribution, plain.mean, plain.worst)
    assert (shown.tally.n, shown.tally.vacuous, shown.tally.checked) == (2, 3, "2 of 5 had something to check")
    assert (plain.tally.checked, plain.first_vacuous) == ("", None)
    assert shown.first_vacuous == f"{FILE}::test_v2"  # the first in the list
    facts = dict(with_all.facts)
    assert (facts["Scored"], facts["Nothing to check"]) == ("2 scores of 1 metric in 2 tests", "3 scores")
    (silent,) = view_of(row("test_v", *vacuous)).metrics
    assert (silent.distribution, silent.mean, silent.worst, silent.tally.n) == (None, "–", None, 0)


def test_metrics_with_failures_come_first() -> None:
    """Then those with unscored tests, then by name."""
    others = record("c", None, outcome="unscored"), record("d", 0.1, outcome="failed")
    view = view_of(row("test_a", record("b"), record("a"), *others))
    assert [line.tally.metric for line in view.metrics] == ["d", "c", "a", "b"]


def test_the_text_of_a_distribution_says_what_it_shows() -> None:
    """Who cannot see it is told number, range, mean, thresholds and failures; a bin has both kinds of scores."""
    picture = build_distribution([(0.2, True), (0.9, False), (0.92, True), (0.7, False)], [0.8, 0.7])
    assert picture is not None
    assert picture.text == "4 scores between 0.20 and 0.92, mean 0.680, threshold 0.70 and 0.80, 2 fell short"
    assert {index: counts for index, counts in enumerate(picture.bins) if any(counts)} == {
        4: (1, 0), 14: (0, 1), 18: (1, 1),
    }  # fmt: skip


def test_a_score_on_an_edge_belongs_to_the_bin_above() -> None:
    """0.3 is right of a threshold of 0.3, although binary fractions are what they are."""
    picture = build_distribution([(step / 20, False) for step in range(20)], [0.3])
    assert picture is not None
    assert picture.bins == ((0, 1),) * 20


def test_a_run_warns_of_what_its_scores_are_worth() -> None:
    """Who reads "2 of 3 failed" has to know that a hundred did not run, or that no model judged."""
    assert "interrupted" in view_of(row("test_a", record()), exit_status=2).warnings[0]
    assert "local (heuristic)" in view_of(row("test_a", record(judge="local (heuristic)"))).warnings[0]
    assert view_of(row("test_a", record(judge="openai:some-model"))).warnings == ()


def test_the_facts_of_a_run() -> None:
    """When, at what cost, how it was set; the bill leads to the dearest and the slowest test."""
    cheap, dear = record(judge="openai:m", usage=usage(2, 0, 800, 0.01)), record(usage=usage(1, 3, 80, 0.02, 0.05))
    tests = row("test_a", cheap, duration=9), row("test_b", dear), row("test_gate", gate=gate())
    settings: dict[str, str | float | bool | None] = {"b": True, "a": None, "c": 0.5}
    view = build_report_view(document(*tests, settings=settings, notes=["stopped at the budget"]))
    facts = dict(view.facts)
    assert facts["Started"] == "2026-03-02 16:41:07 UTC"
    assert facts["Exit status"] == "1 (tests failed)"
    assert facts["Judge"] == "openai:m"
    assert facts["Judging"] == "3 calls, 990 tokens, $0.03; 3 saved by the cache, $0.05"
    assert [(tile.figure, tile.anchor) for tile in view.bill] == [
        (facts["Judging"], f"{FILE}::test_b"),
        ("48.3 s", f"{FILE}::test_a"),
    ]
    assert [test.anchor for test in view.gates] == [f"{FILE}::test_gate"]
    assert view.settings == (("a", "not set"), ("b", "yes"), ("c", "0.5"))
    assert view.notes == ("stopped at the budget",)
    assert [tile.kind for tile in view_of(row("test_a", record())).bill] == ["time"]


SHARE = gate("noise", 0.875, statistic="rate", min_score=0.2, bound=0.8, between=None, better="lower")
LOW = gate("noise", 0.1, bound=0.2, between=None, better="lower")
PART = replace(SHARE, n=2, unscored=1, total=9)
DROP = shapes.RegressionRecord(
    alpha=0.05, before=0.9, after=0.83, changed=9, p=0.02, adjusted_p=0.02, smallest=0.16, new=3
)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (gate(), "mean faithfulness 0.830, between 0.780 and 0.880 (95%), needs ≥ 0.80: 40 scores, 0 unscored"),
        (
            replace(gate(between=None), vacuous=358, total=398),
            "mean faithfulness 0.830, needs ≥ 0.80: 40 scores, 0 unscored, 40 of 398 had something to check",
        ),
        (
            replace(gate(between=None), counts_vacuous=True),
            "mean faithfulness 0.830, needs ≥ 0.80: 40 scores, 0 unscored, vacuous scores count",
        ),
        (gate(value=None, between=None, n=0, unscored=3), "mean faithfulness –, needs ≥ 0.80: 0 scores, 3 unscored"),
        (LOW, "mean noise 0.100, needs ≤ 0.20: 40 scores, 0 unscored"),
        (SHARE, "share ≤ 0.20 of noise 0.875, needs ≥ 0.80: 40 scores, 0 unscored"),
        (replace(SHARE, better="higher"), "share ≥ 0.20 of noise 0.875, needs ≥ 0.80: 40 scores, 0 unscored"),
        (
            replace(gate(value=-0.07, between=None), regression=DROP, total=45),
            ("change of faithfulness -0.070 (0.900 → 0.830), needs no proven drop against the baseline (alpha 0.05): "
            "40 pairs, 0 unscored; the scores dropped (p=0.020); 3 new"),
        ),
        (
            replace(gate(value=None, between=None, n=0, unscored=1), regression=shapes.RegressionRecord(alpha=0.01)),
            "change of faithfulness –, needs no proven drop against the baseline (alpha 0.01): 0 pairs, 1 unscored",
        ),
        (PART, "share ≤ 0.20 of noise 0.875, needs ≥ 0.80: 2 scores, 1 unscored, of 9 tests"),
    ],
    ids=[
        "mean", "vacuous", "all count", "nothing scored", "lower mean", "share of low scores", "share", "dropped",
        "not compared", "a part",
    ],
)  # fmt: skip
def test_a_gate_in_a_sentence(found: shapes.GateRecord, text: str) -> None:
    """Of a mean that should be low the bound turns around, a share still has to be high."""
    assert build_gate_view(found).text == text


def test_a_drop_is_drawn_below_zero() -> None:
    """The picture has the change and the bound, which is no change."""
    assert build_gate_view(replace(gate(value=-0.07, between=None), regression=DROP)).scale == Scale(low=-1, high=1)


def run(*scores: float | None, judge: str = "m") -> shapes.Document:
    """Return a run of one test per score."""
    return document(*(row(f"test_{index}", record("a", score, judge=judge)) for index, score in enumerate(scores)))


def changes(before: shapes.Document, after: shapes.Document) -> ChangesView:
    """Return the changes between two runs."""
    view = build_report_view(after, compare_documents(after, before)).changes
    assert view is not None
    return view


def test_what_is_worse_is_listed_first_and_what_is_better_last() -> None:
    """Each linked to its test; the worst and the best of many, and how many are between them."""
    view = changes(run(0.9, 0.5, 0.7, 0.7, None), run(0.4, 0.8, 0.7, None, 0.9))
    lines = [(anchor.removeprefix(f"{FILE}::test_"), change.kind) for anchor, change in view.lines]
    assert lines == [("3", "unscored"), ("0", "worse"), ("4", "scored again"), ("1", "better")]
    assert [view.counts[kind] for kind in ("unscored", "worse", "better", "same")] == [1, 1, 1, 1]
    view = changes(run(*[0.5] * 40), run(*[index / 100 for index in range(31, 71)]))
    assert [round(change.change or 0, 2) for _, change in view.lines] == [
        -0.19, -0.18, -0.17, -0.16, -0.15, -0.14, -0.13, -0.12, 0.2, 0.19, 0.18, 0.17,
    ]  # fmt: skip
    assert view.more == 27


def test_what_cannot_be_compared_is_named() -> None:
    """Scores that are gone, up to a hundred, and those of other judges."""
    view = changes(run(*[0.5] * 103), run(0.5))
    assert (view.gone[0].id, len(view.gone), view.gone_more) == (f"{FILE}::test_1", 100, 2)
    view = changes(run(0.5, judge="small"), run(0.9, judge="large"))
    assert (view.incomparable[0].judge, view.incomparable[0].redefined, view.lines) == ("large", False, ())


def test_a_metric_says_how_its_mean_changed() -> None:
    """Over the scores that both runs have; a change nobody would see is none."""
    after = run(0.4, 0.8)
    (line,) = build_report_view(after, compare_documents(after, run(0.9, 0.5))).metrics
    assert line.change is not None
    assert (line.change.text, line.change.kind) == ("0.100 worse over 2 scores", "worse")
    (line,) = build_report_view(after, compare_documents(after, run(0.4, 0.8001))).metrics
    assert line.change is None
