"""Tables of one metric, faithfulness, and sets with gates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_ragmetrics.core.result import Direction, MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.plugin.gates.decide import GateDecision, RunTests, evaluate_gates
from pytest_ragmetrics.plugin.gates.gate import GatedSet, MarkedGate
from pytest_ragmetrics.runs.records import Document, TestRecord
from pytest_ragmetrics.runs.tables import Baseline


def table(
    scores: Mapping[str, float | None] | Iterable[float | None],
    *,
    judge: str | None = "openai:small",
    clusters: Iterable[object] = (),
    metadata: Iterable[Mapping[str, object]] = (),
    better: Direction = "higher",
) -> Evaluation:
    """Return a row for each score, by the ids of a mapping, else q0, q1, ...

    ``clusters``, or all ``metadata``, have one for each row.
    """
    given = scores if isinstance(scores, Mapping) else {f"q{index}": score for index, score in enumerate(scores)}
    named = [*metadata] or [{"cluster": name} for name in clusters] or [{}] * len(given)
    rows = []
    for index, ((name, score), of_row) in enumerate(zip(given.items(), named, strict=True)):
        sample = Sample(id=name, metadata=of_row)
        if score is None:
            rows.append(Row(sample=sample, unscored={"faithfulness": "no claims"}))
        else:
            result = MetricResult(score, metric="faithfulness", judge=judge, reason=f"reason {index}")
            rows.append(Row(sample=sample, results={"faithfulness": result}))
    return Evaluation(metrics=("faithfulness",), rows=tuple(rows), better={"faithfulness": better})


def gated_set(*gates: MarkedGate, total: int, selected: Iterable[str] = (), function: str = "t", **of: Any) -> GatedSet:
    """Return the set of a function of t.py; ``of`` are further fields."""
    name = function.rpartition("::")[2]
    place: dict[str, Any] = {"function": function, "name": name, "file": "t.py", "line": 1, "scope": ""}
    return GatedSet(**place, gates=gates, total=total, selected=tuple(selected), **of)


def evaluate_gate(
    gate: MarkedGate,
    tests: Mapping[str, TestRecord | None],
    *before: Document,
    gated: GatedSet | None = None,
    function: str = "t",
    **of: Any,
) -> GateDecision:
    """Decide a gate over the tests of a function, all of which ran, or over a set; against the runs before, if any.

    ``of`` are arguments of :func:`evaluate_gates`, and fields of :class:`RunTests`.
    """
    whole = gated or gated_set(gate, total=len(tests), selected=tests, function=function)
    which = {"ran": tests.keys(), **{name: of.pop(name) for name in ("ran", "skipped", "spared") if name in of}}
    given = {"baseline": Baseline(runs=before) if before else None, **of}
    return evaluate_gates([(gate, whole)], RunTests(tests.get, **which), **given)[0]
