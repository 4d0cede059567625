"""Why scores became worse than in a baseline: the retriever, the generator or the judge, told by crossed texts.

The old answer is scored on the new passages, the new answer on the old ones; of the four cells the records have two.
The new cell is judged again before anybody is blamed. A row takes four requests at most, where the claims of both
answers are in the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Job, Runner, unscored
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Session
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.contexts import ContextRecall
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall
from pytest_ragmetrics.metrics.judged import AnyFieldsMetric, JudgedMetric
from pytest_ragmetrics.metrics.registry import metric_of_rule
from pytest_ragmetrics.runs.blame import MOST, ROWS, Blame, Part
from pytest_ragmetrics.runs.compare import RunComparison, TestChange
from pytest_ragmetrics.runs.records import Document, Record, TestRecord, function_name, is_met
from pytest_ragmetrics.runs.wording.blame import became_worse
from pytest_ragmetrics.runs.wording.figures import named

# Passages lost what the reference says if they have so much less of it.
_LOST = 0.1
_REFERENCES = ("reference", "reference_contexts", "reference_context_ids")
_PASSAGES = ("retrieved_contexts", "retrieved_context_ids")


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """How a record was made: the metric, ``None`` where it is not known, and the spec of its judge."""

    metric: Metric | None
    judge: str | None = None


def known_way(record: Record) -> Way:
    """Return the metric of a name whose code and parameters are those of the record, judged as the session says."""
    return Way(metric=metric_of_rule(record.metric, {record.rule}))


async def blame_worse(
    comparison: RunComparison,
    session: Session,
    found: dict[int, Blame],
    *,
    way: Callable[[Record], Way] = known_way,
    rows: int = ROWS,
) -> None:
    """Add to ``found`` which part made each score worse, by the :func:`id` of its record now.

    At most so many ``rows`` are asked about, the largest change first. A score that cannot be told is ``unknown``, with
    the reason: nothing of what was paid for is lost.
    """
    unproven = _unproven(comparison.document.tests)
    worse = [_Row(it, session=session, way=way) for it in comparison.of("worse") if became_worse(it)]
    asked: list[_Row] = []
    for row in worse:
        is_chance = (function_name(row.id), row.now.metric) in unproven
        blame = Blame(part="chance") if is_chance else row.by_texts()
        if blame is not None:
            found[id(row.now)] = blame
        else:
            asked.append(row)
    room = asyncio.Semaphore(session.concurrency)

    async def ask(row: _Row, runner: Runner) -> None:
        async with room:
            found[id(row.now)] = await row.crossed(runner)

    with closing(Runner(session)) as runner:
        await loop.gather_or_cancel(ask(row, runner) for row in asked[:rows])


def with_blame(document: Document, found: Mapping[int, Blame]) -> Document:
    """Return a document with what was found, by the :func:`id` of its records."""
    tests = (
        replace(test, records=tuple(replace(it, blame=found.get(id(it), it.blame)) for it in test.records))
        for test in document.tests
    )
    return replace(document, tests=tuple(tests))


def _unproven(tests: Sequence[TestRecord]) -> set[tuple[str, str]]:
    """Return the functions and metrics of which a regression gate says that no drop is proven."""
    gates = [(function_name(test.id), test.gate) for test in tests if test.gate and test.gate.regression]
    passed = {(function, gate.metric) for function, gate in gates if gate.outcome == "passed"}
    return passed - {(function, gate.metric) for function, gate in gates if gate.outcome != "passed"}


class _Missing(Exception):  # noqa: N818 - no error: a score that would tell
    """A score that would tell is missing, for this reason."""


@dataclass(kw_only=True)
class _Cell:
    """A sample with its scores, that of the record first, by whether each is a good one."""

    sample: Sample
    passes: list[bool]
    scores: list[float] = field(default_factory=list)


class _Row:
    """A score that became worse."""

    def __init__(self, change: TestChange, *, session: Session, way: Callable[[Record], Way]) -> None:
        if change.old is None or change.new is None:
            raise ValueError("a score becomes worse than another one")
        self.id = change.id
        self.old, self.now = change.old.record, change.new.record
        self._session = session
        self._way = way(self.now)
        self._usage = Usage()
        self._asked = 0
        self._is_varied = False

    @property
    def _metric(self) -> Metric:
        if self._way.metric is None:
            raise _Missing(f"{named(self.now.metric)} is not known here with the code and the arguments that scored")
        return self._way.metric

    def by_texts(self) -> Blame | None:
        """Return what made it worse where that takes no score, ``None`` where it does."""
        try:
            return self._by_texts()
        except _Missing as error:
            return Blame(part="unknown", reason=str(error))

    def _by_texts(self) -> Blame | None:
        metric = self._metric
        old, now = self.old.sample, self.now.sample
        for sample, whose in ((old, "the baseline"), (now, "this run")):
            if missing := BoundedMetric(metric=metric).missing(sample):
                raise _Missing(f"{whose} has no texts of it: {missing[0]}")
        if any(not self._is_same(name) for name in _REFERENCES if name in metric.requires):
            raise _Missing("the reference is another one than in the baseline")
        sees_answer, sees_passages = self._sees("response"), any(map(self._sees, _PASSAGES))
        same_answer = not sees_answer or self._is_same("response")
        same_passages = not sees_passages or all(map(self._is_same, _PASSAGES))
        if same_answer and same_passages and old.metadata.get("messages") == now.metadata.get("messages"):
            if self.now.judge is None:
                raise _Missing("answer and passages are those of the baseline, and no judge decided")
            return Blame(part="judge")
        if sees_passages and not sees_answer:
            return Blame(part="retriever")
        return None

    def _sees(self, name: str) -> bool:
        metric = self._metric
        return name in metric.requires or isinstance(metric, AnyFieldsMetric)

    def _is_same(self, name: str) -> bool:
        """Tell whether a field is that of the baseline; blanks make no difference to a judge."""
        old, now = (getattr(record.sample, name) for record in (self.old, self.now))
        if self.now.judge is None or name not in ("response", "retrieved_contexts", "reference"):
            return bool(old == now)
        sides = [[it] if isinstance(it, str) else it for it in (old, now)]
        return len({None if it is None else tuple(" ".join(text.split()) for text in it) for it in sides}) == 1

    async def crossed(self, runner: Runner) -> Blame:
        """Return what made it worse by the scores of further cells."""
        try:
            self._find_judge()
            return await self._crossed(runner)
        except _Missing as error:
            return Blame(part="unknown", reason=str(error), usage=self._usage)

    def _find_judge(self) -> None:
        """Find the judge of the score, which is to judge the others too; raise ``_Missing`` where another one would."""
        metric, judged_by = self._metric, self.now.judge
        if not isinstance(metric, JudgedMetric) or judged_by is None:
            return
        with context.changed(private=self._session, judge=self._way.judge):
            try:
                judge = metric.judge_here()
            except (RagMetricsError, ValueError) as error:
                raise _Missing(str(error)) from error
        if judge is not None and judge.name not in judged_by.split(", "):
            raise _Missing(f"{named(judged_by)} judged it, and {named(judge.name)} would judge here")
        self._is_varied = judge is not None and judge.is_varied

    async def _crossed(self, runner: Runner) -> Blame:
        old, now = self.old.sample, self.now.sample
        new = _Cell(sample=now, passes=[False])
        if self._is_varied:
            await self._judge_again(new, runner, most=2)
            if new.passes.count(True) > 1:
                return self._blame("judge", new)
        if old.retrieved_contexts is None or now.retrieved_contexts is None:
            raise _Missing("it has no passages that could have lost what it is about")
        if not self._sees("retrieved_contexts"):
            return await self._by_reference(new, runner)
        metric = self._metric
        if now.metadata.get("messages") is not None and (metric.of_conversation or metric.sees_all_turns):
            raise _Missing("it sees the whole conversation, of which answers and passages cannot be exchanged")
        first = _Cell(sample=old, passes=[True])
        if self._is_same("response") or all(map(self._is_same, _PASSAGES)):
            return await self._one_changed(first, new, runner)
        passages = {name: getattr(old, name) for name in _PASSAGES}
        s10, s01 = replace(now, response=old.response), replace(now, **passages)
        kept, other = await self._score(runner, s10), None
        is_kept = self._is_good(kept)
        with suppress(*([] if is_kept else [_Missing])):  # it is the retriever whatever the other cell has
            other = await self._score(runner, s01)
        is_good = other is not None and self._is_good(other)
        part: Part = "interplay" if is_kept and is_good else "generator" if is_kept else "retriever"
        return self._blame(part, new, kept, other, should_refuse=not is_kept and other is not None and not is_good)

    async def _one_changed(self, first: _Cell, new: _Cell, runner: Runner) -> Blame:
        """Return what made it worse where one of answer and passages changed: the other cells are those there are.

        So they are judged again, the former good score as well, which may have been luck. A judge that errs in 1 of 10
        answers in other words would make 1 % of the rows blamed after two bad judgements, 0.3 % after three.
        """
        if self._is_varied:
            await self._judge_again(new, runner, most=MOST - len(new.passes))
        if new.passes.count(True) > 1:
            return self._blame("judge", new)
        if self._is_varied:
            await self._judge_again(first, runner, most=min(2, MOST - self._asked))
            if 2 * first.passes.count(True) <= len(first.passes):
                return self._blame("judge", new)
        is_answer = self._is_same("retrieved_contexts")
        before, after = self.old.score, self.now.score
        s10, s01 = (before, after) if is_answer else (after, before)
        return self._blame("generator" if is_answer else "retriever", new, s10, s01)

    async def _judge_again(self, cell: _Cell, runner: Runner, *, most: int) -> None:
        """Judge a cell again, at most so often, until a judgement bears out the one of the record."""
        taken = max(1, len((self.now if cell.passes[0] is False else self.old).samples))
        for _ in range(most):
            score = await self._score(runner, cell.sample, vote=taken + len(cell.scores))
            cell.scores.append(score)
            cell.passes.append(self._is_good(score))
            if cell.passes[-1] is cell.passes[0]:
                return

    async def _by_reference(self, new: _Cell, runner: Runner) -> Blame:
        """Return what made a score worse that sees no passages: whether these lost what the reference says."""
        old, now = self.old.sample, self.now.sample
        if self._is_same("retrieved_contexts"):
            return self._blame("generator", new)
        if not (now.reference or "").strip():
            raise _Missing("there is no reference that the passages could be held against")
        metric = ContextRecall() if self._is_varied else LexicalContextRecall()
        before = await self._score(runner, replace(now, retrieved_contexts=old.retrieved_contexts), metric=metric)
        after = await self._score(runner, now, metric=metric)
        part: Part = "retriever" if before - after >= _LOST else "generator"
        return replace(self._blame(part, new), recalls=(before, after))

    async def _score(self, runner: Runner, sample: Sample, *, vote: int = 0, metric: Metric | None = None) -> float:
        """Return the score of a cell; raise ``_Missing`` where it has none."""
        bounded = BoundedMetric(metric=metric or self._metric)
        job = Job(sample=sample, metrics=(bounded,), test=self.id, judge=self._way.judge, votes=1)
        self._asked += 1
        with context.changed(vote=vote):
            done = await runner.score(job)
        (score,) = done.scores.values()
        found = score.outcome
        if not isinstance(found, MetricResult):
            found = unscored(bounded.metric, found)
        self._usage += found.usage or Usage()
        if isinstance(found, UnscoredError):
            raise _Missing(str(found))
        return found.value

    def _is_good(self, score: float) -> bool:
        """Tell whether a score meets the bound, without one whether it is nearer to the one before."""
        if self.now.threshold is not None:
            return is_met(score, self.now.threshold)
        before, after = self.old.score or 0.0, self.now.score or 0.0
        return abs(score - before) < abs(score - after)

    def _blame(
        self, part: Part, new: _Cell, s10: float | None = None, s01: float | None = None, *, should_refuse: bool = False
    ) -> Blame:
        cells = (self.old.score, s10, s01, self.now.score)
        return Blame(part=part, cells=cells, again=tuple(new.scores), should_refuse=should_refuse, usage=self._usage)
