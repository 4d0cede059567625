"""Scoring one sample by one metric without holding up the loop, inside the running session or one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from pathlib import Path

from pytest_ragmetrics import context, loop
from pytest_ragmetrics.engine import Engine
from pytest_ragmetrics.errors import RagMetricsError
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample

#: How many scores are under way for each request allowed in flight: between its requests a score computes and waits.
UNDER_WAY = 2


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


@contextmanager
def scoring_session(cache_dir: str | Path | None, concurrency: int) -> Iterator[context.Session]:
    """Yield the running session, or one that is closed at the end of the block."""
    session = context.current().session
    if session is not None:
        yield session
        return
    own = _OwnSession(cache_dir, concurrency)
    try:
        yield own
    finally:
        own.engine.close()


@asynccontextmanager
async def ascoring_session(cache_dir: str | Path | None, concurrency: int) -> AsyncIterator[context.Session]:
    """Do as :func:`scoring_session`, awaitable from any loop."""
    session = context.current().session
    if session is not None:
        yield session
        return
    own = _OwnSession(cache_dir, concurrency)
    try:
        yield own
    finally:
        await loop.arun(own.engine.aclose())


class _OwnSession:
    """A session around one evaluation outside pytest; its scorings are recorded nowhere."""

    votes = 1
    dry_run = False
    metrics = ()
    baseline = None

    def __init__(self, cache_dir: str | Path | None, concurrency: int) -> None:
        self.concurrency = concurrency
        self.engine = Engine(cache_dir=None if cache_dir is None else Path(cache_dir), concurrency=concurrency)
        self.transport, self.judge, self.embedder = self.engine.transport, self.engine.judge, self.engine.embedder

    def scored(self, scoring: context.Scoring) -> None:
        """Record nothing."""
