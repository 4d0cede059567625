"""Outcomes of rows as JSON text in a database: for the worker that runs a test whose row another worker did."""

from __future__ import annotations

import json
import re
import traceback
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core import database, errors
from pytest_ragmetrics.core.codec import dump, load
from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.locks import lock_file
from pytest_ragmetrics.core.result import MetricResult, Usage, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.runner import Done, Score
from pytest_ragmetrics.judges.context import Exchange, Scoring
from pytest_ragmetrics.plugin.rows.jobs import RowJob
from pytest_ragmetrics.runs.records import known_scale

_TABLE = "CREATE TABLE IF NOT EXISTS rows (test TEXT PRIMARY KEY, worker TEXT NOT NULL, outcome TEXT) WITHOUT ROWID"


class SharedResults:
    """The outcomes of rows that workers share; used by one thread. Raises ``sqlite3.Error`` and ``OSError``.

    A conversation is claimed like a row, and has no outcome of its own.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._worker = worker
        self._own = lock_file(folder / f"{worker}.lock")
        self._own.take()
        try:
            self._rows = database.opened(folder / "rows.sqlite", _TABLE)
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

    def is_begun(self, test: str) -> bool:
        """Tell whether the row of a test is done, or under way in a worker that lives."""
        owner = self._owner(test)
        return owner is not None and (self.outcome(test) is not None or owner == self._worker or self._lives(owner))

    def give_back(self, claimed: str) -> None:
        """Let another worker claim what is ours and not finished."""
        delete = "DELETE FROM rows WHERE test = ? AND worker = ? AND outcome IS NULL"
        self._rows.execute(delete, (claimed, self._worker))

    def close(self) -> None:
        """Give back what was not finished."""
        self._rows.execute("DELETE FROM rows WHERE worker = ? AND outcome IS NULL", (self._worker,))
        self._rows.close()
        self._own.release()

    def _owner(self, test: str) -> str | None:
        found = self._rows.execute("SELECT worker FROM rows WHERE test = ?", (test,)).fetchone()
        return None if found is None else found[0]

    def _lives(self, worker: str) -> bool:
        lock = lock_file(self._folder / f"{worker}.lock")
        is_free = lock.take()
        lock.release()
        return not is_free


def written(outcome: Done, job: RowJob) -> str:
    """Return an outcome as JSON text; what JSON has no type for becomes its text."""
    data = {
        "sample": None if outcome.sample is job.sample else outcome.sample,
        "scores": {name: _score_data(score, outcome.sample) for name, score in outcome.scores.items()},
        "failure": None if outcome.failure is None else _data(outcome.failure),
    }
    return json.dumps(dump(data))


def read(text: str, job: RowJob) -> Done:
    """Return what :func:`written` wrote of the same job."""
    data = json.loads(text)
    sample = job.sample if data["sample"] is None else load(Sample, data["sample"])
    return Done(
        sample=sample,
        scores={name: _score(score, sample) for name, score in data["scores"].items()},
        failure=None if data["failure"] is None else _outcome(data["failure"]),
    )


def _score_data(score: Score, sample: Sample) -> dict[str, Any]:
    """Return a score as data; its outcome is the index of the scoring that has the same one."""
    own = next((n for n, scoring in enumerate(score.scorings) if scoring.outcome is score.outcome), None)
    scorings = [
        {
            **{field.name: getattr(scoring, field.name) for field in fields(scoring)},
            "sample": None if scoring.sample is sample else scoring.sample,
            "outcome": _data(scoring.outcome),
            "served": [*scoring.served.items()],
        }
        for scoring in score.scorings
    ]
    return {"outcome": _data(score.outcome) if own is None else own, "scorings": scorings}


def _score(data: dict[str, Any], sample: Sample) -> Score:
    scorings = []
    for scoring in data["scorings"]:
        values = {
            "sample": sample if scoring["sample"] is None else load(Sample, scoring["sample"]),
            "outcome": _outcome(scoring["outcome"]),
            "exchanges": load(tuple[Exchange, ...], scoring["exchanges"]),
            "served": {(judge, model): count for (judge, model), count in scoring["served"]},
            "own_usage": scoring["own_usage"] and load(Usage, scoring["own_usage"]),
        }
        scorings.append(Scoring(**scoring | values))
    own = data["outcome"]
    return Score(outcome=scorings[own].outcome if isinstance(own, int) else _outcome(own), scorings=tuple(scorings))


def _data(outcome: MetricResult | BaseException) -> dict[str, Any]:
    """Return a result or an error as data, with its traceback unless it is a skip or an error of this package."""
    if isinstance(outcome, MetricResult):
        (value,), values = outcome.__getnewargs_ex__()
        # JSON has no infinity.
        return {"value": value, "decides": outcome.decides, **values, "scale": known_scale(outcome.scale)}
    known = isinstance(outcome, (RagMetricsError, pytest.skip.Exception))
    return {
        "error": type(outcome).__name__,
        "message": masked(str(outcome)),
        "usage": getattr(outcome, "usage", None) if known else None,
        "trace": None if known else masked("".join(traceback.format_exception(outcome)).strip()),
    }


def _outcome(data: dict[str, Any]) -> Any:
    usage = data["usage"] and load(Usage, data["usage"])
    if "error" not in data:
        values = {**data, "usage": usage, "verdicts": load(tuple[Verdict, ...], data["verdicts"])}
        decides = values.pop("decides")
        result = MetricResult(**values)
        result.decides = decides
        return result
    name, message = data["error"], data["message"]
    if data["trace"] is not None:
        return ElsewhereError(name, message, data["trace"])
    if name == pytest.skip.Exception.__name__:
        return pytest.skip.Exception(message)
    kind = getattr(errors, name, UnscoredError)
    return kind(message, usage=usage) if kind in (UnscoredError, errors.JudgeError) else kind(message)


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
    here = type(error).__name__, str(error)
    kind, message = (error.kind, error.message) if isinstance(error, ElsewhereError) else here
    is_mixed_up = kind == "TypeError" and re.search(r"\bSample\b", message)
    return f"{kind}: {message}{'; a Sample is no text: its question is sample.user_input' if is_mixed_up else ''}"
