"""Each metric in a line: how its scores lie, how many fell short, and how its mean stands to the baseline's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ragmetrics.comparison import MetricChange, RunComparison
from pytest_ragmetrics.explain.phrases import counted, score_text, threshold_text
from pytest_ragmetrics.explain.runs import by_metric, tally
from pytest_ragmetrics.records import Record, RecordOutcome
from pytest_ragmetrics.report.page.distribution import Distribution, distribute, mean_text
from pytest_ragmetrics.report.page.entries import TestView

_NONE = "\u2013"
#: A mean that changed by less is shown with the same three decimals.
_SMALLEST = 0.0005


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricLine:
    """A metric over all tests; counts come with the anchor of the first test they count.

    ``change`` is the mean against the baseline's, and in one word whether that is better or worse.
    """

    name: str
    needs: tuple[str, ...]
    lower: bool
    number: int
    mean: str
    change: tuple[str, str] | None
    worst: str
    failing: int
    first_failing: str | None
    unscored: int
    first_unscored: str | None
    distribution: Distribution | None


def metric_lines(
    records: Sequence[Record], entries: Sequence[TestView], comparison: RunComparison | None = None
) -> tuple[MetricLine, ...]:
    """Return a line for each metric, those that fell short first."""
    changes = {change.metric: change for change in comparison.metrics} if comparison else {}
    firsts = _firsts(entries)
    lines = [_metric_line(name, group, firsts, changes.get(name)) for name, group in by_metric(records).items()]
    return tuple(sorted(lines, key=lambda line: (-line.failing, -line.unscored, line.name)))


def _firsts(entries: Sequence[TestView]) -> dict[tuple[str, RecordOutcome], str]:
    """Return the anchor of the first test in which a metric came out so."""
    firsts: dict[tuple[str, RecordOutcome], str] = {}
    for entry in entries:
        for chip in entry.chips:
            firsts.setdefault((chip.metric, chip.outcome), entry.anchor)
    return firsts


def _metric_line(
    name: str,
    records: Sequence[Record],
    firsts: dict[tuple[str, RecordOutcome], str],
    change: MetricChange | None,
) -> MetricLine:
    scores = [(r.score, r.outcome == "failed") for r in records if r.score is not None]
    told = tally(name, records)
    thresholds = sorted({(t.bound, t.operator): t for r in records if (t := r.threshold)}.items())
    lower = records[0].better == "lower"
    return MetricLine(
        name=name,
        needs=tuple(threshold_text(threshold) for _, threshold in thresholds),
        lower=lower,
        number=told.n,
        mean=_NONE if told.mean is None else mean_text(told.mean),
        change=_change(change) if change else None,
        worst=score_text((max if lower else min)(score for score, _ in scores)) if scores else _NONE,
        failing=told.failing,
        first_failing=firsts.get((name, "failed")),
        unscored=told.unscored,
        first_unscored=firsts.get((name, "unscored")),
        distribution=distribute(scores, [bound for (bound, _), _ in thresholds]),
    )


def _change(change: MetricChange) -> tuple[str, str] | None:
    if change.change is None or abs(change.change) < _SMALLEST:
        return None
    kind = "better" if change.change > 0 else "worse"
    return f"{mean_text(abs(change.change))} {kind} over {counted(change.pairs, 'score')}", kind
