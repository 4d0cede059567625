"""A whole set of scores held against a threshold, or against the scores of an earlier run."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from pytest_ragmetrics import session
from pytest_ragmetrics.assertions.baseline import Baseline, read_baseline
from pytest_ragmetrics.assertions.scored_set import Results, ScoredSet, decide, scored_set
from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.evaluation.comparison import (
    Column,
    MetricComparison,
    TableComparison,
    compare_columns,
    key_of,
    whole_clusters,
)
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.explain import explain_changes, explain_not_worse, explain_standing, explain_unscored
from pytest_ragmetrics.result import Direction
from pytest_ragmetrics.stats.intervals import Decision, check_confidence, verdict
from pytest_ragmetrics.stats.power import samples_to_settle
from pytest_ragmetrics.stats.standing import Standing, mean_standing, rate_standing, reaches


def assert_mean(
    results: Results,
    min: float | None = None,
    *,
    max: float | None = None,
    confidence: float | None = None,
    metric: str | None = None,
    clusters: Sequence[Hashable] | None = None,
    skip_unscored: bool = False,
) -> Standing:
    """Assert that the mean of scores is at least ``min`` (or at most ``max``) and return the figures.

    ``results`` are an :class:`Evaluation` (with several metrics ``metric`` says which), its rows, or a list of results
    or floats. With a ``confidence`` such as 0.95 the mean of all the samples there could be is asserted: the whole
    interval must lie on the good side; one that holds the bound is inconclusive, and fails saying how many more samples
    would settle it. The interval is Student's corrected for skewness, Wilson's where all scores are 0 or 1. Samples
    with a ``metadata["cluster"]`` in common, or those that ``clusters`` gives one name in the order of the results,
    count as dependent.

    Raises ``AssertionError`` with the figures and the worst rows, ``UnscoredError`` naming the rows without a score
    unless ``skip_unscored=True`` leaves them out, and when none has one, and ``ValueError`` for a bound or confidence
    that makes no sense.

    >>> assert_mean([0.9, 0.8, 1.0, 0.7], min=0.8).value
    0.85
    """
    __tracebackhide__ = True
    bound, better = _bound(min, max)
    found = scored_set(results, metric=metric, clusters=clusters)
    _check_scored(found, skip_unscored=skip_unscored)
    standing = mean_standing(
        found.scores,
        bound,
        metric=found.metric,
        better=better,
        confidence=confidence,
        clusters=found.clusters,
        bounds=found.bounds,
        unscored=len(found.unscored),
    )
    _hold(standing.outcome, explain_standing(standing, found.rows), decides=found.decides)
    return standing


def assert_pass_rate(
    results: Results,
    min_score: float | None = None,
    min_rate: float | None = None,
    *,
    max_score: float | None = None,
    confidence: float | None = None,
    metric: str | None = None,
    clusters: Sequence[Hashable] | None = None,
    skip_unscored: bool = False,
) -> Standing:
    """Assert that at least the share ``min_rate`` of scores reaches ``min_score`` (or ``max_score``) and return it.

    Takes and raises what :func:`assert_mean` does; the interval is Wilson's, of the effective sample size where samples
    come in clusters.

    >>> assert_pass_rate([0.9, 0.8, 1.0, 0.7], min_score=0.75, min_rate=0.7).value
    0.75
    """
    __tracebackhide__ = True
    score_bound, score_better = _bound(min_score, max_score, names=("min_score", "max_score"))
    if min_rate is None or not 0.0 <= _number(min_rate, "min_rate") <= 1.0:
        msg = f"min_rate must be a share between 0 and 1, such as 0.95, not {min_rate!r}"
        raise ValueError(msg)
    found = scored_set(results, metric=metric, clusters=clusters)
    _check_scored(found, skip_unscored=skip_unscored)
    standing = rate_standing(
        found.scores,
        score_bound,
        min_rate,
        metric=found.metric,
        score_better=score_better,
        confidence=confidence,
        clusters=found.clusters,
        unscored=len(found.unscored),
    )
    short = [row for row in found.rows if not reaches(row.score, score_bound, score_better)]
    _hold(standing.outcome, explain_standing(standing, short), decides=found.decides)
    return standing


def assert_not_worse(
    results: Evaluation | Iterable[Row],
    baseline: str | Path | Evaluation | Baseline | None = None,
    *,
    margin: float = 0.0,
    confidence: float = 0.95,
    metric: str | None = None,
    skip_unscored: bool = False,
) -> TableComparison:
    """Assert that no metric, or the one named, is worse than in an earlier run by more than a margin.

    ``baseline`` is a file that ``--rag-json`` or :meth:`Evaluation.to_json` wrote, or an evaluation; unless it is given
    it is the file of ``--rag-baseline``. Rows are paired by the id of their sample, else by its question, else by its
    content. This is a test of non-inferiority: the whole interval of the mean paired difference must lie above
    ``-margin`` (below ``margin`` where lower scores are better). Without a margin hardly anything but the same scores
    or clearly better ones can show that; choose the loss that you would accept, such as 0.02.

    Returns the comparison, which lists the rows that only one run has and those that are unscored in one. Raises
    ``AssertionError`` with the rows that regressed and improved, ``UnscoredError`` naming rows that had a score and
    have none now, unless ``skip_unscored=True`` leaves them out, ``RagMetricsError`` for a file that cannot be read,
    and ``ValueError`` when nothing can be compared or different judges scored.
    """
    __tracebackhide__ = True
    check_confidence(confidence)
    if _number(margin, "margin") < 0.0:
        msg = f"margin must not be negative, it is the loss that is accepted: write {-margin!r}, not {margin!r}"
        raise ValueError(msg)
    table = results if isinstance(results, Evaluation) else _table(results)
    before = _before(baseline)
    comparison = TableComparison(
        metrics={
            name: compare_columns(table.column(name), before[name], confidence=confidence)
            for name in _common(table, before, metric)
        },
        only_here=() if metric else tuple(name for name in table.metrics if name not in before),
        only_there=() if metric else tuple(name for name in before if name not in table.metrics),
    )
    for compared in comparison.metrics.values():
        if not skip_unscored:
            _check_still_scored(table, compared)
    lines = [line for compared in comparison.metrics.values() for line in _loss(compared, margin)]
    _hold("failed" if lines else "passed", lines, decides=decide(table.rows))
    return comparison


def _bound(
    least: float | None, most: float | None, *, names: tuple[str, str] = ("min", "max")
) -> tuple[float, Direction]:
    """Return the one bound that is given, and which side of it is the good one."""
    if least is not None and most is None:
        return _number(least, names[0]), "higher"
    if most is not None and least is None:
        return _number(most, names[1]), "lower"
    msg = f"give {names[0]}= or {names[1]}=, the one bound to hold the scores against"
    raise ValueError(msg)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        msg = f"{name} must be a number, not {value!r}"
        raise TypeError(msg)
    if not math.isfinite(value):
        msg = f"{name} must be a finite number, not {value!r}"
        raise ValueError(msg)
    return float(value)


def _check_scored(found: ScoredSet, *, skip_unscored: bool) -> None:
    """Raise ``UnscoredError`` for rows without a score, unless they are to be left out and there are others."""
    __tracebackhide__ = True
    total = len(found.rows) + len(found.unscored)
    if not found.rows:
        msg = f"{found.metric}: none of {total} rows has a score" if total else f"{found.metric}: there are no rows"
        raise UnscoredError(msg)
    if found.unscored and not skip_unscored:
        raise UnscoredError("\n".join(explain_unscored(found.metric, total, found.unscored)))


def _check_still_scored(table: Evaluation, compared: MetricComparison) -> None:
    __tracebackhide__ = True
    lost = set(compared.unscored_here) - set(compared.unscored_there)
    if lost:
        reasons = {key_of(row.sample): row.unscored.get(compared.metric, "") for row in table.rows}
        unscored = [(name, reasons[name]) for name in sorted(lost)]
        raise UnscoredError("\n".join(explain_unscored(compared.metric, len(table.rows), unscored)))


def _hold(outcome: Decision, lines: Sequence[str], *, decides: bool) -> None:
    __tracebackhide__ = True
    if outcome != "passed" and decides:
        raise AssertionError("\n".join(lines))


def _table(rows: object) -> Evaluation:
    """Return rows as a table."""
    items = [*rows] if isinstance(rows, Iterable) else [rows]
    given = [row for row in items if isinstance(row, Row)]
    if len(given) < len(items):
        msg = "results must be an Evaluation or its rows: single scores do not say which samples they belong to"
        raise TypeError(msg)
    names = {name: None for row in given for name in (*row.results, *row.unscored)}
    return Evaluation(metrics=tuple(names), rows=tuple(given))


def _before(baseline: str | Path | Evaluation | Baseline | None) -> Mapping[str, Column]:
    """Return the columns of the run before."""
    if isinstance(baseline, Evaluation):
        return {metric: baseline.column(metric) for metric in baseline.metrics}
    if isinstance(baseline, Baseline):
        return baseline.columns
    if baseline is None:
        running = session.current()
        baseline = None if running is None else running.baseline
    if baseline is None:
        msg = "there is no baseline: give baseline=, or run pytest with --rag-baseline=FILE"
        raise ValueError(msg)
    return read_baseline(baseline).columns


def _common(table: Evaluation, before: Mapping[str, Column], metric: str | None) -> list[str]:
    """Return the metrics to compare; raise ``ValueError`` if there is none."""
    wanted = table.metrics if metric is None else (metric,)
    if metric is not None:
        table.better_of(metric)
    common = [name for name in wanted if name in before]
    if not common:
        msg = f"the baseline has no scores of {', '.join(wanted)}; it has {', '.join(before) or 'none at all'}"
        raise ValueError(msg)
    return common


def _loss(compared: MetricComparison, margin: float) -> list[str]:
    """Return the lines that explain a loss, or that there may be one; none if the metric is not worse."""
    found = compared.difference
    if found is None:
        lines = "\n".join(explain_changes(compared))
        msg = f"{lines}\nnothing can be compared: give the samples ids that stay the same from run to run"
        raise ValueError(msg)
    bound = margin if compared.better == "lower" else -margin
    outcome = verdict(found.interval, bound, compared.better)
    if outcome == "passed":
        return []
    more = samples_to_settle(
        [row.change for row in compared.rows],
        bound,
        confidence=found.interval.confidence,
        clusters=whole_clusters(row.cluster for row in compared.rows),
        bounds=None,
    )
    return explain_not_worse(compared, margin=margin, outcome=outcome, more=more)
