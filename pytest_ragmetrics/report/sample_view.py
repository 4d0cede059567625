"""One sample with everything that was decided about it, as the page shows it: scores, verdicts, highlighted texts.

Made from the records of one test; ``templates/test.html.jinja`` renders it. The verdicts of all records on the same
sample are numbered through, so that number n is one verdict in the response, in the lists and in the contexts.
All offsets are code points of the original texts.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, get_args

from pytest_ragmetrics.explain.phrases import counted, score_text, similarity_text, usage_text
from pytest_ragmetrics.explain.runs import change_text
from pytest_ragmetrics.records import Record, flips, is_met
from pytest_ragmetrics.result import Evidence, Nearest, Usage, Verdict, WordChange
from pytest_ragmetrics.run_comparison import TestChange
from pytest_ragmetrics.text.characters import shortened

#: What a highlight says of its text; where several overlap, the first of these shows.
HighlightKind = Literal["missing", "found", "uncounted", "against", "evidence", "nearest"]
_PRECEDENCE: Mapping[HighlightKind, int] = {kind: place for place, kind in enumerate(get_args(HighlightKind))}

#: The fields of a sample that hold contexts, and their names in failure texts.
_CONTEXT_FIELDS = {"retrieved_contexts": "contexts", "reference_contexts": "reference_contexts"}
#: The fields with the ids of contexts, by the field with the contexts.
_IDS = {name: name.replace("contexts", "context_ids") for name in _CONTEXT_FIELDS}
_TITLES = {"retrieved_contexts": "Contexts", "reference_contexts": "Reference contexts"}
_SHOWN_FIELDS = {"user_input", "response", "reference", *_CONTEXT_FIELDS}

#: A stretch is folded when this many characters of it would be hidden.
_HIDDEN_MIN = 400
#: How many characters of the beginning and the end of a highlight are shown however long it is.
_HIGHLIGHT_ENDS = (1500, 500)
#: How far to look for white space, so as not to cut a word.
_REACH = 40
_SPACE = re.compile(r"\s")
#: A response is there to be read as a whole: only a very long one is folded.
_RESPONSE_NEAR, _RESPONSE_HEAD = 1500, 6000
_PREVIEW_LENGTH = 140
_SOURCE_LENGTH = 100
#: A reason that begins with the word for its verdict and is no longer than this replaces the word.
_WORD_LENGTH = 80
#: How many of the words that evidence lacks are named.
_LACKING = 5
#: A longer text is no claim, and is not searched for names and numbers.
_CLAIM_LENGTH = 2000
#: How many characters may be between two words of a difference.
_GAP = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Highlight:
    """A range of a text and the verdict it belongs to.

    ``anchor`` is its id within the sample. Its number links to ``link``, the other place of the same verdict, its text
    to ``goal``, the evidence that a reader of the response wants to see next.
    """

    start: int
    end: int
    kind: HighlightKind
    number: int
    anchor: str = ""
    link: str = ""
    goal: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A piece of a text under one set of highlights; ``opens`` and ``closes`` are those that begin and end with it.

    A ``folded`` piece is long and hidden until it is opened.
    """

    text: str
    marks: tuple[Highlight, ...] = ()
    opens: tuple[Highlight, ...] = ()
    closes: tuple[Highlight, ...] = ()
    folded: bool = False

    @property
    def mark(self) -> Highlight | None:
        """The highlight that decides how the piece looks."""
        return min(self.marks, key=lambda mark: _PRECEDENCE[mark.kind], default=None)


def cut(text: str, highlights: Iterable[Highlight] = ()) -> tuple[Segment, ...]:
    """Return the pieces of a text in order; joined they are the text. Highlights that do not fit in it are left out.

    Overlapping highlights need no nesting: each piece has all that cover it.

    >>> pieces = cut("so it is", [Highlight(start=3, end=5, kind="found", number=1)])
    >>> [(piece.text, [mark.number for mark in piece.marks]) for piece in pieces]
    [('so ', []), ('it', [1]), (' is', [])]
    """
    fitting = sorted(
        (mark for mark in highlights if fits(mark.start, mark.end, text)), key=attrgetter("start", "number")
    )
    edges = sorted({0, len(text), *(mark.start for mark in fitting), *(mark.end for mark in fitting)})
    waiting = fitting[::-1]
    current: list[Highlight] = []
    segments = []
    for start, end in pairwise(edges):
        while waiting and waiting[-1].start == start:
            current.append(waiting.pop())
        opens, closes = (tuple(m for m in current if m.start == start), tuple(m for m in current if m.end == end))
        segments.append(Segment(text=text[start:end], marks=tuple(current), opens=opens, closes=closes))
        current = [mark for mark in current if mark.end > end]
    return tuple(segments)


def fits(start: int | None, end: int | None, text: str) -> bool:
    """Return whether a range is one of this text, and not empty."""
    return start is not None and end is not None and 0 <= start < end <= len(text)


def fold(segments: Sequence[Segment], *, near: int = 200, head: int = 2000) -> tuple[Segment, ...]:
    """Return the pieces with the middle of every long one folded, so that the highlights are in sight.

    ``near`` characters next to a highlight are shown; of a text without any, the first ``head``. A highlight is folded
    only where it is too long to be read whole.

    >>> text = "word " * 400 + "found" + " word" * 400
    >>> [piece.folded for piece in fold(cut(text, [Highlight(start=2000, end=2005, kind="found", number=1)]))]
    [True, False, False, False, True]
    """
    if not any(segment.marks for segment in segments):
        return tuple(piece for segment in segments for piece in _folded(segment, head=head, tail=0))
    last = len(segments) - 1
    return tuple(
        piece
        for index, segment in enumerate(segments)
        for piece in _folded(segment, head=near if index else 0, tail=near if index < last else 0)
    )


def _folded(segment: Segment, *, head: int, tail: int) -> Iterator[Segment]:
    text = segment.text
    if segment.marks:
        head, tail = _HIGHLIGHT_ENDS
    if len(text) < head + tail + _HIDDEN_MIN:
        yield segment
        return
    # Neither end cuts a word, if there is white space near it.
    end = len(text) - tail
    first = max((space.start() for space in _SPACE.finditer(text, max(head - _REACH, 0), head + 1)), default=head)
    second = next((space.end() for space in _SPACE.finditer(text, end, end + _REACH)), end)
    if first > 0:
        yield Segment(text=text[:first], marks=segment.marks, opens=segment.opens)
    yield Segment(text=text[first:second], marks=segment.marks, folded=True)
    if second < len(text):
        yield Segment(text=text[second:], marks=segment.marks, closes=segment.closes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """The axis of a drawing: from 0 to 1, or between whole numbers around what is outside of that."""

    low: int
    high: int

    @classmethod
    def around(cls, values: Iterable[float]) -> Scale:
        """Return the scale that includes these values.

        >>> Scale.around([0.2, 0.9]), Scale.around([-0.5, 3.2])
        (Scale(low=0, high=1), Scale(low=-1, high=4))
        """
        known = list(values)
        return cls(low=min([0, *map(math.floor, known)]), high=max([1, *map(math.ceil, known)]))

    def place(self, value: float) -> float:
        """Return where a value is on the axis, as a share of its length."""
        # Halves, because the distance of two large numbers may be infinite.
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class VotesView:
    """The votes of a record in the order they were cast, each with whether it fell short, and the same in words."""

    votes: tuple[tuple[float, bool], ...]
    bound: float | None
    scale: Scale
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeNote:
    """How a score compares with the baseline, in words; ``kind`` is its CSS class, ``metric`` whose score it is."""

    metric: str
    text: str
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidencePlace:
    """A range of a context: as failure texts write it, its text, and its highlight's anchor if it could be set."""

    label: str
    text: str
    anchor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NearMiss:
    """The closest passage to what was not found, and both texts in steps, each with whether the other differs there."""

    place: EvidencePlace
    similarity: str
    said: tuple[tuple[str, bool], ...]
    source: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictView:
    """A verdict with its number; ``marked`` when it is highlighted in the response, ``kind`` is how it looks."""

    number: int
    text: str
    ok: bool
    kind: HighlightKind
    word: str
    reason: str | None
    suspicion: str | None
    marked: bool
    evidence: tuple[EvidencePlace, ...]
    near_miss: NearMiss | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreView:
    """One record with its verdicts, what is not ok first; ``asked`` is what judging took."""

    record: Record
    labels: tuple[str, ...]
    asked: str
    votes: VotesView | None
    change: ChangeNote | None
    verdicts: tuple[VerdictView, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextView:
    """One context; ``verdicts`` are the numbers of those that point to it, by the kind of their highlights."""

    label: str
    anchor: str
    source: str | None
    length: int
    preview: str
    segments: tuple[Segment, ...]
    verdicts: Mapping[HighlightKind, Sequence[int]]
    opened: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleView:
    """A sample and everything that was decided about it; a text that is not set is ``None``.

    ``sources`` are the lists of contexts that are set, each with its title; ``rest`` are ids and metadata.
    """

    question: str | None
    response: tuple[Segment, ...] | None
    reference: str | None
    sources: tuple[tuple[str, tuple[ContextView, ...]], ...]
    rest: tuple[tuple[str, str], ...]
    scores: tuple[ScoreView, ...]

    @property
    def marked_as(self) -> frozenset[HighlightKind]:
        """How the verdicts are highlighted in the response."""
        return frozenset(mark.kind for segment in self.response or () for mark in segment.marks)


def build_sample_views(
    records: Sequence[Record], changes: Mapping[int, TestChange] | None = None
) -> tuple[SampleView, ...]:
    """Return the samples of a test with their records; records on the same response share one.

    ``changes`` are those against the baseline, by the number of the record.
    """
    groups: list[tuple[dict[str, Any], list[tuple[Record, TestChange | None]]]] = []
    latest: dict[str | None, int] = {}
    for number, record in enumerate(records):
        scored = record, (changes or {}).get(number)
        sample = record.sample.to_mapping()
        index = latest.get(record.sample.response)
        known = {} if index is None else groups[index][0]
        if index is not None and all(known[name] == sample[name] for name in known.keys() & sample.keys()):
            known.update(sample)
            groups[index][1].append(scored)
            continue
        if record.sample.response is not None:
            latest[record.sample.response] = len(groups)
        groups.append((sample, [scored]))
    return tuple(_SampleBuilder(sample).build(scored) for sample, scored in groups)


class _SampleBuilder:
    """Builds the view of one sample; building its verdicts collects the highlights of its texts."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self._sample = sample
        #: By field and number of the text in it.
        self._highlights: dict[tuple[str, int], list[Highlight]] = defaultdict(list)

    def build(self, scored: Sequence[tuple[Record, TestChange | None]]) -> SampleView:
        scores, first = [], 1
        for record, change in scored:
            scores.append(self._score(record, change, first))
            first += len(record.verdicts)
        # Where a score is bad and no verdict points anywhere, the contexts have to be read.
        wrong = any(record.outcome in ("failed", "unscored") for record, _ in scored)
        unclear = wrong and not any(field in _CONTEXT_FIELDS for field, _ in self._highlights)
        response = self._sample.get("response")
        pieces = None if response is None else cut(response, self._highlights["response", 0])
        return SampleView(
            question=self._sample.get("user_input"),
            response=None if pieces is None else fold(pieces, near=_RESPONSE_NEAR, head=_RESPONSE_HEAD),
            reference=self._sample.get("reference"),
            sources=tuple(
                (title, self._contexts(name, opened=unclear and name == "retrieved_contexts"))
                for name, title in _TITLES.items()
                if self._sample.get(name) is not None
            ),
            rest=tuple(self._rest()),
            scores=tuple(scores),
        )

    def _score(self, record: Record, change: TestChange | None, first: int) -> ScoreView:
        about_texts = any(row.start is not None or row.evidence or row.nearest for row in record.verdicts)
        words = ("found", "not found") if about_texts else ("ok", "not ok")
        verdicts = [
            self._verdict(number, verdict, verdict.kind or words[not verdict.ok])
            for number, verdict in enumerate(record.verdicts, start=first)
        ]
        return ScoreView(
            record=record,
            labels=tuple(_labels(record)),
            asked=_asked(record.usage),
            votes=build_votes_view(record),
            change=change_note(change) if change and change.kind != "same" else None,
            verdicts=tuple(sorted(verdicts, key=lambda verdict: (verdict.ok, verdict.number))),
        )

    def _verdict(self, number: int, verdict: Verdict, word: str) -> VerdictView:
        response, reason = self._sample.get("response"), verdict.reason
        if reason and reason.startswith(word) and len(reason) <= _WORD_LENGTH:
            word, reason = reason, None
        start, end = verdict.start, verdict.end
        marked = response is not None and fits(start, end, response)
        link = f"m{number}" if marked else f"v{number}"
        # Evidence of a verdict that is not ok is what the response contradicts, or took its fault from.
        kind: HighlightKind = "evidence" if verdict.ok else "against"
        evidence = tuple(
            self._place(piece, kind, number, anchor=f"e{number}.{index}", link=link)
            for index, piece in enumerate(verdict.evidence)
        )
        near_miss = self._near_miss(number, verdict.nearest, verdict.text, link) if verdict.nearest else None
        places = [*evidence, *([near_miss.place] if near_miss else [])]
        shown: HighlightKind = "missing" if not verdict.ok else "found" if verdict.counts else "uncounted"
        if marked and start is not None and end is not None:
            mark = Highlight(
                start=start,
                end=end,
                kind=shown,
                number=number,
                anchor=f"m{number}",
                link=f"v{number}",
                goal=next((place.anchor for place in places if place.anchor), None),
            )
            self._highlights["response", 0].append(mark)
        return VerdictView(
            number=number,
            text=verdict.text,
            ok=verdict.ok,
            kind=shown,
            word=word,
            reason=reason,
            suspicion=self._suspicion(verdict) if verdict.suspicious else None,
            marked=marked,
            evidence=evidence,
            near_miss=near_miss,
        )

    def _suspicion(self, verdict: Verdict) -> str:
        """Return what a reader has to check: what of a supported claim is not in the sentences cited for it."""
        from pytest_ragmetrics.metrics.verdicts import EvidenceCheck

        check = EvidenceCheck(self._sample.get("retrieved_contexts") or (), self._sample.get("user_input"))
        cited = [piece.text for piece in verdict.evidence] if len(verdict.text) <= _CLAIM_LENGTH else []
        if cited and (lacking := list(check.missing(verdict.text, cited))):
            return f"suspicious: the evidence lacks {', '.join(lacking[:_LACKING])}"
        if cited and check.shares_hardly_a_word(verdict.text, cited):
            return "suspicious: the evidence shares too few words with it"
        return "suspicious: the evidence does not bear it out"

    def _place(
        self, piece: Evidence | Nearest, kind: HighlightKind, number: int, *, anchor: str, link: str
    ) -> EvidencePlace:
        field = self._field_of(piece)
        label = f"{_CONTEXT_FIELDS[field or 'retrieved_contexts']}[{piece.context}][{piece.start}:{piece.end}]"
        if field is None:
            return EvidencePlace(label=label, text=piece.text, anchor=None)
        mark = Highlight(start=piece.start, end=piece.end, kind=kind, number=number, anchor=anchor, link=link)
        self._highlights[field, piece.context].append(mark)
        return EvidencePlace(label=label, text=piece.text, anchor=anchor)

    def _field_of(self, piece: Evidence | Nearest) -> str | None:
        """Return the field whose context has this text in this range: a highlight elsewhere would be wrong."""
        for name in _CONTEXT_FIELDS:
            texts = self._sample.get(name) or ()
            text = texts[piece.context] if 0 <= piece.context < len(texts) else ""
            if fits(piece.start, piece.end, text) and text[piece.start : piece.end].split() == piece.text.split():
                return name
        return None

    def _near_miss(self, number: int, nearest: Nearest, said: str, link: str) -> NearMiss:
        return NearMiss(
            place=self._place(nearest, "nearest", number, anchor=f"n{number}", link=link),
            similarity=similarity_text(nearest.similarity),
            said=tuple(_diff_words(nearest.changes, "said", said)),
            source=tuple(_diff_words(nearest.changes, "source", nearest.text)),
        )

    def _contexts(self, name: str, *, opened: bool) -> tuple[ContextView, ...]:
        ids = self._sample.get(_IDS[name]) or ()
        return tuple(
            self._context(name, index, text, str(ids[index]) if index < len(ids) else None, opened=opened)
            for index, text in enumerate(self._sample[name])
        )

    def _context(self, name: str, index: int, text: str, source: str | None, *, opened: bool) -> ContextView:
        highlights = self._highlights.get((name, index), [])
        kinds: tuple[HighlightKind, ...] = ("evidence", "against", "nearest")
        return ContextView(
            label=f"{_CONTEXT_FIELDS[name]}[{index}]",
            anchor=f"{name[:3]}{index}",
            source=None if source is None else shortened(source, _SOURCE_LENGTH),
            length=len(text),
            preview=" ".join(text[: _PREVIEW_LENGTH * 2].split())[:_PREVIEW_LENGTH],
            segments=fold(cut(text, highlights)),
            verdicts={kind: sorted({mark.number for mark in highlights if mark.kind == kind}) for kind in kinds},
            opened=opened or bool(highlights),
        )

    def _rest(self) -> Iterator[tuple[str, str]]:
        sample = self._sample
        # The ids of contexts are shown beside them, unless there are more.
        beside = {ids for name, ids in _IDS.items() if len(sample.get(ids) or ()) <= len(sample.get(name) or ())}
        for name in sorted(sample.keys() - _SHOWN_FIELDS - beside - {"metadata"}):
            value = sample[name]
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        metadata = sample.get("metadata") or {}
        for name in sorted(metadata):
            value = "" if metadata[name] is None else metadata[name]
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _diff_words(
    changes: Sequence[WordChange], side: Literal["said", "source"], text: str
) -> Iterator[tuple[str, bool]]:
    """Yield one side of a difference, with what is between its words in the text that they are from."""
    end, begun = 0, False
    for change in changes:
        word = change.said if side == "said" else change.source
        if not word:
            continue
        start = text.find(word, end, end + len(word) + _GAP)
        if start < 0 or _has_words(text[end:start]):
            # The words were folded before they were compared: how far they were apart is not known.
            gap = " " if begun else ""
        else:
            gap, end = text[end:start], start + len(word)
        if gap:
            yield gap, False
        yield word, change.kind != "same"
        begun = True
    if begun and text[end:] and not _has_words(text[end:]):
        yield text[end:], False


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _asked(usage: Usage) -> str:
    """Return whether the judge was asked in this run, and what that took."""
    text = usage_text(usage)
    if not text:
        return ""
    is_live = bool(usage.calls or usage.embedding_tokens)
    kind = "partly cached" if is_live and usage.cached_calls else "live" if is_live else "cached"
    return f"{kind}: {text}"


def _labels(record: Record) -> Iterator[str]:
    if record.vacuous and record.score is not None:
        yield f"vacuous: scored {score_text(record.score)}"
    if suspicious := sum(verdict.suspicious for verdict in record.verdicts):
        yield counted(suspicious, "suspicious verdict")
    if record.disagreements:
        yield "the judges are not unanimous"
    if flips(record.samples, record.threshold):
        yield "flaky: the votes lie on both sides of the threshold"
    if "heuristic" in (record.judge or ""):
        yield "scored by a heuristic"


def build_votes_view(record: Record) -> VotesView | None:
    """Return the votes of a record, or ``None`` where there were not several."""
    votes, threshold = record.samples, record.threshold
    if len(votes) <= 1:
        return None
    bound = threshold.bound if threshold else None
    short = [threshold is not None and not is_met(vote, threshold) for vote in votes]
    below = f"; {sum(short)} of {len(votes)} fell short" if threshold else ""
    return VotesView(
        votes=tuple(zip(votes, short, strict=True)),
        bound=bound,
        scale=Scale.around(votes if bound is None else [*votes, bound]),
        text=f"{counted(len(votes), 'vote')}: {', '.join(score_text(vote, bound) for vote in votes)}{below}",
    )


def change_note(change: TestChange) -> ChangeNote:
    """Return how a score compares with the baseline."""
    text, kind = change_text(change)
    return ChangeNote(metric=change.metric, text=text, kind=kind.replace(" ", "-"))
