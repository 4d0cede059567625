"""The scores of one metric over two runs: paired row by row, and what became better or worse."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics.explain import explain_changes
from pytest_ragmetrics.result import Direction
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.stats.comparison import Difference, paired_difference
from pytest_ragmetrics.stats.intervals import whole_clusters

# What differs by less is the same score, computed in another order.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnEntry:
    """One row of a column: its score (``None`` where it is unscored), who judged it, and the cluster it belongs to."""

    score: float | None
    judge: str | None = None
    cluster: Hashable | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """The entries of one metric by the key of their sample; ``ambiguous`` keys stand for several different ones."""

    metric: str
    better: Direction
    entries: Mapping[str, ColumnEntry]
    ambiguous: frozenset[str] = frozenset()


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
    The other fields are ids: of rows that only one run has, and of rows of both that are unscored in one. ``judges``
    are those of the compared scores, as :func:`compare_columns` refuses to compare different ones.
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

    @property
    def regressed(self) -> tuple[RowChange, ...]:
        """The rows that became worse, the largest change first."""
        return self._changed(-1.0 if self.better == "higher" else 1.0)

    @property
    def improved(self) -> tuple[RowChange, ...]:
        """The rows that became better, the largest change first."""
        return self._changed(1.0 if self.better == "higher" else -1.0)

    @property
    def unchanged(self) -> tuple[RowChange, ...]:
        """The rows whose score is the same."""
        return tuple(row for row in self.rows if abs(row.change) <= _ROUNDING)

    def _changed(self, sign: float) -> tuple[RowChange, ...]:
        changed = (row for row in self.rows if sign * row.change > _ROUNDING)
        return tuple(sorted(changed, key=lambda row: -abs(row.change)))

    def __str__(self) -> str:
        return "\n".join(explain_changes(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class TableComparison:
    """Two tables compared metric by metric; ``only_here`` and ``only_there`` are metrics that one of them lacks."""

    metrics: Mapping[str, MetricComparison]
    only_here: tuple[str, ...] = ()
    only_there: tuple[str, ...] = ()

    def __getitem__(self, metric: str) -> MetricComparison:
        """Return the comparison of a metric; raise ``KeyError`` for one that not both tables have."""
        if metric not in self.metrics:
            msg = f"{metric!r} was not compared; there are {', '.join(self.metrics)}"
            raise KeyError(msg)
        return self.metrics[metric]

    def __str__(self) -> str:
        lines = [str(comparison) for comparison in self.metrics.values()]
        for place, names in (("here", self.only_here), ("there", self.only_there)):
            lines += [f"only evaluated {place}: {', '.join(names)}"] if names else []
        return "\n".join(lines)


def sample_key(sample: Mapping[str, Any]) -> str:
    """Return what a sample is known by in another run: its id, else its question, else a digest of its content.

    ``sample`` is what :meth:`Sample.to_mapping` returns. The answer is no part of it where there is a question: it is
    what changes from run to run.

    >>> sample_key({"id": "q1", "user_input": "Why?"}), sample_key({"user_input": "Why?", "response": "So."})
    ('q1', 'Why?')
    """
    for field in ("id", "user_input"):
        if isinstance(sample.get(field), str) and sample[field].strip():
            return str(sample[field])
    text = json.dumps(sample, sort_keys=True, default=str)
    return f"row-{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:10]}"


def key_of(sample: Sample) -> str:
    """Return the :func:`sample_key` of a sample."""
    known = {"id": sample.id, "user_input": sample.user_input}
    # Its whole content is asked for only where there is nothing else: there may be very many of them.
    return sample_key(known if any((text or "").strip() for text in known.values()) else sample.to_mapping())


def compare_columns(here: Column, there: Column, *, confidence: float = 0.95) -> MetricComparison:
    """Return what changed from ``there``, the run before, to ``here``; the order of the rows does not matter.

    Raises ``ValueError`` where different judges scored a row, naming both, where a row of one run fits several of the
    other, and where the runs do not agree on which scores are the better ones.
    """
    if here.better != there.better:
        msg = f"{here.metric}: {here.better} scores are better here, {there.better} ones there; they are not comparable"
        raise ValueError(msg)
    both = sorted(here.entries.keys() & there.entries.keys())
    _check_unambiguous(here.metric, sorted((here.ambiguous | there.ambiguous) & set(both)))
    unscored_here = tuple(key for key in both if here.entries[key].score is None)
    unscored_there = tuple(key for key in both if there.entries[key].score is None)
    scored = [key for key in both if key not in {*unscored_here, *unscored_there}]
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
        difference=_difference(rows, confidence) if rows else None,
        rows=rows,
        only_here=tuple(key for key in here.entries if key not in there.entries),
        only_there=tuple(key for key in there.entries if key not in here.entries),
        unscored_here=unscored_here,
        unscored_there=unscored_there,
    )


def _difference(rows: Sequence[RowChange], confidence: float) -> Difference:
    before, after = [row.before for row in rows], [row.after for row in rows]
    clusters = whole_clusters(row.cluster for row in rows)
    bounds = (0.0, 1.0) if all(0.0 <= score <= 1.0 for score in (*before, *after)) else None
    return paired_difference(before, after, confidence=confidence, clusters=clusters, bounds=bounds)


def _check_unambiguous(metric: str, keys: Sequence[str]) -> None:
    if keys:
        msg = (
            f"{metric}: {', '.join(map(repr, keys[:3]))} has several different scores in one run; give each its own id"
        )
        raise ValueError(msg)


def _one_judge_each(metric: str, pairs: Iterable[tuple[ColumnEntry, ColumnEntry]]) -> tuple[str, ...]:
    """Return the judges of pairs; one that is not known may be any."""
    judges: set[str] = set()
    for before, after in pairs:
        if before.judge is not None and after.judge is not None and before.judge != after.judge:
            msg = (
                f"{metric}: scores of different judges are not comparable, and these are of {after.judge!r}, "
                f"those before of {before.judge!r}; score both with one judge"
            )
            raise ValueError(msg)
        judges |= {judge for judge in (before.judge, after.judge) if judge is not None}
    return tuple(sorted(judges))
