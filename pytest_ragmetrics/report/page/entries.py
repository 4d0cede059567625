"""One test as the page lists it: what happened, why, and how bad it is."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_ragmetrics.comparison import TestChange
from pytest_ragmetrics.explain.phrases import duration_text, score_text, threshold_text
from pytest_ragmetrics.explain.runs import STATUSES, Status, gist, margin, status_of
from pytest_ragmetrics.records import Record, RecordOutcome, TestRecord, flips
from pytest_ragmetrics.report.page.exhibits import SampleView, build_sample_views
from pytest_ragmetrics.report.page.gates import GateView, tell
from pytest_ragmetrics.report.page.visible import visible
from pytest_ragmetrics.text.characters import shortened

#: What a reader may want to see apart, whatever the outcome.
Flag = Literal["flaky", "suspicious", "vacuous"]
FLAGS: tuple[Flag, ...] = get_args(Flag)

_RECORD_ORDER: dict[RecordOutcome, int] = {"failed": 0, "unscored": 1, "passed": 2, "measured": 3}
#: How much of the reason the list shows; all of it stands inside.
_WHY_LENGTH = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Chip:
    """A score as the list shows it; ``value`` is what it sorts by."""

    metric: str
    score: str
    value: float | None
    needs: str | None
    outcome: RecordOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class TestView:
    """One test; ``anchor`` is its id and its deep link, ``key`` starts the anchors inside it.

    ``chips`` are its scores, the worst first; ``explained`` says that pytest's message is the explanation, because no
    score is. ``changes`` are those against the baseline. ``cost`` and ``tokens`` are what judging took.
    """

    anchor: str
    key: str
    name: str
    file: str
    line: int | None
    status: Status
    flags: tuple[Flag, ...]
    why: str
    duration: float
    took: str
    attempts: int
    cost: float
    tokens: int
    chips: tuple[Chip, ...]
    changes: tuple[TestChange, ...]
    margin: float
    message: str | None
    explained: bool
    gate: GateView | None
    exhibits: tuple[SampleView, ...]


def list_entries(
    tests: Sequence[TestRecord], changes: Mapping[tuple[str, int], TestChange] | None = None
) -> list[TestView]:
    """Return the tests, the worst first: by status, then by how far the worst score is from its threshold.

    ``changes`` are those against the baseline, by the id of the test and the number of the record in it.
    """
    seen: dict[str, int] = {}
    entries = []
    for test in tests:
        seen[test.id] = seen.get(test.id, 0) + 1
        entries.append(_entry(test, seen[test.id], changes or {}))
    return sorted(entries, key=lambda entry: (STATUSES.index(entry.status), entry.margin))


def _entry(test: TestRecord, occurrence: int, changes: Mapping[tuple[str, int], TestChange]) -> TestView:
    status = status_of(test)
    gate = tell(test.gate) if test.gate else None
    records = sorted(test.records, key=lambda record: (_RECORD_ORDER[record.outcome], margin(record)))
    blamed = status in ("failed", "unscored") and bool(records) and records[0].outcome in ("failed", "unscored")
    numbered = {number: changes[test.id, number] for number in range(len(records)) if (test.id, number) in changes}
    return TestView(
        anchor=visible(test.id) + (f" ({occurrence})" if occurrence > 1 else ""),
        key=_digest(test.id, occurrence),
        name=test.id.removeprefix(f"{test.file}::"),
        file=test.file,
        line=test.line,
        status=status,
        flags=_flags(records),
        why=shortened(_why(test, status, gate, records[0] if blamed else None), _WHY_LENGTH),
        duration=test.duration,
        took=duration_text(test.duration),
        attempts=test.attempts,
        cost=sum(record.usage.cost or 0.0 for record in records),
        tokens=sum(record.usage.prompt_tokens + record.usage.completion_tokens for record in records),
        chips=tuple(map(_chip, records)),
        changes=tuple(numbered.values()),
        margin=min(map(margin, records), default=math.inf),
        message=test.message,
        explained=not blamed,
        gate=gate,
        exhibits=build_sample_views(test.records, numbered),
    )


def _digest(test_id: str, occurrence: int) -> str:
    text = test_id if occurrence == 1 else f"{test_id}\0{occurrence}"
    return "t" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _flags(records: Sequence[Record]) -> tuple[Flag, ...]:
    found: dict[Flag, bool] = {
        "flaky": any(flips(record.samples, record.threshold) for record in records),
        "suspicious": any(verdict.suspicious for record in records for verdict in record.verdicts),
        "vacuous": any(record.vacuous for record in records),
    }
    return tuple(flag for flag in FLAGS if found[flag])


def _chip(record: Record) -> Chip:
    threshold, score = record.threshold, record.score
    return Chip(
        metric=record.metric,
        score="unscored" if score is None else score_text(score, threshold.bound if threshold else None),
        value=score,
        needs=threshold_text(threshold) if threshold else None,
        outcome=record.outcome,
    )


def _why(test: TestRecord, status: Status, gate: GateView | None, blamed: Record | None) -> str:
    """Return why a test came out as it did: the reason of the blamed record, the numbers of a gate, pytest's words."""
    if gate is not None:
        return gate.text
    if blamed is None:
        return gist(test.message) if status != "passed" else ""
    if blamed.reason:
        return blamed.reason
    wrong = sum(not verdict.ok for verdict in blamed.verdicts)
    return f"{wrong} of {len(blamed.verdicts)} not ok" if wrong else ""
