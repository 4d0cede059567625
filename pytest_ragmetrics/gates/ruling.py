"""Whether a gate holds, decided in one place for one process and for many."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_ragmetrics.explain import explain_standing, explain_unscored, shortcoming
from pytest_ragmetrics.gates.gate import Gate, GatedSet
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.report.outcomes import gist
from pytest_ragmetrics.report.records import result_of
from pytest_ragmetrics.stats.standing import ScoredRow, Standing, mean_standing, rate_standing
from pytest_ragmetrics.text.printable import printable

if TYPE_CHECKING:
    from pytest_ragmetrics.report.records import GateRow, Record, TestRow
    from pytest_ragmetrics.result import Direction

Outcome = Literal["passed", "failed", "inconclusive", "skipped"]

_WENT = {"error": "was in error", "xfailed": "failed as expected", "xpassed": "passed unexpectedly"}
_NO_SCORE = "its test passed without scoring it"
_NEVER_RAN = "its test has not run to its end"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruling:
    """What became of a gate: its figures, and what there is to say."""

    row: GateRow
    text: str


def ruling(
    gate: Gate,
    gated: GatedSet,
    find: Callable[[str], TestRow | None],
    *,
    skipped: Collection[str],
    ran: Collection[str],
) -> Ruling:
    """Decide a gate by what is known of the tests of its set.

    ``find`` returns what a test left behind, if anything; ``skipped`` and ``ran`` are the tests that were skipped, and
    those that came to their end. A set that did not run whole decides nothing; one with unscored rows fails.
    """
    scored: list[tuple[str, Record]] = []
    unscored: list[tuple[str, str]] = []
    omitted = gated.total - len(gated.selected)
    for test in gated.selected:
        row = find(test)
        records = [r for r in (row["records"] if row is not None else ()) if r["metric"] == gate.metric]
        name = test.removeprefix(gated.function).strip("[]") or test
        if test in skipped or (row is not None and row["outcome"] == "skipped"):
            omitted += 1
        elif not records or test not in ran:
            unscored.append((name, _without(row, ran=test in ran)))
        else:
            scored += [(name, record) for record in records if record["score"] is not None]
            unscored += [(name, record["reason"] or "unscored") for record in records if record["score"] is None]
    told: list[Direction] = [record["better"] for _, record in scored]
    better = gate.better or (told or ["higher"])[0]
    if omitted:
        text = f"{omitted} of {gated.total} tests of the set were skipped or not selected; a gate is over all of them"
        skip = _row(gate, better, None, len(scored), len(unscored), outcome="skipped", total=gated.total)
        return Ruling(row=skip, text=text)
    if unscored or not scored:
        return _incomplete(gate, better, scored, unscored, total=gated.total)
    standing = _standing(gate, better, [record for _, record in scored])
    rows = [
        ScoredRow(name=name, score=_score(record), reason=shortcoming(result_of(record))) for name, record in scored
    ]
    return Ruling(
        row=_row(gate, better, standing, len(scored), 0, outcome=standing.outcome, total=gated.total),
        text="\n".join(explain_standing(standing, rows)),
    )


def _incomplete(
    gate: Gate,
    better: Direction,
    scored: Sequence[tuple[str, Record]],
    unscored: Sequence[tuple[str, str]],
    *,
    total: int,
) -> Ruling:
    standing = _standing(gate, better, [record for _, record in scored]) if scored else None
    hint = "; a gate is over all of them"
    return Ruling(
        row=_row(gate, better, standing, len(scored), len(unscored), outcome="failed", total=total),
        text="\n".join(explain_unscored(gate.metric, max(total, len(scored) + len(unscored)), unscored, hint=hint)),
    )


def _standing(gate: Gate, better: Direction, records: Sequence[Record]) -> Standing:
    scores = [_score(record) for record in records]
    named = [(record["sample"].get("metadata") or {}).get("cluster") for record in records]
    clusters = None if None in named else [str(name) for name in named]
    if gate.statistic == "rate" and gate.score_bound is not None:
        return rate_standing(
            scores,
            gate.score_bound,
            gate.bound,
            metric=gate.metric,
            score_better=better,
            confidence=gate.confidence,
            clusters=clusters,
        )
    return mean_standing(
        scores,
        gate.bound,
        metric=gate.metric,
        better=better,
        confidence=gate.confidence,
        clusters=clusters,
        bounds=_scale(gate.metric, scores),
    )


def _scale(metric: str, scores: Sequence[float]) -> tuple[float, float] | None:
    """Return the lowest and the highest score there can be, as far as anybody knows."""
    try:
        low, high = metric_named(metric).scale
    except ValueError:
        low, high = 0.0, 1.0
    return (low, high) if all(low <= score <= high for score in scores) else None


def _row(
    gate: Gate, better: Direction, standing: Standing | None, n: int, unscored: int, *, outcome: Outcome, total: int
) -> GateRow:
    interval = None if standing is None else standing.interval
    return {
        "metric": gate.metric,
        "statistic": gate.statistic,
        "value": None if standing is None else standing.value,
        "bound": gate.bound,
        "min_score": gate.score_bound,
        "better": better,
        "confidence": gate.confidence,
        "low": None if interval is None else _finite(interval.low),
        "high": None if interval is None else _finite(interval.high),
        "n": n,
        "unscored": unscored,
        "total": total,
        "outcome": outcome,
    }


def _finite(end: float) -> float | None:
    return end if abs(end) != float("inf") else None


def _score(record: Record) -> float:
    return 0.0 if record["score"] is None else record["score"]


def _without(row: TestRow | None, *, ran: bool) -> str:
    """Return why there is no score of a test: what went wrong with it, if that is known."""
    if row is None or not ran:
        return _NO_SCORE if ran else _NEVER_RAN
    said = gist(row["message"])
    return f"its test {_WENT.get(row['outcome'], 'failed')}" + (f": {printable(said)}" if said else "")
