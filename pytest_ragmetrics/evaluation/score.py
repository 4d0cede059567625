"""Scores of logged answers of any number: rows are read, scored and written one after the other, many at a time.

What is done is in a journal beside the output, so that a run that was killed is taken up where it ended.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_ragmetrics.core.codec import dump, encodable
from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.errors import ArgumentError, RagMetricsError
from pytest_ragmetrics.core.files import append_line
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets.streaming import LoggedRow
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Done, GivesUp, Job, Runner, metrics_of, unscored
from pytest_ragmetrics.evaluation.score_files import scored_row, write_scores
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.metrics.base import rule_of
from pytest_ragmetrics.runs.records import TestRecord, record_of
from pytest_ragmetrics.runs.wording.figures import counted, figure_text

# How many rows at the end of a journal are asked for again where they have no score: more than may be under way.
_ASKED_AGAIN = 1_000
# The version in the head of a journal; grows when rows are written in another way.
_VERSION = 2
_EMPTY = Sample()


async def score_rows(
    rows: Iterable[LoggedRow],
    metrics: Sequence[BoundedMetric],
    session: context.Session,
    *,
    votes: int | None,
    take: Callable[[TestRecord], object],
    breaker: CircuitBreaker,
    gives_up: bool,
) -> None:
    """Score rows, many at a time, and pass them to ``take`` in their order.

    A row without a score has the reason, also where the budget is used up. Where it ``gives_up``, raises where no
    further request can succeed, the provider answers no more or has no known price; else that is the reason too.
    """
    watch = GivesUp(breaker, leaves_rows=True)
    begun: deque[LoggedRow] = deque()

    def jobs() -> Iterator[Job]:
        for row in rows:
            begun.append(row)
            error = row.error or "" if row.sample is None else row.error
            sample = row.sample or _EMPTY
            yield Job(sample=sample, metrics=metrics_of(sample, metrics), votes=votes, error=error)

    def note(done: Done) -> None:
        row, records = begun.popleft(), []
        for bounded in metrics_of(done.sample, metrics):
            metric, found = bounded.metric, done.scores[bounded.metric.name].outcome
            outcome = found if isinstance(found, MetricResult) else unscored(metric, found)
            declared = bounded.check(outcome) if isinstance(outcome, MetricResult) else None
            scoring = Scoring(
                metric=metric.name,
                sample=done.sample,
                outcome=outcome,
                better=metric.better,
                declared=declared,
                rule=rule_of(metric),
            )
            records.append(record_of(scoring))
        take(scored_row(row.file, row.number, row.line, records))

    with closing(Runner(session, breaker=breaker, **{"watch": watch} if gives_up else {})) as runner:
        await runner.run(jobs(), note)
        if gives_up:
            watch.check_judged()


@dataclass(kw_only=True, slots=True)
class Tally:
    """The figures of one metric over the rows so far."""

    scores: float = 0.0
    counted: int = 0
    vacuous: int = 0
    failed: int = 0
    unscored: int = 0
    #: Why the first row has no score.
    reason: str = ""
    unit: str = ""

    def add(self, record: Mapping[str, Any]) -> None:
        """Count a record as JSON builtins."""
        if record["score"] is None:
            self.reason = self.reason or str(record["reason"])
            self.unscored += 1
        elif record["vacuous"]:
            self.vacuous += 1
        else:
            self.scores += record["score"]
            self.counted += 1
            self.unit = record["unit"]
        self.failed += record["outcome"] == "failed"

    def line(self, metric: str) -> str:
        """Return the figures in words."""
        mean = f"mean {figure_text(self.scores / self.counted, self.unit)}" if self.counted else "no score"
        parts = [f"{mean} over {counted(self.counted, 'row')}"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"{self.vacuous:,} with nothing to check"] if self.vacuous else []
        parts += (
            [f"{self.unscored:,} unscored, the first: {self.reason.removeprefix(f'{metric}: ')}"]
            if self.unscored
            else []
        )
        return f"  {metric}: {', '.join(parts)}"


class Journal:
    """The rows of an output that are done, in the file ``OUTPUT.part`` until all are.

    The head of the file says what the scores depend on, ``settings``.
    """

    def __init__(self, output: Path, metrics: Sequence[str], settings: Mapping[str, Any]) -> None:
        self.path = output.with_name(f"{output.name}.part")
        self.tallies = {name: Tally() for name in metrics}
        self.usage = Usage()
        #: How many rows it has, and how many of them an earlier run wrote.
        self.rows = self.earlier = 0
        self._output, self._head = output, {"version": _VERSION, **settings}

    def take_up(self, rows: Iterator[LoggedRow]) -> Iterator[LoggedRow]:
        """Read the file, and return the rows that are left: those behind the last that has all its scores.

        Rows without a score at the end are those that a judge which failed left behind. Raises :class:`ArgumentError`
        where the file is of another run.
        """
        lines = self._lines()
        end, first = next(lines, (0, b""))
        head = self._parsed(first, is_row=False) if first else self._head
        if not isinstance(head, dict) or head.keys() != self._head.keys():
            self._check_head(head)
        again: list[tuple[LoggedRow | None, Any]] = []
        end = 0
        for place, line in lines:
            again.append((next(rows, None), self._parsed(line)))
            if len(again) == _ASKED_AGAIN or _is_scored(again[-1][1]):
                self._check_head(head)
                for given, row in again:
                    sample = given and dump(given.sample or _EMPTY, text=lambda text: masked(encodable(text)))
                    if row["records"][0]["sample"] != sample:
                        what = f"row {self.rows + 1} is not that of the files given now"
                        raise ArgumentError(f"{self.path}: {what}; give the same files, or remove it to start over")
                    self._count(row)
                again, end = [], place
        if self.path.exists():
            # A killed process may have left a part of a line behind the last.
            os.truncate(self.path, end)
        self.earlier = self.rows
        return chain((given for given, _ in again if given is not None), rows)

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row that is JSON builtins."""
        if not self.rows:
            self._write(self._head)
        self._write(row)
        self._count(row)
        self.usage = sum((Usage(**record["usage"]) for record in row["records"]), start=self.usage)

    def note(self) -> str:
        """Return what the line of progress says behind the count."""
        unscored = max(tally.unscored for tally in self.tallies.values())
        cost = f", ${self.usage.cost:.4f}" if self.usage.cost else ""
        return f"{f', {unscored:,} unscored' if unscored else ''}{cost}"

    def finish(self) -> None:
        """Write the output, and remove the journal."""
        rows = (line.decode().rstrip("\n") for _, line in islice(self._lines(), 1, None))
        write_scores(self._output, rows, list(self.tallies))
        self.path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        end = 0
        with suppress(FileNotFoundError), self.path.open("rb") as stream:
            for line in stream:
                end += len(line)
                if line.endswith(b"\n"):
                    yield end, line

    def _parsed(self, line: bytes, *, is_row: bool = True) -> Any:
        try:
            row = json.loads(line)
            if is_row:
                _ = row["records"][0]["sample"], _is_scored(row)
        except (ValueError, TypeError, LookupError) as error:
            msg = f"{self.path}: the line behind row {self.rows} is no row; remove the file to start over"
            raise ArgumentError(msg) from error
        return row

    def _check_head(self, head: Any) -> None:
        if head != self._head:
            names = head.keys() | self._head.keys() if isinstance(head, dict) else ()
            changed = [
                f"{name} was {head.get(name)!r}" for name in sorted(names) if head.get(name) != self._head.get(name)
            ]
            what = f"is of a run with other options ({', '.join(changed)})" if changed else "is of something else"
            raise ArgumentError(f"{self.path}: {what}; give the same, or remove it to start over")

    def _write(self, row: Mapping[str, Any]) -> None:
        try:
            append_line(self.path, json.dumps(row, ensure_ascii=False, allow_nan=False))
        except OSError as error:
            raise RagMetricsError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def _count(self, row: Mapping[str, Any]) -> None:
        self.rows += 1
        for record in row["records"]:
            self.tallies[record["metric"]].add(record)


def _is_scored(row: Any) -> bool:
    return all(record["score"] is not None for record in row["records"])
