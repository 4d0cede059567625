"""Answers to the same rows in two or three columns, and which is better."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import Evaluation, MetricResult, Sample, assert_no_regression
from pytest_ragmetrics.core.codec import dump, load
from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.evaluation.table import Row
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.report.columns import (
    ColumnsError,
    ComparedColumns,
    column_lines,
    compare_runs,
    compare_values,
    coverage_text,
    has_worse,
    headlines,
    pair_text,
    winners_text,
)
from pytest_ragmetrics.report.page import render_columns
from pytest_ragmetrics.runs.records import Document, Judging, Record, record_of, render_json
from pytest_ragmetrics.runs.wording.figures import format_interval
from tests.documents import HOSTILE, document, gate_of, record, row
from tests.tables import evaluate_gate
from tests.unit.conftest import Call

Scores = Mapping[str, float | None]


def answered(key: str, score: float | None, metric: str = "faithfulness", **fields: Any) -> Record:
    """Return the record of an answer to a question; ``fields`` are those of the record."""
    sample = {"id": key, "user_input": f"What is {key}?", "response": f"{key} is {score}."} | fields.pop("sample", {})
    return record(metric, score, sample=sample, outcome="unscored" if score is None else "passed", **fields)


def run(*records: Record) -> Document:
    """Return a run of one test a record; the ids of tests say nothing about their samples."""
    return document(*(row(f"test_it[{number}-{id(records)}]", it) for number, it in enumerate(records)))


def compared(*columns: Scores, metric: str = "faithfulness", **fields: Any) -> ComparedColumns:
    runs = [
        (name, run(*(answered(key, score, metric, **fields) for key, score in scores.items())))
        for name, scores in zip("abc", columns, strict=False)
    ]
    return compare_runs(runs)


@pytest.mark.parametrize(
    ("scores", "winner", "best"),
    [
        ([0.5, 1.0], 1, (1,)),
        ([1.0, 0.5], 0, (0,)),
        ([0.5, 0.5], "tie", ()),
        ([0.1 + 0.2, 0.3], "tie", ()),
        ([0.5, None], "none", ()),
        ([None, None], "none", ()),
        ([0.5, 0.9, 0.7], 1, (1,)),
        ([0.9, 0.9, 0.7], "tie", (0, 1)),
        ([0.9, None, 0.7], 0, (0,)),
        ([0.9, 0.9, 0.9], "tie", ()),
    ],
)
def test_a_row_is_won_by_the_best_score(scores: list[float | None], winner: object, best: tuple[int, ...]) -> None:
    (found,) = compared(*({"q": score} for score in scores)).rows
    assert (found.winner, found.scores[0].best) == (winner, best)
    assert found.answers == tuple(f"q is {score}." for score in scores)


def test_where_lower_is_better_the_lowest_wins() -> None:
    made = compared({f"q{n}": 0.1 for n in range(8)}, {f"q{n}": 0.9 for n in range(8)}, metric="toxicity", at_most=0.5)
    (pair,) = made.metrics[0].pairs
    assert pair.difference.interval.estimate == pytest.approx(0.8)
    assert ({found.winner for found in made.rows}, pair.winner, pair.kinds) == ({0}, 0, {"worse": 8})
    assert headlines(made) == ["a is better than b in toxicity"]
    assert "95 % interval +0.14 to +0.87" in render_columns(made)


def test_seconds_tie_within_a_tenth_and_equal_ones_have_no_interval() -> None:
    fields: dict[str, Any] = {"metric": "latency", "unit": "s", "better": "lower", "at_least": None}
    near = compared({"q1": 1.4, "q2": 2.0}, {"q1": 1.45, "q2": 2.0}, **fields)
    (metric,) = near.metrics
    assert [it.winner for it in near.rows] == ["tie", "tie"]
    assert pair_text(metric.pairs[0], near.names, "s").endswith("2 tied); no difference is shown (p=1.000)")
    equal = render_columns(compared({"q1": 1.4, "q2": 2.0}, {"q1": 1.4, "q2": 2.0}, **fields))
    assert "no interval: the scores do not vary" in equal
    assert "the same in every row" in equal
    assert "inf" not in equal.partition("<tbody>")[2].partition("</tbody>")[0]
    assert [it.winner for it in compared({"q1": 1.4}, {"q1": 1.6}, **fields).rows] == [0]


def test_several_metrics_make_one_winner_or_none() -> None:
    """A row is won by who wins some metric while nobody else does; else it is mixed."""
    scores = {"faithfulness": ((1.0, 1.0, 1.0, 0.5), (0.5, 0.5, 0.5, 0.5))}
    scores["correctness"] = ((1.0, 0.5, 0.5, 1.0), (0.5, 0.5, 1.0, 1.0))
    runs: list[list[Record]] = [[], []]
    for metric, columns in scores.items():
        for records, column in zip(runs, columns, strict=True):
            records += [answered(f"q{number}", score, metric) for number, score in enumerate(column)]
    made = compare_runs([("a", run(*runs[0])), ("b", run(*runs[1]))])
    assert {found.key: found.winner for found in made.rows} == {"q0": 0, "q1": 0, "q2": "mixed", "q3": "tie"}
    assert winners_text(made) == "a 2, b 0, tie 1, mixed 1"
    correctness = Counter(score.winner for row in made.rows for score in row.scores if score.metric == "correctness")
    assert correctness == {0: 1, 1: 1, "tie": 2}


def test_a_difference_is_named_where_the_rows_show_it() -> None:
    """Few rows show none; p-values are adjusted for all pairs of columns and metrics."""
    many = {f"q{n}": 1.0 for n in range(20)}
    fewer, same = dict.fromkeys(many, 0.5), dict(many)
    made = compared(many, fewer, same)
    assert headlines(made) == [
        "a is better than b in faithfulness",
        "No difference is shown between a and c",
        "c is better than b in faithfulness",
    ]
    assert [pair.p for pair in made.metrics[0].pairs] == pytest.approx([3 * 2 / 10_000 / 2, 1.0, 3 / 10_000], rel=1)
    # 0.5 ** 5 for six rows that all fell: alone they show it, as one of three pairs they do not.
    six = {f"q{n}": 1.0 for n in range(6)}
    half = dict.fromkeys(six, 0.5)
    assert headlines(compared(six, half)) == ["a is better than b in faithfulness"]
    assert all(line.startswith("No difference is shown") for line in headlines(compared(six, half, six)))


def test_the_comparison_is_told_in_lines() -> None:
    made = compared(
        {"s": 0.5, "r": 1.0, "q": 0.5, "only": 1.0}, {"q": 1.0, "r": 1.0, "s": None}, {"q": 0.8, "r": 1.0, "s": 0.6}
    )
    nothing = "no difference is shown (p=1.000)"
    assert column_lines(made) == [
        "3 rows in all of a, b, c; without a counterpart: 1 of a",
        "winner by row: a 0, b 1, c 1, tie 1",
        "faithfulness: a 0.750, b 1.000, c 0.900 over 2",
        f"  b against a: +0.250 (95 % interval -0.81..+0.89; 2 rows: 1 better, 0 worse, 1 tied); {nothing}",
        f"  c against a: +0.133 (95 % interval -0.67..+0.75; 3 rows: 2 better, 0 worse, 1 tied); {nothing}",
        f"  c against b: -0.100 (95 % interval -0.86..+0.83; 2 rows: 0 better, 1 worse, 1 tied); {nothing}",
        "rows that differ most, of 2:",
        "  q: faithfulness 0.50, 1.00, 0.80: b wins",
        "  s: faithfulness 0.50, unscored, 0.60: c wins",
    ]
    assert column_lines(compared({"q": 0.5}, {"q": 0.5}))[-1].endswith("the same in every row")


def test_judges_that_differ_give_no_comparison() -> None:
    one = ("a", run(answered("q", 0.5, judge="one")))
    made = compare_runs([one, ("b", run(answered("q", 0.5, judge="two")))])
    assert column_lines(made)[2:] == ["faithfulness: not compared: scored by one and two: score all with one judge"]
    more = run(*(answered("q", 0.5, metric, judge="one") for metric in ("correctness", "faithfulness")))
    assert [metric.why for metric in compare_runs([one, ("b", more)]).metrics] == ["not scored in a", ""]
    with pytest.raises(ColumnsError, match="a and b have no metric in common"):
        compare_runs([one, ("b", run(answered("q", 0.5, "correctness")))])
    turned = compare_runs([one, ("b", run(answered("q", 0.5, judge="one", at_most=0.5)))])
    assert turned.metrics[0].why.startswith("another metric")


def test_scores_that_cannot_be_compared_are_left_out() -> None:
    runs = []
    for name, judges in (("a", "111-"), ("b", "1211"), ("c", "1112")):
        scores = [None if judge == "-" else 0.5 + n / 10 for n, judge in enumerate(judges)]
        runs.append((name, run(*(answered(f"q{n}", scores[n], judge=judge) for n, judge in enumerate(judges)))))
    made = compare_runs(runs)
    shown = {row.key: row.scores[0].texts for row in made.rows}
    assert (shown["q0"], shown["q2"]) == (["0.50"] * 3, ["0.70"] * 3)
    assert (shown["q1"], shown["q3"]) == (["0.60", "not compared", "0.60"], ["unscored", "0.80", "not compared"])
    said = "not compared: 2 scores: scored by 1 and 2: score all with one judge"
    assert f"  {said}" in column_lines(made)
    assert said in render_columns(made)
    judged = [Judging(judge="1", prompts={"verify": digest}, definition={}) for digest in ("a1", "b2")]
    again = [replace(runs[n][1], run=replace(runs[n][1].run, judging={"faithfulness": judged[n]})) for n in (0, 1)]
    assert compare_runs([*zip("ab", again, strict=True)]).metrics[0].why.startswith("the prompt of verify changed")


def test_rows_are_the_pairs_of_two_runs() -> None:
    """Samples are found again by their ids, without an id by what was asked; another question is another row."""
    first, second = answered("q", 0.5), answered("r", 0.5)
    asked = [answered(f"new-{key}", 0.9, sample={"user_input": f"What is {key}?"}) for key in "qr"]
    nameless = [replace(it, sample=replace(it.sample, id=None)) for it in asked]
    made = compare_runs([("a", run(first)), ("b", run(*nameless))])
    assert [found.key for found in made.rows] == ["q"]
    assert coverage_text(made) == "1 row in a and b; without a counterpart: 1 of b"
    other = answered("q", 0.5, sample={"user_input": "Why?"})
    made = compare_runs([("a", run(first, second)), ("b", run(other, second))])
    assert [found.key for found in made.rows] == ["r"]
    for records in (asked, [second]):
        with pytest.raises(ColumnsError, match="a and b have no row in common: give the samples ids"):
            compare_runs([("a", run(first)), ("b", run(*records))])


def shown(before: Document, after: Document) -> dict[str, list[str]]:
    """Return what is shown of the first row by metric."""
    return {it.metric: it.texts for it in compare_runs([("a", before), ("b", after)]).rows[0].scores}


def test_a_sample_of_several_tests_is_compared_by_test() -> None:
    """Of a sample that two tests score the pair is taken that both runs have, and shown beside it what one lacks."""
    one, two = answered("q", 0.2), answered("q", 0.9, sample={"response": "Another answer."})
    old = document(row("test_one[q]", one, answered("q", 1.0, "mrr")), row("test_two[q]", two))
    assert shown(old, document(row("test_two[q]", two))) == {"faithfulness": ["0.90", "0.90"]}
    # What two tests scored is no pair, nor is the answer to another question.
    asks = answered("q", 0.3, "mrr", sample={"user_input": "Why?"})
    before = document(row("test_one[q]", answered("q", 1.0, "mrr")), row("test_two[q]", two))
    after = document(row("test_two[q]", two), row("test_one[q]", asks))
    assert shown(before, after) == {"faithfulness": ["0.90", "0.90"], "mrr": ["1.00", "not compared"]}
    with_both = document(row("test_two[q]", two, answered("q", None, "mrr")))
    assert shown(old, with_both) == {"faithfulness": ["0.90", "0.90"], "mrr": ["1.00", "unscored"]}


def by_model(*rows: tuple[str, str, float]) -> Document:
    made = []
    for number, (model, asked, score) in enumerate(rows):
        sample = {"user_input": asked, "metadata": {"model": model, "size": 7}}
        made.append(answered(f"{model}-{number}", score, sample=sample))
    return run(*made)


def test_values_of_metadata_are_columns_of_one_run() -> None:
    made = by_model(("x", "Why?", 0.5), ("y", "Why?", 0.9), ("y", "Why?", 0.7), ("x", "Why?", 0.6), ("y", "How?", 1.0))
    found = compare_values(made, "model")
    assert found.names == ("x", "y")
    assert {each.key: each.scores[0].scores for each in found.rows} == {"Why?": (0.5, 0.9), "Why? (2)": (0.6, 0.7)}
    assert compare_values(made, "model", ["y", "x"]).names == ("y", "x")


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        ("color", [], "no sample has the metadata 'color'; there are model, size"),
        ("model", ["x", "z"], "no sample has model 'z'; there are v, w, x, y"),
        ("model", [], "model has 4 values: choose two or three of v, w, x, y"),
        ("size", [], "size has 1 value: choose two or three of 7"),
        ("model", ["v", "w"], "v and w have no question in common"),
    ],
)
def test_values_that_cannot_be_compared_are_refused(key: str, values: list[str], said: str) -> None:
    made = by_model(("x", "Why?", 0.5), ("y", "Why?", 0.9), ("v", "When?", 1.0), ("w", "Where?", 1.0))
    with pytest.raises(ColumnsError) as caught:
        compare_values(made, key, values)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("scores", "margin", "worse"),
    [
        ([{"q": 0.9}, {"q": 0.9}, {"q": 0.9}], 0.0, False),
        ([{"q": 0.9}, {"q": 1.0}, {"q": 0.9}], 0.0, False),
        ([{"q": 0.9}, {"q": 1.0}, {"q": 0.8}], 0.0, True),
        ([{"q": 0.9}, {"q": 1.0}, {"q": 0.8}], 0.2, False),
        ([{"q": 0.9}, {"q": 0.9}, {"q": None}], 0.2, True),
        ([{"q": None}, {"q": 0.1}, {"q": None}], 0.0, False),
    ],
)
def test_a_loss_against_the_first_column_counts(scores: list[Scores], margin: float, worse: bool) -> None:
    """A lost score is a loss of any size."""
    assert has_worse(compared(*scores), margin) == worse
    turned = [{key: None if score is None else 1 - score for key, score in column.items()} for column in scores]
    assert has_worse(compared(*turned, at_most=0.5), margin) == worse


Lines = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> Lines:
    """Call the command in a folder with three runs; return its status and what it wrote."""
    monkeypatch.chdir(tmp_path)
    for name, score in (("a", 0.5), ("b", 0.9), ("c", 0.7)):
        made = run(*(answered(f"q{n}", score, sample={"metadata": {"model": "xy"[n % 2]}}) for n in range(3)))
        Path(f"{name}.json").write_text(render_json(made), "utf-8")

    def run_command(*args: str) -> tuple[int, list[str], str]:
        status, out, err = ragmetrics("report", "diff", *args)
        return status, out.splitlines(), err

    return run_command


def test_the_command_compares_two_or_three_files(call: Lines) -> None:
    assert call("a.json", "b.json")[1][0].startswith("against the baseline: ")
    status, lines, _ = call("a.json", "b.json", "--html", "page.html")
    assert (status, lines[-1]) == (0, "page.html: written, 3 rows")
    assert "q1 is 0.9." in Path("page.html").read_text("utf-8")
    status, lines, _ = call("a.json", "b.json", "c.json", "--fail-on-worse")
    assert (status, lines[0]) == (0, "3 rows in all of a, b, c")
    worse = ["b.json", "a.json", "c.json", "--fail-on-worse"]
    assert (call(*worse)[0], call(*worse, "--margin=0.4")[0]) == (1, 0)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["a.json"], "give two or three files, or one with --by KEY"),
        (["a.json", "b.json", "c.json", "a.json"], "give two or three files"),
        (["a.json", "b.json", "--value=x"], "give two or three files, or one with --by KEY"),
        (["a.json", "b.json", "--by=model"], "--by=model compares values of one run: give one file"),
        (["a.json", "b.json", "c.json", "--margin=5"], "--margin=5 is outside of the scale of faithfulness"),
    ],
)
def test_wrong_arguments_are_refused(call: Lines, args: list[str], said: str) -> None:
    status, _, err = call(*args)
    assert (status, said in err) == (2, True), err


def test_the_command_compares_values_of_one_file(call: Lines, tmp_path: Path) -> None:
    assert call("a.json", "--by", "colour")[::2] == (
        1,
        "ragmetrics: no sample has the metadata 'colour'; there are model\n",
    )
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/a.json").write_text(render_json(by_model(("x", "Why?", 0.5), ("y", "Why?", 0.9))), "utf-8")
    status, lines, _ = call("deep/a.json", "--by=model", "--value=y", "--value=x", "--html=p.html")
    assert (status, lines[1], lines[-1]) == (0, "winner by row: y 1, x 0", "p.html: written, 1 row")
    assert call("a.json", "b.json", "a.json")[1][0] == "3 rows in all of a.json, b, a.json"


def test_a_page_of_columns_is_text_only() -> None:
    records = [answered(text, 0.5, sample={"user_input": text, "response": text, "id": text}) for text in HOSTILE]
    page = render_columns(compare_runs([(HOSTILE[0], run(*records)), (HOSTILE[2], run(*records))]))
    assert (page.count("<script"), page.count("<img")) == (1, 0)
    assert "script-src &#39;sha256-" in page
    assert "require-trusted-types-for" in page


@pytest.mark.parametrize("scale", [(0.0, 1.0), (-1.0, 1.0), (1.0, 5.0), (0, 100), (0.0, math.inf), (0.7, 0.7), None])
@pytest.mark.parametrize(("better", "clusters"), [("higher", ""), ("lower", "aabbccddee")])
def test_every_comparer_has_one_interval(scale: Any, better: Direction, clusters: str, tmp_path: Path) -> None:
    """Of an own metric: tables, gates, files and columns take the scale that is recorded with the score."""
    low, high = scale if scale and scale in {(-1.0, 1.0), (1.0, 5.0), (0, 100)} else (0.0, 1.0)
    shares = [[0.5, 0.7, 0.2, 0.9, 0.4, 0.6, 0.8, 0.3, 0.5, 0.1], [0.3, 0.7, 0.1, 0.5, 0.5, 0.2, 0.6, 0.3, 0.4, 0.0]]
    tables, runs = [], []
    for column in shares:
        rows, tests = [], []
        for number, share in enumerate(column):
            metadata = {"cluster": clusters[number]} if clusters else {}
            sample = Sample(id=f"q{number}", response="So.", metadata=metadata)
            result = MetricResult(low + share * (high - low), metric="own", scale=scale)
            rows.append(Row(sample=sample, results={"own": result}))
            scored = record_of(Scoring(metric="own", sample=sample, outcome=result, better=better))
            tests.append(row(f"test_own[{number}]", scored, file="t.py"))
        scales = {} if scale is None else {"own": scale}
        tables.append(Evaluation(metrics=("own",), rows=tuple(rows), better={"own": better}, scales=scales))
        runs.append(load(Document, dump(document(*tests))))
    before, after = runs
    (tmp_path / "main.json").write_text(render_json(before), "utf-8")
    by_id, gate = {test.id: test for test in after.tests}, gate_of("own", regression=True)
    decided = evaluate_gate(gate, by_id, before, function="t.py::test_own", verbose=True)
    found = tables[1].compare(tables[0])["own"].difference
    assert found is not None
    (pair,) = compare_runs([("a", before), ("b", after)]).metrics[0].pairs
    from_file = assert_no_regression(tables[1], tmp_path / "main.json", alpha=1e-9)["own"].difference
    assert found == pair.difference == from_file
    assert format_interval(found.interval, sign="+") in decided.text
