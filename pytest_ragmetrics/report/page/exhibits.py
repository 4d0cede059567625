"""One sample with all that was decided about it, laid out for reading: numbers, marks and where they lead.

The verdicts of all records on the same sample are numbered through, so that number n is one thing in the
response, in the list of verdicts and in the contexts.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics.report.page.figures import counted, score_text, threshold_text, usage_text
from pytest_ragmetrics.report.page.findings import CONTEXT_FIELDS, Finding, find, home_of
from pytest_ragmetrics.report.page.segments import Mark, MarkKind, Segment, cut, fold
from pytest_ragmetrics.report.records import EvidenceRow, NearestRow, Record, RecordOutcome, VerdictRow
from pytest_ragmetrics.result import Operator, Usage
from pytest_ragmetrics.text.printable import shortened

_SHOWN_FIELDS = {"user_input", "response", "reference", *CONTEXT_FIELDS}
_HOLDS: Mapping[Operator, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_PREVIEW = 140
_SOURCE = 100
#: A response is there to be read as a whole; only a monster is folded.
_RESPONSE_NEAR = 1500
_RESPONSE_HEAD = 6000


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """One record: its score against its threshold, and its findings, what is not ok first."""

    metric: str
    score: str | None
    outcome: RecordOutcome
    needs: str | None
    reason: str | None
    labels: tuple[str, ...]
    judge: str | None
    usage: str
    votes: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """One context; ``evidence`` and ``nearest`` are the numbers of the findings that lead to it."""

    label: str
    anchor: str
    source: str | None
    length: int
    preview: str
    segments: tuple[Segment, ...]
    evidence: tuple[int, ...]
    nearest: tuple[int, ...]
    opened: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Exhibit:
    """A sample and everything that was decided about it; a text that is not set is ``None``."""

    question: str | None
    response: tuple[Segment, ...] | None
    reference: str | None
    contexts: tuple[Context, ...] | None
    reference_contexts: tuple[Context, ...] | None
    rest: tuple[tuple[str, str], ...]
    scored: tuple[Scored, ...]

    @property
    def goals(self) -> Mapping[int, str | None]:
        """Where the marks in the response lead, by number."""
        return {finding.number: finding.goal for finding in self.findings}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all records."""
        return tuple(finding for scored in self.scored for finding in scored.findings)

    @property
    def marked(self) -> frozenset[int]:
        """The numbers that are marked in the response."""
        return frozenset(finding.number for finding in self.findings if finding.marked)


def lay_out(records: Sequence[Record]) -> tuple[Exhibit, ...]:
    """Return the samples of a test with their records; records on the same response share one."""
    groups: list[tuple[dict[str, Any], list[Record]]] = []
    latest: dict[str, int] = {}
    for record in records:
        sample = record["sample"]
        response = sample.get("response")
        index = latest.get(response) if isinstance(response, str) else None
        if index is not None and _agree(groups[index][0], sample):
            groups[index][0].update(sample)
            groups[index][1].append(record)
            continue
        if isinstance(response, str):
            latest[response] = len(groups)
        groups.append((dict(sample), [record]))
    return tuple(_exhibit(sample, members) for sample, members in groups)


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def _exhibit(sample: Mapping[str, Any], records: Sequence[Record]) -> Exhibit:
    numbered = list(_numbered(records))
    verdicts = [(number, verdict) for _, rows in numbered for number, verdict in rows]
    marks = _context_marks(sample, verdicts)
    # Where a score is bad and nothing points anywhere, the contexts have to be read.
    wrong = any(record["outcome"] in ("failed", "unscored") for record in records)
    response = _text_of(sample.get("response"))
    return Exhibit(
        question=_text_of(sample.get("user_input")),
        response=None if response is None else _response(response, verdicts),
        reference=_text_of(sample.get("reference")),
        contexts=_contexts(sample, "retrieved_contexts", marks, opened=wrong and not marks),
        reference_contexts=_contexts(sample, "reference_contexts", marks, opened=False),
        rest=tuple(_rest(sample)),
        scored=tuple(_scored(record, rows, sample) for record, rows in numbered),
    )


def _numbered(records: Sequence[Record]) -> Iterator[tuple[Record, list[tuple[int, VerdictRow]]]]:
    number = 1
    for record in records:
        yield record, list(enumerate(record["verdicts"], start=number))
        number += len(record["verdicts"])


def _text_of(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _rest(sample: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the small print: ids and metadata."""
    for name in sorted(sample.keys() - _SHOWN_FIELDS - {"metadata"}):
        value = sample[name]
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else _text_of(value) or ""
    metadata = sample.get("metadata") or {}
    for name in sorted(metadata):
        yield name, _text_of(metadata[name]) or ""


def _response(text: str, verdicts: Sequence[tuple[int, VerdictRow]]) -> tuple[Segment, ...]:
    return fold(cut(text, _response_marks(verdicts)), near=_RESPONSE_NEAR, head=_RESPONSE_HEAD)


def _response_marks(verdicts: Sequence[tuple[int, VerdictRow]]) -> Iterator[Mark]:
    for number, verdict in verdicts:
        if verdict["start"] is not None and verdict["end"] is not None:
            kind: MarkKind = "found" if verdict["ok"] else "missing"
            yield Mark(start=verdict["start"], end=verdict["end"], kind=kind, number=number)


def _context_marks(
    sample: Mapping[str, Any], verdicts: Sequence[tuple[int, VerdictRow]]
) -> dict[tuple[str, int], list[Mark]]:
    marks: dict[tuple[str, int], list[Mark]] = {}
    for number, verdict in verdicts:
        for piece, row in enumerate(verdict["evidence"]):
            _add_mark(marks, sample, row, kind="evidence", number=number, piece=piece)
        if verdict["nearest"] is not None:
            _add_mark(marks, sample, verdict["nearest"], kind="nearest", number=number)
    return marks


def _add_mark(
    marks: dict[tuple[str, int], list[Mark]],
    sample: Mapping[str, Any],
    row: EvidenceRow | NearestRow,
    *,
    kind: MarkKind,
    number: int,
    piece: int = 0,
) -> None:
    home = home_of(sample, row)
    if home is not None:
        mark = Mark(start=row["start"], end=row["end"], kind=kind, number=number, piece=piece)
        marks.setdefault((home, row["context"]), []).append(mark)


def _contexts(
    sample: Mapping[str, Any], name: str, marks: Mapping[tuple[str, int], Sequence[Mark]], *, opened: bool
) -> tuple[Context, ...] | None:
    texts = sample.get(name)
    if texts is None:
        return None
    ids = sample.get(name.replace("contexts", "context_ids")) or []
    return tuple(
        _context(name, index, text, marks.get((name, index), ()), ids, opened=opened)
        for index, text in enumerate(texts)
    )


def _context(
    name: str, index: int, text: str, marks: Sequence[Mark], ids: Sequence[object], *, opened: bool
) -> Context:
    return Context(
        label=f"{CONTEXT_FIELDS[name]}[{index}]",
        anchor=f"{name[:3]}{index}",
        source=shortened(str(ids[index]), _SOURCE) if index < len(ids) else None,
        length=len(text),
        preview=" ".join(text[: _PREVIEW * 2].split())[:_PREVIEW],
        segments=fold(cut(text, marks)),
        evidence=_numbers(marks, "evidence"),
        nearest=_numbers(marks, "nearest"),
        opened=opened or bool(marks),
    )


def _numbers(marks: Sequence[Mark], kind: MarkKind) -> tuple[int, ...]:
    return tuple(sorted({mark.number for mark in marks if mark.kind == kind}))


def _scored(record: Record, verdicts: Sequence[tuple[int, VerdictRow]], sample: Mapping[str, Any]) -> Scored:
    threshold = record["threshold"]
    bound = threshold["bound"] if threshold else None
    words = ("found", "not found") if _about_texts(record) else ("ok", "not ok")
    findings = [find(number, verdict, sample, words) for number, verdict in verdicts]
    return Scored(
        metric=record["metric"],
        score=None if record["score"] is None else score_text(record["score"], bound),
        outcome=record["outcome"],
        needs=threshold_text(threshold) if threshold else None,
        reason=record["reason"],
        labels=tuple(_labels(record)),
        judge=record["judge"],
        usage=usage_text(Usage(**record["usage"])),
        votes=", ".join(score_text(vote, bound) for vote in record["samples"]),
        findings=tuple(sorted(findings, key=lambda finding: (finding.ok, finding.number))),
    )


def _about_texts(record: Record) -> bool:
    """Return whether the verdicts are about pieces of text that stand somewhere, or do not."""
    return any(row["start"] is not None or row["evidence"] or row["nearest"] for row in record["verdicts"])


def _labels(record: Record) -> Iterator[str]:
    if record["vacuous"]:
        yield "vacuous: there was nothing to check"
    if suspicious := sum(verdict["suspicious"] for verdict in record["verdicts"]):
        yield counted(suspicious, "suspicious verdict")
    if (
        record["threshold"]
        and len(
            {_HOLDS[record["threshold"]["operator"]](vote, record["threshold"]["bound"]) for vote in record["samples"]}
        )
        > 1
    ):
        yield "the votes disagree"
    if "heuristic" in (record["judge"] or ""):
        yield "scored by a heuristic"
