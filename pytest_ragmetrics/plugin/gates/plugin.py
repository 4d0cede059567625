"""The gates of a session as tests of their own: collected with the tests of their set, decided after the last of them.

Regression gates are the last tests of the session, as they are decided together.
A worker of xdist cannot see the tests of the others: its gates report nothing, and the controller runs those that
workers selected, once all of them have ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_ragmetrics.plugin.markers import function_of, marked_judge, marked_votes
from pytest_ragmetrics.plugin.recorder import carried, gate_properties, skip
from pytest_ragmetrics.plugin.report import RunReport
from pytest_ragmetrics.plugin.session import PytestSession

if TYPE_CHECKING:
    from pytest_ragmetrics.plugin.gates.anew import JudgesAnew
    from pytest_ragmetrics.plugin.gates.decide import GateDecision
    from pytest_ragmetrics.plugin.gates.gate import GatedSet, MarkedGate
    from pytest_ragmetrics.runs.records import TestRecord


class GatePlugin:
    """The hooks that make a test of each gate, idle until a function has one; ``report`` is ``None`` in a worker."""

    def __init__(self, session: PytestSession, config: pytest.Config, report: RunReport | None) -> None:
        self._session = session
        self._config = config
        self._report = report
        self._sets: dict[str, GatedSet] = {}
        self._regressions: dict[tuple[str, str], GateDecision] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makeitem(self) -> Generator[None, object, object]:
        """Note the gates of a function, with the tests that it makes."""
        made = yield
        first = made[0] if isinstance(made, list) and made else None
        if isinstance(first, pytest.Function) and first.get_closest_marker("rag_gate") is not None:
            self._find(cast("list[pytest.Function]", made))
        return made

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Collect the gates: after --lf, which would collect a failed gate without its set."""
        report = yield
        if self._sets and report.passed:
            found = {function_of(it): it.parent for it in report.result if isinstance(it, pytest.Item)}
            # The report of the session has those that were named.
            named = {it.gated.function for it in report.result if isinstance(it, GateItem)}
            missing = (found.keys() & self._sets.keys()) - named
            report.result = _placed(report.result, {it: self._items(self._sets[it], found[it]) for it in missing})
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Have the tests selected and ordered without gates, and put each gate behind the last test of its set.

        Those of regressions are put behind all tests, as all are tested together. A gate whose set is deselected is
        deselected too; one that is named without its set stays, and reports that.
        """
        gates = [item for item in items if isinstance(item, GateItem)]
        items[:] = [item for item in items if not isinstance(item, GateItem)]
        whole = [*items] if gates else []
        collected = {function_of(item) for item in whole}
        yield
        if not gates:
            return
        selected = {function_of(item) for item in items}
        refused = tuple(self._config.getoption("deselect", None) or ())
        kept: dict[str, list[GateItem]] = defaultdict(list)
        for gate in gates:
            function = gate.gated.function
            if gate.nodeid.startswith(refused) or (function in collected and function not in selected):
                self._config.hook.pytest_deselected(items=[gate])
            else:
                kept[function].append(gate)
        self._sets = {
            name: replace(self._sets[name], gates=tuple(item.gate for item in found)) for name, found in kept.items()
        }
        self._draw(items)
        tests = _by_function(items)
        self._sets = {
            name: replace(gated, selected=tuple(it.nodeid for it in tests[name])) for name, gated in self._sets.items()
        }
        if self._session.dry_run:
            from pytest_ragmetrics.plugin.gates.gate import planned_rows

            tests = _by_function(whole)
            self._sets = {name: replace(it, rows=planned_rows(it, tests[name])) for name, it in self._sets.items()}
        bounded = {name: [gate for gate in found if gate.gate.alpha is None] for name, found in kept.items()}
        alone = [gate for name, found in bounded.items() if name not in selected for gate in found]
        regressions = [gate for found in kept.values() for gate in found if gate.gate.alpha is not None]
        items[:] = [*_placed(items, bounded), *alone, *regressions]

    @property
    def drawn(self) -> list[GatedSet]:
        """The sets whose rows are asked in a drawn order until their gates are decided."""
        return [gated for gated in self._sets.values() if gated.draw is not None]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a gate of a worker without a report, but for what the fixtures raise that end with it."""
        if not (self._session.is_worker and isinstance(item, GateItem)):
            return None
        runner: Any = self._config.pluginmanager.get_plugin("runner")
        for report in runner.runtestprotocol(item, log=False, nextitem=nextitem):
            if report.failed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the decision on the report of a gate."""
        report = yield
        if report.when == "call" and isinstance(item, GateItem) and item.decision is not None:
            carried(report).gate = item.decision.record
            if report.skipped:
                # pytest.skip() names the line of this package that calls it, not that of the gate.
                skip(report, item.decision.text)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Have the session of a worker send its gates to the controller, which says in a dry run what they can find."""
        if self._session.is_worker and self._sets:
            from pytest_ragmetrics.core.codec import dump

            self._session.gates = dump(list(self._sets.values()))
        elif self._session.dry_run and self._sets:
            from pytest_ragmetrics.plugin.gates.planned import Earlier, planned_lines

            report: Any = self._report
            baseline = () if report.baseline is None else report.baseline.runs
            earlier = Earlier.of(baseline, self._session.settings.history)
            self._session.planned = planned_lines(self._sets.values(), earlier)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run the gates that workers sent, when all workers have ended."""
        ran = yield
        sent = [row.gates for row in self._session.workers.rows if row is not None and row.gates]
        if not sent:
            return ran
        from pytest_ragmetrics.core.codec import load
        from pytest_ragmetrics.plugin.gates.gate import GatedSet

        # All send the same.
        self._sets = {gated.function: gated for sets in sent for gated in load(list[GatedSet], sets, place="gates")}
        gates = [item for gated in self._sets.values() for item in self._items(gated, session)]
        for item, following in pairwise([*gates, None]):
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return ran

    def moves(self, function: str, test: str, scores: Mapping[str, tuple[float, bool]]) -> bool:
        """Tell whether a gate that passes would not if a test of its set had other scores, each vacuous or not."""
        report: Any = self._report
        found, gated = report.collector.test(test), self._sets.get(function)
        if found is None or gated is None:
            return False
        now = {**{it.metric: (it.score, it.vacuous) for it in found.records}, **scores}
        records = (replace(it, score=now[it.metric][0], vacuous=now[it.metric][1]) for it in found.records)
        changed = {test: replace(found, records=tuple(records))}
        for gate in gated.gates:
            decided = report.collector.test(gated.test(gate))
            differs = any(
                (it.score, it.vacuous) != now[gate.metric] for it in found.records if it.metric == gate.metric
            )
            if gate.alpha is None and differs and decided is not None and decided.gate.passes:
                return not self._evaluated([(gate, gated)], changed)[0].record.passes
        return False

    def _find(self, tests: list[pytest.Function]) -> None:
        from pytest_ragmetrics.plugin.gates.gate import gated_set

        function, fault = function_of(tests[0]), None
        try:
            settings = self._session.settings
            told: dict[str, Any] = {"stops": settings.stop_when_decided, "clusters": settings.clusters}
            gated = gated_set(tests, function, **told, alpha=settings.alpha)
            with suppress(pytest.UsageError):  # Markers says what is wrong
                gated = replace(gated, judge=marked_judge(tests[0]), votes=marked_votes(tests[0]))
            self._sets.setdefault(function, gated)
        except (TypeError, ValueError) as error:
            fault = str(error)
        self._session.markers.note_collected("rag_gate", function, fault=fault)

    def _draw(self, items: list[pytest.Item]) -> None:
        """Put the tests of each whole set that may stop into a drawn order, at the places where they stood."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            function = function_of(item)
            if function in self._sets and self._sets[function].may_stop:
                places[function].append(place)
        for function, found in places.items():
            if len(found) != self._sets[function].total or self._session.dry_run or self._session.batched:
                # Rows of a batch are asked together.
                continue
            from pytest_ragmetrics.plugin.gates.gate import drawn_order

            order, drawn = drawn_order([items[place] for place in found], self._session.seed)
            self._sets[function] = replace(self._sets[function], draw=drawn)
            for place, item in zip(found, order, strict=True):
                items[place] = item

    def _items(self, gated: GatedSet, parent: Any) -> list[GateItem]:
        made: Callable[..., GateItem] = GateItem.from_parent
        place = {"parent": parent, "gated": gated, "decide": None if self._session.is_worker else self._decide}
        return [
            made(name=f"{gated.name}[{gate.id}]", nodeid=gated.test(gate), gate=gate, **place) for gate in gated.gates
        ]

    @cached_property
    def _anew(self) -> JudgesAnew:
        from pytest_ragmetrics.plugin.gates.anew import Today

        return Today(session=self._session, redacts=self._session.recorder.redacts())

    def _drift(self, metric: str) -> str:
        """Return why the judge of a metric may judge otherwise than in the baseline, "" if nothing says so."""
        report: Any = self._report
        before = report.baseline.runs[-1].run.judging.get(metric)
        if before is None or self._session.settings.cache == "replay":
            return ""  # in replay nothing could be asked
        from pytest_ragmetrics.runs.wording.figures import named
        from pytest_ragmetrics.runs.wording.served import served_change

        sentinels = self._session.drift.records
        drifting = [judge for judge, found in sentinels.items() if found.drifts and judge in before.judge.split(", ")]
        alarms = [f"the sentinels of {named(judge)} gave an alarm" for judge in drifting]
        return alarms[0] if alarms else served_change(self._session.served.get(metric, {}), before.served)

    def _decide(self, gate: MarkedGate, function: str) -> GateDecision:
        """Decide a gate, the first regression gate with all others: the tests of all sets have ended by then."""
        if gate.alpha is None:
            return self._evaluated([(gate, self._sets[function])])[0]
        if not self._regressions:
            found = [(it, gated) for gated in self._sets.values() for it in gated.gates if it.alpha is not None]
            names = [(gated.function, it.id) for it, gated in found]
            self._regressions = dict(zip(names, self._evaluated(found), strict=True))
        return self._regressions[function, gate.id]

    def _evaluated(
        self, gates: Sequence[tuple[MarkedGate, GatedSet]], others: Mapping[str, TestRecord] = MappingProxyType({})
    ) -> list[GateDecision]:
        from pytest_ragmetrics.plugin.gates.decide import RunTests, evaluate_gates

        report: Any = self._report
        tests = report.collector
        return evaluate_gates(
            gates,
            RunTests(lambda test: others.get(test) or tests.test(test), tests.ran, tests.skipped, tests.spared),
            baseline=report.baseline,
            judging=report.rules,
            anew=self._anew,
            drift=self._drift,
            verbose=self._config.getoption("verbose", 0) > 0,
        )


def _by_function(items: Sequence[pytest.Item]) -> defaultdict[str, list[pytest.Item]]:
    found: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        found[function_of(item)].append(item)
    return found


def _placed(items: Sequence[Any], gates: Mapping[str, Sequence[GateItem]]) -> list[Any]:
    """Return the items, with gates behind the last one of their function."""
    last = {function_of(item): item for item in items if isinstance(item, pytest.Item)}
    behind = {id(last[function]): found for function, found in gates.items() if function in last}
    return [each for item in items for each in (item, *behind.get(id(item), ()))]


class GateItem(pytest.Item):
    """A gate as a test of its own; nothing decides it in a worker of xdist."""

    decision: GateDecision | None = None

    def __init__(
        self,
        *,
        gate: MarkedGate,
        gated: GatedSet,
        decide: Callable[[MarkedGate, str], GateDecision] | None,
        **node: Any,
    ) -> None:
        super().__init__(**node)
        self.gate = gate
        self.gated = gated
        self._decide = decide

    def runtest(self) -> None:
        """Decide the gate."""
        if self._decide is None:
            return
        decision = self.decision = self._decide(self.gate, self.gated.function)
        self.user_properties[:] = gate_properties(decision.record)
        if decision.record.outcome == "skipped":
            pytest.skip(decision.text)
        if not decision.record.passes:
            raise _GateError(decision.text)
        if decision.record.limit:
            self.warn(pytest.PytestWarning(f"{decision.record.metric}: this gate {decision.record.limit}"))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text of a failed gate, without the frames behind it."""
        is_told = isinstance(excinfo.value, (_GateError, pytest.PytestWarning))
        return str(excinfo.value) if is_told else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return the place of the function with the marker."""
        place = f"{self.gated.scope}{self.gated.name}[{self.gate.id}]"
        return self.config.rootpath / self.gated.file, self.gated.line, place


class _GateError(AssertionError):
    """A gate failed."""
