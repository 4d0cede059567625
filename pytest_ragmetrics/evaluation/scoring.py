"""Scoring samples by metrics without holding up the loop, inside the running session or one of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import (
    BudgetExceededError,
    JudgeError,
    JudgeNotConfiguredError,
    RagMetricsError,
    UnscoredError,
)
from pytest_ragmetrics.core.files import affordable
from pytest_ragmetrics.core.progress import Progress
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.judges.transports.values import JudgeUnavailableError
from pytest_ragmetrics.metrics.base import Metric, check_count
from pytest_ragmetrics.metrics.votes import voting

#: How many scores are under way for each request allowed in flight: between its requests a score computes and waits,
#: and what is known to be asked about the same contexts is cached by the provider.
UNDER_WAY = 4


def scores_under_way(session: context.Session) -> int:
    """Return how many scores of a session may be under way."""
    return sys.maxsize if session.batched else UNDER_WAY * session.concurrency


#: Called with the number of scores that are done and the number of all.
ProgressCall = Callable[[int, int], object]
# How many of the last scores are started the longest first, for each of those under way.
_LAST = 1
# How many scores for each request allowed in flight are started at the same time, where there are no more.
_TOGETHER = 2


async def measured(metric: Metric, sample: Sample, thread: Executor) -> MetricResult:
    """Return the score of a sample without holding up the loop; raise what the metric raises.

    User metrics run on the one worker thread of ``thread``: they need not be thread-safe.
    """
    kind = type(metric)
    # Without ameasure() a metric of a user may block; those of this package compute, and wait for nothing.
    if kind.ameasure is Metric.ameasure and kind.__module__.partition(".")[0] != __name__.partition(".")[0]:
        in_thread = asyncio.get_running_loop().run_in_executor
        return await in_thread(thread, copy_context().run, metric.score_sample, sample)
    return await metric.ascore_sample(sample)


def unscored_reason(metric: Metric, error: Exception) -> str:
    """Return why a metric has no score, with its name and, of an error that is not ours, the kind, each once."""
    said = str(error)
    is_told = isinstance(error, RagMetricsError) or said.startswith(f"{metric.name}: ")
    return said if is_told else f"{metric.name}: {type(error).__name__}: {said}"


def scoring_session(cache_dir: str | Path | None, concurrency: int) -> nullcontext[context.Session] | OwnSession:
    """Return the running session, or one that is closed at the end of its ``with`` or ``async with`` block."""
    session = context.current().session
    return OwnSession(cache_dir, concurrency) if session is None else nullcontext(session)


def shared_cache() -> dict[str, Any]:
    """Return the options of an engine for the shared cache that the environment names; raise ``RagMetricsError``."""
    names = ("RAGMETRICS_CACHE_URL", "RAGMETRICS_CACHE_URL_MODE", "RAGMETRICS_CACHE_SECRET")
    url, mode, secret = (os.environ.get(name, "").strip() for name in names)
    if not url:
        return {}
    from pytest_ragmetrics.cache.remote import check_cache_url

    if mode not in ("", "read", "readwrite"):
        raise RagMetricsError(f"{names[1]}={mode}: write read or readwrite")
    try:
        return {
            "cache_url": check_cache_url(url),
            "cache_url_mode": mode or "readwrite",
            "cache_secret": secret,
        }
    except ValueError as error:
        raise RagMetricsError(f"{names[0]}: {error}") from error


class OwnSession:
    """A session around one evaluation outside pytest; its scorings are recorded nowhere.

    ``options`` are further ones of :class:`~pytest_ragmetrics.evaluation.engine.Engine`.
    """

    votes = 1
    dry_run = False
    batched = False
    answering = 0
    metrics = ()
    module: Mapping[str, Any] = {}
    columns = ""
    baseline = None

    def __init__(self, cache_dir: str | Path | None, concurrency: int, **options: Any) -> None:
        self.concurrency = concurrency = affordable(check_count("concurrency", concurrency))
        folder = None if cache_dir is None else Path(cache_dir)
        self.engine = Engine(cache_dir=folder, concurrency=concurrency, **options)
        self.transport, self.judge, self.embedder = self.engine.transport, self.engine.judge, self.engine.embedder
        self.asks_once = self.engine.cache.mode != "off"

    def scored(self, scoring: context.Scoring) -> None:
        """Record nothing."""

    def __enter__(self) -> context.Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.engine.close()

    async def __aenter__(self) -> context.Session:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await loop.arun(self.engine.aclose())


async def score_table(
    samples: Sequence[Sample],
    metrics: Sequence[Metric],
    session: context.Session,
    *,
    votes: int | None,
    progress: bool | ProgressCall,
) -> TableScores:
    """Return the scores of all samples by all metrics, many at a time; raise what concerns all of them."""
    given: object = progress
    if not isinstance(given, bool) and (not callable(given) or iscoroutinefunction(given)):
        raise TypeError(f"progress must be True, False or a function of two counts, without async, not {given!r:.60}")
    total = len(samples) * len(metrics)
    shown = Progress("scored", total, wanted=progress is True)
    width, breaker = scores_under_way(session), CircuitBreaker(session.concurrency)
    scorer = TableScores(samples, metrics, breaker=breaker)
    waiting = iter(_ordered(len(samples), metrics, last=_LAST * width))

    async def work() -> None:
        for row, metric in waiting:
            await scorer.score_row(row, metric)
            shown.advance()
            if callable(progress):
                progress(scorer.done, total)

    with context.changed(private=session, breaker=breaker, beside=metrics), voting(None, votes=votes):
        try:
            # What waits for no place is known at the same time, so that the provider caches what several ask about.
            waits = total > _TOGETHER * session.concurrency
            await loop.gather_or_cancel((work() for _ in range(min(width, total))), one_by_one=waits)
            scorer.check_judged()
            return scorer
        finally:
            shown.finish()
            scorer.thread.shutdown(wait=False, cancel_futures=True)


def _ordered(count: int, metrics: Sequence[Metric], *, last: int) -> list[tuple[int, Metric]]:
    """Return the jobs row by row, so that judges meet a text again soon; the last ones so that they end together."""
    longest_first = sorted(metrics, key=lambda metric: -metric.rounds)
    jobs = [(row, metric) for row in range(count) for metric in longest_first]
    return jobs[:-last] + sorted(jobs[-last:], key=lambda job: -job[1].rounds)


class Scorer:
    """Scores a sample by a metric; gives up when the judge answers nothing.

    ``total`` is how many scores there are to be, ``None`` where it is not known.
    """

    def __init__(self, *, breaker: CircuitBreaker, total: int | None = None) -> None:
        self._breaker = breaker
        self._total = total
        self._first_failure: JudgeError | None = None
        self._failures = 0
        self.done = 0
        self._judged = False
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="ragmetrics-metrics")

    async def score(self, sample: Sample, metric: Metric) -> MetricResult | UnscoredError:
        """Return the result, or why there is none; raise what concerns all scores."""
        outcome: MetricResult | UnscoredError
        try:
            outcome = await measured(metric, sample, self.thread)
        except (JudgeNotConfiguredError, BudgetExceededError, CacheUnavailableError):
            raise
        except Exception as error:  # noqa: BLE001 - other rows are scored nevertheless
            # A new one, as the error refers to its frames and their memory.
            outcome = UnscoredError(unscored_reason(metric, error), usage=getattr(error, "usage", None))
            self._take(error if isinstance(error, JudgeError) else error.__cause__)
        else:
            self._judged = self._judged or outcome.judge is not None
        self.done += 1
        return outcome

    def check_judged(self) -> None:
        """Raise ``JudgeError`` if no row could be judged because of the judge."""
        if not self._judged:
            self._raise_failure()

    def _take(self, failure: BaseException | None) -> None:
        """Count a failure of a judge, and give up if the next request will fail as well."""
        if isinstance(failure, JudgeUnavailableError):
            of_all = "" if self._total is None else f" of {self._total}"
            raise JudgeUnavailableError(f"{failure}; stopped after {self.done}{of_all} scores") from failure
        if isinstance(failure, JudgeError):
            # Each refers to its frames and their memory; one is enough to report.
            self._first_failure = self._first_failure or failure
            self._failures += 1
            if self._breaker.is_open and self._failures >= self._breaker.most and not self._judged:
                self._raise_failure()

    def _raise_failure(self) -> None:
        first = self._first_failure
        if first is not None:
            msg = f"the judge answered none of {self._failures} scorings; the first failed with: {first}"
            raise JudgeError(msg) from first


class TableScores(Scorer):
    """The scores of a table.

    ``results`` and ``unscored`` have a mapping by metric for each sample; ``spans`` has the times of the first start
    and the last end by metric.
    """

    def __init__(self, samples: Sequence[Sample], metrics: Sequence[Metric], *, breaker: CircuitBreaker) -> None:
        super().__init__(breaker=breaker, total=len(samples) * len(metrics))
        self._samples = samples
        self.results: list[dict[str, MetricResult]] = [{} for _ in samples]
        self.unscored: list[dict[str, str]] = [{} for _ in samples]
        self.spans: dict[str, tuple[float, float]] = {}

    async def score_row(self, row: int, metric: Metric) -> None:
        """Score one sample by one metric; raise what concerns all of them."""
        start = time.monotonic()
        outcome = await self.score(self._samples[row], metric)
        if isinstance(outcome, MetricResult):
            self.results[row][metric.name] = outcome
            # The figures of its table are asserted, as plain numbers.
            outcome.used = True
        else:
            self.unscored[row][metric.name] = str(outcome)
        self.spans[metric.name] = (min(start, self.spans.get(metric.name, (start,))[0]), time.monotonic())
