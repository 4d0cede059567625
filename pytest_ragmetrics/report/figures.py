"""Gates and metrics of a run as figures with a picture: value, interval, bound and the former value on one axis."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pytest_ragmetrics.runs.compare import MetricChange, RunComparison, kind_of
from pytest_ragmetrics.runs.records import (
    Document,
    GateOutcome,
    GateRecord,
    Record,
    RecordOutcome,
    TestOutcome,
    Threshold,
)
from pytest_ragmetrics.runs.wording.comparisons import remedy
from pytest_ragmetrics.runs.wording.figures import agreeing, bound_text, counted, figure_text, score_text
from pytest_ragmetrics.runs.wording.runs import MetricTally, Status, by_metric, gate_operator, shown_gate, tallies
from pytest_ragmetrics.stats.scores import common_scale, score_set

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
        """Return the axis that includes these values; it does not go below 0, or above 1, where they do not."""
        known = [*values] or [0.0, 1.0]
        low, high = min(known), max(known)
        span = high - low or 0.1
        if not math.isfinite(span):
            return cls(low=low, high=high)
        power = 10.0 ** math.floor(math.log10(span / _STEPS))
        step = next(times * power for times in (1, 2, 5, 10) if times * power * _STEPS >= span)
        ends = math.floor(low / step - 0.1) * step, math.ceil(high / step + 0.1) * step
        if low >= 0:
            ends = max(0.0, ends[0]), min(1.0, ends[1]) if high <= 1 else ends[1]
        return cls(low=float(f"{ends[0]:.12g}"), high=float(f"{ends[1]:.12g}"))

    @classmethod
    def whole(cls, values: Iterable[float | None], *, bounded: bool = True) -> Axis:
        """Return the axis from 0 to 1, or between whole numbers around what is outside of that.

        On a scale that is not ``bounded`` it goes from 0 as far as the values.
        """
        known = [value for value in values if value is not None]
        if not bounded:
            return cls.around([0.0, *known])
        return cls(low=min([0, *map(math.floor, known)]), high=max([1, *map(math.ceil, known)]))

    def share(self, value: float) -> float:
        """Return where a value is on the axis, as a share of its length."""
        # Halves, because the distance of two large numbers may be infinite.
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def place(self, value: float, length: int = 100, digits: int = 2) -> float:
        """Return where a value is on the axis, drawn in this length."""
        return round(length * self.share(value), digits)

    def ends(self, *, share: bool, unit: str = "") -> tuple[str, str]:
        """Return both ends as texts."""
        low, high = (bound_text(end, share=share, unit=unit).replace("-", MINUS) for end in (self.low, self.high))
        return low, high


def value_text(value: float, bound: float | None = None, *, share: bool, unit: str = "") -> str:
    r"""Return a mean with three decimals, a share in per cent with one, or as many as show on which side of its bound.

    >>> value_text(0.8996, 0.9, share=True), value_text(0.5, share=True), value_text(0.79996, 0.8, share=False)
    ('89.96\xa0%', '50.0\xa0%', '0.79996')
    """
    if share:
        return f"{score_text(value, bound, least=1, factor=100.0)}\u00a0%"
    return score_text(value, bound, least=3, unit=unit)


def change_text(change: float, *, share: bool, points: str = " points", unit: str = "") -> str:
    """Return a signed change, that of a share in points.

    >>> change_text(0.0894, share=True), change_text(0.066, share=False)
    ('+8.9 points', '+0.07')
    """
    text = f"{abs(change) * 100:.1f}" if share else figure_text(abs(change), unit, decimals=2)
    if not re.search("[1-9]", text):
        return f"\u00b10{points if share else ''}"
    return f"{MINUS if change < 0 else '+'}{text}{points if share else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateView:
    """A gate and the same one ``before``, in the baseline.

    ``anchor`` is the deep link of its test, ``where`` tells gates of one title apart.
    """

    gate: GateRecord
    before: GateRecord | None = None
    anchor: str = ""
    where: str = ""

    @property
    def shown(self) -> GateRecord:
        """It with the figures that are shown."""
        return shown_gate(self.gate)

    @property
    def is_bad(self) -> bool:
        """Whether its test does not pass."""
        return not self.gate.passes and self.gate.outcome != "skipped"

    @property
    def newly(self) -> bool:
        """Whether it held before and does not now."""
        return self.is_bad and self.before is not None and self.before.passes

    @property
    def former(self) -> float | None:
        """Its value before; a regression is a comparison itself."""
        return None if self.before is None or self.gate.regression is not None else shown_gate(self.before).value

    @property
    def value(self) -> str:
        """Its value."""
        gate, found = self.shown, self.gate.regression
        if gate.value is None or (found and (found.before is None or found.after is None)):
            return NO_VALUE
        if found is None:
            return value_text(gate.value, gate.bound, share=gate.statistic == "rate", unit=gate.unit)
        change = figure_text(gate.value, gate.unit, sign="+").replace("-", MINUS)
        before, after = (figure_text(mean or 0.0, gate.unit) for mean in (found.before, found.after))
        return f"{change} ({before} \u2192 {after})"

    @property
    def change(self) -> str:
        """How its value changed."""
        gate = self.shown
        if gate.value is None or self.former is None:
            return ""
        return change_text(gate.value - self.former, share=gate.statistic == "rate", unit=gate.unit)

    @property
    def axis(self) -> Axis:
        """The axis of its picture."""
        gate = self.shown
        return Axis.around(n for n in (gate.low, gate.high, gate.value, self.former, gate.bound) if n is not None)


def gate_open(gate: GateRecord) -> str:
    """Return what would settle an inconclusive gate, and why one fails that is on the good side of its bound."""
    if gate.outcome == "inconclusive":
        more = "more rows" if gate.more is None else counted(gate.more, "more row")
        return remedy(gate.regression) if gate.regression else f"{more} would settle it"
    if gate.outcome == "failed" and gate.unscored and gate.regression is None:
        falling = gate_operator(gate) == "<="
        end = gate.value if gate.confidence is None else gate.high if falling else gate.low
        if end is not None and (end <= gate.bound if falling else end >= gate.bound):
            return f"{gate.unscored:,} of its rows {agreeing(gate.unscored, 'has')} no score"
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """A histogram, and the same as a sentence, with the thresholds and the mean.

    ``bins`` divide the axis equally; each counts the scores that fell short and those that did not.
    """

    axis: Axis
    bins: tuple[tuple[int, int], ...]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricView:
    """A metric over all tests; ``change`` is its mean against that of the baseline, "" where it is the same.

    ``tests`` counts those with a score that is "failed", "unscored" or "vacuous": a test may hold several.
    """

    tally: MetricTally
    tests: Mapping[str, int]
    thresholds: tuple[Threshold, ...]
    lower: bool
    change: str
    worst: float | None
    distribution: Distribution | None


def build_metric_views(document: Document, comparison: RunComparison | None = None) -> tuple[MetricView, ...]:
    """Return each metric, those that fell short first."""
    changes = {change.metric: change for change in comparison.metrics} if comparison else {}
    groups = by_metric(record for test in document.tests for record in test.records)
    tests: Counter[tuple[str, str]] = Counter()
    for test in document.tests:
        states = {(record.metric, record.outcome) for record in test.records}
        tests.update(states | {(record.metric, "vacuous") for record in test.records if record.vacuous})
    views = [_metric_view(it, groups[it.metric], changes.get(it.metric), tests) for it in tallies(document)]
    return tuple(sorted(views, key=lambda view: (-view.tally.failing, -view.tally.unscored, view.tally.metric)))


def _metric_view(
    totals: MetricTally, records: Sequence[Record], change: MetricChange | None, tests: Mapping[tuple[str, str], int]
) -> MetricView:
    counted_records = score_set(records).counted
    scores = [(r.score, r.outcome == "failed") for r in counted_records if r.score is not None]
    bounded = common_scale(counted_records) is not None
    thresholds = {(t.bound, t.operator): t for record in records if (t := record.threshold)}
    lower = records[0].better == "lower"
    shown = ""
    kind = kind_of(change.before, change.after, records[0].better, totals.unit) if change else "same"
    if change and change.change and kind != "same" and (totals.unit or abs(change.change) >= _SMALLEST_CHANGE):
        shown = f"{figure_text(abs(change.change), totals.unit)} {kind} over {counted(change.pairs, 'score')}"
    return MetricView(
        tally=totals,
        tests={state: tests[totals.metric, state] for state in ("failed", "unscored", "vacuous")},
        thresholds=tuple(threshold for _, threshold in sorted(thresholds.items())),
        lower=lower,
        change=shown,
        worst=(max if lower else min)((score for score, _ in scores), default=None),
        distribution=build_distribution(scores, {bound for bound, _ in thresholds}, totals.unit, bounded=bounded),
    )


def build_distribution(
    scores: Sequence[tuple[float, bool]], bounds: Iterable[float], unit: str = "", *, bounded: bool = True
) -> Distribution | None:
    """Return the histogram of scores of one unit, each with whether it fell short; ``None`` without any.

    >>> picture = build_distribution([(0.25, True), (1.0, False)], [0.8])
    >>> picture.text
    '2 scores between 0.25 and 1.00, mean 0.625, threshold 0.80, 1 fell short'
    >>> picture.bins[5], picture.bins[19]
    ((1, 0), (0, 1))
    """
    if not scores:
        return None
    values = [score for score, _ in scores]
    limits = sorted(set(bounds))
    axis = Axis.whole([*values, *limits], bounded=bounded)
    bins = [[0, 0] for _ in range(_BINS)]
    for score, short in scores:
        # 0.29 * 100 is 28.999...: a score on the edge belongs to the bin above.
        bins[min(int(axis.share(score) * _BINS + 1e-9), _BINS - 1)][not short] += 1
    shown = partial(score_text, unit=unit)
    between = f" between {shown(min(values))} and {shown(max(values))}," if len(values) > 1 else ""
    needed = " and ".join(bound_text(limit, unit=unit) for limit in limits)
    mean = figure_text(math.fsum(values) / len(values), unit)
    text = f"{counted(len(values), 'score')}{between} mean {mean}{f', threshold {needed}' if limits else ''}"
    text += f", {sum(short for _, short in scores):,} fell short"
    return Distribution(axis=axis, bins=tuple((failing, passing) for failing, passing in bins), text=text)
