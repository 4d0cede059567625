"""Vacuous scores (there was nothing to check) are in no figure over a set, and are counted beside it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import aevaluate, assert_mean, assert_no_regression, assert_not_worse, assert_pass_rate, evaluate
from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.assert_sets import read_baseline
from pytest_ragmetrics.evaluation.table import Evaluation, Row, compared_records
from pytest_ragmetrics.plugin.gates.decide import GateDecision
from pytest_ragmetrics.plugin.gates.gate import MarkedGate
from pytest_ragmetrics.plugin.gates.merged import merged_gates
from pytest_ragmetrics.plugin.recorder import junit_properties
from pytest_ragmetrics.plugin.rows.dataset_tests import Evaluate
from pytest_ragmetrics.report.markdown import render_markdown
from pytest_ragmetrics.runs.records import Record, render_json
from pytest_ragmetrics.runs.tables import EarlierRun, compare_tables
from pytest_ragmetrics.runs.wording.runs import checked_lines, gate_line, tallies
from pytest_ragmetrics.stats.scores import ScoredRow, common_scale, score_set
from tests.documents import document, gate_of, record, row
from tests.tables import evaluate_gate, gated_set

#: A score and whether it is vacuous.
Scores = Sequence[tuple[float | None, bool]]

CHECKED = [(0.2, False), (0.4, False), (0.9, False), (0.3, False)]
VACUOUS = [(1.0, True), (1.0, True), (0.0, True)]
SETS: list[Scores] = [
    [*VACUOUS, *CHECKED],
    [*CHECKED, *VACUOUS],
    [CHECKED[0], *VACUOUS, *CHECKED[1:]],
    [(1.0, False), (0.0, False), (1.0, True)],
    [(0.5, False), *[(1.0, True)] * 100],
]
METRIC = "points"


def result(score: float, *, vacuous: bool = False) -> MetricResult:
    return MetricResult(score, metric=METRIC, vacuous=vacuous, reason=f"reason of {score}")


def table(scores: Scores, **fields: Any) -> Evaluation:
    """Return a table of these scores; three rows each share a cluster."""
    rows = []
    for number, (score, vacuous) in enumerate(scores):
        sample = Sample(id=f"q{number}", metadata={"cluster": number // 3, "label": number % 2})
        results = {} if score is None else {METRIC: result(score, vacuous=vacuous)}
        rows.append(Row(sample=sample, results=results, unscored={METRIC: "no reply"} if score is None else {}))
    return Evaluation(metrics=(METRIC,), rows=tuple(rows), **fields)


def records(scores: Scores) -> list[Record]:
    samples = [{"id": f"q{number}", "metadata": {"cluster": number // 3}} for number in range(len(scores))]
    return [
        record(METRIC, score, outcome="unscored" if score is None else "measured", vacuous=vacuous, sample=sample)
        for (score, vacuous), sample in zip(scores, samples, strict=True)
    ]


def decided(gate: MarkedGate, scores: Scores, *, kept: Sequence[Record] | None = None) -> GateDecision:
    """Return the decision of a gate over tests with these scores, or with the records that were kept of them."""
    rows = records(scores) if kept is None else kept
    return evaluate_gate(gate, {f"t[{number}]": row(str(number), each) for number, each in enumerate(rows)})


def kept(scores: Scores) -> Evaluation:
    whole = table(scores)
    rows = [each for each, (_, vacuous) in zip(whole.rows, scores, strict=True) if not vacuous]
    return replace(whole, rows=tuple(rows))


def plain(found: Any) -> Any:
    return replace(found, vacuous=0)


def results_of(whole: Evaluation) -> list[MetricResult]:
    return [each.results[METRIC] for each in whole.rows]


FIGURES: dict[str, Callable[[Evaluation], Any]] = {
    "mean": lambda t: t.mean(METRIC),
    "stats": lambda t: replace(t.stats()[METRIC], n=0, vacuous=0),
    "overall": lambda t: t.overall(),
    "corrected": lambda t: t.corrected_mean(METRIC, tpr=0.9, tnr=0.8, threshold=0.35),
    "assert_mean": lambda t: plain(assert_mean(t, min=0.0)),
    "assert_mean confident": lambda t: plain(assert_mean(t, max=1.0, confidence=0.9)),
    "assert_mean of rows": lambda t: plain(assert_mean(t.rows, min=0.0, vacuous=t.vacuous)),
    "assert_mean of results": lambda t: plain(assert_mean(results_of(t), min=0.0, vacuous=t.vacuous)),
    "assert_pass_rate": lambda t: plain(assert_pass_rate(t, 0.35, 0.0, confidence=0.9)),
    "compare": lambda t: t.compare(replace(t, rows=t.rows[::-1]))[METRIC].difference,
    "data frame": lambda t: t.to_pandas()[METRIC].mean(),
    "worst on average": lambda t: t.worst(1)[0],
    "csv": lambda t: [line[3] for line in csv.reader(io.StringIO(t.to_csv())) if line[3] != "nothing to check"],
}


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_a_figure_is_that_of_the_other_rows(figure: Callable[[Evaluation], Any]) -> None:
    for scores in SETS:
        assert figure(table(scores)) == figure(kept(scores)), scores
        counting = table(scores, vacuous="count")
        assert figure(counting) == figure(table([(score, False) for score, _ in scores])), scores


@pytest.mark.parametrize("scores", SETS)
@pytest.mark.parametrize(
    "bounds", [{"mean": 0.3}, {"mean": 0.3, "confidence": 0.9}, {"rate": 0.5, "min": 0.3, "confidence": 0.8}]
)
def test_a_gate_is_decided_by_the_other_rows(bounds: dict[str, float], scores: Scores) -> None:
    found = decided(gate_of(METRIC, **bounds), scores).record
    rows = [each for each in records(scores) if not each.vacuous]
    without = decided(gate_of(METRIC, **bounds), scores, kept=rows).record
    left_out = sum(vacuous for _, vacuous in scores)
    assert replace(found, vacuous=0, total=len(rows)) == without
    assert (found.n, found.vacuous, found.total) == (len(rows), left_out, len(scores))
    counting = decided(gate_of(METRIC, vacuous="count", **bounds), scores).record
    checked = decided(gate_of(METRIC, **bounds), [(score, False) for score, _ in scores]).record
    assert replace(counting, counts_vacuous=False) == checked


def test_the_count_stands_beside_the_figures() -> None:
    scores = [*CHECKED, *VACUOUS]
    sentence = "4 of 7 had something to check"
    with pytest.raises(AssertionError, match=rf"n=4\): failed\n  {sentence}\n  0.20  q0") as raised:
        assert_mean(table(scores), min=0.9)
    assert "q4" not in str(raised.value)
    with pytest.raises(AssertionError, match=rf"1 of 4 scores >= 0.5\): failed\n  {sentence}"):
        assert_pass_rate(table(scores), 0.5, 0.9)
    gate = decided(gate_of(METRIC, mean=0.9), scores)
    assert gate.text.splitlines()[1] == f"  {sentence}"
    assert gate_line(gate.record) == f"mean points 0.450, needed >= 0.9: failed (n 4, {sentence})"
    [found] = tallies(document(row("a", *records([*scores, (None, False)]))))
    assert (found.cells, found.vacuous) == (("points", "4", "0.450", "0.200", "0", "1"), 3)
    assert checked_lines([found]) == [f"points: {sentence}"]
    markdown = render_markdown(document(row("a", *records(scores))))
    assert f"| points | 4 | 0.450 | 0.200 | 0 | 0 |\n\n- points: {sentence}\n" in markdown
    stats = table(scores).stats()[METRIC]
    assert (stats.n, stats.unscored, stats.vacuous) == (7, 0, 3)
    assert checked_lines(tallies(document(row("a", *records(CHECKED))))) == []


NOTHING: dict[str, Callable[[Evaluation], object]] = {
    **{name: FIGURES[name] for name in FIGURES if name in ("mean", "corrected") or name.startswith("assert_mean")},
    "assert_pass_rate": lambda t: assert_pass_rate(t, 0.0, 0.0),
    "assert_not_worse": lambda t: assert_not_worse(t, t, margin=0.98),
    "assert_no_regression": lambda t: assert_no_regression(t, t),
}


@pytest.mark.parametrize("decide", NOTHING.values(), ids=NOTHING)
def test_a_set_without_anything_to_check_has_no_figure(decide: Callable[[Evaluation], object]) -> None:
    with pytest.raises(UnscoredError, match="points: 0 of 3 had something to check"):
        decide(table(VACUOUS))
    decide(table([(1.0, True)] * 5, vacuous="count"))


def test_a_gate_without_anything_to_check_fails() -> None:
    found = decided(gate_of(METRIC, mean=0.0), VACUOUS)
    assert found.text == 'points: 0 of 3 had something to check; vacuous="count" takes the scores as they are'
    assert (found.record.outcome, found.record.value, found.record.n, found.record.vacuous) == ("failed", None, 0, 3)
    line = "mean points nothing to check, needed >= 0: failed (n 0, 0 of 3 had something to check)"
    assert gate_line(found.record) == line
    unscored = decided(gate_of(METRIC, mean=0.0), [*VACUOUS, (None, False)])
    assert unscored.text.startswith("points: 1 of 4 rows is unscored; a gate is over all of them")
    assert decided(gate_of(METRIC, mean=0.6, vacuous="count"), VACUOUS).record.outcome == "passed"
    # Unscored rows are left out only where the call says so.
    scores = [*CHECKED, *VACUOUS, (None, False)]
    with pytest.raises(UnscoredError, match="1 of 8 rows is unscored"):
        assert_mean(table(scores), min=0.1)
    mean = assert_mean(table(scores), min=0.1, skip_unscored=True)
    assert (mean.n, mean.unscored, mean.vacuous) == (4, 1, 3)
    assert table(scores).mean(METRIC, skip_unscored=True) == pytest.approx(0.45)
    with pytest.raises(UnscoredError, match="0 of 3 had something to check"):
        table([*VACUOUS, (None, False)]).mean(METRIC, skip_unscored=True)


@pytest.mark.parametrize("way", ["skip", "count"])
def test_a_call_may_say_otherwise_than_the_table(way: Any) -> None:
    n, mean = (4, 0.45) if way == "skip" else (7, 3.8 / 7)
    whole = table([*CHECKED, *VACUOUS], vacuous="count" if way == "skip" else "skip")
    means = [
        *(whole.mean(METRIC, vacuous=way), whole.stats(vacuous=way)[METRIC].mean),
        *(assert_mean(whole, min=0.1, vacuous=way).value, assert_mean(whole.rows, min=0.1, vacuous=way).value),
    ]
    assert means == pytest.approx([mean] * 4)
    found = assert_no_regression(whole, whole, vacuous=way, inconclusive="pass")
    assert len(whole.compare(whole, vacuous=way)[METRIC].rows) == len(found[METRIC].rows) == n
    assert assert_pass_rate(whole, 0.0, 0.1, vacuous=way).n == n
    assert whole.corrected_mean(METRIC, tpr=0.9, tnr=0.8, threshold=0.5, vacuous=way).n == n


def test_an_evaluation_keeps_what_becomes_of_vacuous_scores(tmp_path: Path) -> None:
    rows = [{"response": text, "contexts": ["9 carp."]} for text in ("8 carp.", "Carp.", "Carp.")]
    name = "numbers_aligned"
    for way in (evaluate, lambda *args, **options: asyncio.run(aevaluate(*args, **options)), Evaluate(tmp_path)):
        found, counting = way(rows, [name]), way(rows, [name], vacuous="count")
        assert (found.vacuous, found.mean(name), found.scores(name)) == ("skip", 0.0, [0.0, 1.0, 1.0])
        assert counting.mean(name) == pytest.approx(2 / 3)
        assert (found.better, found.scales) == ({name: "higher"}, {name: (0.0, 1.0)})


def test_junit_marks_what_had_nothing_to_check() -> None:
    found = junit_properties(records([(0.5, False), (1.0, True), (None, False)]))
    assert found == [("rag.points", 0.5), ("rag.points", 1.0), ("rag.points.vacuous", True), ("rag.points", "unscored")]


def test_another_word_is_an_error() -> None:
    said = 'vacuous must be "skip" .* or "count", not \'drop\''
    calls: list[Callable[[], object]] = [
        lambda: score_set([], "drop"),  # type: ignore[arg-type]
        lambda: gate_of(METRIC, mean=0.5, vacuous="drop"),
        lambda: evaluate([{"answer": "So."}], ["token_f1"], vacuous="drop"),  # type: ignore[arg-type]
        lambda: assert_mean([1.0], 0.5, vacuous="drop"),  # type: ignore[arg-type]
        lambda: table(CHECKED).compare(table(CHECKED), vacuous="drop"),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(ValueError, match=said):
            call()


@pytest.mark.parametrize(
    ("before", "after", "rows", "listed"),
    [
        ((1.0, True), (0.2, False), 0, ["nothing to check there: 1 (q0)"]),
        ((0.2, False), (1.0, True), 0, ["nothing to check here: 1 (q0)"]),
        ((1.0, True), (1.0, True), 0, ["nothing to check here: 1 (q0)", "nothing to check there: 1 (q0)"]),
        ((1.0, True), (None, False), 0, ["unscored here: 1 (q0)", "nothing to check there: 1 (q0)"]),
        ((0.2, False), (0.4, False), 1, []),
    ],
)
def test_pairs_had_something_to_check_in_both_runs(
    before: tuple[float | None, bool], after: tuple[float | None, bool], rows: int, listed: list[str], tmp_path: Path
) -> None:
    scores = [before, (0.5, False)]
    old, new = table(scores), table([after, (0.5, False)])
    old.to_json(tmp_path / "table.json")
    (tmp_path / "run.json").write_text(render_json(document(row("a", *records(scores)))), encoding="utf-8")
    files = [read_baseline(tmp_path / f"{name}.json").records for name in ("table", "run")]
    for baseline in (compared_records(old), *files):
        found = compare_tables(compared_records(new), EarlierRun(records=baseline))[METRIC]
        assert len(found.rows) == 1 + rows
        assert [line.strip() for line in str(found).splitlines() if "nothing" in line or "unscored" in line] == listed


def test_scores_of_an_earlier_version_count(tmp_path: Path) -> None:
    """Its tables do not say which scores are vacuous."""
    rows = [{"sample": {"id": "q0"}, "scores": {METRIC: 1.0}, "reasons": {}, "unscored": {}}]
    (tmp_path / "old.json").write_text(json.dumps({"metrics": [METRIC], "rows": rows}), encoding="utf-8")
    (placed,) = read_baseline(tmp_path / "old.json").records[METRIC]
    assert (placed.name, placed.record.score, placed.record.vacuous) == ("q0", 1.0, False)


def test_shards_keep_what_becomes_of_vacuous_scores() -> None:
    for way, outcome in (("skip", "failed"), ("count", "passed")):
        gate = gate_of(METRIC, mean=0.5, vacuous=way)
        found = records([(1.0, True), (1.0, True), (0.2, False)])
        tests = [replace(row("x", each), id=f"t[{number}]") for number, each in enumerate(found)]
        undecided = evaluate_gate(gate, {}, gated=gated_set(gate, total=3))
        name = f"t[{gate.id}]"
        merged = merged_gates([*tests, replace(row(name, gate=undecided.record), id=name)])
        assert merged[name].outcome == outcome


def test_the_worst_rows_had_something_to_check() -> None:
    whole = table([(1.0, True), (0.0, True), (None, False), (0.9, False)])
    assert [each.sample.id for each in whole.worst()] == ["q2", "q3", "q0", "q1"]
    other = {METRIC: result(1.0, vacuous=True), "more": MetricResult(0.3, metric="more")}
    both = {METRIC: result(0.5), "more": MetricResult(0.3, metric="more")}
    rows = (Row(sample=Sample(id="both"), results=both), Row(sample=Sample(id="other"), results=other))
    assert Evaluation(metrics=(METRIC, "more"), rows=rows).worst(1)[0].sample.id == "other"
    assert whole.failures(0.5) == (whole.rows[1], whole.rows[2])  # a single row is held to its score


@pytest.mark.parametrize(
    ("scores", "scales", "common"),
    [
        *(((0.5, None), ((0.0, 1.0), None), (0.0, 1.0)), ((2.0, 4.0), ((0.0, 4.0), (0.0, 4.0)), (0.0, 4.0))),
        *(((0.5, 5.0), ((0.0, 4.0), None), None), ((0.5, 5.0), ((0.0, 4.0), (0.0, 4.0)), None)),
        *(((0.5, 0.7), (None, None), None), ((None,), ((0.0, 1.0),), None)),
    ],
)
def test_a_scale_is_common_to_scored_rows_on_it(scores: Any, scales: Any, common: Any) -> None:
    rows = [ScoredRow(name="q", score=score, scale=scale) for score, scale in zip(scores, scales, strict=True)]
    assert common_scale(rows) == common
