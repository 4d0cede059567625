"""What changed in a metric between two runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_ragmetrics.explain.phrases import SHOWN, and_more, counted, named, told_apart, told_interval
from pytest_ragmetrics.text.printable import printable

if TYPE_CHECKING:
    from pytest_ragmetrics.evaluation.comparison import MetricComparison
    from pytest_ragmetrics.result import Direction
    from pytest_ragmetrics.stats.intervals import Decision, Interval


def explain_not_worse(
    comparison: MetricComparison, *, margin: float, outcome: Decision, more: int | None = None
) -> list[str]:
    """Return the lines that say whether a metric became worse by more than a margin, and in which rows.

    ``more`` is how many further samples would settle an inconclusive outcome.
    """
    lines = explain_changes(comparison)
    lines[0] += f", margin {margin:g}: {outcome}"
    if outcome == "inconclusive" and comparison.difference is not None:
        told = f"about {counted(more or 0, 'more sample')} would settle it if the difference stays where it is; "
        interval = comparison.difference.interval
        most = f"it is at most {_most_lost(interval, comparison.better):g} worse"
        lines.insert(1, f"  {told if more else ''}with {interval.confidence * 100:g} % confidence {most}")
    return lines


def explain_changes(comparison: MetricComparison) -> list[str]:
    """Return the lines that say what changed in one metric: the figures, then the rows, the largest change first."""
    lines = [_changes_line(comparison)]
    if comparison.judges:
        lines.append(f"  judge: {printable(', '.join(comparison.judges))}")
    for title, rows in (("regressed", comparison.regressed), ("improved", comparison.improved)):
        lines.append(f"  {title}: {len(rows)}")
        for row in rows[:SHOWN]:
            before, after = told_apart(row.before, row.after)
            lines.append(f"    {row.change:+.2f}  {before} -> {after}  {named(row.id)}")
        lines += and_more(len(rows), indent="    ")
    lines.append(f"  unchanged: {len(comparison.unchanged)}")
    for title, ids in (
        ("only here", comparison.only_here),
        ("only there", comparison.only_there),
        ("unscored here", comparison.unscored_here),
        ("unscored there", comparison.unscored_there),
    ):
        if ids:
            more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
            lines.append(f"  {title}: {len(ids)} ({', '.join(map(named, ids[:SHOWN]))}{more})")
    return lines


def _changes_line(comparison: MetricComparison) -> str:
    found = comparison.difference
    name = printable(comparison.metric) + (" (lower is better)" if comparison.better == "lower" else "")
    if found is None:
        return f"{name}: no row has a score in both runs"
    before, after = told_apart(found.before, found.after)
    interval = found.interval
    figures = [told_interval(interval, sign="+"), f"n={found.n}"]
    chances = (("t test", found.t_p), ("sign flips", found.flip_p), ("McNemar", found.mcnemar_p))
    figures += [f"{test} {_p(p)}" for test, p in chances if p is not None]
    return f"{name} {before} -> {after}: {interval.estimate:+.3f} ({', '.join(figures)})"


def _most_lost(interval: Interval, better: Direction) -> float:
    """Return how much may be lost, rounded up, so that a margin of as much holds."""
    end = interval.high if better == "lower" else -interval.low
    return math.ceil(end * 1000) / 1000 if math.isfinite(end) else end


def _p(value: float) -> str:
    return "p<0.001" if value < 0.001 else f"p={value:.3f}"  # noqa: PLR2004 - beyond this nobody decides otherwise
