"""One pair of runs through all that compares runs: each pairs the same rows and finds the same of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.evaluation.assert_sets import assert_no_regression
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.plugin.gates.decide import GateDecision
from pytest_ragmetrics.report.columns import compare_runs
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import Document, Record, render_json, result_of
from pytest_ragmetrics.runs.wording.comparisons import MetricComparison
from tests.documents import document, gate_of, record, row
from tests.tables import evaluate_gate
from tests.unit.conftest import Call

LOSS = gate_of("faithfulness", regression=True)
SAME = [f"same{number}" for number in range(8)]


def scored(name: str, score: float | None = 1.0, **fields: Any) -> Record:
    sample = {"id": name, "user_input": f"What is {name}?", **fields.pop("sample", {})}
    made = record("faithfulness", score, outcome="unscored" if score is None else "measured", sample=sample)
    return replace(made, **{"judge": "openai:one", "verdicts": (), **fields})


def run_of(rows: Mapping[str, Record]) -> Document:
    return document(*(row(name, each, id=f"t.py::t[{name}]") for name, each in rows.items()))


SCORES = {"worse": 0.9, "better": 0.2, "again": None, "silent": 0.5, "gone": 1.0, "asks": 1.0, "moved": 0.5}
BEFORE = {
    **{name: scored(name) for name in SAME},
    **{name: scored(name, score) for name, score in SCORES.items()},
    "nameless": scored("", 0.5, sample={"id": None, "user_input": "Who is nameless?"}),
    "named": scored("", 0.5, sample={"id": None, "user_input": "Who is named?"}),
}
AFTER = {
    **{name: scored(name) for name in SAME},
    **{name: scored(name, score) for name, score in {"worse": 0.4, "better": 0.6, "again": 0.7, "new": 1.0}.items()},
    "silent": scored("silent", vacuous=True),
    "asks": scored("asks", 0.1, sample={"user_input": "How is asks?"}),
    "renamed": scored("moved", 0.6),
    "3": scored("", 0.4, sample={"id": None, "user_input": "Who is nameless?"}),
    "4": scored("q4", 0.3, sample={"user_input": "Who is named?"}),
}
WORSE, BETTER, EQUAL = {"worse", "Who is nameless?", "q4"}, {"better", "moved"}, {*SAME}


def table_of(run: Document) -> Evaluation:
    records = [each for test in run.tests for each in test.records]
    rows = (Row(sample=it.sample, results={} if it.score is None else {it.metric: result_of(it)}) for it in records)
    return Evaluation(metrics=("faithfulness",), rows=tuple(rows), scales={"faithfulness": (0.0, 1.0)})


def gate(run: Document, baseline: Document) -> GateDecision:
    return evaluate_gate(LOSS, {test.id: test for test in run.tests}, baseline, function="t.py::t")


def files_of(folder: Path, *runs: Document) -> list[str]:
    files = [folder / f"{number}.json" for number in range(len(runs))]
    for file, each in zip(files, runs, strict=True):
        file.write_text(render_json(each), encoding="utf-8")
    return [*map(str, files)]


def test_all_readers_of_two_runs_agree(tmp_path: Path, ragmetrics: Call) -> None:
    now, before = run_of(AFTER), run_of(BEFORE)
    files = files_of(tmp_path, before, now)

    def found(compared: MetricComparison) -> dict[str, set[str]]:
        sides = {"nothing to check": compared.vacuous_here, "scored again": compared.unscored_there}
        sides |= {"new": compared.only_here, "gone": compared.only_there, "incomparable": compared.rewritten}
        changed = {"worse": compared.regressed, "better": compared.improved, "same": compared.unchanged}
        sides |= {kind: tuple(each.id for each in rows) for kind, rows in changed.items()}
        return {kind: {*ids} for kind, ids in sides.items()}

    expected = {"worse": WORSE, "better": BETTER, "same": EQUAL, "new": {"new"}, "gone": {"gone"}}
    expected |= {"nothing to check": {"silent"}, "scored again": {"again"}, "incomparable": {"asks"}}
    tables = table_of(now).compare(table_of(before))["faithfulness"]
    assert found(tables) == expected
    assert found(assert_no_regression(table_of(now), files[0])["faithfulness"]) == expected

    decided = gate(now, before)
    assert decided.record.regression is not None
    of_gate = decided.record.regression
    assert (of_gate.worse, of_gate.better, of_gate.new, of_gate.gone, of_gate.rewritten) == (3, 2, 1, 1, 1)
    assert (decided.record.n, decided.record.vacuous) == (len(WORSE | BETTER | EQUAL), 1)
    assert tables.difference is not None
    assert (of_gate.before, of_gate.after) == (tables.difference.before, tables.difference.after)
    listed = [line.split()[-1] for line in decided.text.splitlines() if " -> " in line][1:]
    assert set(listed) == {"worse", "nameless?", "q4", *BETTER}

    comparison = compare_documents(now, before)
    named = {"t.py::t[renamed]": "moved", "t.py::t[3]": "Who is nameless?", "t.py::t[4]": "q4"}
    kinds: dict[str, set[str]] = {"incomparable": {"asks"}}
    for change in comparison.changes:
        kinds.setdefault(change.kind, set()).add(named.get(change.id) or change.id[len("t.py::t[") : -1])
    assert kinds == expected
    assert [(each.pairs, each.why) for each in comparison.incomparable] == [(1, "they ask another question")]
    (metric,) = comparison.metrics
    means = tables.difference.n, tables.difference.before, tables.difference.after
    assert (metric.pairs, metric.before, metric.after) == pytest.approx(means)
    (columns,) = compare_runs([("then", before), ("now", now)]).metrics
    assert [pair.kinds for pair in columns.pairs] == [{"worse": 3, "better": 2, "same": 8}]
    assert columns.pairs[0].difference == tables.difference
    _, text, _ = ragmetrics("report", "diff", *files)
    counts = "2 better, 3 worse, 8 the same, 1 with nothing to check in one of the runs, 1 scored again, 1 new, 1 gone"
    assert f"against the baseline: {counts}" in text
    assert "not compared: 1 of faithfulness: they ask another question" in text

    view = build_report_view(now, comparison)
    chips: dict[str, set[str]] = {}
    for test in (*view.tests, *view.gone):
        for chip in test.compared.chips if test.compared else ():
            chips.setdefault(chip, set()).add(named.get(test.name) or test.name[len("t.py::t[") : -1])
    for kind in ("worse", "new", "gone"):
        assert chips[kind] == expected[kind]
    assert chips["better"] == BETTER | {"again"}


@pytest.mark.parametrize(
    ("fields", "why", "said"),
    [
        ({"judge": "openai:two"}, "judged by openai:two now, by openai:one in the baseline", "different judges"),
        ({"better": "lower"}, "it is another metric in the baseline", "lower scores are better here, higher"),
    ],
)
def test_all_readers_refuse_the_same(fields: Any, why: str, said: str, tmp_path: Path, ragmetrics: Call) -> None:
    now, before = run_of({it: scored(it, 0.5, **fields) for it in SAME}), run_of({it: scored(it) for it in SAME})
    files = files_of(tmp_path, before, now)
    tables = replace(table_of(now), better={"faithfulness": fields.get("better", "higher")}), table_of(before)
    for baseline in (tables[1], files[0]):
        with pytest.raises(ValueError, match=said):
            assert_no_regression(tables[0], baseline)
    with pytest.raises(ValueError, match=said):
        tables[0].compare(tables[1])
    decided = gate(now, before)
    outcome = "inconclusive" if "judge" in fields else "failed"
    assert (decided.record.outcome, decided.record.n) == (outcome, 0)
    assert said in decided.text
    _, out, _ = ragmetrics("report", "diff", *files)
    assert f"not compared: {len(SAME)} of faithfulness: {why}" in out
    (columns,) = compare_runs([("then", before), ("now", now)]).metrics
    assert (columns.pairs, columns.apart) == ((), len(SAME))
    comparison = compare_documents(now, before)
    assert comparison.changes == ()
    assert all(test.compared is None and test.change is None for test in build_report_view(now, comparison).tests)
