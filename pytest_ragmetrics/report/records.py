"""The one shape everything a run leaves behind is made from: JSON builtins, typed.

A record is one scoring inside one test. Records travel from xdist workers to the controller on the test
reports, so nothing but ``dict``, ``list``, ``str``, ``int``, ``float``, ``bool`` and ``None`` may stand in them.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypedDict, cast

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.result import Change, Direction, Evidence, MetricResult, Nearest, Operator, Verdict
from pytest_ragmetrics.session import Scoring

#: Version of the document's shape; grows when a field changes its meaning or goes away.
VERSION = 1

RecordOutcome = Literal["passed", "failed", "unscored", "measured"]
TestOutcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]


_HOLDS: Mapping[Operator, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


class SampleRow(TypedDict, total=False):
    """What was scored; only the fields that are set."""

    user_input: str | None
    response: str | None
    retrieved_contexts: list[str] | None
    reference: str | None
    reference_contexts: list[str] | None
    retrieved_context_ids: list[str | int] | None
    reference_context_ids: list[str | int] | None
    id: str | None
    metadata: dict[str, Any] | None


class EvidenceRow(TypedDict):
    """A piece of a context; offsets are code points."""

    context: int
    start: int
    end: int
    text: str


class ChangeRow(TypedDict):
    """One step of a word-level difference."""

    kind: Literal["same", "replaced", "added", "missing"]
    said: str
    source: str


class NearestRow(TypedDict):
    """The passage that came closest to a piece that was not found."""

    context: int
    start: int
    end: int
    text: str
    similarity: float
    changes: list[ChangeRow]


class VerdictRow(TypedDict):
    """One verdict; ``start`` and ``end`` are offsets in the sample's response."""

    text: str
    ok: bool
    start: int | None
    end: int | None
    reason: str | None
    suspicious: bool
    evidence: list[EvidenceRow]
    nearest: NearestRow | None


class UsageRow(TypedDict):
    """What the scoring cost."""

    calls: int
    cached_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    saved: float | None


class ThresholdRow(TypedDict):
    """What the score was held against: ``score <operator> bound``."""

    operator: Operator
    bound: float


class ExchangeRow(TypedDict):
    """One request to the judge: what it was asked, and what it replied, ``None`` where nothing came back.

    ``vote`` numbers independent answers to one question; ``cached`` ones were paid for earlier.
    """

    task: str
    vote: int
    prompt: str
    reply: str | None
    cached: bool


class Record(TypedDict):
    """One scoring. ``score`` is ``None`` when it is unscored; ``measured`` when nothing was asserted of it.

    ``samples`` are the scores of the single votes where there were several. ``exchanges`` are kept of what somebody may
    have to look into: a failure, no score, a suspicious verdict, votes that differ.
    """

    metric: str
    score: float | None
    outcome: RecordOutcome
    threshold: ThresholdRow | None
    reason: str | None
    vacuous: bool
    better: Direction
    judge: str | None
    usage: UsageRow
    samples: list[float]
    sample: SampleRow
    verdicts: list[VerdictRow]
    exchanges: list[ExchangeRow]


class GateRow(TypedDict):
    """A threshold over a whole set: the mean of a metric, or the share of scores that reach ``min_score``.

    ``value`` is ``None`` where nothing was scored. ``low`` and ``high`` are the interval at ``confidence``, where one
    was asked for: then ``low`` is what is held against ``bound``, or ``high`` where lower scores are better. ``total``
    counts the tests of the set, ``n`` the scores and ``unscored`` those that are none.
    """

    metric: str
    statistic: Literal["mean", "rate"]
    value: float | None
    bound: float
    min_score: float | None
    better: Direction
    confidence: float | None
    low: float | None
    high: float | None
    n: int
    unscored: int
    total: int
    outcome: Literal["passed", "failed", "inconclusive", "skipped"]


class TestRow(TypedDict):
    """One test and its records; ``message`` is what pytest said of a failure, a skip or an expected failure.

    ``gate`` is what a test over a whole set found, which has no records of its own.
    """

    id: str
    file: str
    line: int | None
    outcome: TestOutcome
    duration: float
    attempts: int
    message: str | None
    records: list[Record]
    gate: GateRow | None


class RunRow(TypedDict):
    """The run itself: ``settings`` are the options it ran with, ``notes`` what its summary says in words."""

    started: str
    duration: float
    exit_status: int
    python: str
    pytest: str
    ragmetrics: str
    settings: dict[str, str | float | bool | None]
    notes: list[str]


class Document(TypedDict):
    """All a run leaves behind; what ``--rag-json`` writes and every page is made from."""

    version: int
    run: RunRow
    tests: list[TestRow]


def holds(score: float, threshold: ThresholdRow) -> bool:
    """Tell whether a score is on the good side of a threshold."""
    return _HOLDS[threshold["operator"]](score, threshold["bound"])


def flips(samples: Sequence[float], threshold: ThresholdRow | None) -> bool:
    """Tell whether the votes of a record lie on both sides of its threshold: the test may fail the next time.

    >>> flips([0.5, 0.9, 0.9], {"operator": ">=", "bound": 0.8}), flips([0.8, 0.9], {"operator": ">=", "bound": 0.8})
    (True, False)
    """
    return threshold is not None and len({holds(sample, threshold) for sample in samples}) > 1


def record_of(scoring: Scoring, *, redact: Callable[[str], str] | None = None) -> Record:
    """Return the record of a scoring, as it stands now: a result may be held against a threshold later.

    ``redact`` is applied to the texts; offsets that it makes wrong are left out.
    """
    outcome = scoring.outcome
    explained = _scored(outcome) if isinstance(outcome, MetricResult) else _unscored(outcome)
    record = {"sample": scoring.sample.to_mapping(), "better": scoring.better, "usage": scoring.usage, **explained}
    row = cast("dict[str, Any]", as_json({"metric": scoring.metric, **record}))
    row["exchanges"] = as_json(_exchange_rows(scoring)) if _is_to_look_into(row) else []
    if redact is not None:
        row = cast("dict[str, Any]", as_json({**_redacted(row, redact), "metric": row["metric"]}))
        _drop_wrong_offsets(row)
    return cast("Record", row)


def result_of(record: Record) -> MetricResult:
    """Return the result that a record with a score is of, without what it cost; raise ``ValueError`` without one."""
    if record["score"] is None:
        msg = f"{record['metric']} is unscored"
        raise ValueError(msg)
    return MetricResult(
        record["score"],
        metric=record["metric"],
        reason=record["reason"],
        verdicts=tuple(map(verdict_of, record["verdicts"])),
        vacuous=record["vacuous"],
        judge=record["judge"],
        samples=record["samples"],
        votes=max(1, len(record["samples"])),
    )


def verdict_of(row: VerdictRow) -> Verdict:
    """Return the verdict that a row is of."""
    nearest = row["nearest"]
    changes = () if nearest is None else tuple(Change(**change) for change in nearest["changes"])
    closest = None if nearest is None else Nearest(**cast("dict[str, Any]", {**nearest, "changes": changes}))
    evidence = tuple(Evidence(**item) for item in row["evidence"])
    return Verdict(**cast("dict[str, Any]", {**row, "evidence": evidence, "nearest": closest}))


def _scored(result: MetricResult) -> dict[str, Any]:
    held = result.comparison
    return {
        "score": result.value,
        "outcome": "measured" if held is None else "passed" if held.held else "failed",
        "threshold": held and {"operator": held.operator, "bound": held.bound},
        "reason": result.reason,
        "vacuous": result.vacuous,
        "judge": result.judge,
        "samples": result.samples,
        "verdicts": result.verdicts,
    }


def _unscored(error: UnscoredError) -> dict[str, Any]:
    return {
        "score": None,
        "outcome": "unscored",
        "threshold": None,
        "reason": str(error),
        "vacuous": False,
        "judge": None,
        "samples": (),
        "verdicts": (),
    }


def _is_to_look_into(record: Mapping[str, Any]) -> bool:
    return (
        record["outcome"] in ("failed", "unscored")
        or any(verdict["suspicious"] for verdict in record["verdicts"])
        or len(set(record["samples"])) > 1
    )


def _exchange_rows(scoring: Scoring) -> list[dict[str, Any]]:
    """Return the exchanges by vote and task; the order in which they came is chance."""
    rows = [exchange.to_row() for exchange in scoring.exchanges]
    return sorted(rows, key=lambda row: (row["vote"], row["task"], row["prompt"]))


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _redacted(item, redact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_redacted(item, redact) for item in value]
    return value


def _drop_wrong_offsets(record: dict[str, Any]) -> None:
    response = record["sample"].get("response") or ""
    for verdict in record["verdicts"]:
        if verdict["start"] is not None and response[verdict["start"] : verdict["end"]] != verdict["text"]:
            verdict["start"] = verdict["end"] = None


def as_json(value: object) -> object:
    """Return a value as exact JSON builtins; what JSON has no word for becomes its text.

    >>> as_json({"when": (1, 2.5), "none": None, "nan": float("nan")})
    {'when': [1, 2.5], 'none': None, 'nan': 'nan'}
    """
    if value is None or isinstance(value, bool) or (type(value) is str and value.isascii()):
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {_text(str(key)): as_json(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray)):
        return [as_json(item) for item in value]
    if hasattr(value, "item"):
        return as_json(value.item())  # a numpy scalar
    return _text(value if isinstance(value, str) else str(value))


# A lone surrogate cannot be encoded, and one of them would end an xdist worker.
_SURROGATE = re.compile("[\ud800-\udfff]")


def _text(text: str) -> str:
    return text if type(text) is str and text.isascii() else str(_SURROGATE.sub("\ufffd", text))
