"""Gates that stop when they are decided: what the rows decide, in which order they are asked, and how often wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from random import Random
from typing import Any

import pytest

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets import DatasetRow
from pytest_ragmetrics.evaluation.runner import Done, Score
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.metrics import Faithfulness, Metric, TokenF1
from pytest_ragmetrics.plugin.gates.decide import GateDecision
from pytest_ragmetrics.plugin.gates.gate import MarkedGate, gate_among
from pytest_ragmetrics.plugin.gates.merged import merged_gates
from pytest_ragmetrics.plugin.rows.drawn import BLOCK, DrawnRows
from pytest_ragmetrics.plugin.rows.jobs import RowJob
from pytest_ragmetrics.runs.records import TestRecord
from pytest_ragmetrics.runs.wording.runs import gate_line
from pytest_ragmetrics.stats.scores import ScoredRow
from pytest_ragmetrics.stats.stopping import Draw, DrawnSet, Rule, draw
from tests.documents import record
from tests.documents import row as one_test
from tests.tables import evaluate_gate, gated_set

STOP = {"confidence": 0.95, "stop_when_decided": True}
FAITHFUL = [Faithfulness()]


class Stars(Metric):
    name = "stars"
    scale = (1.0, 5.0)
    better = "lower"

    def measure(self, sample: Sample) -> MetricResult:
        return MetricResult(float(sample.response or 0), metric=self.name)


def scores(values: Sequence[float | None], *, vacuous: Collection[int] = ()) -> dict[str, dict[str, ScoredRow]]:
    rows = [ScoredRow(name=f"r{n}", score=value, vacuous=n in vacuous) for n, value in enumerate(values)]
    return {row.name: {"m": row} for row in rows}


def decided(rows: Mapping[str, Any], **rule: Any) -> tuple[str | None, int | None]:
    """Return what rows in their order decide, and after how many of them."""
    drawn = Draw(seed="s", sizes=(1,) * len(rows))
    found = DrawnSet(list(rows), drawn, [Rule(**{"metric": "m", "bound": 0.85, "alpha": 0.05, **rule})])
    for name, of_row in rows.items():
        found.note(name, of_row)
    return found.gates[0].outcome, found.gates[0].after


@pytest.mark.parametrize(
    ("values", "rule", "expected"),
    [
        *(([1.0] * 500, {}, ("passed", 28)), ([0.0] * 500, {}, ("failed", 10))),
        # A lower bound of single scores makes them pass or fail; the good end may be the low one.
        ([0.6] * 500, {"score_bound": 0.5}, ("passed", 28)),
        ([0.6] * 500, {"score_bound": 0.5, "vacuous": "count"}, ("passed", 27)),
        ([0.4] * 500, {"score_bound": 0.5}, ("failed", 10)),
        ([0.4] * 500, {"score_bound": 0.5, "better": "lower"}, ("passed", 28)),
        ([1.0] * 500, {"scale": (1.0, 5.0), "better": "lower", "bound": 1.6}, ("passed", 28)),
        ([5.0] * 500, {"scale": (1.0, 5.0), "bound": 4.4}, ("passed", 28)),
        ([5.0] * 500, {"scale": (1.0, 5.0), "better": "lower", "bound": 1.6}, ("failed", 10)),
        # Of scores beyond the scale nothing is known.
        ([1.0] * 5 + [1.5] + [1.0] * 494, {}, (None, None)),
        # All scores on the bound: exact at the end.
        ([0.85] * 100, {}, ("passed", 100)),
        # A row without a score is bad for a pass and good for a failure.
        *(([1.0] * 4 + [None] + [1.0] * 495, {}, ("passed", 41)), ([None] * 500, {}, (None, None))),
        ([None] * 20 + [0.0] * 180, {}, ("failed", 31)),
    ],
)
def test_rows_decide(values: list[float | None], rule: dict[str, Any], expected: tuple[str | None, int]) -> None:
    assert decided(scores(values), **rule) == expected


def test_vacuous_rows_decide_nothing() -> None:
    half = range(0, 500, 2)
    rows = scores([1.0] * 500, vacuous=half)
    assert decided(rows) == ("passed", 54)
    assert decided(rows, vacuous="count") == ("passed", 28)
    assert decided(scores([0.0] * 500, vacuous=half)) == ("failed", 10)
    assert decided(scores([1.0] * 60, vacuous=range(60)))[1] in (None, 60)


def test_only_a_complete_beginning_decides() -> None:
    rows = scores([1.0] * 500)
    drawn = DrawnSet(list(rows), Draw(seed="s", sizes=(5,) * 100), [Rule(metric="m", bound=0.85, alpha=0.05)])
    for name, of_row in [*rows.items()][1:]:
        drawn.note(name, of_row)
    assert (drawn.missing, drawn.complete, drawn.is_decided) == ("r0", 0, False)
    drawn.note(*next(iter(rows.items())))
    # Nothing before ten clusters; the other score of a row does not count.
    drawn.note("r3", {"m": ScoredRow(name="r3", score=0.0)})
    assert (drawn.missing, drawn.complete, drawn.gates[0].after) == (None, 500, 125)


def test_clusters_are_drawn_whole() -> None:
    clusters = {f"r{n}": f"'{n // 3}'" if n < 30 else None for n in range(40)}
    order, drawn = draw(clusters, "seed")
    assert sorted(order) == sorted(clusters)
    assert sorted(drawn.sizes) == [1] * 10 + [3] * 10
    ends = [sum(drawn.sizes[: n + 1]) for n in range(len(drawn.sizes))]
    for end, size in zip(ends, drawn.sizes, strict=True):
        assert len({clusters[name] for name in order[end - size : end]}) == 1
    assert sorted(draw(dict(reversed(clusters.items())), "seed")[1].sizes) == sorted(drawn.sizes)
    assert draw(clusters, "other")[0] != order


MEAN = gate_among(FAITHFUL, ("faithfulness",), {"mean": 0.85, **STOP})


def gated(
    values: Sequence[float | None],
    missing: Collection[int] = (),
    spared: Collection[int] = (),
    gate: MarkedGate = MEAN,
    **of: Any,
) -> GateDecision:
    names = [f"t.py::t[r{n}]" for n in range(len(values))]
    tests: dict[str, TestRecord] = {
        name: one_test(f"t[r{n}]", *([] if value is None else [record(gate.metric, value)]), file="t.py")
        for n, (name, value) in enumerate(zip(names, values, strict=True))
        if n not in {*missing, *spared}
    }
    drawn = {"draw": Draw(seed="abc", sizes=(1,) * len(names)), "metrics": 3}
    whole = replace(gated_set(gate, total=len(names), selected=names, function="t.py::t", **drawn), **of)
    return evaluate_gate(gate, tests, gated=whole, spared=[names[n] for n in spared])


@pytest.mark.parametrize(
    ("values", "options", "outcome", "after", "said"),
    [
        ([1.0] * 200, {"spared": range(26, 200)}, "passed", 26, "after 26 of 200 rows in the order drawn by the"),
        ([1.0] * 200, {"spared": range(26, 200)}, "passed", 26, "seed 'abc'; 174 not needed, 522 judgements saved"),
        ([0.0] * 200, {"spared": range(15, 200)}, "failed", 10, "decided after 10 of 200 rows"),
        ([1.0] * 200, {"spared": range(30, 200)}, "passed", 26, "this set passes, not the application beyond it"),
        # What every row says is no guess.
        ([1.0] * 200, {}, "passed", None, "exact: all 200 rows of this set have a score"),
        ([0.8] * 40, {}, "failed", None, "faithfulness mean 0.80 < 0.85 (n=40): failed"),
        ([0.8] * 40, {"draw": None}, "failed", None, "exact: all 40 rows"),
        # The run ended early.
        ([1.0] * 200, {"missing": range(12, 200)}, "inconclusive", None, "not decided: of the 200 rows in the order"),
        ([1.0] * 200, {"missing": [3]}, "inconclusive", None, "the run ended before the others"),
        ([1.0] * 200, {"missing": [190]}, "passed", 26, "0 not needed"),
        ([1.0] * 200, {"missing": range(200)}, "failed", None, "200 of 200 rows are unscored; a gate is over all"),
        # A row without a score.
        ([1.0] * 5 + [None] + [1.0] * 194, {}, "passed", 39, "decided after"),
        ([1.0] * 12 + [None], {}, "passed", 12, "decided after"),
        ([0.85] * 40 + [None], {}, "failed", None, "1 of 41 rows is unscored"),
        ([1.0] * 40 + [None], {"draw": None}, "failed", None, "1 of 41 rows is unscored"),
        ([], {"total": 3, "selected": ()}, "skipped", None, "3 of 3 tests of the set were skipped or not selected"),
    ],
)  # fmt: skip
def test_a_gate_that_stops_says_what_decided_it(
    values: list[float | None], options: dict[str, Any], outcome: str, after: int | None, said: str
) -> None:
    decision = gated(values, **options)
    stop = decision.record.stop
    assert stop is not None
    assert (decision.record.outcome, stop.decided_after) == (outcome, after)
    assert said in decision.text
    assert decision.record.passes == (outcome == "passed")
    assert stop.seed == (None if options.get("draw", 0) is None else "abc")


def test_the_record_has_figures_of_the_rows_that_decided() -> None:
    found = gated([1.0] * 27 + [0.0] * 173, spared=range(34, 200)).record
    assert found.stop is not None
    assert (found.n, found.value, found.total, found.stop.asked, found.stop.spared) == (26, 1.0, 200, 34, 166)
    assert found.low is not None
    assert 0.85 <= found.low < 0.86
    assert found.high == pytest.approx(1.0)
    assert "decided after 26 of 200 rows (seed abc), 166 not needed, 498 judgements saved" in gate_line(found)
    assert "of 200 tests" not in gate_line(found)
    assert gate_line(gated([1.0] * 40).record).endswith("1.000, needed >= 0.85: passed (n 40, exact: all 40 rows)")
    ended = gate_line(gated([1.0] * 200, missing=range(12, 200)).record)
    assert "95% interval 0.6" in ended
    assert "not decided by the first of 200 rows (seed abc)" in ended
    assert "stop" not in gate_line(gated([], total=3, selected=()).record)
    # They are on the scale of the metric.
    gate = gate_among([Stars()], ("stars",), {"mean": 1.6, **STOP})
    assert (gate.scale, gate.better) == ((1.0, 5.0), "lower")
    found = gated([1.0] * 29 + [5.0] * 471, gate=gate, spared=range(29, 500)).record
    assert (found.outcome, found.value) == ("passed", 1.0)
    assert found.low == pytest.approx(1.0)
    assert 1.5 < (found.high or 0) <= 1.6


def test_shards_stop_nothing_and_their_union_is_exact() -> None:
    shard = gated([], total=40, selected=(), draw=None).record
    assert shard.outcome == "skipped"
    assert shard.stop is not None
    tests = [one_test(f"t[r{n}]", record("faithfulness", 0.9 if n else 0.2), file="t.py") for n in range(40)]
    undecided = one_test("t[gate-x]", file="t.py", gate=shard, outcome="skipped")
    merged: Any = merged_gates([*tests, undecided])[undecided.id]
    assert (merged.gate.outcome, merged.gate.stop, merged.gate.low) == ("passed", replace(shard.stop, asked=40), None)
    assert merged_gates([*tests[1:], undecided]) == {}


@pytest.mark.parametrize(
    ("named", "listed", "said"),
    [
        ({"mean": 0.5, "stop_when_decided": True}, FAITHFUL, "goes with the confidence= of its decision, such as 0.95"),
        ({"mean": 0.5, **STOP}, [], "needs rows that are scored ahead of their tests; write @pytest.mark.rag_dataset"),
        ({"mean": 0.5, **STOP}, [TokenF1()], "'faithfulness' is not scored, the marker rag_dataset lists token_f1"),
        ({"regression": True, "stop_when_decided": True}, FAITHFUL, "a regression gate compares all rows, and takes "),
        ({"mean": 0.5, "stop_when_decided": "yes"}, FAITHFUL, "stop_when_decided='yes' is neither True nor False"),
    ],
)
def test_what_cannot_stop_says_what_to_write(named: dict[str, Any], listed: list[Metric], said: str) -> None:
    with pytest.raises(ValueError, match=r"stop_when_decided|not scored") as raised:
        gate_among(listed, ("faithfulness",), named)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("named", "listed", "stops"),
    [
        ({"mean": 0.5}, FAITHFUL, True),
        ({"rate": 0.5, "min": 0.5, "confidence": 0.9}, FAITHFUL, True),
        ({"mean": 0.5, "stop_when_decided": False}, FAITHFUL, False),
        *(({"regression": True}, FAITHFUL, False), ({"mean": 0.5}, [], False)),
    ],
)
def test_the_option_makes_the_others_stop(named: dict[str, Any], listed: list[Metric], *, stops: bool) -> None:
    gate = gate_among(listed, ("faithfulness",), named, stops=True)
    assert (gate.stop_when_decided, gate.id) == (stops, gate_among(listed, ("faithfulness",), named).id)
    whole = gated_set(gate, gate, total=1)
    assert whole.may_stop == stops
    if stops:
        assert whole.rule(gate).alpha == pytest.approx(1 - (named.get("confidence") or 0.95))
        assert whole.rule(gate).gates == 2


def test_rows_are_begun_block_by_block() -> None:
    names = tuple(f"t[{n}]" for n in range(100))
    base = gated_set(MEAN, total=100, selected=names, draw=Draw(seed="s", sizes=(1,) * 100))
    one = RowJob(test="t", group="t", row=DatasetRow(sample=Sample(), id="q"), sample=Sample(), metrics=(), judge="")
    jobs = {name: replace(one, test=name) for name in names}
    broken = names[3]
    drawn = DrawnRows(base, jobs.keys() - {broken})
    for name in names:
        if name != broken:
            drawn.hold(jobs[name])
    assert [job.test for job in drawn.released()] == [name for name in names[:10] if name != broken]
    assert drawn.released() == []
    assert (drawn.holds(names[10]), drawn.holds(names[9]), drawn.spares(names[99])) == (True, False, False)
    for name in names[1:10]:
        drawn.note(name, done(1.0))
    assert (drawn.missing, drawn.released()) == (names[0], [])
    drawn.note(names[0], done(1.0))
    assert drawn.missing == names[10]
    assert [job.test for job in drawn.released()] == list(names[10 : 10 + BLOCK])
    assert [job.test for job in drawn.released(names[50])] == [names[50]]
    for name in names[10:60]:
        drawn.note(name, done(1.0))
    assert drawn.is_decided
    assert drawn.holds(names[80]) is False
    # It is decided by 36 rows, which are in the block that ends with the 42nd.
    assert (drawn.spares(names[41]), drawn.spares(names[42])) == (False, True)
    assert drawn.why_spared == f"not needed: {MEAN.id} was decided after 36 of 100 rows"
    unread = DrawnRows(base, jobs)
    for job in jobs.values():
        unread.hold(job)
    unread.give_up()
    assert len(unread.released()) == 100


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_rows_come_changes_nothing(seed: int) -> None:
    """A worker that reads what others did at once begins the same blocks as one that does them."""
    names = tuple(f"t[{n}]" for n in range(60))
    base = gated_set(MEAN, total=60, selected=names, draw=Draw(seed="s", sizes=(1,) * 60))
    random = Random(seed)
    scores = {name: float(random.random() < 0.85) for name in names}

    def spared(known: Iterable[Sequence[str]]) -> list[str]:
        drawn = DrawnRows(base, names)
        for name in chain(*known):
            drawn.note(name, done(scores[name]))
        return [name for name in names if drawn.spares(name)]

    blocks = [names[:10], *(names[at : at + BLOCK] for at in range(10, 60, BLOCK))]
    shuffled = [random.sample(block, len(block)) for block in blocks]
    assert spared(shuffled) == spared([names])


def done(value: float) -> Done:
    found = MetricResult(value, metric="faithfulness")
    scoring = Scoring(metric="faithfulness", sample=Sample(), outcome=found, better="higher")
    return Done(sample=Sample(), scores={"faithfulness": Score(outcome=found, scorings=(scoring,))})
