"""Deciding a gate when its set was run in parts, each of which had to leave it undecided."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pytest_ragmetrics.explain.results import shortcoming
from pytest_ragmetrics.explain.runs import gist
from pytest_ragmetrics.explain.sets import explain_standing, explain_unscored
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.records import GateOutcome, GateRecord, Record, TestRecord
from pytest_ragmetrics.result import Direction
from pytest_ragmetrics.stats.decisions import ScoredRow, ThresholdResult, mean_threshold, rate_threshold
from pytest_ragmetrics.text.characters import printable

_EXAMPLES = '@pytest.mark.rag_gate("faithfulness", mean=0.85) or rag_gate("faithfulness", rate=0.95, min=0.8)'
_TAKEN = {"metric", "mean", "rate", "min", "max", "confidence"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """A bound for the mean of a metric, or for the rate of scores that reach ``score_bound``.

    ``better`` says which scores are the good ones, and is ``None`` where only the metric's results can tell.
    """

    metric: str
    statistic: Literal["mean", "rate"]
    bound: float
    score_bound: float | None = None
    better: Direction | None = None
    confidence: float | None = None

    @property
    def id(self) -> str:
        """How the test of this gate is called.

        >>> gate_of("faithfulness", rate=0.95, min=0.8).id
        'gate-faithfulness-rate-0.95-min-0.8'
        """
        parts = ["gate", self.metric, self.statistic, f"{self.bound:g}"]
        if self.score_bound is not None:
            parts += ["max" if self.better == "lower" else "min", f"{self.score_bound:g}"]
        if self.confidence is not None:
            parts += ["confidence", f"{self.confidence:g}"]
        return "-".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class GatedSet:
    """The tests that one function makes: ``total`` of them, of which ``selected`` were to run, and their gates.

    ``file``, ``line`` and ``scope`` (the classes around it) say where the function stands, as reports have it. Crosses
    processes as JSON builtins.
    """

    function: str
    name: str
    file: str
    line: int | None
    scope: str
    gates: tuple[Gate, ...]
    total: int
    selected: tuple[str, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """Return it as JSON builtins."""
        row = asdict(self)
        return {**row, "gates": list(row["gates"]), "selected": list(self.selected)}

    def location(self, gate: Gate) -> tuple[str, int | None, str]:
        """Return where the test of a gate stands, as reports have it."""
        return self.file, self.line, f"{self.scope}{self.name}[{gate.id}]"

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> GatedSet:
        """Read what :meth:`to_row` made."""
        gates = tuple(Gate(**gate) for gate in row["gates"])
        return cls(**{**row, "gates": gates, "selected": tuple(row["selected"])})


def gate_of(*given: Any, **named: Any) -> Gate:
    """Return the gate that the arguments of a marker describe; raise ``ValueError`` saying what to write instead."""
    unknown = sorted(named.keys() - _TAKEN)
    metrics = [*given, *(named[name] for name in ("metric",) if name in named)]
    if unknown or len(metrics) != 1 or not isinstance(metrics[0], str) or not metrics[0].strip():
        problem = f"it knows no {', '.join(unknown)}" if unknown else "it takes the name of one metric"
        msg = f"{problem}; write {_EXAMPLES}"
        raise ValueError(msg)
    figures = {name: _figure(name, named[name]) for name in _TAKEN - {"metric"} if named.get(name) is not None}
    if ("mean" in figures) == ("rate" in figures):
        msg = f"give one of mean= and rate=; write {_EXAMPLES}"
        raise ValueError(msg)
    name, better = _known(metrics[0].strip())
    if "mean" in figures:
        if "min" in figures or "max" in figures:
            msg = "min= and max= are of single scores and go with rate=; mean= is a bound by itself"
            raise ValueError(msg)
        return Gate(
            metric=name, statistic="mean", bound=figures["mean"], better=better, confidence=figures.get("confidence")
        )
    return _rate(name, better, figures)


def _rate(metric: str, better: Direction | None, figures: Mapping[str, float]) -> Gate:
    if ("min" in figures) == ("max" in figures):
        msg = (
            f"rate= needs the score that counts as good: min=, or max= where lower scores are better; write {_EXAMPLES}"
        )
        raise ValueError(msg)
    if not 0.0 <= figures["rate"] <= 1.0:
        msg = f"rate={figures['rate']:g} is no share; write a number between 0 and 1"
        raise ValueError(msg)
    given: Direction = "higher" if "min" in figures else "lower"
    if better not in (None, given):
        wanted = "max=" if better == "lower" else "min="
        msg = f"{better} scores of {metric} are the good ones; write {wanted}"
        raise ValueError(msg)
    return Gate(
        metric=metric,
        statistic="rate",
        bound=figures["rate"],
        score_bound=figures["min" if given == "higher" else "max"],
        better=given,
        confidence=figures.get("confidence"),
    )


def _figure(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        msg = f"{name}={value!r} is no number"
        raise ValueError(msg)
    if name == "confidence" and not 0.0 < value < 1.0:
        msg = f"confidence={value!r} must be between 0 and 1, such as 0.95"
        raise ValueError(msg)
    return float(value)


def _known(name: str) -> tuple[str, Direction | None]:
    """Return the name in results of a metric, and its direction; a suite may have metrics that only it knows."""
    try:
        kind = metric_named(name)
    except ValueError:
        return name, None
    return kind.name, kind.better


_WENT = {"error": "was in error", "xfailed": "failed as expected", "xpassed": "passed unexpectedly"}
_NO_SCORE = "its test passed without scoring it"
_NEVER_RAN = "its test has not run to its end"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateDecision:
    """What became of a gate: its figures, and what there is to say."""

    row: GateRecord
    text: str


def evaluate_gate(
    gate: Gate,
    gated: GatedSet,
    find: Callable[[str], TestRecord | None],
    *,
    skipped: Collection[str],
    ran: Collection[str],
) -> GateDecision:
    """Decide a gate by what is known of the tests of its set.

    ``find`` returns what a test left behind, if anything; ``skipped`` and ``ran`` are the tests that were skipped, and
    those that came to their end. A set that did not run whole decides nothing; one with unscored rows fails.
    """
    scored: list[tuple[str, Record]] = []
    unscored: list[tuple[str, str]] = []
    omitted = gated.total - len(gated.selected)
    for test in gated.selected:
        row = find(test)
        records = [r for r in (row.records if row is not None else ()) if r.metric == gate.metric]
        name = test.removeprefix(gated.function).strip("[]") or test
        if test in skipped or (row is not None and row.outcome == "skipped"):
            omitted += 1
        elif not records or test not in ran:
            unscored.append((name, _without(row, ran=test in ran)))
        else:
            scored += [(name, record) for record in records if record.score is not None]
            unscored += [(name, record.reason or "unscored") for record in records if record.score is None]
    told: list[Direction] = [record.better for _, record in scored]
    better = gate.better or (told or ["higher"])[0]
    if omitted:
        text = f"{omitted} of {gated.total} tests of the set were skipped or not selected; a gate is over all of them"
        skip = _row(gate, better, None, len(scored), len(unscored), outcome="skipped", total=gated.total)
        return GateDecision(row=skip, text=text)
    if unscored or not scored:
        return _incomplete(gate, better, scored, unscored, total=gated.total)
    standing = _standing(gate, better, [record for _, record in scored])
    rows = [ScoredRow(name=name, score=_score(record), reason=shortcoming(record)) for name, record in scored]
    return GateDecision(
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
) -> GateDecision:
    standing = _standing(gate, better, [record for _, record in scored]) if scored else None
    hint = "; a gate is over all of them"
    return GateDecision(
        row=_row(gate, better, standing, len(scored), len(unscored), outcome="failed", total=total),
        text="\n".join(explain_unscored(gate.metric, max(total, len(scored) + len(unscored)), unscored, hint=hint)),
    )


def _standing(gate: Gate, better: Direction, records: Sequence[Record]) -> ThresholdResult:
    scores = [_score(record) for record in records]
    named = [record.sample.metadata.get("cluster") for record in records]
    clusters = None if None in named else [str(name) for name in named]
    if gate.statistic == "rate" and gate.score_bound is not None:
        return rate_threshold(
            scores,
            gate.score_bound,
            gate.bound,
            metric=gate.metric,
            score_better=better,
            confidence=gate.confidence,
            clusters=clusters,
        )
    return mean_threshold(
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
    gate: Gate,
    better: Direction,
    standing: ThresholdResult | None,
    n: int,
    unscored: int,
    *,
    outcome: GateOutcome,
    total: int,
) -> GateRecord:
    interval = None if standing is None else standing.interval
    return GateRecord(
        metric=gate.metric,
        statistic=gate.statistic,
        value=None if standing is None else standing.value,
        bound=gate.bound,
        min_score=gate.score_bound,
        better=better,
        confidence=gate.confidence,
        low=None if interval is None else _finite(interval.low),
        high=None if interval is None else _finite(interval.high),
        n=n,
        unscored=unscored,
        total=total,
        outcome=outcome,
    )


def _finite(end: float) -> float | None:
    return end if abs(end) != float("inf") else None


def _score(record: Record) -> float:
    return 0.0 if record.score is None else record.score


def _without(row: TestRecord | None, *, ran: bool) -> str:
    """Return why there is no score of a test: what went wrong with it, if that is known."""
    if row is None or not ran:
        return _NO_SCORE if ran else _NEVER_RAN
    said = gist(row.message)
    return f"its test {_WENT.get(row.outcome, 'failed')}" + (f": {printable(said)}" if said else "")


def evaluate_merged_gate(row: TestRecord, tests: Sequence[TestRecord]) -> TestRecord | None:
    """Return the row of a skipped gate as one run over all ``tests`` would have left it.

    ``None`` where they are not the whole set, or none can tell: a test that passed without a score leaves no row.
    """
    function, _, name = row.id.partition("[gate-")
    gate = row.gate
    members = {test.id: test for test in tests if test.id == function or test.id.startswith(f"{function}[")}
    if gate is None or not name or len(members) != gate.total:
        return None
    gated = GatedSet(
        function=function,
        name=function.rpartition("::")[2],
        file=row.file,
        line=row.line,
        scope="",
        gates=(),
        total=gate.total,
        selected=tuple(members),
    )
    found = evaluate_gate(_gate_of(gate), gated, members.get, skipped=_skipped(members.values()), ran=members.keys())
    if found.row.outcome == "skipped":
        return None
    passed = found.row.outcome == "passed"
    return replace(
        row, gate=found.row, outcome="passed" if passed else "failed", message=None if passed else found.text
    )


def _gate_of(row: GateRecord) -> Gate:
    # Which scores are the good ones was a guess unless a score was there to tell; its records tell it again.
    better = row.better if row.statistic == "rate" else None
    return Gate(
        metric=row.metric,
        statistic=row.statistic,
        bound=row.bound,
        score_bound=row.min_score,
        better=better,
        confidence=row.confidence,
    )


def _skipped(tests: Iterable[TestRecord]) -> set[str]:
    return {test.id for test in tests if test.outcome in ("skipped", "xfailed")}
