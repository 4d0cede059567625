"""The prefetcher: does the jobs of all tests that are to run, many at a time, in the order in which the tests run."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Done, Kept, Runner, Score, unscored
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Scoring, Session
from pytest_ragmetrics.plugin.rows.jobs import Application, Asked, Respond, RowJob, SparedError
from pytest_ragmetrics.plugin.rows.scripts import Conversation
from pytest_ragmetrics.plugin.rows.sharing import SharedResults, read, written

if TYPE_CHECKING:
    from pytest_ragmetrics.plugin.rows.drawn import DrawnRows

T = TypeVar("T")
P = ParamSpec("P")

# Seconds between two looks for the outcome of a row that another worker does.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.05
# Seconds that a test waits for its row before progress is shown, and between two states of it.
_FIRST_WAIT = 0.3
_NEXT_WAIT = 0.1


def _on_loop(
    method: Callable[Concatenate[Prefetcher, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Prefetcher, P], T]:
    """Run a method on the background loop while the thread that calls it waits."""

    @wraps(method)
    def call(self: Prefetcher, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return loop.run(method(self, *args, **kwargs))

    return call


class Prefetcher:
    """Does jobs on the background loop; its methods are called by the thread that runs the tests.

    ``threads`` is how many calls of an application that is not asynchronous are made at once. With ``shared`` each
    row is done by the worker that claims it first; the others read its outcome there. The rows of ``drawn`` sets are
    begun a block at a time, until the gates of the set are decided. A conversation is answered by the worker that
    claims it, which does all of its rows.
    """

    def __init__(
        self,
        session: Session,
        *,
        threads: int,
        shared: SharedResults | None = None,
        drawn: Sequence[DrawnRows] = (),
    ) -> None:
        self.total = 0
        self.done = 0
        self._session = session
        self._shared = shared
        self._drawn = {test: rows for rows in drawn for test in rows.order}
        self._runner = Runner(session)
        # How many scores of a test are yet to come, while its job is done here.
        self._under_way: dict[str, int] = {}
        self._jobs: dict[str, RowJob] = {}
        self._ready: OrderedDict[str, RowJob] = OrderedDict()
        self._unanswered: defaultdict[str, OrderedDict[str, RowJob]] = defaultdict(OrderedDict)
        self._applications: dict[str, Application] = {}
        self._talks: defaultdict[str, Conversation] = defaultdict(Conversation)
        self._as_they_are: set[str] = set()
        self._tasks: dict[str, asyncio.Task[Done]] = {}
        self._threads = threads
        self._callers = ThreadPoolExecutor(threads, thread_name_prefix="ragmetrics-respond")
        #: Whether no further row is begun.
        self.is_stopped = False

    @_on_loop
    async def start(self, jobs: Sequence[RowJob]) -> None:
        """Begin with these jobs, in their order."""
        self.total += len(jobs)
        for job in jobs:
            self._jobs[job.test] = job
            if job.test in self._drawn:
                self._drawn[job.test].hold(job)
            else:
                self._queue_of(job)[job.test] = job
        for drawn in dict.fromkeys(self._drawn[job.test] for job in jobs if job.test in self._drawn):
            self._advance(drawn)
        self._fill()

    def set_application(self, group: str, respond: Respond | None) -> None:
        """Have the rows of a group of tests that have no response answered by its application from now on.

        Without an application they are scored as they are.
        """
        current = self._applications.get(group)
        known = group in self._as_they_are if respond is None else current is not None and current.respond is respond
        if not known:
            self._set_application(group, respond)

    @_on_loop
    async def _set_application(self, group: str, respond: Respond | None) -> None:
        if respond is None:
            self._as_they_are.add(group)
            self._ready.update(self._unanswered.pop(group, {}))
        else:
            self._applications[group] = Application(
                respond, threads=self._callers, width=self._threads, concurrency=self._session.concurrency
            )
        self._fill()

    @_on_loop
    async def close_application(self, respond: Respond, *, finish: bool) -> None:
        """Ask an application no more, and wait for what it is answering: its fixture is about to end.

        Conversations that it has begun are answered to their end, if it is to ``finish``.
        """
        gone = [group for group, application in self._applications.items() if application.respond is respond]
        held = {talk for group in gone for talk in self._applications[group].held}
        waiting = [job for group in gone if held for job in self._unanswered[group].values() if job.talk in held]
        for job in waiting if finish and not self.is_stopped else ():
            # No other application, and no other worker, can go on with a conversation.
            del self._unanswered[job.group][job.test]
            self._begin(job)
        answering = {asked for group in gone for asked in self._applications.pop(group).answering}
        if answering:
            await asyncio.wait(answering)
        if self._shared is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                for talk in held:
                    self._shared.give_back(talk)

    def outcome(self, test: str, waiting: Callable[[], None]) -> Done:
        """Return the outcome of the job of a test, once; until it is there, ``waiting`` is called now and then.

        Raises ``SparedError`` for a row that is not needed any more.
        """
        timeout = _FIRST_WAIT
        # An outcome that is there is taken without the loop: on a busy one a turn takes longer than most tests.
        while not (self._has_ended(test) or self._wait(test, timeout)):
            waiting()
            timeout = _NEXT_WAIT
        return self._tasks.pop(test).result()

    def check_needed(self, test: str) -> None:
        """Raise ``SparedError`` if the row of a test is not needed any more."""
        if test in self._drawn:
            self._check_needed(test)

    @_on_loop
    async def _check_needed(self, test: str) -> None:
        drawn = self._drawn[test]
        self._advance(drawn)
        self._raise_spared(drawn, test)

    def _raise_spared(self, drawn: DrawnRows, test: str) -> None:
        if drawn.spares(test):
            raise SparedError(drawn.why_spared)

    @_on_loop
    async def _wait(self, test: str, timeout: float) -> bool:
        job, drawn = self._jobs[test], self._drawn.get(test)
        if drawn is not None:
            await self._hold(drawn, test, timeout)
            self._raise_spared(drawn, test)
            if drawn.holds(test):
                return False
        # Its test waits already, so it is begun before its turn.
        if self._queue_of(job).pop(test, None) is not None:
            self._begin(job)
        if test not in self._tasks:
            self._tasks[test] = asyncio.ensure_future(self._awaited(job))
        await asyncio.wait((self._tasks[test],), timeout=timeout)
        return self._has_ended(test)

    async def _hold(self, drawn: DrawnRows, test: str, timeout: float) -> None:
        """Wait until a row may be begun or is not needed, and do those before it meanwhile."""
        end = asyncio.get_running_loop().time() + timeout
        while True:
            self._advance(drawn)
            self._fill()
            if drawn.holds(test) and drawn.missing is not None and not self._is_coming(drawn.missing):
                # Another worker may be stuck as this one is: a row more costs less than a run that does not end.
                self._queue(drawn.released(test))
            if not drawn.holds(test) or asyncio.get_running_loop().time() >= end:
                return
            await asyncio.sleep(_LONGEST_PAUSE)

    def _advance(self, drawn: DrawnRows) -> None:
        """Read what other workers have done of a drawn set, and queue the rows that may be begun after it."""
        with contextlib.suppress(sqlite3.Error):
            while self._shared is not None and (test := drawn.missing) in self._jobs and test not in self._under_way:
                text = self._shared.outcome(test)
                if text is None:
                    break
                drawn.note(test, read(text, self._jobs[test]))
        self._queue(drawn.released())

    def _queue(self, jobs: Sequence[RowJob]) -> None:
        """Put rows that were held back before all others, because tests may wait for them."""
        for job in reversed(jobs):
            queue = self._queue_of(job)
            queue[job.test] = job
            queue.move_to_end(job.test, last=False)

    def _is_coming(self, test: str) -> bool:
        """Tell whether somebody does a row, or can; that of a worker which has ended is begun here."""
        job = self._jobs[test]
        is_answered = job.group in self._applications or self._queue_of(job) is self._ready
        if test not in self._under_way and test not in self._queue_of(job) and is_answered:
            self._begin(job)
        if is_answered or test in self._tasks:
            return True
        with contextlib.suppress(sqlite3.Error, OSError):
            return self._shared is not None and self._shared.is_begun(test)
        return False

    @_on_loop
    async def retry(self, test: str, before: Done) -> None:
        """Do a job anew whose outcome ``before`` is not complete; a response that there is stays."""
        job = self._jobs[test]
        self._runner.breaker.half_open()
        if before.failure is not None and job.talk in self._talks:
            self._talks[job.talk].failure = None
        self._do(job if before.failure is not None else replace(job, sample=before.sample))

    @_on_loop
    async def stop(self, *, finish: bool) -> None:
        """Begin nothing more; what is under way is cancelled, or with ``finish`` waited for: other workers need it."""
        self.is_stopped = True
        self._ready.clear()
        self._unanswered.clear()
        tasks = [task for task in self._tasks.values() if not task.done()]
        if not finish:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._shared is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                self._shared.close()
        self._callers.shutdown(wait=False, cancel_futures=True)
        self._runner.close()

    def _has_ended(self, test: str) -> bool:
        return test in self._tasks and self._tasks[test].done()

    def _queue_of(self, job: RowJob) -> OrderedDict[str, RowJob]:
        return self._unanswered[job.group] if job.is_unanswered and job.group not in self._as_they_are else self._ready

    def _fill(self) -> None:
        """Begin as many jobs as there is room for, first those that an application has to answer."""
        for group, application in self._applications.items():
            queue = self._unanswered[group]
            while queue and application.has_room and self._has_room():
                job = next(filter(application.is_free, queue.values()), None)
                if job is None:
                    break
                self._begin(queue.pop(job.test))
        while self._ready and self._has_room():
            self._begin(self._ready.popitem(last=False)[1])

    def _has_room(self) -> bool:
        return not self.is_stopped and sum(self._under_way.values()) < self._runner.width

    def _begin(self, job: RowJob) -> None:
        if self._is_ours(job):
            self._do(job)

    def _do(self, job: RowJob) -> None:
        self._under_way[job.test] = max(1, len(job.metrics))
        task = self._tasks[job.test] = asyncio.ensure_future(self._performed(job, self._asked(job)))

        def ended(task: asyncio.Task[Done]) -> None:
            del self._under_way[job.test]
            self.done += 1
            if (drawn := self._drawn.get(job.test)) is not None:
                drawn.note(job.test, None if task.cancelled() or task.exception() else task.result())
                self._advance(drawn)
            self._fill()

        task.add_done_callback(ended)

    def _asked(self, job: RowJob) -> asyncio.Future[Asked] | None:
        """Ask the application for a job's response at once, so that it counts as busy from now on."""
        application = self._applications.get(job.group)
        if application is None or not job.is_unanswered:
            return None
        # What the application scores itself is recorded nowhere: it may be called before its test runs.
        with context.changed(
            private=self._session,
            test=job.test,
            recorder=Kept(),
            judge=job.judge,
            votes=job.votes,
            breaker=self._runner.breaker,
        ):
            asked = application.ask(job, self._talks[job.talk] if job.script else Conversation())
        self._session.answering += 1

        def answered(_: object) -> None:
            self._session.answering -= 1
            self._fill()

        asked.add_done_callback(answered)
        return asked

    def _is_ours(self, job: RowJob) -> bool:
        if self._shared is None:
            return True
        try:
            return all(self._shared.claim(claimed) for claimed in dict.fromkeys((job.talk, job.test)))
        except (sqlite3.Error, OSError):
            # Without shared results each worker does its own rows, and answers are shared by the cache.
            self._shared = None
            for drawn in set(self._drawn.values()):
                drawn.give_up()
            return True

    async def _awaited(self, job: RowJob) -> Done:
        """Return the outcome that another worker publishes; when that worker has ended without it, do the job here."""
        pause = _SHORTEST_PAUSE
        while not self._is_ours(job):
            with contextlib.suppress(sqlite3.Error):
                text = None if self._shared is None else self._shared.outcome(job.test)
                if text is not None:
                    return read(text, job)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return await self._performed(job, self._asked(job))

    async def _performed(self, job: RowJob, asked: asyncio.Future[Asked] | None) -> Done:
        sample, failure = (job.sample, None) if asked is None else await asked
        done = Done(sample=sample, failure=failure)
        if failure is None:
            done = await self._runner.score(replace(job, sample=sample), partial(self._ended, job))
            done = Done(sample=sample, scores={each.metric.name: _of_row(job, each, done) for each in job.metrics})
        if self._shared is not None:
            with contextlib.suppress(sqlite3.Error):
                self._shared.publish(job.test, written(done, job))
        return done

    def _ended(self, job: RowJob) -> None:
        if job.test in self._under_way:
            # The next row need not wait for the slowest metric of this one.
            self._under_way[job.test] -= 1
            self._fill()


def _of_row(job: RowJob, each: BoundedMetric, done: Done) -> Score:
    """Return a score of a row as its test sees it: an error names the row, and is recorded where nothing else is."""
    metric, found = each.metric, done.scores[each.metric.name]
    outcome = found.outcome
    if not isinstance(outcome, (MetricResult, RagMetricsError)):
        reason = UnscoredError(f"{job.place}: {unscored(metric, outcome)}")
        # No frame says more than the message on a field that is missing.
        reason.__cause__ = None if each.missing(done.sample) else outcome
        outcome = reason
    shown = outcome if isinstance(outcome, (MetricResult, UnscoredError)) else UnscoredError(str(outcome))
    own = Scoring(metric=metric.name, sample=done.sample, outcome=shown, better=metric.better)
    return Score(outcome=outcome, scorings=found.scorings or (own,))
