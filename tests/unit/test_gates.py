"""What a gate's marker may say, and how a gate is decided by the records of its set."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

import pytest

from pytest_ragmetrics import metric
from pytest_ragmetrics.core.codec import dump, load
from pytest_ragmetrics.metrics import ContextRecall, Faithfulness, Latency, Metric, RagasScore
from pytest_ragmetrics.plugin.gates.decide import RunTests, evaluate_gates
from pytest_ragmetrics.plugin.gates.gate import GatedSet, MarkedGate, gate_among
from pytest_ragmetrics.plugin.gates.merged import merged_gates
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import Document, Judging, Record, TestRecord
from pytest_ragmetrics.runs.tables import Baseline
from pytest_ragmetrics.runs.wording.comparisons import change_lines
from pytest_ragmetrics.runs.wording.runs import gate_line
from pytest_ragmetrics.stats.intervals import mean_interval
from tests.documents import document, gate_of, record, row
from tests.tables import evaluate_gate, gated_set


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
        ({"p95": 0.2}, "gate-sympathy-rate-0.95-max-0.2"),
        ({"regression": True}, "gate-sympathy-regression"),
        ({"regression": True, "alpha": 0.05}, "gate-sympathy-regression"),
        ({"regression": True, "inconclusive": "pass"}, "gate-sympathy-regression-inconclusive-pass"),
        ({"regression": True, "by": "language"}, "gate-sympathy-regression-by-language"),
        ({"regression": True, "alpha": 0.01, "vacuous": "count"}, "gate-sympathy-regression-alpha-0.01-vacuous-count"),
    ],
)
def test_its_test_is_named_by_what_it_says(given: dict[str, Any], name: str) -> None:
    assert gate_of("sympathy", **given).id == name


def test_a_percentile_is_a_share_up_to_a_bound() -> None:
    """The 95th percentile is at most 2 where 95 % of the scores are; scores without an end have no scale."""
    gate, same = gate_of("latency", p95=2, confidence=0.9), gate_of("latency", rate=0.95, max=2, confidence=0.9)
    assert gate == same
    assert (gate.id, gate.scale, gate.better) == ("gate-latency-p95-2-confidence-0.9", None, "lower")
    assert gate_of("cost", p9=0.01, all_pass=True).id == "gate-cost-rate-0.09-max-0.01-all-pass"
    listed = [Latency()]
    stops = [
        gate_among(listed, ["latency"], named, stops=True).stop_when_decided for named in ({"p95": 2}, {"mean": 2})
    ]
    assert stops == [True, False]
    with pytest.raises(ValueError, match=r"^latency has no highest score, .*: stop_when_decided=True goes with rate=$"):
        gate_among(listed, ["latency"], {"mean": 2, "confidence": 0.9, "stop_when_decided": True})


@pytest.mark.parametrize(
    ("args", "named", "said"),
    [
        ((), {"mean": 0.5}, "it takes the name of one metric"),
        (("a", "b"), {"mean": 0.5}, "it takes the name of one metric"),
        ((3,), {"mean": 0.5}, "it takes the name of one metric"),
        ((" ",), {"mean": 0.5}, "it takes the name of one metric"),
        (("a",), {"mean": 0.5, "least": 1}, "it knows no least; write @pytest.mark.rag_gate"),
        (("a",), {"regression": True, "confirm": 2}, "it knows no confirm; write @pytest.mark.rag_gate"),
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
        (("a",), {"p0": 2}, "it knows no p0"),
        (("a",), {"p100": 2}, "it knows no p100"),
        (("a",), {"p95": "2"}, "p95='2' is no number"),
        (
            ("a",),
            {"p95": 2, "max": 3},
            'p95= is a bound by itself, and takes no max=; write @pytest.mark.rag_gate("latency"',
        ),
        (("a",), {"p50": 2, "p95": 3}, "p50= is a bound by itself, and takes no p95="),
        (("a",), {"p95": 2, "regression": True}, "p95= is a bound by itself, and takes no regression="),
        (("faithfulness",), {"p95": 0.5}, "a percentile such as p95= is for metrics whose lower scores are better, "),
        (("a",), {"regression": False}, "give one of mean= and rate="),
        (("a",), {"regression": "yes"}, "regression='yes' is neither True nor False; write @pytest.mark.rag_gate"),
        (("a",), {"regression": True, "mean": 0.5}, "takes no mean=; write @pytest.mark.rag_gate"),
        (("a",), {"regression": True, "rate": 0.5, "min": 0.5}, "takes no rate="),
        (("a",), {"regression": True, "min": 0.5}, "takes no min="),
        (("a",), {"regression": True, "max": 0.5}, "takes no max="),
        (("a",), {"regression": True, "confidence": 0.9}, "takes no confidence="),
        (("a",), {"regression": True, "inconclusive": "skip"}, "inconclusive must be 'fail' or 'pass', not 'skip'"),
        (("a",), {"regression": True, "alpha": 5}, "alpha must be a number between 0 and 1, such as 0.05, not 5"),
        (("a",), {"regression": True, "alpha": 0.0}, "alpha must be a number between 0 and 1"),
        (("a",), {"mean": 0.5, "alpha": 0.05}, "alpha= goes with regression=True; write @pytest.mark.rag_gate"),
        (("a",), {"mean": 0.5, "by": "language"}, "by= goes with regression=True; write @pytest.mark.rag_gate"),
        (("a",), {"regression": True, "by": 3}, "by= takes the name of one field of the rows; write @pytest.mark"),
        (("a",), {"regression": True, "by": " "}, "by= takes the name of one field of the rows; write @pytest.mark"),
        (("a",), {"mean": 0.5, "confidence": 95}, "confidence=95 must be between 0 and 1"),
        (("faithfulness",), {"mean": 85}, "mean=85 is outside of the scale of faithfulness, 0 to 1: write 0.85"),
        (("faithfulness",), {"rate": 0.5, "min": -0.1}, "min=-0.1 is outside of the scale of faithfulness, 0 to 1"),
        (("noise_sensitivity",), {"rate": 0.5, "max": 20}, "max=20 is outside of the scale of noise_sensitivity"),
        (("semantic_similarity",), {"mean": -2}, "mean=-2 is outside of the scale of semantic_similarity, -1 to 1"),
        (("faithfulness",), {"rate": 0.5, "max": 0.2}, "higher scores of faithfulness are the good ones; write min="),
    ],
)
def test_what_a_marker_may_not_say(args: tuple[Any, ...], named: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        gate_of(*args, **named)


@metric(name="points", better="lower", scale=(0.0, 50.0))
def own(response: str) -> float:
    return float(len(response))


BOTH = RagasScore(metrics=[Faithfulness(), ContextRecall()])


@pytest.mark.parametrize(
    ("listed", "name", "found"),
    [
        ([Faithfulness(), own], "FaithfulnessMetric", ("faithfulness", "higher")),
        ([Faithfulness(), own], "points", ("points", "lower")),
        ([BOTH], "context_recall", ("context_recall", "higher")),
        ([], "sympathy", ("sympathy", None)),
        ([], "ResponseRelevancy", ("answer_relevancy", "higher")),
    ],
)
def test_a_gate_is_over_a_metric_of_its_data_set(listed: list[Metric], name: str, found: tuple[str, Any]) -> None:
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
    with pytest.raises(ValueError, match=said):
        gate_among(listed, [name], {"mean": 60})


def test_a_set_crosses_processes() -> None:
    named = ({"mean": 0.5}, {"rate": 1, "max": 0.2}, {"regression": True, "alpha": 0.1})
    gates = [gate_of(metric="clutter", **it) for it in named]
    gated = replace(gated_set(*gates, total=2, selected=["t[1]"]), line=3, scope="T.")
    assert load(GatedSet, json.loads(json.dumps(dump(gated)))) == gated


def found(
    scores: Mapping[str, float], gate: MarkedGate, *, better: Any = "higher", cluster: int = 0, unnamed: str = ""
) -> Any:
    """Return the decision over tests with these scores; ``cluster`` rows belong together, but for the ``unnamed``."""
    rows: dict[str, Any] = {}
    for number, (name, score) in enumerate(scores.items()):
        sample = {} if not cluster or name == unnamed else {"metadata": {"cluster": number // cluster}}
        scored = replace(record(gate.metric, score, outcome="measured", sample=sample), better=better)
        rows[f"t[{name}]"] = row(name, scored)
    return evaluate_gate(gate, rows)


def test_scores_beyond_the_scale() -> None:
    decided = found({"a": 40.0, "b": 60.0, "c": 52.0, "d": 48.0}, gate_of("points", mean=10, confidence=0.9))
    assert decided.record.outcome == "passed"
    assert decided.record.low > 10
    # Of one score the interval is endless, which JSON cannot say.
    alone = found({"a": 40.0}, gate_of("points", mean=10, confidence=0.9)).record
    assert (alone.low, alone.high) == (None, None)


def test_an_inconclusive_gate_may_pass() -> None:
    scores = {str(number): float(number > 1) for number in range(20)}
    gates = [gate_of("points", mean=0.95, confidence=0.9, inconclusive=word) for word in ("fail", "pass")]
    assert gates[1].id == f"{gates[0].id}-inconclusive-pass"
    records = [found(scores, gate).record for gate in gates]
    assert [(record.outcome, record.passes) for record in records] == [("inconclusive", False), ("inconclusive", True)]
    assert not found(dict.fromkeys(scores, 0.5), gates[1]).record.passes
    with pytest.raises(ValueError, match="inconclusive='pass' goes with a confidence="):
        gate_of("points", mean=0.9, inconclusive="pass")
    with pytest.raises(ValueError, match="inconclusive must be 'fail' or 'pass', not True"):
        gate_of("points", mean=0.9, confidence=0.9, inconclusive=True)


def test_rows_of_one_cluster_weigh_as_one() -> None:
    scores = {str(number): float(number // 2 % 2) for number in range(16)}
    gate = gate_of("points", mean=0.1, confidence=0.9)
    alone, together = found(scores, gate).record, found(scores, gate, cluster=2).record
    assert together.low < alone.low
    assert alone.value == together.value == 0.5
    # One without a cluster is one of its own, and the others stay together.
    nearly = found({**scores, "last": 1.0}, gate, cluster=2, unnamed="last").record
    scores_of_all, clusters = [*scores.values(), 1.0], [*(str(n // 2) for n in range(16)), "last"]
    interval = mean_interval(scores_of_all, confidence=0.9, clusters=clusters)
    assert (nearly.low, nearly.high) == (interval.low, interval.high)


def test_the_direction_is_that_of_the_results() -> None:
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
def test_a_gate_is_decided_by_its_set(last: TestRecord | None, kept: dict[str, bool], outcome: str, said: str) -> None:
    rows = {"t[a]": row("t[a]", SCORED), "t[b]": row("t[b]", record("points", 1.0, outcome="measured")), "t[c]": last}
    selected = ("t[a]", "t[b]", *(["t[c]"] if kept.get("selected", True) else []))
    gate = gate_of("points", mean=0.6)
    decided = evaluate_gate(
        gate,
        rows,
        gated=gated_set(gate, total=3, selected=selected),
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
    tests = [row("t[a]", SCORED), row("t[b]", SCORED), last]
    gate = gate_of("points", mean=0.5)
    gated = gated_set(gate, total=3, selected=["t[a]"])
    undecided = evaluate_gate(gate, {"t[a]": tests[0]}, gated=gated)
    assert undecided.record.outcome == "skipped"
    name = f"t[{gate.id}]"
    places = [replace(test, id=test.id.rpartition("::")[2]) for test in tests]
    decided = merged_gates([*places, row(name, gate=undecided.record, id=name)]).get(name)
    assert (decided and decided.outcome) == outcome


def test_merged_shards_know_which_scores_are_good() -> None:
    """A shard without a score took the higher ones for the good ones; the records of the others say otherwise."""
    gate = gate_of("points", mean=0.5)
    undecided = evaluate_gate(gate, {}, gated=gated_set(gate, total=2))
    tests = [row(name, replace(SCORED, score=0.1, better="lower"), id=name) for name in ("t[a]", "t[b]")]
    waiting = row("t", gate=undecided.record, id=f"t[{gate.id}]")
    decided = merged_gates([*tests, waiting])[waiting.id]
    assert (decided.outcome, decided.gate and decided.gate.better) == ("passed", "lower")


LOSS = gate_of("points", regression=True)


def scored(score: float | None, name: str = "", *, metric: str = "points", **fields: Any) -> Record:
    sample = {"id": name, "metadata": fields.pop("metadata", {})}
    plain = {"judge": None, "verdicts": (), **fields}
    return replace(record(metric, score, outcome="unscored" if score is None else "measured", sample=sample), **plain)


def run_of(*scores: Record, function: str = "t.py::t") -> Document:
    by_name: dict[str, list[Record]] = {}
    for each in scores:
        by_name.setdefault(f"{function}[{each.sample.id}]", []).append(each)
    return document(*(row(name, *records, id=name) for name, records in by_name.items()))


def set_of(tests: Collection[str], *gates: MarkedGate) -> GatedSet:
    return gated_set(*gates, total=len(tests), selected=tests, function="t.py::t")


def against(before: Document | None, after: Document, *gates: MarkedGate, **of: Any) -> list[Any]:
    tests = {test.id: test for test in after.tests}
    gated = set_of(tests, *gates)
    of["baseline"] = None if before is None else Baseline(runs=(before,))
    return evaluate_gates([(gate, gated) for gate in gates], RunTests(tests.get, tests), **of)


def points(*scores: float | None, **fields: Any) -> list[Record]:
    return [scored(score, f"a{number}", **fields) for number, score in enumerate(scores)]


GOOD = run_of(*points(*[1.0] * 10))
SO = "rows got worse, 0 better; if nothing had changed, so large a drop comes in"
ELSEWHERE = run_of(*points(*[0.0] * 10), function="t.py::other")
TWICE = run_of(*points(*[1.0] * 10, metadata={"cluster": "a"}), function="t.py::t[x]")
LOST_4, LOST_5 = ([*points(*[0.0] * lost, *[1.0] * (10 - lost))] for lost in (4, 5))


@pytest.mark.parametrize(
    ("before", "after", "outcome", "said"),
    [
        (GOOD, LOST_4, "passed", f"points 1.00 -> 0.60: 4 of 10 {SO} 6.25 % of runs (limit 5 %); 10 rows *"),
        (GOOD, LOST_5, "failed", f"points 1.00 -> 0.50: 5 of 10 {SO} 3.12 % of runs (limit 5 %)"),
        (GOOD, LOST_5, "failed", "    -1.00  1.00 -> 0.00  a4"),
        (run_of(*LOST_5), points(*[1.0] * 10), "passed", "points 0.50 -> 1.00: 0 of 10 rows *, 5 better; 10 rows *"),
        (GOOD, points(*[1.0] * 10), "passed", "points 1.00 -> 1.00: 0 of 10 rows got worse, 0 better; *"),
        (GOOD, [*points(*[1.0] * 9), scored(0.0, "b")], "passed", "  only here: 1 (b)"),
        (GOOD, points(*[1.0] * 9), "passed", "  only there: 1 (a9)"),
        (None, LOST_5, "skipped", "there is no baseline to compare with: give --rag-baseline=FILE, which --rag-json *"),
        (GOOD, [*LOST_4, scored(None, "b", reason="the judge was away")], "failed", "  b: the judge was away"),
        (GOOD, [*LOST_4[1:], scored(None, "a0", reason="the judge was away")], "failed", "  a0: the judge was away"),
        (run_of(*points(*[1.0] * 9, None)), LOST_5, "failed", "  unscored there: 1 (a9)"),
        (run_of(*points(*[1.0] * 9, 1.0, judge="m")), [*LOST_4[:9], scored(1.0, "a9", judge="n")], "inconclusive",
         "points: scores of different judges are not comparable, and these are of 'n', those before of 'm'; *"),
        (run_of(*points(1.0, better="lower")), points(1.0), "failed", "points: higher scores are better here, lower *"),
        (run_of(*points(1.0, metric="other")), points(1.0), "failed", "points: the baseline has no scores of it; *"),
        (run_of(scored(1.0, "b")), points(1.0), "failed", "nothing can be compared: give the samples ids that stay*"),
        (run_of(*points(1.0, vacuous=True)), points(1.0), "failed", "points: 0 of 1 had something to check in both *"),
        (GOOD, points(1.0, vacuous=True), "failed", 'points: 0 of 1 had something to check; vacuous="count" takes *'),
        (GOOD, [*LOST_4, scored(0.0, "a0")], "passed", "points 1.00 -> 0.60: 4 of 10 rows got worse, 0 better; *"),
        (GOOD, [*LOST_4, scored(0.5, "a0")], "failed", "points: 'a0' has several different scores in one run; *"),
        (run_of(*points(*[1.0] * 10), function="t.py::moved"), LOST_5, "failed", "points 1.00 -> 0.50: 5 of 10 *"),
        # Of lower scores that are the good ones a rise is the drop.
        (run_of(*points(*[0.0] * 8, better="lower")), points(*[1.0] * 8, better="lower"), "failed", "* 8 of 8 *"),
        (run_of(*points(*[1.0] * 8, better="lower")), points(*[0.0] * 8, better="lower"), "passed", "* 0 of 8 *"),
        # Other tests may score the metric otherwise, and two put a sample into different clusters.
        (document(*GOOD.tests, *ELSEWHERE.tests), LOST_5, "failed", "points 1.00 -> 0.50: 5 of 10 *"),
        (document(*GOOD.tests, *ELSEWHERE.tests), points(*[1.0] * 10), "passed", "points 1.00 -> 1.00: 0 of 10 *"),
        (document(*run_of(*points(1.0, metric="other")).tests, *ELSEWHERE.tests), points(1.0), "failed",
         "points: the baseline has no scores of it; *"),
        (document(*GOOD.tests, *TWICE.tests), points(*[1.0] * 10), "passed", "points 1.00 -> 1.00: 0 of 10 *"),
    ],
)  # fmt: skip
def test_a_regression_gate_needs_proof(before: Document | None, after: list[Record], outcome: str, said: str) -> None:
    decided = against(before, run_of(*after), LOSS)[0]
    assert decided.record.outcome == outcome
    assert any(fnmatch(line, said) for line in decided.text.splitlines()), decided.text


def test_a_metric_that_was_redefined_is_not_compared() -> None:
    before, after = (run_of(*points(1.0, metric="correctness", noun=noun)) for noun in ("aspect", "claim"))
    decided = against(before, after, gate_of("correctness", regression=True))[0]
    assert (decided.record.outcome, decided.record.n, decided.record.value) == ("failed", 0, None)
    assert "two metrics of one name" in decided.text


@pytest.mark.parametrize(("alpha", "lost", "outcome"), [(0.02, 5, "passed"), (0.1, 4, "failed"), (0.1, 3, "passed")])
def test_alpha_is_the_share_of_false_alarms(alpha: float, lost: int, outcome: str) -> None:
    """Of 0.0625 for four rows, and half as much for each further one."""
    after = run_of(*points(*[0.0] * lost, *[1.0] * (10 - lost)))
    assert against(GOOD, after, gate_of("points", regression=True, alpha=alpha))[0].record.outcome == outcome


def test_what_a_regression_gate_records() -> None:
    before = run_of(*points(*[1.0] * 10), scored(1.0, "gone"), scored(1.0, "quiet"))
    after = run_of(*LOST_4, scored(0.0, "b"), scored(1.0, "c"), scored(1.0, "quiet", vacuous=True))
    found = against(before, after, LOSS)[0].record
    assert (found.statistic, found.value, found.bound, found.n) == ("regression", -0.4, 0.0, 10)
    assert (found.total, found.unscored, found.vacuous, found.passes) == (13, 0, 1, True)
    figures = found.regression
    assert (figures.before, figures.after, figures.p, figures.adjusted_p) == (1.0, 0.6, 0.0625, 1.0)
    assert (figures.alpha, figures.smallest, figures.silence, figures.doubts) == (0.05, 0.7, "", ())
    assert (figures.new, figures.gone, figures.worse, figures.better, figures.rewritten) == (2, 1, 4, 0, 0)
    assert figures.changed == 4
    counted = against(before, after, gate_of("points", regression=True, vacuous="count"))[0].record
    assert (counted.n, counted.vacuous, counted.counts_vacuous) == (11, 0, True)


def test_clusters_are_flipped_whole() -> None:
    rows = [scored(0.0, f"a{n}", metadata={"cluster": n // 4}) for n in range(8)]
    before = run_of(*points(*[1.0] * 8))
    assert against(before, run_of(*points(*[0.0] * 8)), LOSS)[0].record.outcome == "failed"
    found = against(before, run_of(*rows), LOSS)[0].record
    assert (found.outcome, found.regression.changed, found.regression.p) == ("passed", 2, 0.25)


def test_the_regression_gates_of_a_run_share_alpha() -> None:
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
    assert "so large a drop in one of the 4 gates of the run comes in 14.1 % of runs (limit 5 %)" in together[0].text


def lost_and_gained(lost: int, gained: int, metric: str = "points") -> tuple[list[Record], list[Record]]:
    """Return the scores of twenty rows before and now."""
    same = [1.0] * (20 - lost - gained)
    sides = [*[1.0] * lost, *[0.0] * gained, *same], [*[0.0] * lost, *[1.0] * gained, *same]
    return points(*sides[0], metric=metric), points(*sides[1], metric=metric)


def test_a_gate_s_own_alpha_is_of_its_p_over_the_run() -> None:
    """And gates that rows without a score, or other rules, decide are none of those that share it."""
    (before, now), (old, new) = lost_and_gained(7, 0), lost_and_gained(0, 8, "b")
    first, other = run_of(*before, *old), gate_of("b", regression=True)
    for alpha, outcome in ((0.02, "failed"), (0.01, "passed")):
        own = gate_of("points", regression=True, alpha=alpha)
        found = [each.record for each in against(first, run_of(*now, *new), own, other)]
        assert [it.outcome for it in found] == [outcome, "passed"]
        assert [(it.regression.adjusted_p, it.regression.gates) for it in found] == [(2**-6, 2), (1.0, 2)]
    unscored = run_of(*now, *new[1:], scored(None, "a0", metric="b"))
    other_rules = {"judging": {"b": replace(JUDGING, prompts={"verify": "2"})}}
    first = with_run(first, judging={"b": JUDGING})
    for after, of, outcome in ((unscored, {}, "failed"), (run_of(*now, *new), other_rules, "inconclusive")):
        found = [each.record for each in against(first, after, LOSS, other, **of)]
        assert [it.outcome for it in found] == ["failed", outcome]
        assert (found[0].regression.adjusted_p, found[0].regression.gates) == (2**-7, 1)


def in_languages(*changes: tuple[str | None, int, int, int]) -> tuple[list[Record], list[Record]]:
    """Return scores before and now: of each language how many were lost, gained and stayed the same."""
    sides: list[list[Record]] = [[], []]
    for language, lost, gained, same in changes:
        metadata = {} if language is None else {"language": language, "id": 1}
        for scores, side in zip((lost * [1.0] + gained * [0.0], lost * [0.0] + gained * [1.0]), sides, strict=True):
            first = len(side)
            rows = enumerate([*scores, *[1.0] * same], first)
            side += [scored(score, f"a{number}", metadata=metadata) for number, score in rows]
    return sides[0], sides[1]


def test_a_loss_of_one_group_is_found_and_named() -> None:
    before, now = in_languages(("de", 7, 0, 8), ("fr", 2, 0, 8), (None, 0, 4, 11), ("en", 0, 0, 1))
    by = gate_of("points", regression=True, by="language")
    assert against(run_of(*before), run_of(*now), LOSS)[0].record.outcome == "passed"
    found = against(run_of(*before), run_of(*now), by)[0]
    counts = "9 of 41 rows got worse, 4 better; language=de: 7 of 15 rows got worse, 0 better"
    where = "in one of the 4 groups, or in all rows,"
    chance = f"if nothing had changed, so large a drop {where} comes in 1.56 % of runs (limit 5 %)"
    assert found.text.splitlines()[0] == f"points 0.90 -> 0.78: {counts}; {chance}"
    assert gate_line(found.record).startswith("points against the baseline, by language 0.902 -> 0.780")
    figures = found.record.regression
    assert (figures.by, [each.name for each in figures.dropped]) == ("language", ["language=de"])
    named = [(it.name, it.n, it.worse, it.better, it.p, it.adjusted_p) for it in figures.by_group]
    assert named[0] == ("language=de", 15, 7, 0, 2**-7, 2**-6)
    assert named[1:] == [
        ("language=en", 1, 0, 0, 1.0, 1.0),
        ("language=fr", 10, 2, 0, 0.25, 1.0),
        ("without language", 15, 0, 4, 1.0, 1.0),
    ]
    # Beside another gate the groups of this one count as one test more.
    beside = points(*[1.0] * 41, metric="b")
    both = against(run_of(*before, *beside), run_of(*now, *beside), by, gate_of("b", regression=True))
    assert [it.record.outcome for it in both] == ["failed", "passed"]
    assert "in one of the 2 gates of the run comes in 1.56 % of runs" in both[0].text
    # Groups of few rows, however many, take nothing from the others.
    many = in_languages(("de", 7, 0, 8), *((f"l{number}", 0, 0, 3) for number in range(60)))
    found = against(run_of(*many[0]), run_of(*many[1]), by)[0]
    assert "language=de: 7 of 15 rows got worse" in found.text.splitlines()[0]
    assert found.record.regression.by_group[0].adjusted_p == 2**-6
    whole = in_languages(*((f"l{number}", 8, 0, 2) for number in range(5)))
    found = against(run_of(*whole[0]), run_of(*whole[1]), by)[0]
    assert "; 2 more groups got worse; if nothing" in found.text.splitlines()[0]


def test_groups_are_by_a_field_that_rows_have() -> None:
    before, now = in_languages(("de", 7, 0, 8))
    (found,) = against(run_of(*before), run_of(*now), gate_of("points", regression=True, by="langauge"))
    said = "by='langauge': no row has this field in its metadata; there are id, language"
    assert (found.record.outcome, found.text) == ("failed", said)
    (found,) = against(GOOD, GOOD, gate_of("points", regression=True, by="language"))
    assert found.text == "by='language': no row has this field in its metadata; they have no metadata"
    asks = run_of(*asked(*["Why?"] * 5, *["How?"] * 5))
    (found,) = against(asks, asks, gate_of("points", regression=True, by="user_input"))
    assert [it.name for it in found.record.regression.by_group] == ["user_input=How?", "user_input=Why?"]


def test_shards_decide_groups_as_one_run() -> None:
    before, now = (run_of(*side) for side in in_languages(("de", 7, 0, 8), ("fr", 2, 0, 8), (None, 0, 4, 11)))
    gate = gate_of("points", regression=True, by="language")
    (whole,) = against(before, now, gate)
    skipped = evaluate_gate(gate, {}, gated=replace(set_of((), gate), total=40)).record
    waiting = row(f"t[{gate.id}]", gate=skipped, file="t.py")
    (merged,) = merged_gates([*now.tests, waiting], Baseline(runs=(before,))).values()
    assert (merged.gate, merged.outcome) == (whole.record, "failed")
    assert merged_gates([merged]) == {merged.id: merged}


def test_merged_gates_are_tested_together() -> None:
    """One that failed in its own run may pass; none that passed fails, and files of early versions stay as they are."""

    def decided(name: str, lost: int, gained: int, **fields: Any) -> TestRecord:
        before, now = lost_and_gained(lost, gained)
        found = against(run_of(*before), run_of(*now), LOSS)[0]
        gate = replace(found.record, regression=replace(found.record.regression, **fields))
        ended: Any = "passed" if gate.passes else "failed"
        return row(f"{name}[{LOSS.id}]", outcome=ended, message=found.text, gate=gate, file="t.py")

    seven, even, eight = decided("a", 7, 1), decided("b", 4, 4), decided("c", 8, 0)
    merged: Any = merged_gates([seven, even, eight])
    assert [merged[it.id].outcome for it in (seven, even, eight)] == ["passed", "passed", "failed"]
    assert [merged[it.id].gate.outcome for it in (seven, even, eight)] == ["passed", "passed", "failed"]
    assert [merged[it.id].message for it in (seven, eight)] == [None, eight.message]
    assert {test.gate.regression.gates for test in merged.values()} == {3}
    assert merged_gates([decided("d", 7, 1, least=None), even]).keys() == {even.id}
    # Beside gates of other files it passed.
    passed: Any = replace(seven, outcome="passed")
    passed = replace(
        passed, gate=replace(passed.gate, outcome="passed", regression=replace(passed.gate.regression, adjusted_p=0.2))
    )
    assert merged_gates([passed]) == {}


def test_shards_decide_a_regression_as_one_run() -> None:
    names = ("points", "b")
    before = run_of(*(each for name in names for each in points(*[1.0] * 10, metric=name)))
    after = run_of(*points(*[0.0] * 8, 1.0, 1.0), *points(*[0.0] * 7, *[1.0] * 3, metric="b"))
    gates = [gate_of(name, regression=True, alpha=0.04) for name in names]
    whole = [found.record for found in against(before, after, *gates)]
    assert [found.regression and found.regression.adjusted_p for found in whole] == [2**-7, 2**-7]
    gated = replace(set_of((), *gates), total=10)
    skipped = [evaluate_gate(gate, {}, gated=gated).record for gate in gates]
    waiting = [row(f"t[{gate.id}]", gate=it, file="t.py") for gate, it in zip(gates, skipped, strict=True)]
    tests = [*after.tests, *waiting]
    assert merged_gates(tests) == {}
    merged = merged_gates(tests, Baseline(runs=(before,)))
    assert [merged[each.id].gate for each in waiting] == whole
    assert [merged[each.id].outcome for each in waiting] == ["failed", "failed"]


def asked(*questions: str | None) -> list[Record]:
    return [
        replace(each, sample=replace(each.sample, user_input=question))
        for each, question in zip(points(*[1.0] * len(questions)), questions, strict=True)
    ]


def with_run(made: Document, **fields: Any) -> Document:
    return replace(made, run=replace(made.run, **fields))


def with_gate(made: Document, total: int) -> Document:
    """Return a run with the gate of its set, which has so many tests."""
    gate = evaluate_gate(LOSS, {}, gated=replace(set_of((), LOSS), total=total))
    return replace(made, tests=(*made.tests, row(f"t[{LOSS.id}]", gate=gate.record, file="t.py")))


def broken(made: Document, number: int) -> Document:
    """Return a run in which so many more tests were in error before they scored anything."""
    tests = (row(f"t[b{n}]", outcome="error", file="t.py") for n in range(number))
    return replace(made, tests=(*made.tests, *tests))


def even(number: int, **fields: Any) -> Document:
    return run_of(*points(*[1.0] * number, **fields))


WHOLE = "the baseline is not whole"
QUESTIONS = [f"What is {n}?" for n in range(10)]


@pytest.mark.parametrize(
    ("before", "after", "outcome", "said"),
    [
        # A set may grow, and lose a fifth of its rows.
        (even(40), even(200), "passed", ""),
        (even(10), even(8), "passed", ""),
        (even(10), even(7), "inconclusive", "7 of the 10 rows of the baseline can be compared, fewer than 80 %"),
        (even(200), even(10), "inconclusive", "10 of the 200 rows of the baseline can be compared"),
        (even(200), run_of(*points(*[0.0] * 10)), "inconclusive", "10 of the 200 rows of the baseline can be compared"),
        (run_of(*points(*[1.0] * 5, *[None] * 7)), even(12), "inconclusive", "5 of the 12 rows of the baseline can be"),
        # Of fewer than five pairs no drop could be shown.
        (even(1), run_of(*points(0.0)), "inconclusive", "1 row is compared, and 5 are the least"),
        (even(4), run_of(*points(*[0.0] * 4)), "inconclusive", "4 rows are compared, and 5 are the least"),
        (even(4), even(100), "inconclusive", "4 rows are compared, and 5 are the least"),
        (even(5), run_of(*points(*[0.0] * 5)), "failed", ""),
        # Few of the rows and few rows: one reason is enough.
        (even(40), even(3), "inconclusive", "3 of the 40 rows of the baseline can be compared, fewer than 80 %"),
        # A part of the tests; what the gates of the set say comes before what the run says.
        (with_run(even(11), partial="-k"), even(200), "inconclusive", f"{WHOLE} (-k)"),
        (with_run(even(11), partial="the run stopped early"), even(11), "inconclusive", f"{WHOLE} (the run stopped "),
        (with_run(with_gate(even(11), 11), partial="-k"), even(11), "passed", ""),
        (with_run(with_gate(even(12), 12), partial="6 deselected"), even(12), "passed", ""),
        (with_gate(even(11), 200), even(200), "inconclusive", f"{WHOLE} (11 of 200 tests of the set were scored)"),
        (with_gate(broken(even(30), 170), 200), even(200), "inconclusive", f"{WHOLE} (30 of 200 tests of the set"),
        (with_gate(broken(even(199), 1), 200), even(200), "passed", ""),
        # Another question is another row, with an id or without one.
        (run_of(*asked(*QUESTIONS)), run_of(*asked(*QUESTIONS[:8], "Why?", "How?")), "passed", "another question: 2"),
        (run_of(*asked(*QUESTIONS)), run_of(*asked(*QUESTIONS[:7], *["Why?"] * 3)), "inconclusive",
         "7 of the 10 rows of the baseline can be compared, fewer than 80 %, 3 ask another question under the same id"),
        (run_of(*asked(*QUESTIONS)), run_of(*asked(*["Why?"] * 10)), "inconclusive",
         "0 of the 10 rows of the baseline can be compared, fewer than 80 %, 10 ask another question under the"),
        (run_of(*asked(*QUESTIONS)), run_of(*asked(*(f"  {it}\n" for it in QUESTIONS))), "passed", ""),
        (run_of(*asked(*[None] * 10)), run_of(*asked(*QUESTIONS)), "passed", ""),
        (run_of(*asked("¿Cuándo?", "いつ?", *QUESTIONS[2:7])), run_of(*asked("¿Dónde?", "どこ?", *QUESTIONS[2:7])),
         "inconclusive", "5 of the 7 rows of the baseline can be compared, fewer than 80 %, 2 ask another question"),
    ],
)  # fmt: skip
def test_a_small_part_decides_no_regression(before: Document, after: Document, outcome: str, said: str) -> None:
    gates = LOSS, gate_of("points", regression=True, inconclusive="pass")
    for gate, passes in zip(gates, (outcome == "passed", outcome != "failed"), strict=True):
        (decided,) = against(before, after, gate)
        assert decided.record.outcome == outcome, decided.text
        assert decided.record.passes == passes
        assert said in decided.text
        if outcome == "inconclusive":
            assert f"inconclusive: {said}" in gate_line(decided.record)
            assert decided.text.count(" compared") <= 1
            assert "write the baseline anew (--rag-json=FILE)" in decided.text
            assert "if nothing had changed" not in decided.text


def spoken(pattern: str, **fields: Any) -> Document:
    """Return a run in which the rows marked "." have nothing to check."""
    marks = enumerate(pattern)
    return run_of(*(replace(scored(1.0, f"a{n}", **fields), vacuous=mark == ".") for n, mark in marks))


ONE_FILE = {"metadata": {"cluster": "manual"}}


@pytest.mark.parametrize(
    ("before", "after", "outcome", "said"),
    [
        (spoken("x" * 40), spoken("x" + "." * 39), "failed", "39 of 40 had nothing to check; the baseline had 0"),
        (spoken("x" * 40), spoken("x" * 28 + "." * 12), "failed", "12 of 40 had nothing to check; the baseline had 0"),
        (spoken("x" * 30 + "." * 10), spoken("x" * 15 + "." * 25), "failed", "25 of 40 had nothing to check; the base"),
        (spoken("x" * 40), spoken("x" * 35 + "." * 5), "failed", "5 of 40 had nothing to check; the baseline had 0"),
        (spoken("x" * 40), spoken("x" * 36 + "." * 4), "passed", "0 of 36 rows got worse, 0 better"),
        (spoken("x" * 10 + "." * 30), spoken("x" * 10 + "." * 30), "passed", "0 of 10 rows got worse, 0 better"),
        (spoken("x" * 20 + "." * 20), spoken("." * 5 + "x" * 20 + "." * 15), "passed", "0 of 15 rows got worse"),
        (spoken("x" * 10 + "." * 30), spoken("x" * 40), "passed", "0 of 10 rows got worse"),
        (spoken("x" + "." * 39), spoken("x" + "." * 39), "passed", "1 row like this can hardly show a drop"),
        (spoken("xxx" + "." * 9), spoken(".xxx" + "." * 8), "passed", "0 of 2 rows got worse"),
        (spoken("x" * 40, **ONE_FILE), spoken("x" * 28 + "." * 12, **ONE_FILE), "passed", "0 of 28 rows got worse"),
    ],
)  # fmt: skip
def test_an_application_that_falls_silent_fails(before: Document, after: Document, outcome: str, said: str) -> None:
    decided = against(before, after, LOSS)[0]
    assert decided.record.outcome == outcome, decided.text
    assert said in decided.text
    assert said in gate_line(decided.record)
    assert against(before, after, gate_of("points", regression=True, vacuous="count"))[0].record.outcome == "passed"


def test_a_bound_says_how_silent_the_baseline_was() -> None:
    gate = gate_of("points", mean=0.5)
    quiet, loud = spoken("x" + "." * 39), spoken("x" * 40)
    assert "(n 1, 39 of 40 had nothing to check; the baseline had 0)" in gate_line(against(loud, quiet, gate)[0].record)
    assert "(n 1, 1 of 40 had something to check)" in gate_line(against(None, quiet, gate)[0].record)


JUDGING = Judging(judge="m", prompts={"verify": "1"}, definition={"release": "1", "code": "a", "embedder": "local"})


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (JUDGING, ""),
        (replace(JUDGING, definition={"release": "2"}, prompts={}), ""),
        (replace(JUDGING, prompts={"verify": "2", "list": "1"}), "the prompt of verify changed since the baseline"),
        (replace(JUDGING, definition={**JUDGING.definition, "code": "b"}), "its code changed since the baseline"),
        (replace(JUDGING, definition={"embedder": "x"}), "its embedder changed since the baseline"),
        (None, ""),
    ],
)
def test_scores_by_other_rules_decide_nothing(now: Judging | None, said: str) -> None:
    judging = {} if now is None else {"points": now}
    before = with_run(even(10), judging={"points": JUDGING})
    for after, outcome in ((even(10), "passed"), (run_of(*points(*[0.0] * 10)), "failed")):
        (decided,) = against(before, after, LOSS, judging=judging)
        assert decided.record.outcome == ("inconclusive" if said else outcome)
        assert said in decided.text
        found = compare_documents(with_run(after, judging=judging), before)
        incomparable = [(pair.pairs, f"{pair.why} since the baseline") for pair in found.incomparable]
        assert incomparable == ([(10, said)] if said else [])
        assert any("10 of points: the prompt of verify" in it for it in change_lines(found)) == ("prompt" in said)


def test_other_questions_are_not_compared_by_a_run() -> None:
    old, new = run_of(*asked("Why?", "How?")), run_of(*asked("Why so?", "How?"))
    found = compare_documents(new, old)
    (pair,) = found.incomparable
    assert (pair.metric, pair.pairs, pair.why) == ("points", 1, "they ask another question")
    assert found.counts["same"] == 1


def test_figures_that_decide_nothing_are_apart() -> None:
    after = run_of(*points(0.9, 0.5, 0.8, 0.7, 0.95, 1.0, 1.0, 1.0))
    lines, more = (against(even(8), after, LOSS, verbose=it)[0].text.splitlines() for it in (False, True))
    assert lines[0] == f"points 1.00 -> 0.86: 5 of 8 {SO} 3.12 % of runs (limit 5 %)"
    (figures,) = {*more} - {*lines}
    assert figures == "  mean change -0.144, 95 % interval -0.47..+0.29, t test p=0.059, sign flips p=0.062"
    assert not re.search("interval|t test|sign flips|McNemar|power", "\n".join(lines))
