"""Gates: thresholds over a whole set, as numbers, as an interval on a line, and in words."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ragmetrics.explain.phrases import bound_text, counted, score_text
from pytest_ragmetrics.records import GateRecord
from pytest_ragmetrics.report.page.distribution import WIDTH, mean_text
from pytest_ragmetrics.report.page.scale import Scale

#: What an outcome means for the reader.
_TOLD = {
    "passed": "passed",
    "failed": "failed",
    "inconclusive": "inconclusive: too few scores to tell",
    "skipped": "skipped",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class IntervalView:
    """Places on a line ``WIDTH`` long: the value, its interval and the bound, with what the ends of the line are."""

    low: float | None
    high: float | None
    value: float
    bound: float
    ends: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class GateView:
    """A gate as the page tells it; ``text`` is all of it in one sentence."""

    metric: str
    asked: str
    value: str
    between: str
    needs: str
    outcome: str
    told: str
    n: int
    unscored: int
    interval: IntervalView | None
    text: str


def tell(row: GateRecord) -> GateView:
    """Return a gate for the page.

    >>> gate = tell({"metric": "faithfulness", "statistic": "mean", "value": 0.83, "bound": 0.8, "min_score": None,
    ...     "better": "higher", "confidence": 0.95, "low": 0.78, "high": 0.88, "total": 41, "n": 40, "unscored": 1,
    ...     "outcome": "inconclusive"})
    >>> gate.text
    'mean faithfulness 0.830, between 0.780 and 0.880 (95%), needs ≥ 0.80: 40 scores, 1 unscored'
    """
    asked = _asked(row)
    value = "\u2013" if row.value is None else mean_text(row.value)
    low, high, confidence = row.low, row.high, row.confidence
    between = ""
    if low is not None and high is not None:
        share = f" ({100 * confidence:g}%)" if confidence else ""
        between = f"{mean_text(low)} and {mean_text(high)}{share}"
    falling = row.statistic == "mean" and row.better == "lower"
    needs = f"{'≤' if falling else '≥'} {bound_text(row.bound)}"
    return GateView(
        metric=row.metric,
        asked=asked,
        value=value,
        between=between,
        needs=needs,
        outcome=row.outcome,
        told=_TOLD[row.outcome],
        n=row.n,
        unscored=row.unscored,
        interval=_interval(row),
        text="".join(
            [
                f"{asked} {row.metric} {value}",
                f", between {between}" if between else "",
                f", needs {needs}: {counted(row.n, 'score')}, {row.unscored:,} unscored",
                f", of {counted(row.total, 'test')}" if row.n + row.unscored < row.total else "",
            ]
        ),
    )


def _asked(row: GateRecord) -> str:
    if row.statistic == "mean" or row.min_score is None:
        return row.statistic
    return f"share {'≤' if row.better == 'lower' else '≥'} {score_text(row.min_score)} of"


def _interval(row: GateRecord) -> IntervalView | None:
    if row.value is None:
        return None
    known = (row.low, row.high, row.value, row.bound)
    scale = Scale.around(number for number in known if number is not None)

    def place(number: float) -> float:
        return round(scale.place(number, WIDTH), 2)

    return IntervalView(
        low=None if row.low is None else place(row.low),
        high=None if row.high is None else place(row.high),
        value=place(row.value),
        bound=place(row.bound),
        ends=(scale.low, scale.high),
    )
