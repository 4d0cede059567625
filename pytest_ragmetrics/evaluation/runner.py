"""The Runner: the one loop that scores samples by metrics, and the only ``try`` around a metric."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import (
    BudgetExceededError,
    JudgeError,
    JudgeNotConfiguredError,
    RagMetricsError,
    UnscoredError,
)
from pytest_ragmetrics.core.result import MetricResult, ThresholdCheck
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Scoring, Session
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.judges.transports.budget import UnpricedError
from pytest_ragmetrics.judges.transports.values import JudgeUnavailableError
from pytest_ragmetrics.metrics.asserting import check_bound
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.claims import asked_together
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.parameters import check_metrics
from pytest_ragmetrics.metrics.registry import metric_for
from pytest_ragmetrics.metrics.votes import voting

if TYPE_CHECKING:
    from pytest_ragmetrics.datasets.rows import DatasetRow
    from pytest_ragmetrics.datasets.streaming import LoggedRow

R = TypeVar("R", "DatasetRow", "LoggedRow")
#: How many scores are under way for each request allowed in flight: between its requests a score computes and waits,
#: and the provider caches requests about the same contexts. A table of eight rows by five metrics with six requests in
#: flight pays 0.62 of the prompt tokens at 4, and 0.54 at 5 and 8.
UNDER_WAY = 5
# How many jobs may be done while an earlier one is not, for each score that may be under way.
_AHEAD = 16

#: A result, or what was raised in its place.
Outcome: TypeAlias = "MetricResult | Exception"


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundedMetric:
    """A metric and the ``least`` or the ``most`` that it may score, where a bound is declared."""

    metric: Metric
    least: float | None = None
    most: float | None = None

    @classmethod
    def of(cls, metric: Metric, bound: float, *, name: str) -> BoundedMetric:
        """Return a metric with its bound in its better direction, which errors call ``name``."""
        number = check_bound(name, bound, metric=metric.name, scale=metric.scale)
        is_least = metric.better == "higher"
        return cls(metric=metric, least=number if is_least else None, most=None if is_least else number)

    def check(self, result: MetricResult) -> ThresholdCheck | None:
        """Return the comparison of a result with the bound, which is not the last that the result itself knows."""
        score, sure = result.value, not result.decides
        if self.least is not None:
            return ThresholdCheck(operator=">=", bound=self.least, held=sure or score >= self.least)
        if self.most is not None:
            return ThresholdCheck(operator="<=", bound=self.most, held=sure or score <= self.most)
        return None

    def missing(self, sample: Sample) -> list[str]:
        """Return the error on a required field that the sample lacks, if there is one."""
        try:
            self.metric.require(sample)
        except ValueError as error:
            return [str(error)]
        return []

    def meets(self, result: MetricResult) -> bool:
        """Tell whether a result meets the bound; it is the comparison that the result knows from then on."""
        return result >= self.least if self.least is not None else self.most is None or result <= self.most


def bounded_metrics(
    metrics: Iterable[str | Metric] | Mapping[str | Metric, float | None],
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> list[BoundedMetric]:
    """Return metrics, or those of names, with the bounds of a mapping.

    Raises ``ValueError`` for one that is unknown, for two of one name, and where there is none.
    """
    bounds = metrics if isinstance(metrics, Mapping) else {}
    named = check_metrics(metrics)
    chosen = [(metric_for(given, judge=judge, embedder=embedder), bounds.get(given)) for given in named]
    if not chosen:
        raise ValueError("give at least one metric")
    check_distinct(metric for metric, _ in chosen)
    return [
        BoundedMetric(metric=metric) if bound is None else BoundedMetric.of(metric, bound, name=metric.name)
        for metric, bound in chosen
    ]


def metrics_of(sample: Sample, metrics: Sequence[BoundedMetric]) -> Sequence[BoundedMetric]:
    """Return those metrics that score a sample: of a conversation in turns each answer, or the whole."""
    return [each for each in metrics if each.metric.is_of(sample)]


def rows_of(rows: Iterable[R], metrics: Sequence[BoundedMetric]) -> Iterator[R]:
    """Yield the rows that some of the metrics score: turns need one of answers, whole conversations one of these."""
    return (row for row in rows if row.sample is None or not metrics or metrics_of(row.sample, metrics))


def check_distinct(metrics: Iterable[Metric]) -> None:
    """Raise ``ValueError`` for two metrics of one name."""
    counts = Counter(metric.name for metric in metrics)
    if twice := sorted(name for name, count in counts.items() if count > 1):
        raise ValueError(f"two metrics of one name: {', '.join(twice)}; give one of them another with name=")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One sample to score by some metrics, of which it asks no more votes than decide on their bounds.

    ``test`` is the test that it is done for ahead of its turn: its scorings are then kept for it, instead of being
    recorded. ``judge`` is the spec of the judge, ``votes`` how many judgements make a score, where they are not those
    of the session. A job with an ``error`` has no sample that could be scored, for this reason.
    """

    sample: Sample
    metrics: Sequence[BoundedMetric]
    test: str | None = None
    judge: str | None = None
    votes: int | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """What came of one metric, the scorings kept of it, and its first and last moment (of a monotonic clock)."""

    outcome: Outcome
    scorings: tuple[Scoring, ...] = ()
    span: tuple[float, float] = field(default=(0.0, 0.0), compare=False)

    def copy(self) -> Score:
        """Return a copy whose results have been compared with nothing: each attempt at a test gets its own."""
        outcomes = (self.outcome, *(scoring.outcome for scoring in self.scorings))
        results = {id(outcome): outcome for outcome in outcomes if isinstance(outcome, MetricResult)}
        copies = {key: copy(result) for key, result in results.items()}
        return Score(
            outcome=copies.get(id(self.outcome), self.outcome),
            scorings=tuple(replace(s, outcome=copies.get(id(s.outcome), s.outcome)) for s in self.scorings),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The outcome of a job: its sample with the response, and the scores by metric, or what the application raised."""

    sample: Sample
    scores: Mapping[str, Score] = field(default_factory=dict)
    failure: BaseException | None = None

    @property
    def is_complete(self) -> bool:
        """Whether there is a response and all scores: then a rerun of the test takes it as it is."""
        return self.failure is None and all(isinstance(s.outcome, MetricResult) for s in self.scores.values())


class Kept:
    """Keeps the scorings of one metric until the test that they are for runs."""

    def __init__(self) -> None:
        self.scorings: list[Scoring] = []

    def scored(self, scoring: Scoring) -> None:
        """Keep a scoring."""
        self.scorings.append(scoring)


class Runner:
    """Scores jobs on the background loop, in a session; close it after use.

    ``watch`` is called with each metric and its outcome, and may raise to end the whole.
    """

    def __init__(
        self,
        session: Session,
        *,
        breaker: CircuitBreaker | None = None,
        watch: Callable[[Metric, Outcome], object] = lambda *_: None,
    ) -> None:
        self.breaker = breaker or CircuitBreaker(session.concurrency)
        self.width = sys.maxsize if session.batched else UNDER_WAY * session.concurrency
        self._session = session
        self._watch = watch
        self._under_way = 0
        self._failure: BaseException | None = None
        self._changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ragmetrics-metrics")

    def close(self) -> None:
        """End the thread of users' metrics; after an interrupt the loop must not wait for a function that computes."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def score(self, job: Job, ended: Callable[[], object] = lambda: None) -> Done:
        """Score a sample by all metrics of a job at the same time; ``ended`` is called at the end of each.

        What a metric raises is its outcome; raises what ``watch`` raises.
        """
        beside = asked_together((each.metric for each in job.metrics), job.sample)
        found = await loop.gather_or_cancel(self._score(job, each, beside, ended) for each in job.metrics)
        scores = {each.metric.name: score for each, score in zip(job.metrics, found, strict=True)}
        return Done(sample=job.sample, scores=scores)

    async def run(self, jobs: Iterable[Job], take: Callable[[Done], object], *, together: bool = False) -> None:
        """Score jobs, as many at a time as there is room for, and pass what is done to ``take`` in their order.

        What the first ones wait for is under way before the last one has begun, unless they begin ``together``. Raises
        what ``watch`` and ``take`` raise; then the others are cancelled.
        """
        waiting, tasks = iter(jobs), deque[asyncio.Task[Done]]()
        job = next(waiting, None)
        try:
            while tasks or job is not None:
                self._changed.clear()
                if self._failure is not None:
                    raise self._failure
                while tasks and tasks[0].done():
                    take(tasks.popleft().result())
                if job is not None and self._under_way < self.width and len(tasks) < _AHEAD * self.width:
                    self._under_way += len(job.metrics)
                    tasks.append(asyncio.ensure_future(self.score(job, self._ended)))
                    tasks[-1].add_done_callback(self._note)
                    job = next(waiting, None)
                    if not together:
                        await asyncio.sleep(0)
                elif tasks:
                    await self._changed.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self) -> None:
        self._under_way -= 1
        self._changed.set()

    def _note(self, task: asyncio.Task[Done]) -> None:
        if not task.cancelled():
            self._failure = self._failure or task.exception()
        self._changed.set()

    async def _score(
        self, job: Job, each: BoundedMetric, beside: Sequence[Metric], ended: Callable[[], object]
    ) -> Score:
        metric, kept, start = each.metric, Kept(), time.monotonic()
        outcome: Outcome
        names = [it.metric.name for it in job.metrics]
        changes = {"private": self._session, "breaker": self.breaker, "row": names, "beside": beside}
        if job.test is not None:
            changes |= {"test": job.test, "recorder": kept}
        if job.judge is not None:
            changes["judge"] = job.judge
        try:
            if job.error is not None:
                return Score(outcome=UnscoredError(job.error), span=(start, time.monotonic()))
            try:
                with context.changed(**changes), voting(metric, votes=job.votes, least=each.least, most=each.most):
                    outcome = await self._measured(metric, job.sample)
            except Exception as error:  # noqa: BLE001 - a sample that a metric cannot score harms no other
                outcome = error
            self._watch(metric, outcome)
            return Score(outcome=outcome, scorings=tuple(kept.scorings), span=(start, time.monotonic()))
        finally:
            ended()

    async def _measured(self, metric: Metric, sample: Sample) -> MetricResult:
        """Return the score of a sample without holding up the loop; raise what the metric raises.

        User metrics run on one worker thread: they need not be thread-safe.
        """
        kind = type(metric)
        # Without ameasure() a metric of a user may block; those of this package compute, and wait for nothing.
        if kind.ameasure is Metric.ameasure and kind.__module__.partition(".")[0] != __name__.partition(".")[0]:
            in_thread = asyncio.get_running_loop().run_in_executor
            return await in_thread(self._thread, copy_context().run, _scored, metric, sample)
        return await metric.ascore_sample(sample)


def _scored(metric: Metric, sample: Sample) -> MetricResult:
    try:
        return metric.score_sample(sample)
    except StopIteration as error:
        # A future takes no StopIteration, and whoever waits for it would never wake.
        raise RuntimeError("measure() raised StopIteration") from error


def unscored(metric: Metric, error: Exception) -> UnscoredError:
    """Return an error as the reason why a metric has no score, with the name of the metric and of a foreign kind.

    It is a new one: an error refers to its frames and their memory.
    """
    reason = str(error)
    if not (isinstance(error, RagMetricsError) or reason.startswith(f"{metric.name}: ")):
        reason = f"{metric.name}: {type(error).__name__}: {reason}"
    return UnscoredError(reason, usage=getattr(error, "usage", None))


class GivesUp:
    """Watches the scores of a table, and raises where no further one can succeed.

    ``total`` is how many scores there are to be, ``None`` where it is not known. Where a used up budget
    ``leaves_rows``, they are unscored, and the first judge that answers nothing ends the run.
    """

    def __init__(self, breaker: CircuitBreaker, *, total: int | None = None, leaves_rows: bool = False) -> None:
        self._breaker = breaker
        self._total = total
        self._leaves_rows = leaves_rows
        self._first_failure: JudgeError | None = None
        self._failures = 0
        self._judged = False
        self.done = 0

    def __call__(self, metric: Metric, outcome: Outcome) -> None:
        """Take note of a score; raise ``RagMetricsError``."""
        if isinstance(outcome, MetricResult):
            self._judged = self._judged or outcome.judge is not None
        elif isinstance(outcome, (JudgeNotConfiguredError, BudgetExceededError, CacheUnavailableError)):
            is_spent = isinstance(outcome, BudgetExceededError) and not isinstance(outcome, UnpricedError)
            if not (is_spent and self._leaves_rows):
                raise outcome
        else:
            failure = outcome if isinstance(outcome, JudgeError) else outcome.__cause__
            if isinstance(failure, JudgeUnavailableError):
                of_all = "" if self._total is None else f" of {self._total}"
                raise JudgeUnavailableError(f"{failure}; stopped after {self.done}{of_all} scores") from failure
            if isinstance(failure, JudgeError):
                # An error refers to its frames and their memory: one is kept.
                self._first_failure = self._first_failure or failure
                self._failures += 1
                if self._breaker.is_open and self._failures >= self._breaker.most:
                    self.check_judged()
            if self._leaves_rows and self._breaker.is_open:
                raise JudgeError(str(unscored(metric, outcome)))
        self.done += 1

    def check_judged(self) -> None:
        """Raise ``JudgeError`` if no row could be judged because of the judge."""
        first = self._first_failure
        if first is not None and not self._judged:
            msg = f"the judge gave no score of {self._failures}; the first failed with: {first}"
            raise JudgeError(msg) from first
