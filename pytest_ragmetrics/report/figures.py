"""Gates and metrics of a run as figures with a picture: value, interval, bound and the former value on one axis."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_ragmetrics.runs.compare import MetricChange, RunComparison
from pytest_ragmetrics.runs.records import (
    Document,
    GateOutcome,
    GateRecord,
    Record,
    RecordOutcome,
    RegressionRecord,
    TestOutcome,
    Threshold,
)
from pytest_ragmetrics.runs.wording.comparisons import ANEW
from pytest_ragmetrics.runs.wording.figures import agreeing, bound_text, counted, score_text
from pytest_ragmetrics.runs.wording.runs import (
    MetricTally,
    Status,
    by_metric,
    gate_checked,
    gate_operator,
    gate_title,
    regression_rows,
    regression_text,
    stop_text,
    tallies,
)
from pytest_ragmetrics.stats.scores import score_set

NO_VALUE = "\u2013"
MINUS = "\u2212"
#: The signs of what became of a score, a test or a gate; never a colour alone.
SIGNS: Mapping[RecordOutcome | TestOutcome | GateOutcome | Status | Literal[""], str] = {
    "failed": "\u2717",
    "error": "!",
    "unscored": "?",
    "inconclusive": "?",
    "xpassed": "!",
    "xfailed": "\u2717",
    "passed": "\u2713",
    "skipped": NO_VALUE,
    "measured": "",
    "": "",
}
_BINS = 20
#: A mean that changed by less is shown with the same three decimals.
_SMALLEST_CHANGE = 0.0005
#: An axis has at most so many steps, and no end of it is nearer to a value than this share of its length.
_STEPS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    r"""The axis of a picture, which spans where the values are; its ends are round numbers.

    >>> axis = Axis.around([0.617, 0.711, 0.755])
    >>> axis.low, axis.high, axis.place(0.7), axis.ends(share=True)
    (0.6, 0.8, 50.0, ('60\xa0%', '80\xa0%'))
    >>> Axis.whole([0.2, None]), Axis.whole([-0.5, 3.2])
    (Axis(low=0, high=1), Axis(low=-1, high=4))
    """

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> Axis:
        """Return the axis that includes these values; inside of 0 and 1 it does not go beyond them."""
        known = [*values] or [0.0, 1.0]
        low, high = min(known), max(known)
        span = high - low or 0.1
        if not math.isfinite(span):
            return cls(low=low, high=high)
        power = 10.0 ** math.floor(math.log10(span / _STEPS))
        step = next(times * power for times in (1, 2, 5, 10) if times * power * _STEPS >= span)
        ends = math.floor(low / step - 0.1) * step, math.ceil(high / step + 0.1) * step
        if low >= 0 and high <= 1:
            ends = max(0.0, ends[0]), min(1.0, ends[1])
        return cls(low=float(f"{ends[0]:.12g}"), high=float(f"{ends[1]:.12g}"))

    @classmethod
    def whole(cls, values: Iterable[float | None]) -> Axis:
        """Return the axis from 0 to 1, or between whole numbers around what is outside of that."""
        known = [value for value in values if value is not None]
        return cls(low=min([0, *map(math.floor, known)]), high=max([1, *map(math.ceil, known)]))

    def share(self, value: float) -> float:
        """Return where a value is on the axis, as a share of its length."""
        # Halves, because the distance of two large numbers may be infinite.
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def place(self, value: float, length: int = 100, digits: int = 2) -> float:
        """Return where a value is on the axis, drawn in this length."""
        return round(length * self.share(value), digits)

    def ends(self, *, share: bool) -> tuple[str, str]:
        """Return both ends as texts."""
        return number_text(self.low, share=share), number_text(self.high, share=share)


def number_text(value: float, *, share: bool) -> str:
    r"""Return an end of an axis or a bound as its author wrote it, a share in per cent.

    >>> number_text(0.7, share=True), number_text(0.7, share=False), number_text(0.875, share=True)
    ('70\xa0%', '0.70', '87.5\xa0%')
    """
    return f"{100 * value + 0.0:.12g}\u00a0%" if share else bound_text(value)


def value_text(value: float, bound: float | None = None, *, share: bool) -> str:
    r"""Return a mean with three decimals, a share in per cent with one, or as many as show on which side of its bound.

    >>> value_text(0.8996, 0.9, share=True), value_text(0.5, share=True), value_text(0.79996, 0.8, share=False)
    ('89.96\xa0%', '50.0\xa0%', '0.79996')
    """
    factor, least = (100.0, 1) if share else (1.0, 3)
    limits = [limit for limit in (0.0, 1.0, bound) if limit is not None]
    for decimals in range(least, 16):
        text = f"{factor * value + 0.0:.{decimals}f}"
        shown = float(text) / factor
        if all((shown > limit, shown < limit) == (value > limit, value < limit) for limit in limits):
            break
    return f"{text}\u00a0%" if share else text


def change_text(change: float, *, share: bool, unit: str = " points") -> str:
    """Return a signed change, that of a share in points.

    >>> change_text(0.0894, share=True), change_text(0.066, share=False)
    ('+8.9 points', '+0.07')
    """
    text = f"{abs(change) * 100:.1f}" if share else f"{abs(change):.2f}"
    sign = "\u00b1" if float(text) == 0 else MINUS if change < 0 else "+"
    text = "0" if float(text) == 0 else text
    return f"{sign}{text}{unit if share else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateView:
    """A gate: its ``title`` with the ``notes`` beside it, its value with the change, and all of it as a ``text``.

    ``before`` is its former value, where it is ``compared`` with one, ``newly`` tells whether it held then and does not
    now. ``open`` says what would decide it. On the overview ``anchor`` is the deep link of its test, ``where`` tells
    gates of one title apart.
    """

    gate: GateRecord
    title: str
    value: str
    change: str
    before: float | None
    compared: bool
    newly: bool
    notes: tuple[str, ...]
    open: str
    axis: Axis
    text: str
    anchor: str = ""
    where: str = ""


def build_gate_view(gate: GateRecord, before: GateRecord | None = None) -> GateView:
    """Return a gate in words and on an axis; ``before`` is the same gate in the baseline."""
    share, found = gate.statistic == "rate", gate.regression
    former = None if before is None or found is not None else before.value
    value = gate.value
    if found is not None:
        shown, needs = _change_of(gate, found), f"no proven drop (alpha {found.alpha:g})"
    else:
        shown = NO_VALUE if value is None else value_text(value, gate.bound, share=share)
        needs = f"{'≤' if gate_operator(gate) == '<=' else '≥'} {number_text(gate.bound, share=share)}"
    known = [n for n in (gate.low, gate.high, value, former, gate.bound) if n is not None]
    return GateView(
        gate=gate,
        title=gate_title(gate),
        value=shown,
        change="" if value is None or former is None else change_text(value - former, share=share),
        before=former,
        compared=before is not None,
        newly=before is not None and before.passes and not gate.passes and gate.outcome != "skipped",
        notes=tuple(_notes(gate)),
        open=_open(gate),
        axis=Axis.around(known),
        text=_text(gate, shown, needs),
    )


def _change_of(gate: GateRecord, found: RegressionRecord) -> str:
    if gate.value is None or found.before is None or found.after is None:
        return NO_VALUE
    change = f"{gate.value + 0.0:+.3f}".replace("-", MINUS)
    return f"{change} ({found.before:.3f} \u2192 {found.after:.3f})"


def _notes(gate: GateRecord) -> Iterator[str]:
    """Yield how many scores the gate is over, and what is peculiar about that."""
    if gate.outcome == "skipped":
        yield f"skipped, {gate.n:,} of {counted(gate.total, 'test')}"
        return
    if gate.regression is not None:
        yield counted(gate.n, "pair")
        yield from ([f"{gate.unscored:,} unscored"] if gate.unscored else [])
        yield from regression_rows(gate)
    else:
        scored = counted(gate.n, "score") if not gate.unscored else f"{gate.n:,} of {gate.n + gate.unscored:,} scored"
        yield scored if not gate.vacuous or gate.counts_vacuous or gate.unscored else gate_checked(gate)
        yield from filter(None, [gate_checked(gate)] if gate.counts_vacuous or (gate.vacuous and gate.unscored) else [])
    yield from filter(None, (regression_text(gate), stop_text(gate)))
    if gate.n + gate.unscored + gate.vacuous < gate.total and not (gate.stop and gate.stop.decided_after):
        yield f"of {counted(gate.total, 'test')}"


def _open(gate: GateRecord) -> str:
    """Return what would settle an inconclusive gate, and why one fails that is on the good side of its bound."""
    if gate.outcome == "inconclusive":
        more = "more rows" if gate.more is None else counted(gate.more, "more row")
        return ANEW if gate.regression else f"{more} would settle it"
    if gate.outcome == "failed" and gate.unscored and gate.regression is None and _reaches(gate):
        return f"{gate.unscored:,} of its rows {agreeing(gate.unscored, 'has')} no score"
    return ""


def _reaches(gate: GateRecord) -> bool:
    """Tell whether the scores alone would hold the gate."""
    falling = gate_operator(gate) == "<="
    end = gate.value if gate.confidence is None else gate.high if falling else gate.low
    return end is not None and (end <= gate.bound if falling else end >= gate.bound)


def _text(gate: GateRecord, value: str, needs: str) -> str:
    between = ""
    share = gate.statistic == "rate"
    if gate.low is not None and gate.high is not None:
        ends = (value_text(end, gate.bound, share=share) for end in (gate.low, gate.high))
        between = f", between {' and '.join(ends)}" + (f" ({100 * gate.confidence:g} %)" if gate.confidence else "")
    return f"{gate_title(gate)} {value}{between}, needs {needs}: {', '.join(_notes(gate))}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """A histogram with the thresholds and the mean, and the same as a sentence.

    ``bins`` divide the axis equally; each counts the scores that fell short and those that did not.
    """

    axis: Axis
    bins: tuple[tuple[int, int], ...]
    thresholds: tuple[float, ...]
    mean: float
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricView:
    """A metric over all tests; ``change`` is its mean against that of the baseline, and in a word.

    ``tests`` counts those with a score that is "failed", "unscored" or "vacuous": a test may hold several.
    """

    tally: MetricTally
    tests: Mapping[str, int]
    thresholds: tuple[Threshold, ...]
    lower: bool
    change: tuple[str, str] | None
    worst: float | None
    distribution: Distribution | None


def build_metric_views(document: Document, comparison: RunComparison | None = None) -> tuple[MetricView, ...]:
    """Return each metric, those that fell short first."""
    changes = {change.metric: change for change in comparison.metrics} if comparison else {}
    groups = by_metric(record for test in document.tests for record in test.records)
    tests = Counter(it for test in document.tests for it in {pair for made in test.records for pair in _states(made)})
    views = [_metric_view(it, groups[it.metric], changes.get(it.metric), tests) for it in tallies(document)]
    return tuple(sorted(views, key=lambda view: (-view.tally.failing, -view.tally.unscored, view.tally.metric)))


def _states(record: Record) -> Iterator[tuple[str, str]]:
    yield record.metric, record.outcome
    if record.vacuous:
        yield record.metric, "vacuous"


def _metric_view(
    totals: MetricTally, records: Sequence[Record], change: MetricChange | None, tests: Mapping[tuple[str, str], int]
) -> MetricView:
    scores = [(r.score, r.outcome == "failed") for r in score_set(records).counted if r.score is not None]
    thresholds = {(t.bound, t.operator): t for record in records if (t := record.threshold)}
    lower = records[0].better == "lower"
    return MetricView(
        tally=totals,
        tests={state: tests.get((totals.metric, state), 0) for state in ("failed", "unscored", "vacuous")},
        thresholds=tuple(threshold for _, threshold in sorted(thresholds.items())),
        lower=lower,
        change=_mean_change(change) if change else None,
        worst=(max if lower else min)((score for score, _ in scores), default=None),
        distribution=build_distribution(scores, {bound for bound, _ in thresholds}),
    )


def _mean_change(change: MetricChange) -> tuple[str, str] | None:
    if change.change is None or abs(change.change) < _SMALLEST_CHANGE:
        return None
    kind = "better" if change.change > 0 else "worse"
    return f"{mean_text(abs(change.change))} {kind} over {counted(change.pairs, 'score')}", kind


def mean_text(mean: float) -> str:
    """Return a mean with three decimals, as the terminal shows it."""
    return f"{mean + 0.0:.3f}"


def build_distribution(scores: Sequence[tuple[float, bool]], bounds: Iterable[float]) -> Distribution | None:
    """Return the histogram of scores, each with whether it fell short; ``None`` without any.

    >>> picture = build_distribution([(0.25, True), (1.0, False)], [0.8])
    >>> picture.text
    '2 scores between 0.25 and 1.00, mean 0.625, threshold 0.80, 1 fell short'
    >>> picture.bins[5], picture.bins[19], picture.thresholds, picture.mean
    ((1, 0), (0, 1), (0.8,), 0.625)
    """
    if not scores:
        return None
    values = [score for score, _ in scores]
    limits = sorted(set(bounds))
    axis = Axis.whole([*values, *limits])
    mean = math.fsum(values) / len(values)
    bins = [[0, 0] for _ in range(_BINS)]
    for score, short in scores:
        # 0.29 * 100 is 28.999...: a score on the edge belongs to the bin above.
        bins[min(int(axis.share(score) * _BINS + 1e-9), _BINS - 1)][not short] += 1
    number = sum(short for _, short in scores)
    between = f"between {score_text(min(values))} and {score_text(max(values))}, " if len(values) > 1 else ""
    threshold = f", threshold {' and '.join(map(bound_text, limits))}" if limits else ""
    return Distribution(
        axis=axis,
        bins=tuple((failing, passing) for failing, passing in bins),
        thresholds=tuple(limits),
        mean=mean,
        text=f"{counted(len(values), 'score')} {between}mean {mean_text(mean)}{threshold}, {number:,} fell short",
    )
