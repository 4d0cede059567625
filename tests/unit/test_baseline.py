"""The scores of an earlier run, read from the files that runs and tables write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.comparison import Column, ColumnEntry
from pytest_ragmetrics.context import Scoring
from pytest_ragmetrics.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.evaluation import Evaluation, Row
from pytest_ragmetrics.records import DocumentError, Record, record_of, render_json
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.suites import read_baseline
from tests.documents import document as made_document
from tests.documents import row


def record(name: str, score: float | None, *, metric: str = "harmfulness") -> Record:
    """Return what a run keeps of a scoring."""
    outcome = UnscoredError("no") if score is None else MetricResult(score, metric=metric, judge="openai:small")
    return record_of(Scoring(metric=metric, sample=Sample(id=name), outcome=outcome, better="lower"))


def run_file(folder: Path, *tests: list[Record]) -> Path:
    """Write the document of a run."""
    document = made_document(*(row(f"test_{number}", *records) for number, records in enumerate(tests)))
    file = folder / "run.json"
    file.write_text(render_json(document), encoding="utf-8")
    return file


def test_the_file_of_a_run_is_read(tmp_path: Path) -> None:
    """Scores of all its tests by metric and sample; a sample that two tests scored differently is ambiguous."""
    tests = (
        [record("q1", 0.5), record("q2", None), record("q3", 0.5)],
        [record("q1", 1.0, metric="coherence"), record("q1", 0.5), record("q3", 0.75)],
    )
    found = read_baseline(run_file(tmp_path, *tests))
    half, unscored = ColumnEntry(score=0.5, judge="openai:small"), ColumnEntry(score=None)
    assert found["harmfulness"] == Column(
        metric="harmfulness",
        better="lower",
        entries={"q1": half, "q2": unscored, "q3": half},
        ambiguous=frozenset({"q3"}),
    )
    assert found["coherence"].entries == {"q1": ColumnEntry(score=1.0, judge="openai:small")}


def test_the_file_of_a_table_is_read(tmp_path: Path) -> None:
    """It gives the column that the table itself has, but for clusters; early releases named no judge, no direction."""
    result = MetricResult(0.25, metric="harmfulness", judge="openai:small")
    rows = (
        Row(sample=Sample(user_input="Why?"), results={"harmfulness": result}),
        Row(sample=Sample(id="q2"), unscored={"harmfulness": "refused"}),
    )
    file = tmp_path / "table.json"
    table = Evaluation(metrics=("harmfulness",), rows=rows, better={"harmfulness": "lower"})
    table.to_json(file)
    assert read_baseline(str(file)) == {"harmfulness": table.column("harmfulness")}
    file.write_text('\ufeff{"metrics": ["a"], "rows": [{"sample": {"id": "q"}, "scores": {"a": 1}}]}', encoding="utf-8")
    assert read_baseline(file)["a"] == Column(metric="a", better="higher", entries={"q": ColumnEntry(score=1.0)})


def test_a_file_is_read_once_and_again_when_it_changed(tmp_path: Path) -> None:
    """Every assertion of a suite asks for it."""
    file = run_file(tmp_path, [record("q1", 0.5)])
    first = read_baseline(file)
    assert read_baseline(file) is first
    run_file(tmp_path, [record("q1", 0.75)])
    os.utime(file, ns=(1, 1))
    assert read_baseline(file)["harmfulness"].entries["q1"].score == 0.75


TABLE: dict[str, Any] = {"metrics": ["a"], "rows": [{"sample": {"id": "q"}, "scores": {"a": 1.0}}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON: .* line 1 column 2"),
        ('{"rows": NaN}', "not JSON: NaN is not a JSON number"),
        ("[" * 100_000, "not JSON"),
        ("\xff\xfe", "neither the result of a run nor a table|not JSON"),
        ("[1]", "neither the result of a run nor a table; give a file that --rag-json or Evaluation.to_json wrote"),
        ('{"tests": []}', "it has no version"),
        ('{"version": 99, "tests": []}', "version 99"),
        (json.dumps({**TABLE, "rows": 1}), "rows must be a valid array, not 1"),
        (json.dumps({**TABLE, "better": {"a": "up"}}), "better.a must be 'higher' or 'lower', not \"up\""),
        (json.dumps({**TABLE, "rows": [{"scores": {}}]}), r"rows\[0\] lacks sample"),
        (
            '{"metrics": ["a"], "rows": [{"sample": {}, "scores": {"a": 1' + "0" * 400 + "}}]}",
            "scores.a must be a finite number",
        ),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    """And with what to give instead."""
    file = tmp_path / "broken.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError, match=message) as raised:
        read_baseline(file)
    assert str(raised.value).startswith(f"{file}: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """So is a folder."""
    with pytest.raises(RagMetricsError, match=r"none\.json: No such file"):
        read_baseline(tmp_path / "none.json")
    with pytest.raises(RagMetricsError, match=tmp_path.name):
        read_baseline(tmp_path)
