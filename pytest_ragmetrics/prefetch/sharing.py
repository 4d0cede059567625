"""Outcomes of rows as JSON text in a database: for the worker that runs a test whose row another worker did."""

from __future__ import annotations

import json
import sqlite3
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import errors
from pytest_ragmetrics.codec import dump, load
from pytest_ragmetrics.context import Exchange, Scoring
from pytest_ragmetrics.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.files import PRIVATE_FILE
from pytest_ragmetrics.locks import LockFile, lock_file
from pytest_ragmetrics.prefetch.jobs import RowJob, RowOutcome, RowScore
from pytest_ragmetrics.result import Direction, MetricResult, Usage, Verdict
from pytest_ragmetrics.sample import Sample

_PATIENCE = 60.0
# Between two attempts at a worker's own lock.
_PAUSE = 0.005
_TABLE = "CREATE TABLE IF NOT EXISTS rows (test TEXT PRIMARY KEY, worker TEXT NOT NULL, outcome TEXT) WITHOUT ROWID"


class SharedResults:
    """The outcomes of rows that workers share; used by one thread. Raises ``sqlite3.Error`` and ``OSError``."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._worker = worker
        self._own = _taken(self._lock_of(worker))
        try:
            self._rows = _connected(folder / "rows.sqlite")
        except BaseException:
            self._own.release()
            raise

    def claim(self, test: str) -> bool:
        """Take the row of a test, unless another worker that lives has it; tell whether it is ours now."""
        owner = self._owner(test)
        if owner is None:
            self._rows.execute("INSERT OR IGNORE INTO rows VALUES (?, ?, NULL)", (test, self._worker))
            owner = self._owner(test)
        if owner not in (None, self._worker) and not self._lives(owner):
            took_over = "UPDATE rows SET worker = ? WHERE test = ? AND worker = ? AND outcome IS NULL"
            self._rows.execute(took_over, (self._worker, test, owner))
            owner = self._owner(test)
        return owner == self._worker

    def publish(self, test: str, outcome: str) -> None:
        """Show what came of a row of ours."""
        self._rows.execute("UPDATE rows SET outcome = ? WHERE test = ?", (outcome, test))

    def outcome(self, test: str) -> str | None:
        """Return the outcome of a row, ``None`` until it is published."""
        found = self._rows.execute("SELECT outcome FROM rows WHERE test = ?", (test,)).fetchone()
        return None if found is None else found[0]

    def close(self) -> None:
        """Give back what was not finished."""
        self._rows.execute("DELETE FROM rows WHERE worker = ? AND outcome IS NULL", (self._worker,))
        self._rows.close()
        self._own.release()

    def _owner(self, test: str) -> str | None:
        found = self._rows.execute("SELECT worker FROM rows WHERE test = ?", (test,)).fetchone()
        return None if found is None else found[0]

    def _lives(self, worker: str) -> bool:
        lock = lock_file(self._lock_of(worker))
        if lock.take():
            lock.release()
            return False
        return True

    def _lock_of(self, worker: str) -> Path:
        return self._folder / f"{worker}.lock"


def _taken(path: Path) -> LockFile:
    """Take the lock of a worker that begins; a run that starts now may take its folder for abandoned before that."""
    lock = lock_file(path)
    while not (lock.take() and path.exists()):
        lock.release()
        time.sleep(_PAUSE)
    return lock


def _connected(file: Path) -> sqlite3.Connection:
    from filelock import FileLock

    # Autocommit: each statement is a transaction. After a crash of the machine the rows are of no use.
    rows = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        # SQLite does not wait when two switch a new database to WAL at once: one of them gets "database is locked".
        with FileLock(file.with_name("open.lock"), mode=PRIVATE_FILE, timeout=_PATIENCE):
            rows.execute("PRAGMA journal_mode=WAL")
        rows.execute("PRAGMA synchronous=OFF")
        rows.execute(_TABLE)
    except BaseException:
        rows.close()
        raise
    return rows


def written(outcome: RowOutcome, job: RowJob) -> str:
    """Return an outcome as JSON text; what JSON has no type for becomes its text."""
    message = _RowMessage(
        sample=None if outcome.sample is job.sample else outcome.sample,
        scores={name: _score_message(score, outcome.sample) for name, score in outcome.scores.items()},
        failure=None if outcome.failure is None else _error_message(outcome.failure),
    )
    return json.dumps(dump(message))


def read(text: str, job: RowJob) -> RowOutcome:
    """Return what :func:`written` wrote of the same job."""
    message = load(_RowMessage, json.loads(text))
    sample = message.sample or job.sample
    return RowOutcome(
        sample=sample,
        scores={name: _score(score, sample) for name, score in message.scores.items()},
        failure=None if message.failure is None else _error(message.failure),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _ErrorMessage:
    """What was raised; ``trace`` is the traceback of an exception that is neither of this package nor a skip."""

    kind: str
    message: str
    usage: Usage | None = None
    trace: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _ResultMessage:
    """The fields of a :class:`MetricResult`."""

    score: float
    decides: bool
    metric: str
    reason: str | None
    verdicts: tuple[Verdict, ...]
    vacuous: bool
    judge: str | None
    usage: Usage
    samples: tuple[float, ...]
    votes: int
    unscored_votes: int
    noun: str
    complaint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _ScoringMessage:
    """The fields of a :class:`Scoring`; ``sample`` is ``None`` where it is that of the row."""

    metric: str
    sample: Sample | None
    outcome: _ResultMessage | _ErrorMessage
    better: Direction
    exchanges: tuple[Exchange, ...]
    own_usage: Usage | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _ScoreMessage:
    """A :class:`RowScore`; its ``outcome`` is the index of the scoring that has the same one."""

    outcome: int | _ResultMessage | _ErrorMessage
    scorings: tuple[_ScoringMessage, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _RowMessage:
    """A :class:`RowOutcome`; ``sample`` is ``None`` where it is that of the job."""

    sample: Sample | None
    scores: Mapping[str, _ScoreMessage]
    failure: _ErrorMessage | None


def _values(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _score_message(score: RowScore, sample: Sample) -> _ScoreMessage:
    own = next((n for n, scoring in enumerate(score.scorings) if scoring.outcome is score.outcome), None)
    scorings = []
    for scoring in score.scorings:
        shown = None if scoring.sample is sample else scoring.sample
        changes = {"sample": shown, "outcome": _outcome_message(scoring.outcome)}
        scorings.append(_ScoringMessage(**_values(scoring) | changes))
    return _ScoreMessage(outcome=_outcome_message(score.outcome) if own is None else own, scorings=tuple(scorings))


def _score(message: _ScoreMessage, sample: Sample) -> RowScore:
    scorings = tuple(
        Scoring(**_values(scoring) | {"sample": scoring.sample or sample, "outcome": _outcome(scoring.outcome)})
        for scoring in message.scorings
    )
    own = message.outcome
    return RowScore(outcome=scorings[own].outcome if isinstance(own, int) else _outcome(own), scorings=scorings)


def _outcome_message(outcome: MetricResult | Exception) -> _ResultMessage | _ErrorMessage:
    if not isinstance(outcome, MetricResult):
        return _error_message(outcome)
    (score,), rest = outcome.__getnewargs_ex__()
    return _ResultMessage(score=score, decides=outcome.decides, **rest)


def _outcome(message: _ResultMessage | _ErrorMessage) -> Any:
    if isinstance(message, _ErrorMessage):
        return _error(message)
    values = _values(message)
    decides = values.pop("decides")
    result = MetricResult(values.pop("score"), **values)
    result.decides = decides
    return result


class ElsewhereError(Exception):
    """What was raised in another worker: its ``kind`` and ``message``, and the traceback as it was there."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(trace)
        self.kind = kind
        self.message = message


def kind_and_message(error: BaseException) -> str:
    """Return kind and message of what was raised, here or elsewhere.

    >>> kind_and_message(KeyError("q7"))
    "KeyError: 'q7'"
    """
    if isinstance(error, ElsewhereError):
        return f"{error.kind}: {error.message}"
    return f"{type(error).__name__}: {error}"


def _error_message(error: BaseException) -> _ErrorMessage:
    known = isinstance(error, (RagMetricsError, pytest.skip.Exception))
    return _ErrorMessage(
        kind=type(error).__name__,
        message=str(error),
        usage=getattr(error, "usage", None) if known else None,
        trace=None if known else "".join(traceback.format_exception(error)).strip(),
    )


def _error(message: _ErrorMessage) -> BaseException:
    if message.trace is not None:
        return ElsewhereError(message.kind, message.message, message.trace)
    if message.kind == pytest.skip.Exception.__name__:
        return pytest.skip.Exception(message.message)
    kind = getattr(errors, message.kind, UnscoredError)
    return UnscoredError(message.message, usage=message.usage) if kind is UnscoredError else kind(message.message)
