"""Two pytest runs compared: what they recorded, paired by test and sample, and what became better or worse.

Reports and ``ragmetrics report diff`` use it; ``comparison`` compares tables.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.runs.records import Document, Record
from pytest_ragmetrics.runs.tables import (
    KINDS,
    Kind,
    asks_else,
    definition_changes,
    gain_of,
    is_redefined,
    kind_of,
    rule_changes,
)
from pytest_ragmetrics.runs.wording.figures import named
from pytest_ragmetrics.stats.scores import standing

_RANKS = {
    "unscored": 0,
    "worse": 1,
    "same": 1,
    "better": 1,
    "nothing to check": 2,
    "scored again": 3,
    "new": 4,
    "gone": 5,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TestChange:
    """One score against its counterpart in the baseline.

    ``id`` and ``number`` name it: the test, and which of the test's records it is (of the baseline's where it is
    gone). ``sample`` is the id of the sample, where it has one. ``before`` and ``after`` are ``None`` where there is no
    score; a vacuous one had nothing to check. ``change`` is positive where the score became better, whichever end of
    the scale is the good one, and ``None`` unless there are both scores and both had something to check.
    ``baseline_id`` is the test in the baseline, another one after a move.
    """

    __test__ = False  # for pytest, where a test module imports it

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
    before_vacuous: bool = False
    after_vacuous: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricChange:
    """One metric in both documents: its means over the ``pairs`` of scores that both had something to check.

    The means and their ``change`` (positive where better) are ``None`` without any pair.
    """

    metric: str
    pairs: int
    before: float | None
    after: float | None
    change: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Incomparable:
    """Scores of one metric that were not compared, ``pairs`` of them, and why: different judges gave them, for one."""

    metric: str
    pairs: int
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunComparison:
    """A document against a baseline; ``changes`` come worst first, ``metrics`` and ``incomparable`` by name."""

    document: Document
    baseline: Document
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


_Pair = tuple[_ScoredRecord, _ScoredRecord]


def compare_documents(document: Document, baseline: Document) -> RunComparison:
    """Return what changed from the baseline to the document; the same documents give the same comparison.

    Scores are paired by test, metric and sample id (by their order where one test scores the same more than once);
    where tests moved or were renamed, by sample id alone. Scores by different judges, of a metric that was redefined or
    has other prompts, code or another embedder, and of other questions are not compared.
    """
    pairs, gone, new = _pairs(_scored_in(baseline), _scored_in(document))
    changes = [*(_change(record, record, gone=True) for record in gone), *(_change(None, record) for record in new)]
    foreign: Counter[tuple[str, str]] = Counter()
    rules = {
        metric: " and ".join(rule_changes(old, document.run.judging[metric]))
        for metric, old in baseline.run.judging.items()
        if metric in document.run.judging
    }
    for before, after in pairs:
        old, this = before.record, after.record
        why = "it is another metric in the baseline" if is_redefined(this, old) else rules.get(this.metric, "")
        why = why or " and ".join(definition_changes(old.rule, this.rule))
        why = why or ("they ask another question" if asks_else(this.sample.user_input, old.sample.user_input) else "")
        if not why and old.judge != this.judge:
            then, now = (named(record.judge or "no judge") for record in (old, this))
            why = f"judged by {now} now, by {then} in the baseline"
        # An unscored record has no judge to compare.
        if why and old.score is not None and this.score is not None:
            foreign[this.metric, why] += 1
        else:
            changes.append(_change(before, after))
    return RunComparison(
        document=document,
        baseline=baseline,
        changes=tuple(sorted(changes, key=lambda it: (_RANKS[it.kind], it.change or 0.0, it.id, it.number, it.metric))),
        metrics=tuple(_metric_change(name, changes) for name in sorted({change.metric for change in changes})),
        incomparable=tuple(
            Incomparable(metric=metric, pairs=count, why=why) for (metric, why), count in sorted(foreign.items())
        ),
    )


def _scored_in(document: Document) -> list[_ScoredRecord]:
    return [
        _ScoredRecord(test=row.id, number=number, record=record)
        for row in document.tests
        for number, record in enumerate(row.records)
    ]


def _pairs(
    olds: list[_ScoredRecord], news: list[_ScoredRecord]
) -> tuple[list[_Pair], list[_ScoredRecord], list[_ScoredRecord]]:
    """Pair by the strictest key first; return the pairs, and what is left over of both sides."""
    keys: tuple[Callable[[_ScoredRecord], Hashable | None], ...] = (
        lambda s: (*_place(s), s.sample),
        # The file moved, then also the test.
        lambda s: s.sample and (s.function, s.record.metric, s.sample),
        lambda s: s.sample and (s.record.metric, s.sample),
    )
    pairs: list[_Pair] = []
    for key in keys:
        found, olds, news = _matched(olds, news, key)
        pairs += found
    # Where both have sample ids and these differ, it is not the same thing that was scored.
    named = [{_place(s) for s in side if s.sample is not None} for side in (olds, news)]
    differing = named[0] & named[1]
    found, olds, news = _matched(olds, news, lambda s: None if _place(s) in differing else _place(s))
    return [*pairs, *found], olds, news


def _place(scored: _ScoredRecord) -> tuple[str, str]:
    return scored.test, scored.record.metric


def _matched(
    olds: Sequence[_ScoredRecord], news: Iterable[_ScoredRecord], key: Callable[[_ScoredRecord], Hashable | None]
) -> tuple[list[_Pair], list[_ScoredRecord], list[_ScoredRecord]]:
    """Return the pairs of the same key in their order, and what is left over of both sides."""
    waiting: defaultdict[Hashable, list[_ScoredRecord]] = defaultdict(list)
    for old in reversed(olds):
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


def _change(before: _ScoredRecord | None, this: _ScoredRecord, *, gone: bool = False) -> TestChange:
    old, new = None if before is None else before.record, None if gone else this.record
    better = this.record.better
    return TestChange(
        id=this.test,
        number=this.number,
        metric=this.record.metric,
        kind="gone" if new is None else "new" if old is None else _change_kind(old, new),
        before=None if old is None else old.score,
        after=None if new is None else new.score,
        change=None if old is None or new is None else _change_gain(old, new),
        better=better,
        sample=this.sample,
        baseline_id=None if before is None else before.test,
        before_vacuous=old is not None and old.vacuous,
        after_vacuous=new is not None and new.vacuous,
    )


def _change_kind(old: Record, new: Record) -> Kind:
    """Return the kind of a change; a score that said nothing became neither better nor worse."""
    if old.score is not None and new.score is not None and (old.vacuous or new.vacuous):
        return "same" if old.vacuous and new.vacuous else "nothing to check"
    return kind_of(old.score, new.score, new.better)


def _change_gain(old: Record, new: Record) -> float | None:
    counted = standing(old) == standing(new) == "counted"
    return gain_of(old.score, new.score, new.better) if counted else None


def _metric_change(metric: str, changes: Iterable[TestChange]) -> MetricChange:
    both = [
        (change.before, change.after, change.change)
        for change in changes
        if change.metric == metric and change.change is not None
    ]
    before, after, gain = [fsum(column) / len(both) for column in zip(*both, strict=True)] if both else [None] * 3
    return MetricChange(metric=metric, pairs=len(both), before=before, after=after, change=gain)
