"""Scoring a table: many samples by several metrics at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics import loop, session
from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.embedders.embedder import Embedder
from pytest_ragmetrics.engine import Engine
from pytest_ragmetrics.errors import BudgetExceededError, JudgeError, JudgeNotConfiguredError, RagMetricsError
from pytest_ragmetrics.evaluation.patience import Patience, PatientSession
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.judges.judge import Judge, JudgeUnavailableError
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.registry import metric_for
from pytest_ragmetrics.metrics.votes import polling
from pytest_ragmetrics.progress import Progress
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample

if TYPE_CHECKING:
    from typing_extensions import Self

Job = tuple[int, Metric]

#: How many scores are under way for each request allowed in flight: between its requests a score computes and waits.
UNDER_WAY = 2
# How many of the last scores are started the longest first, for each of those under way.
_LAST = 2


def evaluate(
    samples: Iterable[Sample | Mapping[str, Any]],
    metrics: Iterable[Metric | str] | Metric,
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    cache_dir: str | Path | None = None,
    concurrency: int = 32,
    votes: int | None = None,
    progress: bool = True,
) -> Evaluation:
    """Score samples by metrics, many at a time, and return the table in the order of the samples.

    ``samples`` are samples or rows that :meth:`Sample.from_mapping` takes; ``metrics`` are metrics or their names;
    those named get ``judge`` and ``embedder``. Inside a pytest session its judge, cache and concurrency are used;
    elsewhere answers are kept in ``cache_dir``, or not at all, and ``concurrency`` bounds the requests in flight.
    Each score is the mean of ``votes`` independent judgements, unless given as many as the session says. ``progress``
    shows a line in a terminal. Works from any thread, whether or not a loop runs there.

    A row that cannot be scored keeps the reason and harms no other row. Raises ``ValueError`` for an unknown metric or
    two of one name, ``JudgeNotConfiguredError``, ``BudgetExceededError``, and ``JudgeError`` as soon as no further
    request can succeed (no credit, wrong key) or when the judge answered nothing at all. An interrupt waits for the
    requests in flight; what was answered is in the cache then, as after an error.

    >>> table = evaluate([{"response": "No quotes.", "contexts": []}], ["quoted_spans_alignment"])
    >>> table.mean("quoted_spans_alignment")
    1.0
    """
    rows, chosen = _rows(samples), _chosen(metrics, judge, embedder)
    with scoring_session(cache_dir, concurrency) as running:
        return loop.run(_evaluated(rows, chosen, running, votes=votes, progress=progress))


async def aevaluate(
    samples: Iterable[Sample | Mapping[str, Any]],
    metrics: Iterable[Metric | str] | Metric,
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    cache_dir: str | Path | None = None,
    concurrency: int = 32,
    votes: int | None = None,
    progress: bool = True,
) -> Evaluation:
    """Score like :func:`evaluate`, awaitable from any event loop."""
    rows, chosen = _rows(samples), _chosen(metrics, judge, embedder)
    async with _asession(cache_dir, concurrency) as running:
        return await loop.arun(_evaluated(rows, chosen, running, votes=votes, progress=progress))


def _rows(samples: Iterable[Sample | Mapping[str, Any]]) -> tuple[Sample, ...]:
    if isinstance(samples, (Sample, Mapping, str)):
        msg = f"samples must be a list of samples or rows, not one {type(samples).__name__}"
        raise TypeError(msg)
    return tuple(_row(index, sample) for index, sample in enumerate(samples))


def _row(index: int, sample: Sample | Mapping[str, Any]) -> Sample:
    try:
        return sample if isinstance(sample, Sample) else Sample.from_mapping(sample)
    except (TypeError, ValueError) as error:
        msg = f"samples[{index}]: {error}"
        raise TypeError(msg) from error


def _chosen(
    metrics: Iterable[Metric | str] | Metric, judge: JudgeLike | None, embedder: EmbedderLike | None
) -> tuple[Metric, ...]:
    named = [metrics] if isinstance(metrics, (Metric, str)) else metrics
    chosen = tuple(metric_for(metric, judge=judge, embedder=embedder) for metric in named)
    names = [metric.name for metric in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        msg = f"two metrics of one name: {', '.join(twice)}" if twice else "give at least one metric"
        raise ValueError(msg)
    return chosen


async def _evaluated(
    samples: Sequence[Sample],
    metrics: Sequence[Metric],
    running: session.Session,
    *,
    votes: int | None,
    progress: bool,
) -> Evaluation:
    shown = Progress("scored", len(samples) * len(metrics), wanted=progress)
    width, patience = UNDER_WAY * running.concurrency, Patience(running.concurrency)
    with (
        session.within(PatientSession(running, patience)),
        polling(None, votes=votes),
        _Scorer(samples, metrics, patience=patience) as scorer,
    ):
        await _in_turn(_ordered(len(samples), metrics, last=_LAST * width), scorer.score, width=width, shown=shown)
        return scorer.table()


def _ordered(count: int, metrics: Sequence[Metric], *, last: int) -> list[Job]:
    """Return the jobs row by row, so that judges meet a text again soon; the last ones so that they end together."""

    def shortness(job: Job) -> int:
        return -job[1].rounds

    jobs = [job for row in range(count) for job in sorted(((row, metric) for metric in metrics), key=shortness)]
    return jobs[:-last] + sorted(jobs[-last:], key=shortness)


async def _in_turn(
    jobs: Sequence[Job], score: Callable[[int, Metric], Awaitable[None]], *, width: int, shown: Progress
) -> None:
    """Do jobs in their order, ``width`` at a time; when one raises, the rest is called off."""
    waiting = iter(jobs)

    async def work() -> None:
        for row, metric in waiting:
            await score(row, metric)
            shown.advance()

    workers = [asyncio.ensure_future(work()) for _ in range(min(width, len(jobs)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        shown.finish()


class _Scorer:
    """Scores one sample by one metric at a time, keeps what comes of it, and gives up where nothing can come of it.

    ``patience`` knows when a provider answers nothing.
    """

    def __init__(self, samples: Sequence[Sample], metrics: Sequence[Metric], *, patience: Patience) -> None:
        self._samples = samples
        self._metrics = metrics
        self._patience = patience
        self._results: list[dict[str, MetricResult]] = [{} for _ in samples]
        self._unscored: list[dict[str, str]] = [{} for _ in samples]
        self._first_failure: JudgeError | None = None
        self._failures = 0
        self._done = 0
        self._judged = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ragmetrics-metrics")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def score(self, row: int, metric: Metric) -> None:
        """Score one sample by one metric; raise what concerns all of them."""
        try:
            result = await measured(metric, self._samples[row], self._thread)
        except (JudgeNotConfiguredError, BudgetExceededError, CacheUnavailableError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one row is its own affair
            self._unscored[row][metric.name] = _reason(metric, error)
            self._take(error if isinstance(error, JudgeError) else error.__cause__)
        else:
            self._results[row][metric.name] = result
            self._judged = self._judged or result.judge is not None
        self._done += 1

    def table(self) -> Evaluation:
        """Return the table; raise ``JudgeError`` if no row could be judged because of the judge."""
        if not self._judged:
            self._raise_failure()
        rows = zip(self._samples, self._results, self._unscored, strict=True)
        return Evaluation(
            metrics=tuple(metric.name for metric in self._metrics),
            rows=tuple(Row(sample=sample, results=scores, unscored=reasons) for sample, scores, reasons in rows),
            better={metric.name: metric.better for metric in self._metrics},
            scales={metric.name: metric.scale for metric in self._metrics},
        )

    def _take(self, failure: BaseException | None) -> None:
        """Count a failure of a judge, and give up if the next request will fail as well."""
        if isinstance(failure, JudgeUnavailableError):
            total = len(self._samples) * len(self._metrics)
            msg = f"{failure}; stopped after {self._done} of {total} scores"
            raise JudgeUnavailableError(msg) from failure
        if isinstance(failure, JudgeError):
            # Each holds what it was raised in; one is enough to tell of all.
            self._first_failure = self._first_failure or failure
            self._failures += 1
            if self._patience.is_out and self._failures >= self._patience.most and not self._judged:
                self._raise_failure()

    def _raise_failure(self) -> None:
        first = self._first_failure
        if first is not None:
            msg = f"the judge answered none of {self._failures} scorings; the first failed with: {first}"
            raise JudgeError(msg) from first


async def measured(metric: Metric, sample: Sample, thread: Executor) -> MetricResult:
    """Return the score of a sample without holding up the loop; raise what the metric raises.

    ``thread`` is the one for all metrics that may: nobody promised that they may be used by several.
    """
    if _may_block(metric):
        in_thread = asyncio.get_running_loop().run_in_executor
        return await in_thread(thread, copy_context().run, metric.score_sample, sample)
    return await metric.ascore_sample(sample)


def _may_block(metric: Metric) -> bool:
    """Tell whether measuring may hold up the loop: those of this package compute, and wait for nothing."""
    kind = type(metric)
    return kind.ameasure is Metric.ameasure and kind.__module__.partition(".")[0] != __name__.partition(".")[0]


def _reason(metric: Metric, error: Exception) -> str:
    return str(error) if isinstance(error, RagMetricsError) else f"{metric.name}: {type(error).__name__}: {error}"


@contextmanager
def scoring_session(cache_dir: str | Path | None, concurrency: int) -> Iterator[session.Session]:
    """Take the running session, or run one of our own."""
    running = session.current()
    if running is not None:
        yield running
        return
    own = _Own(cache_dir, concurrency)
    try:
        yield own
    finally:
        own.engine.close()


@asynccontextmanager
async def _asession(cache_dir: str | Path | None, concurrency: int) -> AsyncIterator[session.Session]:
    running = session.current()
    if running is not None:
        yield running
        return
    own = _Own(cache_dir, concurrency)
    try:
        yield own
    finally:
        await loop.arun(own.engine.aclose())


class _Own:
    """A session around one evaluation outside pytest; nobody listens to its scorings."""

    def __init__(self, cache_dir: str | Path | None, concurrency: int) -> None:
        self.engine = Engine(cache_dir=None if cache_dir is None else Path(cache_dir), concurrency=concurrency)
        self.concurrency = concurrency
        self.votes = 1
        self.dry_run = False
        self.metrics = ()
        self.baseline = None
        self.desk = self.embedding_desk = self.engine.desk

    def scored(self, scoring: session.Scoring) -> None:
        """Pass over a scoring."""

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return a given judge, or that of a spec, or the one that the environment has a key for."""
        return self.engine.judge(given)

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        """Return an embedder as :meth:`judge` returns a judge."""
        return self.engine.embedder(given)
