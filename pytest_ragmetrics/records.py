"""Documents as files: written one test a line, and read back strictly, the place of a fault named."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from pytest_ragmetrics.context import Scoring
from pytest_ragmetrics.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.files import read_json
from pytest_ragmetrics.result import Direction, Evidence, MetricResult, Nearest, Operator, Verdict, WordChange

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
    changes = () if nearest is None else tuple(WordChange(**change) for change in nearest["changes"])
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


_PACKAGE, _SCHEMA = "pytest_ragmetrics.report", "schema.json"
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (float, int),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


class DocumentError(RagMetricsError):
    """A file is not the document of a run; says the file and the place in it."""

    def __init__(self, message: str, *, file: Path) -> None:
        self.file = file
        super().__init__(f"{file}: {message}")


class _MisfitError(Exception):
    """A value is not as the schema has it."""


def render_json(document: Document) -> str:
    """Return the document as JSON text, one test a line, so that a change of one test is a change of one line.

    The text is ASCII, and fits the schema that :func:`schema_text` returns.
    """
    head, run = json.dumps(document["version"]), json.dumps(document["run"], allow_nan=False)
    rows = ",\n".join(json.dumps(row, allow_nan=False) for row in document["tests"])
    tests = f"[\n{rows}\n]" if rows else "[]"
    return f'{{"version": {head},\n"run": {run},\n"tests": {tests}}}\n'


def schema_text() -> str:
    """Return the JSON schema (draft 2020-12) of a document."""
    return (files(_PACKAGE) / _SCHEMA).read_text(encoding="utf-8")


def read_document(file: Path) -> Document:
    """Return the document in a file that ``--rag-json`` wrote.

    Fields that this version does not know are kept. Raises :class:`DocumentError` naming the file, and the place in
    it that is wrong.
    """
    try:
        data = read_json(file)
    except OSError as error:
        raise DocumentError(error.strerror or str(error), file=file) from error
    except ValueError as error:
        msg = f"not JSON: {error}; give a file that --rag-json wrote"
        raise DocumentError(msg, file=file) from error
    version = data.get("version") if isinstance(data, dict) else None
    if type(version) is not int:
        msg = "not the result of a run: it has no version; give a file that --rag-json wrote"
        raise DocumentError(msg, file=file)
    if version != VERSION:
        msg = f"it is of version {version}, and this release reads version {VERSION}: write it anew with --rag-json"
        raise DocumentError(msg, file=file)
    try:
        _hold(data, _schema(), "")
    except _MisfitError as error:
        raise DocumentError(str(error), file=file) from error
    return cast("Document", data)


@lru_cache(maxsize=1)
def _schema() -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", json.loads(schema_text()))


def _hold(data: object, schema: Mapping[str, Any], place: str) -> None:
    """Raise for the first value that does not fit; covers the words that our schema is written in."""
    if "$ref" in schema:
        _hold(data, _schema()["$defs"][schema["$ref"].rpartition("/")[2]], place)
    elif "anyOf" in schema:
        # Always something or null.
        if data is not None:
            _hold(data, schema["anyOf"][0], place)
    else:
        _hold_kind(data, schema, place)
        if isinstance(data, dict):
            _hold_fields(data, schema, place)
        elif isinstance(data, list):
            for number, item in enumerate(data):
                _hold(item, schema["items"], f"{place}[{number}]")


def _hold_kind(data: object, schema: Mapping[str, Any], place: str) -> None:
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(_is(data, kind) for kind in kinds):
        msg = f"{place or 'the document'} must be {' or '.join(kinds)}, not {_shown(data)}"
        raise _MisfitError(msg)
    if "enum" in schema and data not in schema["enum"]:
        msg = f"{place} must be one of {', '.join(map(str, schema['enum']))}, not {_shown(data)}"
        raise _MisfitError(msg)


def _hold_fields(data: Mapping[str, object], schema: Mapping[str, Any], place: str) -> None:
    known: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in data]
    if missing:
        msg = f"{place or 'the document'} lacks {missing[0]}"
        raise _MisfitError(msg)
    others = schema.get("additionalProperties")
    for name, value in data.items():
        expected = known.get(name, others)
        if isinstance(expected, dict):
            _hold(value, expected, f"{place}.{name}" if place else name)


def _is(data: object, kind: str) -> bool:
    if not isinstance(data, _TYPES[kind]) or (isinstance(data, bool) and kind != "boolean"):
        return False
    if kind != "number":
        return True
    try:
        return math.isfinite(cast("float", data))
    except OverflowError:
        return False


def _shown(data: object) -> str:
    text = json.dumps(data)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - enough to find it
