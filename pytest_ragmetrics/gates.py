"""Gates: what the marker ``rag_gate`` says, and the decision by the records of the tests of its set.

``gate_plugin`` decides the gates of a run, ``report merge`` those of sets that were run in parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

from pytest_ragmetrics.explain.results import explain_threshold, explain_unscored, explain_vacuous, shortcoming
from pytest_ragmetrics.explain.runs import gist
from pytest_ragmetrics.metrics.assertion import check_bound
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.ragas import RagasScore
from pytest_ragmetrics.metrics.registry import metric_named, scale_of
from pytest_ragmetrics.records import GateOutcome, GateRecord, Record, TestRecord
from pytest_ragmetrics.result import Direction
from pytest_ragmetrics.stats.decisions import (
    Inconclusive,
    ThresholdResult,
    check_inconclusive,
    mean_threshold,
    rate_threshold,
)
from pytest_ragmetrics.stats.intervals import whole_clusters
from pytest_ragmetrics.stats.scores import ScoredRow, ScoreSet, Vacuous, check_vacuous, score_set
from pytest_ragmetrics.text.characters import printable

_EXAMPLES = '@pytest.mark.rag_gate("faithfulness", mean=0.85) or rag_gate("faithfulness", rate=0.95, min=0.8)'
#: Which scores a bound of single scores calls good.
_BOUNDS: tuple[tuple[str, Direction], ...] = (("min", "higher"), ("max", "lower"))
_FIGURES = ("mean", "rate", "min", "max", "confidence")
_TAKEN = {"metric", *_FIGURES, "inconclusive", "vacuous"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """A bound for the mean of a metric, or for the rate of scores that reach ``score_bound``.

    ``better`` is the direction of good scores, ``None`` where only the results of the metric have it. ``inconclusive``
    says whether an interval with the bound in it fails, ``vacuous`` whether scores with nothing to check are left out.
    """

    metric: str
    statistic: Literal["mean", "rate"]
    bound: float
    score_bound: float | None = None
    better: Direction | None = None
    confidence: float | None = None
    inconclusive: Inconclusive = "fail"
    vacuous: Vacuous = "skip"

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
        if self.inconclusive == "pass":
            parts += ["inconclusive", self.inconclusive]
        if self.vacuous == "count":
            parts += ["vacuous", self.vacuous]
        return "-".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class GatedSet:
    """The tests that one function makes: ``total`` of them, of which ``selected`` were to run, and their gates.

    ``file``, ``line`` and ``scope`` (the classes around it) are the place of the function, as reports have it.
    """

    function: str
    name: str
    file: str
    line: int | None
    scope: str
    gates: tuple[Gate, ...]
    total: int
    selected: tuple[str, ...] = ()

    def location(self, gate: Gate) -> tuple[str, int | None, str]:
        """Return file, line and name of the test of a gate, as reports have them."""
        return self.file, self.line, f"{self.scope}{self.name}[{gate.id}]"


def gate_of(*given: Any, **named: Any) -> Gate:
    """Return the gate that the arguments of a marker describe; raise ``ValueError`` saying what to write instead."""
    return gate_among(None, given, named)


def gate_among(listed: Sequence[Metric] | None, given: Sequence[Any], named: Mapping[str, Any]) -> Gate:
    """Return the gate as :func:`gate_of` does; ``listed`` are the metrics of the data set, of which it must be one."""
    unknown = sorted(named.keys() - _TAKEN)
    metrics = [*given, *(named[name] for name in ("metric",) if name in named)]
    if unknown or len(metrics) != 1 or not isinstance(metrics[0], str) or not metrics[0].strip():
        problem = f"it knows no {', '.join(unknown)}" if unknown else "it takes the name of one metric"
        msg = f"{problem}; write {_EXAMPLES}"
        raise ValueError(msg)
    figures = {name: _figure(name, named[name]) for name in _FIGURES if named.get(name) is not None}
    name, better, scale = _known(metrics[0].strip(), listed)
    if mistake := _mistake(name, better, figures):
        raise ValueError(mistake)
    for which in ("mean", "min", "max"):
        if which in figures:
            check_bound(which, figures[which], metric=name, scale=scale)
    bounds = [(which, direction) for which, direction in _BOUNDS if which in figures]
    return Gate(
        metric=name,
        statistic="rate" if bounds else "mean",
        bound=figures["rate" if bounds else "mean"],
        score_bound=figures[bounds[0][0]] if bounds else None,
        better=bounds[0][1] if bounds else better,
        confidence=figures.get("confidence"),
        inconclusive=check_inconclusive(named.get("inconclusive") or "fail", figures.get("confidence")),
        vacuous="skip" if named.get("vacuous") is None else check_vacuous(named["vacuous"]),
    )


def _mistake(metric: str, better: Direction | None, figures: Mapping[str, float]) -> str | None:
    """Return what is wrong with the figures of a gate together."""
    if ("mean" in figures) == ("rate" in figures):
        return f"give one of mean= and rate=; write {_EXAMPLES}"
    given = [direction for which, direction in _BOUNDS if which in figures]
    if "mean" in figures:
        return "min= and max= are of single scores and go with rate=; mean= is a bound by itself" if given else None
    if len(given) != 1:
        wanted = "min=, or max= where lower scores are better"
        return f"rate= needs the score that counts as good: {wanted}; write {_EXAMPLES}"
    if not 0.0 <= figures["rate"] <= 1.0:
        return f"rate={figures['rate']:g} is no share; write a number between 0 and 1"
    if better not in (None, *given):
        wanted = "max=" if better == "lower" else "min="
        return f"{better} scores of {metric} are the good ones; write {wanted}"
    return None


def _figure(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        msg = f"{name}={value!r} is no number"
        raise ValueError(msg)
    if name == "confidence" and not 0.0 < value < 1.0:
        msg = f"confidence={value!r} must be between 0 and 1, such as 0.95"
        raise ValueError(msg)
    return float(value)


def _known(name: str, listed: Sequence[Metric] | None) -> tuple[str, Direction | None, tuple[float, float] | None]:
    """Return the name in results of a metric, its direction and its scale; a suite may have metrics only it knows."""
    known: Metric | type[Metric] | None = None
    with suppress(ValueError):
        known = metric_named(name)
    if not listed:
        return (name, None, None) if known is None else (known.name, known.better, known.scale)
    scored = {metric.name: metric for each in listed for metric in (each, *_parts(each))}
    wanted = name if known is None or name in scored else known.name
    if wanted not in scored:
        near = get_close_matches(name, scored, 1)
        right = f"did you mean {near[0]!r}?" if near else f"write metrics=[..., {wanted!r}] there"
        msg = f"{name!r} is not scored, the marker rag_dataset lists {', '.join(scored)}: {right}"
        raise ValueError(msg)
    return wanted, scored[wanted].better, scored[wanted].scale


def _parts(metric: Metric) -> Sequence[Metric]:
    """Return the metrics that a metric scores beside itself."""
    return metric.metrics if isinstance(metric, RagasScore) else ()


_WENT = {"error": "was in error", "xfailed": "failed as expected", "xpassed": "passed unexpectedly"}


@dataclass(frozen=True, kw_only=True, slots=True)
class GateDecision:
    """The decision on a gate: its record, and the text that explains it."""

    record: GateRecord
    text: str


def evaluate_gate(
    gate: Gate,
    gated: GatedSet,
    find: Callable[[str], TestRecord | None],
    *,
    skipped: Collection[str],
    ran: Collection[str],
) -> GateDecision:
    """Decide a gate by the records of the tests of its set.

    ``find`` returns the record of a test, if it left one; ``skipped`` and ``ran`` are the tests that were skipped, and
    those that ran to their end. A set that did not run whole decides nothing; one with unscored rows fails, and so does
    one in which there was nothing to check.
    """
    rows, better, omitted = _rows(gate, gated, find, skipped=skipped, ran=ran)
    found = score_set(rows, gate.vacuous)
    result = _threshold(gate, better, found) if found.counted and not omitted else None
    outcome: GateOutcome = "failed"
    if omitted:
        missing = f"{omitted} of {gated.total} tests of the set were skipped or not selected"
        outcome, text = "skipped", f"{missing}; a gate is over all of them"
    elif found.unscored:
        unscored = [(row.name, row.reason or "") for row in found.unscored]
        total = max(gated.total, len(rows))
        text = "\n".join(explain_unscored(gate.metric, total, unscored, hint="; a gate is over all of them"))
    elif result is None:
        text = explain_vacuous(gate.metric, len(found.vacuous))
    else:
        outcome = result.outcome
        text = "\n".join(explain_threshold(result, found.counted))
    interval = None if result is None else result.interval
    record = GateRecord(
        metric=gate.metric,
        statistic=gate.statistic,
        value=None if result is None else result.value,
        bound=gate.bound,
        min_score=gate.score_bound,
        better=better,
        confidence=gate.confidence,
        low=None if interval is None or math.isinf(interval.low) else interval.low,
        high=None if interval is None or math.isinf(interval.high) else interval.high,
        n=len(found.counted),
        unscored=len(found.unscored),
        total=gated.total,
        outcome=outcome,
        vacuous=len(found.vacuous),
        counts_vacuous=gate.vacuous == "count",
        inconclusive=gate.inconclusive,
    )
    return GateDecision(record=record, text=text)


def _rows(
    gate: Gate,
    gated: GatedSet,
    find: Callable[[str], TestRecord | None],
    *,
    skipped: Collection[str],
    ran: Collection[str],
) -> tuple[list[ScoredRow], Direction, int]:
    """Return the rows of a set, the direction of good scores, and how many tests were left out."""
    rows: list[ScoredRow] = []
    better = gate.better
    omitted = gated.total - len(gated.selected)
    for test in gated.selected:
        found = find(test)
        if test in skipped or (found is not None and found.outcome == "skipped"):
            omitted += 1
            continue
        name = test.removeprefix(gated.function).strip("[]") or test
        records = [] if found is None or test not in ran else [it for it in found.records if it.metric == gate.metric]
        rows += [_row(name, record) for record in records]
        better = better or next((record.better for record in records if record.score is not None), None)
        if not records:
            rows.append(ScoredRow(name=name, score=None, reason=_why_unscored(found, ran=test in ran)))
    return rows, better or "higher", omitted


def _row(name: str, record: Record) -> ScoredRow:
    reason = record.reason or "unscored" if record.score is None else shortcoming(record)
    cluster = record.sample.metadata.get("cluster")
    return ScoredRow(name=name, score=record.score, reason=reason, vacuous=record.vacuous, cluster=cluster)


def _threshold(gate: Gate, better: Direction, found: ScoreSet[ScoredRow]) -> ThresholdResult:
    scores = found.scores
    clusters = whole_clusters(None if row.cluster is None else str(row.cluster) for row in found.counted)
    if gate.statistic == "rate" and gate.score_bound is not None:
        return rate_threshold(
            scores,
            gate.score_bound,
            gate.bound,
            metric=gate.metric,
            score_better=better,
            confidence=gate.confidence,
            clusters=clusters,
            vacuous=len(found.vacuous),
        )
    return mean_threshold(
        scores,
        gate.bound,
        metric=gate.metric,
        better=better,
        confidence=gate.confidence,
        clusters=clusters,
        bounds=_scale(gate.metric, scores),
        vacuous=len(found.vacuous),
    )


def _scale(metric: str, scores: Sequence[float]) -> tuple[float, float] | None:
    """Return the lowest and the highest score of a metric; ``None`` if its scores are beyond the scale it declares."""
    low, high = scale_of(metric) or (0.0, 1.0)
    return (low, high) if all(low <= score <= high for score in scores) else None


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


def evaluate_merged_gate(row: TestRecord, tests: Sequence[TestRecord]) -> TestRecord | None:
    """Return the record of a skipped gate as one run over all ``tests`` would have left it.

    ``None`` if they are not the whole set: of a test that passed without a score there is no record.
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
    # The direction was a guess unless a record had it; the records of all tests have it.
    better = gate.better if gate.statistic == "rate" else None
    again = Gate(
        metric=gate.metric,
        statistic=gate.statistic,
        bound=gate.bound,
        score_bound=gate.min_score,
        better=better,
        confidence=gate.confidence,
        inconclusive=gate.inconclusive,
        vacuous="count" if gate.counts_vacuous else "skip",
    )
    # Tests that were skipped without a record are in no document.
    decision = evaluate_gate(again, gated, members.get, skipped=(), ran=members.keys())
    if decision.record.outcome == "skipped":
        return None
    passed = decision.record.passes
    return replace(
        row, gate=decision.record, outcome="passed" if passed else "failed", message=None if passed else decision.text
    )
