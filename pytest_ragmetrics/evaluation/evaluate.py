"""Scoring a table: many samples by several metrics at once."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.other_tools import class_of_theirs
from pytest_ragmetrics.core.progress import Progress
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import ContextsFrom, Sample, Turns
from pytest_ragmetrics.datasets.reading import read_dataset, read_object
from pytest_ragmetrics.datasets.rows import Columns, DatasetRow, RowError, rows_in_turns, sample_of, written_id
from pytest_ragmetrics.evaluation.runner import (
    BoundedMetric,
    Done,
    GivesUp,
    Job,
    Outcome,
    Runner,
    bounded_metrics,
    metrics_of,
    rows_of,
    unscored,
)
from pytest_ragmetrics.evaluation.session import scoring_session
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.stats.scores import Vacuous, check_vacuous

if TYPE_CHECKING:
    import pandas as pd


#: Called with the number of scores that are done and the number of all.
ProgressCall = Callable[[int, int], object]
# How many scores for each request allowed in flight are started at the same time, where there are no more.
_TOGETHER = 2


def evaluate(
    samples: str | os.PathLike[str] | Iterable[Sample | Mapping[str, Any]] | pd.DataFrame,
    metrics: Iterable[Metric | str] | Metric,
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    cache_dir: str | Path | None = None,
    concurrency: int = 32,
    rpm: int | None = None,
    tpm: int | None = None,
    votes: int | None = None,
    progress: bool | ProgressCall = True,
    vacuous: Vacuous = "skip",
    columns: Mapping[str, str] | None = None,
    turns: Turns = "last",
    contexts_from: ContextsFrom = None,
) -> Evaluation:
    """Score samples by metrics, many at a time, and return the table in the order of the samples.

    ``samples`` are samples, rows for ``Sample.from_mapping``, a data frame, a data set of another tool, or the path of
    a file, relative to the current folder; ``columns`` maps fields to columns: ``{"question": "query"}``. ``metrics``
    are metrics or names; named ones get ``judge`` and ``embedder``. A pytest session provides judge, cache, columns,
    votes, concurrency and limits; elsewhere answers are kept in ``cache_dir``, if given, and judge and embedder get at
    most ``rpm`` requests and ``tpm`` tokens a minute. ``progress`` shows a line in a terminal, or is a function of the
    scores done and of all, called on the engine's thread. ``vacuous="count"`` counts scores with nothing to check. Of a
    conversation the last answer is scored; with ``turns="each"`` every answer is a row, and metrics of conversations
    score a further one; ``contexts_from`` is that of ``Sample.turns``. Works from any thread, also inside a running
    loop.

    A row that cannot be scored keeps the reason. Raises ``ValueError`` for an unknown metric, two of one name and
    columns of no field, :class:`DatasetError` for a file that cannot be read and a column that no row has,
    :class:`JudgeNotConfiguredError`, :class:`BudgetExceededError`, and :class:`JudgeError` if no further request can
    succeed (no credit, wrong key) or none was answered. Replies are stored even then.

    >>> answers = ['It says "no rain at all".', "It will be dry."]  # the second quotes nothing
    >>> rows = [{"response": answer, "contexts": ["Rain is likely."]} for answer in answers]
    >>> evaluate(rows, ["quoted_spans_alignment"]).mean("quoted_spans_alignment")
    0.0
    """
    chosen = _chosen(metrics, judge, embedder)
    rows = _in_turns(_rows(samples, columns), chosen, turns, contexts_from)
    counts = check_vacuous(vacuous)
    with scoring_session(cache_dir, concurrency, rpm, tpm) as session:
        return loop.run(evaluated(rows, chosen, session, votes=votes, progress=progress, vacuous=counts))


async def aevaluate(
    samples: str | os.PathLike[str] | Iterable[Sample | Mapping[str, Any]] | pd.DataFrame,
    metrics: Iterable[Metric | str] | Metric,
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    cache_dir: str | Path | None = None,
    concurrency: int = 32,
    rpm: int | None = None,
    tpm: int | None = None,
    votes: int | None = None,
    progress: bool | ProgressCall = True,
    vacuous: Vacuous = "skip",
    columns: Mapping[str, str] | None = None,
    turns: Turns = "last",
    contexts_from: ContextsFrom = None,
) -> Evaluation:
    """Score like :func:`evaluate`, awaitable from any event loop."""
    chosen = _chosen(metrics, judge, embedder)
    rows = _in_turns(_rows(samples, columns), chosen, turns, contexts_from)
    counts = check_vacuous(vacuous)
    async with scoring_session(cache_dir, concurrency, rpm, tpm) as session:
        return await loop.arun(evaluated(rows, chosen, session, votes=votes, progress=progress, vacuous=counts))


def _rows(samples: Any, columns: Mapping[str, str] | None) -> Sequence[DatasetRow]:
    """Return the rows to score; those of a file may be without a sample."""
    if isinstance(samples, tuple) and samples and isinstance(samples[0], DatasetRow):
        return samples  # of rag_evaluate
    if isinstance(samples, (str, os.PathLike)):
        return read_dataset(samples, base=Path.cwd(), columns=chosen_columns(columns))
    if isinstance(samples, (Sample, Mapping, Awaitable)):
        what = "a coroutine: await it first" if isinstance(samples, Awaitable) else f"one {type(samples).__name__}"
        raise TypeError(f"samples must be a list of samples or rows, not {what}")
    rows = []
    for index, raw in enumerate(read_object(samples, chosen_columns(columns))):
        sample = raw.values  # noqa: PD011 - no data frame
        try:
            if raw.fault:
                raise raw.fault
            sample = (
                sample if isinstance(sample, Sample) else sample_of(sample, id=written_id(sample), may_be_empty=True)
            )
        except RowError as error:
            written = "" if error.field is None or str(error).startswith(error.field) else f"field {error.field!r}: "
            raise TypeError(f"samples[{index}]: {written}{error}") from error
        rows.append(DatasetRow(sample=sample, id=f"samples[{index}]"))
    return rows


def _in_turns(
    rows: Iterable[DatasetRow], metrics: Sequence[BoundedMetric], turns: Turns, contexts_from: ContextsFrom
) -> Sequence[DatasetRow]:
    whole = any(each.metric.of_conversation for each in metrics)
    return [*rows_of(rows_in_turns(rows, turns, contexts_from=contexts_from, whole=whole), metrics)]


def chosen_columns(given: Mapping[str, str] | Columns | None) -> Columns:
    """Return the columns that are given, else those of the session, which a data set need not have."""
    session = context.current().session
    if given is None:
        return Columns.of("" if session is None else session.columns, required=False)
    return given if isinstance(given, Columns) else Columns.of(given)


def _chosen(
    metrics: Iterable[Metric | str] | Metric, judge: JudgeLike | None, embedder: EmbedderLike | None
) -> list[BoundedMetric]:
    if isinstance(metrics, Mapping):
        raise TypeError(
            "metrics must be a list, not a mapping: hold the table to bounds by table.failures(...), assert_mean() or "
            "assert_pass_rate(); those of a mapping belong to the marker rag_dataset(..., metrics={...})"
        )
    named: Any = [metrics] if isinstance(metrics, (Metric, str, type)) or class_of_theirs(metrics) else metrics
    return bounded_metrics(named, judge=judge, embedder=embedder)


async def evaluated(
    rows: Sequence[DatasetRow],
    bounded: Sequence[BoundedMetric],
    session: context.Session,
    *,
    votes: int | None,
    progress: bool | ProgressCall,
    vacuous: Vacuous,
) -> Evaluation:
    """Score rows in a session, as :func:`evaluate` says."""
    given: object = progress
    if not isinstance(given, bool) and (not callable(given) or iscoroutinefunction(given)):
        raise TypeError(f"progress must be True, False or a function of two counts, without async, not {given!r:.60}")
    metrics = [each.metric for each in bounded]
    total = sum(metric.is_of(row.sample) for row in rows if row.sample for metric in metrics)
    shown = Progress("scored", total, wanted=progress is True)
    breaker = CircuitBreaker(session.concurrency)
    gives_up = GivesUp(breaker, total=total)

    def watch(metric: Metric, outcome: Outcome) -> None:
        gives_up(metric, outcome)
        shown.advance()
        if callable(progress):
            progress(gives_up.done, total)

    runner = Runner(session, breaker=breaker, watch=watch)

    def jobs() -> Iterator[Job]:
        for row in rows:
            sample = row.sample or Sample(id=row.id)
            error = None if row.sample else str(row.error)
            yield Job(sample=sample, metrics=metrics_of(sample, bounded), votes=votes, error=error)

    done: list[Done] = []
    try:
        # Requests that begin together let the provider cache what they have in common.
        await runner.run(jobs(), done.append, together=total <= _TOGETHER * session.concurrency)
        gives_up.check_judged()
    finally:
        shown.finish()
        runner.close()
    spans = {each.name: [it.scores[each.name].span for it in done if each.name in it.scores] for each in metrics}
    return Evaluation(
        metrics=tuple(spans),
        rows=tuple(_scored_row(it, metrics) for it in done),
        better={metric.name: metric.better for metric in metrics},
        scales={metric.name: metric.scale for metric in metrics},
        vacuous=vacuous,
        durations={name: max(end for _, end in it) - min(start for start, _ in it) for name, it in spans.items() if it},
    )


def _scored_row(done: Done, metrics: Sequence[Metric]) -> Row:
    results, reasons = {}, {}
    for metric in metrics:
        if metric.name not in done.scores:
            continue
        outcome = done.scores[metric.name].outcome
        if isinstance(outcome, MetricResult):
            results[metric.name] = outcome
            # The figures of its table are asserted, as plain numbers.
            outcome.used = True
        else:
            reasons[metric.name] = str(unscored(metric, outcome))
    return Row(sample=done.sample, results=results, unscored=reasons)
