"""The statistics over the paired scores of each metric: what changed, how much, and whether it is a drop.

Suites, tables, gates and ``assert_not_worse`` use it; the pairs are those of ``runs.compare``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pytest_ragmetrics.core.result import Decision
from pytest_ragmetrics.runs.clusters import ClusterRule, clusters_of, without_shared
from pytest_ragmetrics.runs.compare import Obstacle, PlacedRecord, TestChange, pair_records, score_of
from pytest_ragmetrics.runs.records import function_name, known_scale
from pytest_ragmetrics.runs.wording.comparisons import FEWEST, LEAST_SHARE, MetricComparison, RowChange, TableComparison
from pytest_ragmetrics.runs.wording.figures import agreeing, counted, noun_for, silence_text
from pytest_ragmetrics.stats.drop import Drop, drops
from pytest_ragmetrics.stats.intervals import whole_clusters
from pytest_ragmetrics.stats.paired import Difference, paired_difference
from pytest_ragmetrics.stats.permutation import PairedScores, flip_p
from pytest_ragmetrics.stats.scores import Vacuous, check_vacuous, standing

# Before the name of a metric: whether its rows have something to check, as scores of 0 and 1.
_SILENCE = "\0"


def find_drops(comparison: TableComparison, *, alpha: float = 0.05) -> dict[str, Drop]:
    """Return by metric whether the scores dropped, of all metrics of a comparison together.

    That rows fell silent, with nothing to check any more, is tested beside them at the same ``alpha``. Raises
    ``ValueError`` for a metric without a pair, or an ``alpha`` that is not between 0 and 1.
    """
    rows, clusters, spans = {}, {}, {}
    for metric, compared in comparison.metrics.items():
        if compared.silenced:
            rows[_SILENCE + metric] = [row.scores for row in compared.silenced]
            clusters[_SILENCE + metric] = whole_clusters(row.cluster for row in compared.silenced)
        is_turned = compared.better == "lower"
        rows[metric] = [row.scores.negated() if is_turned else row.scores for row in compared.rows]
        clusters[metric] = whole_clusters(row.cluster for row in compared.rows)
        bounds = None if compared.difference is None else compared.difference.bounds
        spans[metric] = math.inf if bounds is None else bounds[1]
    found = drops(rows, clusters=clusters, alpha=alpha, spans=spans)
    for metric, compared in comparison.metrics.items():
        if compared.silenced and found.pop(_SILENCE + metric).shown:
            now, then = compared.vacuous_here, compared.vacuous_there
            text = silence_text(len(now), len(compared.rows) + len({*now, *then}), len(then))
            found[metric] = replace(found[metric], silence=text)
    return found


def drop_outcome(compared: MetricComparison, drop: Drop) -> Decision:
    """Return what a comparison decides on a drop: rows that fell silent cannot be compared, and are a drop."""
    if compared.doubts and not drop.silence:
        return "inconclusive"
    return "failed" if drop.shown else "passed"


def compare_metric(
    metric: str,
    here: Sequence[PlacedRecord],
    there: Sequence[PlacedRecord],
    *,
    changed: Mapping[str, Sequence[str]] = MappingProxyType({}),
    partial: str = "",
    confidence: float = 0.95,
    vacuous: Vacuous = "skip",
    clusters: ClusterRule = "passages",
) -> MetricComparison:
    """Return what changed in the rows of a metric from ``there``, the run before, to ``here``, whatever their order.

    A row with nothing to check in one of the runs became neither better nor worse and is no pair, unless ``vacuous``
    scores "count". One that asks another question is another row. Only rows there of functions that scored
    one of the rows here are missed. ``changed`` says what changed in the metric's definition, ``partial`` why not all
    rows are there: both are doubts. ``clusters`` says which rows are dependent.

    Raises ``ValueError`` where different judges scored a row, naming both, where a row has several different scores in
    one of the runs, and where the metric is another one there, or the runs do not agree on which scores are better.
    """
    pairs = pair_records(here, there, changed)
    common: dict[str, _Pair] = {}
    for pair in pairs:
        if pair.old is not None and pair.new is not None:
            common.setdefault(pair.new.key, (pair.old, pair.new, pair.obstacles))
    rewritten = tuple(sorted(key for key, (*_, obstacles) in common.items() if "question" in obstacles))
    both = {key: common[key] for key in sorted(common.keys() - {*rewritten})}
    chosen = check_vacuous(vacuous)
    states = {key: (standing(new.record, chosen), standing(old.record, chosen)) for key, (old, new, _) in both.items()}
    scored = {key: pair for key, pair in both.items() if states[key] == ("counted", "counted")}
    _check_comparable(metric, both, scored, pairs)
    samples = [(new.record.sample, old.record.sample) for old, new, _ in both.values()]
    of_rows = clusters_of((new for new, _ in samples), (old for _, old in samples), rule=clusters)
    groups = dict(zip(both, of_rows, strict=True))
    rows = tuple(_row(key, groups[key], old.record.score, new.record.score) for key, (old, new, _) in scored.items())
    found = [key for key in both if "unscored" not in states[key]]
    silenced = [(key, [float(state == "counted") for state in states[key]]) for key in found]
    known = {pair.old.key for pair in pairs if pair.old is not None and pair.new is not None}
    functions = {function_name(old.test) for old, *_ in common.values()}
    before = dict.fromkeys(it.key for it in there if not functions or function_name(it.test) in functions)
    nowhere = sum(state == ("unscored", "unscored") for state in states.values())
    changes = dict.fromkeys(f"{why} since the baseline" for key in found for why in both[key][2].get("rules", ()))
    scale = next((it.record.scale for it in (*here, *there) if it.record.scale and it.record.score is not None), None)

    def listed(state: str, side: int) -> tuple[str, ...]:
        return tuple(key for key, each in states.items() if each[side] == state)

    return MetricComparison(
        metric=metric,
        better=next((it.record.better for it in (*here, *there)), "higher"),
        judges=tuple(sorted({it.record.judge for pair in scored.values() for it in pair[:2] if it.record.judge})),
        difference=difference_of(rows, scale, confidence=confidence) if rows else None,
        rows=rows,
        only_here=tuple(dict.fromkeys(it.key for it in here if it.key not in common)),
        only_there=tuple(key for key in before if key not in known),
        unscored_here=listed("unscored", 0),
        unscored_there=listed("unscored", 1),
        vacuous_here=listed("vacuous", 0),
        vacuous_there=listed("vacuous", 1),
        rewritten=rewritten,
        silenced=tuple(_row(key, groups[key], old, new) for key, (new, old) in silenced if old != new),
        doubts=(*_doubts(partial, len(rewritten), found=len(found), total=len(before) - nowhere), *changes),
    )


# A record of the baseline, its counterpart now, and why their scores are not compared.
_Pair = tuple[PlacedRecord, PlacedRecord, Mapping[Obstacle, Sequence[str]]]


def _row(key: str, cluster: Hashable | None, before: float | None, after: float | None) -> RowChange:
    scores = PairedScores((before or 0.0,), (after or 0.0,))
    return RowChange(id=key, scores=scores, cluster=cluster)


def _check_comparable(
    metric: str, both: Mapping[str, _Pair], scored: Mapping[str, _Pair], pairs: Iterable[TestChange]
) -> None:
    ambiguous = {key for key, (*_, obstacles) in both.items() if "ambiguous" in obstacles}
    scores: dict[tuple[bool, str, int], set[Hashable]] = {}
    for pair in pairs:
        for it in filter(None, (pair.old, pair.new)):
            scores.setdefault((it is pair.old, it.key, it.answer), set()).add(score_of(it))
    ambiguous |= {key for (_, key, _), found in scores.items() if len(found) > 1 and key in both}
    for old, new, obstacles in both.values():
        here, there = new.record, old.record
        if "metric" in obstacles and here.better != there.better:
            both_ways = f"{here.better} scores are better here, {there.better} ones there"
            raise ValueError(f"{metric}: {both_ways}; they are not comparable")
        if "metric" in obstacles:
            nouns = [noun_for(1, record.noun) for record in (here, there)]
            raise ValueError(
                f"{metric}: its verdicts are on the {nouns[0]} here, on the {nouns[1]} there, so these are two "
                "metrics of one name; score both with this version"
            )
    if ambiguous:
        keys = ", ".join(map(repr, sorted(ambiguous)[:3]))
        raise ValueError(f"{metric}: {keys} has several different scores in one run; give each its own id")
    for old, new, obstacles in scored.values():
        if "judge" in obstacles:
            raise ValueError(
                f"{metric}: scores of different judges are not comparable, and these are of {new.record.judge!r}, "
                f"those before of {old.record.judge!r}; score both with one judge"
            )


def _doubts(partial: str, rewritten: int, *, found: int, total: int) -> Iterator[str]:
    """Yield why a comparison decides nothing: of ``total`` rows of the baseline ``found`` are scored in both runs."""
    if partial:
        yield f"the baseline is not whole ({partial})"
    if found < LEAST_SHARE * total:
        others = f", {rewritten} ask another question under the same id" if rewritten else ""
        yield f"{found} of the {counted(total, 'row')} of the baseline can be compared, fewer than 80 %{others}"
    elif found < FEWEST:
        yield f"{counted(found, 'row')} {agreeing(found, 'is')} compared, and {FEWEST} are the least"


def difference_of(
    rows: Sequence[RowChange], scale: tuple[float, float] | None, *, confidence: float = 0.95
) -> Difference:
    """Return the figures over pairs of rows; a ``scale`` that is not known is from 0 to 1 if all scores are."""
    before, after = [row.before for row in rows], [row.after for row in rows]
    joined = [row.cluster for row in rows]
    apart = without_shared(joined)
    low, high = known_scale(scale) or (0.0, 1.0)
    bounds = (low, high) if all(low <= score <= high for score in (*before, *after)) else None
    found = paired_difference(before, after, confidence=confidence, clusters=whole_clusters(apart), bounds=bounds)
    if joined == apart:
        return found
    chance = flip_p([row.change for row in rows], clusters=whole_clusters(joined))
    return replace(found, flip_p=chance, mcnemar_p=None)


def compare_tables(
    here: Mapping[str, Sequence[PlacedRecord]],
    there: Mapping[str, Sequence[PlacedRecord]],
    *,
    partial: str = "",
    confidence: float = 0.95,
    vacuous: Vacuous = "skip",
    clusters: ClusterRule = "passages",
) -> TableComparison:
    """Return what changed from ``there`` to ``here`` in every metric that both have; raises as `compare_metric`."""
    compare = functools.partial(
        compare_metric, partial=partial, confidence=confidence, vacuous=vacuous, clusters=clusters
    )
    return TableComparison(
        metrics={metric: compare(metric, rows, there[metric]) for metric, rows in here.items() if metric in there},
        only_here=tuple(metric for metric in here if metric not in there),
        only_there=tuple(metric for metric in there if metric not in here),
    )
