"""Two documents held against each other."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.runs.compare import Kind, RunComparison, compare_documents
from pytest_ragmetrics.runs.records import Document, Record
from pytest_ragmetrics.runs.wording.comparisons import change_line, change_lines, change_text, metric_change_lines
from tests.documents import document, record, row


def scored(score: float | None, metric: str = "faithfulness", *, sample: str | None = None, **more: Any) -> Record:
    outcome = "unscored" if score is None else "passed"
    return record(metric, score, outcome=outcome, sample={"id": sample} if sample else {}, **more)


def run(**tests: Record | list[Record]) -> Document:
    return document(*(row(name, *(it if isinstance(it, list) else [it])) for name, it in tests.items()))


def kinds(comparison: RunComparison) -> dict[str, Kind]:
    return {change.id.partition("::")[2]: change.kind for change in comparison.changes}


def test_every_score_is_better_worse_or_the_same() -> None:
    old = run(test_a=scored(0.5), test_b=scored(0.9), test_c=scored(0.7), test_d=scored(0.8))
    new = run(test_a=scored(0.9), test_b=scored(0.4), test_c=scored(0.7), test_d=scored(0.6))
    found = compare_documents(new, old)
    assert kinds(found) == {"test_b": "worse", "test_d": "worse", "test_c": "same", "test_a": "better"}
    assert [change.id.partition("::")[2] for change in found.changes] == ["test_b", "test_d", "test_a", "test_c"]
    assert [round(change.change or 0, 6) for change in found.changes] == [-0.5, -0.2, 0.4, 0.0]
    assert found.counts["worse"] == 2
    assert [change.id for change in found.of("better")] == ["tests/test_assistant.py::test_a"]
    # Where lower is better, less is.
    found = compare_documents(run(test_a=scored(0.1, at_most=0.5)), run(test_a=scored(0.4, at_most=0.5)))
    (change,) = found.changes
    assert (change.kind, change.better) == ("better", "lower")
    assert change.change == pytest.approx(0.3)
    assert found.metrics[0].change == pytest.approx(0.3)


def test_what_has_no_counterpart_or_no_score_is_told_apart() -> None:
    old = run(test_gone=scored(0.5), test_lost=scored(0.5), test_found=scored(None), test_never=scored(None))
    new = run(test_new=scored(0.5), test_lost=scored(None), test_found=scored(0.6), test_never=scored(None))
    found = compare_documents(new, old)
    expected = {"test_lost": "unscored", "test_never": "same", "test_found": "scored again", "test_new": "new"}
    assert kinds(found) == {**expected, "test_gone": "gone"}
    assert [change.change for change in found.changes] == [None] * 5
    assert (found.metrics[0].pairs, found.metrics[0].before) == (0, None)


SILENT = scored(1.0, vacuous=True)


@pytest.mark.parametrize(
    ("before", "after", "kind", "said", "line"),
    [
        (SILENT, scored(0.2), "nothing to check", "had nothing to check", "nothing to check -> 0.200"),
        (scored(0.2), SILENT, "nothing to check", "nothing to check now, was 0.20", "0.200 -> nothing to check"),
        (SILENT, SILENT, "same", "as in the baseline", "faithfulness nothing to check -> nothing to check"),
        (SILENT, scored(0.0, vacuous=True), "same", "as in the baseline", "nothing to check -> nothing to check"),
        (SILENT, scored(None), "unscored", "was nothing to check", "faithfulness nothing to check -> unscored"),
        (scored(None), SILENT, "scored again", "was unscored", "faithfulness unscored -> nothing to check"),
    ],
)
def test_nothing_to_check_is_no_score(before: Record, after: Record, kind: Kind, said: str, line: str) -> None:
    old, new = run(test_a=before, test_b=scored(0.4)), run(test_a=after, test_b=scored(0.5))
    found = compare_documents(new, old)
    (change,) = (each for each in found.changes if each.id.endswith("test_a"))
    assert (change.kind, change.change, change_text(change)) == (kind, None, said)
    assert line in change_line(change)
    assert found.counts["worse"] == 0
    assert metric_change_lines(found) == ["faithfulness: mean 0.400 -> 0.500 over 1"]
    counted = "1 better, 0 worse, 1 with nothing to check in one of the runs"
    assert (change_lines(found)[0] == f"against the baseline: {counted}") == (kind == "nothing to check")


def test_scores_of_different_judges_are_never_compared() -> None:
    old = run(test_a=scored(0.9, judge="openai:one"), test_b=scored(0.5, judge="openai:one"), test_c=scored(0.2))
    new = run(test_a=scored(0.1, judge="openai:two"), test_b=scored(0.6, judge="openai:one"), test_c=scored(0.2))
    found = compare_documents(new, old)
    assert kinds(found) == {"test_c": "same", "test_b": "better"}
    (foreign,) = found.incomparable
    assert (foreign.metric, foreign.pairs) == ("faithfulness", 1)
    assert found.metrics[0].pairs == 2
    line = "  not compared: 1 of faithfulness: judged by openai:two now, by openai:one in the baseline"
    assert line in change_lines(found)


@pytest.mark.parametrize(
    ("metric", "before", "after", "compared"),
    [
        # Contexts not contradicted, and later those that are.
        ("hallucination", {"better": "higher"}, {"better": "lower"}, False),
        ("hallucination", {"better": "lower"}, {"better": "lower"}, True),
        # The aspect, and later the rating.
        ("correctness", {"noun": "judgement"}, {"noun": "response"}, False),
        ("correctness", {"noun": "verdict"}, {"noun": "response"}, False),
        ("correctness", {"noun": "judgement"}, {"noun": "judgement"}, True),
        # A word of another release.
        ("faithfulness", {"noun": "statement"}, {"noun": "claim"}, True),
    ],
)
def test_another_metric_of_the_same_name_is_not_compared(
    metric: str, before: dict[str, Any], after: dict[str, Any], *, compared: bool
) -> None:
    old, new = (
        run(test_a=scored(score, metric, **more), test_b=scored(None, metric, **more))
        for score, more in ((0.9, before), (0.4, after))
    )
    found = compare_documents(new, old)
    assert ("test_a" in kinds(found)) is compared
    assert kinds(found)["test_b"] == "same"
    line = f"  not compared: 1 of {metric}: it is another metric in the baseline"
    assert (line in change_lines(found)) is not compared


def test_scores_are_paired_in_order_and_samples_by_their_ids() -> None:
    old = run(test_a=[scored(0.1), scored(0.2)])
    new = run(test_a=[scored(0.1), scored(0.3), scored(0.4)])
    found = compare_documents(new, old)
    assert [(c.number, c.kind) for c in found.changes] == [(1, "better"), (0, "same"), (2, "new")]
    old = run(test_all=[scored(0.1, sample="q1"), scored(0.2, sample="q2")])
    new = run(test_all=[scored(0.9, sample="q0"), scored(0.1, sample="q1"), scored(0.2, sample="q2")])
    changes = compare_documents(new, old).changes
    assert {it.new and it.new.name: it.kind for it in changes} == {"q0": "new", "q1": "same", "q2": "same"}
    one = run(test_all=scored(0.1, sample="q1"))
    (renamed,) = compare_documents(run(test_every=[scored(0.3, sample="q1")]), one).changes
    assert (renamed.kind, renamed.old and renamed.old.test) == ("better", "tests/test_assistant.py::test_all")
    moved = document(row("test_all", scored(0.1, sample="q1"), file="tests/test_moved.py"))
    assert [change.kind for change in compare_documents(moved, one).changes] == ["same"]
    # Two tests of one sample whose file moves are each paired with themselves.
    both = run(test_one=scored(0.1, sample="q1"), test_two=scored(0.9, sample="q1"))
    rows = [row(name, scored(s, sample="q1"), file="moved.py") for name, s in (("test_two", 0.9), ("test_one", 0.1))]
    assert [change.kind for change in compare_documents(document(*rows), both).changes] == ["same", "same"]
    # Samples of different ids are other things, though the test is the same; an id that is new changes nothing.
    for earlier, expected in ((scored(0.9, sample="q1"), ["new", "gone"]), (scored(0.9), ["worse"])):
        found = compare_documents(run(test_a=scored(0.1, sample="q2")), run(test_a=earlier))
        assert [change.kind for change in found.changes] == expected


def test_samples_are_found_again_by_their_questions() -> None:
    """Unless both have ids, or one of the runs has several different scores of the question."""

    def asked(name: str | None, *scores: float) -> list[Record]:
        sample = {"user_input": "How?", **({"id": name} if name else {})}
        return [record("faithfulness", score, outcome="passed", sample=sample) for score in scores]

    def found(new: list[Record], old: list[Record]) -> tuple[list[Kind], list[str]]:
        compared = compare_documents(run(test_new=new), run(test_old=old))
        return [change.kind for change in compared.changes], [it.why for it in compared.incomparable]

    assert found(asked("q1", 0.1), asked(None, 0.9)) == (["worse"], [])
    assert found(asked("q1", 0.1), asked("q2", 0.9)) == (["new", "gone"], [])
    several = ["a sample has several different scores in one run"]
    assert found(asked("q1", 0.1), asked(None, 0.9, 0.2)) == (["gone"], several)


def test_the_means_are_those_of_the_pairs() -> None:
    old = run(test_a=scored(0.5), test_b=scored(0.7), test_gone=scored(0.0))
    new = run(test_a=scored(0.6), test_b=scored(0.8), test_new=scored(0.0))
    (metric,) = compare_documents(new, old).metrics
    assert metric.pairs == 2
    assert [metric.before, metric.after, metric.change] == pytest.approx([0.6, 0.7, 0.1])
    assert metric_change_lines(compare_documents(new, old)) == ["faithfulness: mean 0.600 -> 0.700 over 2"]


def test_the_lines_name_the_worst_and_count_the_rest() -> None:
    old = run(**{f"test_{n}": scored(0.9) for n in range(5)}, test_ok=scored(0.2), test_lost=scored(1.0))
    new = run(**{f"test_{n}": scored(n / 10) for n in range(5)}, test_ok=scored(0.3), test_lost=scored(None))
    assert change_lines(compare_documents(new, old), shown=2) == [
        "against the baseline: 1 better, 5 worse, 1 no longer scored",
        "  unscored: tests/test_assistant.py::test_lost: faithfulness 1.000 -> unscored",
        "  worse: tests/test_assistant.py::test_0: faithfulness 0.900 -> 0.000 (-0.900)",
        "  ... and 4 more",
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["q1", "q2", None]), st.floats(0, 1)), max_size=12))
def test_a_run_against_itself_has_not_changed(found: list[tuple[str, str | None, float]]) -> None:
    tests: dict[str, list[Record]] = {}
    for name, sample, score in found:
        tests.setdefault(f"test_{name}", []).append(scored(score, sample=sample))
    this = run(**tests)
    assert all(change.kind == "same" for change in compare_documents(this, this).changes)
    assert len(compare_documents(this, this).changes) == len(found)
    half = run(**{name: records[: len(records) // 2] for name, records in tests.items()})
    there, back = compare_documents(this, half), compare_documents(half, this)
    assert there.counts["new"] == back.counts["gone"]
    assert there.counts["better"] == back.counts["worse"]


def test_the_order_of_the_tests_is_of_no_account() -> None:
    old = run(**{f"test_{n}": scored(0.5) for n in range(9)})
    new = run(**{f"test_{n}": scored(n / 10) for n in range(4, 13)})
    shuffled = replace(new, tests=tuple(random.Random(7).sample(new.tests, 9)))
    assert compare_documents(shuffled, old).changes == compare_documents(new, old).changes
