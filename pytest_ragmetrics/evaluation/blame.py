"""Why scores became worse than in a baseline: the retriever, the generator or the judge, told by crossed texts.

The old answer is scored on the new passages, the new answer on the old ones; of the four cells the records have two.
The new cell is judged again before anybody is blamed. A row takes four judgements at most: requests, where the claims
of both answers are in the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TypeAlias

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Job, Runner, unscored
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Session
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.contexts import ContextRecall
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall
from pytest_ragmetrics.metrics.judged import AnyFieldsMetric, JudgedMetric
from pytest_ragmetrics.metrics.registry import metric_of_rule
from pytest_ragmetrics.runs.blame import MOST, ROWS, Blame, Part
from pytest_ragmetrics.runs.compare import RunComparison
from pytest_ragmetrics.runs.records import Document, Record, function_name, is_met
from pytest_ragmetrics.runs.wording.blame import fallen
from pytest_ragmetrics.runs.wording.figures import named

# Passages lost what the reference says if they have so much less of it.
_LOST = 0.1
# So many more bad judgements of the new cell are needed before anybody is blamed.
_BAD = 2
_REFERENCES = ("reference", "reference_contexts", "reference_context_ids")
_PASSAGES = ("retrieved_contexts", "retrieved_context_ids")

#: Returns the metric that made a record, ``None`` where it is not known, and the spec of its judge.
Way: TypeAlias = "Callable[[Record], tuple[Metric | None, str | None]]"


async def blame_worse(
    comparison: RunComparison,
    session: Session,
    found: dict[int, Blame],
    *,
    way: Way = lambda _: (None, None),
    rows: int = ROWS,
) -> None:
    """Add to ``found`` which part made each score worse, by the :func:`id` of its record now.

    At most so many ``rows`` are asked about, the largest change first. A score that cannot be told is ``unknown``, with
    the reason: nothing of what was paid for is lost.
    """
    tests = comparison.document.tests
    gates = [(function_name(it.id), it.gate.metric, it.gate.outcome) for it in tests if it.gate and it.gate.regression]
    # Those of which a regression gate says that no drop is proven, and none the contrary.
    unproven = {gate[:2] for gate in gates} - {gate[:2] for gate in gates if gate[2] != "passed"}
    asked: list[_Row] = []
    for test, old, now in fallen(comparison):
        row = _Row(test, old, now, session=session, way=way)
        with row.unknown(found):
            blame = Blame(part="chance") if (function_name(test), now.metric) in unproven else row.by_texts()
            if blame is None:
                asked.append(row)
            else:
                found[id(now)] = blame
    room = asyncio.Semaphore(session.concurrency)

    async def ask(row: _Row, runner: Runner) -> None:
        async with room:
            with row.unknown(found):
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


class _Missing(Exception):  # noqa: N818 - no error: a score that would tell
    """A score that would tell is missing, for this reason."""


class _Row:
    """A score that became worse."""

    def __init__(self, test: str, old: Record, now: Record, *, session: Session, way: Way) -> None:
        self.id, self.old, self.now = test, old, now
        self._session = session
        metric, self._spec = way(now)
        self._given = metric or metric_of_rule(now.metric, {now.rule})
        self._judge: Judge | None = None
        self._usage = Usage()
        self._again: list[float] = []

    @property
    def _metric(self) -> Metric:
        if self._given is None:
            raise _Missing(f"{named(self.now.metric)} is not known here with the code and the arguments that scored")
        return self._given

    @contextmanager
    def unknown(self, found: dict[int, Blame]) -> Iterator[None]:
        """Add the reason where a score is missing that would tell."""
        try:
            yield
        except _Missing as error:
            found[id(self.now)] = Blame(part="unknown", reason=str(error), usage=self._usage)

    def by_texts(self) -> Blame | None:
        """Return what made it worse where that takes no score, ``None`` where it does."""
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

    def _find_judge(self) -> Judge | None:
        """Return the judge if it may answer otherwise; raise ``_Missing`` where it is not the one of the score."""
        metric, judged_by = self._metric, self.now.judge
        if not isinstance(metric, JudgedMetric) or judged_by is None:
            return None
        with context.changed(private=self._session, judge=self._spec):
            try:
                judge = metric.judge_here()
            except (RagMetricsError, ValueError) as error:
                raise _Missing(str(error)) from error
        if judge is not None and judge.name not in judged_by.split(", "):
            raise _Missing(
                f"{named(judged_by)} judged it, and {named(judge.name)} would judge here: see --judge and --rag-judge"
            )
        return judge if judge is not None and judge.is_varied else None

    async def crossed(self, runner: Runner) -> Blame:
        """Return what made it worse by the scores of further cells, once the new one was judged again.

        Where one of answer and passages is as before, the other cells are those there are: so these are judged again.
        A judge that errs in 1 of 10 answers would make 1 % of the rows of an application that only rewords blamed after
        two bad judgements, 0.3 % after three.
        """
        self._judge = self._find_judge()
        old, now = self.old.sample, self.now.sample
        same_answer, same_passages = self._is_same("response"), all(map(self._is_same, _PASSAGES))
        is_one = self._sees("retrieved_contexts") and (same_answer or same_passages)
        if self._judge and await self._is_luck(runner, good=2 if is_one else 1):
            return self._blame("judge")
        if now.metadata.get("messages") is not None and (self._metric.of_conversation or self._metric.sees_all_turns):
            raise _Missing("it sees the whole conversation, of which answers and passages cannot be exchanged")
        if same_answer and same_passages:
            raise _Missing("only earlier turns are others than in the baseline, and these cannot be exchanged")
        if old.retrieved_contexts is None or now.retrieved_contexts is None:
            raise _Missing("it has no retrieved_contexts, which could have lost what it is about")
        if not self._sees("retrieved_contexts"):
            return await self._by_reference(runner)
        if is_one:
            if self._judge and not await self._was_good(runner):
                return self._blame("judge")
            before, after = self.old.score, self.now.score
            return self._blame("generator", before, after) if same_passages else self._blame("retriever", after, before)
        kept = (await self._score(runner, replace(now, response=old.response))).value
        passages = {name: getattr(old, name) for name in _PASSAGES}
        is_kept, other = self._is_good(kept), None
        with suppress(*([] if is_kept else [_Missing])):  # it is the retriever whatever the other cell has
            other = (await self._score(runner, replace(now, **passages))).value
        is_good = other is not None and self._is_good(other)
        part: Part = "interplay" if is_kept and is_good else "generator" if is_kept else "retriever"
        return self._blame(part, kept, other, should_refuse=not is_kept and other is not None and not is_good)

    async def _is_luck(self, runner: Runner, *, good: int) -> bool:
        """Judge the new cell again until two judgements bear out the one of the record, or so many do not."""
        found: list[bool] = []
        while found.count(False) < _BAD and found.count(True) < good:
            again = await self._score(runner, self.now.sample, vote=_taken(self.now) + len(found))
            self._again.append(again.value)
            found.append(self._is_good(again.value) or self._is_other_fault(again))
        return found.count(True) == good

    def _is_other_fault(self, again: MetricResult) -> bool:
        """Tell whether none of the claims that were wrong is so again: a judge that errs does so about others, too.

        An answer of five claims, of which the judge errs about one in ten, is bad in 4 of 10 judgements.
        """
        was, found = ({it.text: it.ok for it in side if it.counts} for side in (self.now.verdicts, again.verdicts))
        wrong = [text for text, ok in was.items() if not ok]
        return was.keys() == found.keys() and bool(wrong) and all(found[text] for text in wrong)

    async def _was_good(self, runner: Runner) -> bool:
        """Tell whether the former score is good again, in the judgements that are left: it may have been luck."""
        for number in range(min(2, MOST - len(self._again))):
            if self._is_good((await self._score(runner, self.old.sample, vote=_taken(self.old) + number)).value):
                return True
        return False

    async def _by_reference(self, runner: Runner) -> Blame:
        """Return what made a score worse that sees no passages: whether these lost what the reference says."""
        old, now = self.old.sample, self.now.sample
        if self._is_same("retrieved_contexts"):
            return self._blame("generator")
        if not (now.reference or "").strip():
            raise _Missing("there is no reference that the passages could be held against")
        metric = ContextRecall(judge=self._judge) if self._judge else LexicalContextRecall()
        sides = [replace(now, retrieved_contexts=it.retrieved_contexts) for it in (old, now)]
        before, after = [(await self._score(runner, it, metric=metric)).value for it in sides]
        part: Part = "retriever" if before - after >= _LOST else "generator"
        return replace(self._blame(part), recalls=(before, after))

    async def _score(
        self, runner: Runner, sample: Sample, *, vote: int = 0, metric: Metric | None = None
    ) -> MetricResult:
        """Return the score of a cell; raise ``_Missing`` where it has none."""
        bounded = BoundedMetric(metric=metric or self._metric)
        job = Job(sample=sample, metrics=(bounded,), test=self.id, judge=self._spec, votes=1)
        with context.changed(vote=vote):
            done = await runner.score(job)
        (score,) = done.scores.values()
        found = score.outcome
        if not isinstance(found, MetricResult):
            found = unscored(bounded.metric, found)
        self._usage += found.usage or Usage()
        if isinstance(found, UnscoredError):
            raise _Missing(str(found).partition("\n")[0])
        return found

    def _is_good(self, score: float) -> bool:
        """Tell whether a score meets the bound, without one whether it is nearer to the one before."""
        if self.now.threshold is not None:
            return is_met(score, self.now.threshold)
        before, after = self.old.score or 0.0, self.now.score or 0.0
        return abs(score - before) < abs(score - after)

    def _blame(
        self, part: Part, s10: float | None = None, s01: float | None = None, *, should_refuse: bool = False
    ) -> Blame:
        cells = (self.old.score, s10, s01, self.now.score)
        return Blame(part=part, cells=cells, again=tuple(self._again), should_refuse=should_refuse, usage=self._usage)


def _taken(record: Record) -> int:
    return max(1, len(record.samples))
