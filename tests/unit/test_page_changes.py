"""What changed since the baseline, on the first screen."""

from __future__ import annotations

from pytest_ragmetrics import records as shapes
from pytest_ragmetrics.comparison import compare_documents
from pytest_ragmetrics.report.page.changes import ChangesView, lay_out_changes
from pytest_ragmetrics.report.page.entries import list_entries
from pytest_ragmetrics.report.page.metric_lines import metric_lines
from tests.documents import FILE, document, record, row


def changes(before: shapes.Document, after: shapes.Document) -> ChangesView:
    """Return the changes between two runs."""
    comparison = compare_documents(after, before)
    return lay_out_changes(comparison, list_entries(after.tests, comparison.by_record()))


def run(*scores: float | None, judge: str = "m") -> shapes.Document:
    """Return a run of one test per score."""
    return document(*(row(f"test_{index}", record("a", score, judge=judge)) for index, score in enumerate(scores)))


def test_what_is_worse_is_told_first_and_what_is_better_last() -> None:
    """Each with both scores, linked to its test."""
    told = changes(run(0.9, 0.5, 0.7, 0.7), run(0.4, 0.8, 0.7, None))
    assert [(line.anchor, line.before, line.after, line.told) for line in told.lines] == [
        (f"{FILE}::test_3", "0.70", "unscored", "lost its score"),
        (f"{FILE}::test_0", "0.90", "0.40", "0.50 worse"),
        (f"{FILE}::test_1", "0.50", "0.80", "0.30 better"),
    ]
    assert [(count.number, count.label, count.mark) for count in told.counts] == [
        (1, "lost its score", "lost"),
        (1, "worse", "worse"),
        (1, "better", "better"),
        (1, "the same", "same"),
    ]


def test_many_changes_are_cut_in_the_middle() -> None:
    """The worst and the best stay, and the page says how many are left out."""
    told = changes(run(*[0.5] * 40), run(*[index / 100 for index in range(31, 71)]))
    assert (len(told.lines), told.more) == (12, 27)
    assert [line.told for line in (told.lines[0], told.lines[7], told.lines[8], told.lines[-1])] == [
        "0.19 worse",
        "0.12 worse",
        "0.20 better",
        "0.17 better",
    ]


def test_what_is_gone_is_named() -> None:
    """It has no test to lead to."""
    told = changes(run(*[0.5] * 103), run(0.5))
    assert told.gone[0] == (f"{FILE}::test_1", "a")
    assert (len(told.gone), told.gone_more) == (100, 2)


def test_scores_of_other_judges_are_not_compared() -> None:
    """And the page says so."""
    told = changes(run(0.5, judge="small"), run(0.9, judge="large"))
    assert told.not_compared == ("1 score of a not compared: judged by large now, by small in the baseline",)
    assert told.lines == ()


def test_a_score_that_came_back_is_told() -> None:
    """From unscored to a score."""
    (line,) = changes(run(None), run(0.9)).lines
    assert (line.before, line.after, line.told, line.kind) == ("unscored", "0.90", "scored again", "scored-again")


def test_a_metric_says_how_its_mean_changed() -> None:
    """Over the scores that both runs have; a change nobody would see is none."""
    after = run(0.4, 0.8)
    records = [scored for test in after.tests for scored in test.records]
    entries = list_entries(after.tests)
    (line,) = metric_lines(records, entries, compare_documents(after, run(0.9, 0.5)))
    assert line.change == ("0.100 worse over 2 scores", "worse")
    (line,) = metric_lines(records, entries, compare_documents(after, run(0.4, 0.8001)))
    assert line.change is None
