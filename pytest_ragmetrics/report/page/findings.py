"""A verdict laid out for reading: what was judged, where its evidence stands, and what came closest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_ragmetrics.explain.phrases import similarity_text
from pytest_ragmetrics.report.page.segments import fits
from pytest_ragmetrics.result import Evidence, Nearest, Verdict, WordChange

#: The fields of a sample that hold contexts, and how failure texts call them.
CONTEXT_FIELDS = {"retrieved_contexts": "contexts", "reference_contexts": "reference_contexts"}

#: A reason that begins with "found" or "not found" and is no longer than this says it better than the word alone.
_WORD_LENGTH = 80
#: How many of the words that evidence lacks are named.
_MISSING = 5
#: A claim longer than this is none, and is not taken apart.
_CLAIM_LENGTH = 2000
#: How much may stand between two words of a difference.
_GAP = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidencePlace:
    """A range of a context: how failure texts write it, what stands there, and its mark if it could be set."""

    label: str
    text: str
    anchor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffWord:
    """One step of a difference, from one side; ``differs`` when the other side has something else there."""

    text: str
    differs: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class NearMiss:
    """The closest passage to what was not found, and both texts word by word."""

    place: EvidencePlace
    similarity: str
    said: tuple[DiffWord, ...]
    source: tuple[DiffWord, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictView:
    """A verdict with its number; ``goal`` is the mark that a reader of the response wants to see next."""

    number: int
    text: str
    ok: bool
    word: str
    reason: str | None
    suspicion: str | None
    marked: bool
    evidence: tuple[EvidencePlace, ...]
    near_miss: NearMiss | None

    @property
    def goal(self) -> str | None:
        """The anchor of its first evidence, or else of its nearest passage."""
        places = [*self.evidence, *([self.near_miss.place] if self.near_miss else [])]
        return next((place.anchor for place in places if place.anchor), None)


def home_of(sample: Mapping[str, Any], row: Evidence | Nearest) -> str | None:
    """Return the field whose context has this text in this range; a mark elsewhere would be a lie."""
    for name in CONTEXT_FIELDS:
        texts = sample.get(name) or ()
        if 0 <= row.context < len(texts) and _reads(texts[row.context], row):
            return name
    return None


def _reads(text: str, row: Evidence | Nearest) -> bool:
    start, end = row.start, row.end
    return fits(start, end, text) and text[start:end].split() == row.text.split()


def find(number: int, verdict: Verdict, sample: Mapping[str, Any], words: tuple[str, str]) -> VerdictView:
    """Return a verdict on this sample as finding number ``number``; ``words`` say ok and not ok."""
    nearest, response = verdict.nearest, sample.get("response")
    word, reason = words[0] if verdict.ok else words[1], verdict.reason
    if reason and reason.startswith(word) and len(reason) <= _WORD_LENGTH:
        word, reason = reason, None
    return VerdictView(
        number=number,
        text=verdict.text,
        ok=verdict.ok,
        word=word,
        reason=reason,
        suspicion=_suspicion(verdict) if verdict.suspicious else None,
        marked=isinstance(response, str) and fits(verdict.start, verdict.end, response),
        evidence=tuple(_place(row, sample, f"e{number}.{piece}") for piece, row in enumerate(verdict.evidence)),
        near_miss=None if nearest is None else _near_miss(nearest, verdict.text, sample, f"n{number}"),
    )


def _suspicion(verdict: Verdict) -> str:
    """Return what a reader has to look at: what the judge called supported, and the sentences it cites do not say."""
    from pytest_ragmetrics.metrics.verdicts import missing_from

    cited = [row.text for row in verdict.evidence] if len(verdict.text) <= _CLAIM_LENGTH else []
    if cited and (missing := list(missing_from(verdict.text, cited))):
        return f"suspicious: the evidence lacks {', '.join(missing[:_MISSING])}"
    return "suspicious: the evidence does not bear it out"


def _place(row: Evidence | Nearest, sample: Mapping[str, Any], anchor: str) -> EvidencePlace:
    home = home_of(sample, row)
    label = f"{CONTEXT_FIELDS[home or 'retrieved_contexts']}[{row.context}][{row.start}:{row.end}]"
    return EvidencePlace(label=label, text=row.text, anchor=anchor if home else None)


def _near_miss(row: Nearest, said: str, sample: Mapping[str, Any], anchor: str) -> NearMiss:
    return NearMiss(
        place=_place(row, sample, anchor),
        similarity=similarity_text(row.similarity),
        said=tuple(_words(row.changes, "said", said)),
        source=tuple(_words(row.changes, "source", row.text)),
    )


def _words(changes: Sequence[WordChange], side: Literal["said", "source"], text: str) -> Iterator[DiffWord]:
    """Yield one side of a difference, with what stands between its words in the text that they are from."""
    end, begun = 0, False
    for change in changes:
        word = change.said if side == "said" else change.source
        if not word:
            continue
        start = text.find(word, end, end + len(word) + _GAP)
        if start < 0 or _has_words(text[end:start]):
            # Not as it stands in the text: how far the words were apart is not known.
            gap = " " if begun else ""
        else:
            gap, end = text[end:start], start + len(word)
        if gap:
            yield DiffWord(text=gap, differs=False)
        yield DiffWord(text=word, differs=change.kind != "same")
        begun = True
    if begun and text[end:] and not _has_words(text[end:]):
        yield DiffWord(text=text[end:], differs=False)


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)
