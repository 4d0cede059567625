"""The last runs of a history as a baseline: what files keep, which runs these are, and that gates decide the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.plugin.gates.decide import GateDecision
from pytest_ragmetrics.report.earlier import past_document, past_runs
from pytest_ragmetrics.report.history import history_run, read_history, write_history
from pytest_ragmetrics.runs.records import Document, Record, TestRecord
from pytest_ragmetrics.runs.tables import Baseline
from tests.documents import document, gate, gate_of, record, row
from tests.histories import kept
from tests.tables import evaluate_gate

GATE = gate_of("faithfulness", regression=True)


def named(name: str, *records: Record, **fields: Any) -> TestRecord:
    return row(name, *records, file="t.py", **fields)


def scored(score: float | None, metric: str = "faithfulness", *, of: dict[str, Any] | None = None, **by: Any) -> Record:
    sample = {"response": "So.", **(of or {})}
    return record(metric, score, at_least=None, outcome="measured", sample=sample, **by)


def run_of(day: int, *scores: float | None, branch: str = "main", **fields: Any) -> Document:
    """Return a run whose rows are known by all that a row may be known by."""
    judge: dict[str, Any] = {"judge": "openai:one", "rule": "1f/2e", **fields}
    rows: list[TestRecord] = []
    for at, score in enumerate(scores):
        rows += [
            named(f"t[q{at}]", scored(score, of={"id": f"q{at}", "user_input": "What?"}, **judge)),
            named(f"t[asks{at}]", scored(score, of={"user_input": f"What is {at}?"}, **judge)),
            named(f"t[p{at}-en]", scored(score, of={"id": f"p{at}"}, **judge)),
            *(
                named(f"t[a{at}-answer{k}]", scored(score, of={"id": f"a{at}", "metadata": {"answer": k}}, **judge))
                for k in (1, 2)
            ),
            named(f"t[two{at}]", *(scored(score, of={"id": f"{at}-{k}"}, **judge) for k in (1, 2))),
            named(f"t[none{at}]", scored(score, of={"response": f"It is {at}."}, **judge)),
        ]
    made = document(*rows)
    return replace(made, run=replace(made.run, started=f"2026-11-{day:02}T02:00:00Z", branch=branch))


def decided(now: Document, before: Baseline) -> GateDecision:
    tests = {test.id: test for test in now.tests if test.gate is None}
    return evaluate_gate(GATE, tests, function="t.py::t", baseline=before)


@pytest.mark.parametrize(
    ("runs", "now"),
    [
        ([[1.0, 2 / 3, 1 / 3, 1.0, 0.0], [1.0, 2 / 3, 1 / 3, 1.0, 1 / 7]], [1.0, 2 / 3, 1 / 3, 0.5, 0.0]),
        ([[1.0] * 5, [1.0, 1.0, 1.0, 1.0, None]], [1.0, 0.0, 0.0, 0.0, 0.0]),
        ([[1.0] * 5], [1.0] * 5),
    ],
)
def test_a_gate_decides_as_on_the_files_of_the_runs(
    runs: list[list[float | None]], now: list[float | None], tmp_path: Path
) -> None:
    files = [run_of(20 + day, *scores) for day, scores in enumerate(runs)]
    for each in files:
        write_history(tmp_path, history_run(each))
    found = past_runs(tmp_path, last=5)
    assert found.baseline is not None
    today = run_of(26, *now)
    whole = decided(today, replace(found.baseline, runs=tuple(files)))
    kept_whole = decided(today, found.baseline)
    assert kept_whole.text == whole.text
    assert replace(kept_whole.record, value=None, regression=None) == replace(whole.record, value=None, regression=None)
    assert whole.record.n == 7 * len(now)


def test_a_history_says_who_judged_what_and_what_had_nothing_to_check(tmp_path: Path) -> None:
    judged = [named(f"t[{at}]", scored(1.0, judge="openai:one", rule="1f/2e", noun="claim")) for at in range(3)]
    other = named("other", scored(0.5, judge="local", better="lower", scale=(0.0, 4.0)))
    several = named("several", scored(0.5, judge="local"), scored(0.75, judge="house"), scored(1.0, "b", vacuous=True))
    run = document(
        *judged,
        named("second", scored(None)),
        other,
        several,
        named("t[gate-mean]", gate=gate()),
        named("t[gate-b]", gate=gate(outcome="skipped")),
    )
    write_history(tmp_path, history_run(run))
    (back,) = read_history(tmp_path, last=1).runs
    assert back == history_run(run)
    found = {test.id.removeprefix("t.py::"): test for test in past_document(back).tests}
    fields = ("metric", "score", "judge", "rule", "noun", "better", "scale", "vacuous", "outcome")

    def told(name: str) -> list[tuple[Any, ...]]:
        return [tuple(getattr(record, field) for field in fields) for record in found[name].records]

    one = ("faithfulness", 1.0, "openai:one", "1f/2e", "claim", "higher", (0.0, 1.0), False, "measured")
    assert told("t[0]") == told("t[1]") == [one]
    assert told("second") == [("faithfulness", None, *one[2:8], "unscored")]
    assert told("other") == [
        ("faithfulness", 0.5, "local", None, other.records[0].noun, "lower", (0.0, 4.0), False, "measured")
    ]
    rest = (None, other.records[0].noun, "higher", (0.0, 1.0))
    assert told("several") == [
        ("faithfulness", 0.5, "house, local", *rest, False, "measured"),
        ("faithfulness", 0.75, "house, local", *rest, False, "measured"),
        ("b", 1.0, None, *rest, True, "measured"),
    ]
    assert found["t[gate-mean]"].gate == gate()
    assert "t[gate-b]" not in found


def test_a_file_of_an_early_version_pairs_by_its_tests(tmp_path: Path) -> None:
    before, today = run_of(20, *[1.0] * 5), run_of(26, *[0.0] * 5)
    file = write_history(tmp_path, history_run(before))
    data = json.loads(file.read_text("utf-8"))
    assert data.pop("rules")
    for test in data["tests"]:
        test.pop("rows", None)
    file.write_text(json.dumps(data), "utf-8")
    found = past_runs(tmp_path, last=5)
    assert found.baseline is not None
    assert decided(today, found.baseline).record.outcome == "failed"


def test_files_grow_by_less_than_a_third(tmp_path: Path) -> None:
    question = "How long does a refund take?"
    rows = (
        named(f"test_grounded[refund-{at}]", scored(0.95, of={"id": f"refund-{at}", "user_input": question + str(at)}))
        for at in range(200)
    )
    file = write_history(tmp_path, history_run(document(*rows)))
    data = json.loads(file.read_text("utf-8"))
    for test in data["tests"]:
        assert [*test.pop("rows")[0]] == ["question"]
    data.pop("rules")
    assert file.stat().st_size < 1.33 * len(json.dumps(data))


@pytest.mark.parametrize(
    ("branches", "asked", "days", "said"),
    [
        (
            ["main", "fix", "main", "main"],
            {"last": 2},
            [3, 4],
            "2 runs of main, 2026-10-03 to 2026-10-04, in {folder}",
        ),
        (["master", "fix"], {"last": 5}, [1], "1 run of master"),
        (["develop", "fix"], {"last": 5}, [2], "1 run of fix"),
        (["main", "fix"], {"last": 5, "branch": "fix"}, [2], "1 run of fix"),
        (["main", "main"], {"last": 5, "branch": "none"}, [], "there is no run of none in {folder} yet"),
        ([], {"last": 5}, [], "there is no run in {folder} yet"),
        (["main"] * 4, {"last": 2, "before": [3]}, [1, 2], "2 runs of main"),
        (["main"], {"last": 2, "before": [1]}, [], "there is no run in {folder} yet"),
    ],
)
def test_the_last_runs_are_those_of_a_branch(
    branches: list[str], asked: dict[str, Any], days: list[int], said: str, tmp_path: Path
) -> None:
    for day, branch in enumerate(branches, 1):
        write_history(tmp_path, kept(day, {"test_a": (0.9, f"answer {day}")}, branch=branch))
    (tmp_path / "notes.md").touch()
    before = [kept(day, {}).run for day in asked.pop("before", [])]
    found = past_runs(tmp_path, before=before, **asked)
    runs = () if found.baseline is None else found.baseline.runs
    assert [int(run.run.started[8:10]) for run in runs] == days
    assert found.lines[0].startswith("baseline: " + said.format(folder=tmp_path))
    assert len(found.lines) == (2 if days else 1)
    assert past_runs(tmp_path / "absent", last=5).baseline is None


@pytest.mark.parametrize(
    ("parts", "days"),
    [
        ([3, 4, 5, 6, 7], [1, 2, 6, 7]),  # a developer who tries single rows on main
        ([1, 2, 3, 4, 5, 6, 7], [6, 7]),  # no whole run at all: the latest say why
        ([2, 4], [3, 4, 5, 6, 7][-2:]),
    ],
)
def test_runs_of_a_part_displace_no_whole_run(parts: list[int], days: list[int], tmp_path: Path) -> None:
    for day in range(1, 8):
        write_history(tmp_path, kept(day, {"test_a": day / 10}, partial="-k" if day in parts else ""))
    found = past_runs(tmp_path, last=2)
    assert found.baseline is not None
    assert [int(run.run.started[8:10]) for run in found.baseline.runs] == days


def test_a_run_of_a_part_counts_where_it_has_a_whole_set(tmp_path: Path) -> None:
    for day in (20, 21, 22):
        made = run_of(day, 1.0, day / 30)
        rows = named("t[gate-faithfulness]", gate=replace(gate(), total=len(made.tests) + (day == 22)))
        write_history(
            tmp_path, history_run(replace(made, run=replace(made.run, partial="-k"), tests=(*made.tests, rows)))
        )
    found = past_runs(tmp_path, last=1)
    assert found.baseline is not None
    assert [int(run.run.started[8:10]) for run in found.baseline.runs] == [21, 22]


def test_runs_of_the_same_answers_and_scores_count_once(tmp_path: Path) -> None:
    for day, answer, score in ((1, "a", 0.9), (2, "b", 0.9), (3, "a", 0.9), (4, "a", 0.8), (5, "b", 0.9)):
        write_history(tmp_path, kept(day, {"test_a": (score, answer)}))
    found = past_runs(tmp_path, last=5)
    assert found.baseline is not None
    assert [int(run.run.started[8:10]) for run in found.baseline.runs] == [3, 4, 5]
    said = "2026-10-05, and 2 runs of the same answers and scores, which count once, in "
    assert found.lines[0].startswith(f"baseline: 3 runs of main, 2026-10-03 to {said}")
