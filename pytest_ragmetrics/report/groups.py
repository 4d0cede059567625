"""Where tests fail: the groups of a metadata key against each other, and each against the baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.report.figures import Axis, change_text, value_text
from pytest_ragmetrics.report.outcomes import PairedTest, TestKind
from pytest_ragmetrics.runs.compare import cluster_of
from pytest_ragmetrics.runs.records import TestRecord
from pytest_ragmetrics.runs.wording.runs import WRONG, status_of
from pytest_ragmetrics.stats.intervals import Interval, mean_interval, whole_clusters
from pytest_ragmetrics.stats.scores import ROUNDING, score_set

#: The key of the metadata that names who owns a row.
OWNER = "owner"
#: Tests are grouped by metadata of at most so many values, of so many tests each on average, and not too long ones.
_GROUPS, _SIZE, _LENGTH = 50, 2, 60
#: How many keys and metrics there are tables of, and how many groups a table shows.
_KEYS, _METRICS, _ROWS = 5, 4, 15
#: What a reader looks for first: the tests that newly fail, without a baseline those that fail.
FAILING: tuple[TestKind, ...] = ("newly fails", "fails")


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRow:
    """A group of ``n`` tests: its value now with the 95 % interval and before, and how many newly fail (or fail).

    ``standing`` is "worse" or "better" where the interval of the paired differences excludes zero, else "".
    """

    name: str
    n: int
    value: float
    low: float | None
    high: float | None
    before: float | None
    shown: str
    change: str
    standing: str
    failing: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupTable:
    """The groups of a key by one figure, the worst first; ``more`` groups are left out."""

    label: str
    share: bool
    axis: Axis
    low: str
    high: str
    rows: tuple[GroupRow, ...]
    more: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouping:
    """All tables of a metadata key; ``groups`` are its tests by name."""

    key: str
    tables: tuple[GroupTable, ...]
    groups: Mapping[str, Sequence[PairedTest]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Figure:
    """What a table compares: its ``value`` of a test, ``None`` where it has none."""

    label: str
    share: bool
    better: Direction
    value: Callable[[TestRecord], float | None]


def metadata_of(test: TestRecord) -> dict[str, str]:
    """Return the short texts, whole numbers, yes and no among the metadata of a test's first sample, as texts."""
    metadata = test.records[0].sample.metadata if test.records else {}
    texts = {key: ("yes" if it else "no") if isinstance(it, bool) else it for key, it in metadata.items()}
    return {key: str(it) for key, it in texts.items() if isinstance(it, (str, int)) and 0 < len(str(it)) <= _LENGTH}


def grouping_keys(tests: Iterable[TestRecord]) -> tuple[str, ...]:
    """Return the keys of metadata by which tests can be grouped: of few values, each of several tests on average."""
    values: dict[str, Counter[str]] = {}
    for test in tests:
        for key, text in metadata_of(test).items():
            values.setdefault(key, Counter())[text] += 1
    groups = {key: (len(found), found.total()) for key, found in values.items()}
    return tuple(sorted(key for key, (number, n) in groups.items() if 1 < number <= min(_GROUPS, n // _SIZE)))


def build_groupings(pairs: Sequence[PairedTest]) -> tuple[Grouping, ...]:
    """Return the groupings by each key that groups tests, first the one whose groups fail most unevenly."""
    known = [pair for pair in pairs if pair.kind != "skipped"]
    found: list[tuple[float, str, dict[str, list[PairedTest]]]] = []
    for key in grouping_keys(pair.test for pair in pairs):
        groups: dict[str, list[PairedTest]] = {}
        for pair in known:
            if (name := metadata_of(pair.test).get(key)) is not None:
                groups.setdefault(name, []).append(pair)
        if len(groups) > 1:
            found.append((_unevenness(groups), key, groups))
    figures = [_PASSING, *_metric_figures(pairs)]
    chosen = sorted(found, key=lambda it: (-it[0], it[1]))[:_KEYS]
    return tuple(
        Grouping(key=key, tables=tuple(table for figure in figures if (table := _table(figure, groups))), groups=groups)
        for _, key, groups in chosen
    )


def is_failing(pair: PairedTest) -> bool:
    """Tell whether a test newly fails, or fails where there is no baseline."""
    return pair.kind in FAILING


def _unevenness(groups: Mapping[str, Sequence[PairedTest]]) -> float:
    """Return the G statistic of failing tests by group, less its mean if they failed by chance."""
    sizes = [(len(pairs), sum(map(is_failing, pairs))) for pairs in groups.values()]
    rate = sum(failing for _, failing in sizes) / sum(n for n, _ in sizes)

    def part(seen: int, expected: float) -> float:
        return 2.0 * seen * math.log(seen / expected) if seen else 0.0

    return sum(part(k, n * rate) + part(n - k, n * (1.0 - rate)) for n, k in sizes) - (len(sizes) - 1)


def _passes(test: TestRecord) -> float | None:
    status = status_of(test)
    return None if status == "skipped" else float(status not in WRONG)


_PASSING = _Figure(label="tests that pass", share=True, better="higher", value=_passes)


def _metric_figures(pairs: Sequence[PairedTest]) -> list[_Figure]:
    """Return the means of the metrics that most tests failed by."""
    failing: Counter[str] = Counter()
    better: dict[str, Direction] = {}
    for pair in pairs:
        for record in pair.test.records:
            failing[record.metric] += record.outcome == "failed"
            better[record.metric] = record.better
    names = sorted(failing, key=lambda name: (-failing[name], name))[:_METRICS]
    return [_Figure(label=f"mean {name}", share=False, better=better[name], value=_mean_of(name)) for name in names]


def _mean_of(metric: str) -> Callable[[TestRecord], float | None]:
    def value(test: TestRecord) -> float | None:
        scores = score_set(record for record in test.records if record.metric == metric).scores
        return fmean(scores) if scores else None

    return value


def _table(figure: _Figure, groups: Mapping[str, Sequence[PairedTest]]) -> GroupTable | None:
    rows = [made for name, pairs in groups.items() if (made := _measured(figure, name, pairs))]
    if not rows:
        return None
    sign = 1.0 if figure.better == "higher" else -1.0
    rows.sort(key=lambda it: (0.0 if it.gain is None else it.gain, sign * fmean(it.values), it.name))
    shown = [_row(figure, row) for row in rows[:_ROWS]]
    ends = (n for row in shown for n in (row.value, row.low, row.high, row.before) if n is not None)
    axis = Axis.around(ends)
    low, high = axis.ends(share=figure.share)
    more = len(rows) - len(shown)
    return GroupTable(
        label=figure.label, share=figure.share, axis=axis, low=low, high=high, rows=tuple(shown), more=more
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Measured:
    """The values of a group by one figure; ``gains`` are those of tests that have one before, positive where better."""

    name: str
    values: Sequence[float]
    clusters: Sequence[Hashable | None]
    befores: Sequence[float]
    gains: Sequence[float]
    paired_clusters: Sequence[Hashable | None]
    failing: int

    @property
    def gain(self) -> float | None:
        return fmean(self.gains) if self.gains else None


def _measured(figure: _Figure, name: str, pairs: Sequence[PairedTest]) -> _Measured | None:
    sign = 1.0 if figure.better == "higher" else -1.0
    known = [(pair, value) for pair in pairs if (value := figure.value(pair.test)) is not None]
    if not known:
        return None
    both = [
        (pair, value, before)
        for pair, value in known
        if pair.before is not None and (before := figure.value(pair.before)) is not None
    ]
    return _Measured(
        name=name,
        values=[value for _, value in known],
        clusters=[_cluster(pair) for pair, _ in known],
        befores=[before for _, _, before in both],
        gains=[sign * (value - before) for _, value, before in both],
        paired_clusters=[_cluster(pair) for pair, _, _ in both],
        failing=sum(map(is_failing, pairs)),
    )


def _cluster(pair: PairedTest) -> Hashable | None:
    return cluster_of(pair.test.records[0].sample) if pair.test.records else None


def _row(figure: _Figure, group: _Measured) -> GroupRow:
    inside = all(0.0 <= value <= 1.0 for value in (*group.values, *group.befores))
    interval = _interval(group.values, group.clusters, (0.0, 1.0) if inside else None)
    value, standing = fmean(group.values), ""
    if any(abs(gain) > ROUNDING for gain in group.gains):
        change = _interval(group.gains, group.paired_clusters, (-1.0, 1.0) if inside else None)
        standing = "" if change is None else "worse" if change.high < 0 else "better" if change.low > 0 else ""
    sign = 1.0 if figure.better == "higher" else -1.0
    return GroupRow(
        name=group.name,
        n=len(group.values),
        value=value,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        before=fmean(group.befores) if group.befores else None,
        shown=value_text(value, share=figure.share),
        change="" if group.gain is None else change_text(sign * group.gain, share=figure.share, unit=""),
        standing=standing,
        failing=group.failing,
    )


def _interval(
    values: Sequence[float], clusters: Sequence[Hashable | None], bounds: tuple[float, float] | None
) -> Interval | None:
    """Return the interval of a mean, ``None`` where the values say nothing of it."""
    found = mean_interval(values, clusters=whole_clusters(clusters), bounds=bounds)
    return found if math.isfinite(found.half_width) else None
