"""Scores of batches of rows: what a cluster calls on the parts of a table, on Ray, Spark or Dask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.datasets.reading import read_object
from pytest_ragmetrics.datasets.streaming import LoggedRow, logged_rows
from pytest_ragmetrics.evaluation.runner import BoundedMetric, bounded_metrics
from pytest_ragmetrics.evaluation.score import score_rows
from pytest_ragmetrics.evaluation.score_files import arrow_schema, score_columns
from pytest_ragmetrics.evaluation.session import OwnSession, pace_of, shared_cache
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.judges.transports.budget import Budget
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.runs.records import TestRecord

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    Batch = TypeVar("Batch", "pd.DataFrame", "pa.Table")

# Types of pandas with a missing value that is not NaN.
_DTYPES = {"double": "float64", "bool": "boolean", "string": "string"}


def scorer(
    metrics: Iterable[str | Metric] | Mapping[str | Metric, float | None],
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    concurrency: int = 32,
    cache_dir: str | Path | None = None,
    votes: int | None = None,
    rpm: int | None = None,
    tpm: int | None = None,
) -> BatchScorer:
    """Return a callable that adds scores to a batch of rows, a pandas frame or an Arrow table, and can be pickled.

    ``metrics`` are metrics or their names; a mapping gives the bound a score must reach to have ``passed``. Rows have
    the columns of ``rag_dataset``. Each process has its own client, with ``concurrency`` requests in flight and at most
    ``rpm`` requests and ``tpm`` tokens a minute, and takes keys from its environment; processes with the same
    ``cache_dir`` ask once for equal requests, and read the cache of ``RAGMETRICS_CACHE_URL`` beside it.

    The columns added are ``METRIC_score``, ``_passed``, ``_reason``, ``_judge``, ``_cost`` (US dollars), ``_vacuous``
    (nothing to check) and ``_unscored`` (why there is no score). On Spark:
    ``frame.mapInPandas(lambda batches: map(score, batches), schema)``; on Dask:
    ``frame.map_partitions(score, meta=score(frame.head(0)))``; on Ray: ``pytest_ragmetrics.evaluation.ray.score``.

    >>> import pandas as pd
    >>> score = scorer({"quoted_spans_alignment": 0.9})
    >>> frame = score(pd.DataFrame({"response": ['So "it rains all day".'], "contexts": [["It rains all day."]]}))
    >>> frame["quoted_spans_alignment_score"].tolist(), frame["quoted_spans_alignment_passed"].tolist()
    ([1.0], [True])
    """
    chosen = bounded_metrics(metrics, judge=judge, embedder=embedder)
    folder = None if cache_dir is None else Path(cache_dir).absolute()
    pace_of(rpm, tpm)  # raises here, and not in each worker
    return BatchScorer(chosen, concurrency=concurrency, cache_dir=folder, votes=votes, rpm=rpm, tpm=tpm)


@dataclass(eq=False)
class BatchScorer:
    """Scores batches in this process; the session is made for the first one, and is not pickled."""

    metrics: Sequence[BoundedMetric]
    concurrency: int
    cache_dir: Path | None
    votes: int | None = None
    rpm: int | None = None
    tpm: int | None = None

    def __post_init__(self) -> None:
        self.breaker = CircuitBreaker(self.concurrency)
        self.budget: Budget | None = None
        self._session: OwnSession | None = None

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with the columns of the scores; raise ``TypeError`` for what is no frame and no table."""
        return loop.run(self.score(batch))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc] # the state are its arguments

    async def score(self, batch: Any) -> Any:
        """Do as a call, on the background loop."""
        return self.written(batch, await self.answers(self.read(batch)))

    async def answers(self, rows: Sequence[LoggedRow]) -> list[TestRecord]:
        """Return the rows with their scores."""
        answers: list[TestRecord] = []
        if self._session is None:
            options = {"budget": self.budget, "pace": pace_of(self.rpm, self.tpm), **shared_cache(self.cache_dir)}
            self._session = OwnSession(self.cache_dir, self.concurrency, **options)
            loop.on_stop_here(self._session.engine.aclose)
        self.breaker.half_open()
        await score_rows(
            rows,
            self.metrics,
            self._session,
            votes=self.votes,
            take=answers.append,
            breaker=self.breaker,
            gives_up=False,
        )
        return answers

    def read(self, batch: Any) -> list[LoggedRow]:
        """Return the rows of a batch."""
        if not hasattr(batch, "columns"):
            raise TypeError(f"a batch is a pandas frame or an Arrow table, not {type(batch).__name__}")
        return list(logged_rows(read_object(batch), "batch")) if len(batch) else []

    def written(self, batch: Any, answers: Sequence[TestRecord]) -> Any:
        """Return a batch with the columns of its answers."""
        shape = arrow_schema({}, (each.metric.name for each in self.metrics), {})
        rows = [score_columns(answer) for answer in answers]
        columns = {field.name: [row[field.name] for row in rows] for field in shape}
        if hasattr(batch, "assign"):
            import pandas as pd

            return batch.assign(
                **{
                    field.name: pd.Series(columns[field.name], batch.index, dtype=_DTYPES[str(field.type)])
                    for field in shape
                }
            )
        import pyarrow as pa

        kept = batch.drop_columns([name for name in batch.column_names if name in columns])
        for field in shape:
            kept = kept.append_column(field, pa.array(columns[field.name], field.type))
        return kept
