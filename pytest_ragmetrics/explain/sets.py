"""How the scores of a whole set stand against a bound, and which rows have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ragmetrics.explain.phrases import (
    CONTRARY,
    SHOWN,
    and_more,
    counted,
    named,
    readable,
    told_apart,
    told_interval,
)
from pytest_ragmetrics.text.printable import printable

if TYPE_CHECKING:
    from pytest_ragmetrics.stats.standing import ScoredRow, Standing


def explain_standing(standing: Standing, rows: Sequence[ScoredRow] = ()) -> list[str]:
    """Return the lines that say how a set of scores stands against a bound: the figures, then the worst rows.

    ``rows`` are those of the set that have a score; of those on the wrong side of the bound the worst are shown, at
    most :data:`SHOWN`.
    """
    lines = [_standing_line(standing)]
    if standing.outcome == "inconclusive":
        figure = "mean" if standing.statistic == "mean" else "rate"
        lines.append(
            f"  not even a million samples would settle it while the {figure} stays so close to the bound"
            if standing.more is None
            else f"  about {counted(standing.more, 'more sample')} would settle it if the {figure} stays where it is"
        )
    if standing.unscored:
        lines.append(f"  left out: {counted(standing.unscored, 'unscored row')}")
    sign = -1.0 if (standing.score_better if standing.score_bound is not None else standing.better) == "lower" else 1.0
    bound = standing.bound if standing.score_bound is None else standing.score_bound
    worst = sorted((row for row in rows if sign * row.score < sign * bound), key=lambda row: sign * row.score)
    lines += [f"  {_row_line(row, bound)}" for row in worst[:SHOWN]]
    return lines + and_more(len(worst))


def _standing_line(standing: Standing) -> str:
    """Return one line: the metric, its mean or rate, the bound, the interval where one decided, and the outcome."""
    value, bound = told_apart(standing.value, standing.bound)
    name = printable(standing.metric)
    held = standing.value <= standing.bound if standing.better == "lower" else standing.value >= standing.bound
    kept = "<=" if standing.better == "lower" else ">="
    operator = kept if held else CONTRARY[kept]
    counts = [f"n={standing.n}"]
    if standing.statistic == "rate":
        sign = "<=" if standing.score_better == "lower" else ">="
        counts = [f"{standing.reached} of {standing.n} scores {sign} {standing.score_bound:g}"]
    if standing.interval is not None:
        counts.insert(0, told_interval(standing.interval, apart_from=standing.bound))
    figure = "mean" if standing.statistic == "mean" else "pass rate"
    return f"{name} {figure} {value} {operator} {bound} ({', '.join(counts)}): {standing.outcome}"


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
    return f"{told_apart(row.score, bound)[0]}  {named(row.name)}{reason}"
