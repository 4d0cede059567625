"""Bounds from the runs of a history: what an application that does not change reaches in 99 of 100 runs.

:func:`run_bounds` finds them, :func:`bound_lines` are the lines of ``ragmetrics report history --bounds``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from statistics import fmean
from typing import TypeAlias

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.report.history import History, HistoryRun, MetricPoint
from pytest_ragmetrics.report.trends import breaks_between, history_facts
from pytest_ragmetrics.runs.records import Gate, GateRecord, function_name
from pytest_ragmetrics.runs.wording.comparisons import LEAST_SHARE
from pytest_ragmetrics.runs.wording.figures import counted, named
from pytest_ragmetrics.stats.intervals import MeanError, next_value, t_quantile, t_tail
from pytest_ragmetrics.stats.means import meets
from pytest_ragmetrics.stats.scores import ROUNDING
from pytest_ragmetrics.text.unicode import printable

#: With fewer whole runs there is no bound: that of two would be 39 standard deviations below their mean.
FEWEST = 3
#: In this share of its runs an application that does not change breaks its bound.
BROKEN = 0.01
# Thresholds of single scores that a gate can hold, as a history has them.
_SIDES: Mapping[str, Direction] = {"≥": "higher", "≤": "lower"}
# Fewer lose power: of 50 rows that all vary, a loss of ten points is found in 47 % of runs with three, in 42 with two.
_DECIMALS = 3
# What is less likely is not rounded to "1 of 100 runs".
_RARE = 0.005

# The value of a gate in a run, and over how many scores it is.
_Point: TypeAlias = tuple[float, int]
# The scores of a run by function and metric, with what they had to be.
_Sets: TypeAlias = Mapping[tuple[str, str], list[tuple[float | None, str]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunBound:
    """A bound from several runs, on a figure over the rows of one ``function``.

    ``gate`` says which figure, ``bound`` is ``None`` where the runs are too few, or too different, for one. ``runs``
    are counted, and ``scores`` are the fewest and the most scores in one of them. ``left_out`` counts the other runs by
    what changed since. ``yours`` is the bound that the gate has, and ``broken`` the share of runs in which an
    application that does not change breaks that. It is ``one_test`` that scores a table of its own, without a gate.
    """

    function: str
    gate: Gate
    bound: float | None
    runs: int
    scores: tuple[int, int]
    left_out: Mapping[str, int]
    yours: float | None = None
    broken: float | None = None
    one_test: bool = False


def run_bounds(history: History) -> list[RunBound]:
    """Return a bound for each mean and each rate of the sets in the last whole run, from all whole runs like it.

    That is the gates that it has, and for a metric of a set without one the rate of scores that meet their threshold,
    else their mean. Bounds are the limit of :func:`~pytest_ragmetrics.stats.intervals.next_value`, rounded to the safe
    side.
    """
    whole = [(run, _sets_of(run)) for run in history.runs if not run.run.partial]
    return [_bound(whole, function, gate) for function, gate in _wanted(*whole[-1])] if whole else []


def _sets_of(run: HistoryRun) -> _Sets:
    found: dict[tuple[str, str], list[tuple[float | None, str]]] = {}
    for test in run.tests:
        for metric, (score, _, needs) in test.scores.items():
            found.setdefault((function_name(test.id), metric), []).append((score, needs))
    return found


def _wanted(latest: HistoryRun, sets: _Sets) -> Iterator[tuple[str, Gate]]:
    """Yield the functions of a run with their gates, and with those that they could have."""
    gates = [(function_name(key), it) for key, it in latest.gates.items() if it.statistic != "regression"]
    yield from gates
    gated = {(function, it.metric) for function, it in gates}
    directions = {gate.metric: gate.better for gate in latest.gates.values()}
    counts = Counter(metric for _, metric in sets)
    for (function, metric), scores in sorted(sets.items()):
        is_table = len(scores) == 1 and counts[metric] == 1 and _metric_point(latest, metric).n > 1
        if (function, metric) not in gated and (len(scores) > 1 or is_table):
            needs = {"" if is_table else needs for _, needs in scores}
            yield function, _gate_for(metric, needs, directions.get(metric))


def _gate_for(metric: str, needs: Collection[str], better: Direction | None) -> Gate:
    """Return the gate that a set without one could have; ``needs`` is what its single scores are held to."""
    sign, _, bound = next(iter(needs)).partition(" ")
    if len(needs) == 1 and sign in _SIDES:
        return Gate(metric=metric, statistic="rate", bound=0.0, min_score=float(bound), better=_SIDES[sign])
    with suppress(ValueError):
        better = better or metric_named(metric).better
    return Gate(metric=metric, statistic="mean", bound=0.0, better=better or "higher")


def _bound(whole: Sequence[tuple[HistoryRun, _Sets]], function: str, gate: Gate) -> RunBound:
    points: list[_Point] = []
    left_out: Counter[str] = Counter()
    latest, sets = whole[-1]
    for run, scored in whole:
        if (point := _point(run, scored, function, gate)) is not None:
            changes = list(breaks_between(run, latest, gate.metric))
            left_out.update(changes[:1])
            points += [] if changes else [point]
    counts = [n for _, n in points] or [0]
    found = RunBound(
        function=function,
        gate=gate,
        bound=None,
        runs=len(points),
        scores=(min(counts), max(counts)),
        left_out=left_out,
        one_test=not isinstance(gate, GateRecord) and len(sets[function, gate.metric]) == 1,
    )
    if len(points) < FEWEST:
        return found
    values, n = [value for value, _ in points], points[-1][1]
    following = next_value(values, least=0.5 / n)
    found = replace(found, bound=_limit(following, values, lower=_is_lower(gate)))
    if not isinstance(gate, GateRecord) or gate.confidence is not None:  # its interval is held to its bound
        return found
    return replace(found, yours=gate.bound, broken=_broken(gate, following, n))


def _is_lower(gate: Gate) -> bool:
    return gate.statistic == "mean" and gate.better == "lower"


def _limit(following: MeanError, values: Sequence[float], *, lower: bool) -> float | None:
    """Return the bound, ``None`` where that would be beyond a scale from 0 to 1."""
    reach = t_quantile(1.0 - BROKEN, following.df) * following.error
    parts = 10**_DECIMALS
    middle, reach = following.mean * parts, reach * parts
    limit = (math.ceil(middle + reach - ROUNDING) if lower else math.floor(middle - reach + ROUNDING)) / parts
    is_share = min(values) >= 0.0 and max(values) <= 1.0
    return limit if 0.0 < limit < 1.0 or not is_share else None


def _broken(gate: GateRecord, following: MeanError, n: int) -> float:
    """Return how probable it is that the next value is on the bad side of the bound of a gate."""
    bound = gate.bound
    if gate.statistic == "rate":  # a whole number of rows: half of one below the fewest that will do
        bound = (math.ceil(bound * n - ROUNDING) - 0.5) / n
    distance = following.mean - bound
    return t_tail((-distance if _is_lower(gate) else distance) / following.error, following.df)


def _point(run: HistoryRun, sets: _Sets, function: str, gate: Gate) -> _Point | None:
    """Return the value of a gate in a run, by its record there or by the scores of its tests; ``None`` without."""
    if all(point.metric != gate.metric for point in run.metrics):
        return None
    known = (it for key, it in run.gates.items() if function_name(key) == function)
    if (found := next((it for it in known if _terms(it) == _terms(gate)), None)) is not None:
        is_whole = found.value is not None and not (found.stop and found.stop.spared)
        return (found.value, found.n) if found.value is not None and is_whole else None
    point, scored = _metric_point(run, gate.metric), sets.get((function, gate.metric), [])
    if len(scored) == 1:
        return None if point.mean is None else (point.mean, point.n)
    if point.not_needed or gate.all_pass or (point.vacuous and not gate.counts_vacuous):
        return None  # a history does not have which scores count, and which are of one row
    scores = [score for score, _ in scored if score is not None]
    if gate.min_score is not None:
        scores = [float(meets(score, gate.min_score, gate.better or "higher")) for score in scores]
    return (fmean(scores), len(scores)) if scores else None


def _metric_point(run: HistoryRun, metric: str) -> MetricPoint:
    return next(point for point in run.metrics if point.metric == metric)


def _terms(gate: Gate) -> tuple[object, ...]:
    """Return what a gate is over, whatever it is held to."""
    held_to = {"bound", "confidence", "inconclusive"}
    return tuple(getattr(gate, each.name) for each in fields(Gate) if each.name not in held_to)


def bound_lines(history: History) -> list[str]:
    """Return the bounds as markers to paste, with how often each is broken, and what was left out."""
    lines = [", ".join(history_facts(history))]
    found = run_bounds(history)
    for function in dict.fromkeys(bound.function for bound in found):
        lines += ["", named(function)]
        for bound in found:
            lines += _lines(bound, history.branch) if bound.function == function else []
    if not found:
        lines.append("no bound: a bound is over the rows of a data set, and no whole run has one")
    return [*lines, *([""] if history.left_out else []), *history.left_out]


def _lines(found: RunBound, branch: str) -> Iterator[str]:
    gate = found.gate
    runs, (fewest, most) = counted(found.runs, "run") + (f" of {named(branch)}" if branch else ""), found.scores
    scores = f"{fewest} to {counted(most, 'score')}" if fewest < most else counted(most, "score")
    if found.bound is None:
        why = f"{FEWEST} whole runs are the least" if found.runs < FEWEST else "for so few scores they differ too much"
        yield f"# {named(gate.metric)}: no bound from {runs}, {why}"
    else:
        yield f"# {runs}, {scores}; an unchanged application breaks it in {_of_hundred(BROKEN)}"
        yield _call(found, found.bound)
    if found.bound is not None and fewest < LEAST_SHARE * most:
        yield "#   the number of scores changed: fewer vary more; ask again after some runs of as many"
    if found.broken is not None and found.yours is not None:
        yield f"#   {gate.statistic}={found.yours:g}, which you have: broken in {_of_hundred(found.broken)}"
    for why, count in found.left_out.items():
        yield f"#   {counted(count, 'run')} left out: {printable(why)}"


def _of_hundred(share: float) -> str:
    return f"about {100.0 * share:.0f} of 100 runs" if share >= _RARE else "fewer than 1 of 100 runs"


def _call(found: RunBound, bound: float) -> str:
    """Return what holds a set to a bound: a marker, or an assertion on the table of one test."""
    gate, side = found.gate, "max" if found.gate.better == "lower" else "min"
    if found.one_test:
        return f"assert_mean(table, {side}={bound!r}, metric={json.dumps(gate.metric)})"
    given = [json.dumps(gate.metric), f"{gate.statistic}={bound!r}"]
    given += [] if gate.min_score is None else [f"{side}={gate.min_score:g}"]
    given += ["all_pass=True"] if gate.all_pass else []
    given += ['vacuous="count"'] if gate.counts_vacuous else []
    return f"@pytest.mark.rag_gate({', '.join(given)})"
