"""The one shape everything a run leaves behind is made from: JSON builtins, typed.

A record is one scoring inside one test. Records travel from xdist workers to the controller on the test
reports, so nothing but ``dict``, ``list``, ``str``, ``int``, ``float``, ``bool`` and ``None`` may stand in them.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

#: Version of the document's shape; grows when a field changes its meaning or goes away.
VERSION = 1

RecordOutcome = Literal["passed", "failed", "unscored", "measured"]
TestOutcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]


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


class ThresholdRow(TypedDict):
    """What the score was held against: ``score <operator> bound``."""

    operator: Literal["<", "<=", ">", ">=", "=="]
    bound: float


class Record(TypedDict):
    """One scoring. ``score`` is ``None`` when it is unscored; ``measured`` when nothing was asserted of it."""

    metric: str
    score: float | None
    outcome: RecordOutcome
    threshold: ThresholdRow | None
    reason: str | None
    vacuous: bool
    judge: str | None
    usage: UsageRow
    samples: list[float]
    sample: dict[str, Any]
    verdicts: list[VerdictRow]


class TestRow(TypedDict):
    """One test and its records; ``message`` is what pytest said of a failure, a skip or an expected failure."""

    id: str
    file: str
    line: int | None
    outcome: TestOutcome
    duration: float
    attempts: int
    message: str | None
    records: list[Record]


class RunRow(TypedDict):
    """The run itself."""

    started: str
    duration: float
    exit_status: int
    python: str
    pytest: str
    ragmetrics: str


class Document(TypedDict):
    """All a run leaves behind; what ``--rag-json`` writes and every page is made from."""

    version: int
    run: RunRow
    tests: list[TestRow]
