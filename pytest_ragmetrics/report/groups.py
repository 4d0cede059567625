"""Where tests fail: the groups of a metadata key against each other, and each against the baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from pytest_ragmetrics.core.sample import Sample, answer_of
from pytest_ragmetrics.report.figures import Axis, change_text
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
    change: str
    standing: str
    failing: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupTable:
    """The groups of a key by one figure, the worst first; ``more`` groups are left out."""

    label: str
    share: bool
    axis: Axis
    rows: tuple[GroupRow, ...]
    more: int
    unit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouping:
    """All tables of a metadata key; ``groups`` are its tests by name."""

    key: str
    tables: tuple[GroupTable, ...]
    groups: Mapping[str, Sequence[PairedTest]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Figure:
    """What a table compares: its ``value`` of a test, ``None`` where it has none; by its ``sign`` more is better."""

    label: str
    share: bool
    sign: float
    value: Callable[[TestRecord], float | None]
    unit: str = ""


def metadata_of(test: TestRecord) -> dict[str, str]:
    """Return the short texts, whole numbers, yes and no among the metadata of a test's first sample, as texts.

    The number of an answer is left out, by which nobody groups, and a cluster that another key names too.
    """
    sample = test.records[0].sample if test.records else Sample()
    metadata = {key: it for key, it in sample.metadata.items() if key != "answer" or answer_of(sample) is None}
    texts = {key: ("yes" if it else "no") if isinstance(it, bool) else it for key, it in metadata.items()}
    shown = {key: str(it) for key, it in texts.items() if isinstance(it, (str, int)) and 0 < len(str(it)) <= _LENGTH}
    if shown.get("cluster") in [it for key, it in shown.items() if key != "cluster"]:
        del shown["cluster"]
    return shown


def grouping_keys(tests: Iterable[TestRecord]) -> tuple[str, ...]:
    """Return the keys of metadata by which tests can be grouped: of few values, each of several tests on average."""
    values: dict[str, Counter[str]] = {}
    for test in tests:
        for key, text in metadata_of(test).items():
            values.setdefault(key, Counter())[text] += 1
    groups = {key: (len(found), found.total()) for key, found in values.items()}
    return tuple(sorted(key for key, (number, n) in groups.items() if 1 < number <= min(_GROUPS, n // _SIZE)))


def build_groupings(pairs: Sequence[PairedTest]) -> tuple[Grouping, ...]:
    """Return the groupings by each key that groups tests, first the one whose pass rates lie apart most."""
    known = [pair for pair in pairs if pair.kind != "skipped"]
    found: list[tuple[float, str, dict[str, list[PairedTest]]]] = []
    for key in grouping_keys(pair.test for pair in pairs):
        groups: dict[str, list[PairedTest]] = {}
        for pair in known:
            if (name := metadata_of(pair.test).get(key)) is not None:
                groups.setdefault(name, []).append(pair)
        if len(groups) > 1:
            shares = [fmean(map(is_failing, members)) for members in groups.values()]
            found.append((max(shares) - min(shares), key, groups))
    figures = [_Figure(label="tests that pass", share=True, sign=1.0, value=_passes), *_metric_figures(pairs)]
    chosen = sorted(found, key=lambda it: (-it[0], it[1]))[:_KEYS]
    return tuple(
        Grouping(key=key, tables=tuple(table for figure in figures if (table := _table(figure, groups))), groups=groups)
        for _, key, groups in chosen
    )


def is_failing(pair: PairedTest) -> bool:
    """Tell whether a test newly fails, or fails where there is no baseline."""
    return pair.kind in FAILING


def _passes(test: TestRecord) -> float | None:
    status = status_of(test)
    return None if status == "skipped" else float(status not in WRONG)


def _metric_figures(pairs: Sequence[PairedTest]) -> list[_Figure]:
    """Return the means of the metrics that most tests failed by."""
    failing: Counter[str] = Counter()
    signs: dict[str, float] = {}
    units: dict[str, str] = {}
    for pair in pairs:
        for record in pair.test.records:
            failing[record.metric] += record.outcome == "failed"
            units[record.metric] = units.get(record.metric) or record.unit
            signs[record.metric] = -1.0 if record.better == "lower" else 1.0
    names = sorted(failing, key=lambda name: (-failing[name], name))[:_METRICS]
    return [
        _Figure(label=f"mean {it}", share=False, sign=signs[it], value=partial(_mean, it), unit=units[it])
        for it in names
    ]


def _mean(metric: str, test: TestRecord) -> float | None:
    scores = score_set(record for record in test.records if record.metric == metric).scores
    return fmean(scores) if scores else None


# The value of each test of a group by a figure, the one before, and its cluster.
_Values = Sequence[tuple[float, float | None, Hashable | None]]


def _table(figure: _Figure, groups: Mapping[str, Sequence[PairedTest]]) -> GroupTable | None:
    """Return the groups, those that lost most first, then those of the worst values; ``None`` without a value."""
    found: dict[str, _Values] = {
        name: [
            (
                value,
                None if pair.before is None else figure.value(pair.before),
                cluster_of(pair.test.records[0].sample) if pair.test.records else None,
            )
            for pair in pairs
            if (value := figure.value(pair.test)) is not None
        ]
        for name, pairs in groups.items()
    }

    def goodness(name: str) -> tuple[float, float, str]:
        gains = [gain for gain, _ in _gains(figure, found[name])]
        mean = fmean(value for value, _, _ in found[name])
        return fmean(gains) if gains else 0.0, figure.sign * mean, name

    names = sorted((name for name, values in found.items() if values), key=goodness)
    rows = tuple(_row(figure, name, found[name], groups[name]) for name in names[:_ROWS])
    axis = Axis.around(n for row in rows for n in (row.value, row.low, row.high, row.before) if n is not None)
    more = len(names) - len(rows)
    table = GroupTable(label=figure.label, share=figure.share, axis=axis, rows=rows, more=more, unit=figure.unit)
    return table if rows else None


def _gains(figure: _Figure, values: _Values) -> list[tuple[float, Hashable | None]]:
    """Return how much better the tests are than before, with their clusters."""
    return [(figure.sign * (value - before), cluster) for value, before, cluster in values if before is not None]


def _row(figure: _Figure, name: str, values: _Values, pairs: Iterable[PairedTest]) -> GroupRow:
    now, gains = [value for value, _, _ in values], _gains(figure, values)
    befores = [before for _, before, _ in values if before is not None]
    inside = not figure.unit and all(0.0 <= value <= 1.0 for value in (*now, *befores))
    interval = _interval([(value, cluster) for value, _, cluster in values], (0.0, 1.0) if inside else None)
    standing = change = ""
    if any(abs(gain) > ROUNDING for gain, _ in gains):
        found = _interval(gains, (-1.0, 1.0) if inside else None)
        standing = "" if found is None else "worse" if found.high < 0 else "better" if found.low > 0 else ""
    if gains:
        mean = figure.sign * fmean(gain for gain, _ in gains)
        change = change_text(mean, share=figure.share, points="", unit=figure.unit)
    return GroupRow(
        name=name,
        n=len(values),
        value=fmean(now),
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        before=fmean(befores) if befores else None,
        change=change,
        standing=standing,
        failing=sum(map(is_failing, pairs)),
    )


def _interval(values: Sequence[tuple[float, Hashable | None]], bounds: tuple[float, float] | None) -> Interval | None:
    """Return the interval of the mean of values with their clusters, ``None`` where they say nothing of it."""
    clusters = whole_clusters(cluster for _, cluster in values)
    found = mean_interval([value for value, _ in values], clusters=clusters, bounds=bounds)
    return found if math.isfinite(found.half_width) else None
