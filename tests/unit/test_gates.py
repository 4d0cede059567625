"""What a gate's marker may say, and how a gate is decided by the records of its set."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics import metric
from pytest_ragmetrics.codec import dump, load
from pytest_ragmetrics.explain.runs import confirmation_text
from pytest_ragmetrics.gate_decisions import evaluate_gate, evaluate_merged_gate, rows_to_confirm
from pytest_ragmetrics.gates import Gate, GatedSet, gate_among
from pytest_ragmetrics.metrics import ContextRecall, Faithfulness, Metric, RagasScore
from pytest_ragmetrics.records import Document, GateRecord, Record, TestRecord
from pytest_ragmetrics.result import Direction
from pytest_ragmetrics.stats.intervals import mean_interval
from pytest_ragmetrics.stats.regression import drop_p
from tests.documents import document, gate_of, record, row


def test_a_gate_knows_its_metric_by_any_name() -> None:
    """An alias becomes the name that results have; an unknown name stays."""
    assert gate_of("ResponseRelevancy", mean=0.5).metric == "answer_relevancy"
    assert gate_of(metric="sympathy", mean=0.5) == Gate(metric="sympathy", statistic="mean", bound=0.5)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"mean": 0.85}, "gate-sympathy-mean-0.85"),
        ({"mean": 1, "confidence": 0.95}, "gate-sympathy-mean-1-confidence-0.95"),
        ({"rate": 0.95, "min": 0.8}, "gate-sympathy-rate-0.95-min-0.8"),
        ({"rate": 0.95, "max": 0.2, "confidence": 0.9}, "gate-sympathy-rate-0.95-max-0.2-confidence-0.9"),
        ({"mean": 0.85, "vacuous": "count"}, "gate-sympathy-mean-0.85-vacuous-count"),
        ({"mean": 0.85, "vacuous": "skip"}, "gate-sympathy-mean-0.85"),
        ({"mean": 0.85, "vacuous": None}, "gate-sympathy-mean-0.85"),
        ({"mean": 0.85, "regression": False}, "gate-sympathy-mean-0.85"),
        ({"regression": True}, "gate-sympathy-regression"),
        ({"regression": True, "alpha": 0.05}, "gate-sympathy-regression"),
        ({"regression": True, "confirm": None}, "gate-sympathy-regression"),
        ({"regression": True, "alpha": 0.01, "vacuous": "count"}, "gate-sympathy-regression-alpha-0.01-vacuous-count"),
    ],
)
def test_its_test_is_named_by_what_it_says(given: dict[str, Any], name: str) -> None:
    """The name says metric, figure and bounds."""
    assert gate_of("sympathy", **given).id == name


@pytest.mark.parametrize(
    ("args", "named", "said"),
    [
        ((), {"mean": 0.5}, "it takes the name of one metric"),
        (("a", "b"), {"mean": 0.5}, "it takes the name of one metric"),
        ((3,), {"mean": 0.5}, "it takes the name of one metric"),
        ((" ",), {"mean": 0.5}, "it takes the name of one metric"),
        (("a",), {"mean": 0.5, "least": 1}, "it knows no least"),
        (("a",), {}, "give one of mean= and rate="),
        (("a",), {"mean": 0.5, "rate": 0.5}, "give one of mean= and rate="),
        (("a",), {"mean": "0.5"}, "mean='0.5' is no number"),
        (("a",), {"mean": 0.5, "vacuous": "drop"}, 'vacuous must be "skip" (leave out'),
        (("a",), {"mean": 0.5, "vacuous": False}, 'or "count", not False'),
        (("a",), {"mean": float("nan")}, "mean=nan is no number"),
        (("a",), {"mean": True}, "mean=True is no number"),
        (("a",), {"mean": 0.5, "min": 0.2}, "go with rate="),
        (("a",), {"rate": 0.5}, "rate= needs the score that counts as good"),
        (("a",), {"rate": 0.5, "min": 0.1, "max": 0.2}, "rate= needs the score that counts as good"),
        (("a",), {"rate": 95, "min": 0.1}, "rate=95 is no share"),
        (("a",), {"regression": False}, "give one of mean= and rate="),
        (("a",), {"regression": "yes"}, "regression='yes' is neither True nor False; write @pytest.mark.rag_gate"),
        (("a",), {"regression": True, "mean": 0.5}, "takes no mean=; write @pytest.mark.rag_gate"),
        (("a",), {"regression": True, "rate": 0.5, "min": 0.5}, "takes no rate="),
        (("a",), {"regression": True, "min": 0.5}, "takes no min="),
        (("a",), {"regression": True, "max": 0.5}, "takes no max="),
        (("a",), {"regression": True, "confidence": 0.9}, "takes no confidence="),
        (("a",), {"regression": True, "inconclusive": "pass"}, "takes no inconclusive="),
        (("a",), {"regression": True, "alpha": 5}, "alpha must be a number between 0 and 1, such as 0.05, not 5"),
        (("a",), {"regression": True, "alpha": 0.0}, "alpha must be a number between 0 and 1"),
        (("a",), {"mean": 0.5, "alpha": 0.05}, "alpha= goes with regression=True; write @pytest.mark.rag_gate"),
        (("a",), {"mean": 0.5, "confirm": 2}, "confirm= goes with regression=True; write @pytest.mark.rag_gate"),
        (("a",), {"regression": False, "mean": 0.5, "confirm": 2}, "confirm= goes with regression=True"),
        (("a",), {"regression": True, "confirm": 0}, "confirm=0 is no whole number from 1 on; write confirm=2"),
        (("a",), {"regression": True, "confirm": True}, "confirm=True is no whole number"),
        (("a",), {"regression": True, "confirm": 2.0}, "confirm=2.0 is no whole number"),
        (("a",), {"regression": True, "confirm": 2}, "takes rows that can be answered anew; write @pytest.mark.rag_da"),
        (("a",), {"mean": 0.5, "confidence": 95}, "confidence=95 must be between 0 and 1"),
        (("faithfulness",), {"mean": 85}, "mean=85 is outside of the scale of faithfulness, 0 to 1: write 0.85"),
        (("faithfulness",), {"rate": 0.5, "min": -0.1}, "min=-0.1 is outside of the scale of faithfulness, 0 to 1"),
        (("noise_sensitivity",), {"rate": 0.5, "max": 20}, "max=20 is outside of the scale of noise_sensitivity"),
        (("semantic_similarity",), {"mean": -2}, "mean=-2 is outside of the scale of semantic_similarity, -1 to 1"),
        (("faithfulness",), {"rate": 0.5, "max": 0.2}, "higher scores of faithfulness are the good ones; write min="),
    ],
)
def test_what_a_marker_may_not_say(args: tuple[Any, ...], named: dict[str, Any], said: str) -> None:
    """Each mistake is named, with what to write."""
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        gate_of(*args, **named)


@metric(name="points", better="lower", scale=(0.0, 50.0))
def own(response: str) -> float:
    """Return how many points an answer has."""
    return float(len(response))


BOTH = RagasScore(metrics=[Faithfulness(), ContextRecall()])


@pytest.mark.parametrize(
    ("listed", "name", "found"),
    [
        ([Faithfulness(), own], "FaithfulnessMetric", ("faithfulness", "higher")),
        ([Faithfulness(), own], "points", ("points", "lower")),
        ([BOTH], "context_recall", ("context_recall", "higher")),
        ([], "sympathy", ("sympathy", None)),
    ],
)
def test_a_gate_is_over_a_metric_of_its_data_set(listed: list[Metric], name: str, found: tuple[str, Any]) -> None:
    """Any of its names will do, a part of a composite too; without a list the tests may score what they like."""
    gate = gate_among(listed, [name], {"mean": 1})
    assert (gate.metric, gate.better) == found


@pytest.mark.parametrize(
    ("listed", "name", "said"),
    [
        ([Faithfulness(), own], "faithfulnes", r"'faithfulnes' is not scored, .* lists faithfulness, points: did you "),
        ([own], "point", r"did you mean 'points'\?"),
        ([own], "ResponseRelevancy", r"lists points: write metrics=\[..., 'answer_relevancy'\] there"),
        ([BOTH], "numbers_aligned", "lists ragas_score, faithfulness, context_recall: write metrics="),
        ([own], "points", "mean=60 is outside of the scale of points, 0 to 50: write a number on it"),
    ],
)
def test_a_gate_over_what_is_not_scored(listed: list[Metric], name: str, said: str) -> None:
    """It is refused with the nearest name, or with the list to add it to; the scale is that of the metric listed."""
    with pytest.raises(ValueError, match=said):
        gate_among(listed, [name], {"mean": 60})


def test_a_set_crosses_processes() -> None:
    """It comes back equal from JSON builtins."""
    gates = (
        gate_of("faithfulness", mean=0.5),
        gate_of("clutter", rate=1, max=0.2),
        gate_of("clutter", regression=True, alpha=0.1),
    )
    gated = GatedSet(
        function="t.py::T::t",
        name="t",
        file="t.py",
        line=3,
        scope="T.",
        gates=gates,
        total=2,
        selected=("t.py::T::t[1]",),
    )
    assert load(GatedSet, json.loads(json.dumps(dump(gated)))) == gated
    assert gated.location(gates[0]) == ("t.py", 3, "T.t[gate-faithfulness-mean-0.5]")


def found(
    scores: Mapping[str, float],
    gate: Gate,
    *,
    better: Direction = "higher",
    cluster: int | None = None,
    unnamed: Collection[str] = (),
) -> Any:
    """Return the decision over tests with these scores, by row.

    ``cluster`` is how many rows belong together, but for those that are ``unnamed``.
    """
    rows: dict[str, Any] = {}
    for number, (name, score) in enumerate(scores.items()):
        sample = {} if cluster is None or name in unnamed else {"metadata": {"cluster": number // cluster}}
        scored = replace(record(gate.metric, score, outcome="measured", sample=sample), better=better)
        rows[f"t[{name}]"] = row(name, scored)
    gated = GatedSet(
        function="t", name="t", file="t.py", line=1, scope="", gates=(gate,), total=len(rows), selected=tuple(rows)
    )
    return evaluate_gate(gate, gated, rows.get, skipped=(), ran=tuple(rows))


def test_scores_beyond_the_scale() -> None:
    """A metric of one's own may have any scale, and its mean an interval all the same."""
    decided = found({"a": 40.0, "b": 60.0, "c": 52.0, "d": 48.0}, gate_of("points", mean=10, confidence=0.9))
    assert decided.record.outcome == "passed"
    assert decided.record.low > 10
    # Of one score the interval is endless, which JSON cannot say.
    alone = found({"a": 40.0}, gate_of("points", mean=10, confidence=0.9)).record
    assert (alone.low, alone.high) == (None, None)


def test_an_inconclusive_gate_may_pass() -> None:
    """The marker says so, and the name of its test."""
    scores = {str(number): float(number > 1) for number in range(20)}
    gates = [gate_of("points", mean=0.95, confidence=0.9, inconclusive=word) for word in ("fail", "pass")]
    assert [gate.id for gate in gates] == [
        "gate-points-mean-0.95-confidence-0.9",
        "gate-points-mean-0.95-confidence-0.9-inconclusive-pass",
    ]
    records = [found(scores, gate).record for gate in gates]
    assert [(record.outcome, record.passes) for record in records] == [("inconclusive", False), ("inconclusive", True)]
    assert not found(dict.fromkeys(scores, 0.5), gates[1]).record.passes
    with pytest.raises(ValueError, match="inconclusive='pass' goes with a confidence="):
        gate_of("points", mean=0.9, inconclusive="pass")
    with pytest.raises(ValueError, match="inconclusive must be 'fail' or 'pass', not True"):
        gate_of("points", mean=0.9, confidence=0.9, inconclusive=True)


def mean_ends(scores: Sequence[float], clusters: Sequence[object]) -> tuple[float, float]:
    """Return the ends of the interval that the assertions over sets have."""
    interval = mean_interval(scores, confidence=0.9, clusters=[str(name) for name in clusters])
    return interval.low, interval.high


def test_rows_of_one_cluster_weigh_as_one() -> None:
    """Samples that say which cluster they are of make the interval as wide as the clusters allow."""
    scores = {str(number): float(number // 2 % 2) for number in range(16)}
    gate = gate_of("points", mean=0.1, confidence=0.9)
    alone, together = found(scores, gate).record, found(scores, gate, cluster=2).record
    assert together.low < alone.low
    assert alone.value == together.value == 0.5
    # One without a cluster is one of its own, and the others stay together.
    nearly = found({**scores, "last": 1.0}, gate, cluster=2, unnamed={"last"}).record
    assert (nearly.low, nearly.high) == mean_ends([*scores.values(), 1.0], [*(n // 2 for n in range(16)), "last"])


def test_the_direction_is_that_of_the_results() -> None:
    """Of a metric that is not known beforehand the results say which end is the good one."""
    assert found({"a": 0.1, "b": 0.2}, gate_of("points", mean=0.3), better="lower").record.outcome == "passed"
    assert found({"a": 0.1, "b": 0.2}, gate_of("points", mean=0.3)).record.outcome == "failed"


SCORED = record("points", 0.5, outcome="measured")
UNSCORED = record("points", None, outcome="unscored", reason="the judge was away")


@pytest.mark.parametrize(
    ("last", "kept", "outcome", "said"),
    [
        (row("t[c]", SCORED), {}, "passed", "points mean 0.67 >= 0.60"),
        (row("t[c]", SCORED, outcome="failed"), {}, "passed", "points mean 0.67 >= 0.60"),
        (row("t[c]", SCORED, SCORED), {}, "passed", "points mean 0.62 >= 0.60"),
        (row("t[c]", SCORED, UNSCORED), {}, "failed", "  c: the judge was away"),
        (row("t[c]", UNSCORED), {}, "failed", "  c: the judge was away"),
        (row("t[c]", record("other", 0.5)), {}, "failed", "  c: its test passed without scoring it; it scored other"),
        (row("t[c]", outcome="error", message="E   ValueError: no"), {}, "failed", "  c: its test was in error: *no"),
        (row("t[c]", outcome="xpassed"), {}, "failed", "  c: its test passed unexpectedly"),
        (None, {}, "failed", "  c: its test passed without scoring it"),
        (None, {"ran": False}, "failed", "  c: its test has not run to its end"),
        (row("t[c]", SCORED), {"ran": False}, "failed", "  c: its test has not run to its end"),
        (None, {"skipped": True}, "skipped", "1 of 3 tests of the set were skipped or not selected; *"),
        (row("t[c]", SCORED), {"skipped": True}, "skipped", "1 of 3 tests of the set were skipped or not selected; *"),
        (row("t[c]", SCORED, outcome="skipped"), {}, "skipped", "1 of 3 tests of the set were skipped or not sele*"),
        (row("t[c]", SCORED), {"selected": False}, "skipped", "1 of 3 tests of the set were skipped or not selec*"),
    ],
)
def test_a_gate_is_decided_by_its_whole_set(
    last: TestRecord | None, kept: dict[str, bool], outcome: str, said: str
) -> None:
    """A set that is not whole decides nothing, one with unscored rows fails, and a failed test counts as it scored."""
    rows = {"t[a]": row("t[a]", SCORED), "t[b]": row("t[b]", record("points", 1.0, outcome="measured")), "t[c]": last}
    selected = ("t[a]", "t[b]", *(["t[c]"] if kept.get("selected", True) else []))
    gate = gate_of("points", mean=0.6)
    gated = GatedSet(function="t", name="t", file="t.py", line=1, scope="", gates=(gate,), total=3, selected=selected)
    decided = evaluate_gate(
        gate,
        gated,
        rows.get,
        skipped=["t[c]"] if kept.get("skipped") else [],
        ran=["t[a]", "t[b]", *(["t[c]"] if kept.get("ran", True) else [])],
    )
    assert decided.record.outcome == outcome
    assert any(fnmatch(line, f"{said}*") for line in decided.text.splitlines()), decided.text


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        (row("t[c]", SCORED), "passed"),
        (row("t[c]", SCORED, outcome="xfailed"), "passed"),
        (row("t[c]", SCORED, outcome="failed"), "passed"),
        (row("t[c]", record("other", 0.5), outcome="xfailed"), "failed"),
        (row("t[c]", outcome="error"), "failed"),
        (row("t[c]", SCORED, outcome="skipped"), None),
        (row("u[c]", SCORED), None),
    ],
    ids=["passed", "xfailed", "failed", "xfailed unscored", "error", "skipped", "of another set"],
)
def test_a_gate_of_shards_is_decided_as_in_one_run(last: TestRecord, outcome: str | None) -> None:
    """By all tests of its set, whatever became of them; none without the whole set."""
    tests = [row("t[a]", SCORED), row("t[b]", SCORED), last]
    gate = gate_of("points", mean=0.5)
    gated = GatedSet(function="t", name="t", file="t.py", line=1, scope="", gates=(gate,), total=3, selected=("t[a]",))
    undecided = evaluate_gate(gate, gated, {"t[a]": tests[0]}.get, skipped=(), ran=["t[a]"])
    assert undecided.record.outcome == "skipped"
    name = f"t[{gate.id}]"
    places = [replace(test, id=test.id.rpartition("::")[2]) for test in tests]
    decided = evaluate_merged_gate(replace(row(name, gate=undecided.record), id=name), places)
    assert (decided and decided.outcome) == outcome


def test_merged_shards_know_which_scores_are_good() -> None:
    """A shard without a score took the higher ones for the good ones; the records of the others say otherwise."""
    gate = gate_of("points", mean=0.5)
    gated = GatedSet(function="t", name="t", file="t.py", line=1, scope="", gates=(gate,), total=2, selected=())
    undecided = evaluate_gate(gate, gated, lambda _: None, skipped=(), ran=())
    tests = [replace(row(name, replace(SCORED, score=0.1, better="lower")), id=name) for name in ("t[a]", "t[b]")]
    decided = evaluate_merged_gate(replace(row("t", gate=undecided.record), id=f"t[{gate.id}]"), tests)
    assert decided is not None
    assert (decided.outcome, decided.gate and decided.gate.better) == ("passed", "lower")


LOSS = gate_of("points", regression=True)


def scored(score: float | None, name: str = "", *, metric: str = "points", **fields: Any) -> Record:
    """Return a score of the sample of this id."""
    sample = {"id": name, "metadata": fields.pop("metadata", {})}
    plain = {"judge": None, "verdicts": (), **fields}
    return replace(record(metric, score, outcome="unscored" if score is None else "measured", sample=sample), **plain)


def run_of(*scores: Record, function: str = "t") -> Document:
    """Return a run in which a function has a test for each sample, with its scores."""
    by_name: dict[str, list[Record]] = {}
    for each in scores:
        by_name.setdefault(f"{function}[{each.sample.id}]", []).append(each)
    return document(*(replace(row(name, *records), id=name) for name, records in by_name.items()))


def set_of(tests: Collection[str], *gates: Gate) -> GatedSet:
    """Return the set of a function that has these tests."""
    return GatedSet(
        function="t", name="t", file="t.py", line=1, scope="", gates=gates, total=len(tests), selected=tuple(tests)
    )


def against(before: Document | None, after: Document, *gates: Gate) -> list[Any]:
    """Return the decisions of the gates of a function over a run, against another."""
    tests = {test.id: test for test in after.tests}
    gated = set_of(tests, *gates)
    return [evaluate_gate(gate, gated, tests.get, skipped=(), ran=tests.keys(), baseline=before) for gate in gates]


def points(*scores: float | None, **fields: Any) -> list[Record]:
    """Return scores of samples a0, a1 and so on."""
    return [scored(score, f"a{number}", **fields) for number, score in enumerate(scores)]


GOOD = run_of(*points(*[1.0] * 10))
LOST_4, LOST_5 = ([*points(*[0.0] * lost, *[1.0] * (10 - lost))] for lost in (4, 5))


@pytest.mark.parametrize(
    ("before", "after", "outcome", "said"),
    [
        (GOOD, LOST_4, "passed", "  no drop is shown (p=0.062); 10 rows like these show one of 0.7 or more in at *"),
        (GOOD, LOST_5, "failed", "  the scores dropped (p=0.031)"),
        (GOOD, LOST_5, "failed", "    -1.00  1.00 -> 0.00  a4"),
        (run_of(*LOST_5), points(*[1.0] * 10), "passed", "  no drop is shown (p=1.000); 10 rows like these show *"),
        (GOOD, points(*[1.0] * 10), "passed", "points 1.00 -> 1.00: *"),
        (GOOD, [*points(*[1.0] * 9), scored(0.0, "b")], "passed", "  only here: 1 (b)"),
        (GOOD, points(*[1.0] * 9), "passed", "  only there: 1 (a9)"),
        (None, LOST_5, "skipped", "there is no baseline to compare with: give --rag-baseline=FILE, which --rag-json *"),
        (GOOD, [*LOST_4, scored(None, "b", reason="the judge was away")], "failed", "  b: the judge was away"),
        (GOOD, [*LOST_4[1:], scored(None, "a0", reason="the judge was away")], "failed", "  a0: the judge was away"),
        (run_of(*points(*[1.0] * 9, None)), LOST_5, "failed", "  unscored there: 1 (a9)"),
        (run_of(*points(*[1.0] * 9, 1.0, judge="m")), [*LOST_4[:9], scored(1.0, "a9", judge="n")], "failed",
         "points: scores of different judges are not comparable, and these are of 'n', those before of 'm'; *"),
        (run_of(*points(1.0, better="lower")), points(1.0), "failed", "points: higher scores are better here, lower *"),
        (run_of(*points(1.0, metric="other")), points(1.0), "failed", "points: the baseline has no scores of it; *"),
        (run_of(scored(1.0, "b")), points(1.0), "failed", "nothing can be compared: give the samples ids that stay*"),
        (run_of(*points(1.0, vacuous=True)), points(1.0), "failed", "points: 0 of 1 had something to check in both *"),
        (GOOD, points(1.0, vacuous=True), "failed", 'points: 0 of 1 had something to check; vacuous="count" takes *'),
        (GOOD, [*LOST_4, scored(0.0, "a0")], "passed", "  no drop is shown (p=0.062); 10 rows *"),
        (GOOD, [*LOST_4, scored(0.5, "a0")], "failed", "points: 'a0' has several different scores in one run; *"),
        (run_of(*points(*[1.0] * 10), function="moved"), LOST_5, "failed", "  the scores dropped (p=0.031)"),
    ],
)  # fmt: skip
def test_a_regression_gate_fails_on_proof(
    before: Document | None, after: list[Record], outcome: str, said: str
) -> None:
    """Of a drop, of scores that are not comparable, and of rows without a score; what is inconclusive passes."""
    decided = against(before, run_of(*after), LOSS)[0]
    assert decided.record.outcome == outcome
    assert any(fnmatch(line, said) for line in decided.text.splitlines()), decided.text


def test_a_metric_that_was_redefined_is_not_compared() -> None:
    """Its verdicts are on something else now."""
    before, after = (run_of(*points(1.0, metric="correctness", noun=noun)) for noun in ("aspect", "claim"))
    decided = against(before, after, gate_of("correctness", regression=True))[0]
    assert (decided.record.outcome, decided.record.n, decided.record.value) == ("failed", 0, None)
    assert "two metrics of one name" in decided.text


@pytest.mark.parametrize(("alpha", "lost", "outcome"), [(0.02, 5, "passed"), (0.1, 4, "failed"), (0.1, 3, "passed")])
def test_alpha_is_the_share_of_false_alarms(alpha: float, lost: int, outcome: str) -> None:
    """Of 0.0625 for four rows, and half as much for each further one."""
    after = run_of(*points(*[0.0] * lost, *[1.0] * (10 - lost)))
    assert against(GOOD, after, gate_of("points", regression=True, alpha=alpha))[0].record.outcome == outcome


def test_the_interval_is_that_of_the_scale() -> None:
    """Scores below zero are on that of a similarity."""
    run = run_of(*points(*[-0.5] * 4, metric="semantic_similarity"))
    text = against(run, run, gate_of("semantic_similarity", regression=True))[0].text
    assert "95 % interval -1.20..+1.20" in text


def test_the_cluster_of_a_sample_is_no_score() -> None:
    """Two tests may put it into different ones."""
    twice = document(*GOOD.tests, *run_of(*points(*[1.0] * 10, metadata={"cluster": "a"}), function="t[x]").tests)
    assert against(twice, GOOD, LOSS)[0].record.outcome == "passed"


def test_what_a_regression_gate_records() -> None:
    """The means of the pairs, the rows of one run only, and the smallest drop that would have been shown."""
    before = run_of(*points(*[1.0] * 10), scored(1.0, "gone"), scored(1.0, "quiet"))
    after = run_of(*LOST_4, scored(0.0, "b"), scored(1.0, "c"), scored(1.0, "quiet", vacuous=True))
    found = against(before, after, LOSS)[0].record
    assert (found.statistic, found.value, found.bound, found.n) == ("regression", -0.4, 0.0, 10)
    assert (found.total, found.unscored, found.vacuous, found.passes) == (13, 0, 1, True)
    assert dump(found.regression) == {
        "alpha": 0.05,
        "before": 1.0,
        "after": 0.6,
        "changed": 4,
        "p": 0.0625,
        "adjusted_p": 1.0,
        "smallest": 0.7,
        "new": 2,
        "gone": 1,
        "confirm": 0,
        "confirmation": None,
    }
    counted = against(before, after, gate_of("points", regression=True, vacuous="count"))[0].record
    assert (counted.n, counted.vacuous, counted.counts_vacuous) == (11, 0, True)


def test_lower_scores_may_be_the_good_ones() -> None:
    """Then a rise is the drop."""
    before, risen = run_of(*points(*[0.0] * 8, better="lower")), run_of(*points(*[1.0] * 8, better="lower"))
    assert against(before, risen, LOSS)[0].record.outcome == "failed"
    assert against(risen, before, LOSS)[0].record.outcome == "passed"


def test_only_the_same_tests_of_the_baseline_count() -> None:
    """A sample may have another score of the metric in another test, with other settings."""
    elsewhere = run_of(*points(*[0.0] * 10), function="other")
    assert against(document(*GOOD.tests, *elsewhere.tests), run_of(*LOST_5), LOSS)[0].record.outcome == "failed"
    assert against(document(*GOOD.tests, *elsewhere.tests), GOOD, LOSS)[0].record.outcome == "passed"
    # A metric that the tests did not score before is not that of other tests.
    unlike = run_of(*points(*[1.0] * 10, metric="other"))
    assert "the baseline has no scores" in against(document(*unlike.tests, *elsewhere.tests), GOOD, LOSS)[0].text


def test_clusters_are_flipped_whole() -> None:
    """Eight lost rows of two documents are two observations."""
    rows = [scored(0.0, f"a{n}", metadata={"cluster": n // 4}) for n in range(8)]
    before = run_of(*points(*[1.0] * 8))
    assert against(before, run_of(*points(*[0.0] * 8)), LOSS)[0].record.outcome == "failed"
    found = against(before, run_of(*rows), LOSS)[0].record
    assert (found.outcome, found.regression.changed, found.regression.p) == ("passed", 2, 0.25)


def test_the_regression_gates_of_a_function_share_alpha() -> None:
    """Seven lost of eight that changed are proof of one metric, not of the worst of four."""
    names = ("points", "b", "c", "d")
    before = run_of(*(each for name in names for each in points(*[0.5] * 8, *[1.0] * 12, metric=name)))
    after = run_of(
        *points(*[0.0] * 7, *[1.0] * 13),
        *(each for name in names[1:] for each in points(*[1.0] * 4, *[0.0] * 4, *[1.0] * 12, metric=name)),
    )
    gates = [gate_of(name, regression=True) for name in names]
    # Bounds, and metrics that cannot be compared, raise no false alarm that others have to pay for.
    alone = [LOSS, gate_of("b", mean=0.1), gate_of("unknown", regression=True)]
    assert [found.record.outcome for found in against(before, after, *alone)] == ["failed", "passed", "failed"]
    together = against(before, after, *gates)
    assert [found.record.outcome for found in together] == ["passed"] * 4
    figures = together[0].record.regression
    assert (figures.p, figures.adjusted_p) == (9 / 256, 9 / 64)
    assert "(p=0.035, of all metrics together p=0.141)" in together[0].text


def test_shards_decide_a_regression_as_one_run() -> None:
    """With the baseline, and with the family of the gates; without one they stay undecided."""
    names = ("points", "b")
    before = run_of(*(each for name in names for each in points(*[1.0] * 10, metric=name)))
    after = run_of(*points(*[0.0] * 8, 1.0, 1.0), *points(*[0.0] * 7, *[1.0] * 3, metric="b"))
    gates = [gate_of(name, regression=True, alpha=0.04) for name in names]
    whole = [found.record for found in against(before, after, *gates)]
    assert [found.regression and found.regression.adjusted_p for found in whole] == [2**-7, 2**-7]
    gated = GatedSet(function="t", name="t", file="t.py", line=1, scope="", gates=tuple(gates), total=10, selected=())
    skipped = [evaluate_gate(gate, gated, lambda _: None, skipped=(), ran=()).record for gate in gates]
    waiting = [replace(row("t", gate=found), id=f"t[{gate.id}]") for gate, found in zip(gates, skipped, strict=True)]
    tests = [*after.tests, *waiting]
    assert [evaluate_merged_gate(each, tests) for each in waiting] == [None, None]
    merged = [evaluate_merged_gate(each, tests, before) for each in waiting]
    assert [each and each.gate for each in merged] == whole
    assert [each and each.outcome for each in merged] == ["failed", "failed"]


def test_gates_of_older_files_can_be_read() -> None:
    """They have no word of regressions."""
    found = dump(against(None, GOOD, gate_of("points", mean=0.5))[0].record)
    assert found.pop("regression") is None
    assert load(GateRecord, found).regression is None


CONFIRMED = replace(LOSS, confirm=2)
Answers = Sequence[float | None]


def run_again(*rows: Answers, **fields: Any) -> Document:
    """Return a run in which rows have several answers, the first of each first."""
    first = run_of(*points(*(scores[0] for scores in rows), **fields))
    again = (tuple(scored(it, f"a{n}", **fields) for it in scores[1:]) for n, scores in enumerate(rows))
    return document(*(replace(test, again=more) for test, more in zip(first.tests, again, strict=True)))


F, P = 0.0, 1.0
STEADY, SOFT, LUCKY = [F, F, F], [F, P, P], [P, P, P]
AWAY = [F, None, None]
CLEARED = (
    "would have been red; cleared by 2 more answers of 9 changed rows: "
    "mean drop 0.19 a row, by the first answers 0.78 (p=0.020)"
)
SIX, NINE = run_of(*points(*[P] * 6)), run_of(*points(*[P] * 8, F))


@pytest.mark.parametrize(
    ("before", "rows", "outcome", "said"),
    [
        (SIX, [STEADY] * 6, "failed",
         "confirmed by 2 more answers of 6 changed rows: mean drop 1.00 a row, by the first answers 1.00 (p=0.016)"),
        (SIX, [SOFT] * 6, "failed",
         "confirmed by 2 more answers of 6 changed rows: mean drop 0.33 a row, by the first answers 1.00 (p=0.016)"),
        (SIX, [[F, P, P, F]] * 6, "failed", "confirmed by 2 more answers of 6 changed rows: mean drop 0.33 a row, *"),
        (NINE, [*[SOFT] * 8, LUCKY], "passed", CLEARED),
        (NINE, [*[SOFT] * 8, [P, F, F]], "failed", "confirmed by *"),
        (NINE, [*[SOFT] * 8, [F]], "failed", "confirmed by 2 more answers of 8 changed rows: *"),
        (SIX, [*[STEADY] * 5, [F, P]], "failed",
         "confirmed by 2 more answers of 5 of 6 changed rows (the others have fewer): mean drop 1.00 a row, *"),
        (SIX, [*[STEADY] * 5, [F, P, None]], "failed",
         "confirmed by 2 more answers of 5 of 6 changed rows (the budget is spent): mean drop 1.00 a row, *"),
        (SIX, [AWAY] * 6, "failed", "not confirmed: none of 6 changed rows was answered anew: the budget is spent"),
        (SIX, [[F]] * 6, "failed", "not confirmed: none of 6 changed rows was answered anew"),
        (run_of(*points(*[P] * 4)), [STEADY] * 4, "passed", ""),
    ],
)  # fmt: skip
def test_a_drop_is_confirmed_by_further_answers(before: Document, rows: list[Answers], outcome: str, said: str) -> None:
    """A row that changed counts with the mean of its answers, if it has all of them; else with its first score."""
    decided = against(before, run_again(*rows, reason="the budget is spent"), CONFIRMED)[0]
    text = confirmation_text(decided.record.regression)
    assert decided.record.outcome == outcome
    assert fnmatch(text, said), text
    assert text in decided.text
    # Without the wish for it nothing is taken from further answers.
    assert (
        against(before, run_again(*rows), LOSS)[0].record
        == against(before, run_again(*([it[0]] for it in rows)), LOSS)[0].record
    )


def test_what_further_answers_gain_clears_a_drop() -> None:
    """Six lost rows that pass twice, and two gained ones that stay, are a change of nothing."""
    before = run_of(*points(*[P] * 6, F, F))
    found = against(before, run_again(*[SOFT] * 6, LUCKY, LUCKY), replace(CONFIRMED, alpha=0.15))[0].record
    regression = found.regression
    assert (found.outcome, found.value) == ("passed", pytest.approx(0.0))
    assert (regression.before, regression.after, regression.changed) == (0.75, pytest.approx(0.75), 8)
    assert regression.p == pytest.approx(0.582, abs=5e-4)
    made = dump(regression.confirmation)
    assert made == {"answers": 2, "rows": 8, "confirmed": 8, "first_drop": 0.5, "drop": pytest.approx(0.0),
                    "p": 37 / 256, "adjusted_p": 37 / 256, "reason": None}  # fmt: skip


def test_lower_scores_drop_by_rising() -> None:
    """The words are those of what became worse; an answer with nothing to check is none, unless it counts."""
    before = run_of(*points(*[F] * 6, better="lower"))
    risen = run_again(*[[P, F, F]] * 6, better="lower")
    assert "mean drop 0.33 a row" in against(before, risen, CONFIRMED)[0].text
    vacuous = document(*(replace(t, again=tuple(replace(it, vacuous=True) for it in t.again)) for t in risen.tests))
    assert "none of 6 changed rows was answered anew: nothing to check" in against(before, vacuous, CONFIRMED)[0].text
    assert "mean drop 0.33 a row" in against(before, vacuous, replace(CONFIRMED, vacuous="count"))[0].text


@pytest.mark.parametrize(
    ("rows", "gates", "total", "found"),
    [
        ([*[F] * 8, P], [CONFIRMED], 9, {f"t[a{n}]": {"points"} for n in range(9)}),
        ([*[F] * 8, P], [LOSS], 9, {}),
        ([*[F] * 8, F], [CONFIRMED], 9, {f"t[a{n}]": {"points"} for n in range(8)}),
        ([*[P] * 6, F, F, P], [CONFIRMED], 9, {}),
        ([*[P] * 6, F, F, P], [CONFIRMED], 10, {f"t[a{n}]": {"points"} for n in (6, 7, 8)}),
        ([*[F] * 7, None, P], [CONFIRMED], 9, {}),
        ([*[F] * 8, P], [replace(CONFIRMED, metric="other")], 9, {}),
        ([*[F] * 8, P], [replace(CONFIRMED, metric="other")], 10, {}),
    ],
)
def test_the_rows_to_confirm(
    rows: Answers, gates: Sequence[Gate], total: int, found: Mapping[str, Collection[str]]
) -> None:
    """They are those that changed in either direction, where the gate would fail, or may as that of a whole set."""
    tests = {test.id: test for test in run_of(*points(*rows)).tests}
    gated = replace(set_of(tests, *gates), total=total)
    assert rows_to_confirm(gated, tests.get, NINE) == found


def test_each_metric_is_confirmed_by_its_own_rows() -> None:
    """The gates of a function that would pass ask for nothing; the first answers of theirs still share alpha."""
    names = ("points", "b", "quiet")
    gates = [replace(CONFIRMED, metric=name) for name in names]
    before = run_of(*(each for name in names for each in points(*[P] * 16, metric=name)))
    after = run_of(
        *points(*[F] * 8, *[P] * 8),
        *points(*[P] * 6, *[F] * 10, metric="b"),
        *points(*[P] * 12, *[F] * 4, metric="quiet"),
    )
    tests = {test.id: test for test in after.tests}
    wanted = rows_to_confirm(set_of(tests, *gates), tests.get, before)
    assert {len(metrics) for metrics in wanted.values()} == {1, 2}
    assert {name: sum(name in metrics for metrics in wanted.values()) for name in names} == {
        "points": 8,
        "b": 10,
        "quiet": 0,
    }
    again = {
        test.id: replace(test, again=tuple(replace(it, score=P) for it in test.records if it.metric == "points") * 2)
        for test in after.tests
    }
    found = against(before, document(*again.values()), *gates)
    assert [each.record.outcome for each in found] == ["failed", "failed", "passed"]
    assert "not confirmed" in found[1].text
    assert found[2].record.regression.confirmation is None


def test_what_clears_one_gate_clears_no_other() -> None:
    """Each is decided anew beside the first answers of the others."""
    before = run_of(*points(*[P] * 8, F), *points(*[P] * 7, F, P, metric="b"))
    soft, steady = run_again(*[SOFT] * 8, LUCKY), run_again(*[STEADY] * 7, LUCKY, [P], metric="b")
    both = zip(soft.tests, steady.tests, strict=True)
    run = document(*(replace(a, records=a.records + b.records, again=a.again + b.again) for a, b in both))
    found = against(before, run, CONFIRMED, replace(CONFIRMED, metric="b"))
    assert [each.record.outcome for each in found] == ["passed", "failed"]
    assert "confirmed by 2 more answers of 8 changed rows: mean drop 0.75 a row" in found[1].text


def test_shards_confirm_as_one_run() -> None:
    """Each confirms the rows of its part; what they decide together is what one run decides."""
    rows = [*[SOFT] * 8, LUCKY]
    whole = run_again(*rows)
    one = against(NINE, whole, CONFIRMED)[0].record
    tests = {test.id: test for test in whole.tests}
    skipped = evaluate_gate(CONFIRMED, replace(set_of({}, CONFIRMED), total=9), tests.get, skipped=(), ran=())
    gate = replace(row("gate"), id=f"t[{CONFIRMED.id}]", gate=skipped.record, outcome="skipped")
    merged = evaluate_merged_gate(gate, [*whole.tests, gate], NINE)
    assert merged is not None
    assert (merged.gate, merged.outcome) == (one, "passed")
    without = evaluate_merged_gate(gate, [*run_again(*([it[0]] for it in rows)).tests, gate], NINE)
    assert without is not None
    assert without.outcome == "failed"
    assert "not confirmed: none of 9 changed rows" in (without.message or "")
    assert load(Document, dump(whole)) == whole


@pytest.mark.parametrize(("lost", "least", "most"), [(0.0, 0, 1), (0.1, 6, 8)])
def test_confirmed_drops_are_those_that_stay(lost: float, least: int, most: int) -> None:
    """Of rows that all vary nearly all false alarms are cleared, of those that are lost for good few."""
    random = np.random.default_rng(5)
    confirmed = 0
    for _ in range(8):
        before, answers = np.ones(200), np.ones((3, 200))
        while drop_p((answers[0] - before).tolist()) > 0.05:
            rates = np.where(random.random(200) < lost, 0.0, 0.95)
            before = (random.random(200) < 0.95).astype(float)
            answers = (random.random((3, 200)) < rates).astype(float)
        run = run_again(*answers.T.tolist())
        confirmed += against(run_of(*points(*before.tolist())), run, CONFIRMED)[0].record.outcome == "failed"
    assert least <= confirmed <= most
