"""The gates of a session: found at collection, decided when all their tests have run.

One process runs a gate as a test of its own, after the last of its set. A worker of xdist cannot see the tests of the
others: it leaves the gates out and tells the controller of them, which decides them when all workers are done and
reports each like a test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.reporting import GATE

if TYPE_CHECKING:
    from pytest_ragmetrics.gates import Gate, GateDecision, GatedSet
    from pytest_ragmetrics.reporting import Collector

_UNSEEN = (
    "marker rag_gate: it means nothing on a method of unittest.TestCase, nor where a hook adds it: write it above a "
    "function, or a method of another class"
)
_ROW = pytest.StashKey[Mapping[str, Any]]()


class GatePlugin:
    """Knows the gates, and what was gathered of the tests they are over: ``collector``, where tests are reported."""

    def __init__(self, config: pytest.Config) -> None:
        self.collector: Collector | None = None
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._sets: dict[str, GatedSet] = {}
        self._faults: list[str] = []

    def found(self, made: object) -> None:
        """Take note of the tests that a function makes, if they have a gate; the list gets those asked for by name."""
        tests = made if isinstance(made, list) else []
        if not tests or not isinstance(tests[0], pytest.Function) or not tests[0].get_closest_marker("rag_gate"):
            return
        gated = self._gated(tests)
        if gated is not None and gated.function not in self._sets:
            self._sets[gated.function] = gated
        asked = {argument.rpartition("::")[2] for argument in self._config.args}
        items = [] if gated is None else self._items(gated, tests[0].parent)
        tests += [item for item in items if item.name in asked]

    def check(self, items: Sequence[pytest.Item]) -> None:
        """Raise ``pytest.UsageError`` for a marker that cannot be used, also where pytest showed no function of it."""
        if not self._faults:
            gated = {_function_of(item) for item in items if item.get_closest_marker("rag_gate") is not None}
            self._faults = [f"{function}: {_UNSEEN}" for function in sorted(gated - self._sets.keys())]
        if self._faults:
            raise pytest.UsageError("\n".join(self._faults))

    def place(self, items: list[pytest.Item]) -> None:
        """Put each gate behind the last test of its set, when it is settled which of them are to run."""
        if not self._sets:
            return
        last: dict[str, pytest.Item] = {}
        selected: dict[str, list[str]] = {}
        for item in items:
            function = _function_of(item)
            if function in self._sets:
                last[function] = item
                if not isinstance(item, GateItem):
                    selected.setdefault(function, []).append(item.nodeid)
        self._sets = {name: replace(self._sets[name], selected=tuple(selected.get(name, ()))) for name in last}
        placed: list[pytest.Item] = []
        for item in items:
            function = _function_of(item)
            if not isinstance(item, GateItem) or (function not in selected and not self._is_worker):
                placed.append(item)
            if last.get(function) is item and function in selected and not self._is_worker:
                placed += self._items(self._sets[function], item.parent)
        items[:] = placed

    def rule(self, gate: Gate, function: str) -> GateDecision:
        """Decide a gate by what has been reported."""
        from pytest_ragmetrics.gates import evaluate_gate

        collector = self.collector
        if collector is None:
            msg = "a gate is decided where tests are reported"
            raise RuntimeError(msg)
        return evaluate_gate(gate, self._sets[function], collector.row, skipped=collector.skipped, ran=collector.ran)

    def attach(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Put what a gate found on the report of its test."""
        row = item.stash.get(_ROW, None)
        if row is None or report.when != "call":
            return
        setattr(report, GATE, row)
        if isinstance(item, GateItem) and isinstance(report.longrepr, tuple):
            # Where the gate stands, not where this package says so.
            file, line, _ = item.location
            report.longrepr = (file, (line or 0) + 1, report.longrepr[2])

    def to_rows(self) -> list[dict[str, Any]]:
        """Return what a worker tells of the gates, as JSON builtins."""
        return [gated.to_row() for gated in self._sets.values()]

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take in what a worker told: all of them tell the same, one that crashed nothing."""
        from pytest_ragmetrics.gates import GatedSet

        for row in rows:
            self._sets.setdefault(row["function"], GatedSet.from_row(row))

    def report(self, session: pytest.Session) -> None:
        """Report the gates that workers told of, each like a test that ran here."""
        if self._is_worker or not session.config.pluginmanager.hasplugin("dsession"):
            return
        gates = [(gate, gated) for gated in self._sets.values() for gate in gated.gates]
        session.testscollected += len(gates)
        for gate, gated in gates:
            self._report(gate, gated, session.config.hook)

    def _report(self, gate: Gate, gated: GatedSet, hook: Any) -> None:
        from pytest_ragmetrics.report.junit import gate_properties

        nodeid = f"{gated.function}[{gate.id}]"
        location = gated.location(gate)
        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        start = time.time()
        found = self.rule(gate, gated.function)
        for when in ("setup", "call", "teardown"):
            outcome, said = _told(found, gated) if when == "call" else ("passed", None)
            stop = time.time()
            report = pytest.TestReport(
                nodeid,
                location,
                {gated.name: 1},
                outcome,  # type: ignore[arg-type] # one of the three, as _told() has them
                said,
                when,
                duration=stop - start,
                start=start,
                stop=stop,
                user_properties=gate_properties(found.row),
            )
            if when == "call":
                setattr(report, GATE, found.row)
            hook.pytest_runtest_logreport(report=report)
            start = stop
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)

    def _gated(self, tests: Sequence[pytest.Function]) -> GatedSet | None:
        from pytest_ragmetrics.gates import GatedSet, gate_of

        first = tests[0]
        gates: dict[str, Gate] = {}
        for marker in first.iter_markers("rag_gate"):
            try:
                gate = gate_of(*marker.args, **marker.kwargs)
            except ValueError as error:
                self._faults.append(f"{_function_of(first)}: marker rag_gate: {error}")
                return None
            gates[gate.id] = gate
        file, line, place = first.location
        # The marker next to the function comes first, and what is written first is to be shown first.
        return GatedSet(
            function=_function_of(first),
            name=first.originalname,
            file=file,
            line=line,
            scope=place.removesuffix(first.name),
            gates=tuple(reversed(gates.values())),
            total=len(tests),
        )

    def _items(self, gated: GatedSet, parent: Any) -> list[GateItem]:
        made: Callable[..., GateItem] = GateItem.from_parent
        return [
            made(parent, name=f"{gated.name}[{gate.id}]", gate=gate, gated=gated, rule=self.rule)
            for gate in gated.gates
        ]


class GateItem(pytest.Item):
    """A gate as a test of its own."""

    def __init__(self, *, gate: Gate, gated: GatedSet, rule: Callable[[Gate, str], GateDecision], **node: Any) -> None:
        super().__init__(**node)
        self.function = gated.function
        self._gate = gate
        _, self._line, self._place = gated.location(gate)
        self._rule = rule

    def runtest(self) -> None:
        """Decide the gate."""
        from pytest_ragmetrics.report.junit import gate_properties

        found = self._rule(self._gate, self.function)
        self.stash[_ROW] = found.row
        self.user_properties[:] = gate_properties(found.row)
        if found.row["outcome"] == "skipped":
            pytest.skip(found.text)
        if found.row["outcome"] != "passed":
            raise _GateError(found.text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what a gate that does not hold has to say, without the frames behind it."""
        return str(excinfo.value) if isinstance(excinfo.value, _GateError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return where the function stands that has the marker."""
        return self.path, self._line, self._place


class _GateError(AssertionError):
    """A gate does not hold."""


def _function_of(item: pytest.Item) -> str:
    """Return the node id of the function that a test belongs to."""
    if isinstance(item, GateItem):
        return item.function
    name = getattr(item, "originalname", None) or item.name
    return f"{item.parent.nodeid}::{name}" if item.parent is not None else name


def _told(found: GateDecision, gated: GatedSet) -> tuple[str, Any]:
    """Return outcome and message of a gate as reports have them."""
    outcome = found.row["outcome"]
    if outcome == "skipped":
        return "skipped", (gated.file, (gated.line or 0) + 1, f"Skipped: {found.text}")
    return ("passed", None) if outcome == "passed" else ("failed", found.text)
