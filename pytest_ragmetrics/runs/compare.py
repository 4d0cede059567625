"""Two runs compared: their records paired by test and sample, whether a pair may be compared, and what became of it.

Gates, tables of scores and reports read these pairs; ``runs.tables`` has the statistics over those of one metric.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum
from types import MappingProxyType
from typing import Any, Literal, get_args

from pytest_ragmetrics.core.result import REUSED, Direction
from pytest_ragmetrics.core.sample import Sample, answer_of
from pytest_ragmetrics.runs.records import Document, GateRecord, Judging, Record, TestRecord
from pytest_ragmetrics.runs.wording.figures import named
from pytest_ragmetrics.stats.scores import ROUNDING, standing, unit_of

#: The parts of a metric's definition that make its scores incomparable where they change; a release changes few.
RULES = ("code", "embedder")

# What stands for a question where its text is not kept.
_DIGEST = re.compile("question [0-9a-f]{10}")

Kind = Literal["unscored", "worse", "better", "nothing to check", "scored again", "same", "new", "gone"]
#: Every kind, in the order in which changes are listed, of each the largest change first.
KINDS: tuple[Kind, ...] = get_args(Kind)
#: The share by which a figure with a unit has to change for it to be better or worse.
_MEASURED = 0.1

#: Why a pair is not compared: another metric of its name, other rules, another question, judge, or several scores.
Obstacle = Literal["metric", "rules", "question", "judge", "ambiguous"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedRecord:
    """A record with its place in a run: its test ("" for a row of a table), and which of the test's records it is.

    ``name`` is what its sample is known by in another run, ``None`` where it has neither an id nor a question; ``at``
    the place of its test in the run.
    """

    test: str
    number: int
    record: Record
    name: str | None
    at: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        """The :func:`sample_key` of its sample."""
        return self.name or key_of(self.record.sample)

    @property
    def known(self) -> str | None:
        """The name by which it is paired: a question as the digest that a history has of it."""
        return question_digest(self.name) if self.name and self.name == self.record.sample.user_input else self.name

    @property
    def answer(self) -> int:
        """Which answer to its row it is, 1 where there is one."""
        return answer_of(self.record.sample) or 1

    @property
    def label(self) -> str:
        """The key, of an answer to its row behind the first with its number."""
        return self.key if self.answer == 1 else f"{self.key}, answer {self.answer}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TestChange:
    """One record and its counterpart in the baseline; a new one has no ``old``, one that is gone no ``new``.

    ``obstacles`` say why the scores are not compared, none if they are. ``id`` and ``number`` name it: the test, and
    which of the test's records it is (of the baseline's where it is gone). ``before`` and ``after`` are ``None`` where
    there is no score, or had nothing to check. ``change`` is positive where the score became better, whichever end of
    the scale is the good one, and ``None`` unless there are both.
    """

    __test__ = False  # for pytest, where a test module imports it

    old: PlacedRecord | None
    new: PlacedRecord | None
    id: str
    number: int
    metric: str
    kind: Kind
    before: float | None
    after: float | None
    change: float | None
    better: Direction
    unit: str = ""
    obstacles: Mapping[Obstacle, Sequence[str]] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """Why it is not compared, "" if it is."""
        return next((" and ".join(self.obstacles[it]) for it in get_args(Obstacle) if it in self.obstacles), "")


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
    unit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Incomparable:
    """Scores of one metric that were not compared, ``pairs`` of them, and why: different judges gave them, for one."""

    metric: str
    pairs: int
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunComparison:
    """A document against a baseline: all ``pairs``, and of those that are compared the ``changes``, by kind.

    ``pairs`` are by the identity of their records, those of both runs; ``counterparts`` are the places of tests of the
    baseline by those of the tests now; ``metrics`` and ``incomparable`` come by name.
    """

    document: Document
    baseline: Document
    pairs: Mapping[int, TestChange]
    counterparts: Mapping[int, int]
    changes: tuple[TestChange, ...]
    metrics: tuple[MetricChange, ...]
    incomparable: tuple[Incomparable, ...]

    def of(self, *kinds: Kind) -> tuple[TestChange, ...]:
        """Return the changes of some kinds, in the order of the kinds."""
        return tuple(change for change in self.changes if change.kind in kinds)

    @property
    def counts(self) -> dict[Kind, int]:
        """How many changes there are of every kind."""
        found = Counter(change.kind for change in self.changes)
        return {kind: found[kind] for kind in KINDS}


def compare_documents(document: Document, baseline: Document) -> RunComparison:
    """Return what changed from the baseline to the document; the same documents give the same comparison."""
    changed = changed_rules(document.run.judging, baseline.run.judging)
    pairs = pair_records(placed_records(document.tests), placed_records(baseline.tests), changed)
    compared = (pair for pair in pairs if not pair.obstacles)
    changes = sorted(
        compared, key=lambda it: (KINDS.index(it.kind), -abs(it.change or 0.0), it.id, it.number, it.metric)
    )
    foreign = Counter((pair.metric, pair.why) for pair in pairs if pair.obstacles)
    return RunComparison(
        document=document,
        baseline=baseline,
        pairs={id(side.record): pair for pair in pairs for side in (pair.old, pair.new) if side},
        counterparts=_counterparts(document.tests, baseline.tests, pairs),
        changes=tuple(changes),
        metrics=tuple(_metric_change(name, changes) for name in sorted({change.metric for change in changes})),
        incomparable=tuple(
            Incomparable(metric=metric, pairs=count, why=why) for (metric, why), count in sorted(foreign.items())
        ),
    )


def _counterparts(
    news: Sequence[TestRecord], olds: Sequence[TestRecord], pairs: Iterable[TestChange]
) -> dict[int, int]:
    """Return the places of the tests of then by those of now: by the pairs of scores, without any by the id.

    A test that has scores in several of then gets the one of its id, else the one of most scores; no two get the same.
    """
    votes: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for pair in pairs:
        if pair.old is not None and pair.new is not None:
            votes[pair.new.at][pair.old.at] += 1
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, old in enumerate(olds):
        places[old.id].append(at)
    free, found = set(range(len(olds))), {}
    # A test that took scores along from another one does not take that one as well.
    for at in sorted(range(len(news)), key=lambda at: all(olds[old].id != news[at].id for old in votes[at])):
        name = news[at].id
        scored = sorted(votes[at], key=lambda old: (olds[old].id != name, -votes[at][old]))
        if (then := next((old for old in (*scored, *places[name]) if old in free), None)) is not None:
            found[at] = then
            free.remove(then)
    return found


def paired_gates(news: Iterable[TestRecord], olds: Iterable[TestRecord]) -> dict[int, GateRecord]:
    """Return the gates of a baseline by the identity of those now: by the id, else by what stays where a bound changes.

    A gate that was skipped in the baseline has no counterpart.
    """

    def keys_of(test: str, gate: GateRecord) -> tuple[Hashable, Hashable]:
        terms = (gate.metric, gate.statistic, gate.min_score, gate.better, gate.all_pass)
        return test, (test.partition("[gate-")[0], *terms)

    befores: dict[Hashable, GateRecord] = {}
    for test in olds:
        if test.gate is not None and test.gate.outcome != "skipped":
            for key in keys_of(test.id, test.gate):
                befores.setdefault(key, test.gate)
    pairs = (
        (test.gate, next(filter(None, map(befores.get, keys_of(test.id, test.gate))), None))
        for test in news
        if test.gate is not None
    )
    return {id(gate): before for gate, before in pairs if before is not None}


def _metric_change(metric: str, changes: Iterable[TestChange]) -> MetricChange:
    own = [it for it in changes if it.metric == metric]
    both = [(it.before, it.after, it.change) for it in own if it.change is not None]
    before, after, gain = [fsum(column) / len(both) for column in zip(*both, strict=True)] if both else [None] * 3
    return MetricChange(metric=metric, pairs=len(both), before=before, after=after, change=gain, unit=unit_of(own))


def placed_records(tests: Iterable[TestRecord], *, metric: str | None = None) -> list[PlacedRecord]:
    """Return the records of tests, or those of a metric, in their places."""
    return [
        PlacedRecord(test=test.id, number=number, record=record, name=_name_of(record.sample), at=at)
        for at, test in enumerate(tests)
        for number, record in enumerate(test.records)
        if metric in (None, record.metric)
    ]


def pair_records(
    news: Sequence[PlacedRecord],
    olds: Sequence[PlacedRecord],
    changed: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[TestChange]:
    """Return every record with its counterpart in another run, then those that are new, then those that are gone.

    Records of a metric are paired by the strictest key first: test and sample; function and sample, where the file
    moved; sample alone, where the test did, by its id, else its question, in a table else its content; of several
    answers to a row those of one number. Then those of
    one question are paired, and those of one test, unless both have ids: samples of different ids are different ones.
    Records of one key are paired in their order. ``changed`` says by metric what changed in its definition.
    """
    # Rows of a table have no test, by which rows of one content could be told apart.
    is_table = any(not side[0].test for side in (news, olds) if side)
    # Without a test in the key, several scores of one sample cannot be told apart.
    keys: tuple[tuple[Callable[[PlacedRecord], Any], bool, bool], ...] = (
        (lambda it: (it.test, it.record.metric, it.known, it.answer), True, True),
        (lambda it: it.test and (it.test.partition("::")[2], it.record.metric, it.known), True, True),
        (lambda it: (it.name or is_table) and (it.record.metric, it.known or it.key, it.answer), True, False),
        (lambda it: (text := it.record.sample.user_input) and (it.record.metric, question_digest(text)), False, False),
        (lambda it: it.test and (it.test, it.record.metric), False, True),
    )
    found: list[TestChange] = []
    for key, has_sample, has_test in keys:
        if not olds or not news:
            break
        waiting, asking = _by_key(olds, key), _by_key(news, key)
        taken: set[int] = set()
        for name in filter(waiting.get, asking):
            sides = waiting[name], asking[name]
            if not has_sample and all(any(it.record.sample.id is not None for it in side) for side in sides):
                continue
            ambiguous = not has_test and any(len({score_of(it) for it in side}) > 1 for side in sides)
            for old, new in zip(*sides, strict=False):
                taken |= {id(old), id(new)}
                found.append(_change(old, new, _obstacles(old, new, changed, several=ambiguous)))
        olds, news = ([it for it in side if id(it) not in taken] for side in (olds, news))
    return [*found, *(_change(None, new) for new in news), *(_change(old, None) for old in olds)]


def _change(
    old: PlacedRecord | None,
    new: PlacedRecord | None,
    obstacles: Mapping[Obstacle, Sequence[str]] = MappingProxyType({}),
) -> TestChange:
    this = next(it for it in (new, old) if it is not None)
    before, after = (None if it is None else it.record.score for it in (old, new))
    counts = [it is not None and standing(it.record) == "counted" for it in (old, new)]
    kind: Kind = (
        "new"
        if old is None
        else "gone"
        if new is None
        else kind_of(before, after, this.record.better, this.record.unit)
    )
    # A score that said nothing became neither better nor worse.
    if old and new and None not in (before, after) and not all(counts):
        kind = "nothing to check" if any(counts) else "same"
    return TestChange(
        old=old,
        new=new,
        id=this.test,
        number=this.number,
        metric=this.record.metric,
        kind=kind,
        before=before if counts[0] else None,
        after=after if counts[1] else None,
        change=gain_of(before, after, this.record.better) if all(counts) else None,
        better=this.record.better,
        unit=unit_of(it.record for it in (old, new) if it is not None),
        obstacles=obstacles,
    )


def _by_key(records: Iterable[PlacedRecord], key: Callable[[PlacedRecord], Any]) -> dict[Hashable, list[PlacedRecord]]:
    found: defaultdict[Hashable, list[PlacedRecord]] = defaultdict(list)
    for each in records:
        if name := key(each):
            found[name].append(each)
    return found


def score_of(placed: PlacedRecord) -> tuple[float | None, str | None, bool]:
    """Return what of a record must be the same for two to be one."""
    return placed.record.score, placed.record.judge, placed.record.vacuous


def _obstacles(
    old: PlacedRecord, new: PlacedRecord, changed: Mapping[str, Sequence[str]], *, several: bool
) -> dict[Obstacle, Sequence[str]]:
    then, now = old.record, new.record
    found: dict[Obstacle, Sequence[str]] = {}
    asked, asks = then.sample.user_input, now.sample.user_input
    if None not in (asked, asks) and asked != asks and question_digest(asked or "") != question_digest(asks or ""):
        found["question"] = ["they ask another question"]
    # One without a score says neither what the metric is nor who judges.
    if then.score is None or now.score is None:
        return found
    if now.better != then.better or (now.metric in REUSED and now.noun != then.noun):
        found["metric"] = ["it is another metric in the baseline"]
    if rules := dict.fromkeys([*changed.get(now.metric, ()), *definition_changes(then.rule, now.rule)]):
        found["rules"] = [*rules]
    # An unknown judge may be any.
    if now.judge != then.judge and None not in (now.judge, then.judge):
        found["judge"] = [f"judged by {named(now.judge or '')} now, by {named(then.judge or '')} in the baseline"]
    if several:
        found["ambiguous"] = ["a sample has several different scores in one run"]
    return found


def definition_changes(old: str | None, new: str | None) -> Iterator[str]:
    """Yield what changed in the definition of a metric, by two of :attr:`Record.rule`."""
    if old is not None and new is not None:
        pairs = zip(("code", "parameters"), old.split("/"), new.split("/"), strict=False)
        yield from (f"its {part} changed" for part, before, after in pairs if before != after)


def changed_rules(now: Mapping[str, Judging], then: Mapping[str, Judging]) -> dict[str, list[str]]:
    """Return by metric why its scores in two runs cannot be compared, whoever judged."""
    return {metric: [*rule_changes(then[metric], now[metric])] for metric in then.keys() & now.keys()}


def rule_changes(old: Judging, new: Judging) -> Iterator[str]:
    """Yield why scores of one metric and judge in two runs cannot be compared: other prompts, code or embedder.

    >>> one = Judging(judge="openai:a", prompts={"verify_claims": "1f"}, definition={"release": "1.0"})
    >>> list(rule_changes(one, Judging(judge="openai:a", prompts={"verify_claims": "2e"}, definition={})))
    ['the prompt of verify_claims changed']
    """
    if changed := [task for task in old.prompts if old.prompts[task] != new.prompts.get(task, old.prompts[task])]:
        yield f"the prompt of {', '.join(map(named, changed))} changed"
    yield from (
        f"its {name} changed"
        for name in RULES
        if old.definition.get(name) != new.definition.get(name, old.definition.get(name)) and name in old.definition
    )


def judging_changes(old: Judging, new: Judging) -> Iterator[str]:
    """Yield why scores of one metric in two runs cannot be compared; nothing if judge, prompts and rules are the same.

    >>> one = Judging(judge="openai:a", prompts={"verify_claims": "1f"}, definition={"release": "1.0"})
    >>> other = Judging(judge="openai:b", prompts={"verify_claims": "2e"}, definition={"release": "1.0"})
    >>> list(judging_changes(one, other))
    ['judge openai:a, then openai:b', 'the prompt of verify_claims changed']
    """
    if old.judge != new.judge:
        yield f"judge {old.judge or 'none'}, then {new.judge or 'none'}"
    yield from rule_changes(old, new)
    for name in sorted({*old.definition, *new.definition}.difference(RULES)):
        before, after = old.definition.get(name, "none"), new.definition.get(name, "none")
        if before != after:
            yield f"{named(name)} {named(before)}, then {named(after)}"


def gain_of(before: float | None, after: float | None, better: Direction) -> float | None:
    """Return how much better a score became; ``None`` without both."""
    if before is None or after is None:
        return None
    return before - after if better == "lower" else after - before


def kind_of(before: float | None, after: float | None, better: Direction, unit: str = "") -> Kind:
    """Return what became of a score, ``None`` for one that is unscored.

    >>> kind_of(0.8, 0.79, "higher"), kind_of(1.50, 1.55, "lower", "s"), kind_of(1.5, 1.8, "lower", "s")
    ('worse', 'same', 'worse')
    """
    gain = gain_of(before, after, better)
    if gain is None:
        return "same" if before is after else "unscored" if after is None else "scored again"
    # Seconds and dollars differ in every run.
    least = _MEASURED * max(abs(before or 0.0), abs(after or 0.0)) if unit else ROUNDING
    return "same" if abs(gain) <= least else "better" if gain > 0 else "worse"


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


@lru_cache(maxsize=4096)
def question_digest(question: str) -> str:
    """Return what a history has of a question, the same however its blanks are; that of a digest is itself.

    >>> question_digest("Why?  So.") == question_digest(" Why? So.") == question_digest(question_digest("Why? So."))
    True
    """
    if re.fullmatch(_DIGEST, question):
        return question
    return "question " + hashlib.sha256(" ".join(question.split()).encode("utf-8", "replace")).hexdigest()[:10]


def key_of(sample: Sample) -> str:
    """Return the :func:`sample_key` of a sample."""
    # Its whole content is asked for only where there is nothing else: there may be very many of them.
    return _name_of(sample) or sample_key(sample.to_mapping())


def cluster_of(sample: Sample) -> str | None:
    """Return the cluster that ``metadata["cluster"]`` puts a sample into, else its row where that has several answers.

    >>> cluster_of(Sample(metadata={"cluster": "manual.pdf"})), cluster_of(Sample(id="q7", metadata={"answer": 2}))
    ("'manual.pdf'", 'row q7')
    """
    cluster = sample.metadata.get("cluster")
    if cluster is None:
        return None if answer_of(sample) is None else f"row {key_of(sample)}"
    return repr(cluster)


def row_of(sample: Sample, test: str = "") -> str | None:
    """Return what the several answers to a row have in common in a set, ``None`` where a row has one answer.

    It is the name of their tests without the number of the answer, else the :func:`sample_key`.

    >>> row_of(Sample(id="q7", metadata={"answer": 2}), "test_bot[q7-answer2-en]"), row_of(Sample(id="q7"))
    ('test_bot[q7-en]', None)
    """
    number = answer_of(sample)
    if number is None:
        return None
    head, found, tail = test.rpartition(f"-answer{number}")
    return head + tail if found else key_of(sample)


def _name_of(sample: Sample) -> str | None:
    return next((text for text in (sample.id, sample.user_input) if (text or "").strip()), None)
