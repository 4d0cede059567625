"""The table of an evaluation: its figures, its worst rows, and the files it becomes."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.table import Evaluation, Row, Stats

METRICS = ("faithfulness", "relevance")
NOTHING = Evaluation(metrics=METRICS, rows=())


def row(name: str, *, unscored: Mapping[str, str] | None = None, **scores: float) -> Row:
    results = {metric: MetricResult(score, metric=metric, reason=f"{score}") for metric, score in scores.items()}
    return Row(sample=Sample(id=name, response=f"Answer {name}."), results=results, unscored=unscored or {})


ROWS = (
    row("a", faithfulness=1.0, relevance=0.5),
    row("b", faithfulness=0.5, relevance=0.75),
    row("c", relevance=1.0, unscored={"faithfulness": "no claims"}),
    row("d", faithfulness=0.75, relevance=0.0),
)
TABLE = Evaluation(metrics=METRICS, rows=ROWS)


def ids(rows: tuple[Row, ...]) -> str:
    return "".join(row.sample.id or "" for row in rows)


def test_a_mean_needs_a_score_of_every_row() -> None:
    assert TABLE.scores("faithfulness") == [1.0, 0.5, None, 0.75]
    assert TABLE.mean("relevance") == 0.5625
    with pytest.raises(UnscoredError, match=r"1 of 4 rows is unscored; skip_unscored=True leaves\b.*\n  c: no claims"):
        TABLE.mean("faithfulness")
    assert TABLE.mean("faithfulness", skip_unscored=True) == 0.75
    with pytest.raises(UnscoredError, match="relevance: there are no rows"):
        NOTHING.mean("relevance")
    unscored = Evaluation(metrics=METRICS, rows=(row("a", unscored={"relevance": "broken"}),))
    with pytest.raises(UnscoredError, match="1 of 1 row is unscored\n  a: broken"):
        unscored.mean("relevance", skip_unscored=True)
    # The figures are over the others.
    assert TABLE.stats()["faithfulness"] == Stats(n=4, unscored=1, mean=0.75, min=0.5, max=1.0, std=0.25)
    assert NOTHING.stats()["relevance"] == Stats(n=0, unscored=0, mean=None, min=None, max=None)
    single = Evaluation(metrics=METRICS[:1], rows=TABLE.rows[:1], durations={"faithfulness": 1.5})
    assert (single.stats()["faithfulness"].std, single.stats()["faithfulness"].duration) == (None, 1.5)


def test_an_overall_score_is_a_weighted_mean() -> None:
    assert TABLE.overall(skip_unscored=True) == pytest.approx((0.75 + 0.5625) / 2)
    assert TABLE.overall({"relevance": 2}) == 0.5625
    assert TABLE.overall({"faithfulness": 3, "relevance": 1}, skip_unscored=True) == pytest.approx(0.703125)
    assert TABLE.overall({"faithfulness": 0, "relevance": 1}) == 0.5625
    rated = replace(TABLE, better={"faithfulness": "lower"}, scales={"relevance": (-1.0, 1.0)})
    assert rated.overall(skip_unscored=True) == pytest.approx((0.25 + (0.5625 + 1) / 2) / 2)
    with pytest.raises(UnscoredError, match="faithfulness: 1 of 4 rows is unscored"):
        TABLE.overall()
    wrong: Any
    for wrong, problem in (
        ({"relevanse": 1}, "'relevanse' was not evaluated; there are faithfulness, relevance"),
        ({"relevance": -1}, "the weight of relevance must be a number from 0 on, not -1"),
        ({"relevance": 0}, "weights must name a metric with a weight above 0; there are faithfulness, relevance"),
        ({}, "weights must name a metric with a weight above 0"),
        (["relevance"], "weights must map names of metrics to numbers, not be of type list"),
    ):
        with pytest.raises((KeyError, TypeError, ValueError), match=problem):
            TABLE.overall(wrong)
    with pytest.raises(ValueError, match="relevance has a scale from 0 to inf, which has no share: leave it out"):
        replace(TABLE, scales={"relevance": (0.0, math.inf)}).overall({"relevance": 1})


def test_the_worst_rows_come_first() -> None:
    assert ids(TABLE.worst(2, metric="relevance")) == "da"
    assert ids(TABLE.worst(metric="faithfulness")) == "cbda"
    assert ids(TABLE.worst(3)) == "cdb"
    assert ids(TABLE.failures(0.5)) == "cd"
    assert ids(TABLE.failures({"relevance": 0.75})) == "ad"
    assert ids(TABLE.failures({"faithfulness": 0.5})) == "c"
    assert all(result.comparison is None for each in TABLE.rows for result in each.results.values())


def test_the_worst_is_the_highest_where_lower_is_better() -> None:
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


def test_what_makes_no_sense_of_a_table_is_an_error() -> None:
    for bounds, message in (({}, "give min= or max="), ({"max": 0.5}, "whose lower scores are better; give min=")):
        with pytest.raises(ValueError, match=message):
            TABLE.failures(**bounds)
    with pytest.raises(ValueError, match="there is no metric whose higher scores are better; give max="):
        Evaluation(metrics=("harm",), rows=(), better={"harm": "lower"}).failures(0.5)
    worst, failures = lambda name: TABLE.worst(metric=name), lambda name: TABLE.failures({name: 1})
    for look in (TABLE.mean, TABLE.scores, worst, failures):
        with pytest.raises(KeyError, match="'fairness' was not evaluated; there are faithfulness, relevance"):
            look("fairness")


def test_a_column_is_found_by_any_name_of_its_metric() -> None:
    assert TABLE.scores("Faithfulness") == TABLE.scores("faithfulness")
    assert TABLE.overall({"Relevance": 1}) == TABLE.mean("Relevance") == 0.5625
    assert TABLE.better_of("FaithfulnessMetric") == "higher"
    assert TABLE.failures({"Relevance": 1}) == TABLE.failures({"relevance": 1})


def test_the_files_say_all_of_it(tmp_path: Path) -> None:
    text = TABLE.to_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_bytes().decode() == text
    first, *rest = text.splitlines()
    assert (first, rest[2]) == ("id,user_input,response,faithfulness,relevance,unscored", "c,,Answer c.,,1.0,no claims")
    text = TABLE.to_json(tmp_path / "table.json")
    assert (tmp_path / "table.json").read_text(encoding="utf-8") == text
    read = json.loads(text)
    assert (read["metrics"], read["better"]) == (list(METRICS), dict.fromkeys(METRICS, "higher"))
    reasons = {
        "reasons": {"relevance": "1.0"},
        "judges": {"relevance": None},
        "unscored": {"faithfulness": "no claims"},
    }
    found = {"sample": {"id": "c", "response": "Answer c."}, "scores": {"relevance": 1.0}, "vacuous": []}
    assert read["rows"][2] == reasons | found


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((date(2026, 1, 2), "2026-01-02"), (float("nan"), None)),
        (("x", {"y": float("inf"), 3: "\ud800"}), ["x", {"y": None, "3": "\ud800"}]),
        *((np.int64(3), 3), (np.float32(0.5), 0.5), (np.float64("nan"), None), (np.bool_(1), True)),
        *((np.array([1, 2]), [1, 2]), (b"bytes", "b'bytes'"), (10**5000, hex(10**5000)), ("größer", "größer")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_json_takes_any_metadata(value: object, written: object) -> None:
    rows = (Row(sample=Sample(response="So.", metadata={"value": value})),)
    read = json.loads(Evaluation(metrics=("relevance",), rows=rows).to_json())
    assert read["rows"][0]["sample"]["metadata"] == {"value": written}


def test_json_writes_the_rest_where_a_value_has_no_end_or_no_text() -> None:
    endless: dict[str, object] = {}
    endless["self"] = endless
    metadata = {"endless": endless, "unspeakable": Unspeakable(), "last": "here"}
    table = Evaluation(metrics=("relevance",), rows=(Row(sample=Sample(response="So.", metadata=metadata)),))
    read = json.loads(table.to_json())["rows"][0]["sample"]["metadata"]
    assert (str(read["endless"]).count("..."), read["last"]) == (1, "here")
    assert "Unspeakable object at" in read["unspeakable"]
    assert table.to_pandas()["metadata"][0] == metadata


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"])
def test_csv_holds_no_formulas(start: str) -> None:
    text = f"{start}1+1"
    sample = Sample(id=text, user_input=text, response=text)
    results = {"relevance": MetricResult(-0.5, metric="relevance")}
    rows = (Row(sample=sample, results=results, unscored={"faithfulness": text}),)
    table = Evaluation(metrics=("relevance", "faithfulness"), rows=rows)
    _, cells = csv.reader(io.StringIO(table.to_csv(), newline=""))
    assert cells == [f"'{text}", f"'{text}", f"'{text}", "-0.5", "", f"'{text}"]


def test_a_data_frame_has_samples_and_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = TABLE.to_pandas()
    assert [list(frame[name]) for name in ("id", "relevance")] == [["a", "b", "c", "d"], [0.5, 0.75, 1.0, 0.0]]
    assert list(frame["faithfulness"].isna()) == [False, False, True, False]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RagMetricsError, match=r'pip install "pytest-ragmetrics\[pandas\]"'):
        TABLE.to_pandas()


def test_it_prints_as_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert str(TABLE).splitlines() == [
        "             faithfulness  relevance",
        "mean                 0.75       0.56",
        "in the mean        3 of 4     4 of 4",
        "unscored                1          0",
        "c                unscored       1.00",
        "d                    0.75       0.00",
        "b                    0.50       0.75",
        "a                    1.00       0.50",
        "faithfulness: unscored; the first: no claims",
    ]
    nothing = Row(sample=Sample(), results={"fit": MetricResult(1.0, metric="fit", vacuous=True)})
    hostile = Sample(id="<q\x1b[1m1>", user_input="Why? " * 99)
    asked = Row(sample=hostile, results={"fit": MetricResult(0.5, metric="fit")})
    table = Evaluation(metrics=("fit",), rows=(nothing, *[asked] * 12))
    long = str(table)
    assert long.splitlines()[-1].split() == ["...", "and", "3", "more"]
    assert "vacuous" in str(Evaluation(metrics=("fit",), rows=(nothing,)))
    assert max(map(len, long.splitlines())) == 60
    assert "\x1b" not in long
    assert "0.50" in long
    monkeypatch.setenv("COLUMNS", "12")
    assert max(map(len, str(TABLE).splitlines()[:-1])) <= 12
    assert len(str(NOTHING).splitlines()) == 2
    # A notebook shows the same.
    page = TABLE._repr_html_()
    assert page.startswith("<table><thead><tr><th></th><th>faithfulness</th><th>relevance</th></tr></thead><tbody>")
    assert "<tr><td>c</td><td>unscored</td><td>1.00</td></tr>" in page
    assert page.endswith("</table><p>faithfulness: unscored; the first: no claims</p>")
    assert "<td>&lt;q" in table._repr_html_()


EMPTY = {"vacuous": True}


@pytest.mark.parametrize(
    ("rows", "counts", "told"),
    [
        ([{}, {}], ["mean of 2 rows 1.00"], "fit 1"),
        ([{}, None], ["mean 1.00", "in the mean 1 of 2", "unscored 1"], "fit 1 (1 unscored)"),
        ([None, None], ["mean -", "in the mean 0 of 2", "unscored 2"], "fit - (2 unscored)"),
        ([{}, EMPTY], ["mean 1.00", "in the mean 1 of 2", "nothing to check 1"], "fit 1 (1 nothing to check)"),
        (
            [EMPTY, None, {}],
            ["mean 1.00", "in the mean 1 of 3", "unscored 1", "nothing to check 1"],
            "fit 1 (1 unscored, 1 nothing to check)",
        ),
    ],
)
def test_it_says_how_many_rows_are_in_a_mean(rows: list[dict[str, Any] | None], counts: list[str], told: str) -> None:
    unscored = Row(sample=Sample(), unscored={"fit": "fit: <no> reply\nat all"})
    made = [fields if fields is None else {"fit": MetricResult(1.0, metric="fit", **fields)} for fields in rows]
    whole = [unscored if results is None else Row(sample=Sample(), results=results) for results in made]
    found = Evaluation(metrics=("fit",), rows=tuple(whole))
    head, *lines = (" ".join(line.split()) for line in str(found).splitlines())
    assert (head, lines[: len(counts)]) == ("fit", counts)
    assert repr(found) == f"<Evaluation of {len(rows)} rows: {told}>"
    assert repr(replace(found, rows=found.rows[:1])).startswith("<Evaluation of 1 row: fit ")
    assert repr(replace(found, rows=())) == "<Evaluation of 0 rows: fit ->"
    page = found._repr_html_()
    for line in counts[1:]:
        word, number = re.findall(r"(.*?) (\d.*)", line)[0]
        assert f"<td>{word}</td><td>{number}</td>" in page
    assert ("fit: unscored; the first: <no> reply at all" == lines[-1]) is (None in rows)
    assert ("<p>fit: unscored; the first: &lt;no&gt; reply at all</p>" in page) is (None in rows)
