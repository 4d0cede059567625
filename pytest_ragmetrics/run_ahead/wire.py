"""What came of a row as text, for the worker that runs its test when another one did the row."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from pytest_ragmetrics import errors
from pytest_ragmetrics.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.exchanges import Exchange
from pytest_ragmetrics.report.records import as_json, verdict_of
from pytest_ragmetrics.result import MetricResult, Usage
from pytest_ragmetrics.run_ahead.errand import Errand, Outcome, Scored
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.session import Scoring

Row = dict[str, Any]


def written(outcome: Outcome, errand: Errand) -> str:
    """Return an outcome as JSON text; what JSON has no word for becomes its text."""
    answered = outcome.sample.to_mapping() if outcome.sample is not errand.sample else None
    scores = {name: _scored_row(scored, outcome.sample) for name, scored in outcome.scores.items()}
    failure = None if outcome.failure is None else _error_row(outcome.failure)
    return json.dumps(as_json({"sample": answered, "scores": scores, "failure": failure}))


def read(text: str, errand: Errand) -> Outcome:
    """Return what :func:`written` wrote of the same errand."""
    row = json.loads(text)
    sample = errand.sample if row["sample"] is None else Sample.from_mapping(row["sample"])
    return Outcome(
        sample=sample,
        scores={name: _scored(scored, sample) for name, scored in row["scores"].items()},
        failure=None if row["failure"] is None else _error(row["failure"]),
    )


def _scored_row(scored: Scored, sample: Sample) -> Row:
    own = next((n for n, told in enumerate(scored.scorings) if told.outcome is scored.outcome), None)
    told = [
        {
            "metric": scoring.metric,
            "better": scoring.better,
            "sample": None if scoring.sample is sample else scoring.sample.to_mapping(),
            "outcome": _outcome_row(scoring.outcome),
            "exchanges": [exchange.to_row() for exchange in scoring.exchanges],
            "spent": asdict(scoring.usage),
        }
        for scoring in scored.scorings
    ]
    return {"own": own, "outcome": _outcome_row(scored.outcome) if own is None else None, "told": told}


def _scored(row: Row, sample: Sample) -> Scored:
    scorings = tuple(
        Scoring(
            metric=told["metric"],
            better=told["better"],
            sample=sample if told["sample"] is None else Sample.from_mapping(told["sample"]),
            outcome=_unscored(_outcome(told["outcome"])),
            exchanges=tuple(map(Exchange.from_row, told["exchanges"])),
            spent=Usage(**told["spent"]),
        )
        for told in row["told"]
    )
    own = row["own"]
    return Scored(outcome=_outcome(row["outcome"]) if own is None else scorings[own].outcome, scorings=scorings)


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


def _outcome_row(outcome: MetricResult | Exception) -> Row:
    if not isinstance(outcome, MetricResult):
        return _error_row(outcome)
    (value,), rest = outcome.__getnewargs_ex__()
    return {"score": value, "decides": outcome.decides, **{name: _plain(item) for name, item in rest.items()}}


def _outcome(row: Row) -> MetricResult | Exception:
    if "error" in row:
        error = _error(row)
        return error if isinstance(error, Exception) else UnscoredError(str(error))
    rest = {name: item for name, item in row.items() if name not in ("score", "decides")}
    verdicts, usage = [verdict_of(item) for item in rest.pop("verdicts")], Usage(**rest.pop("usage"))
    result = MetricResult(row["score"], verdicts=verdicts, usage=usage, **rest)
    result.decides = row["decides"]
    return result


def _unscored(outcome: MetricResult | Exception) -> MetricResult | UnscoredError:
    return outcome if isinstance(outcome, (MetricResult, UnscoredError)) else UnscoredError(kind_and_message(outcome))


def _error_row(error: BaseException) -> Row:
    if isinstance(error, RagMetricsError):
        usage = getattr(error, "usage", None)
        return {"error": type(error).__name__, "message": str(error), "usage": usage and asdict(usage)}
    if _is_skip(error):
        return {"error": "skip", "message": str(error), "usage": None}
    trace = "".join(traceback.format_exception(error)).strip()
    return {"error": "other", "kind": type(error).__name__, "message": str(error), "trace": trace, "usage": None}


def _error(row: Row) -> BaseException:
    if row["error"] == "skip":
        import pytest

        return pytest.skip.Exception(row["message"])
    if row["error"] == "other":
        return ElsewhereError(row["kind"], row["message"], row["trace"])
    usage = None if row["usage"] is None else Usage(**row["usage"])
    kind = getattr(errors, row["error"], UnscoredError)
    return UnscoredError(row["message"], usage=usage) if kind is UnscoredError else kind(row["message"])


def _is_skip(error: BaseException) -> bool:
    import pytest

    return isinstance(error, pytest.skip.Exception)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
