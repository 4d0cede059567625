"""Assertions over a set of scores: its mean, its pass rate, and its loss against an earlier run.

The scores come from an ``Evaluation``, its rows or a list; the statistics from ``stats.means`` and ``runs.tables``,
the wording from ``runs.wording``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_ragmetrics.core.codec import CodecError, load
from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.files import read_json
from pytest_ragmetrics.core.result import NOUN, Direction, MetricResult
from pytest_ragmetrics.core.sample import Sample, advice
from pytest_ragmetrics.evaluation.table import Evaluation, Row, cluster_rule, compared_records, counted_set, fitting
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.metrics.asserting import check_bound
from pytest_ragmetrics.metrics.registry import scale_of
from pytest_ragmetrics.runs.clusters import without_shared
from pytest_ragmetrics.runs.compare import PlacedRecord, cluster_of, key_of, placed_records, row_of
from pytest_ragmetrics.runs.records import Document, DocumentError, known_scale, read_document
from pytest_ragmetrics.runs.tables import Baseline, EarlierRun, compare_tables, earlier_run, find_drops, groups_of
from pytest_ragmetrics.runs.wording import failures
from pytest_ragmetrics.runs.wording.comparisons import NO_PAIR, MetricComparison, TableComparison, remedy
from pytest_ragmetrics.stats.intervals import check_confidence, verdict, whole_clusters
from pytest_ragmetrics.stats.means import (
    Inconclusive,
    ThresholdResult,
    check_inconclusive,
    samples_to_settle,
    set_threshold,
)
from pytest_ragmetrics.stats.scores import ScoredRow, ScoreSet, Vacuous, score_set, unit_of, worst_answers

# Scales that are recognised by their scores.
_SCALES = ((0.0, 1.0), (-1.0, 1.0))


def _passing(inconclusive: Inconclusive) -> tuple[str, ...]:
    return ("passed", "inconclusive") if inconclusive == "pass" else ("passed",)


#: A table, its rows, or scores with ``None`` or an error where there is none.
Results = Evaluation | Iterable[Row] | Iterable[float | UnscoredError | None]


def assert_mean(
    results: Results,
    min: float | None = None,
    *,
    max: float | None = None,
    confidence: float | None = None,
    metric: str | None = None,
    clusters: Sequence[Hashable] | None = None,
    skip_unscored: bool = False,
    inconclusive: Inconclusive = "fail",
    vacuous: Vacuous | None = None,
) -> ThresholdResult:
    """Assert that the mean of scores is at least ``min`` (or at most ``max``) and return the figures.

    ``results`` is an :class:`Evaluation` (``metric`` names one of several), its rows, or a list of results or floats.
    With a ``confidence`` such as 0.95 the whole interval of the mean must be on the good side of the bound. If the
    bound is inside, the assertion is inconclusive and fails with the number of further samples that settle it in about
    80 % of cases; ``inconclusive="pass"`` fails only if the whole interval is on the bad side. The interval is Gaffke's
    (Clopper and Pearson's for scores of 0 and 1), Student's for scores without ends. Samples with the same
    ``metadata["cluster"]``, or name in ``clusters`` (one for each result), are dependent. ``vacuous="count"`` counts
    scores with nothing to check.

    Raises ``AssertionError`` with the figures and the worst rows, :class:`UnscoredError` for rows without a score
    (unless ``skip_unscored=True``) or if no row had something to check, ``ValueError`` for an invalid bound or
    confidence.

    >>> assert_mean([0.9, 0.8, 1.0, 0.7], min=0.8).value
    0.85
    """
    __tracebackhide__ = True
    name, bound, better = _bound(min, max)
    check_inconclusive(inconclusive, confidence)
    found, scale, about, decides = _scored_set(
        results, name, bound, metric=metric, clusters=clusters, skip_unscored=skip_unscored, vacuous=vacuous
    )
    # One with an end that is infinite is known to be none of those, whatever the scores.
    scales = (scale, *_SCALES) if scale is None or known_scale(scale) else ()
    bounds = next(filter(None, (fitting(each, found.scores) for each in scales)), None)
    result = set_threshold(found.scores, bound, better=better, confidence=confidence, bounds=bounds, **about)
    return _passed(result, found.counted, inconclusive, decides=decides)


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
    inconclusive: Inconclusive = "fail",
    vacuous: Vacuous | None = None,
    all_pass: bool = False,
) -> ThresholdResult:
    """Assert that at least the share ``min_rate`` of scores reaches ``min_score`` (or ``max_score``) and return it.

    Parameters and errors are those of :func:`assert_mean`; the interval is Clopper and Pearson's, wider for samples in
    clusters. Several answers to a row, samples of one id with ``metadata["answer"]`` 1, 2, ..., are a cluster. With
    ``all_pass`` the rate is that of rows whose every answer passes (pass^k of Yao et al. 2024), and ``n`` counts rows.

    >>> assert_pass_rate([0.9, 0.8, 1.0, 0.7], min_score=0.75, min_rate=0.7).value
    0.75
    """
    __tracebackhide__ = True
    name, score_bound, score_better = _bound(min_score, max_score, names=("min_score", "max_score"))
    check_inconclusive(inconclusive, confidence)
    if min_rate is None or not 0.0 <= check_bound("min_rate", min_rate) <= 1.0:
        raise ValueError(f"min_rate must be a share between 0 and 1, such as 0.95, not {min_rate!r}")
    found, _, about, decides = _scored_set(
        results, name, score_bound, metric=metric, clusters=clusters, skip_unscored=skip_unscored, vacuous=vacuous
    )
    about |= {"score_bound": score_bound, "better": score_better}
    whole = found
    if all_pass:
        kept: Vacuous = "skip" if found.vacuous else "count"
        whole = score_set(worst_answers([*found.counted, *found.vacuous], score_better, kept), kept)
        about["clusters"] = whole_clusters(row.cluster for row in whole.counted)
        about["vacuous"] = len(whole.vacuous)
    result = replace(set_threshold(whole.scores, min_rate, confidence=confidence, **about), all_pass=all_pass)
    return _passed(result, found.counted, inconclusive, decides=decides)


def _passed(
    result: ThresholdResult, rows: Sequence[ScoredRow], inconclusive: Inconclusive, *, decides: bool
) -> ThresholdResult:
    __tracebackhide__ = True
    if result.outcome not in _passing(inconclusive) and decides:
        raise AssertionError("\n".join(failures.explain_threshold(result, rows)))
    return result


def assert_no_regression(
    results: Evaluation | Iterable[Row],
    baseline: str | Path | Evaluation | Sequence[str | Path | Evaluation] | None = None,
    *,
    metrics: Iterable[str] | str | None = None,
    alpha: float = 0.05,
    by: str | None = None,
    skip_unscored: bool = False,
    inconclusive: Inconclusive = "fail",
    vacuous: Vacuous | None = None,
) -> TableComparison:
    """Assert that no metric, or none of those named, has become worse than in an earlier run.

    It fails only on proof: without a change, with a probability of at most ``alpha`` over all metrics together. A
    stratified permutation test asks how likely so low a mean is if any of the scores of a row could be today's (for one
    earlier run and scores of 0 and 1: McNemar's exact test), with Holm's correction for several metrics, and for rows
    that no longer have anything to check. Samples with the same ``metadata["cluster"]``, or with a shared passage
    unless ``rag_clusters`` is "named", stay together. Without a drop the comparison has the smallest one that would
    have shown.

    A list of runs, the oldest first, finds more: of 50 rows a loss of ten points in 81 % of cases with five runs, in 46
    % with one. Runs that are partial or cannot be compared are left out by name. Several answers to a row, samples of
    one id with ``metadata["answer"]`` 1, 2, ..., all count. ``by``, a metadata key such as "language", also tests its
    groups, with half of ``alpha``, and names those that lost.

    With fewer than 5 rows, less than 80 % of the baseline's rows, a partial baseline, or all runs left out it is
    inconclusive, and fails unless ``inconclusive="pass"``. The rest is as in :func:`assert_not_worse`. Raises
    ``AssertionError`` with the rows that regressed, ``ValueError`` for an ``alpha`` that is not between 0 and 1 or a
    ``by`` that no row has.
    """
    __tracebackhide__ = True
    table = results if isinstance(results, Evaluation) else _table(results)
    wanted = table.metrics if metrics is None else (metrics,) if isinstance(metrics, str) else tuple(metrics)
    comparison = _against(table, baseline, wanted, skip_unscored=skip_unscored, vacuous=vacuous)
    compared = comparison.metrics.items()
    decided = {metric: each for metric, each in compared if each.difference is not None}
    placed = {} if by is None else compared_records(table, decided)
    groups = {metric: groups_of(rows, by or "") for metric, rows in placed.items()}
    found = find_drops(TableComparison(metrics=decided), alpha=alpha, groups=groups)
    comparison = replace(comparison, drops=found)
    passing = _passing(check_inconclusive(inconclusive, alpha))
    outcomes = {metric: drop.outcome for metric, drop in found.items()}
    worse = {metric: each for metric, each in compared if outcomes.get(metric, "inconclusive") not in passing}
    if worse and _decides(table):
        raise AssertionError(str(TableComparison(metrics=worse, drops=found)))
    return comparison


def assert_not_worse(
    results: Evaluation | Iterable[Row],
    baseline: str | Path | Evaluation | Sequence[str | Path | Evaluation] | None = None,
    *,
    margin: float = 0.0,
    confidence: float = 0.95,
    metric: str | None = None,
    skip_unscored: bool = False,
    inconclusive: Inconclusive = "fail",
    vacuous: Vacuous | None = None,
) -> TableComparison:
    """Assert that it is proven that no metric, or the one named, is worse than in an earlier run by more than a margin.

    ``baseline`` is a file of ``--rag-json`` or ``Evaluation.to_json``, an evaluation, or a list of them, where a row
    has its mean; the default is ``--rag-baseline``. Rows are paired by the id of their sample, else by question, else
    by content. The whole interval of the mean paired difference must be above ``-margin`` (below ``margin`` if lower is
    better). A margin of 0.02 takes 183 rows or more even if none changes, one of 0.05 takes 72;
    :func:`assert_no_regression` needs none. ``inconclusive="pass"`` fails only if the whole interval is beyond. Rows
    with nothing to check in one run are not compared, unless ``vacuous="count"``.

    Returns the comparison, with the rows that are not compared. Raises ``AssertionError`` with the rows that regressed
    and improved; :class:`UnscoredError` for rows that lost their score (unless ``skip_unscored=True``), and if no row
    had something to check in both runs; :class:`RagMetricsError` for a file that cannot be read; ``ValueError`` if
    nothing can be compared or different judges scored.
    """
    __tracebackhide__ = True
    check_confidence(confidence)
    check_inconclusive(inconclusive, confidence)
    if check_bound("margin", margin) < 0.0:
        msg = f"margin must not be negative, it is the loss that is accepted: write {-margin!r}, not {margin!r}"
        raise ValueError(msg)
    table = results if isinstance(results, Evaluation) else _table(results)
    wanted = table.metrics if metric is None else (metric,)
    for name in wanted:
        # No loss would be beyond a margin that is longer than the scale.
        scores = (row.results[name] for row in table.rows if name in row.results)
        if (scale := fitting(table.scales.get(name) or scale_of(name), scores)) is not None:
            check_bound("margin", margin, metric=name, scale=(0.0, scale[1] - scale[0]))
    comparison = _against(table, baseline, wanted, confidence=confidence, skip_unscored=skip_unscored, vacuous=vacuous)
    lines = [line for compared in comparison.metrics.values() for line in _loss(compared, margin, inconclusive)]
    if lines and _decides(table):
        raise AssertionError("\n".join(lines))
    return comparison


def _against(
    table: Evaluation,
    baseline: str | Path | Evaluation | Sequence[str | Path | Evaluation] | Baseline | None,
    wanted: tuple[str, ...],
    *,
    confidence: float = 0.95,
    skip_unscored: bool,
    vacuous: Vacuous | None,
) -> TableComparison:
    """Return the comparison of some metrics of a table with a baseline, in which each has a pair."""
    __tracebackhide__ = True
    if baseline is None and (session := context.current().session) is not None:
        baseline = session.baseline
    if baseline is None:
        raise ValueError("there is no baseline: give baseline=, or run pytest with --rag-baseline=FILE")
    before = _earlier_runs(baseline)
    here = compared_records(table, wanted)
    known = dict.fromkeys(name for each in before for name in each.records)
    if not known.keys() & here.keys():
        names = ", ".join(known) or "none at all"
        raise ValueError(f"the baseline has no scores of {', '.join(wanted)}; it has {names}")
    of = known if wanted == table.metrics else wanted
    comparison = compare_tables(
        here,
        *(replace(each, records={name: rows for name, rows in each.records.items() if name in of}) for each in before),
        confidence=confidence,
        vacuous=table.vacuous if vacuous is None else vacuous,
        clusters=cluster_rule(),
    )
    for compared in comparison.metrics.values():
        lost = set(compared.unscored_here) - set(compared.unscored_there)
        if lost and not skip_unscored:
            rows = [row for row in table.rows if row.is_of(compared.metric)]
            reasons = {key_of(row.sample): reason for row in rows if (reason := row.unscored.get(compared.metric))}
            unscored = [ScoredRow(name=name, score=None, reason=reasons.get(name)) for name in sorted(lost)]
            raise UnscoredError("\n".join(failures.explain_unscored(compared.metric, len(rows), unscored)))
        if compared.difference is None and (compared.vacuous_here or compared.vacuous_there):
            raise UnscoredError(str(compared))
        if compared.difference is None and not compared.left_out:
            raise ValueError(f"{compared}\n{remedy(compared) if compared.rewritten else NO_PAIR}")
    return comparison


def _decides(table: Evaluation) -> bool:
    return all(result.decides for row in table.rows for result in row.results.values())


def _bound(
    least: float | None, most: float | None, *, names: tuple[str, str] = ("min", "max")
) -> tuple[str, float, Direction]:
    if least is not None and most is None:
        return names[0], check_bound(names[0], least), "higher"
    if most is not None and least is None:
        return names[1], check_bound(names[1], most), "lower"
    raise ValueError(f"give {names[0]}= or {names[1]}=, the one bound to hold the scores against")


def _table(rows: object) -> Evaluation:
    items = [*rows] if isinstance(rows, Iterable) else [rows]
    given = [row for row in items if isinstance(row, Row)]
    if len(given) < len(items):
        msg = "results must be an Evaluation or its rows: single scores do not say which samples they belong to"
        raise TypeError(msg + advice(rows))
    return Evaluation(metrics=_metrics_of(given), rows=tuple(given))


def _loss(compared: MetricComparison, margin: float, inconclusive: Inconclusive) -> list[str]:
    """Return the lines about a loss, or a possible one where that fails; none if the metric is not worse."""
    found = compared.difference
    if found is None:
        return []
    bound = margin if compared.better == "lower" else -margin
    outcome = "inconclusive" if compared.doubts else verdict(found.interval, bound, compared.better)
    if outcome in _passing(inconclusive):
        return []
    changes = [row.change for row in compared.rows]
    clusters = whole_clusters(without_shared(row.cluster for row in compared.rows))
    more = samples_to_settle(
        changes, bound, confidence=found.interval.confidence, clusters=clusters, bounds=found.bounds
    )
    return failures.explain_not_worse(compared, margin=margin, outcome=outcome, more=more)


def _scored_set(
    results: Results,
    bound_name: str,
    bound: float,
    *,
    metric: str | None,
    clusters: Sequence[Hashable] | None,
    skip_unscored: bool,
    vacuous: Vacuous | None,
) -> tuple[ScoreSet[ScoredRow], tuple[float, float] | None, dict[str, Any], bool]:
    """Return the rows, their scale where the table knows it, what else thresholds take, and whether they decide."""
    __tracebackhide__ = True
    name, rows, decides = _rows_of(results, metric)
    table = results if isinstance(results, Evaluation) else Evaluation(metrics=(), rows=())
    if clusters is not None:
        named = list(clusters)
        if len(named) != len(rows):
            raise ValueError(f"{len(named)} clusters for {len(rows)} results; give one for each, or none")
        rows = [replace(row, cluster=cluster) for row, cluster in zip(rows, named, strict=True)]
    kept = table.vacuous if vacuous is None else vacuous
    found = counted_set(name, rows, kept, skip_unscored=skip_unscored)
    about: dict[str, Any] = {
        "metric": name,
        "unscored": len(found.unscored),
        "vacuous": len(found.vacuous),
        "unit": unit_of(found.counted),
        "clusters": whole_clusters(row.cluster for row in found.counted),
    }
    scale = fitting(table.scales.get(name) or scale_of(name), found.scores)
    check_bound(bound_name, bound, metric=name, scale=scale)
    return found, table.scales.get(name), about, decides


def _rows_of(results: Results, metric: str | None) -> tuple[str, list[ScoredRow], bool]:
    if isinstance(results, (str, bytes, Mapping)) or not isinstance(results, (Evaluation, Iterable)):
        kind = f"{type(results).__name__}{advice(results)}"
        raise TypeError(f"results must be an Evaluation, its rows or a list of scores, not {kind}")
    items: Sequence[object] = results.rows if isinstance(results, Evaluation) else list(results)
    rows = [item for item in items if isinstance(item, Row)]
    if not rows and not isinstance(results, Evaluation):
        given = [item for item in items if isinstance(item, MetricResult)]
        names = tuple({result.metric: None for result in given})
        name = _one_of(names, None) if len(names) > 1 else metric or (names[0] if names else "score")
        scored = [_of_score(f"results[{index}]", item) for index, item in enumerate(items)]
        return name, scored, all(result.decides for result in given)
    if len(rows) < len(items):
        raise TypeError("results are partly rows and partly scores; give one or the other")
    name = _one_of(results.metrics if isinstance(results, Evaluation) else _metrics_of(rows), metric)
    if isinstance(results, Evaluation):
        results.better_of(name)  # raises KeyError for a metric that was not evaluated
    scored, rows = [], [row for row in rows if row.is_of(name)]
    for row in rows:
        reason = row.unscored.get(name, "it was not scored")
        found = _of_score(key_of(row.sample), row.results.get(name), reason)
        scored.append(replace(found, cluster=cluster_of(row.sample), row=row_of(row.sample)))
    return name, scored, all(row.results[name].decides for row in rows if name in row.results)


def _metrics_of(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple({name: None for row in rows for name in (*row.results, *row.unscored)})


def _one_of(names: tuple[str, ...], metric: str | None) -> str:
    if metric is None and len(names) != 1:
        msg = f"results are of several metrics, {', '.join(names)}: say which with metric=" if names else "no metrics"
        raise ValueError(msg)
    return names[0] if metric is None else metric


def _of_score(name: str, item: object, missing: str = "it is None") -> ScoredRow:
    if item is None or isinstance(item, UnscoredError):
        return ScoredRow(name=name, score=None, reason=missing if item is None else str(item))
    if isinstance(item, (int, float)):
        if not math.isfinite(item):
            raise ValueError(f"{name} is {float(item)}, not a finite number; give None for a row without a score")
        if not isinstance(item, MetricResult):
            return ScoredRow(name=name, score=float(item))
        item.used = True
        reason = failures.shortcoming(item)
        return ScoredRow(name=name, score=item.value, reason=reason, vacuous=item.vacuous, unit=item.unit)
    if hasattr(item, "item") and not isinstance(item, (Mapping, Sequence)):
        return _of_score(name, item.item())  # a numpy scalar
    msg = f"{name} is of type {type(item).__name__}; give a score, a row of an Evaluation, or None for an unscored one"
    raise TypeError(msg)


def _earlier_runs(
    baseline: str | Path | Evaluation | Sequence[str | Path | Evaluation] | Baseline,
) -> list[EarlierRun]:
    """Return the scores of the runs before, the only one without a name; raise as :func:`read_baseline`."""
    given: Sequence[Any] = (baseline,)
    if isinstance(baseline, Baseline):
        given = baseline.runs
    elif isinstance(baseline, Sequence) and not isinstance(baseline, str):
        given = baseline
    if not given:
        raise ValueError("baseline is empty: give one earlier run, or a list of several, the oldest first")
    found = []
    for number, each in enumerate(given, 1):
        if isinstance(each, Document):
            found.append(_of_document(each))
        elif isinstance(each, Evaluation):
            found.append(EarlierRun(records=compared_records(each), name=f"run {number}"))
        else:
            found.append(read_baseline(each))
    return [replace(found[0], name="")] if given == (baseline,) else found


def read_baseline(file: str | Path) -> EarlierRun:
    """Return the scores in a JSON file that ``--rag-json`` or :meth:`Evaluation.to_json` wrote.

    The file is read again only if it has changed. Raises :class:`DocumentError`, a ``RagMetricsError``, naming the file
    and the place in it.
    """
    path = Path(file)
    try:
        state = path.stat()
        return _read(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise DocumentError(error.strerror or str(error), file=path) from error


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int, _size: int) -> EarlierRun:
    try:
        data = read_json(path)
    except ValueError as error:
        msg = f"not JSON: {error}; give a file that --rag-json or Evaluation.to_json wrote"
        raise DocumentError(msg, file=path) from error
    if isinstance(data, dict) and "rows" in data:
        try:
            table, rows = load(_Table, data), []
            for row in table.rows:
                results = {}
                for name, score in row.scores.items():
                    if score is not None:
                        about: dict[str, Any] = {"judge": row.judges.get(name), "noun": table.nouns.get(name, NOUN)}
                        results[name] = MetricResult(score, metric=name, vacuous=name in row.vacuous, **about)
                rows.append(Row(sample=Sample.from_mapping(row.sample), results=results))
            before = Evaluation(metrics=table.metrics, rows=tuple(rows), better=table.better)
            return EarlierRun(records=compared_records(before, unique=False), name=path.name)
        except (CodecError, TypeError) as error:
            raise DocumentError(str(error), file=path) from None  # it names the place; pydantic's frames add nothing
    if isinstance(data, dict) and "tests" in data:
        return _of_document(read_document(path))
    msg = "neither the result of a run nor a table; give a file that --rag-json or Evaluation.to_json wrote"
    raise DocumentError(msg, file=path)


def _of_document(document: Document) -> EarlierRun:
    found: dict[str, list[PlacedRecord]] = {}
    for placed in placed_records(document.tests):
        found.setdefault(placed.record.metric, []).append(placed)
    return earlier_run(document.run, found)


@dataclass(frozen=True, kw_only=True, slots=True)
class _TableRow:
    """A row of :meth:`Evaluation.to_json`; files of early versions lack judges, or which scores are ``vacuous``."""

    sample: Mapping[str, Any]
    scores: Mapping[str, float | None]
    judges: Mapping[str, str | None] = field(default_factory=dict)
    vacuous: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Table:
    """The file of :meth:`Evaluation.to_json`; early versions lack ``better`` and ``nouns``."""

    metrics: tuple[str, ...]
    rows: tuple[_TableRow, ...]
    better: Mapping[str, Direction] = field(default_factory=dict)
    nouns: Mapping[str, str] = field(default_factory=dict)
