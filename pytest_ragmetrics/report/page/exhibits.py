"""One sample with all that was decided about it, laid out for reading: numbers, marks and where they lead.

The verdicts of all records on the same sample are numbered through, so that number n is one thing in the
response, in the list of verdicts and in the contexts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pytest_ragmetrics.comparison import TestChange
from pytest_ragmetrics.context import Exchange
from pytest_ragmetrics.explain.phrases import counted, score_text, threshold_text, usage_text
from pytest_ragmetrics.explain.runs import change_text
from pytest_ragmetrics.records import Record, RecordOutcome, flips
from pytest_ragmetrics.report.page.findings import CONTEXT_FIELDS, VerdictView, find, home_of
from pytest_ragmetrics.report.page.segments import Highlight, MarkKind, Segment, cut, fold
from pytest_ragmetrics.report.page.votes import Votes, count_votes
from pytest_ragmetrics.result import Evidence, Nearest, Usage, Verdict
from pytest_ragmetrics.text.characters import shortened

_SHOWN_FIELDS = {"user_input", "response", "reference", *CONTEXT_FIELDS}
#: The fields that hold the ids of contexts, by the fields that hold the contexts.
_IDS = {name: name.replace("contexts", "context_ids") for name in CONTEXT_FIELDS}
#: A record, and how it compares with the baseline.
_Compared: TypeAlias = tuple[Record, TestChange | None]

_PREVIEW = 140
_SOURCE = 100
#: A response is there to be read as a whole; only a monster is folded.
_RESPONSE_NEAR = 1500
_RESPONSE_HEAD = 6000


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreView:
    """One record: its score against its threshold, and its findings, what is not ok first.

    ``change`` says how it came out in the baseline, and in one word whether that was better or worse.
    """

    metric: str
    score: str | None
    outcome: RecordOutcome
    needs: str | None
    reason: str | None
    labels: tuple[str, ...]
    judge: str | None
    asked: str
    votes: Votes | None
    change: tuple[str, str] | None
    findings: tuple[VerdictView, ...]
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """One context; ``evidence``, ``against`` and ``nearest`` are the numbers of the findings that lead to it."""

    label: str
    anchor: str
    source: str | None
    length: int
    preview: str
    segments: tuple[Segment, ...]
    evidence: tuple[int, ...]
    against: tuple[int, ...]
    nearest: tuple[int, ...]
    opened: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleView:
    """A sample and everything that was decided about it; a text that is not set is ``None``."""

    question: str | None
    response: tuple[Segment, ...] | None
    reference: str | None
    contexts: tuple[Context, ...] | None
    reference_contexts: tuple[Context, ...] | None
    rest: tuple[tuple[str, str], ...]
    scored: tuple[ScoreView, ...]

    @property
    def goals(self) -> Mapping[int, str | None]:
        """Where the marks in the response lead, by number."""
        return {finding.number: finding.goal for finding in self.findings}

    @property
    def findings(self) -> tuple[VerdictView, ...]:
        """The findings of all records."""
        return tuple(finding for scored in self.scored for finding in scored.findings)

    @property
    def marked(self) -> frozenset[int]:
        """The numbers that are marked in the response."""
        return frozenset(finding.number for finding in self.findings if finding.marked)


def build_sample_views(
    records: Sequence[Record], changes: Mapping[int, TestChange] | None = None
) -> tuple[SampleView, ...]:
    """Return the samples of a test with their records; records on the same response share one.

    ``changes`` are those against the baseline, by the number of the record.
    """
    groups: list[tuple[dict[str, Any], list[_Compared]]] = []
    latest: dict[str, int] = {}
    for number, record in enumerate(records):
        compared = record, (changes or {}).get(number)
        sample = record.sample.to_mapping()
        response = sample.get("response")
        index = latest.get(response) if isinstance(response, str) else None
        if index is not None and _agree(groups[index][0], sample):
            groups[index][0].update(sample)
            groups[index][1].append(compared)
            continue
        if isinstance(response, str):
            latest[response] = len(groups)
        groups.append((sample, [compared]))
    return tuple(_exhibit(sample, members) for sample, members in groups)


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def _exhibit(sample: Mapping[str, Any], compared: Sequence[_Compared]) -> SampleView:
    records = [record for record, _ in compared]
    numbered = list(_numbered(records))
    verdicts = [(number, verdict) for rows in numbered for number, verdict in rows]
    marks = _context_marks(sample, verdicts)
    # Where a score is bad and nothing points anywhere, the contexts have to be read.
    wrong = any(record.outcome in ("failed", "unscored") for record in records)
    response = sample.get("response")
    return SampleView(
        question=sample.get("user_input"),
        response=None if response is None else _response(response, verdicts),
        reference=sample.get("reference"),
        contexts=_contexts(sample, "retrieved_contexts", marks, opened=wrong and not marks),
        reference_contexts=_contexts(sample, "reference_contexts", marks, opened=False),
        rest=tuple(_rest(sample)),
        scored=tuple(
            _scored(record, change, rows, sample) for (record, change), rows in zip(compared, numbered, strict=True)
        ),
    )


def _numbered(records: Sequence[Record]) -> Iterator[list[tuple[int, Verdict]]]:
    number = 1
    for record in records:
        yield list(enumerate(record.verdicts, start=number))
        number += len(record.verdicts)


def _text_of(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _rest(sample: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the small print: ids and metadata."""
    # The ids of contexts stand beside them, unless there are more.
    beside = {_IDS[name] for name in CONTEXT_FIELDS if len(sample.get(_IDS[name]) or ()) <= len(sample.get(name) or ())}
    for name in sorted(sample.keys() - _SHOWN_FIELDS - beside - {"metadata"}):
        value = sample[name]
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else _text_of(value) or ""
    metadata = sample.get("metadata") or {}
    for name in sorted(metadata):
        yield name, _text_of(metadata[name]) or ""


def _response(text: str, verdicts: Sequence[tuple[int, Verdict]]) -> tuple[Segment, ...]:
    return fold(cut(text, _response_marks(verdicts)), near=_RESPONSE_NEAR, head=_RESPONSE_HEAD)


def _response_marks(verdicts: Sequence[tuple[int, Verdict]]) -> Iterator[Highlight]:
    for number, verdict in verdicts:
        if verdict.start is not None and verdict.end is not None:
            kind: MarkKind = "found" if verdict.ok else "missing"
            yield Highlight(start=verdict.start, end=verdict.end, kind=kind, number=number)


def _context_marks(
    sample: Mapping[str, Any], verdicts: Sequence[tuple[int, Verdict]]
) -> dict[tuple[str, int], list[Highlight]]:
    marks: dict[tuple[str, int], list[Highlight]] = {}
    for number, verdict in verdicts:
        # What a verdict that is not ok rests on is what the response contradicts, or took its fault from.
        kind: MarkKind = "evidence" if verdict.ok else "against"
        for piece, row in enumerate(verdict.evidence):
            _add_mark(marks, sample, row, kind=kind, number=number, piece=piece)
        if verdict.nearest is not None:
            _add_mark(marks, sample, verdict.nearest, kind="nearest", number=number)
    return marks


def _add_mark(
    marks: dict[tuple[str, int], list[Highlight]],
    sample: Mapping[str, Any],
    row: Evidence | Nearest,
    *,
    kind: MarkKind,
    number: int,
    piece: int = 0,
) -> None:
    home = home_of(sample, row)
    if home is not None:
        mark = Highlight(start=row.start, end=row.end, kind=kind, number=number, piece=piece)
        marks.setdefault((home, row.context), []).append(mark)


def _contexts(
    sample: Mapping[str, Any], name: str, marks: Mapping[tuple[str, int], Sequence[Highlight]], *, opened: bool
) -> tuple[Context, ...] | None:
    texts = sample.get(name)
    if texts is None:
        return None
    ids = sample.get(_IDS[name]) or []
    return tuple(
        _context(name, index, text, marks.get((name, index), ()), ids, opened=opened)
        for index, text in enumerate(texts)
    )


def _context(
    name: str, index: int, text: str, marks: Sequence[Highlight], ids: Sequence[object], *, opened: bool
) -> Context:
    return Context(
        label=f"{CONTEXT_FIELDS[name]}[{index}]",
        anchor=f"{name[:3]}{index}",
        source=shortened(str(ids[index]), _SOURCE) if index < len(ids) else None,
        length=len(text),
        preview=" ".join(text[: _PREVIEW * 2].split())[:_PREVIEW],
        segments=fold(cut(text, marks)),
        evidence=_numbers(marks, "evidence"),
        against=_numbers(marks, "against"),
        nearest=_numbers(marks, "nearest"),
        opened=opened or bool(marks),
    )


def _numbers(marks: Sequence[Highlight], kind: MarkKind) -> tuple[int, ...]:
    return tuple(sorted({mark.number for mark in marks if mark.kind == kind}))


def _scored(
    record: Record, change: TestChange | None, verdicts: Sequence[tuple[int, Verdict]], sample: Mapping[str, Any]
) -> ScoreView:
    threshold = record.threshold
    words = ("found", "not found") if _about_texts(record) else ("ok", "not ok")
    findings = [find(number, verdict, sample, words) for number, verdict in verdicts]
    return ScoreView(
        metric=record.metric,
        score=None if record.score is None else score_text(record.score, threshold.bound if threshold else None),
        outcome=record.outcome,
        needs=threshold_text(threshold) if threshold else None,
        reason=record.reason,
        labels=tuple(_labels(record)),
        judge=record.judge,
        asked=_asked(record.usage),
        votes=count_votes(record),
        change=change_text(change) if change and change.kind != "same" else None,
        findings=tuple(sorted(findings, key=lambda finding: (finding.ok, finding.number))),
        exchanges=record.exchanges,
    )


def _asked(usage: Usage) -> str:
    """Return whether the judge was asked just now, and what that took."""
    text = usage_text(usage)
    if not text:
        return ""
    kind = "partly cached" if usage.calls and usage.cached_calls else "live" if usage.calls else "cached"
    return f"{kind}: {text}"


def _about_texts(record: Record) -> bool:
    """Return whether the verdicts are about pieces of text that stand somewhere, or do not."""
    return any(row.start is not None or row.evidence or row.nearest for row in record.verdicts)


def _labels(record: Record) -> Iterator[str]:
    if record.vacuous:
        yield "vacuous: there was nothing to check"
    if suspicious := sum(verdict.suspicious for verdict in record.verdicts):
        yield counted(suspicious, "suspicious verdict")
    if flips(record.samples, record.threshold):
        yield "flaky: the votes lie on both sides of the threshold"
    if "heuristic" in (record.judge or ""):
        yield "scored by a heuristic"
