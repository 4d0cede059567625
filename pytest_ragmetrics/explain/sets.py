"""The text of a bound on a whole set of scores: its figures in the first line, the worst rows below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ragmetrics.explain.phrases import (
    CONTRARY,
    SHOWN,
    and_more,
    counted,
    format_apart,
    format_interval,
    named,
    readable,
)
from pytest_ragmetrics.text.characters import printable

if TYPE_CHECKING:
    from pytest_ragmetrics.comparison import MetricComparison
    from pytest_ragmetrics.result import Direction
    from pytest_ragmetrics.stats.decisions import ScoredRow, ThresholdResult
    from pytest_ragmetrics.stats.intervals import Decision, Interval


def explain_threshold(result: ThresholdResult, rows: Sequence[ScoredRow] = ()) -> list[str]:
    """Return the lines that say whether a set of scores meets a bound: the figures, then the worst rows.

    ``rows`` are those of the set that have a score; of those on the wrong side of the bound the worst are shown, at
    most :data:`SHOWN`.
    """
    lines = [_threshold_line(result)]
    if result.outcome == "inconclusive":
        figure = "mean" if result.statistic == "mean" else "rate"
        lines.append(
            f"  not even a million samples would settle it while the {figure} stays so close to the bound"
            if result.more is None
            else f"  about {counted(result.more, 'more sample')} would settle it if the {figure} stays where it is"
        )
    if result.unscored:
        lines.append(f"  left out: {counted(result.unscored, 'unscored row')}")
    sign = -1.0 if (result.score_better if result.score_bound is not None else result.better) == "lower" else 1.0
    bound = result.bound if result.score_bound is None else result.score_bound
    worst = sorted((row for row in rows if sign * row.score < sign * bound), key=lambda row: sign * row.score)
    lines += [f"  {_row_line(row, bound)}" for row in worst[:SHOWN]]
    return lines + and_more(len(worst))


def _threshold_line(result: ThresholdResult) -> str:
    """Return one line: the metric, its mean or rate, the bound, the interval where one decided, and the outcome."""
    value, bound = format_apart(result.value, result.bound)
    name = printable(result.metric)
    held = result.value <= result.bound if result.better == "lower" else result.value >= result.bound
    kept = "<=" if result.better == "lower" else ">="
    operator = kept if held else CONTRARY[kept]
    counts = [f"n={result.n}"]
    if result.statistic == "rate":
        sign = "<=" if result.score_better == "lower" else ">="
        counts = [f"{result.reached} of {result.n} scores {sign} {result.score_bound:g}"]
    if result.interval is not None:
        counts.insert(0, format_interval(result.interval, apart_from=result.bound))
    figure = "mean" if result.statistic == "mean" else "pass rate"
    return f"{name} {figure} {value} {operator} {bound} ({', '.join(counts)}): {result.outcome}"


def explain_unscored(
    metric: str,
    total: int,
    unscored: Sequence[tuple[str, str]],
    *,
    hint: str = "; skip_unscored=True leaves them out",
) -> list[str]:
    """Return the lines that say which rows of a set have no score, by name and reason, so that no figure is given."""
    of_all = f"{len(unscored)} of {total} rows {'is' if len(unscored) == 1 else 'are'} unscored"
    lines = [f"{printable(metric)}: {of_all}{hint}"]
    lines += [f"  {named(name)}: {readable(reason)}" for name, reason in unscored[:SHOWN]]
    return lines + and_more(len(unscored))


def _row_line(row: ScoredRow, bound: float) -> str:
    reason = f": {readable(row.reason)}" if row.reason else ""
    return f"{format_apart(row.score, bound)[0]}  {named(row.name)}{reason}"


def explain_not_worse(
    comparison: MetricComparison, *, margin: float, outcome: Decision, more: int | None = None
) -> list[str]:
    """Return the lines that say whether a metric became worse by more than a margin, and in which rows.

    ``more`` is how many further samples would settle an inconclusive outcome.
    """
    lines = comparison.lines()
    lines[0] += f", margin {margin:g}: {outcome}"
    if outcome == "inconclusive" and comparison.difference is not None:
        settling = f"about {counted(more or 0, 'more sample')} would settle it if the difference stays where it is; "
        interval = comparison.difference.interval
        most = f"it is at most {_most_lost(interval, comparison.better):g} worse"
        lines.insert(1, f"  {settling if more else ''}with {interval.confidence * 100:g} % confidence {most}")
    return lines


def _most_lost(interval: Interval, better: Direction) -> float:
    """Return how much may be lost, rounded up, so that a margin of as much holds."""
    end = interval.high if better == "lower" else -interval.low
    return math.ceil(end * 1000) / 1000 if math.isfinite(end) else end
