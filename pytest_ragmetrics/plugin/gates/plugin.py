"""The gates of a session as tests of their own: found at collection, decided when all tests of their set have run.

One process runs a gate after the last test of its set. A worker of xdist cannot see the tests of the others: it makes
no tests of gates and sends them to the controller, which decides them when all workers have ended and reports each
like a test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from pytest_ragmetrics.core.codec import dump, load
from pytest_ragmetrics.plugin.gates.decide import GateDecision, evaluate_gate
from pytest_ragmetrics.plugin.gates.gate import GatedSet, MarkedGate, gate_among
from pytest_ragmetrics.plugin.reporting import Collector, RunReport, carried, gate_properties
from pytest_ragmetrics.plugin.session import PytestSession, function_of
from pytest_ragmetrics.runs.compare import cluster_of
from pytest_ragmetrics.runs.records import GateRecord
from pytest_ragmetrics.stats.stopping import draw

_RECORD = pytest.StashKey[GateRecord]()


class GatePlugin:
    """The hooks that make a test of each gate; ``report`` has the tests; workers have none, and decide nothing."""

    def __init__(self, session: PytestSession, config: pytest.Config, report: RunReport | None) -> None:
        self._session = session
        self._asked = {argument.rpartition("::")[2] for argument in config.args}
        self._collector = Collector() if report is None else report.collector
        self._baseline = None if report is None else report.baseline
        self._report_of_run = report
        self._is_verbose = config.getoption("verbose", 0) > 0
        self._sets: dict[str, GatedSet] = {}

    def found(self, tests: list[Any]) -> None:
        """Note the gates of the tests that a function makes; those asked for by name are added to the list."""
        if not isinstance(tests[0], pytest.Function):
            return
        function = function_of(tests[0])
        try:
            gated = _gated_set(tests, stops=self._session.settings.stop_when_decided)
        except (TypeError, ValueError) as error:
            self._session.note_collected("rag_gate", function, fault=str(error))
            return
        self._session.note_collected("rag_gate", function)
        self._sets.setdefault(function, gated)
        tests += [item for item in self._items(gated, tests[0].parent) if item.name in self._asked]

    def add(self, rows: Sequence[Any]) -> None:
        """Add the gates of a worker: all of them send the same."""
        for gated in load(list[GatedSet], rows, place="gates"):
            self._sets.setdefault(gated.function, gated)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Put each gate behind the last test of its set, when all others have selected and ordered the tests."""
        yield
        self._draw(items)
        last: dict[str, pytest.Item] = {}
        selected: dict[str, list[str]] = {}
        for item in items:
            function = function_of(item)
            if function in self._sets:
                last[function] = item
                if not isinstance(item, GateItem):
                    selected.setdefault(function, []).append(item.nodeid)
        self._sets = {name: replace(self._sets[name], selected=tuple(selected.get(name, ()))) for name in last}
        placed: list[pytest.Item] = []
        for item in items:
            function = function_of(item)
            if not isinstance(item, GateItem) or (function not in selected and not self._session.is_worker):
                placed.append(item)
            if last.get(function) is item and function in selected and not self._session.is_worker:
                placed += self._items(self._sets[function], item.parent)
        items[:] = placed

    @property
    def drawn(self) -> list[GatedSet]:
        """The sets whose rows are asked in a drawn order until their gates are decided."""
        return [gated for gated in self._sets.values() if gated.draw is not None]

    def _draw(self, items: list[pytest.Item]) -> None:
        """Put the tests of each whole set that may stop into a drawn order, at the places where they stood."""
        places: dict[str, list[int]] = {}
        for place, item in enumerate(items):
            function = function_of(item)
            if not isinstance(item, GateItem) and function in self._sets and self._sets[function].may_stop:
                places.setdefault(function, []).append(place)
        for function, found in places.items():
            if len(found) != self._sets[function].total or self._session.dry_run or self._session.batched:
                # Rows of a batch are asked together.
                continue
            tests = {items[place].nodeid: items[place] for place in found}
            samples = {name: _case(test).row.sample for name, test in tests.items()}
            clusters = {name: None if sample is None else cluster_of(sample) for name, sample in samples.items()}
            order, drawn = draw(clusters, self._session.seed)
            self._sets[function] = replace(self._sets[function], draw=drawn)
            for place, name in zip(found, order, strict=True):
                items[place] = tests[name]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the decision on the report of a gate."""
        report = yield
        record = item.stash.get(_RECORD, None)
        if record is not None and report.when == "call":
            carried(report).gate = record
            if isinstance(report.longrepr, tuple):
                # pytest.skip() names the line of this package that calls it, not that of the gate.
                file, line, _ = item.location
                report.longrepr = (file, (line or 0) + 1, report.longrepr[2])
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Have the session of a worker send its gates to the controller."""
        if self._session.is_worker:
            self._session.gates = dump(list(self._sets.values()))

    def report(self, session: pytest.Session) -> None:
        """Report the gates that workers sent, each like a test that ran here."""
        if self._session.is_worker or not session.config.pluginmanager.hasplugin("dsession"):
            return
        gates = [(gate, gated) for gated in self._sets.values() for gate in gated.gates]
        session.testscollected += len(gates)
        for gate, gated in gates:
            self._report(gate, gated, session.config.hook)

    def _report(self, gate: MarkedGate, gated: GatedSet, hook: Any) -> None:
        nodeid = f"{gated.function}[{gate.id}]"
        location = gated.location(gate)
        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        start = time.time()
        decision = self._decide(gate, gated.function)
        for when in ("setup", "call", "teardown"):
            outcome, message = _outcome(decision if when == "call" else None, gated)
            stop = time.time()
            report = pytest.TestReport(
                nodeid,
                location,
                {gated.name: 1},
                outcome,
                message,
                when,
                duration=stop - start,
                start=start,
                stop=stop,
                user_properties=gate_properties(decision.record),
            )
            if when == "call":
                carried(report).gate = decision.record
            hook.pytest_runtest_logreport(report=report)
            start = stop
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)

    def _decide(self, gate: MarkedGate, function: str) -> GateDecision:
        tests = self._collector
        gated = self._sets[function]
        return evaluate_gate(
            gate,
            gated,
            tests.test,
            skipped=tests.skipped,
            ran=tests.ran,
            baseline=self._baseline,
            judging={} if self._report_of_run is None else self._report_of_run.rules,
            spared=tests.spared,
            verbose=self._is_verbose,
        )

    def _items(self, gated: GatedSet, parent: Any) -> list[GateItem]:
        made: Callable[..., GateItem] = GateItem.from_parent
        return [
            made(parent, name=f"{gated.name}[{gate.id}]", gate=gate, gated=gated, decide=self._decide)
            for gate in gated.gates
        ]


def _case(test: Any) -> Any:
    """Return the row of a data set that a test is of, ``None`` for another test."""
    return getattr(getattr(test, "callspec", None), "params", {}).get("rag_sample")


def _gated_set(tests: Sequence[pytest.Function], *, stops: bool) -> GatedSet:
    first = tests[0]
    metrics = [each.metric for each in getattr(_case(first), "metrics", ())]
    gates: dict[str, MarkedGate] = {}
    for marker in first.iter_markers("rag_gate"):
        gate = gate_among(metrics, marker.args, marker.kwargs, stops=stops)
        if gates.setdefault(gate.id, gate) != gate:
            msg = f"two gates {gate.id!r} differ in stop_when_decided= alone; leave out one of them"
            raise ValueError(msg)
    alphas = sorted({gate.alpha for gate in gates.values() if gate.alpha is not None})
    if len(alphas) > 1:
        values = " and ".join(f"{alpha:g}" for alpha in alphas)
        msg = f"the regression gates of a function share one alpha=, and here it is {values}; write the same in each"
        raise ValueError(msg)
    file, line, place = first.location
    return GatedSet(
        function=function_of(first),
        name=first.originalname,
        file=file,
        line=line,
        scope=place.removesuffix(first.name),
        # iter_markers() begins with the decorator next to the function; the gates are listed as written.
        gates=tuple(reversed(gates.values())),
        total=len(tests),
        metrics=len(metrics),
    )


class GateItem(pytest.Item):
    """A gate as a test of its own."""

    def __init__(
        self, *, gate: MarkedGate, gated: GatedSet, decide: Callable[[MarkedGate, str], GateDecision], **node: Any
    ) -> None:
        super().__init__(**node)
        self.originalname = gated.name
        self._gate = gate
        self._gated = gated
        self._decide = decide

    def runtest(self) -> None:
        """Decide the gate."""
        decision = self._decide(self._gate, self._gated.function)
        self.stash[_RECORD] = decision.record
        self.user_properties[:] = gate_properties(decision.record)
        if decision.record.outcome == "skipped":
            pytest.skip(decision.text)
        if not decision.record.passes:
            raise _GateError(decision.text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text of a failed gate, without the frames behind it."""
        return str(excinfo.value) if isinstance(excinfo.value, _GateError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return the place of the function with the marker."""
        _, line, place = self._gated.location(self._gate)
        return self.path, line, place


class _GateError(AssertionError):
    """A gate failed."""


def _outcome(decision: GateDecision | None, gated: GatedSet) -> tuple[Literal["passed", "failed", "skipped"], Any]:
    """Return outcome and message of a gate as reports have them."""
    if decision is None or decision.record.passes:
        return "passed", None
    if decision.record.outcome == "skipped":
        return "skipped", (gated.file, (gated.line or 0) + 1, f"Skipped: {decision.text}")
    return "failed", decision.text
