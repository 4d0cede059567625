"""Scores of a data set of Ray, computed by actors on its cluster; needs the extra ``[ray]``.

The actors share one budget, one limit of requests in flight and one circuit breaker, which an actor of their own has.
Keys reach them by the environment of the cluster's nodes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.cache.folder import default_folder
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.codec import dump, load
from pytest_ragmetrics.core.errors import BudgetExceededError, JudgeError, optional
from pytest_ragmetrics.datasets.streaming import LoggedRow
from pytest_ragmetrics.evaluation.batch_scorer import BatchScorer
from pytest_ragmetrics.evaluation.runner import BoundedMetric, bounded_metrics
from pytest_ragmetrics.evaluation.score_files import row_data
from pytest_ragmetrics.evaluation.session import shared_cache
from pytest_ragmetrics.judges.transports.breaker import RETRY_AFTER
from pytest_ragmetrics.judges.transports.budget import Budget, BudgetUse, Limits, reached
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.runs.records import TestRecord

if TYPE_CHECKING:
    from ray.data import Dataset

# An actor has four batches under way, so that no request waits for the last row of another batch.
_BATCH = 64
# Requests that an actor may make without asking again; near a limit it is one.
_PORTION = 16
# With Ray's default of 1 the actors take all processors, and what reads the rows gets none: no progress and no error.
_CPUS = 0.25
# Workers that may be killed while they score a row before it is left out.
_ATTEMPTS = 2
# Rows of a file that become one data set, whose actors take seconds to start.
_ROWS_OF_DATASET = 20_000
_ROWS_OF_BLOCK = 512


def score(
    dataset: Dataset,
    metrics: Iterable[str | Metric] | Mapping[str | Metric, float | None],
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    concurrency: int = 32,
    budget: Limits | float | None = None,
    cache_dir: str | Path | None = None,
    votes: int | None = None,
    actors: int | None = None,
) -> Dataset:
    """Return a data set with the scores of its rows in flat columns, computed when it is consumed.

    Rows, metrics and columns are those of :func:`~pytest_ragmetrics.scorer`; a row that cannot be scored has the
    reason. ``concurrency`` bounds the requests in flight of all ``actors`` together (by default one for each
    processor of the cluster), and ``budget`` what they spend: US dollars, or
    :class:`~pytest_ragmetrics.judges.transports.budget.Limits`. Actors that reach the same ``cache_dir`` (by default
    the nearest ``.ragmetrics``) ask once for what they all ask, and find what another machine has asked where both
    have one ``RAGMETRICS_CACHE_URL``; after a worker was killed its rows are scored again with the answers that are
    there. Ray keeps no order of rows: give them an id. For some 10,000 rows and more: starting takes seconds.

    Raises ``RagMetricsError`` where Ray is not installed, ``ValueError`` for an unknown metric and for fewer requests
    in flight than actors.

    Example::

        rows = ray.data.read_parquet("s3://logs/2026-11/")
        score = pytest_ragmetrics.evaluation.ray.score
        scored = score(rows, {"faithfulness": 0.8}, judge="openai:gpt-5.4-mini", budget=20.0)
        scored.write_parquet("s3://scores/2026-11/")
    """
    folder = Path(cache_dir or default_folder()).absolute()
    shared_cache(folder)  # raises here, and not in each worker
    chosen = bounded_metrics(metrics, judge=judge, embedder=embedder)
    each = BatchScorer(chosen, concurrency=concurrency, cache_dir=folder, votes=votes)
    limits = budget if budget is None or isinstance(budget, Limits) else Limits(cost=budget)
    return _Pool(limits, concurrency=concurrency, actors=actors, options="budget ").scored(dataset, each)


def score_rows_on_ray(
    rows: Iterator[LoggedRow],
    metrics: Sequence[BoundedMetric],
    take: Callable[[Mapping[str, Any]], object],
    *,
    address: str | None,
    limits: Limits,
    **options: Any,
) -> BudgetUse:
    """Score rows, passing each to ``take`` in its order as JSON builtins; return what was used of the limits.

    ``address`` is that of a cluster, ``None`` for one of this machine alone; ``options`` are those of
    :class:`BatchScorer`. Raises ``JudgeError`` where the provider answers no more.
    """
    ray = _ray()
    import pyarrow as pa
    from ray.data import DataContext, from_arrow

    ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        shared = DataContext.get_current()
        shared.execution_options.preserve_order = True
        shared.enable_progress_bars = False
        pool = _Pool(limits, concurrency=options["concurrency"], actors=None, options="--max-")
        while block := [json.dumps(dump(row)) for row in islice(rows, _ROWS_OF_DATASET)]:
            parts = [block[start : start + _ROWS_OF_BLOCK] for start in range(0, len(block), _ROWS_OF_BLOCK)]
            dataset = from_arrow([pa.table({"row": part}) for part in parts])
            scored = pool.scored(dataset, _LineScorer(metrics, **options))
            for batch in scored.iter_batches(batch_format="pyarrow", batch_size=None):
                for line in batch["row"].to_pylist():
                    answer = json.loads(line)
                    if any(record["score"] is None for record in answer["records"]):
                        for error in ray.get(pool.coordinator.given_up.remote()).values():
                            raise JudgeError(str(error)) from error
                    take(answer)
        used: BudgetUse = ray.get(pool.coordinator.used.remote())
        return used
    finally:
        ray.shutdown()


def _ray() -> Any:
    return optional("ray", "scoring on Ray", "ray")


class _LineScorer(BatchScorer):
    """Scores batches of rows that are JSON, into JSON of these with their scores."""

    def read(self, batch: Any) -> list[LoggedRow]:
        return [load(LoggedRow, json.loads(line)) for line in batch["row"].to_pylist()]

    def written(self, batch: Any, answers: Sequence[TestRecord]) -> Any:
        return batch.set_column(0, "row", [[json.dumps(row_data(row), ensure_ascii=False) for row in answers]])


class _Pool:
    def __init__(self, limits: Limits | None, *, concurrency: int, actors: int | None, options: str) -> None:
        ray = _ray()
        if not ray.is_initialized():
            ray.init()
        self._actors = actors or max(1, min(int(ray.cluster_resources().get("CPU", 1)), concurrency))
        if concurrency < self._actors:
            raise ValueError(f"concurrency={concurrency} is less than one request for each of {self._actors} actors")
        # Each actor has its own part: no request needs a message, and a killed actor holds nothing back.
        self._share = concurrency // self._actors
        self._limits, self._options = limits or Limits(), options
        # A restarted coordinator would have forgotten what was spent: without one no further request is made.
        coordinator = ray.remote(num_cpus=0, max_restarts=0)(Coordinator)
        self.coordinator = coordinator.remote(self._limits, self._actors, options)

    def scored(self, dataset: Dataset, each: BatchScorer) -> Dataset:
        """Return a data set with the scores of its rows."""
        from ray.data import ActorPoolStrategy

        each.concurrency = self._share
        return dataset.map_batches(
            ScoringActor,
            batch_size=_BATCH,
            batch_format="pyarrow",
            compute=ActorPoolStrategy(
                size=self._actors, max_tasks_in_flight_per_actor=4, max_concurrent_calls_per_actor=2
            ),
            num_cpus=_CPUS,
            fn_constructor_args=(each, self.coordinator, self._limits, self._options),
        )


class Coordinator:
    """What the actors of a pool share: the budget, why providers were given up, and which rows are being scored."""

    def __init__(
        self, limits: Limits, actors: int, options: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits, self._actors, self._options, self._clock = limits, actors, options, clock
        self._used = BudgetUse()
        self._begun: Counter[str] = Counter()
        self._given_up: dict[tuple[str, str], JudgeError] = {}
        self._since = 0.0

    def begin(self, key: str) -> tuple[int, Mapping[tuple[str, str], JudgeError]]:
        """Return how often rows were begun and not ended, and why providers were given up."""
        self._begun[key] += 1
        return self._begun[key] - 1, self.given_up()

    def end(self, key: str, given_up: Mapping[tuple[str, str], JudgeError], spent: Mapping[str, Any]) -> None:
        """Take note that rows are scored, of providers that were given up meanwhile, and of what was spent."""
        del self._begun[key]
        self._used += BudgetUse(**spent)
        if given_up and not self._given_up:
            self._since = self._clock()
        self._given_up.update(given_up)

    def given_up(self) -> Mapping[tuple[str, str], JudgeError]:
        """Return why providers were given up; after a while they get requests again."""
        if self._clock() - self._since > RETRY_AFTER:
            self._given_up = {}
        return self._given_up

    def portion(self, spent: Mapping[str, Any]) -> tuple[int, str]:
        """Take note of what was spent; return how many requests may be made, and for none the reason.

        Requests count at once. What an actor that is killed was granted and did not use stays counted.
        """
        self._used += BudgetUse(**spent)
        most = float(_PORTION)
        for name, limit in asdict(self._limits).items():
            used = getattr(self._used, name)
            if limit is not None and used >= limit:
                return 0, reached(self._limits, self._used, self._options)
            if limit is not None:
                each = 1 if name == "calls" else used / max(1, self._used.calls) or math.inf
                most = min(most, (limit - used) / each / (2 * self._actors))
        granted = max(1, int(most))
        self._used += BudgetUse(calls=granted)
        return granted, ""

    def used(self) -> BudgetUse:
        """Return what all actors used so far."""
        return self._used


class SharedBudget(Budget):
    """The part of one actor in a budget that the coordinator counts, which it asks for in portions."""

    def __init__(self, limits: Limits, coordinator: Any, options: str) -> None:
        super().__init__(limits, options=options)
        self._coordinator = coordinator
        self._granted = 0
        self._refusal = ""
        self._spent = BudgetUse()
        self._changing = threading.Lock()

    def spent(self) -> dict[str, Any]:
        """Return what was spent since the last call."""
        with self._changing:
            spent, self._spent = self._spent, BudgetUse()
        return asdict(spent)

    def _add(self, **counts: Any) -> None:
        with self._changing:
            self._spent += BudgetUse(**counts)

    def _reserve(self) -> None:
        if not self._granted and not self._refusal:
            ray = _ray()
            try:
                self._granted, self._refusal = ray.get(self._coordinator.portion.remote(self.spent()))
            except ray.exceptions.RayError as error:
                msg = f"the budget of this run cannot be counted ({type(error).__name__}), so nothing more is asked"
                raise BudgetExceededError(msg) from error
        if not self._granted:
            self._add(refused=1)
            raise BudgetExceededError(self._refusal)
        self._granted -= 1


class ScoringActor:
    """Scores batches in a worker; what Ray makes of it lives as long as its data set is computed."""

    def __init__(self, scorer: BatchScorer, coordinator: Any, limits: Limits, options: str) -> None:
        self._scorer, self._coordinator = scorer, coordinator
        self._budget = SharedBudget(limits, coordinator, options)
        scorer.budget = self._budget if limits != Limits() else None

    async def __call__(self, batch: Any) -> Any:
        """Return a batch with its scores."""
        rows = self._scorer.read(batch)
        key = hashlib.sha256("".join(map(_text, rows)).encode()).hexdigest()
        attempts = await self._begin(key)
        answers = await (self._one_by_one(rows) if attempts else loop.arun(self._scorer.answers(rows)))
        await self._end(key)
        return self._scorer.written(batch, answers)

    async def _one_by_one(self, rows: Sequence[LoggedRow]) -> list[TestRecord]:
        """Score rows of which one may have killed the worker: Ray would try again without end."""
        answers: list[TestRecord] = []
        for row in rows:
            key = f"{row.number} {hashlib.sha256(_text(row).encode()).hexdigest()}"
            is_given_up = await self._begin(key) >= _ATTEMPTS
            reason = f"not scored: it was being scored when {_ATTEMPTS} workers were killed"
            answers += await loop.arun(self._scorer.answers([replace(row, error=reason) if is_given_up else row]))
            await self._end(key)
        return answers

    async def _begin(self, key: str) -> int:
        attempts, given_up = await self._coordinator.begin.remote(key)
        self._scorer.breaker.give_up(given_up)
        return int(attempts)

    async def _end(self, key: str) -> None:
        await self._coordinator.end.remote(key, self._scorer.breaker.given_up, self._budget.spent())


def _text(row: LoggedRow) -> str:
    return json.dumps(dump(row))
