"""Doing the errands of all tests that are to run, many at a time and in the order in which the tests will ask."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pytest_ragmetrics import context as session
from pytest_ragmetrics import loop
from pytest_ragmetrics.circuit_breaker import CircuitBreaker
from pytest_ragmetrics.context import Scoring
from pytest_ragmetrics.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.evaluation import UNDER_WAY, measured
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.prefetch.jobs import Application, Asked, Respond, RowJob, RowOutcome, RowScore, RowSession
from pytest_ragmetrics.prefetch.sharing import SharedResults, read, written
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample

# Between two looks at the board for a row that another worker does.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.05
# How long a test waits for its row before anything is said, and from then on, in seconds.
_FIRST_GLANCE = 0.3
_GLANCE = 0.1


class Prefetcher:
    """Does errands in the background; its methods are called by the thread that runs the tests.

    ``threads`` is how many calls of an application that is not asynchronous are made at once. With a ``board`` each
    row is done by the one worker that takes it first; the others read what came of it there.
    """

    def __init__(self, running: session.Session, *, threads: int, board: SharedResults | None = None) -> None:
        self.total = 0
        self.done = 0
        self._running = running
        self._board = board
        self._width = UNDER_WAY * running.concurrency
        # How many scores of a test are yet to come, while its errand is done here.
        self._under_way: dict[str, int] = {}
        self._errands: dict[str, RowJob] = {}
        self._ready: OrderedDict[str, RowJob] = OrderedDict()
        self._unanswered: defaultdict[str, OrderedDict[str, RowJob]] = defaultdict(OrderedDict)
        self._applications: dict[str, Application] = {}
        self._as_they_are: set[str] = set()
        self._tasks: dict[str, asyncio.Task[RowOutcome]] = {}
        self._patience = CircuitBreaker(running.concurrency)
        self._threads = threads
        self._callers = ThreadPoolExecutor(threads, thread_name_prefix="ragmetrics-respond")
        self._metrics = ThreadPoolExecutor(1, thread_name_prefix="ragmetrics-metrics")
        self._stopped = False

    def start(self, errands: Iterable[RowJob]) -> None:
        """Begin with these errands, in their order."""
        loop.run(self._start(tuple(errands)))

    def employ(self, group: str, respond: Respond | None) -> None:
        """Have the rows of a group of tests that have no response answered by its application from now on.

        Where there is none they are scored as they are.
        """
        if not self._is_employed(group, respond):
            loop.run(self._employ(group, respond))

    def dismiss(self, respond: Respond) -> None:
        """Ask an application no more, and wait for what it is answering: its fixture is about to end."""
        loop.run(self._dismiss(respond))

    def outcome(self, test: str, waiting: Callable[[], None]) -> RowOutcome:
        """Hand over what came of the errand of a test; until it is there, ``waiting`` is called now and then."""
        patience = _FIRST_GLANCE
        # A row that is done is not waited for: on a busy loop one turn takes longer than most tests.
        while not (self._has_ended(test) or loop.run(self._wait(test, patience))):
            waiting()
            patience = _GLANCE
        return self._tasks.pop(test).result()

    def again(self, test: str, before: RowOutcome) -> None:
        """Do an errand anew of which not all came that was to come."""
        loop.run(self._again(test, before))

    def stop(self, *, finish: bool) -> None:
        """Begin nothing more; what is under way is called off, or waited for to ``finish`` it for other workers."""
        loop.run(self._stop(finish=finish))
        self._callers.shutdown(wait=False, cancel_futures=True)
        self._metrics.shutdown(wait=False, cancel_futures=True)

    async def _start(self, errands: tuple[RowJob, ...]) -> None:
        self.total += len(errands)
        for errand in errands:
            self._errands[errand.test] = errand
            self._queue_of(errand)[errand.test] = errand
        self._fill()

    async def _employ(self, group: str, respond: Respond | None) -> None:
        if respond is None:
            self._as_they_are.add(group)
            self._ready.update(self._unanswered.pop(group, {}))
        else:
            self._applications[group] = Application(
                respond, threads=self._callers, width=self._threads, concurrency=self._running.concurrency
            )
        self._fill()

    async def _dismiss(self, respond: Respond) -> None:
        gone = [group for group, application in self._applications.items() if application.respond is respond]
        answering = {asked for group in gone for asked in self._applications.pop(group).answering}
        if answering:
            await asyncio.wait(answering)

    async def _wait(self, test: str, patience: float) -> bool:
        errand = self._errands[test]
        queue = self._queue_of(errand)
        if test in queue:
            # Its test waits already, so it does not wait for its turn.
            del queue[test]
            self._begin(errand)
        if test not in self._tasks:
            self._tasks[test] = asyncio.ensure_future(self._awaited(errand))
        await asyncio.wait((self._tasks[test],), timeout=patience)
        return self._has_ended(test)

    async def _again(self, test: str, before: RowOutcome) -> None:
        errand = self._errands[test]
        self._patience.relent()
        # What the application answered it need not answer again.
        self._do(errand if before.failure is not None else replace(errand, sample=before.sample))

    async def _stop(self, *, finish: bool) -> None:
        self._stopped = True
        self._ready.clear()
        self._unanswered.clear()
        tasks = [task for task in self._tasks.values() if not task.done()]
        if not finish:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._board is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                self._board.close()

    def _has_ended(self, test: str) -> bool:
        return test in self._tasks and self._tasks[test].done()

    def _is_employed(self, group: str, respond: Respond | None) -> bool:
        if respond is None:
            return group in self._as_they_are
        return group in self._applications and self._applications[group].respond is respond

    def _queue_of(self, errand: RowJob) -> OrderedDict[str, RowJob]:
        waits = errand.is_unanswered and errand.group not in self._as_they_are
        return self._unanswered[errand.group] if waits else self._ready

    def _fill(self) -> None:
        """Begin as many errands as there is room for, those that have to be answered first."""
        for group, application in self._applications.items():
            queue = self._unanswered[group]
            while queue and application.has_time and self._has_room():
                self._begin(queue.popitem(last=False)[1])
        while self._ready and self._has_room():
            self._begin(self._ready.popitem(last=False)[1])

    def _has_room(self) -> bool:
        return not self._stopped and sum(self._under_way.values()) < self._width

    def _begin(self, errand: RowJob) -> None:
        if self._is_ours(errand):
            self._do(errand)

    def _do(self, errand: RowJob) -> None:
        self._under_way[errand.test] = max(1, len(errand.metrics))
        task = self._tasks[errand.test] = asyncio.ensure_future(self._performed(errand, self._asked(errand)))

        def ended(_: object) -> None:
            del self._under_way[errand.test]
            self.done += 1
            self._fill()

        task.add_done_callback(ended)

    def _asked(self, errand: RowJob) -> asyncio.Future[Asked] | None:
        """Ask the application for an errand's response at once, so that it counts as busy from now on."""
        application = self._applications.get(errand.group)
        if application is None or not errand.is_unanswered:
            return None
        with session.within(RowSession(self._running, errand, self._patience)):
            asked = application.ask(errand.sample)
        asked.add_done_callback(lambda _: self._fill())
        return asked

    def _is_ours(self, errand: RowJob) -> bool:
        if self._board is None:
            return True
        try:
            return self._board.claim(errand.test)
        except (sqlite3.Error, OSError):
            # Without the board each worker does its own rows, and answers are shared by the cache.
            self._board = None
            return True

    async def _awaited(self, errand: RowJob) -> RowOutcome:
        """Return what another worker publishes; when it is gone, do the errand here."""
        pause = _SHORTEST_PAUSE
        while not self._is_ours(errand):
            with contextlib.suppress(sqlite3.Error):
                text = None if self._board is None else self._board.outcome(errand.test)
                if text is not None:
                    return read(text, errand)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return await self._performed(errand, self._asked(errand))

    async def _performed(self, errand: RowJob, asked: asyncio.Future[Asked] | None) -> RowOutcome:
        outcome = await self._outcome_of(errand, asked)
        if self._board is not None:
            with contextlib.suppress(sqlite3.Error):
                self._board.publish(errand.test, written(outcome, errand))
        return outcome

    async def _outcome_of(self, errand: RowJob, asked: asyncio.Future[Asked] | None) -> RowOutcome:
        sample, failure = (errand.sample, None) if asked is None else await asked
        if failure is not None:
            return RowOutcome(sample=sample, failure=failure)
        scored = await asyncio.gather(*(self._scored_in_turn(errand, metric, sample) for metric in errand.metrics))
        return RowOutcome(sample=sample, scores={m.name: s for m, s in zip(errand.metrics, scored, strict=True)})

    async def _scored_in_turn(self, errand: RowJob, metric: Metric, sample: Sample) -> RowScore:
        scored = await self._scored(errand, metric, sample)
        if errand.test in self._under_way:
            # The next row need not wait for the slowest metric of this one.
            self._under_way[errand.test] -= 1
            self._fill()
        return scored

    async def _scored(self, errand: RowJob, metric: Metric, sample: Sample) -> RowScore:
        listener = RowSession(self._running, errand, self._patience)
        try:
            with session.within(listener):
                outcome: MetricResult | Exception = await measured(metric, sample, self._metrics)
        except RagMetricsError as error:
            outcome = error
        except Exception as error:  # noqa: BLE001 - a row that a metric cannot score harms no other
            said = str(error) if isinstance(error, ValueError) else f"{metric.name}: {type(error).__name__}: {error}"
            outcome = UnscoredError(f"{errand.place}: {said}")
            outcome.__cause__ = error
        if not listener.scorings and isinstance(outcome, (MetricResult, RagMetricsError)):
            # Nothing was told where it was known beforehand that there is no score.
            told = outcome if isinstance(outcome, (MetricResult, UnscoredError)) else UnscoredError(str(outcome))
            listener.scored(Scoring(metric=metric.name, sample=sample, outcome=told, better=metric.better))
        return RowScore(outcome=outcome, scorings=tuple(listener.scorings))
