"""The table of an evaluation: its figures, its worst rows, and the files it becomes."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from pytest_ragmetrics.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.evaluation import Evaluation, Row, Stats, evaluate
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample

METRICS = ("faithfulness", "relevance")


class Verbosity(Metric):
    """The number of words."""

    name = "verbosity"
    scale = (0.0, 100.0)
    better = "lower"

    def measure(self, sample: Sample) -> MetricResult:
        """Count them."""
        return MetricResult(len((sample.response or "").split()), metric=self.name)


def row(name: str, *, unscored: Mapping[str, str] | None = None, **scores: float) -> Row:
    """Return a row with these scores."""
    results = {metric: MetricResult(score, metric=metric, reason=f"{score}") for metric, score in scores.items()}
    return Row(sample=Sample(id=name, response=f"Answer {name}."), results=results, unscored=unscored or {})


@pytest.fixture
def table() -> Evaluation:
    """Return four rows, one of them without one of its scores."""
    rows = (
        row("a", faithfulness=1.0, relevance=0.5),
        row("b", faithfulness=0.5, relevance=0.75),
        row("c", relevance=1.0, unscored={"faithfulness": "no claims"}),
        row("d", faithfulness=0.75, relevance=0.0),
    )
    return Evaluation(metrics=METRICS, rows=rows)


def ids(rows: tuple[Row, ...]) -> str:
    """Return the ids of rows in one word."""
    return "".join(row.sample.id or "" for row in rows)


def test_a_mean_leaves_no_row_out_in_silence(table: Evaluation) -> None:
    """A missing score leaves a gap; whoever wants the mean without the unscored rows says so."""
    assert table.scores("faithfulness") == [1.0, 0.5, None, 0.75]
    assert table.mean("relevance") == 0.5625
    with pytest.raises(UnscoredError, match="faithfulness: 1 of 4 rows are unscored; skip_unscored=True leaves them"):
        table.mean("faithfulness")
    assert table.mean("faithfulness", skip_unscored=True) == 0.75


def test_without_a_score_there_is_no_mean() -> None:
    """Neither of an empty table, nor of one that is all unscored, which says why."""
    with pytest.raises(UnscoredError, match="relevance: none of 0 rows has a score"):
        Evaluation(metrics=METRICS, rows=()).mean("relevance")
    unscored = Evaluation(metrics=METRICS, rows=(row("a", unscored={"relevance": "broken"}),))
    with pytest.raises(UnscoredError, match="none of 1 rows has a score; the first: broken"):
        unscored.mean("relevance", skip_unscored=True)


def test_stats_count_what_is_unscored(table: Evaluation) -> None:
    """The figures are over the others."""
    assert table.stats() == {
        "faithfulness": Stats(n=4, unscored=1, mean=0.75, min=0.5, max=1.0),
        "relevance": Stats(n=4, unscored=0, mean=0.5625, min=0.0, max=1.0),
    }
    nothing = Stats(n=0, unscored=0, mean=None, min=None, max=None)
    assert Evaluation(metrics=("relevance",), rows=()).stats() == {"relevance": nothing}


def test_the_worst_rows_come_first(table: Evaluation) -> None:
    """Those without a score before all others; equal ones in the order of the rows."""
    assert ids(table.worst(2, metric="relevance")) == "da"
    assert ids(table.worst(metric="faithfulness")) == "cbda"
    assert ids(table.worst(3)) == "cdb"


def test_failures_are_below_a_bound_or_unscored(table: Evaluation) -> None:
    """One bound for all metrics, or one for each that is named; on it is not below it; no result is marked with it."""
    assert ids(table.failures(0.5)) == "cd"
    assert ids(table.failures({"relevance": 0.75})) == "ad"
    assert ids(table.failures({"faithfulness": 0.5})) == "c"
    assert all(result.comparison is None for each in table.rows for result in each.results.values())


def test_the_worst_is_the_highest_where_lower_is_better() -> None:
    """On average a score counts by its distance from the bad end; a bare bound is for the metrics of its direction."""
    rows = (
        row("a", harm=0.0, relevance=0.5),
        row("b", harm=0.9, relevance=1.0),
        row("c", harm=0.5, relevance=0.9),
        row("d", relevance=1.0, unscored={"harm": "refused"}),
    )
    harms = Evaluation(metrics=("harm", "relevance"), rows=rows, better={"harm": "lower"}, scales={"harm": (0.0, 1.0)})
    assert ids(harms.worst(metric="harm")) == "dbca"
    assert ids(harms.worst(metric="relevance")) == "acbd"
    assert ids(harms.worst(2)) == "db"
    assert harms.better_of("harm") == "lower"
    assert ids(harms.failures(max=0.5)) == "bd"
    assert ids(harms.failures(0.9)) == "a"
    assert ids(harms.failures(0.9, max=0.5)) == "abd"
    assert ids(harms.failures({"harm": 0.6})) == "acd"
    assert ids(harms.failures(max={"relevance": 0.9})) == "bd"


def test_failures_need_a_bound_that_is_for_some_metric(table: Evaluation) -> None:
    """Else every row would pass in silence."""
    with pytest.raises(ValueError, match="give min= or max="):
        table.failures()
    with pytest.raises(ValueError, match="there is no metric whose lower scores are better; give min="):
        table.failures(max=0.5)
    with pytest.raises(ValueError, match="there is no metric whose higher scores are better; give max="):
        Evaluation(metrics=("harm",), rows=(), better={"harm": "lower"}).failures(0.5)


def test_evaluating_keeps_which_scores_are_better() -> None:
    """Of every metric, with its scale."""
    table = evaluate([{"response": "Moss.", "contexts": []}], ["quoted_spans_alignment", Verbosity()])
    assert table.better == {"quoted_spans_alignment": "higher", "verbosity": "lower"}
    assert table.scales == {"quoted_spans_alignment": (0.0, 1.0), "verbosity": (0.0, 100.0)}


def test_a_metric_that_was_not_evaluated_is_named(table: Evaluation) -> None:
    """With those that were."""
    for look in (
        lambda: table.mean("fairness"),
        lambda: table.worst(metric="fairness"),
        lambda: table.failures({"fairness": 0.5}),
    ):
        with pytest.raises(KeyError, match="'fairness' was not evaluated; there are faithfulness, relevance"):
            look()


def test_json_says_all_of_it(table: Evaluation) -> None:
    """Scores with their reasons, and the reasons for those that are missing."""
    read = json.loads(table.to_json())
    assert read["metrics"] == ["faithfulness", "relevance"]
    assert read["better"] == {"faithfulness": "higher", "relevance": "higher"}
    assert read["rows"][2] == {
        "sample": {"id": "c", "response": "Answer c."},
        "scores": {"relevance": 1.0},
        "reasons": {"relevance": "1.0"},
        "judges": {"relevance": None},
        "unscored": {"faithfulness": "no claims"},
    }


def test_json_takes_whatever_metadata_holds(tmp_path: Path) -> None:
    """Rows of other tools carry dates, sets, missing numbers and broken text."""
    metadata = {"day": date(2026, 1, 2), "score": float("nan"), "tags": ("x", {"y": float("inf"), 3: "\ud800"})}
    sample = Sample(response="Ja, größer.", metadata=metadata)
    file = tmp_path / "table.json"
    text = Evaluation(metrics=("relevance",), rows=(Row(sample=sample),)).to_json(file)
    read = json.loads(file.read_text(encoding="utf-8"))
    assert "größer" in text
    assert read["rows"][0]["sample"]["metadata"] == {
        "day": "2026-01-02",
        "score": None,
        "tags": ["x", {"y": None, "3": "\ud800"}],
    }


class Unspeakable:
    """Something that has no text."""

    def __str__(self) -> str:
        raise RuntimeError


def test_json_takes_what_others_break_on() -> None:
    """The values of data frames are numbers, and what has no end or no text costs nothing but itself."""
    endless: dict[str, object] = {}
    endless["self"] = endless
    metadata = {
        "count": np.int64(3),
        "share": np.float32(0.5),
        "missing": np.float64("nan"),
        "good": np.bool_(1),
        "vector": np.array([1, 2]),
        "huge": 10**5000,
        "endless": endless,
        "unspeakable": Unspeakable(),
        "last": "here",
    }
    sample = Sample(response="So.", metadata=metadata)
    table = Evaluation(metrics=("relevance",), rows=(Row(sample=sample),))
    read = json.loads(table.to_json())["rows"][0]["sample"]["metadata"]
    assert (read["count"], read["share"], read["missing"], read["good"]) == (3, 0.5, None, True)
    assert (read["vector"], read["last"]) == ([1, 2], "here")
    assert int(read["huge"], 16) == 10**5000
    assert str(read["endless"]).count("...") == 1
    assert "Unspeakable object at" in read["unspeakable"]
    assert table.to_pandas()["metadata"][0] == metadata
    assert table.to_csv().count("\n") == 2


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"])
def test_csv_holds_no_formulas(start: str) -> None:
    """A text that a spreadsheet would run becomes one that it shows; a negative score stays a number."""
    text = f"{start}1+1"
    sample = Sample(id=text, user_input=text, response=text)
    results = {"relevance": MetricResult(-0.5, metric="relevance")}
    rows = (Row(sample=sample, results=results, unscored={"faithfulness": text}),)
    table = Evaluation(metrics=("relevance", "faithfulness"), rows=rows)
    _, cells = csv.reader(io.StringIO(table.to_csv(), newline=""))
    assert cells == [f"'{text}", f"'{text}", f"'{text}", "-0.5", "", f"'{text}"]


def test_csv_has_a_column_for_each_metric(table: Evaluation, tmp_path: Path) -> None:
    """What is missing is an empty cell, with the reason in the last column; the file is what is returned."""
    file = tmp_path / "table.csv"
    text = table.to_csv(file)
    assert file.read_bytes().decode() == text
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(rows[0]) == ["id", "user_input", "response", "faithfulness", "relevance", "unscored"]
    assert (rows[2]["faithfulness"], rows[2]["relevance"], rows[2]["unscored"]) == ("", "1.0", "no claims")
    assert rows[0]["response"] == "Answer a."


def test_a_data_frame_has_samples_and_scores(table: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row a sample, in their order, with nothing where there is no score; without pandas it is named."""
    frame = table.to_pandas()
    assert list(frame["id"]) == ["a", "b", "c", "d"]
    assert list(frame["relevance"]) == [0.5, 0.75, 1.0, 0.0]
    assert list(frame["faithfulness"].isna()) == [row.results.get("faithfulness") is None for row in table.rows]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RagMetricsError, match=r'pip install "pytest-ragmetrics\[pandas\]"'):
        table.to_pandas()
