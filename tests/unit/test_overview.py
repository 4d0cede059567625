"""The first screen: one sentence, tiles, a line per metric."""

from __future__ import annotations

from pytest_ragmetrics import records as shapes
from pytest_ragmetrics.report.page.entries import list_entries
from pytest_ragmetrics.report.page.overview import Overview, build_overview
from tests.documents import FILE, document, gate, record, row, usage


def overview(*tests: shapes.TestRecord, exit_status: int = 1) -> Overview:
    """Return the overview of a run of these tests."""
    run = document(*tests, exit_status=exit_status)
    return build_overview(run, list_entries(run.tests))


FAILED = record(score=0.4, outcome="failed")
UNSCORED = record(score=None, outcome="unscored")


def test_tiles_count_tests_and_name_the_metrics_to_blame() -> None:
    """The reader sees how many and because of what; a tile of nothing leads nowhere."""
    view = overview(
        row("test_a", FAILED), row("test_b", FAILED, record("recall", 0.1, outcome="failed"), outcome="failed")
    )
    failed, unscored, passed = view.tiles
    assert (failed.figure, failed.label, failed.notes) == ("1", "failed", ("1 quoted_spans_alignment", "1 recall"))
    assert failed.anchor == f"{FILE}::test_b"
    assert (unscored.figure, unscored.anchor) == ("0", None)
    assert passed.figure == "1"
    assert dict(view.facts)["Scored"] == "3 scores of 2 metrics in 2 tests"


def test_rare_outcomes_stand_below_the_tiles() -> None:
    """Expected failures and skips are mentioned when there are any."""
    view = overview(row("test_a", FAILED, outcome="xfailed"), row("test_b", outcome="skipped"))
    assert [(tile.figure, tile.label) for tile in view.others] == [("1", "failed as expected"), ("1", "skipped")]
    assert overview(row("test_c", record())).others == ()


def test_a_metric_in_a_line() -> None:
    """Number of scorings, mean and minimum of the scores, failures and unscored; all thresholds that were used."""
    view = overview(
        row("test_a", record(score=0.5, outcome="failed", at_least=0.8), outcome="failed"),
        row("test_b", record(score=1.0, at_least=0.7)),
        row("test_c", UNSCORED, outcome="failed"),
    )
    (line,) = view.metrics
    assert (line.number, line.mean, line.worst, line.failing, line.unscored) == (3, "0.750", "0.50", 1, 1)
    assert line.needs == ("≥ 0.70", "≥ 0.80")
    assert line.first_failing == f"{FILE}::test_a"
    assert line.first_unscored == f"{FILE}::test_c"
    assert line.distribution is not None


def test_a_metric_without_scores_has_no_mean() -> None:
    """Unscored is neither zero nor one."""
    (line,) = overview(row("test_a", UNSCORED, outcome="failed")).metrics
    assert (line.mean, line.worst, line.distribution) == ("\u2013", "\u2013", None)


def test_metrics_with_failures_come_first() -> None:
    """Then those with unscored tests, then by name."""
    view = overview(
        row(
            "test_a",
            record("b"),
            record("a"),
            record("c", None, outcome="unscored"),
            record("d", 0.1, outcome="failed"),
        )
    )
    assert [line.name for line in view.metrics] == ["d", "c", "a", "b"]


def test_a_run_that_was_cut_short_says_so() -> None:
    """Who reads "2 of 3 failed" has to know that a hundred did not run."""
    assert "interrupted" in overview(row("test_a", record()), exit_status=2).warnings[0]
    assert overview(row("test_a", record()), exit_status=1).warnings == ()


def test_a_heuristic_judge_is_named() -> None:
    """Scores of the local judge are never taken for those of a model."""
    assert "local (heuristic)" in overview(row("test_a", record(judge="local (heuristic)"))).warnings[0]
    assert overview(row("test_a", record(judge="openai:some-model"))).warnings == ()


def test_the_facts_of_a_run() -> None:
    """When, how long, with what, at what cost; the costs of all scorings together."""
    view = overview(
        row("test_a", record(judge="openai:m", usage=usage(2, 0, 800, 0.01)), record(usage=usage(1, 3, 80, 0.02, 0.05)))
    )
    facts = dict(view.facts)
    assert facts["Started"] == "2026-03-02 16:41:07 UTC"
    assert facts["Exit status"] == "1 (tests failed)"
    assert facts["Judge"] == "openai:m"
    assert facts["Judging"] == "3 calls, 990 tokens, $0.03; 3 saved by the cache, $0.05"


def test_flaky_and_suspicious_tests_have_tiles() -> None:
    """Only where there are any, and they show these tests."""
    view = overview(row("test_a", record(votes=[0.5, 0.95])), row("test_b", record()))
    (flaky,) = view.tiles[3:]
    assert (flaky.figure, flaky.label, dict(flaky.query), flaky.anchor) == (
        "1",
        "flaky",
        {"mark": "flaky"},
        f"{FILE}::test_a",
    )


def test_the_bill_leads_to_the_dearest_and_the_slowest() -> None:
    """What a run took is nothing to look at without what took it."""
    cheap, dear = (record(usage=usage(1, 0, 80, cost)) for cost in (0.01, 0.02))
    cost, time = overview(row("test_a", cheap, duration=9), row("test_b", dear)).bill
    assert (cost.figure, cost.anchor) == ("2 calls, 180 tokens, $0.03", f"{FILE}::test_b")
    assert (time.figure, time.anchor) == ("48.3 s", f"{FILE}::test_a")
    assert [tile.kind for tile in overview(row("test_a", record())).bill] == ["time"]


def test_the_worst_score_of_a_metric_is_the_highest_where_lower_is_better() -> None:
    """0.9 is the one to look at among shares of hallucination."""
    low, high = record("h", 0.1, at_most=0.5), record("h", 0.9, at_most=0.5, outcome="failed")
    assert overview(row("test_a", low), row("test_b", high)).metrics[0].worst == "0.90"


def test_gates_notes_and_settings_stand_on_the_page() -> None:
    """Settings by name; one that is not set says so."""
    run = document(
        row("test_gate", gate=gate()), settings={"b": True, "a": None, "c": 0.5}, notes=["stopped at the budget"]
    )
    view = build_overview(run, list_entries(run.tests))
    assert [(anchor, told.value) for anchor, told in view.gates] == [(f"{FILE}::test_gate", "0.830")]
    assert view.settings == (("a", "not set"), ("b", "yes"), ("c", "0.5"))
    assert view.notes == ("stopped at the budget",)
