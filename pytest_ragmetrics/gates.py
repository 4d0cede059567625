"""Gates: what the marker ``rag_gate`` says, and the decision by the records of the tests of its set.

``gate_plugin`` decides the gates of a run, ``report merge`` those of sets that were run in parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from statistics import fmean
from typing import Any, Literal

from pytest_ragmetrics.comparison import (
    NO_PAIR,
    Column,
    MetricComparison,
    TableComparison,
    cluster_of,
    columns_of,
    compare_columns,
    find_drops,
    key_of,
)
from pytest_ragmetrics.explain.phrases import NOTHING_TO_CHECK
from pytest_ragmetrics.explain.results import (
    explain_stop,
    explain_threshold,
    explain_unscored,
    explain_vacuous,
    shortcoming,
)
from pytest_ragmetrics.explain.runs import confirmation_text, gist
from pytest_ragmetrics.metrics.assertion import check_bound
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.ragas import RagasScore
from pytest_ragmetrics.metrics.registry import metric_named, scale_of
from pytest_ragmetrics.records import (
    ConfirmationRecord,
    Document,
    GateOutcome,
    GateRecord,
    Record,
    RegressionRecord,
    StopRecord,
    TestRecord,
)
from pytest_ragmetrics.result import Direction
from pytest_ragmetrics.stats.decisions import (
    Inconclusive,
    ThresholdResult,
    check_inconclusive,
    mean_threshold,
    rate_threshold,
)
from pytest_ragmetrics.stats.intervals import Interval, check_confidence, whole_clusters
from pytest_ragmetrics.stats.regression import Drop
from pytest_ragmetrics.stats.scores import ScoredRow, ScoreSet, Vacuous, check_vacuous, score_set, standing
from pytest_ragmetrics.stats.stopping import Draw, DrawnSet, Rule
from pytest_ragmetrics.text.characters import printable

_EXAMPLES = '@pytest.mark.rag_gate("faithfulness", mean=0.85) or rag_gate("faithfulness", rate=0.95, min=0.8)'
_REGRESSION = '@pytest.mark.rag_gate("faithfulness", regression=True)'
_CONFIRM = '@pytest.mark.rag_gate("faithfulness", regression=True, confirm=2)'
_ROWS = '@pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness"]) on the same function'
#: Which scores a bound of single scores calls good.
_BOUNDS: tuple[tuple[str, Direction], ...] = (("min", "higher"), ("max", "lower"))
_FIGURES = ("mean", "rate", "min", "max", "confidence")
_TAKEN = {"metric", *_FIGURES, "inconclusive", "vacuous", "regression", "alpha", "confirm", "stop_when_decided"}
_ALPHA = 0.05
#: Of gates without one that stop because --rag-stop-when-decided says so.
_CONFIDENCE = 0.95
# Skipped, not failed: the same suite writes the first baseline.
_NO_BASELINE = "there is no baseline to compare with: give --rag-baseline=FILE, which --rag-json wrote"


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """A bound for the mean of a metric, for the rate of scores that reach ``score_bound``, or against a regression.

    ``better`` is the direction of good scores, ``None`` where only the results of the metric have it. ``inconclusive``
    says whether an interval with the bound in it fails, ``vacuous`` whether scores with nothing to check are left out.
    A regression gate alone has an ``alpha``: how often all those of a function together fail where nothing has changed,
    and ``confirm``: how many more answers of the rows that changed a drop takes, the same for all those of a function.
    One that stops when it is decided needs the ``scale`` of the metric.
    """

    metric: str
    statistic: Literal["mean", "rate", "regression"]
    bound: float
    score_bound: float | None = None
    better: Direction | None = None
    confidence: float | None = None
    inconclusive: Inconclusive = "fail"
    vacuous: Vacuous = "skip"
    alpha: float | None = None
    confirm: int = 0
    stop_when_decided: bool = False
    scale: tuple[float, float] = (0.0, 1.0)

    @property
    def id(self) -> str:
        """How the test of this gate is called.

        >>> gate_of("faithfulness", rate=0.95, min=0.8).id
        'gate-faithfulness-rate-0.95-min-0.8'
        """
        parts = ["gate", self.metric, self.statistic, *([f"{self.bound:g}"] if self.alpha is None else [])]
        if self.alpha not in (None, _ALPHA):
            parts += ["alpha", f"{self.alpha:g}"]
        if self.confirm:
            parts += ["confirm", f"{self.confirm}"]
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

    ``file``, ``line`` and ``scope`` (the classes around it) are the place of the function, as reports have it. Where
    no further row is asked once the gates are decided, ``selected`` is in the order of a ``draw``. ``metrics`` is how
    many each row is scored by.
    """

    function: str
    name: str
    file: str
    line: int | None
    scope: str
    gates: tuple[Gate, ...]
    total: int
    selected: tuple[str, ...] = ()
    draw: Draw | None = None
    metrics: int = 0

    @property
    def may_stop(self) -> bool:
        """Whether all gates of the function stop when they are decided: any other needs all rows."""
        return bool(self.gates) and all(gate.stop_when_decided for gate in self.gates)

    def rule(self, gate: Gate) -> Rule:
        """Return what the rows of the set are to reach by a gate that stops."""
        return Rule(
            metric=gate.metric,
            bound=gate.bound,
            alpha=1.0 - (gate.confidence or _CONFIDENCE),
            scale=gate.scale,
            better=gate.better or "higher",
            score_bound=gate.score_bound,
            vacuous=gate.vacuous,
            gates=max(1, sum(each.stop_when_decided for each in self.gates)),
        )

    def row_name(self, test: str) -> str:
        """Return the part of a test's id that names its row."""
        return test.removeprefix(self.function).strip("[]") or test

    def has(self, test: str) -> bool:
        """Tell whether a test is one of the function, or was in an earlier run."""
        return test == self.function or test.startswith(f"{self.function}[")

    @property
    def confirm(self) -> int:
        """How many more answers of rows that changed its regression gates ask for."""
        return max((gate.confirm for gate in self.gates), default=0)

    def location(self, gate: Gate) -> tuple[str, int | None, str]:
        """Return file, line and name of the test of a gate, as reports have them."""
        return self.file, self.line, f"{self.scope}{self.name}[{gate.id}]"


def gate_of(*given: Any, **named: Any) -> Gate:
    """Return the gate that the arguments of a marker describe; raise ``ValueError`` saying what to write instead."""
    return gate_among(None, given, named)


def gate_among(
    listed: Sequence[Metric] | None, given: Sequence[Any], named: Mapping[str, Any], *, stops: bool = False
) -> Gate:
    """Return the gate as :func:`gate_of` does; ``listed`` are the metrics of the data set, of which it must be one.

    With ``stops`` it stops when it is decided, where it can and does not say otherwise.
    """
    unknown = sorted(named.keys() - _TAKEN)
    metrics = [*given, *(named[name] for name in ("metric",) if name in named)]
    if unknown or len(metrics) != 1 or not isinstance(metrics[0], str) or not metrics[0].strip():
        problem = f"it knows no {', '.join(unknown)}" if unknown else "it takes the name of one metric"
        msg = f"{problem}; write {_EXAMPLES}"
        raise ValueError(msg)
    alpha, confirm = _alpha(named), _confirm(named, listed)
    figures = {name: _figure(name, named[name]) for name in _FIGURES if named.get(name) is not None}
    vacuous: Vacuous = "skip" if named.get("vacuous") is None else check_vacuous(named["vacuous"])
    name, better, scale = _known(metrics[0].strip(), listed)
    stops = _stops(name, listed, named, stops=stops)
    if alpha is not None:
        return Gate(
            metric=name,
            statistic="regression",
            bound=0.0,
            better=better,
            vacuous=vacuous,
            alpha=alpha,
            confirm=confirm,
        )
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
        vacuous=vacuous,
        stop_when_decided=stops,
        scale=(scale or (0.0, 1.0)) if stops else (0.0, 1.0),
    )


def _stops(metric: str, listed: Sequence[Metric] | None, named: Mapping[str, Any], *, stops: bool) -> bool:
    """Return whether a gate stops when it is decided: as it says, else as ``stops`` if its rows are scored ahead."""
    given = named.get("stop_when_decided")
    if given is None:
        return stops and bool(listed)
    if given not in (True, False):
        msg = f"stop_when_decided={given!r} is neither True nor False"
        raise ValueError(msg)
    if given and named.get("regression"):
        msg = "a regression gate compares all rows, and takes no stop_when_decided=; write it above another function"
        raise ValueError(msg)
    if given and named.get("confidence") is None:
        msg = "stop_when_decided=True goes with the confidence= of its decision, such as 0.95"
        raise ValueError(msg)
    if given and not listed:
        example = f'@pytest.mark.rag_dataset("golden.jsonl", metrics=[{metric!r}])'
        msg = f"stop_when_decided=True needs rows that are scored ahead of their tests; write {example}"
        raise ValueError(msg)
    return bool(given)


def _alpha(named: Mapping[str, Any]) -> float | None:
    """Return the share of false alarms of a regression gate, ``None`` for another gate."""
    regression, alpha = named.get("regression"), named.get("alpha")
    if regression not in (None, True, False):
        msg = f"regression={regression!r} is neither True nor False; write {_REGRESSION}"
        raise ValueError(msg)
    if not regression and alpha is not None:
        msg = f"alpha= goes with regression=True; write {_REGRESSION}"
        raise ValueError(msg)
    if not regression:
        return None
    if others := [name for name in (*_FIGURES, "inconclusive") if named.get(name) is not None]:
        msg = f"regression=True has no bound but the baseline, and takes no {others[0]}=; write {_REGRESSION}"
        raise ValueError(msg)
    return check_confidence(_ALPHA if alpha is None else alpha, name="alpha", example=_ALPHA)


def _confirm(named: Mapping[str, Any], listed: Sequence[Metric] | None) -> int:
    """Return how many more answers confirm a drop; a bound of scores has no row that changed."""
    confirm = named.get("confirm")
    if confirm is None:
        return 0
    if type(confirm) is not int or confirm < 1:
        msg = f"confirm={confirm!r} is no whole number from 1 on; write confirm=2"
    elif not named.get("regression"):
        msg = f"confirm= goes with regression=True; write {_CONFIRM}"
    elif not listed:
        msg = f"confirm= takes rows that can be answered anew; write {_ROWS}"
    else:
        return confirm
    raise ValueError(msg)


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
    scored = {metric.name: metric for each in listed for metric in (each, *parts_of(each))}
    wanted = name if known is None or name in scored else known.name
    if wanted not in scored:
        near = get_close_matches(name, scored, 1)
        right = f"did you mean {near[0]!r}?" if near else f"write metrics=[..., {wanted!r}] there"
        msg = f"{name!r} is not scored, the marker rag_dataset lists {', '.join(scored)}: {right}"
        raise ValueError(msg)
    return wanted, scored[wanted].better, scored[wanted].scale


def parts_of(metric: Metric) -> Sequence[Metric]:
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
    baseline: Document | None = None,
    spared: Collection[str] = (),
) -> GateDecision:
    """Decide a gate by the records of the tests of its set.

    ``find`` returns the record of a test, if it left one; ``skipped`` and ``ran`` are the tests that were skipped, and
    those that ran to their end. ``spared`` are those that were not needed any more. A set that did not run whole
    decides nothing; one with unscored rows fails, and so does one in which there was nothing to check. A regression
    gate compares with the ``baseline``; without one it is skipped, and where the two are not comparable it fails. One
    that stops when it is decided is exact over a whole set, and else decided by the first rows of the drawn order.
    """
    rows, better, omitted = _rows(gate, gated, find, skipped=skipped, ran=ran, spared=spared)
    found = score_set(rows, gate.vacuous)
    decided: _Decided | None = None
    if gate.stop_when_decided and not omitted:
        scored = {test: _first(gate, find(test)) for test in gated.selected if test in ran and test not in spared}
        decided = _stopped(gate, gated, found, scored, len({*spared} & {*gated.selected}))
    elif gate.alpha is None and found.counted and not omitted:
        decided = _bounded(gate, better, found)
    elif gate.alpha is not None and baseline is not None and not omitted:
        decided = _compared(
            gate, gated, [test for test in map(find, gated.selected) if test is not None and test.id in ran], baseline
        )
    outcome: GateOutcome = "failed"
    if omitted:
        missing = f"{omitted} of {gated.total} tests of the set were skipped or not selected"
        outcome, text = "skipped", f"{missing}; a gate is over all of them"
    elif gate.alpha is not None and baseline is None:
        outcome, text = "skipped", _NO_BASELINE
    elif found.unscored and (decided is None or not gate.stop_when_decided):
        unscored = [(row.name, row.reason or "") for row in found.unscored]
        total = max(gated.total, len(rows))
        text = "\n".join(explain_unscored(gate.metric, total, unscored, hint="; a gate is over all of them"))
    elif decided is None or not found.counted:
        text = explain_vacuous(gate.metric, len(found.vacuous))
    else:
        outcome, text = decided.outcome, decided.text
    record = replace(
        _record(gate, gated, better, found), outcome=outcome, **({} if decided is None else decided.figures)
    )
    return GateDecision(record=record, text=text)


def _record(gate: Gate, gated: GatedSet, better: Direction, found: ScoreSet[ScoredRow]) -> GateRecord:
    """Return the record of a gate that is not decided."""
    return GateRecord(
        metric=gate.metric,
        statistic=gate.statistic,
        value=None,
        bound=gate.bound,
        min_score=gate.score_bound,
        better=better,
        confidence=gate.confidence,
        low=None,
        high=None,
        n=len(found.counted),
        unscored=len(found.unscored),
        total=gated.total,
        outcome="skipped",
        vacuous=len(found.vacuous),
        counts_vacuous=gate.vacuous == "count",
        inconclusive=gate.inconclusive,
        regression=None if gate.alpha is None else RegressionRecord(alpha=gate.alpha, confirm=gate.confirm),
        stop=StopRecord(seed=None if gated.draw is None else gated.draw.seed) if gate.stop_when_decided else None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Decided:
    """What the scores of a set decide: ``figures`` are the fields of the record that say it in numbers."""

    outcome: GateOutcome
    text: str
    figures: Mapping[str, Any]


def _bounded(gate: Gate, better: Direction, found: ScoreSet[ScoredRow]) -> _Decided:
    """Compare the mean or the rate of a set with the bound of its gate."""
    result = _threshold(gate, better, found)
    figures: dict[str, Any] = {"value": result.value}
    if result.interval is not None:
        ends = {"low": result.interval.low, "high": result.interval.high}
        figures |= {name: None if math.isinf(end) else end for name, end in ends.items()}
    text = "\n".join(explain_threshold(result, found.counted))
    return _Decided(outcome=result.outcome, text=text, figures=figures)


def _first(gate: Gate, found: TestRecord | None) -> ScoredRow | None:
    """Return the score that the data set gave a row: the first of the metric."""
    records = () if found is None else found.records
    return next((_row("", record) for record in records if record.metric == gate.metric), None)


def _stopped(
    gate: Gate, gated: GatedSet, found: ScoreSet[ScoredRow], scored: Mapping[str, ScoredRow | None], spared: int
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
        result = _threshold(plain, better, found)
        return _with_stop(result, stop, found, gated.total)
    if gated.draw is None:
        return None
    drawn = DrawnSet(gated.selected, gated.draw, [gated.rule(gate)])
    for test, row in scored.items():
        drawn.note(test, {} if row is None else {gate.metric: row})
    decided = drawn.gates[0]
    tests = drawn.order[: decided.after or drawn.complete]
    rows = [scored[test] or ScoredRow(name="", score=None) for test in tests]
    first = score_set(
        [replace(row, name=gated.row_name(test)) for test, row in zip(tests, rows, strict=True)], gate.vacuous
    )
    if not first.counted or (decided.outcome is None and drawn.missing is None):
        return None
    result = _threshold(plain, better, first)
    low, high = decided.rule.ends(decided.units, gated.total)
    confidence = 1.0 - decided.rule.alpha
    interval = Interval(estimate=result.value, low=low, high=high, confidence=confidence, n=result.n)
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


def _compared(gate: Gate, gated: GatedSet, tests: Sequence[TestRecord], baseline: Document) -> _Decided:
    """Compare a set with the baseline.

    The regression gates of one function share ``alpha``, as metrics of one table do. Gates of other functions do not:
    what a gate decides must not depend on the files and shards that run beside it. A drop that further answers can
    confirm is one only if the same test shows it of the means of all answers too: so these add no false alarm.
    """
    try:
        own = _pairs(gate, gated, tests, baseline)
    except ValueError as error:
        return _Decided(outcome="failed", text=str(error), figures={"n": 0})
    family = {gate.id: own}
    for other in gated.gates:
        if other.alpha is not None and other.id not in family:
            with suppress(ValueError):  # one that cannot be compared raises no false alarm
                family[other.id] = _pairs(other, gated, tests, baseline)
    drop = find_drops(TableComparison(metrics=family), alpha=gate.alpha or _ALPHA)[gate.id]
    confirmation = None
    if drop.shown and gate.confirm:
        # Beside the first answers of the other gates: what clears one of them is no word on this one.
        again = _pairs(gate, gated, [_averaged(gate, test, own.changed) for test in tests], baseline)
        confirmation = _confirmation(gate, tests, drop, own, again)
        own, drop = again, find_drops(TableComparison(metrics=family | {gate.id: again}), alpha=drop.alpha)[gate.id]
    regression = _regression(own, drop, confirm=gate.confirm, confirmation=confirmation)
    lines = str(TableComparison(metrics={gate.metric: own}, drops={gate.metric: drop})).splitlines()
    if confirmation is not None:
        # Below the figures and what they show.
        lines.insert(2, f"  {confirmation_text(regression)}")
    return _Decided(
        outcome="failed" if drop.shown else "passed",
        text="\n".join(lines),
        figures={
            "value": None if own.difference is None else own.difference.interval.estimate,
            "n": drop.n,
            "vacuous": len({*own.vacuous_here, *own.vacuous_there}),
            "regression": regression,
        },
    )


def _confirmation(
    gate: Gate, tests: Sequence[TestRecord], drop: Drop, first: MetricComparison, again: MetricComparison
) -> ConfirmationRecord:
    """Return what further answers made of a drop; the comparisons are those by the first answers and by all."""
    changed = first.changed
    before = {row.id: row.change for row in first.rows if row.id in changed}
    after = [row.change for row in again.rows if row.id in before]
    sign = 1.0 if first.better == "lower" else -1.0
    missing = (it for test in tests for it in test.again if it.metric == gate.metric and not _counts(it, gate))
    return ConfirmationRecord(
        answers=gate.confirm,
        rows=len(before),
        confirmed=len(before.keys() & {key for test in tests for key in _further(gate, test)}),
        first_drop=sign * fmean(before.values()),
        drop=sign * fmean(after),
        p=drop.p,
        adjusted_p=drop.adjusted_p,
        reason=next((it.reason or NOTHING_TO_CHECK for it in missing), None),
    )


def _averaged(gate: Gate, test: TestRecord, changed: Collection[str]) -> TestRecord:
    """Return a test whose row, if it changed, counts with the mean of its answers, if it has all of them."""
    further = {key: scores for key, scores in _further(gate, test).items() if key in changed}
    records = (
        replace(it, score=fmean([it.score, *further[key_of(it.sample)]]))
        if it.metric == gate.metric and it.score is not None and key_of(it.sample) in further
        else it
        for it in test.records
    )
    return replace(test, records=tuple(records))


def _further(gate: Gate, test: TestRecord) -> dict[str, list[float]]:
    """Return the scores of further answers by the key of their sample, where all that were asked for have one."""
    found: dict[str, list[float]] = {}
    for record in test.again:
        if record.metric == gate.metric and record.score is not None and _counts(record, gate):
            found.setdefault(key_of(record.sample), []).append(record.score)
    return {key: scores[: gate.confirm] for key, scores in found.items() if len(scores) >= gate.confirm}


def _counts(record: Record, gate: Gate) -> bool:
    return standing(record, gate.vacuous) == "counted"


def rows_to_confirm(
    gated: GatedSet, find: Callable[[str], TestRecord | None], baseline: Document
) -> dict[str, set[str]]:
    """Return the tests whose rows are to be answered again, each with the metrics that are to be scored.

    They are the rows that changed, in either direction, of every gate with a ``confirm`` that would fail. What gates
    over a part of their set would do is not known: of these they are all rows that changed.
    """
    tests = [test for test in map(find, gated.selected) if test is not None]
    found: dict[str, set[str]] = {}
    for gate in (gate for gate in gated.gates if gate.confirm):
        if gated.total == len(gated.selected):
            decision = evaluate_gate(gate, gated, find, skipped=(), ran=gated.selected, baseline=baseline)
            regression = decision.record.regression
            # One that fails for want of a score or of a pair cannot be confirmed.
            if regression is None or regression.confirmation is None or decision.record.unscored:
                continue
        try:
            pairs = _pairs(gate, gated, tests, baseline)
        except ValueError:
            continue
        changed = pairs.changed
        for test in tests:
            if any(it.metric == gate.metric and key_of(it.sample) in changed for it in test.records):
                found.setdefault(test.id, set()).add(gate.metric)
    return found


def _regression(
    own: MetricComparison, drop: Drop, *, confirm: int, confirmation: ConfirmationRecord | None
) -> RegressionRecord:
    found = own.difference
    return RegressionRecord(
        alpha=drop.alpha,
        before=None if found is None else found.before,
        after=None if found is None else found.after,
        changed=drop.changed,
        p=drop.p,
        adjusted_p=drop.adjusted_p,
        smallest=drop.smallest,
        new=len(own.only_here),
        gone=len(own.only_there),
        confirm=confirm,
        confirmation=confirmation,
    )


def _pairs(gate: Gate, gated: GatedSet, tests: Sequence[TestRecord], baseline: Document) -> MetricComparison:
    """Return the comparison of a set with the same set in the baseline; raise ``ValueError`` if there is none.

    A sample may have other scores of the metric in other tests. Only where the baseline does not know the function, as
    after a move, these count.
    """
    known = [test for test in baseline.tests if gated.has(test.id)]
    here, there = _column(gate, tests), _column(gate, known or baseline.tests)
    if here is None or there is None:
        msg = f"{printable(gate.metric)}: the baseline has no scores of it; write it anew with --rag-json"
        raise ValueError(msg)
    compared = compare_columns(replace(here, scale=scale_of(gate.metric)), there, vacuous=gate.vacuous)
    if compared.difference is None:
        hint = "" if compared.vacuous_here or compared.vacuous_there else f"\n{NO_PAIR}"
        msg = f"{compared}{hint}"
        raise ValueError(msg)
    return compared


def _column(gate: Gate, tests: Iterable[TestRecord]) -> Column | None:
    records = (record for test in tests for record in test.records if record.metric == gate.metric)
    return columns_of(records).get(gate.metric)


def _rows(
    gate: Gate,
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
    return ScoredRow(name=name, score=record.score, reason=reason, vacuous=record.vacuous, cluster=cluster)


def _threshold(gate: Gate, better: Direction, found: ScoreSet[ScoredRow]) -> ThresholdResult:
    scores = found.scores
    clusters = whole_clusters(row.cluster for row in found.counted)
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


def evaluate_merged_gate(
    row: TestRecord, tests: Sequence[TestRecord], baseline: Document | None = None
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
    decision = evaluate_gate(_gate_again(gate), gated, members.get, skipped=(), ran=members.keys(), baseline=baseline)
    if decision.record.outcome == "skipped":
        return None
    passed = decision.record.passes
    return replace(
        row, gate=decision.record, outcome="passed" if passed else "failed", message=None if passed else decision.text
    )


def _gate_again(record: GateRecord) -> Gate:
    """Return the gate of a record of one that was skipped."""
    return Gate(
        metric=record.metric,
        statistic=record.statistic,
        bound=record.bound,
        score_bound=record.min_score,
        # The direction was a guess unless a record had it; the records of all tests have it.
        better=record.better if record.statistic == "rate" else None,
        confidence=record.confidence,
        inconclusive=record.inconclusive,
        vacuous="count" if record.counts_vacuous else "skip",
        alpha=None if record.regression is None else record.regression.alpha,
        confirm=0 if record.regression is None else record.regression.confirm,
        stop_when_decided=record.stop is not None,
    )
