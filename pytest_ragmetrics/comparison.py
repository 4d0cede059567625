"""Two tables compared: their scores paired by sample, what became better or worse, and the statistics of each metric.

Suites, tables, gates and ``assert_not_worse`` use it; ``run_comparison`` compares what two pytest runs recorded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pytest_ragmetrics.explain.phrases import (
    NOTHING_TO_CHECK,
    SHOWN,
    and_more,
    checked_text,
    format_apart,
    format_interval,
    named,
)
from pytest_ragmetrics.records import Record
from pytest_ragmetrics.result import NOUN, REUSED, Direction
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.stats.comparison import Difference, paired_difference
from pytest_ragmetrics.stats.intervals import whole_clusters
from pytest_ragmetrics.stats.regression import Drop, drops
from pytest_ragmetrics.stats.scores import Standing, Vacuous, check_vacuous, standing
from pytest_ragmetrics.text.characters import printable

# What differs by less is the same score, computed in another order.
_ROUNDING = 1e-9
# A smaller p is shown as p<0.001.
_SURE = 0.001
#: What to do where two runs have no sample in common.
NO_PAIR = "nothing can be compared: give the samples ids that stay the same from run to run"

Kind = Literal["unscored", "worse", "same", "better", "nothing to check", "scored again", "new", "gone"]
#: Every kind, in the order in which changes are listed.
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnEntry:
    """One row of a column: its score (``None`` where it is unscored), who judged it, and the cluster it belongs to.

    ``vacuous`` says that there was nothing to check.
    """

    score: float | None
    judge: str | None = None
    cluster: Hashable | None = field(default=None, compare=False)
    vacuous: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """The entries of one metric by the key of their sample; ``ambiguous`` keys belong to several different samples.

    ``noun`` names what one of its verdicts is about, ``scale`` the lowest and the highest score where they are known.
    """

    metric: str
    better: Direction
    entries: Mapping[str, ColumnEntry]
    ambiguous: frozenset[str] = frozenset()
    noun: str = NOUN
    scale: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RowChange:
    """One row scored in both runs, and the cluster it belongs to."""

    id: str
    before: float
    after: float
    cluster: Hashable | None = None

    @property
    def change(self) -> float:
        """How much the score rose."""
        return self.after - self.before


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricComparison:
    """One metric in two runs, this one and one before.

    ``rows`` are those scored in both, by id, and ``difference`` has the figures over them, ``None`` if there are none.
    The other fields are ids: of rows that only one run has, and of rows of both that are unscored in one, or had
    nothing to check (``vacuous``). ``judges`` are those of the compared scores, as :func:`compare_columns` refuses to
    compare different ones.
    """

    metric: str
    better: Direction
    judges: tuple[str, ...]
    difference: Difference | None
    rows: tuple[RowChange, ...]
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]
    unscored_here: tuple[str, ...]
    unscored_there: tuple[str, ...]
    vacuous_here: tuple[str, ...] = ()
    vacuous_there: tuple[str, ...] = ()

    @property
    def regressed(self) -> tuple[RowChange, ...]:
        """The rows that became worse, the largest change first."""
        return self._changed("worse")

    @property
    def improved(self) -> tuple[RowChange, ...]:
        """The rows that became better, the largest change first."""
        return self._changed("better")

    @property
    def changed(self) -> frozenset[str]:
        """The ids of the rows that became worse or better."""
        return frozenset(row.id for row in self.rows if kind_of(row.before, row.after, self.better) != "same")

    @property
    def unchanged(self) -> tuple[RowChange, ...]:
        """The rows whose score is the same."""
        return tuple(row for row in self.rows if kind_of(row.before, row.after, self.better) == "same")

    def _changed(self, kind: Kind) -> tuple[RowChange, ...]:
        changed = (row for row in self.rows if kind_of(row.before, row.after, self.better) == kind)
        return tuple(sorted(changed, key=lambda row: -abs(row.change)))

    def lines(self) -> list[str]:
        """Return the figures in a line, then the rows by how they changed, the largest change first."""
        lines = [self._figures()]
        if self.judges:
            lines.append(f"  judge: {printable(', '.join(self.judges))}")
        for title, rows in (("regressed", self.regressed), ("improved", self.improved)):
            lines.append(f"  {title}: {len(rows)}")
            for row in rows[:SHOWN]:
                before, after = format_apart(row.before, row.after)
                lines.append(f"    {row.change:+.2f}  {before} -> {after}  {named(row.id)}")
            lines += and_more(len(rows), indent="    ")
        lines.append(f"  unchanged: {len(self.unchanged)}")
        for title, ids in (
            ("only here", self.only_here),
            ("only there", self.only_there),
            ("unscored here", self.unscored_here),
            ("unscored there", self.unscored_there),
            (f"{NOTHING_TO_CHECK} here", self.vacuous_here),
            (f"{NOTHING_TO_CHECK} there", self.vacuous_there),
        ):
            if ids:
                more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
                lines.append(f"  {title}: {len(ids)} ({', '.join(map(named, ids[:SHOWN]))}{more})")
        return lines

    def _figures(self) -> str:
        found = self.difference
        name = printable(self.metric) + (" (lower is better)" if self.better == "lower" else "")
        if found is None:
            left_out = len({*self.vacuous_here, *self.vacuous_there})
            none = checked_text(0, left_out) if left_out else "no row has a score"
            return f"{name}: {none} in both runs"
        before, after = format_apart(found.before, found.after)
        figures = [format_interval(found.interval, sign="+"), f"n={found.n}"]
        chances = (("t test", found.t_p), ("sign flips", found.flip_p), ("McNemar", found.mcnemar_p))
        figures += [f"{test} p{probability_text(p)}" for test, p in chances if p is not None]
        return f"{name} {before} -> {after}: {found.interval.estimate:+.3f} ({', '.join(figures)})"

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, kw_only=True, slots=True)
class TableComparison:
    """Two tables compared metric by metric; ``only_here`` and ``only_there`` are metrics that one of them lacks.

    ``drops`` says by metric whether its scores dropped, where :func:`assert_no_regression` asked.
    """

    metrics: Mapping[str, MetricComparison]
    only_here: tuple[str, ...] = ()
    only_there: tuple[str, ...] = ()
    drops: Mapping[str, Drop] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> MetricComparison:
        """Return the comparison of a metric; raise ``KeyError`` for one that not both tables have."""
        if metric not in self.metrics:
            raise KeyError(f"{metric!r} was not compared; there are {', '.join(self.metrics)}")
        return self.metrics[metric]

    def __str__(self) -> str:
        lines = []
        for metric, comparison in self.metrics.items():
            figures, *rest = comparison.lines()
            lines += [figures, *([drop_text(self.drops[metric])] if metric in self.drops else []), *rest]
        for place, names in (("here", self.only_here), ("there", self.only_there)):
            lines += [f"only evaluated {place}: {', '.join(names)}"] if names else []
        return "\n".join(lines)


def find_drops(comparison: TableComparison, *, alpha: float = 0.05) -> dict[str, Drop]:
    """Return by metric whether the scores dropped, of all metrics of a comparison together.

    Raises ``ValueError`` for a metric without a pair, or an ``alpha`` that is not between 0 and 1.
    """
    changes, clusters, spans = {}, {}, {}
    for metric, compared in comparison.metrics.items():
        sign = -1.0 if compared.better == "lower" else 1.0
        changes[metric] = [sign * row.change for row in compared.rows]
        clusters[metric] = whole_clusters(row.cluster for row in compared.rows)
        bounds = None if compared.difference is None else compared.difference.bounds
        spans[metric] = math.inf if bounds is None else bounds[1]
    return drops(changes, clusters=clusters, alpha=alpha, spans=spans)


def drop_text(drop: Drop) -> str:
    """Return the line that says whether a drop is shown, and else the smallest that would have been.

    >>> drop_text(Drop(n=200, changed=10, p=0.62, adjusted_p=0.62, alpha=0.05, smallest=0.065))
    '  no drop is shown (p=0.620); 200 rows like these show one of 0.065 or more in at least 80 % of runs'
    """
    p = f"p{probability_text(drop.p)}"
    if drop.adjusted_p != drop.p and (drop.adjusted_p < 1.0 or drop.p <= drop.alpha):
        p += f", of all metrics together p{probability_text(drop.adjusted_p)}"
    if drop.shown:
        return f"  the scores dropped ({p})"
    rows = f"{drop.n} row{'' if drop.n == 1 else 's'} like these"
    if drop.smallest is None:
        return f"  no drop is shown ({p}); {rows} can hardly show one"
    return f"  no drop is shown ({p}); {rows} show one of {drop.smallest:.3g} or more in at least 80 % of runs"


def probability_text(p: float) -> str:
    """Return a p-value with its sign.

    >>> probability_text(0.03125), probability_text(0.0001)
    ('=0.031', '<0.001')
    """
    return "<0.001" if p < _SURE else f"={p:.3f}"


def sample_key(sample: Mapping[str, Any]) -> str:
    """Return what a sample is known by in another run: its id, else its question, else a digest of its content.

    ``sample`` is what :meth:`Sample.to_mapping` returns. The answer is no part of it where there is a question: it is
    what changes from run to run.

    >>> sample_key({"id": "q1", "user_input": "Why?"}), sample_key({"user_input": "Why?", "response": "So."})
    ('q1', 'Why?')
    """
    for name in ("id", "user_input"):
        if isinstance(sample.get(name), str) and sample[name].strip():
            return str(sample[name])
    text = json.dumps(sample, sort_keys=True, default=str)
    return f"row-{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:10]}"


def key_of(sample: Sample) -> str:
    """Return the :func:`sample_key` of a sample."""
    known = {"id": sample.id, "user_input": sample.user_input}
    # Its whole content is asked for only where there is nothing else: there may be very many of them.
    return sample_key(known if any((text or "").strip() for text in known.values()) else sample.to_mapping())


def cluster_of(sample: Sample) -> str | None:
    """Return the cluster that ``metadata["cluster"]`` puts a sample into, if it does.

    >>> cluster_of(Sample(metadata={"cluster": "manual.pdf"}))
    "'manual.pdf'"
    """
    cluster = sample.metadata.get("cluster")
    return None if cluster is None else repr(cluster)


def columns_of(records: Iterable[Record]) -> dict[str, Column]:
    """Return the scores of every metric among records by the key of their sample."""
    found: dict[str, list[tuple[str, ColumnEntry]]] = {}
    better: dict[str, Direction] = {}
    nouns: dict[str, str] = {}
    for record in records:
        better[record.metric] = record.better
        if record.score is not None:
            nouns.setdefault(record.metric, record.noun)
        entry = ColumnEntry(
            score=record.score, judge=record.judge, cluster=cluster_of(record.sample), vacuous=record.vacuous
        )
        found.setdefault(record.metric, []).append((key_of(record.sample), entry))
    return {
        metric: column_of(metric, better[metric], entries, nouns.get(metric, NOUN)) for metric, entries in found.items()
    }


def column_of(metric: str, better: Direction, entries: Iterable[tuple[str, ColumnEntry]], noun: str) -> Column:
    """Return the entries of a metric as a column; a key that has several different ones is ambiguous."""
    first: dict[str, ColumnEntry] = {}
    ambiguous = set()
    for key, entry in entries:
        if first.setdefault(key, entry) != entry:
            ambiguous.add(key)
    return Column(metric=metric, better=better, entries=first, ambiguous=frozenset(ambiguous), noun=noun)


def compare_columns(
    here: Column, there: Column, *, confidence: float = 0.95, vacuous: Vacuous = "skip"
) -> MetricComparison:
    """Return what changed from ``there``, the run before, to ``here``; the order of the rows does not matter.

    A row with nothing to check in one of the runs became neither better nor worse and is no pair, unless ``vacuous``
    scores "count".

    Raises ``ValueError`` where different judges scored a row, naming both, where a row of one run fits several of the
    other, and where the metric is another one there, or the runs do not agree on which scores are the better ones.
    """
    both = sorted(here.entries.keys() & there.entries.keys())
    _check_comparable(here, there, both)
    chosen = check_vacuous(vacuous)
    here_by, there_by = ({key: standing(column.entries[key], chosen) for key in both} for column in (here, there))
    scored = [key for key in both if here_by[key] == there_by[key] == "counted"]
    pairs = [(there.entries[key], here.entries[key]) for key in scored]
    judges = _one_judge_each(here.metric, pairs)
    rows = tuple(
        RowChange(id=key, before=before.score or 0.0, after=after.score or 0.0, cluster=after.cluster)
        for key, (before, after) in zip(scored, pairs, strict=True)
    )
    return MetricComparison(
        metric=here.metric,
        better=here.better,
        judges=judges,
        difference=_difference(rows, confidence, here.scale) if rows else None,
        rows=rows,
        only_here=tuple(key for key in here.entries if key not in there.entries),
        only_there=tuple(key for key in there.entries if key not in here.entries),
        unscored_here=_of("unscored", here_by),
        unscored_there=_of("unscored", there_by),
        vacuous_here=_of("vacuous", here_by),
        vacuous_there=_of("vacuous", there_by),
    )


def _check_comparable(here: Column, there: Column, both: Sequence[str]) -> None:
    if here.better != there.better:
        msg = f"{here.metric}: {here.better} scores are better here, {there.better} ones there; they are not comparable"
        raise ValueError(msg)
    if is_redefined(here, there):
        raise ValueError(
            f"{here.metric}: its verdicts are on the {here.noun} here, on the {there.noun} there, so these are two "
            "metrics of one name; score both with this version"
        )
    if ambiguous := sorted((here.ambiguous | there.ambiguous).intersection(both)):
        keys = ", ".join(map(repr, ambiguous[:3]))
        raise ValueError(f"{here.metric}: {keys} has several different scores in one run; give each its own id")


def is_redefined(here: Column | Record, there: Column | Record) -> bool:
    """Tell whether a metric of one name is another one in the other run: what is good of it differs, or what it is."""
    return here.better != there.better or (here.metric in REUSED and here.noun != there.noun)


def _of(wanted: Standing, found: Mapping[str, Standing]) -> tuple[str, ...]:
    return tuple(key for key, each in found.items() if each == wanted)


def _difference(rows: Sequence[RowChange], confidence: float, scale: tuple[float, float] | None) -> Difference:
    before, after = [row.before for row in rows], [row.after for row in rows]
    clusters = whole_clusters(row.cluster for row in rows)
    low, high = scale or (0.0, 1.0)
    bounds = (low, high) if all(low <= score <= high for score in (*before, *after)) else None
    return paired_difference(before, after, confidence=confidence, clusters=clusters, bounds=bounds)


def compare_tables(
    here: Mapping[str, Column],
    there: Mapping[str, Column],
    *,
    confidence: float = 0.95,
    vacuous: Vacuous = "skip",
) -> TableComparison:
    """Return what changed from ``there`` to ``here`` in every metric that both have; raises as `compare_columns`."""
    return TableComparison(
        metrics={
            metric: compare_columns(column, there[metric], confidence=confidence, vacuous=vacuous)
            for metric, column in here.items()
            if metric in there
        },
        only_here=tuple(metric for metric in here if metric not in there),
        only_there=tuple(metric for metric in there if metric not in here),
    )


def _one_judge_each(metric: str, pairs: Iterable[tuple[ColumnEntry, ColumnEntry]]) -> tuple[str, ...]:
    """Return the judges; raise ``ValueError`` where those of a pair differ. An unknown judge may be any."""
    judges: set[str] = set()
    for before, after in pairs:
        if before.judge is not None and after.judge is not None and before.judge != after.judge:
            raise ValueError(
                f"{metric}: scores of different judges are not comparable, and these are of {after.judge!r}, "
                f"those before of {before.judge!r}; score both with one judge"
            )
        judges |= {judge for judge in (before.judge, after.judge) if judge is not None}
    return tuple(sorted(judges))


def gain_of(before: float | None, after: float | None, better: Direction) -> float | None:
    """Return how much better a score became; ``None`` without both."""
    if before is None or after is None:
        return None
    return before - after if better == "lower" else after - before


def kind_of(before: float | None, after: float | None, better: Direction) -> Kind:
    """Return what became of a score, ``None`` for one that is unscored."""
    gain = gain_of(before, after, better)
    if gain is None:
        return "same" if before is after else "unscored" if after is None else "scored again"
    return "same" if abs(gain) <= _ROUNDING else "better" if gain > 0 else "worse"
