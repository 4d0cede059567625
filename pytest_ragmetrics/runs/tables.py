"""The statistics over the paired scores of each metric: what changed, how much, and whether it is a drop.

Suites, tables, gates and ``assert_not_worse`` use it; the pairs are those of ``runs.compare``.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.core.sample import Sample, answer_of
from pytest_ragmetrics.core.tested import GroupDrop
from pytest_ragmetrics.runs.clusters import ClusterRule, clusters_of, without_shared
from pytest_ragmetrics.runs.compare import Obstacle, PlacedRecord, TestChange, pair_records, score_of
from pytest_ragmetrics.runs.records import Document, Record, RunRecord, function_name, known_scale
from pytest_ragmetrics.runs.wording.comparisons import (
    FEWEST,
    LEAST_SHARE,
    MetricComparison,
    RowChange,
    TableComparison,
    left_out_text,
)
from pytest_ragmetrics.runs.wording.figures import SHOWN, agreeing, counted, named, noun_for, silence_text
from pytest_ragmetrics.stats.drop import Drop, drop_of, together
from pytest_ragmetrics.stats.intervals import Clusters, whole_clusters
from pytest_ragmetrics.stats.paired import Difference, paired_difference
from pytest_ragmetrics.stats.permutation import PairedScores, drop_test, flip_p
from pytest_ragmetrics.stats.scores import ROUNDING, Standing, Vacuous, check_vacuous, standing, unit_of


def find_drops(
    comparison: TableComparison,
    *,
    alpha: float = 0.05,
    groups: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> dict[str, Drop]:
    """Return by metric whether the scores dropped, of all metrics of a comparison together.

    ``groups`` are the names of groups by metric and row. Raises ``ValueError`` for a metric without a pair, or an
    ``alpha`` that is not between 0 and 1.
    """
    by_itself = {name: drop_by_itself(it, alpha, groups.get(name, {})) for name, it in comparison.metrics.items()}
    return together(by_itself)


def groups_of(placed: Iterable[PlacedRecord], by: str) -> dict[str, str]:
    """Return the name of the group of each row: by a key of its metadata, or another field of its sample.

    Raises ``ValueError`` if no row has it, naming those that there are.
    """
    samples = {it.key: it.record.sample for it in placed}
    own = {each.name for each in fields(Sample)} - {"metadata"}
    found = {key: it.metadata.get(by, getattr(it, by) if by in own else None) for key, it in samples.items()}
    if all(value is None for value in found.values()):
        known = sorted({f"{key}" for sample in samples.values() for key in sample.metadata})
        there = f"there are {', '.join(map(named, known[:SHOWN]))}" if known else "they have no metadata"
        raise ValueError(f"by={by!r}: no row has this field in its metadata; {there}")
    return {key: f"without {by}" if value is None else f"{by}={value}" for key, value in found.items()}


def drop_by_itself(compared: MetricComparison, alpha: float, groups: Mapping[str, str] = MappingProxyType({})) -> Drop:
    """Return what the rows of a metric show, and the groups of them, before it is tested together with others.

    That rows fell silent, with nothing to check any more, has a test of its own.
    """
    if not compared.rows:
        raise ValueError(f"{compared.metric}: no pairs, and a comparison needs at least one")
    bounds = None if compared.difference is None else compared.difference.bounds
    span = math.inf if bounds is None else bounds[1]
    scores, clusters = _scores(compared, compared.rows)
    found = drop_of(scores, clusters=clusters, alpha=alpha, span=span)
    found = replace(found, doubts=compared.doubts, by_group=tuple(_group_drops(compared, groups)))
    if not compared.silenced:
        return found
    now, then = compared.vacuous_here, compared.vacuous_there
    silence = silence_text(len(now), len(compared.rows) + len({*now, *then}), len(then))
    silenced = [row.scores for row in compared.silenced]
    clusters = whole_clusters(row.cluster for row in compared.silenced)
    return replace(found, silence=silence, silenced=drop_test(silenced, clusters=clusters))


def _scores(compared: MetricComparison, rows: Sequence[RowChange]) -> tuple[list[PairedScores], Clusters]:
    """Return the scores of rows, the higher ones for the better, and their clusters."""
    scores = [row.scores.negated() if compared.better == "lower" else row.scores for row in rows]
    return scores, whole_clusters(row.cluster for row in rows)


def _group_drops(compared: MetricComparison, groups: Mapping[str, str]) -> Iterator[GroupDrop]:
    """Yield what each group shows by itself."""
    rows: dict[str, list[RowChange]] = {}
    for row in compared.rows if groups else ():
        rows.setdefault(groups[row.id], []).append(row)
    for name, members in sorted(rows.items()):
        scores, clusters = _scores(compared, members)
        test = drop_test(scores, clusters=clusters)
        changes = [it.change for it in scores]
        worse, better = (sum(sign * change > ROUNDING for change in changes) for sign in (-1, 1))
        yield GroupDrop(name=name, n=len(members), worse=worse, better=better, p=test.p, least=test.least)


class IncomparableError(ValueError):
    """Scores of two runs cannot be compared; ``brief`` says why of the run before in a few words."""

    def __init__(self, message: str, *, brief: str) -> None:
        self.brief = brief
        super().__init__(message)


class OtherJudgesError(IncomparableError):
    """Different judges scored the rows of two runs; ``usage`` is what it took to find no judge of both."""

    usage = Usage()


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierRun:
    """The scores of a run before by metric, of one whose ``name`` is "" where it is the only one.

    ``day`` and ``branch`` are when and of what it ran, "" where that is not known. ``changed`` says by metric what
    changed in its definition since, ``partial`` why not all rows are there.
    """

    records: Mapping[str, Sequence[PlacedRecord]]
    name: str = ""
    day: str = ""
    branch: str = ""
    changed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    partial: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """The ``runs`` that another one is compared with, the oldest first; those of a history have no texts."""

    runs: tuple[Document, ...]
    is_history: bool = False


def earlier_run(run: RunRecord, records: Mapping[str, Sequence[PlacedRecord]]) -> EarlierRun:
    """Return the scores of a run with a name."""
    name, day = run.started[:16].replace("T", " "), run.started[:10]
    return EarlierRun(records=records, name=name, day=day, branch=run.branch, partial=run.partial)


def compare_metric(
    metric: str,
    here: Sequence[PlacedRecord],
    *there: EarlierRun,
    confidence: float = 0.95,
    vacuous: Vacuous = "skip",
    clusters: ClusterRule = "passages",
) -> MetricComparison:
    """Return what changed in the rows of a metric from the runs before, the oldest first, whatever the order of rows.

    A row has a score of each of its answers, and one or more of each run before that has it. A score with nothing to
    check says neither better nor worse and is none of them, unless ``vacuous`` scores "count". A row that asks another
    question is another row. Only rows there of functions that scored one of the rows here are missed. ``clusters`` says
    which rows are dependent.

    Of several runs those are left out that cannot be compared, by name; where none is left the comparison has that as
    ``doubts``. Raises ``ValueError`` for the only run where different judges scored a row, naming both, where a row has
    several different scores in one of the runs, and where the metric is another one there, or the runs do not agree on
    which scores are better.
    """
    chosen = check_vacuous(vacuous)
    kept, left_out, doubts = _kept(metric, here, there, chosen)
    answers = _by_key(here)
    olds = {key: [old for each in kept for old in each.both.get(key, ())] for key in sorted(answers)}
    both = {key: (answers[key], before) for key, before in olds.items() if before}
    rewritten = {key for each in kept for key in each.rewritten}.difference(both)
    states = {key: tuple(_state(side, chosen) for side in sides) for key, sides in both.items()}
    scored = {key: sides for key, sides in both.items() if states[key] == ("counted", "counted")}
    groups = _groups(both, clusters)

    def counted_score(it: Record) -> float | None:
        return it.score if standing(it, chosen) == "counted" else None

    def speaks(it: Record) -> float | None:
        return None if it.score is None else float(standing(it, chosen) == "counted")

    rows = tuple(_row(key, groups[key], scored[key], counted_score) for key in scored)
    silenced = [_row(key, groups[key], both[key], speaks) for key in both if "unscored" not in states[key]]
    records = [it.record for side in (here, *(each.records.get(metric, ()) for each in there)) for it in side]
    scale = next((record.scale for record in records if record.scale and record.score is not None), None)
    judges = {it.record.judge for sides in scored.values() for side in sides for it in side}

    def listed(state: str, side: int) -> tuple[str, ...]:
        return tuple(key for key, each in states.items() if each[side] == state)

    return MetricComparison(
        metric=metric,
        better=next((record.better for record in records), "higher"),
        unit=unit_of(records),
        judges=tuple(sorted(filter(None, judges))),
        difference=difference_of(rows, scale, unit_of(records), confidence=confidence) if rows else None,
        rows=rows,
        only_here=tuple(key for key in answers if key not in both and key not in rewritten),
        only_there=kept[-1].missed if kept else (),
        unscored_here=listed("unscored", 0),
        unscored_there=listed("unscored", 1),
        vacuous_here=listed("vacuous", 0),
        vacuous_there=listed("vacuous", 1),
        rewritten=tuple(sorted(rewritten)),
        silenced=tuple(row for row in silenced if len({*row.scores.before, *row.scores.now}) > 1),
        doubts=doubts,
        runs=len(kept),
        against=runs_text([each.run for each in kept]),
        left_out=left_out,
    )


# The scores of a row now, and before.
_Sides: TypeAlias = tuple[Sequence[PlacedRecord], Sequence[PlacedRecord]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Paired:
    """A run before: its scores of each row that it has in ``both``, by the key of now, and why they decide nothing.

    ``rewritten`` are the rows that ask another question, ``missed`` those that there are no more.
    """

    run: EarlierRun
    both: Mapping[str, Sequence[PlacedRecord]]
    rewritten: Sequence[str]
    missed: tuple[str, ...]
    doubts: tuple[str, ...]


def _kept(
    metric: str, here: Sequence[PlacedRecord], there: Sequence[EarlierRun], vacuous: Vacuous
) -> tuple[list[_Paired], tuple[str, ...], tuple[str, ...]]:
    """Return the runs that are compared, which others are left out, and why all of it decides nothing.

    Where all are left out, the figures are those of the latest that has any.
    """
    found: list[_Paired] = []
    left_out: list[str] = []
    for run in there:
        try:
            found.append(paired := _paired(metric, here, run, vacuous))
        except IncomparableError as error:
            if not run.name:
                raise
            left_out.append(f"{run.name} {error.brief}")
        else:
            left_out += [f"{run.name} {'; '.join(paired.doubts)}"] if run.name and paired.doubts else []
    kept = [each for each in found if not each.doubts] or found[-1:]
    doubts = tuple(doubt for each in kept for doubt in each.doubts)
    if len(left_out) == len(there):
        doubts = (f"no run can be compared, {left_out_text(left_out)}",)
    return kept, tuple(left_out), doubts


def _paired(metric: str, here: Sequence[PlacedRecord], run: EarlierRun, vacuous: Vacuous) -> _Paired:
    """Return the rows of a run before that can be compared; raise ``IncomparableError`` where it as a whole cannot."""
    there = run.records.get(metric, ())
    if run.name and not there:
        raise IncomparableError(f"{metric}: there are no scores of it", brief="has no scores of it")
    pairs = pair_records(here, there, run.changed)
    common: dict[str, _Pair] = {}
    for pair in pairs:
        if pair.old is not None and pair.new is not None:
            common.setdefault(pair.new.key, (pair.old, pair.new, pair.obstacles))
    rewritten = sorted(key for key, (*_, obstacles) in common.items() if "question" in obstacles)
    both = {key: common[key] for key in sorted(common.keys() - {*rewritten})}
    answers, news = _by_key(there), _by_key(here)
    # Samples of a history without id and question have one key.
    sides = {
        key: (news[key], [old] if answer_of(old.record.sample) is None else answers[old.key])
        for key, (old, *_) in both.items()
    }
    states = {key: tuple(_state(side, vacuous) for side in each) for key, each in sides.items()}
    scored = {key: pair for key, pair in both.items() if states[key] == ("counted", "counted")}
    _check_comparable(metric, both, scored, pairs)
    found = [key for key in both if "unscored" not in states[key]]
    known = {pair.old.key for pair in pairs if pair.old is not None and pair.new is not None}
    functions = {function_name(old.test) for old, *_ in common.values()}
    before = dict.fromkeys(it.key for it in there if not functions or function_name(it.test) in functions)
    nowhere = sum(state == ("unscored", "unscored") for state in states.values())
    changes = dict.fromkeys(why for key in found for why in both[key][2].get("rules", ()))
    total = len(before) - nowhere
    return _Paired(
        run=run,
        both={key: each[1] for key, each in sides.items()},
        rewritten=rewritten,
        missed=tuple(key for key in before if key not in known),
        doubts=tuple(_doubts(run, len(rewritten), [*changes], found=len(found), total=total)),
    )


# A record of the baseline, its counterpart now, and why their scores are not compared.
_Pair = tuple[PlacedRecord, PlacedRecord, Mapping[Obstacle, Sequence[str]]]


def _by_key(records: Iterable[PlacedRecord]) -> dict[str, Sequence[PlacedRecord]]:
    """Return the records of each row: one, or one of each of its answers."""
    found: dict[str, dict[int, PlacedRecord]] = {}
    for it in records:
        found.setdefault(it.key, {}).setdefault(it.answer, it)
    return {key: [*each.values()] for key, each in found.items()}


def _groups(rows: Mapping[str, _Sides], rule: ClusterRule) -> dict[str, Hashable | None]:
    """Return the cluster of each row, ``None`` for one that is alone in it."""
    first = ((now[0].record.sample, before[-1].record.sample) for now, before in rows.values())
    news, olds = zip(*first, strict=True) if rows else ((), ())
    found = clusters_of(news, olds, rule=rule)
    sizes = Counter(found)
    return {key: each if sizes[each] > 1 else None for key, each in zip(rows, found, strict=True)}


def _state(side: Sequence[PlacedRecord], vacuous: Vacuous) -> Standing:
    """Return what a row is by its answers: counted where one of them is, else vacuous where one is."""
    states = {standing(it.record, vacuous) for it in side}
    return "counted" if "counted" in states else "vacuous" if "vacuous" in states else "unscored"


def _row(key: str, cluster: Hashable | None, sides: _Sides, value: Callable[[Record], float | None]) -> RowChange:
    """Return a row with those of its records that have a value."""
    now, before = (tuple(it for each in side if (it := value(each.record)) is not None) for side in sides)
    return RowChange(id=key, scores=PairedScores(before, now), cluster=cluster)


def _check_comparable(
    metric: str, both: Mapping[str, _Pair], scored: Mapping[str, _Pair], pairs: Iterable[TestChange]
) -> None:
    ambiguous = {key for key, (*_, obstacles) in both.items() if "ambiguous" in obstacles}
    scores: dict[tuple[bool, str, int], set[Hashable]] = {}
    for pair in pairs:
        for it in filter(None, (pair.old, pair.new)):
            scores.setdefault((it is pair.old, it.key, it.answer), set()).add(score_of(it))
    several = {(is_old, key) for (is_old, key, _), found in scores.items() if len(found) > 1 and key in both}
    ambiguous |= {key for _, key in several}
    for old, new, obstacles in both.values():
        here, there = new.record, old.record
        if "metric" in obstacles and here.better != there.better:
            both_ways = f"{here.better} scores are better here, {there.better} ones there"
            message = f"{metric}: {both_ways}; they are not comparable"
            raise IncomparableError(message, brief=f"takes {there.better} scores for better")
        if "metric" in obstacles:
            nouns = [noun_for(1, record.noun) for record in (here, there)]
            message = (
                f"{metric}: its verdicts are on the {nouns[0]} here, on the {nouns[1]} there, so these are two "
                "metrics of one name; score both with this version"
            )
            raise IncomparableError(message, brief=f"has verdicts on the {nouns[1]}")
    if ambiguous:
        keys = ", ".join(map(repr, sorted(ambiguous)[:3]))
        message = f"{metric}: {keys} has several different scores in one run; give each its own id"
        if any(not is_old for is_old, _ in several):
            raise ValueError(message)
        raise IncomparableError(message, brief=f"has several different scores of {keys}")
    for old, new, obstacles in scored.values():
        if "judge" in obstacles:
            message = (
                f"{metric}: scores of different judges are not comparable, and these are of {new.record.judge!r}, "
                f"those before of {old.record.judge!r}; score both with one judge"
            )
            raise OtherJudgesError(message, brief=f"was judged by {named(old.record.judge or '')}")


def _doubts(run: EarlierRun, rewritten: int, changes: Sequence[str], *, found: int, total: int) -> Iterator[str]:
    """Yield why a comparison decides nothing: of ``total`` rows of a run before ``found`` are scored in both.

    The texts of a run with a name stand behind it.
    """
    if run.partial:
        yield f"{'is' if run.name else 'the baseline is'} not whole ({run.partial})"
    if found < LEAST_SHARE * total:
        others = f", {rewritten} ask another question under the same id" if rewritten else ""
        which = f"{found} of the {counted(total, 'row')} of the baseline can be compared"
        if run.name:
            which = f"has {counted(total, 'row')}, of which {found} can be compared"
        yield f"{which}, fewer than 80 %{others}"
    elif found < FEWEST:
        counts = f"{counted(found, 'row')} {agreeing(found, 'is')} compared, and {FEWEST} are the least"
        yield f"has few rows: {counts}" if run.name else counts
    yield from (f"ran before {why}" if run.name else f"{why} since the baseline" for why in changes)


def runs_text(runs: Sequence[EarlierRun]) -> str:
    """Return how many runs of what these are, and from when; "" for one without a name."""
    if not all(run.name for run in runs) or not runs:
        return ""
    branches, days = {run.branch for run in runs}, [run.day for run in runs]
    text = counted(len(runs), "run")
    if len(branches) == 1 and (branch := branches.pop()):
        text += f" of {named(branch)}"
    return ", ".join([text, *([" to ".join(dict.fromkeys((days[0], days[-1])))] if all(days) else [])])


def difference_of(
    rows: Sequence[RowChange], scale: tuple[float, float] | None, unit: str = "", *, confidence: float = 0.95
) -> Difference:
    """Return the figures over pairs of rows; a ``scale`` that is not known is 0 to 1 for scores in it without unit."""
    before, after = [row.before for row in rows], [row.after for row in rows]
    joined = [row.cluster for row in rows]
    apart = without_shared(joined)
    known = known_scale(scale)
    low, high = known or (0.0, 1.0)
    bounds = (low, high) if (known or not unit) and all(low <= score <= high for score in (*before, *after)) else None
    several = any(len(row.scores.before) > 1 or len(row.scores.now) > 1 for row in rows)
    given: Any = {"confidence": confidence, "bounds": bounds, "of_means": several}
    found = paired_difference(before, after, clusters=whole_clusters(apart), **given)
    if joined == apart or several:
        return found
    chance = flip_p([row.change for row in rows], clusters=whole_clusters(joined))
    return replace(found, flip_p=chance, mcnemar_p=None)


def compare_tables(
    here: Mapping[str, Sequence[PlacedRecord]],
    *there: EarlierRun,
    confidence: float = 0.95,
    vacuous: Vacuous = "skip",
    clusters: ClusterRule = "passages",
) -> TableComparison:
    """Return what changed from the runs before to ``here`` in every metric that both have, as `compare_metric`."""
    compare = functools.partial(compare_metric, confidence=confidence, vacuous=vacuous, clusters=clusters)
    known = dict.fromkeys(metric for run in there for metric in run.records)
    return TableComparison(
        metrics={metric: compare(metric, rows, *there) for metric, rows in here.items() if metric in known},
        only_here=tuple(metric for metric in here if metric not in known),
        only_there=tuple(metric for metric in known if metric not in here),
    )
