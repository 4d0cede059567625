"""What became better and what worse between two documents: their scores paired, never those of different judges."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pytest_ragmetrics.records import Document, Record
    from pytest_ragmetrics.result import Direction

#: Sameness of scores is that of what is shown of them, not of the last bit of a float.
_TOLERANCE = 1e-9

Kind = Literal["unscored", "worse", "same", "better", "scored again", "new", "gone"]
#: Every kind, in the order in which changes are told.
KINDS: tuple[Kind, ...] = ("unscored", "worse", "same", "better", "scored again", "new", "gone")
_RANKS = {"unscored": 0, "worse": 1, "same": 1, "better": 1, "scored again": 2, "new": 3, "gone": 4}


@dataclass(frozen=True, kw_only=True, slots=True)
class TestChange:
    """One score against its counterpart in the baseline.

    ``id`` and ``number`` name it: the test, and which of the test's records it is (of the baseline's where it is
    gone). ``sample`` is the id of the sample, where it has one. ``before`` and ``after`` are ``None`` where there is no
    score. ``change`` is positive where the score became better, whichever end of the scale is the good one, and
    ``None`` unless there are both scores. ``baseline_id`` is the test in the baseline, another one after a move.
    """

    id: str
    number: int
    metric: str
    kind: Kind
    before: float | None
    after: float | None
    change: float | None
    better: Direction = "higher"
    sample: str | None = None
    baseline_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricChange:
    """One metric in both documents: its means over the ``pairs`` that have both scores, and how many are of a kind.

    The means and their ``change`` (positive where better) are ``None`` without any pair. ``judges`` and
    ``baseline_judges`` are those of the compared scores.
    """

    metric: str
    pairs: int
    before: float | None
    after: float | None
    change: float | None
    better: Direction
    judges: tuple[str, ...]
    baseline_judges: tuple[str, ...]
    counts: Mapping[Kind, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Incomparable:
    """Scores of one metric that were not compared, ``pairs`` of them, because different judges gave them.

    ``None`` is a score that no judge gave.
    """

    metric: str
    judge: str | None
    baseline_judge: str | None
    pairs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunComparison:
    """Two documents against each other; ``changes`` stand worst first, ``metrics`` and ``incomparable`` by name."""

    changes: tuple[TestChange, ...]
    metrics: tuple[MetricChange, ...]
    incomparable: tuple[Incomparable, ...]

    def of(self, *kinds: Kind) -> tuple[TestChange, ...]:
        """Return the changes of some kinds, worst first."""
        return tuple(change for change in self.changes if change.kind in kinds)

    @property
    def counts(self) -> dict[Kind, int]:
        """How many changes there are of every kind."""
        found = Counter(change.kind for change in self.changes)
        return {kind: found[kind] for kind in KINDS}

    def by_record(self) -> dict[tuple[str, int], TestChange]:
        """Return the changes of what is scored now, by test id and number of the record in the test."""
        return {(change.id, change.number): change for change in self.changes if change.kind != "gone"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _ScoredRecord:
    """A record with its place in a document."""

    test: str
    number: int
    record: Record

    @property
    def sample(self) -> str | None:
        return self.record.sample.id

    @property
    def function(self) -> str:
        return self.test.partition("::")[2]


_Pair = tuple["_ScoredRecord | None", "_ScoredRecord | None"]


def compare_documents(document: Document, baseline: Document) -> RunComparison:
    """Return what changed from the baseline to the document; the same documents give the same comparison.

    Scores are paired by test, metric and sample id (by their order where one test scores the same more than once);
    where tests moved or were renamed, by sample id alone. Scores by different judges are not compared.
    """
    compared: list[tuple[_Pair, TestChange]] = []
    foreign: Counter[tuple[str, str | None, str | None]] = Counter()
    for before, after in _pairs(_scored_in(baseline), _scored_in(document)):
        if before is not None and after is not None and _are_of_different_judges(before.record, after.record):
            foreign[after.record.metric, after.record.judge, before.record.judge] += 1
        else:
            compared.append(((before, after), _change(before, after)))
    return RunComparison(
        changes=tuple(sorted((change for _, change in compared), key=_order)),
        metrics=_metrics(compared),
        incomparable=tuple(
            Incomparable(metric=metric, judge=judge, baseline_judge=baseline_judge, pairs=count)
            for (metric, judge, baseline_judge), count in sorted(foreign.items(), key=lambda item: str(item[0]))
        ),
    )


def _scored_in(document: Document) -> list[_ScoredRecord]:
    return [
        _ScoredRecord(test=row.id, number=number, record=record)
        for row in document.tests
        for number, record in enumerate(row.records)
    ]


def _pairs(before: Sequence[_ScoredRecord], after: Sequence[_ScoredRecord]) -> list[_Pair]:
    """Pair by the strictest key first; what none of them pairs stands alone."""
    keys: tuple[Callable[[_ScoredRecord], Hashable | None], ...] = (
        lambda s: (*_place(s), s.sample),
        # The file moved, then also the test.
        lambda s: s.sample and (s.function, s.record.metric, s.sample),
        lambda s: s.sample and (s.record.metric, s.sample),
    )
    pairs: list[_Pair] = []
    olds, news = list(before), list(after)
    for key in keys:
        found, olds, news = _matched(olds, news, key)
        pairs += found
    # Where both have sample ids and these differ, it is not the same thing that was scored.
    named = [{_place(s) for s in side if s.sample is not None} for side in (olds, news)]
    differing = named[0] & named[1]
    found, olds, news = _matched(olds, news, lambda s: None if _place(s) in differing else _place(s))
    return [*pairs, *found, *((old, None) for old in olds), *((None, new) for new in news)]


def _place(scored: _ScoredRecord) -> tuple[str, str]:
    return scored.test, scored.record.metric


def _matched(
    olds: Iterable[_ScoredRecord], news: Iterable[_ScoredRecord], key: Callable[[_ScoredRecord], Hashable | None]
) -> tuple[list[_Pair], list[_ScoredRecord], list[_ScoredRecord]]:
    """Return the pairs of the same key in their order, and what is left over of both sides."""
    waiting: defaultdict[Hashable, list[_ScoredRecord]] = defaultdict(list)
    for old in reversed(list(olds)):
        waiting[key(old)].append(old)
    nameless = waiting.pop(None, [])
    pairs: list[_Pair] = []
    left: list[_ScoredRecord] = []
    for new in news:
        name = key(new)
        if name is not None and waiting.get(name):
            pairs.append((waiting[name].pop(), new))
        else:
            left.append(new)
    rest = sorted((s for some in (*waiting.values(), nameless) for s in some), key=lambda s: (s.test, s.number))
    return pairs, rest, left


def _are_of_different_judges(before: Record, after: Record) -> bool:
    # Of what has no score nobody knows who did not give it.
    return before.score is not None and after.score is not None and before.judge != after.judge


def _change(before: _ScoredRecord | None, after: _ScoredRecord | None) -> TestChange:
    this = after or before
    if this is None:
        msg = "a pair of nothing"
        raise ValueError(msg)
    old, new = (None if side is None else side.record.score for side in (before, after))
    gain = None if old is None or new is None else new - old
    if gain is not None and this.record.better == "lower":
        gain = -gain
    return TestChange(
        id=this.test,
        number=this.number,
        metric=this.record.metric,
        kind="new" if before is None else "gone" if after is None else _kind(old, new, gain),
        before=old,
        after=new,
        change=gain,
        better=this.record.better,
        sample=this.sample,
        baseline_id=None if before is None else before.test,
    )


def _kind(before: float | None, after: float | None, gain: float | None) -> Kind:
    if gain is None:
        return "same" if before is after else "unscored" if after is None else "scored again"
    return "same" if abs(gain) <= _TOLERANCE else "better" if gain > 0 else "worse"


def _order(change: TestChange) -> tuple[int, float, str, int, str]:
    return _RANKS[change.kind], change.change or 0.0, change.id, change.number, change.metric


def _metrics(compared: Iterable[tuple[_Pair, TestChange]]) -> tuple[MetricChange, ...]:
    by_name: defaultdict[str, list[tuple[_Pair, TestChange]]] = defaultdict(list)
    for pair, change in compared:
        by_name[change.metric].append((pair, change))
    return tuple(_metric(name, by_name[name]) for name in sorted(by_name))


def _metric(name: str, compared: Sequence[tuple[_Pair, TestChange]]) -> MetricChange:
    both = [(pair, change) for pair, change in compared if change.change is not None]
    olds = [change.before for _, change in both if change.before is not None]
    news = [change.after for _, change in both if change.after is not None]
    before, after = (fsum(scores) / len(scores) if scores else None for scores in (olds, news))
    kinds = Counter(change.kind for _, change in compared)
    return MetricChange(
        metric=name,
        pairs=len(both),
        before=before,
        after=after,
        change=fsum(change.change or 0.0 for _, change in both) / len(both) if both else None,
        better=compared[0][1].better,
        judges=_judges(pair[1] for pair, _ in both),
        baseline_judges=_judges(pair[0] for pair, _ in both),
        counts={kind: kinds[kind] for kind in KINDS},
    )


def _judges(scored: Iterable[_ScoredRecord | None]) -> tuple[str, ...]:
    return tuple(sorted({s.record.judge for s in scored if s is not None and s.record.judge is not None}))
