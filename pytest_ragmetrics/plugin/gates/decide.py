"""The decision on a gate by the records of the tests of its set.

``plugin.gates.plugin`` decides the gates of a run, ``report merge`` those of sets that were run in parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.core.sample import answer_of, turn_of
from pytest_ragmetrics.plugin.gates.anew import JudgesAnew, by_one_judge, nobody
from pytest_ragmetrics.plugin.gates.gate import ALPHA, GatedSet, MarkedGate
from pytest_ragmetrics.runs.clusters import clusters_of, shared_groups
from pytest_ragmetrics.runs.compare import changed_rules, cluster_of, placed_records, row_of
from pytest_ragmetrics.runs.records import (
    Document,
    Gate,
    GateOutcome,
    GateRecord,
    Judging,
    Record,
    RegressionRecord,
    StopRecord,
    TestRecord,
)
from pytest_ragmetrics.runs.tables import (
    Baseline,
    EarlierRun,
    OtherJudgesError,
    compare_metric,
    drop_outcome,
    find_drops,
    origin_fields,
)
from pytest_ragmetrics.runs.wording.comparisons import (
    GIVE_ONE,
    LEAST_SHARE,
    NO_PAIR,
    MetricComparison,
    TableComparison,
    remedy,
)
from pytest_ragmetrics.runs.wording.failures import (
    explain_stop,
    explain_threshold,
    explain_unscored,
    explain_vacuous,
    shortcoming,
)
from pytest_ragmetrics.runs.wording.figures import counted
from pytest_ragmetrics.runs.wording.runs import gist
from pytest_ragmetrics.stats.intervals import Interval, whole_clusters
from pytest_ragmetrics.stats.means import ThresholdResult, set_threshold
from pytest_ragmetrics.stats.scores import ScoredRow, ScoreSet, common_scale, score_set, worst_answers
from pytest_ragmetrics.stats.stopping import DrawnSet
from pytest_ragmetrics.text.unicode import printable

_WENT = {"error": "was in error", "xfailed": "failed as expected", "xpassed": "passed unexpectedly"}


@dataclass(frozen=True, kw_only=True, slots=True)
class GateDecision:
    """The decision on a gate: its record, and the text that explains it."""

    record: GateRecord
    text: str


def evaluate_gate(
    gate: MarkedGate,
    gated: GatedSet,
    find: Callable[[str], TestRecord | None],
    *,
    skipped: Collection[str],
    ran: Collection[str],
    baseline: Baseline | None = None,
    judging: Mapping[str, Judging] = MappingProxyType({}),
    spared: Collection[str] = (),
    anew: JudgesAnew = nobody,
    drift: Callable[[str], str] = lambda _: "",
    verbose: bool = False,
) -> GateDecision:
    """Decide a gate by the records of the tests of its set.

    ``find`` returns the record of a test, if it left one; ``skipped`` and ``ran`` are the tests that were skipped,
    and those that ran to their end. ``spared`` are those that were not needed any more. A set that did not run whole
    decides nothing; one with unscored rows fails, and so does one in which there was nothing to check. A regression
    gate compares with the ``baseline``; without one it is skipped, where the two are not comparable it fails, and
    where too little of them is, it is inconclusive. Where the judge, or the ``judging`` of its metric, changed, both
    sides are compared as ``anew`` judges them, and where it cannot, that is inconclusive too; so is a drop looked at
    again where ``drift`` says of its metric why the judge itself may have changed. Of several runs those of other
    judges or rules are left out, and without one left it is inconclusive. One that stops when it is decided is exact
    over a whole set, and else decided by the first rows of the drawn order. ``verbose`` adds other figures.
    """
    if gated.draw is None:
        apart = {test for test in gated.selected if test in ran and _is_apart(gate, find(test))}
        selected = tuple(test for test in gated.selected if test not in apart)
        gated = replace(gated, selected=selected, total=gated.total - len(apart))
    rows, better, omitted = _rows(gate, gated, find, skipped=skipped, ran=ran, spared=spared)
    found = _score_set(gate, rows)
    decided: _Decided | None = None
    if gate.stop_when_decided and not omitted:
        scored = {test: _first(gate, find(test)) for test in gated.selected if test in ran and test not in spared}
        decided = _stopped(gate, gated, found, scored, len({*spared} & {*gated.selected}))
    elif gate.alpha is None and found.counted and not omitted:
        decided = _bounded(gate, better, found, score_set(rows, gate.vacuous).counted)
        if gate.confidence is not None:
            records = [it for test in map(find, gated.selected) if test is not None for it in test.records]
            samples = (it.sample for it in records if it.metric == gate.metric and (answer_of(it.sample) or 1) == 1)
            shared, groups = shared_groups(clusters_of(samples, rule=gate.clusters))
            decided = replace(decided, figures={**decided.figures, "shared": shared, "groups": groups})
    elif gate.alpha is not None and baseline is not None and not omitted:
        tests = [test for test in map(find, gated.selected) if test is not None and test.id in ran]
        pairs = partial(_pairs, gated=gated, tests=tests, baseline=baseline, judging=judging, anew=anew)
        decided = _compared(gate, gated, pairs, verbose=verbose)
        if decided.outcome == "failed" and (why := drift(gate.metric)):
            decided = _compared(gate, gated, partial(pairs, drift=why), verbose=verbose)
    outcome, text = _outcome(gate, gated, found, decided, omitted=omitted, is_compared=baseline is not None)
    record = replace(
        _record(gate, gated, better, found), outcome=outcome, **({} if decided is None else decided.figures)
    )
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


def _outcome(
    gate: MarkedGate,
    gated: GatedSet,
    found: ScoreSet[ScoredRow],
    decided: _Decided | None,
    *,
    omitted: int,
    is_compared: bool,
) -> tuple[GateOutcome, str]:
    """Return what becomes of a gate, and why: what is wrong with its set comes before what its scores decide."""
    if omitted:
        of_all = f"{omitted} of {gated.total} tests of the set"
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


def _record(gate: MarkedGate, gated: GatedSet, better: Direction, found: ScoreSet[ScoredRow]) -> GateRecord:
    """Return the record of a gate that is not decided."""
    return GateRecord(
        **{**_terms(gate), "better": better},
        value=None,
        low=None,
        high=None,
        n=len(found.counted),
        unscored=len(found.unscored),
        total=gated.total,
        outcome="skipped",
        vacuous=len(found.vacuous),
        regression=None if gate.alpha is None else RegressionRecord(alpha=gate.alpha),
        stop=StopRecord(seed=None if gated.draw is None else gated.draw.seed) if gate.stop_when_decided else None,
    )


def _terms(gate: Gate) -> dict[str, Any]:
    return {each.name: getattr(gate, each.name) for each in fields(Gate)}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Decided:
    """What the scores of a set decide: ``figures`` are the fields of the record that say it in numbers."""

    outcome: GateOutcome
    text: str
    figures: Mapping[str, Any]


def _score_set(gate: MarkedGate, rows: Sequence[ScoredRow]) -> ScoreSet[ScoredRow]:
    """Return the scores of a gate by their standing, or where all answers to a row have to pass its worst ones."""
    return score_set(
        worst_answers(rows, gate.better or "higher", gate.vacuous) if gate.all_pass else rows, gate.vacuous
    )


def _bounded(gate: MarkedGate, better: Direction, found: ScoreSet[ScoredRow], rows: Sequence[ScoredRow]) -> _Decided:
    result = _threshold(gate, better, found)
    figures: dict[str, Any] = {"value": result.value, "more": result.more}
    if result.interval is not None:
        ends = {"low": result.interval.low, "high": result.interval.high}
        figures |= {name: None if math.isinf(end) else end for name, end in ends.items()}
    return _Decided(outcome=result.outcome, text="\n".join(explain_threshold(result, rows)), figures=figures)


def _first(gate: MarkedGate, found: TestRecord | None) -> ScoredRow | None:
    """Return the score that the data set gave a row: the first of the metric."""
    records = () if found is None else found.records
    return next((_row("", record) for record in records if record.metric == gate.metric), None)


def _stopped(
    gate: MarkedGate, gated: GatedSet, found: ScoreSet[ScoredRow], scored: Mapping[str, ScoredRow | None], spared: int
) -> _Decided | None:
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


def _with_stop(result: ThresholdResult, stop: StopRecord, rows: ScoreSet[ScoredRow], total: int) -> _Decided:
    """Return what rows decide of their whole set, with how many of it were asked."""
    figures: dict[str, Any] = {"value": result.value, "stop": stop}
    figures |= {"n": result.n, "unscored": len(rows.unscored), "vacuous": len(rows.vacuous)}
    if (ends := result.interval) is not None:
        figures |= {"low": ends.low, "high": ends.high, "confidence": ends.confidence}
    text = "\n".join(explain_threshold(result, rows.counted, explain_stop(result.outcome, stop, total)))
    return _Decided(outcome=result.outcome, text=text, figures=figures)


def _compared(
    gate: MarkedGate, gated: GatedSet, pairs: Callable[[MarkedGate], MetricComparison], *, verbose: bool
) -> _Decided:
    """Compare a set with the baseline, by the ``pairs`` of its gates.

    The regression gates of one function share ``alpha``, as metrics of one table do. Gates of other functions do not:
    what a gate decides must not depend on the files and shards that run beside it.
    """
    try:
        own = pairs(gate)
    except OtherJudgesError as error:
        doubts = (str(error).removeprefix(f"{gate.metric}: "),)
        regression = RegressionRecord(alpha=gate.alpha or ALPHA, doubts=doubts, usage=error.usage)
        return _Decided(outcome="inconclusive", text=str(error), figures={"n": 0, "regression": regression})
    except _NoScoresError as error:
        return _Decided(outcome="skipped", text=str(error), figures={})
    except ValueError as error:
        return _Decided(outcome="failed", text=str(error), figures={"n": 0})
    if own.difference is None:
        regression = RegressionRecord(alpha=gate.alpha or ALPHA, **_told(own))
        return _Decided(
            outcome="inconclusive", text=f"{own}\n{remedy(own)}", figures={"n": 0, "regression": regression}
        )
    family = {gate.id: own}
    for other in gated.gates:
        if other.alpha is not None and other.id not in family:
            with suppress(ValueError):  # one that cannot be compared raises no false alarm
                family[other.id] = pairs(other)
    metrics = {name: it for name, it in family.items() if it.difference is not None}
    drop = find_drops(TableComparison(metrics=metrics), alpha=gate.alpha or ALPHA)[gate.id]
    shared, groups = own.shared
    return _Decided(
        outcome=drop_outcome(own, drop),
        text="\n".join([*own.lines(drop), *([f"  {own.figures()}"] if verbose else [])]),
        figures={
            "value": own.difference.interval.estimate,
            "n": drop.n,
            "vacuous": len({*own.vacuous_here, *own.vacuous_there}),
            "shared": shared,
            "groups": groups,
            "regression": RegressionRecord(
                **{each.name: getattr(drop, each.name) for each in fields(drop) if each.name != "n"},
                before=own.difference.before,
                after=own.difference.after,
                new=len(own.only_here),
                gone=len(own.only_there),
                rewritten=len(own.rewritten),
                **_told(own),
            ),
        },
    )


def _told(compared: MetricComparison) -> dict[str, Any]:
    """Return the fields that the record of a gate has as its comparison has them."""
    names = ("doubts", "runs", "against", "left_out", "rejudged", "usage")
    return {name: getattr(compared, name) for name in names}


class _NoScoresError(ValueError):
    """A gate is newer than the runs of a history: the next one has its scores."""


def _pairs(
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
    if not baseline.has_names:
        there = [replace(run, name="") for run in there]
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
    partial = _missing(gate, known) if any(test.gate for test in known) else run.partial
    return EarlierRun(
        records={gate.metric: placed_records(known or document.tests, metric=gate.metric)},
        changed=changed_rules(judging, run.judging),
        partial=partial,
        **origin_fields(run),
    )


def _missing(gate: MarkedGate, tests: Sequence[TestRecord]) -> str:
    """Return why a set is not whole in the run of its gates, "" where it is; the run itself may be a shard."""
    gates = [test.gate for test in tests if test.gate]
    total = max(it.total for it in [each for each in gates if each.metric == gate.metric] or gates)
    ran = sum(test.gate is None for test in tests)
    scored = sum(any(it.metric == gate.metric for it in test.records) for test in tests)
    is_whole = ran >= total and scored >= LEAST_SHARE * total
    return "" if is_whole else f"{scored} of {counted(total, 'test')} of the set were scored"


def _rows(
    gate: MarkedGate,
    gated: GatedSet,
    find: Callable[[str], TestRecord | None],
    *,
    skipped: Collection[str],
    ran: Collection[str],
    spared: Collection[str],
) -> tuple[list[ScoredRow], Direction, int]:
    """Return the rows of a set, the direction of good scores, and how many tests were left out."""
    rows: list[ScoredRow] = []
    better = gate.better
    omitted = gated.total - len(gated.selected)
    for test in gated.selected:
        if test in spared:
            continue
        found = find(test)
        if test in skipped or (found is not None and found.outcome == "skipped"):
            omitted += 1
            continue
        name = gated.row_name(test)
        records = [] if found is None or test not in ran else [it for it in found.records if it.metric == gate.metric]
        rows += [_row(name, record) for record in records]
        better = better or next((record.better for record in records if record.score is not None), None)
        if not records:
            rows.append(ScoredRow(name=name, score=None, reason=_why_unscored(found, ran=test in ran)))
    return rows, better or "higher", omitted


def _row(name: str, record: Record) -> ScoredRow:
    reason = record.reason or "unscored" if record.score is None else shortcoming(record)
    cluster = cluster_of(record.sample)
    scored = ScoredRow(name=name, score=record.score, reason=reason, vacuous=record.vacuous)
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


def evaluate_merged_gate(
    row: TestRecord,
    tests: Sequence[TestRecord],
    baseline: Baseline | None = None,
    judging: Mapping[str, Judging] = MappingProxyType({}),
) -> TestRecord | None:
    """Return the record of a skipped gate as one run over all ``tests``, gates among them, would have left it.

    ``None`` if they are not the whole set (of a test that passed without a score there is no record), or if it is a
    regression gate and there is no ``baseline``.
    """
    function, _, name = row.id.partition("[gate-")
    gate = row.gate
    if gate is None or not name:
        return None
    gated = GatedSet(
        function=function,
        name=function.rpartition("::")[2],
        file=row.file,
        line=row.line,
        scope="",
        gates=(),
        total=gate.total,
    )
    members = {test.id: test for test in tests if test.gate is None and gated.has(test.id)}
    if len(members) != gate.total:
        return None
    beside = (_gate_again(test.gate) for test in tests if test.gate is not None and gated.has(test.id))
    gated = replace(gated, selected=tuple(members), gates=tuple(beside))
    # Tests that were skipped without a record are in no document.
    decision = evaluate_gate(
        _gate_again(gate), gated, members.get, skipped=(), ran=members.keys(), baseline=baseline, judging=judging
    )
    if decision.record.outcome == "skipped":
        return None
    passed = decision.record.passes
    return replace(
        row, gate=decision.record, outcome="passed" if passed else "failed", message=None if passed else decision.text
    )


def _gate_again(record: GateRecord) -> MarkedGate:
    """Return the gate of a record of one that was skipped."""
    # The direction was a guess unless a record had it; the records of all tests have it.
    return MarkedGate(
        **{**_terms(record), "better": record.better if record.statistic == "rate" else None},
        alpha=None if record.regression is None else record.regression.alpha,
        stop_when_decided=record.stop is not None,
    )
