"""A baseline of several runs: which of them count for a row, which are left out and named, and what that finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import Evaluation, assert_no_regression, assert_not_worse
from pytest_ragmetrics.plugin.gates.decide import GateDecision
from pytest_ragmetrics.runs.compare import placed_records
from pytest_ragmetrics.runs.records import Document, Judging, Record, render_json
from pytest_ragmetrics.runs.tables import Baseline, EarlierRun, compare_metric
from pytest_ragmetrics.runs.wording.comparisons import left_out_text
from pytest_ragmetrics.runs.wording.runs import gate_line
from tests.documents import document, gate_of, record, row
from tests.tables import evaluate_gate, table

GATE = gate_of("faithfulness", regression=True)
GOOD, BAD = [1.0] * 10, [0.0] * 10
RULE = {"faithfulness": Judging(judge="openai:one", prompts={"verify": "1f"}, definition={})}
OTHER = {"faithfulness": Judging(judge="openai:one", prompts={"verify": "2e"}, definition={})}


def run_of(day: int, scores: Sequence[float | None], *, of: Mapping[str, Any] | None = None, **fields: Any) -> Document:
    """Return the run of a day of November; ``of`` are fields of its records, ``fields`` those of the run."""
    records = (
        record("faithfulness", score, at_least=None, outcome="measured", sample={"id": f"q{at}"}, **of or {})
        for at, score in enumerate(scores)
    )
    made = document(*(row(f"t[q{at}]", each, file="t.py") for at, each in enumerate(records)))
    started = f"2026-11-{day:02}T02:00:00Z"
    return replace(made, run=replace(made.run, **{"started": started, "branch": "main", "judging": RULE, **fields}))


def decided(now: Document, *before: Document, is_history: bool = False, **of: Any) -> GateDecision:
    tests = {test.id: test for test in now.tests}
    baseline = Baseline(runs=before, is_history=is_history) if before else None
    return evaluate_gate(GATE, tests, function="t.py::t", baseline=baseline, judging=RULE, **of)


def test_a_row_is_compared_with_all_runs_that_have_it() -> None:
    """Nine of ten passes before and one of two now: by each run alone nothing is shown."""
    before = [run_of(day, [*GOOD[:8], float(day % 4 > 0), 1.0]) for day in range(20, 25)]
    now = run_of(26, [*GOOD[:5], *BAD[:5]])
    found = decided(now, *before)
    assert (found.record.outcome, found.record.n) == ("failed", 10)
    shown = "if nothing had changed, so large a drop comes in 0.0386 % of runs (limit 5 %)"
    assert found.text.splitlines()[:2] == [
        f"faithfulness 0.96 -> 0.50: 5 of 10 rows got worse, 0 better; {shown}",
        "  baseline: 5 runs of main, 2026-11-20 to 2026-11-24",
    ]
    assert "    -0.60  0.60 -> 0.00  q8 (3 of 5 before)" in found.text
    assert "faithfulness against 5 runs of main, 2026-11-20 to 2026-11-24 0.960 -> 0.500" in gate_line(found.record)
    (alone,) = (decided(now, before[0]),)
    assert (alone.record.outcome, alone.record.regression and alone.record.regression.against) == ("passed", "")


def test_what_cannot_be_compared_is_left_out_and_named() -> None:
    cases: list[tuple[Document, str]] = [
        (run_of(20, BAD, of={"judge": "openai:two"}), "2026-11-20 02:00 was judged by openai:two"),
        (run_of(21, BAD, partial="-k"), "2026-11-21 02:00 is not whole (-k)"),
        (run_of(22, BAD, judging=OTHER), "2026-11-22 02:00 ran before the prompt of verify changed"),
        (run_of(22, BAD, of={"rule": "1f/1f"}), "2026-11-22 02:00 ran before its code changed"),
        (run_of(23, BAD, of={"better": "lower"}), "2026-11-23 02:00 takes lower scores for better"),
        (run_of(23, BAD, of={"noun": "claim"}), ""),
        (run_of(24, BAD * 2), "2026-11-24 02:00 has 20 rows, of which 10 can be compared, fewer than 80 %"),
        (run_of(24, BAD[:4]), "2026-11-24 02:00 has few rows: 4 rows are compared, and 5 are the least"),
        (run_of(25, []), "2026-11-25 02:00 has no scores of it"),
    ]
    now, fine = run_of(26, GOOD, of={"judge": "openai:one", "rule": "2e/1f"}), run_of(19, GOOD)
    for apart, why in cases:
        found = decided(now, fine, apart).record.regression
        assert found is not None
        assert (found.runs, found.before, found.left_out) == ((1, 1.0, (why,)) if why else (2, 0.5, ()))
        if why and apart.tests:
            alone = decided(now, apart, apart)
            assert alone.record.outcome == "inconclusive", why
            said = f"no run can be compared, 2 left out: {why}, {why}"
            assert said in alone.text
            assert said in gate_line(alone.record)
            assert "the next run of the whole set as it is now, of 5 rows or more, makes a baseline" in alone.text
    several = decided(now, fine, *(apart for apart, why in cases if why))
    assert (several.record.outcome, several.record.regression and several.record.regression.runs) == ("passed", 1)
    assert "  baseline: 1 run of main, 2026-11-19; 8 left out: 2026-11-20 02:00 was judged by openai" in several.text
    assert "runs 8 left out: " in gate_line(several.record)
    assert left_out_text("abcd") == "4 left out: a, b, c, 1 more"


Columns = tuple[tuple[float, ...], tuple[float, ...]]


def columns(now: Document, *before: Document) -> dict[str, Columns]:
    """Return the scores before and now that are compared in each row."""
    there = [EarlierRun(records={"faithfulness": placed_records(run.tests)}, name=run.run.started) for run in before]
    found = compare_metric("faithfulness", placed_records(now.tests), *there)
    return {each.id: (each.scores.before, each.scores.now) for each in found.rows}


def with_rows(run: Document, *added: Record) -> Document:
    tests = (row(f"t[{at}]", each, file="t.py") for at, each in enumerate(added))
    return replace(run, tests=(*run.tests, *tests))


def test_a_row_counts_in_the_runs_that_have_it_and_ask_the_same() -> None:
    def last(score: float, question: str, **fields: Any) -> Record:
        sample = {"id": "last", "user_input": question}
        return record("faithfulness", score, at_least=None, outcome="measured", sample=sample, **fields)

    nine = GOOD[:9]
    before = [
        run_of(20, nine),
        with_rows(run_of(21, nine), last(1.0, "Who?")),
        with_rows(run_of(22, nine), last(1.0, "Why?", vacuous=True)),
        with_rows(run_of(23, [None, *nine[1:]]), last(0.5, " Why? ")),
    ]
    found = columns(with_rows(run_of(26, nine), last(0.0, "Why?")), *before)
    assert found.pop("last") == ((0.5,), (0.0,))
    assert found.pop("q0") == ((1.0, 1.0, 1.0), (1.0,))
    assert {*found.values()} == {((1.0,) * 4, (1.0,))}
    asks_anew = decided(with_rows(run_of(26, nine), last(0.0, "Where?")), *before[1:3]).record.regression
    assert asks_anew is not None
    assert (asks_anew.rewritten, asks_anew.new, asks_anew.gone) == (1, 0, 0)


def answers(*scores: float | None, **fields: Any) -> list[Record]:
    """Return the records of as many answers to one row."""
    numbers = [None] if len(scores) == 1 else range(1, len(scores) + 1)
    samples = [{"id": "many", "metadata": {} if number is None else {"answer": number}} for number in numbers]
    made = partial(record, "faithfulness", at_least=None, outcome="measured", **fields)
    return [made(score=score, sample=sample) for score, sample in zip(scores, samples, strict=True)]


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ([(1.0, 0.0, 1.0)], (0.0,), ((1.0, 0.0, 1.0), (0.0,))),
        ([(1.0,)], (0.0, 1.0, 0.0), ((1.0,), (0.0, 1.0, 0.0))),
        ([(1.0, 0.5), (0.25, None)], (0.0, None), ((1.0, 0.5, 0.25), (0.0,))),
    ],
)
def test_several_answers_to_a_row_count_each(
    before: Sequence[Sequence[float | None]], now: Sequence[float | None], found: Columns
) -> None:
    rest = GOOD[:9]
    runs = [with_rows(run_of(20 + day, rest), *answers(*scores)) for day, scores in enumerate(before)]
    today = with_rows(run_of(26, rest), *answers(*now))
    assert columns(today, *runs)["many"] == found
    backwards = [replace(run, tests=run.tests[::-1]) for run in runs]
    assert {*columns(replace(today, tests=today.tests[::-1]), *backwards)["many"][0]} == {*found[0]}


def test_rows_that_fall_silent_are_compared_with_all_runs() -> None:
    silent = run_of(26, GOOD[:8], of={"vacuous": True})
    now = replace(silent, tests=(*silent.tests, *run_of(26, GOOD).tests[8:]))
    before = [run_of(day, GOOD) for day in (20, 21, 22)]
    found = decided(now, *before).record
    assert found.outcome == "failed"
    assert found.regression is not None
    assert found.regression.silence == "8 of 10 had nothing to check; the baseline had 0"


def test_a_gate_newer_than_a_history_is_skipped() -> None:
    now = run_of(26, GOOD)
    found = decided(now, document(), is_history=True)
    assert (found.record.outcome, found.text) == (
        "skipped",
        "no run of the history has scores of faithfulness in this set yet",
    )
    assert decided(now, document()).record.outcome == "failed"
    assert decided(now).text.startswith("there is no baseline to compare with: give --rag-baseline=FILE, which ")


def test_an_assertion_takes_a_list_of_runs(tmp_path: Path) -> None:
    """They are files of runs, files of tables and tables."""
    for name, scores in (("a", [*GOOD[:9], 0.0]), ("b", GOOD)):
        (tmp_path / f"{name}.json").write_text(render_json(run_of(20, scores)), "utf-8")
    good, now = table(GOOD, judge=None), table([*GOOD[:4], *BAD[:6]], judge=None)
    good.to_json(tmp_path / "table.json")
    runs: list[str | Path | Evaluation] = [tmp_path / "a.json", str(tmp_path / "b.json"), tmp_path / "table.json", good]
    with pytest.raises(AssertionError) as error:
        assert_no_regression(now, runs)
    text = str(error.value)
    assert text.startswith("faithfulness 0.97 -> 0.40: 6 of 10 rows got worse, 0 better; ")
    assert "\n  baseline: 4 runs\n" in text
    assert "  -0.75  0.75 -> 0.00  q9 (3 of 4 before)" in text
    assert assert_no_regression(good, runs)["faithfulness"].rows[-1].scores.before == (0.0, 1.0, 1.0, 1.0)
    difference = assert_not_worse(now, runs, margin=1.0)["faithfulness"].difference
    assert difference is not None
    assert (difference.before, difference.after) == (0.975, 0.4)


def test_an_assertion_without_a_run_left_is_inconclusive() -> None:
    judged, few = table(GOOD, judge="openai:new"), table(GOOD[:4], judge="openai:new")
    other = table(GOOD, judge="openai:old")
    with pytest.raises(AssertionError) as left:
        assert_no_regression(judged, [other, few])
    why = "2 left out: run 1 was judged by openai:old, run 2 has few rows: 4 rows are compared, and 5 are the least"
    assert str(left.value).splitlines()[:3] == [
        f"faithfulness 1.00 -> 1.00: inconclusive: no run can be compared, {why}",
        "  the next run of the whole set as it is now, of 5 rows or more, makes a baseline",
        "  baseline: 1 run",
    ]
    nothing = assert_no_regression(judged, [other], inconclusive="pass")["faithfulness"]
    assert (nothing.rows, nothing.runs) == ((), 0)
    assert str(nothing).startswith("faithfulness: inconclusive: no run can be compared, 1 left out: run 1 was judged")
    with pytest.raises(ValueError, match="baseline is empty: give one earlier run, or a list of several"):
        assert_no_regression(judged, [])


def test_the_figures_of_one_run_are_not_those_of_several() -> None:
    """The sign of a change from the mean of several scores cannot be flipped."""
    now = run_of(26, [*GOOD[:7], 0.0, 0.0, 0.0])
    one, two = decided(now, run_of(20, GOOD), verbose=True), decided(now, *[run_of(20, GOOD)] * 2, verbose=True)
    assert ["sign flips" in each.text for each in (one, two)] == [True, False]
    assert "McNemar" not in two.text
