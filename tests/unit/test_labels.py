"""Labels of a run: the order to give them in, the file that takes them, and what is made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics import Sample
from pytest_ragmetrics.core.codec import encodable
from pytest_ragmetrics.core.errors import DatasetError, RagMetricsError
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.datasets import read_dataset
from pytest_ragmetrics.evaluation.calibration.calibrate import calibrate
from pytest_ragmetrics.evaluation.calibration.labels import (
    Labelling,
    answer_key,
    drawn,
    labelling_of,
    line,
    rest_of_line,
)
from pytest_ragmetrics.evaluation.calibration.queue import QueuedRow, label_file, label_queue, labelled_mean
from pytest_ragmetrics.evaluation.calibration.result import CalibrationError
from pytest_ragmetrics.evaluation.calibration.text import calibration_lines
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.runs.records import Document, Record
from pytest_ragmetrics.stats.corrected import prediction_powered_mean
from pytest_ragmetrics.stats.sequential import uniform
from tests.documents import HOSTILE, document, record, row

GRADED = (0.0, 0.1, 0.3, 0.5, 0.8, 0.9, 0.95, 1.0)


def run(scores: Sequence[float | None], metric: str = "faithfulness") -> Document:
    rows = []
    for place, score in enumerate(scores):
        made = record(metric, score, outcome="unscored" if score is None else "measured", threshold=None)
        sample = Sample(user_input=f"Question {place}?", response=f"{score} {place}", retrieved_contexts=["Here."])
        rows.append(row(f"test[{place}]", replace(made, sample=sample, vacuous=False)))
    return document(*rows)


def queue_of(scores: Sequence[float | None] = GRADED, **options: Any) -> list[QueuedRow]:
    return label_queue(run(scores), "faithfulness", **options)


def test_the_order_is_that_of_random_numbers() -> None:
    queue, made = queue_of(GRADED * 5), run(GRADED * 5)
    numbers = [uniform("0", answer_key(row_.record.sample)) for row_ in queue]
    assert numbers == sorted(numbers)
    assert [row_.labelling.place for row_ in queue] == [*range(1, len(queue) + 1)]
    tests = list(made.tests)
    np.random.default_rng(4).shuffle(tests)
    assert label_queue(replace(made, tests=tuple(tests)), "faithfulness") == queue
    assert queue_of(GRADED * 5, seed=1) != queue


def test_a_file_of_an_earlier_version_goes_on_if_its_rows_had_equal_chances(tmp_path: Path) -> None:
    """Such a line says more of the order; one of a row with another chance would make the mean wrong."""
    queue, file = queue_of(), tmp_path / "labelled.jsonl"
    more = {"order": "random", "weight": 1.0, "priority": 1.3, "following": 1.2}
    file.write_text(_changed(line(1, queue[0].rest), **more) + "\n", encoding="utf-8")
    with label_file(file, queue) as labels:
        assert labels.labels == {1: 1}
    file.write_text(_changed(line(1, queue[0].rest), **more | {"weight": 0.7}) + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="drew this row by priority: label the run again"):
        calibrate(Written(), file, threshold=0.5)


def test_scores_of_another_scale_are_brought_to_shares() -> None:
    own = label_queue(run([1.0, 3.0, 5.0], "house_stars"), "house_stars")
    assert sorted(row_.share for row_ in own) == [0.0, 0.5, 1.0]
    assert [row_.share for row_ in label_queue(run([7.0], "house_stars"), "house_stars")] == [0.0]


def test_an_answer_is_queued_once_and_only_with_a_score_that_counts() -> None:
    made = run([0.5, None, 0.7])
    first = made.tests[0].records[0]
    again = replace(first, sample=replace(first.sample, id="other name"))
    vacuous = replace(first, sample=replace(first.sample, response="nothing"), vacuous=True)
    named = [replace(first, sample=replace(first.sample, id="q", response=text)) for text in ("one", "two")]
    made = replace(made, tests=(*made.tests, row("more", again, vacuous, *named)))
    queue = label_queue(made, "faithfulness")
    assert sorted(row_.record.sample.response or "" for row_ in queue) == ["0.5 0", "0.7 2", "one", "two"]
    assert sorted(str(row_.record.sample.id) for row_ in queue) == ["None", "None", "None", "q"]


@pytest.mark.parametrize(
    ("made", "metric", "said"),
    [
        (run([0.5]), "faithfulnes", "this run has no scores of faithfulnes; did you mean faithfulness?"),
        (run([0.5]), "x", "this run has no scores of x; it has faithfulness"),
        (run([None]), "faithfulness", "faithfulness has no score in this run with anything to check"),
        (document(), "faithfulness", "this run has no scores, and so nothing to label"),
    ],
)
def test_a_run_without_such_scores_is_refused(made: Document, metric: str, said: str) -> None:
    with pytest.raises(CalibrationError, match=said.replace("?", r"\?")):
        label_queue(made, metric)


def test_labels_are_a_data_set_of_the_same_answers(tmp_path: Path) -> None:
    samples = [
        Sample(user_input=it, response=it[::-1], retrieved_contexts=[it, "a\u2028b"], metadata={"label": 7, "k": it})
        for it in (*HOSTILE, "Wie lange?", "多久？", "\u202eמתי")
    ]
    records = [replace(record("faithfulness", 0.5), sample=sample, vacuous=False) for sample in samples]
    queue = label_queue(document(row("test", *records)), "faithfulness")
    file = tmp_path / "labelled.jsonl"
    with label_file(file, queue) as labels:
        for place, row_ in enumerate(queue):
            labels.add(row_, (0, 1, None)[place % 3])
        assert labels.next() is None
    rows = read_dataset(file, base=tmp_path)
    expected = [(0, 1, None)[place % 3] for place in range(len(rows))]
    assert [row_.sample and row_.sample.metadata.get("label") for row_ in rows] == expected
    for read, row_ in zip(rows, queue, strict=True):
        assert read.sample is not None
        assert answer_key(read.sample) == answer_key(row_.record.sample)
        assert labelling_of(read.sample) == row_.labelling
        assert read.sample.metadata["k"] == encodable(row_.record.sample.metadata["k"])
    with label_file(file, queue) as labels:
        assert list(labels.labels.values()) == expected


def test_a_file_goes_on_where_it_ended(tmp_path: Path) -> None:
    queue, file = queue_of(), tmp_path / "deep" / "labelled.jsonl"
    with label_file(file, queue) as labels:
        assert not labels.undo()
        assert not file.exists()
        for label in (1, 0, None):
            following = labels.next()
            assert following is not None
            labels.add(following, label)
            assert file.read_text("utf-8").count("\n") == len(labels.labels)
    file.write_text(file.read_text("utf-8") + "\n", encoding="utf-8")
    with label_file(file, queue) as labels:
        assert labels.labels == {1: 1, 2: 0, 3: None}
        assert labels.undo()
        assert labels.next() == queue[2]
        labels.add(queue[2], 1)
    assert [json.loads(text)["label"] for text in file.read_text("utf-8").splitlines()] == [1, 0, 1]
    assert [path.name for path in file.parent.iterdir()] == ["labelled.jsonl"]


@pytest.mark.parametrize("kept", [1, 30, -2, -1])
def test_a_torn_line_is_mended(tmp_path: Path, kept: int) -> None:
    queue, file = queue_of(), tmp_path / "labelled.jsonl"
    lines = [f"{line(1, row_.rest)}\n" for row_ in queue[:2]]
    file.write_text(lines[0] + lines[1][:kept], encoding="utf-8")
    with label_file(file, queue) as labels:
        assert labels.labels == ({1: 1, 2: 1} if kept == -1 else {1: 1})
        for row_ in queue[len(labels.labels) : 3]:
            labels.add(row_, 0)
    found = [json.loads(text)["label"] for text in file.read_text("utf-8").splitlines()]
    assert found == ([1, 1, 0] if kept == -1 else [1, 0, 0])


def test_two_labellers_do_not_write_one_file(tmp_path: Path) -> None:
    queue, file = queue_of(), tmp_path / "labelled.jsonl"
    with label_file(file, queue) as labels:
        labels.add(queue[0], 1)
        with pytest.raises(CalibrationError, match="another ragmetrics label is writing it"), label_file(file, queue):
            pass
        labels.add(queue[1], 1)
    assert file.read_text("utf-8").count("\n") == 2


def _changed(text: str, **changes: object) -> str:
    data = json.loads(text)
    return json.dumps({**data, "labelling": {**data["labelling"], **changes}})


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda text: '{"response": "Yes.", "label": 1}', "jsonl:1: .*not written by ragmetrics label: name another"),
        (lambda text: _changed(text, metric="answer_relevancy"), "jsonl:1: .*of answer_relevancy, not of faithfulness"),
        (lambda text: _changed(text, seed=3), "jsonl:1: .*begun with --seed 3: go on with it"),
        (lambda text: _changed(text, run="2020"), "jsonl:1: .*of another run, of 2020, not of 2026"),
        (lambda text: _changed(text, place=99), "jsonl:1: .*of another run"),
        (lambda text: _changed(text, place=0), "jsonl:1: .*a place above 0"),
        (lambda text: _changed(text, place="much"), "jsonl:1: .*labelling.place must be a valid integer"),
        (lambda text: text.replace('"response": "', '"response": "Not '), "jsonl:1: .*of another run"),
        (lambda text: f"{text}\n{text}", "jsonl:2: .*has a label above"),
        (lambda text: text.replace('"label": 1', '"label": "perhaps"'), "jsonl:1: .*a label is a number from 0 to 1"),
        (lambda text: f"{{\n{text}", "jsonl:1: "),
        (lambda text: "My notes", "jsonl:1"),
        (lambda text: '{"response": "Ye', "jsonl:1"),
        (lambda text: "\ufeff\x00", "jsonl:1"),
    ],
)
def test_lines_of_something_else_are_refused(tmp_path: Path, write: Callable[[str], str], said: str) -> None:
    queue, file = queue_of(), tmp_path / "labelled.jsonl"
    text = write(line(1, queue[0].rest))
    for end in ("\n", ""):
        file.write_text(f"{text}{end}", encoding="utf-8")
        with pytest.raises(RagMetricsError, match=f"labelled.{said}"), label_file(file, queue):
            pass
        assert file.read_text("utf-8") == f"{text}{end}"


def test_labels_of_another_file_are_taken_up(tmp_path: Path) -> None:
    queue, file, other = queue_of(), tmp_path / "labelled.jsonl", tmp_path / "page.jsonl"
    with label_file(other, queue) as labels:
        for row_, label in zip(reversed(queue[:4]), (0, None, 1, 1), strict=True):
            labels.add(row_, label)
    with label_file(file, queue) as labels:
        labels.add(queue[0], 1)
        assert labels.take(other) == 3
        assert labels.labels == {1: 1, 2: 1, 3: None, 4: 0}
        assert labels.take(other) == 0
        labels.undo()
        labels.add(queue[3], 1)
        before = file.read_bytes()
        with pytest.raises(CalibrationError, match=r"in place 4 is bad there and good in .*labelled.jsonl"):
            labels.take(other)
        assert file.read_bytes() == before


def test_rows_before_the_first_that_has_no_line_were_drawn_by_chance() -> None:
    queue = [row_.labelling for row_ in queue_of(GRADED * 4)]
    assert drawn([None, None]) == [True, True]
    assert drawn([*queue[9::-1], queue[20], None]) == [True] * 10 + [False] * 2
    assert drawn(queue[1:3]) == [False, False]
    others = [replace(row_, metric="other") for row_ in queue[:5]]
    assert drawn([*queue[:10], *others]) == [True] * 15
    assert drawn([*queue[:10], *others[1:]]) == [True] * 10 + [False] * 4


class Written(Metric):
    name = "faithfulness"
    scale = (0.0, 1.0)

    def measure(self, sample: Sample) -> MetricResult:
        return MetricResult(float((sample.response or "").split()[0]), metric=self.name)


def table_of(records: Sequence[Record]) -> Evaluation:
    found = [MetricResult(made.score or 0.0, metric="faithfulness") for made in records]
    rows = [Row(sample=it.sample, results={"faithfulness": score}) for it, score in zip(records, found, strict=True)]
    return Evaluation(metrics=("faithfulness",), rows=tuple(rows))


def labelled(folder: Path, count: int) -> tuple[list[QueuedRow], dict[int, int | None], Path]:
    """Return a queue of 240 answers, some of them labelled at random by their score, and the file."""
    chance = np.random.default_rng(8)
    queue = queue_of(chance.choice(GRADED, 240).tolist())
    file = folder / "labelled.jsonl"
    with label_file(file, queue) as labels:
        for place, row_ in enumerate(queue[:count]):
            labels.add(row_, None if place % 20 == 7 else int(chance.random() < (row_.record.score or 0.0)))
        return queue, labels.labels, file


def test_a_mean_is_corrected_by_a_file_of_labels(tmp_path: Path) -> None:
    queue, labels, file = labelled(tmp_path, 90)
    table = table_of([row_.record for row_ in reversed(queue)])
    given = [labels.get(row_.labelling.place) for row_ in queue]
    expected = prediction_powered_mean([row_.share for row_ in queue], given)
    found = table.corrected_mean("faithfulness", labels=file)
    assert (found.estimate, found.low, found.high) == pytest.approx((expected.estimate, expected.low, expected.high))
    assert labelled_mean(queue, labels) == expected
    rows = [json.loads(text) for text in file.read_text("utf-8").splitlines()]
    assert table.corrected_mean("faithfulness", labels=rows) == found
    by_hand = {**queue[200].record.sample.to_mapping(), "label": 1}
    assert table.corrected_mean("faithfulness", labels=[*rows, by_hand]) == found
    assert table.corrected_mean("faithfulness", labels=file, threshold=0.5) != found


def test_labels_that_do_not_fit_a_table_are_refused(tmp_path: Path) -> None:
    queue, _, file = labelled(tmp_path, 30)
    table = table_of([row_.record for row_ in queue])
    other = table_of([replace(queue[0].record, sample=Sample(response="0.5 other"))])
    with pytest.raises(ValueError, match="no label is one of an answer in this table"):
        other.corrected_mean("faithfulness", labels=file)
    with pytest.raises(ValueError, match="give labels=, or what a calibration found, not both"):
        table.corrected_mean("faithfulness", labels=file, tpr=0.9, tnr=0.9, threshold=0.5)
    with pytest.raises(DatasetError, match="label"):
        table.corrected_mean("faithfulness", labels=[{"response": "0.5", "label": 7}])


def test_a_calibration_takes_the_labels_that_chance_has_drawn(tmp_path: Path) -> None:
    queue, labels, file = labelled(tmp_path, 120)
    found = calibrate(Written(), file, threshold=0.5)
    good = [row_ for row_ in queue[:120] if labels[row_.labelling.place] == 1]
    passed = sum((row_.record.score or 0.0) >= 0.5 for row_ in good)
    assert found.unlabelled == 6
    assert found.figures.agreement.tpr.estimate == pytest.approx(passed / len(good))
    by_hand = [*map(json.loads, file.read_text("utf-8").splitlines()), {"response": "0.9 by hand", "label": 0}]
    more = calibrate(Written(), by_hand, threshold=0.5)
    assert more.figures == found.figures
    assert "  not drawn by chance as the others, in no figure: 1 label" in calibration_lines(more)


def test_a_line_has_no_room_for_a_label_that_was_there() -> None:
    place = Labelling(metric="m", run="r", seed=0, place=1)
    rest = rest_of_line(Sample(response="Yes.", metadata={"label": 0, "labelling": {}}), place)
    assert json.loads(line(None, rest)).keys() == {"label", "response", "labelling"}
