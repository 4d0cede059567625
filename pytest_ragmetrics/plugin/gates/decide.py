"""The decision on a gate by the records of the tests of its set.

``plugin.gates.plugin`` decides the gates of a run, ``plugin.gates.merged`` those of sets that were run in parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.core.sample import answer_of, turn_of
from pytest_ragmetrics.plugin.gates.anew import JudgesAnew, nobody
from pytest_ragmetrics.plugin.gates.gate import GatedSet, MarkedGate
from pytest_ragmetrics.plugin.gates.regressions import Decided, RegressionGate, compare_set, decide_regressions
from pytest_ragmetrics.runs.clusters import clusters_of, shared_groups
from pytest_ragmetrics.runs.compare import cluster_of, row_of
from pytest_ragmetrics.runs.records import (
    Gate,
    GateOutcome,
    GateRecord,
    Judging,
    Record,
    RegressionRecord,
    StopRecord,
    TestRecord,
)
from pytest_ragmetrics.runs.tables import Baseline
from pytest_ragmetrics.runs.wording.comparisons import GIVE_ONE
from pytest_ragmetrics.runs.wording.failures import (
    explain_stop,
    explain_threshold,
    explain_unscored,
    explain_vacuous,
    shortcoming,
)
from pytest_ragmetrics.runs.wording.power import limit_text
from pytest_ragmetrics.runs.wording.runs import gist
from pytest_ragmetrics.stats.intervals import Interval, whole_clusters
from pytest_ragmetrics.stats.means import ThresholdResult, set_threshold
from pytest_ragmetrics.stats.scores import ScoredRow, ScoreSet, common_scale, score_set, unit_of, worst_answers
from pytest_ragmetrics.stats.stopping import DrawnSet
from pytest_ragmetrics.text.unicode import printable

_WENT = {"error": "was in error", "xfailed": "failed as expected", "xpassed": "passed unexpectedly"}


@dataclass(frozen=True, kw_only=True, slots=True)
class GateDecision:
    """The decision on a gate: its record, and the text that explains it."""

    record: GateRecord
    text: str


class RunTests(NamedTuple):
    """The tests of a run: ``find`` returns the record of one, if it left one.

    ``ran`` are those that ran to their end; of the others some were ``skipped``, or not needed any more, ``spared``.
    """

    find: Callable[[str], TestRecord | None]
    ran: Collection[str]
    skipped: Collection[str] = ()
    spared: Collection[str] = ()


def evaluate_gates(
    gates: Iterable[tuple[MarkedGate, GatedSet]],
    run: RunTests,
    *,
    baseline: Baseline | None = None,
    judging: Mapping[str, Judging] = MappingProxyType({}),
    anew: JudgesAnew = nobody,
    drift: Callable[[str], str] = lambda _: "",
    others: Iterable[RegressionRecord] = (),
    verbose: bool = False,
) -> list[GateDecision]:
    """Decide gates by the records of the tests of their sets, the regression gates among them together.

    A set that did not run whole decides nothing; one with unscored rows fails, and so does one in which there was
    nothing to check. A regression gate is skipped without a ``baseline``. Where the judge, the ``judging`` of its
    metric, or by ``drift`` the judge itself changed, both sides are compared as ``anew`` judges them. ``others`` were
    decided before, and share the error with those that are left. One that stops when it is decided is exact over a
    whole set, and else decided by the first rows of the drawn order. ``verbose`` adds other figures.
    """
    sets = [_whole(gate, gated, run) for gate, gated in gates]
    whole = {place: it for place, it in enumerate(sets) if not it.omitted}
    decided = {place: _held(it, run) for place, it in whole.items() if it.gate.alpha is None}
    if baseline is not None:
        regressions = {place: it.regression(run) for place, it in whole.items() if it.gate.alpha is not None}
        compare = partial(compare_set, baseline=baseline, judging=judging, anew=anew)
        decided |= decide_regressions(regressions, compare, drift=drift, others=[*others], verbose=verbose)
    return [_decision(it, decided.get(place), baseline) for place, it in enumerate(sets)]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Set:
    """A gate with the scores of its set, of which ``omitted`` tests were left out."""

    gate: MarkedGate
    gated: GatedSet
    rows: Sequence[ScoredRow]
    found: ScoreSet[ScoredRow]
    better: Direction
    omitted: int

    def regression(self, run: RunTests) -> RegressionGate:
        """Return it as a gate that is compared with the baseline."""
        tests = [test for test in map(run.find, self.gated.selected) if test is not None and test.id in run.ran]
        apart = bool(self.found.unscored) or not self.found.counted
        return RegressionGate(gate=self.gate, gated=self.gated, tests=tests, apart=apart)


def _whole(gate: MarkedGate, gated: GatedSet, run: RunTests) -> _Set:
    """Return a gate with the scores of those tests of its set that its metric scores."""
    if gated.draw is None:
        apart = {test for test in gated.selected if test in run.ran and _is_apart(gate, run.find(test))}
        selected = tuple(test for test in gated.selected if test not in apart)
        gated = replace(gated, selected=selected, total=gated.total - len(apart))
    rows: list[ScoredRow] = []
    better, omitted = gate.better, gated.total - len(gated.selected)
    for test in gated.selected:
        if test in run.spared:
            continue
        found = run.find(test)
        if test in run.skipped or (found is not None and found.outcome == "skipped"):
            omitted += 1
            continue
        name, is_whole = gated.row_name(test), test in run.ran
        records = [] if found is None or not is_whole else [it for it in found.records if it.metric == gate.metric]
        rows += [_row(name, record) for record in records]
        better = better or next((record.better for record in records if record.score is not None), None)
        if not records:
            rows.append(ScoredRow(name=name, score=None, reason=_why_unscored(found, ran=is_whole)))
    scores = _score_set(gate, rows)
    return _Set(gate=gate, gated=gated, rows=rows, found=scores, better=better or "higher", omitted=omitted)


def _held(it: _Set, run: RunTests) -> Decided | None:
    """Hold a set to the bound of its gate; ``None`` where its scores say nothing."""
    gate, gated = it.gate, it.gated
    if gate.stop_when_decided:
        asked = (test for test in gated.selected if test in run.ran and test not in run.spared)
        scored = {test: _first(gate, run.find(test)) for test in asked}
        return _stopped(gate, gated, it.found, scored, len({*run.spared} & {*gated.selected}))
    if not it.found.counted:
        return None
    decided = _bounded(it)
    if gate.confidence is None:
        return decided
    records = [it for test in map(run.find, gated.selected) if test is not None for it in test.records]
    samples = (it.sample for it in records if it.metric == gate.metric and (answer_of(it.sample) or 1) == 1)
    shared, groups = shared_groups(clusters_of(samples, rule=gate.clusters))
    return replace(decided, figures={**decided.figures, "shared": shared, "groups": groups})


def _decision(it: _Set, decided: Decided | None, baseline: Baseline | None) -> GateDecision:
    """Return the record of a gate, and what explains it."""
    gate, gated = it.gate, it.gated
    outcome, text = _outcome(it, decided, is_compared=baseline is not None)
    record = replace(_record(it), outcome=outcome, **({} if decided is None else decided.figures))
    if gate.alpha is None and baseline is not None:
        tests = [test for test in baseline.runs[-1].tests if gated.has(test.id)]
        placed = ((gated.row_name(test.id), it) for test in tests for it in test.records if it.metric == gate.metric)
        before = _score_set(gate, [_row(name, it) for name, it in placed])
        record = replace(record, vacuous_before=len(before.vacuous) if before.counted or before.vacuous else None)
    return GateDecision(record=record, text=text)


def _is_apart(gate: MarkedGate, found: TestRecord | None) -> bool:
    """Tell whether a test is of a turn, or of a whole conversation, that the metric of a gate does not score."""
    records = () if found is None else found.records
    in_turns = bool(records) and all(turn_of(record.sample) is not None for record in records)
    return in_turns and all(record.metric != gate.metric for record in records)


def _outcome(it: _Set, decided: Decided | None, *, is_compared: bool) -> tuple[GateOutcome, str]:
    """Return what becomes of a gate, and why: what is wrong with its set comes before what its scores decide."""
    gate, gated, found = it.gate, it.gated, it.found
    if it.omitted:
        of_all = f"{it.omitted} of {gated.total} tests of the set"
        return "skipped", f"{of_all} were skipped or not selected; a gate is over all of them"
    if gate.alpha is not None and not is_compared:
        # Not failed: the same suite writes the first baseline.
        return "skipped", f"there is no baseline to compare with: {GIVE_ONE}"
    if found.unscored and (decided is None or not gate.stop_when_decided):
        total = max(gated.total, len(found.counted) + len(found.unscored) + len(found.vacuous))
        lines = explain_unscored(gate.metric, total, found.unscored, hint="; a gate is over all of them")
        return "failed", "\n".join(lines)
    if decided is None or not found.counted:
        return "failed", explain_vacuous(gate.metric, len(found.vacuous))
    return decided.outcome, decided.text


def _record(it: _Set) -> GateRecord:
    """Return the record of a gate that is not decided."""
    gate, gated, found = it.gate, it.gated, it.found
    return GateRecord(
        **{**terms(gate), "better": it.better, "unit": gate.unit or unit_of(found.counted)},
        value=None,
        low=None,
        high=None,
        n=len(found.counted),
        unscored=len(found.unscored),
        total=gated.total,
        outcome="skipped",
        vacuous=len(found.vacuous),
        regression=None if gate.alpha is None else RegressionRecord(alpha=gate.alpha, by=gate.by),
        stop=StopRecord(seed=None if gated.draw is None else gated.draw.seed) if gate.stop_when_decided else None,
    )


def terms(gate: Gate) -> dict[str, Any]:
    """Return the fields of a gate without what it found."""
    return {each.name: getattr(gate, each.name) for each in fields(Gate)}


def _score_set(gate: MarkedGate, rows: Sequence[ScoredRow]) -> ScoreSet[ScoredRow]:
    """Return the scores of a gate by their standing, or where all answers to a row have to pass its worst ones."""
    return score_set(
        worst_answers(rows, gate.better or "higher", gate.vacuous) if gate.all_pass else rows, gate.vacuous
    )


def _bounded(it: _Set) -> Decided:
    gate, found = it.gate, it.found
    result = _threshold(gate, it.better, found)
    figures: dict[str, Any] = {"value": result.value, "more": result.more, "percentile": result.percentile}
    if result.interval is not None:
        ends = {"low": result.interval.low, "high": result.interval.high}
        figures |= {name: None if math.isinf(end) else end for name, end in ends.items()}
    clusters = whole_clusters(row.cluster for row in found.counted)
    limit = limit_text(replace(gate, better=it.better), result.n, clusters, scale=common_scale(found.counted))
    counted = score_set(it.rows, gate.vacuous).counted
    lines = [*explain_threshold(result, counted), *([f"  {limit}"] if limit else [])]
    return Decided(outcome=result.outcome, text="\n".join(lines), figures={**figures, "limit": limit})


def _first(gate: MarkedGate, found: TestRecord | None) -> ScoredRow | None:
    """Return the score that the data set gave a row: the first of the metric."""
    records = () if found is None else found.records
    return next((_row("", record) for record in records if record.metric == gate.metric), None)


def _stopped(
    gate: MarkedGate, gated: GatedSet, found: ScoreSet[ScoredRow], scored: Mapping[str, ScoredRow | None], spared: int
) -> Decided | None:
    """Decide a gate that stops: by all rows if they have scores, else by the first of them in the drawn order.

    ``scored`` are the rows that were asked, by their tests. ``None`` where neither says anything.
    """
    better = gate.better or "higher"
    stop = StopRecord(
        seed=None if gated.draw is None else gated.draw.seed,
        asked=len(scored),
        spared=spared,
        judgements=spared * gated.metrics,
    )
    plain = replace(gate, confidence=None)
    if found.counted and not found.unscored and not spared:
        return _with_stop(_threshold(plain, better, found), stop, found, gated.total)
    if gated.draw is None:
        return None
    rule = gated.rule(gate)
    drawn = DrawnSet(gated.selected, gated.draw, [rule])
    for test, row in scored.items():
        drawn.note(test, {} if row is None else {gate.metric: row})
    decided = drawn.gates[0]
    tests = drawn.order[: decided.after or drawn.complete]
    rows = ((scored[test] or ScoredRow(name="", score=None), gated.row_name(test)) for test in tests)
    first = score_set([replace(row, name=name) for row, name in rows], gate.vacuous)
    if not first.counted or (decided.outcome is None and drawn.missing is None):
        return None
    result = _threshold(plain, better, first)
    low, high = rule.ends(decided.units, gated.total)
    interval = Interval(estimate=result.value, low=low, high=high, confidence=1.0 - rule.alpha, n=result.n)
    result = replace(result, interval=interval, outcome=decided.outcome or "inconclusive")
    return _with_stop(result, replace(stop, decided_after=decided.after), first, gated.total)


def _with_stop(result: ThresholdResult, stop: StopRecord, rows: ScoreSet[ScoredRow], total: int) -> Decided:
    """Return what rows decide of their whole set, with how many of it were asked."""
    figures: dict[str, Any] = {"value": result.value, "stop": stop, "percentile": result.percentile}
    figures |= {"n": result.n, "unscored": len(rows.unscored), "vacuous": len(rows.vacuous)}
    if (ends := result.interval) is not None:
        figures |= {"low": ends.low, "high": ends.high, "confidence": ends.confidence}
    text = "\n".join(explain_threshold(result, rows.counted, explain_stop(result.outcome, stop, total)))
    return Decided(outcome=result.outcome, text=text, figures=figures)


def _row(name: str, record: Record) -> ScoredRow:
    reason = record.reason or "unscored" if record.score is None else shortcoming(record)
    cluster = cluster_of(record.sample)
    scored = ScoredRow(name=name, score=record.score, reason=reason, vacuous=record.vacuous, unit=record.unit)
    return replace(scored, cluster=cluster, scale=record.scale, row=row_of(record.sample, name))


def _threshold(gate: MarkedGate, better: Direction, found: ScoreSet[ScoredRow]) -> ThresholdResult:
    result = set_threshold(
        found.scores,
        gate.bound,
        score_bound=gate.min_score if gate.statistic == "rate" else None,
        better=better,
        metric=gate.metric,
        confidence=gate.confidence,
        clusters=whole_clusters(row.cluster for row in found.counted),
        bounds=common_scale(found.counted),
        vacuous=len(found.vacuous),
        unit=gate.unit or unit_of(found.counted),
    )
    return replace(result, all_pass=gate.all_pass)


def _why_unscored(row: TestRecord | None, *, ran: bool) -> str:
    if not ran:
        return "its test has not run to its end"
    if row is None:
        return "its test passed without scoring it"
    if row.outcome == "passed":
        scored = ", ".join(dict.fromkeys(record.metric for record in row.records))
        return f"its test passed without scoring it; it scored {printable(scored)}"
    reason = gist(row.message)
    return f"its test {_WENT.get(row.outcome, 'failed')}" + (f": {printable(reason)}" if reason else "")
