"""Outcomes of rows as JSON text in a database: for the worker that runs a test whose row another worker did."""

from __future__ import annotations

import json
import sqlite3
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

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
    """Return an outcome as JSON text; what JSON has no word for becomes its text."""
    return json.dumps(
        dump(
            _RowMessage(
                sample=outcome.sample if outcome.sample is not job.sample else None,
                scores={name: _score_of(scored, outcome.sample) for name, scored in outcome.scores.items()},
                failure=None if outcome.failure is None else _error_of(outcome.failure),
            )
        )
    )


def read(text: str, job: RowJob) -> RowOutcome:
    """Return what :func:`written` wrote of the same job."""
    row = load(_RowMessage, json.loads(text))
    sample = row.sample or job.sample
    return RowOutcome(
        sample=sample,
        scores={name: _scored(scored, sample) for name, scored in row.scores.items()},
        failure=None if row.failure is None else _raised(row.failure),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _ErrorMessage:
    """What was raised: the class of an error of this package, ``skip``, or ``other`` with its kind and traceback."""

    error: str
    message: str
    usage: Usage | None = None
    kind: str = ""
    trace: str = ""


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
    """A :class:`Scoring`; ``sample`` is ``None`` where it is that of the row."""

    metric: str
    better: Direction
    sample: Sample | None
    outcome: _ResultMessage | _ErrorMessage
    exchanges: tuple[Exchange, ...]
    usage: Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class _ScoreMessage:
    """A :class:`RowScore`; ``own`` is the index of the scoring that has its outcome, or ``outcome`` has it."""

    own: int | None
    outcome: _ResultMessage | _ErrorMessage | None
    scorings: tuple[_ScoringMessage, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _RowMessage:
    """A :class:`RowOutcome`; ``sample`` is ``None`` where it is that of the job."""

    sample: Sample | None
    scores: Mapping[str, _ScoreMessage]
    failure: _ErrorMessage | None


def _score_of(scored: RowScore, sample: Sample) -> _ScoreMessage:
    own = next((n for n, scoring in enumerate(scored.scorings) if scoring.outcome is scored.outcome), None)
    scorings = tuple(
        _ScoringMessage(
            metric=scoring.metric,
            better=scoring.better,
            sample=None if scoring.sample is sample else scoring.sample,
            outcome=_outcome_of(scoring.outcome),
            exchanges=scoring.exchanges,
            usage=scoring.usage,
        )
        for scoring in scored.scorings
    )
    return _ScoreMessage(own=own, outcome=_outcome_of(scored.outcome) if own is None else None, scorings=scorings)


def _scored(row: _ScoreMessage, sample: Sample) -> RowScore:
    scorings = tuple(
        Scoring(
            metric=scoring.metric,
            better=scoring.better,
            sample=scoring.sample or sample,
            outcome=_scoring_outcome(_outcome(scoring.outcome)),
            exchanges=scoring.exchanges,
            own_usage=scoring.usage,
        )
        for scoring in row.scorings
    )
    if row.outcome is not None:
        return RowScore(outcome=_outcome(row.outcome), scorings=scorings)
    return RowScore(outcome=scorings[row.own or 0].outcome, scorings=scorings)


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


def _outcome_of(outcome: MetricResult | Exception) -> _ResultMessage | _ErrorMessage:
    if not isinstance(outcome, MetricResult):
        return _error_of(outcome)
    (value,), rest = outcome.__getnewargs_ex__()
    return _ResultMessage(score=value, decides=outcome.decides, **rest)


def _outcome(row: _ResultMessage | _ErrorMessage) -> MetricResult | Exception:
    if isinstance(row, _ErrorMessage):
        error = _raised(row)
        return error if isinstance(error, Exception) else UnscoredError(str(error))
    rest = {field.name: getattr(row, field.name) for field in fields(row) if field.name not in ("score", "decides")}
    result = MetricResult(row.score, **rest)
    result.decides = row.decides
    return result


def _scoring_outcome(outcome: MetricResult | Exception) -> MetricResult | UnscoredError:
    return outcome if isinstance(outcome, (MetricResult, UnscoredError)) else UnscoredError(kind_and_message(outcome))


def _error_of(error: BaseException) -> _ErrorMessage:
    if isinstance(error, RagMetricsError):
        return _ErrorMessage(error=type(error).__name__, message=str(error), usage=getattr(error, "usage", None))
    import pytest

    if isinstance(error, pytest.skip.Exception):
        return _ErrorMessage(error="skip", message=str(error))
    trace = "".join(traceback.format_exception(error)).strip()
    return _ErrorMessage(error="other", kind=type(error).__name__, message=str(error), trace=trace)


def _raised(row: _ErrorMessage) -> BaseException:
    if row.error == "skip":
        import pytest

        return pytest.skip.Exception(row.message)
    if row.error == "other":
        return ElsewhereError(row.kind, row.message, row.trace)
    kind = getattr(errors, row.error, UnscoredError)
    return UnscoredError(row.message, usage=row.usage) if kind is UnscoredError else kind(row.message)
