"""One test as the page lists it: what happened, why, and how bad it is."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_ragmetrics.report.page.exhibits import Exhibit, lay_out
from pytest_ragmetrics.report.page.figures import duration_text, score_text, threshold_text
from pytest_ragmetrics.report.records import Record, RecordOutcome, TestRow
from pytest_ragmetrics.text.printable import shortened

#: How a test came out, the worst first; a test that failed for want of a score is unscored.
Status = Literal["failed", "error", "unscored", "xpassed", "xfailed", "passed", "skipped"]
STATUSES: tuple[Status, ...] = get_args(Status)

_RECORD_ORDER: dict[RecordOutcome, int] = {"failed": 0, "unscored": 1, "passed": 2, "measured": 3}
_SLUG_LENGTH = 60
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
class Entry:
    """One test; ``anchor`` is its deep link, ``key`` starts the anchors inside it.

    ``chips`` are its scores, the worst first; ``explained`` says that pytest's message is the explanation,
    because no score is.
    """

    anchor: str
    key: str
    name: str
    file: str
    line: int | None
    status: Status
    why: str
    duration: float
    took: str
    attempts: int
    chips: tuple[Chip, ...]
    margin: float
    message: str | None
    explained: bool
    exhibits: tuple[Exhibit, ...]


def status_of(test: TestRow) -> Status:
    """Return how a test came out."""
    outcomes = {record["outcome"] for record in test["records"]}
    if test["outcome"] in ("failed", "error") and "unscored" in outcomes and "failed" not in outcomes:
        return "unscored"
    return test["outcome"]


def list_entries(tests: Sequence[TestRow]) -> list[Entry]:
    """Return the tests, the worst first: by status, then by how far the worst score is from its threshold."""
    seen: dict[str, int] = {}
    entries = []
    for test in tests:
        seen[test["id"]] = seen.get(test["id"], 0) + 1
        entries.append(_entry(test, seen[test["id"]]))
    return sorted(entries, key=lambda entry: (STATUSES.index(entry.status), entry.margin))


def _entry(test: TestRow, occurrence: int) -> Entry:
    status = status_of(test)
    records = sorted(test["records"], key=lambda record: (_RECORD_ORDER[record["outcome"]], _margin(record)))
    blamed = status in ("failed", "unscored") and bool(records) and records[0]["outcome"] in ("failed", "unscored")
    why = _why(records[0]) if blamed else _gist(test["message"]) if status != "passed" else ""
    name = test["id"].removeprefix(f"{test['file']}::")
    key = _digest(test["id"], occurrence)
    return Entry(
        anchor=f"{_slug(name)}-{key}",
        key=key,
        name=name,
        file=test["file"],
        line=test["line"],
        status=status,
        why=shortened(why, _WHY_LENGTH),
        duration=test["duration"],
        took=duration_text(test["duration"]),
        attempts=test["attempts"],
        chips=tuple(map(_chip, records)),
        margin=min(map(_margin, records), default=math.inf),
        message=test["message"],
        explained=not blamed,
        exhibits=lay_out(test["records"]),
    )


def _digest(test_id: str, occurrence: int) -> str:
    text = test_id if occurrence == 1 else f"{test_id}\0{occurrence}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", name[:_SLUG_LENGTH]).strip("-") or "test"


def _margin(record: Record) -> float:
    """Return how far a score is on the good side of its threshold; negative when it fell short."""
    threshold, score = record["threshold"], record["score"]
    if threshold is None or score is None:
        return math.inf
    above = score - threshold["bound"]
    if threshold["operator"] == "==":
        return -abs(above)
    return above if threshold["operator"] in (">", ">=") else -above


def _chip(record: Record) -> Chip:
    threshold, score = record["threshold"], record["score"]
    return Chip(
        metric=record["metric"],
        score="unscored" if score is None else score_text(score, threshold["bound"] if threshold else None),
        value=score,
        needs=threshold_text(threshold) if threshold else None,
        outcome=record["outcome"],
    )


def _why(record: Record) -> str:
    if record["reason"]:
        return record["reason"]
    wrong = sum(not verdict["ok"] for verdict in record["verdicts"])
    return f"{wrong} of {len(record['verdicts'])} not ok" if wrong else ""


def _gist(message: str | None) -> str:
    """Return the line of pytest's message that says the most: the first of the error, else the first."""
    lines = [line for line in (message or "").splitlines() if line.strip()]
    return next((line[1:].strip() for line in lines if re.match(r"E\s", line)), lines[0].strip() if lines else "")
