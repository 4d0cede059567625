"""The regression gates of a run: each set is compared with the baseline, all are tested together, each is decided."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

from pytest_ragmetrics.plugin.gates.anew import JudgesAnew, by_one_judge
from pytest_ragmetrics.plugin.gates.gate import ALPHA, GatedSet, MarkedGate
from pytest_ragmetrics.runs.compare import changed_rules, placed_records
from pytest_ragmetrics.runs.records import Document, GateOutcome, Judging, RegressionRecord, TestRecord
from pytest_ragmetrics.runs.tables import (
    Baseline,
    EarlierRun,
    OtherJudgesError,
    compare_metric,
    drop_by_itself,
    earlier_run,
    groups_of,
)
from pytest_ragmetrics.runs.wording.comparisons import LEAST_SHARE, NO_PAIR, MetricComparison, remedy
from pytest_ragmetrics.runs.wording.figures import counted
from pytest_ragmetrics.runs.wording.power import limit_text
from pytest_ragmetrics.stats.drop import Drop, together
from pytest_ragmetrics.stats.intervals import whole_clusters
from pytest_ragmetrics.text.unicode import printable

K = TypeVar("K", bound=Hashable)
# What the record of a gate has as its comparison has it.
_TOLD = ("runs", "against", "left_out", "rejudged", "usage")


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """What the scores of a set decide: ``figures`` are the fields of the record that say it in numbers."""

    outcome: GateOutcome
    text: str
    figures: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class RegressionGate:
    """A regression gate with the tests of its set that ran.

    One that is ``apart`` is decided by something else, and raises no false alarm that the others have to pay for.
    """

    gate: MarkedGate
    gated: GatedSet
    tests: Sequence[TestRecord]
    apart: bool

    def groups(self) -> dict[str, str]:
        """Return the name of the group of each row; raise ``ValueError`` if no row has the field that says it."""
        return groups_of(placed_records(self.tests, metric=self.gate.metric), self.gate.by) if self.gate.by else {}


def decide_regressions(
    gates: Mapping[K, RegressionGate],
    compare: Callable[..., MetricComparison],
    *,
    drift: Callable[[str], str],
    others: Sequence[RegressionRecord],
    verbose: bool,
) -> dict[K, Decided]:
    """Decide regression gates, which are tested together with the ``others`` that were decided before.

    ``compare`` is :func:`compare_set` of a run. A drop is looked at again where ``drift`` says of its metric why the
    judge itself may have changed.
    """
    found = {name: _tried(it, compare) for name, it in gates.items()}
    again: dict[K, str] = {}
    while True:
        drops = _tested({name: (gates[name], it) for name, it in found.items()}, others)
        red = (name for name, drop in drops.items() if drop.outcome == "failed" and not gates[name].apart)
        drifting = {name: why for name in red if name not in again and (why := drift(gates[name].gate.metric))}
        if not drifting:
            break
        again |= drifting
        found |= {name: _tried(gates[name], partial(compare, drift=why)) for name, why in drifting.items()}
    return {
        name: it if isinstance(it, Decided) else _decided(gates[name].gate, it, drops.get(name), verbose=verbose)
        for name, it in found.items()
    }


def _tried(it: RegressionGate, compare: Callable[..., MetricComparison]) -> MetricComparison | Decided:
    """Return the comparison of a gate, or what is decided because there is none."""
    try:
        compared = compare(it.gate, gated=it.gated, tests=it.tests)
        it.groups()
    except OtherJudgesError as error:
        doubts = (str(error).removeprefix(f"{it.gate.metric}: "),)
        regression = RegressionRecord(alpha=it.gate.alpha or ALPHA, by=it.gate.by, doubts=doubts, usage=error.usage)
        return Decided(outcome="inconclusive", text=str(error), figures={"n": 0, "regression": regression})
    except _NoScoresError as error:
        return Decided(outcome="skipped", text=str(error), figures={})
    except ValueError as error:
        return Decided(outcome="failed", text=str(error), figures={"n": 0})
    return compared


def _tested(
    found: Mapping[K, tuple[RegressionGate, MetricComparison | Decided]], others: Sequence[RegressionRecord]
) -> dict[K, Drop]:
    """Return what the compared sets show, tested together."""
    alone = {
        name: drop_by_itself(compared, it.gate.alpha or ALPHA, it.groups())
        for name, (it, compared) in found.items()
        if isinstance(compared, MetricComparison) and compared.difference is not None
    }
    family: dict[Any, Any] = {name: drop for name, drop in alone.items() if not found[name][0].apart}
    family |= {("before", place): record for place, record in enumerate(others)}
    decided = together(family, gates=True)
    return {name: decided.get(name, drop) for name, drop in alone.items()}


def _decided(gate: MarkedGate, compared: MetricComparison, drop: Drop | None, *, verbose: bool) -> Decided:
    """Return what a comparison decides, by its ``drop`` as it was tested together with the others."""
    told: dict[str, Any] = {name: getattr(compared, name) for name in _TOLD}
    told |= {"alpha": gate.alpha or ALPHA, "by": gate.by}
    if drop is None or compared.difference is None:
        regression = RegressionRecord(**told, doubts=compared.doubts)
        text = f"{compared}\n{remedy(compared)}"
        return Decided(outcome="inconclusive", text=text, figures={"n": 0, "regression": regression})
    shared, groups = compared.shared
    clusters = whole_clusters(row.cluster for row in compared.rows)
    limit = limit_text(gate, drop.n, clusters, alpha=drop.alpha, earlier=compared.runs)
    tested = {each.name: getattr(drop, each.name) for each in fields(drop) if each.name != "n"}
    return Decided(
        outcome=drop.outcome,
        text="\n".join([*compared.lines(drop), *([f"  {compared.figures()}"] if verbose else [])]),
        figures={
            "value": compared.difference.interval.estimate,
            "n": drop.n,
            "vacuous": len({*compared.vacuous_here, *compared.vacuous_there}),
            "shared": shared,
            "groups": groups,
            "limit": "" if compared.doubts else limit,
            "regression": RegressionRecord(
                **{**told, **tested},
                before=compared.difference.before,
                after=compared.difference.after,
                new=len(compared.only_here),
                gone=len(compared.only_there),
                rewritten=len(compared.rewritten),
            ),
        },
    )


class _NoScoresError(ValueError):
    """A gate is newer than the runs of a history: the next one has its scores."""


def compare_set(
    gate: MarkedGate,
    *,
    gated: GatedSet,
    tests: Sequence[TestRecord],
    baseline: Baseline,
    judging: Mapping[str, Judging],
    anew: JudgesAnew,
    drift: str = "",
) -> MetricComparison:
    """Return the comparison of a set with the same set in the baseline; raise ``ValueError`` if none of it is there.

    A sample may have other scores of the metric in other tests. Only where the baseline does not know the function, as
    after a move, these count.
    """
    here = placed_records(tests, metric=gate.metric)
    there = [_earlier(gate, gated, document, judging) for document in baseline.runs]
    if not baseline.is_history and len(there) == 1:
        there = [replace(there[0], name="")]
    if not here or not any(run.records[gate.metric] for run in there):
        if here and baseline.is_history:
            raise _NoScoresError(f"no run of the history has scores of {printable(gate.metric)} in this set yet")
        raise ValueError(f"{printable(gate.metric)}: the baseline has no scores of it; write it anew with --rag-json")
    compare = partial(compare_metric, gate.metric, vacuous=gate.vacuous, clusters=gate.clusters)
    compared = by_one_judge(compare, here, there, partial(anew, gate, gated), drift=drift)
    if compared.difference is None and not (compared.rewritten or compared.left_out):
        hint = "" if compared.vacuous_here or compared.vacuous_there else f"\n{NO_PAIR}"
        raise ValueError(f"{compared}{hint}")
    return compared


def _earlier(gate: MarkedGate, gated: GatedSet, document: Document, judging: Mapping[str, Judging]) -> EarlierRun:
    """Return the scores of a set in a run of the baseline."""
    run, known = document.run, [test for test in document.tests if gated.has(test.id)]
    found = earlier_run(run, {gate.metric: placed_records(known or document.tests, metric=gate.metric)})
    partial = _missing(gate, known) if any(test.gate for test in known) else run.partial
    return replace(found, changed=changed_rules(judging, run.judging), partial=partial)


def _missing(gate: MarkedGate, tests: Sequence[TestRecord]) -> str:
    """Return why a set is not whole in the run of its gates, "" where it is; the run itself may be a shard."""
    gates = [test.gate for test in tests if test.gate]
    total = max(it.total for it in [each for each in gates if each.metric == gate.metric] or gates)
    ran = sum(test.gate is None for test in tests)
    scored = sum(any(it.metric == gate.metric for it in test.records) for test in tests)
    is_whole = ran >= total and scored >= LEAST_SHARE * total
    return "" if is_whole else f"{scored} of {counted(total, 'test')} of the set were scored"
