"""Marks that readers set on verdicts: their file, what they say of a judge, and what they are not taken for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.calibration.calibrate import calibrate
from pytest_ragmetrics.evaluation.calibration.labels import line
from pytest_ragmetrics.evaluation.calibration.marks import Mark, marked_verdicts, read_labelled
from pytest_ragmetrics.evaluation.calibration.queue import label_queue
from pytest_ragmetrics.evaluation.calibration.text import calibration_lines, mark_lines
from pytest_ragmetrics.evaluation.evaluate import evaluate
from pytest_ragmetrics.runs.records import render_json
from tests.documents import document, record, row
from tests.unit.conftest import Call

GOOD = {"response": "Moss grows here.", "contexts": ["Moss grows here."], "label": 1}
BAD = {"response": "Sand and gravel.", "contexts": ["Moss grows here."], "label": 0}


def mark(test: str = "a", finding: str = "Moss.", *, ok: bool = False, label: str = "right", **more: Any) -> Any:
    fixed = {"metric": "lexical_grounding", "judge": "openai:one", "run": "2026-11-22T08:14:00Z"}
    return {"id": f"tests/test_a.py::test[{test}]", "finding": finding, "ok": ok, "label": label, **fixed, **more}


def written(file: Path, *rows: object) -> Path:
    file.write_text("".join(json.dumps(each) + "\n" for each in rows), "utf-8")
    return file


def said(*marks: dict[str, Any]) -> list[str]:
    return mark_lines(marked_verdicts(read_labelled(list(marks), base=Path())[1], "lexical_grounding"))


HEAD = "marks of findings, in no figure, as readers chose what they marked:"
ONE, TWO = (f"{what} rightly (95 % interval 0.02..1.00)" for what in ("rejected", "accepted"))


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([mark()], f"openai:one, in 1 test: 1 of 1 {ONE}"),
        ([mark(label="unsure")], "openai:one, in 1 test: 1 unsure"),
        (
            [mark("a"), mark("b", label="wrong")],
            f"openai:one, in 2 tests: 1 of 2 {ONE.replace('02..1.00', '01..0.99')}",
        ),
        ([mark("c", ok=True), mark("d", label="unsure")], f"openai:one, in 2 tests: 1 of 1 {TWO}, 1 unsure"),
        # The later mark on one verdict counts, also of another run; a verdict that turned round is another one.
        ([mark(label="wrong"), mark(run="later")], f"openai:one, in 1 test: 1 of 1 {ONE}"),
        ([mark(), mark(ok=True)], f"openai:one, in 1 test: 1 of 1 {ONE}, 1 of 1 {TWO}"),
        # Findings of one test are dependent: two that agree say no more than one.
        ([mark(), mark(finding="Fern.")], f"openai:one, in 1 test: 2 of 2 {ONE}"),
        ([mark(judge=None)], f"no judge, in 1 test: 1 of 1 {ONE}"),
        ([mark(judge="\x1b[31mred")], f"[31mred, in 1 test: 1 of 1 {ONE}"),
    ],
)
def test_marks_say_how_often_a_judge_was_right(marks: list[dict[str, Any]], expected: str) -> None:
    assert said(*marks) == [HEAD, f"  by {expected}"]


def test_each_judge_and_metric_has_its_own() -> None:
    found = said(mark(), mark(judge="openai:two"), mark(metric="faithfulness"))
    assert [text.split(",")[0] for text in found[1:]] == ["  by openai:one", "  by openai:two"]
    assert mark_lines(()) == []


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"label": "maybe"}, "mark.label must be 'right', 'wrong' or 'unsure', not \"maybe\""),
        ({"label": 1}, "mark.label must be 'right', 'wrong' or 'unsure', not 1"),
        ({"ok": "no"}, 'mark.ok must be a valid boolean, not "no"'),
        ({"metric": None}, "mark.metric must be a valid string, not null"),
        ({"finding": 7}, "mark.finding must be a valid string, not 7"),
    ],
)
def test_a_mark_that_is_wrong_is_named(wrong: dict[str, Any], expected: str, tmp_path: Path) -> None:
    file = written(tmp_path / "marks.jsonl", mark(), {**mark("b"), **wrong})
    with pytest.raises(DatasetError, match="as the page of a report saves it") as caught:
        read_labelled(file, base=tmp_path)
    assert expected in str(caught.value)
    assert "marks.jsonl:2: " in str(caught.value)
    with pytest.raises(DatasetError, match="mark lacks ok"):
        read_labelled([{"finding": "x", "id": "a", "metric": "m", "label": "right"}], base=tmp_path)


def test_labels_and_marks_may_be_in_one_file(tmp_path: Path) -> None:
    rows = [{**made, "id": f"q{n}"} for n, made in enumerate([GOOD, BAD] * 4)]
    file = written(tmp_path / "both.jsonl", mark(), *rows[:4], mark("b"), mark("b", "Fern."), *rows[4:])
    found, plain = (calibrate("lexical_grounding", of, threshold=0.4) for of in (file, rows))
    assert found.figures == plain.figures
    assert [it.tests for it in found.marks] == [2]
    assert HEAD in [text.strip() for text in calibration_lines(found)]
    assert HEAD not in calibration_lines(plain)
    assert len(calibrate("lexical_grounding", file, threshold=0.4, limit=6).rows) == 6
    answers, marks = read_labelled(file, base=tmp_path)
    assert [answer.line for answer in answers] == [2, 3, 4, 5, 8, 9, 10, 11]
    fields: Any = {key: text for key, text in mark().items() if key != "run"}
    assert marks[0] == Mark(**fields)


def test_a_mark_is_no_label_of_its_answer(tmp_path: Path) -> None:
    table = evaluate([Sample(response="Moss.", retrieved_contexts=["Moss grows here."])], "lexical_grounding")
    file = written(tmp_path / "marks.jsonl", {**mark(), "response": "Moss.", "contexts": ["Moss grows here."]})
    with pytest.raises(ValueError, match="no label is one of an answer in this table"):
        table.corrected_mean("lexical_grounding", labels=file)
    with pytest.raises(DatasetError, match="marks of findings and no labelled answer"):
        calibrate("lexical_grounding", file)


def test_the_commands_read_marks(tmp_path: Path, ragmetrics: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("marks.jsonl"), mark(), mark("b", label="wrong"))
    calibrated = ["calibrate", "marks.jsonl", "--metric", "lexical_grounding"]
    status, out, _ = ragmetrics(*calibrated)
    assert (status, out.splitlines()[0]) == (0, HEAD)
    for options, message in {
        ("--min-kappa", "0.5"): "marks.jsonl has marks alone, and --min-kappa takes labels: see ragmetrics label",
        ("--json", "a.json"): "and --json takes labels",
        ("--html", "a.html"): "and --html takes labels",
        ("--metric", "faithfulness"): "marks.jsonl has no mark of faithfulness; it has lexical_grounding",
    }.items():
        status, _, err = ragmetrics(*calibrated, *options)
        assert status == 1
        assert message in err
    run = document(row("test_a", record("lexical_grounding", 0.5, sample={"response": "Moss."})))
    Path("run.json").write_text(render_json(run))
    (queued,) = label_queue(run, "lexical_grounding")
    Path("other.jsonl").write_text(f"{line(1, queued.rest)}\n{json.dumps(mark())}\n")
    command = ["label", "run.json", "--metric", "lexical_grounding", "--import"]
    status, out, _ = ragmetrics(*command, "other.jsonl")
    passed_over = "1 mark of findings passed over: ragmetrics calibrate reads them"
    assert (status, out.splitlines()[:2]) == (0, ["other.jsonl: 1 new label", passed_over])
    status, _, err = ragmetrics(*command, "other.jsonl", "-o", "other.jsonl")
    assert status == 1
    assert "other.jsonl has marks of findings beside its labels" in err
