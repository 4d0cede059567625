"""One sample with everything that was decided about it, as the page shows it: scores, verdicts, highlighted texts.

Made from the records of one test; ``templates/test.html.jinja`` renders it. The scores of a sample come worst first;
the verdicts of each are numbered, those that are not ok first, so that number n is one verdict in the response, in the
list and in the contexts. All offsets are code points of the original texts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from pytest_ragmetrics.core.result import Evidence, Nearest, Usage, Verdict, WordChange
from pytest_ragmetrics.core.sample import Sample, Turn, read_turns, turn_of
from pytest_ragmetrics.metrics.conversations import earlier_texts, turns_of
from pytest_ragmetrics.metrics.verdicts import EvidenceCheck
from pytest_ragmetrics.report.highlights import Highlight, HighlightKind, Stretch, fits, fold
from pytest_ragmetrics.runs.compare import TestChange
from pytest_ragmetrics.runs.records import Record, flips, is_met
from pytest_ragmetrics.runs.wording.figures import counted, score_text, usage_text
from pytest_ragmetrics.runs.wording.runs import badness
from pytest_ragmetrics.text.unicode import shortened
from pytest_ragmetrics.text.words import telling_words

#: The fields of a sample that hold contexts, and their names in failure texts.
_CONTEXT_FIELDS = {"retrieved_contexts": "contexts", "reference_contexts": "reference_contexts"}
#: The fields with the ids of contexts, by the field with the contexts.
_IDS = {name: name.replace("contexts", "context_ids") for name in _CONTEXT_FIELDS}
_TITLES = {"retrieved_contexts": "Contexts", "reference_contexts": "Reference contexts"}
_SHOWN_FIELDS = {"user_input", "response", "reference", *_CONTEXT_FIELDS}

#: A response is there to be read as a whole: only a long one is folded, to what is near its faults.
_RESPONSE_NEAR, _RESPONSE_HEAD = 300, 2400
_LONG_RESPONSE = 1000
#: How much of a context without a highlight is shown at first.
_CONTEXT_HEAD = 600
_PREVIEW_LENGTH = 160
#: How many characters of the response the list shows before the first that is not ok.
_BEFORE = 50
_SOURCE_LENGTH = 100
#: A reason that begins with the word for its verdict and is no longer than this replaces the word.
_WORD_LENGTH = 80
#: How many of the words that evidence lacks are named.
_LACKING = 5
#: A longer text is no claim, and is not searched for names and numbers.
_CLAIM_LENGTH = 2000
#: How many characters may be between two words of a difference.
_GAP = 50
#: A metric judges word by word if at least this share of its verdicts are on single words, and these are not so few.
_MOSTLY, _FEW = 0.8, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidencePlace:
    """A range of a context: as failure texts write it, its text, and its highlight's anchor if it could be set."""

    label: str
    text: str
    anchor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictView:
    """A verdict with its number; ``marked`` when it is highlighted in the response, ``kind`` is how it looks.

    ``id`` is the same in all its places, ``word`` what the verdict says in a word or two, ``turn`` the anchor of the
    turn that it is about. ``nearest`` is the place of the closest passage, ``said`` and ``source`` are both texts in
    steps, each with whether the other differs there.
    """

    id: str
    number: int
    verdict: Verdict
    kind: HighlightKind
    word: str
    reason: str | None
    turn: str | None
    suspicion: str
    marked: bool
    evidence: tuple[EvidencePlace, ...]
    nearest: EvidencePlace | None
    said: tuple[tuple[str, bool], ...]
    source: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreView:
    """One record of a sample, its change since the baseline, its verdicts that are not ok and the others.

    ``words`` are those that are not ok of a metric that judges word by word; it has no ``findings``.
    """

    number: int
    record: Record
    change: TestChange | None
    findings: tuple[VerdictView, ...]
    others: tuple[VerdictView, ...]
    words: tuple[str, ...]

    @property
    def before(self) -> float | None:
        """The score in the baseline, if it had something to check there."""
        return self.change.before if self.change else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextView:
    """One context; ``touched`` are the scores with a finding that points to it."""

    field: str
    label: str
    anchor: str
    source: str | None
    length: int
    preview: str
    stretches: tuple[Stretch, ...]
    touched: tuple[int, ...]
    opened: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SpokenView:
    """A message of a conversation, what it calls or attaches, and the anchor of the turn that begins with it."""

    role: str
    beside: str
    stretches: tuple[Stretch, ...]
    turn: int
    anchor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleView:
    """A sample and everything that was decided about it; a text that is not set is ``None``.

    ``sources`` are the lists of contexts that are set, each with its title; ``rest`` are ids and metadata, ``values``
    the same as JSON. Scores come the worst first, and the highlights of the first are shown. Of a conversation,
    ``turn`` is the number of the turn that the sample is, ``earlier`` are the contexts of those before it; ``spoken``
    is all of it, where the sample is the whole.
    """

    question: str | None
    response: tuple[Stretch, ...] | None
    reference: str | None
    sources: tuple[tuple[str, tuple[ContextView, ...]], ...]
    rest: tuple[tuple[str, str], ...]
    values: str
    scores: tuple[ScoreView, ...]
    turn: int | None = None
    earlier: tuple[ContextView, ...] = ()
    spoken: tuple[SpokenView, ...] = ()


def build_sample_views(
    records: Sequence[Record], changes: Mapping[int, TestChange] | None = None
) -> tuple[SampleView, ...]:
    """Return the samples of a test with their records; records on the same response share one.

    Turns of a conversation are in their order, whichever was scored first.
    ``changes`` are those against the baseline, by the identity of the record.
    """
    groups: list[tuple[dict[str, Any], list[tuple[Record, TestChange | None]]]] = []
    latest: dict[str | None, int] = {}
    for record in records:
        scored = record, (changes or {}).get(id(record))
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
    firsts: dict[object, int] = {}

    def place(numbered: tuple[int, Any]) -> tuple[int, int]:
        number, (_, ((record, _), *_)) = numbered
        turn = turn_of(record.sample)
        if not isinstance(turn, int):
            return number, 0
        return firsts.setdefault(record.sample.metadata["conversation"], number), turn

    groups = [group for _, group in sorted(enumerate(groups), key=place)]
    return tuple(_SampleBuilder(sample).build(scored) for sample, scored in groups)


class _SampleBuilder:
    """Builds the view of one sample; building its verdicts collects the highlights of its texts."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self._sample = sample
        #: By field and number of the text in it.
        self._highlights: dict[tuple[str, int], list[Highlight]] = defaultdict(list)
        self._turn: int | str | None = None
        #: Of a conversation the turns, where the sample is the whole, and the texts that evidence of a turn has a
        #: place in, by turn and place: messages of the whole, else contexts of earlier turns.
        self._turns: tuple[Turn, ...] = ()
        self._texts: dict[tuple[int, int], str] = {}
        if (sample.get("metadata") or {}).get("messages") is not None:
            self._read_turns(Sample(**sample))

    def _read_turns(self, sample: Sample) -> None:
        turn = turn_of(sample)
        self._turn = turn if isinstance(turn, int) or turn == "all" else None
        # The messages may have been objects of a library, of which a record has the text alone.
        with suppress(TypeError, ValueError, IndexError):
            if self._turn != "all":
                earlier = (it for it in earlier_texts(sample) if it.origin == "contexts")
                self._texts = {(it.turn, it.place): it.text for it in earlier}
                return
            self._turns = read_turns(sample)
        spoken = ((turn.number, place, said) for turn in self._turns for place, said in enumerate(turn.said))
        self._texts = {(turn, place): said.message.text for turn, place, said in spoken}

    def build(self, scored: Sequence[tuple[Record, TestChange | None]]) -> SampleView:
        worst_first = sorted(scored, key=lambda pair: badness(pair[0]))
        scores = [self._score(number, record, change) for number, (record, change) in enumerate(worst_first)]
        # Where a score is bad and no verdict points anywhere, the contexts have to be read.
        wrong = any(record.outcome in ("failed", "unscored") for record, _ in scored)
        unclear = wrong and not any(field in _CONTEXT_FIELDS for field, _ in self._highlights)
        response = self._sample.get("response")
        marks = self._highlights["response", 0]
        near = _RESPONSE_NEAR if response and len(response) > _LONG_RESPONSE else _LONG_RESPONSE
        shown = _SHOWN_FIELDS - ({"user_input", "response"} if self._turns else set())
        kept = {name: it for name, it in self._sample.items() if name not in shown and it is not None}
        return SampleView(
            question=None if self._turns else self._sample.get("user_input"),
            response=None if self._turns or response is None else fold(response, marks, near=near, head=_RESPONSE_HEAD),
            reference=self._sample.get("reference"),
            sources=tuple(
                (title, tuple(self._contexts(name, opened=unclear and name == "retrieved_contexts")))
                for name, title in _TITLES.items()
                if self._sample.get(name) is not None
            ),
            rest=tuple(self._rest()),
            values=json.dumps(kept, ensure_ascii=False, sort_keys=True),
            scores=tuple(scores),
            turn=self._turn if isinstance(self._turn, int) else None,
            earlier=() if self._turns else tuple(self._earlier()),
            spoken=tuple(self._spoken()),
        )

    def _score(self, number: int, record: Record, change: TestChange | None) -> ScoreView:
        by_word = _is_by_word(record)
        verdicts = [] if by_word else self._verdicts(number, record)
        return ScoreView(
            number=number,
            record=record,
            change=change,
            findings=tuple(it for it in verdicts if not it.verdict.ok),
            others=tuple(it for it in verdicts if it.verdict.ok),
            words=tuple(self._words(number, record)) if by_word else (),
        )

    def _words(self, score: int, record: Record) -> Iterator[str]:
        """Yield each word that is not ok once; all its places are highlighted."""
        response, kind = self._sample.get("response") or "", _fault(record)
        missing = [verdict for verdict in record.verdicts if not verdict.ok]
        for verdict in missing:
            if fits(verdict.start, verdict.end, response):
                mark = Highlight(start=verdict.start or 0, end=verdict.end or 0, kind=kind, score=score)
                self._highlights["response", 0].append(mark)
        yield from dict.fromkeys(verdict.text for verdict in missing)

    def _verdicts(self, score: int, record: Record) -> list[VerdictView]:
        about_texts = any(row.start is not None or row.evidence or row.nearest for row in record.verdicts)
        words = ("found", "not found") if about_texts else ("ok", "not ok")
        words = ("ok", record.complaint) if self._turns else words
        return [
            self._verdict(f"{score}.{number}", verdict, _fault(record), verdict.kind or words[not verdict.ok])
            for number, verdict in enumerate(sorted(record.verdicts, key=lambda it: it.ok), start=1)
        ]

    def _verdict(self, name: str, verdict: Verdict, fault: HighlightKind, word: str) -> VerdictView:
        response, reason = self._sample.get("response"), verdict.reason
        if reason and reason.startswith(word) and len(reason) <= _WORD_LENGTH:
            word, reason = reason, None
        start, end = verdict.start, verdict.end
        marked = response is not None and fits(start, end, response)
        link = f"m{name}" if marked else f"v{name}"
        # Evidence of a verdict that is not ok is what the response contradicts, or took its fault from.
        kind: HighlightKind = "evidence" if verdict.ok else "against"
        evidence = tuple(
            self._place(piece, kind, name, anchor=f"e{name}.{index}", link=link)
            for index, piece in enumerate(verdict.evidence)
        )
        near, said = verdict.nearest, verdict.text
        shown: HighlightKind = fault if not verdict.ok else "found" if verdict.counts else "uncounted"
        # Those that the sample shows: its own, or all of a whole conversation.
        turns: list[int | str | None] = [it.number for it in self._turns] or [self._turn]
        if marked and start is not None and end is not None:
            self._highlight("response", 0, (start, end), shown, name, anchor=f"m{name}", link=f"v{name}")
        return VerdictView(
            id=name,
            number=int(name.partition(".")[2]),
            verdict=verdict,
            kind=shown,
            word=word,
            reason=reason,
            turn=f"turn{verdict.turn}" if verdict.turn is not None and verdict.turn in turns else None,
            suspicion=self._suspicion(verdict) if verdict.suspicious else "",
            marked=marked,
            evidence=evidence,
            nearest=self._place(near, "nearest", name, anchor=f"n{name}", link=link) if near else None,
            said=tuple(_diff_words(near.changes, "said", said)) if near else (),
            source=tuple(_diff_words(near.changes, "source", near.text)) if near else (),
        )

    def _highlight(
        self, field: str, index: int, place: tuple[int, int], kind: HighlightKind, name: str, **ids: str
    ) -> None:
        score, _, number = name.partition(".")
        mark = Highlight(start=place[0], end=place[1], kind=kind, number=int(number), score=int(score), **ids)
        self._highlights[field, index].append(mark)

    def _suspicion(self, verdict: Verdict) -> str:
        """Return what a reader has to check: what of a supported claim is not in the sentences cited for it."""
        check = EvidenceCheck(self._sample.get("retrieved_contexts") or (), self._sample.get("user_input"))
        cited = [piece.text for piece in verdict.evidence] if len(verdict.text) <= _CLAIM_LENGTH else []
        if cited and (lacking := list(check.missing(verdict.text, cited))):
            return f"suspicious: the evidence lacks {', '.join(lacking[:_LACKING])}"
        if cited and check.shares_hardly_a_word(verdict.text, cited):
            return "suspicious: the evidence shares too few words with it"
        return "suspicious: the evidence does not bear it out"

    def _place(
        self, piece: Evidence | Nearest, kind: HighlightKind, name: str, *, anchor: str, link: str
    ) -> EvidencePlace:
        field = self._field_of(piece)
        if field is not None:
            self._highlight(field, piece.context, (piece.start, piece.end), kind, name, anchor=anchor, link=link)
        label = f"{_CONTEXT_FIELDS.get(field or '', 'contexts')}[{piece.context}][{piece.start}:{piece.end}]"
        turn = piece.turn if isinstance(piece, Evidence) else None
        if turn is not None:
            said = next((it.said for it in self._turns if it.number == turn), ())
            role = said[piece.context].message.role if 0 <= piece.context < len(said) else ""
            label = f"turn {turn}, {role or label}"
        return EvidencePlace(label=label, text=piece.text, anchor=anchor if field else None)

    def _field_of(self, piece: Evidence | Nearest) -> str | None:
        """Return the field whose context has this text in this range: a highlight elsewhere would be wrong."""
        turn = piece.turn if isinstance(piece, Evidence) else None
        for name in _CONTEXT_FIELDS if turn is None else (f"turn {turn}",):
            texts = self._sample.get(name) or ()
            text = texts[piece.context] if 0 <= piece.context < len(texts) else ""
            text = text if turn is None else self._texts.get((turn, piece.context), "")
            if fits(piece.start, piece.end, text) and text[piece.start : piece.end].split() == piece.text.split():
                return name
        return None

    def _earlier(self) -> Iterator[ContextView]:
        for (turn, place), text in self._texts.items():
            marks = self._highlights.get((f"turn {turn}", place), [])
            yield ContextView(
                field="",
                label=f"turn {turn}, contexts[{place}]",
                anchor=f"ear{turn}-{place}",
                source=None,
                length=len(text),
                preview=_preview(text),
                stretches=fold(text, marks, head=_CONTEXT_HEAD),
                touched=tuple(sorted({mark.score for mark in marks if mark.kind in ("against", "nearest")})),
                opened=False,
            )

    def _spoken(self) -> Iterator[SpokenView]:
        for turn in self._turns:
            for place, (message, *_) in enumerate(turn.said):
                marks = self._highlights.get((f"turn {turn.number}", place), [])
                beside = turns_of([replace(message, text="")])
                yield SpokenView(
                    role=message.role,
                    beside=beside[0].partition(": ")[2] if beside else "",
                    stretches=fold(message.text, marks, head=_RESPONSE_HEAD),
                    turn=turn.number,
                    anchor=None if place else f"turn{turn.number}",
                )

    def _contexts(self, name: str, *, opened: bool) -> Iterator[ContextView]:
        ids = self._sample.get(_IDS[name]) or ()
        for index, text in enumerate(self._sample[name]):
            highlights = self._highlights.get((name, index), [])
            touched = sorted({mark.score for mark in highlights if mark.kind in ("against", "nearest")})
            yield ContextView(
                field=name,
                label=f"{_CONTEXT_FIELDS[name]}[{index}]",
                anchor=f"{name[:3]}{index}",
                source=shortened(str(ids[index]), _SOURCE_LENGTH) if index < len(ids) else None,
                length=len(text),
                preview=_preview(text),
                stretches=fold(text, highlights, head=_CONTEXT_HEAD),
                touched=tuple(touched),
                opened=opened or 0 in touched,
            )

    def _rest(self) -> Iterator[tuple[str, str]]:
        sample = self._sample
        # The ids of contexts are shown beside them, unless there are more.
        beside = {ids for name, ids in _IDS.items() if len(sample.get(ids) or ()) <= len(sample.get(name) or ())}
        for name in sorted(sample.keys() - _SHOWN_FIELDS - beside - {"metadata"}):
            value = sample[name]
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        metadata = sample.get("metadata") or {}
        # What is shown above is not shown again.
        for name in sorted(metadata.keys() - ({"messages"} if self._turns else {"earlier_contexts"})):
            value = "" if metadata[name] is None else metadata[name]
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _preview(text: str) -> str:
    return " ".join(text[: _PREVIEW_LENGTH * 2].split())[:_PREVIEW_LENGTH]


def preview_of(sample: SampleView) -> tuple[tuple[str, HighlightKind | None], ...]:
    """Return what the list shows of a response: pieces around the first that is not ok, each with how it looks."""
    pieces = [
        (piece.text, look if (look := piece.looks.get(0)) in ("missing", "missed") else None)
        for stretch in sample.response or ()
        for piece in stretch.pieces
    ]
    text = "".join(piece for piece, _ in pieces)
    first = next((n for n, (_, look) in enumerate(pieces) if look), 0)
    start = max(0, sum(len(piece) for piece, _ in pieces[:first]) - _BEFORE)
    if start:
        start = text.find(" ", start, start + _BEFORE) + 1 or start
    end = start + _PREVIEW_LENGTH
    if end < len(text):
        end = max(text.rfind(" ", end - _BEFORE, end), end - _BEFORE)
    shown: list[tuple[str, HighlightKind | None]] = [("… ", None)] if start else []
    at = 0
    for piece, look in pieces:
        if part := piece[max(0, start - at) : max(0, end - at)]:
            shown.append((part, look))
        at += len(piece)
    return (*shown, (" …", None)) if end < len(text) else tuple(shown)


def _is_by_word(record: Record) -> bool:
    """Tell whether the verdicts that are not ok say no more than their words: most are single words, all alike."""
    verdicts = () if record.judge else record.verdicts
    wrong = [verdict for verdict in verdicts if not verdict.ok]
    of_sources = any(it.nearest or it.kind not in (None, "found earlier", "told by the user") for it in verdicts)
    if len(verdicts) < _FEW or of_sources:
        return False
    if len({it.reason for it in wrong}) > 1 or any(it.suspicious or it.evidence for it in wrong):
        return False
    texts = (verdict.text for verdict in verdicts if len(verdict.text) <= _WORD_LENGTH)
    # In scripts without spaces a word is a pair of characters.
    single = sum(len(list(telling_words(text))) <= 1 and len(text.split()) <= 1 for text in texts)
    return single >= _MOSTLY * len(verdicts)


def _fault(record: Record) -> HighlightKind:
    """Return how a verdict that is not ok looks: only what made a score fall short is certainly a fault."""
    return "missing" if record.outcome == "failed" else "missed"


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


def asked_text(usage: Usage) -> str:
    """Return whether the judge was asked in this run, and what that took."""
    text = usage_text(usage)
    is_live = bool(usage.calls or usage.embedding_tokens)
    kind = "partly cached" if is_live and usage.cached_calls else "live" if is_live else "cached"
    return f"{kind}: {text}" if text else ""


def labels_of(record: Record) -> Iterator[str]:
    """Yield what is peculiar about a score."""
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


def votes_text(record: Record) -> str:
    """Return the votes of a record in the order they were cast, and how many of them fell short."""
    votes, threshold = record.samples, record.threshold
    bound = threshold.bound if threshold else None
    short = sum(not is_met(vote, threshold) for vote in votes) if threshold else 0
    below = f"; {short} of {len(votes)} fell short" if threshold else ""
    return f"{counted(len(votes), 'vote')}: {', '.join(score_text(vote, bound) for vote in votes)}{below}"
