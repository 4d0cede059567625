"""The gates of several runs as those of one: what none of them could decide alone is decided over all their tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pytest_ragmetrics.plugin.gates.decide import RunTests, evaluate_gates, terms
from pytest_ragmetrics.plugin.gates.gate import GatedSet, MarkedGate
from pytest_ragmetrics.runs.records import GateRecord, Judging, RegressionRecord, TestRecord
from pytest_ragmetrics.runs.tables import Baseline
from pytest_ragmetrics.stats.drop import together


def merged_gates(
    tests: Sequence[TestRecord],
    baseline: Baseline | None = None,
    judging: Mapping[str, Judging] = MappingProxyType({}),
) -> dict[str, TestRecord]:
    """Return the gates that come out otherwise in one run over all ``tests`` than in those that made them.

    A skipped one is decided if the tests are its whole set (of a test that passed without a score there is no record),
    a regression gate if there is a ``baseline``. The regression gates of all runs are tested together: one that failed
    in its own run may pass then. One that passed there stays so, whatever the others are.
    """
    waiting = {row.id: it for row in tests if row.gate and (it := _again(row, row.gate, tests)) is not None}
    before = dict(_tested(tests))
    members = {test.id: test for test in tests if test.gate is None}
    decisions = evaluate_gates(
        waiting.values(),
        RunTests(members.get, members.keys()),  # those that were skipped without a record are in no document
        baseline=baseline,
        judging=judging,
        others=before.values(),
    )
    rows = {row.id: row for row in tests}
    found = {
        name: _with_gate(rows[name], it.record, it.text)
        for name, it in zip(waiting, decisions, strict=True)
        if it.record.outcome != "skipped"
    }
    all_together = together({**before, **dict(_tested(found.values()))}, gates=True)
    for name, old in before.items():
        new, gate = all_together[name], rows[name].gate
        if gate is not None and (old.shown or not new.shown):
            retested = replace(gate, regression=new, outcome=new.outcome)
            is_freed = retested.passes and rows[name].outcome == "failed"
            found[name] = _with_gate(rows[name], retested, None) if is_freed else replace(rows[name], gate=retested)
    return found


def _tested(tests: Iterable[TestRecord]) -> Iterator[tuple[str, RegressionRecord]]:
    """Yield the regression gates that were decided by a test of their rows, but for files of early versions."""
    for row in tests:
        gate = row.gate
        if gate and gate.regression and gate.regression.least is not None and not gate.unscored:
            yield row.id, gate.regression


def _with_gate(row: TestRecord, gate: GateRecord, text: str | None) -> TestRecord:
    passes = gate.passes
    return replace(row, gate=gate, outcome="passed" if passes else "failed", message=None if passes else text)


def _again(row: TestRecord, gate: GateRecord, tests: Sequence[TestRecord]) -> tuple[MarkedGate, GatedSet] | None:
    """Return a gate that was skipped, with its set if that is whole now."""
    function, _, name = row.id.partition("[gate-")
    gated = GatedSet(
        function=function,
        name=function.rpartition("::")[2],
        file=row.file,
        line=row.line,
        scope="",
        gates=(),
        total=gate.total,
    )
    members = tuple(test.id for test in tests if test.gate is None and gated.has(test.id))
    if gate.outcome != "skipped" or not name or len(members) != gate.total:
        return None
    # The direction was a guess unless a record had it; the records of all tests have it.
    marked = MarkedGate(
        **{**terms(gate), "better": gate.better if gate.statistic == "rate" else None},
        alpha=None if gate.regression is None else gate.regression.alpha,
        by="" if gate.regression is None else gate.regression.by,
        stop_when_decided=gate.stop is not None,
    )
    return marked, replace(gated, selected=members)
