"""The highlights of a text: ranges that verdicts belong to, the pieces that they cut a text into, and what is folded.

Several scores may have highlights in one text; a piece knows how it looks for each of them, and the page shows those of
one score at a time. All offsets are code points of the original texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Literal, get_args

#: What a highlight says of its text, of a score that fell short (``missing``) or did not (``missed``); where several of
#: one score overlap, the first of these shows.
HighlightKind = Literal["missing", "missed", "found", "uncounted", "against", "evidence", "nearest"]
#: Those of verdicts that are not ok.
_WRONG: tuple[HighlightKind, ...] = ("missing", "missed", "against", "nearest")
_PRECEDENCE: Mapping[HighlightKind, int] = {kind: place for place, kind in enumerate(get_args(HighlightKind))}

#: A stretch is folded when this many characters of it would be hidden.
_HIDDEN_MIN = 160
#: How many characters of the beginning and the end of a highlight are shown however long it is.
_HIGHLIGHT_ENDS = (1500, 500)
#: How far to look for white space, so as not to cut a word.
_REACH = 40
_SPACE = re.compile(r"\s")


@dataclass(frozen=True, kw_only=True, slots=True)
class Highlight:
    """A range of a text and the verdict it belongs to: ``number`` of a score, ``None`` where it says nothing more.

    ``score`` is the place of the score in the sample, ``anchor`` the id of the highlight within the sample; its number
    links to ``link``, the other place of the same verdict.
    """

    start: int
    end: int
    kind: HighlightKind
    number: int | None = None
    score: int = 0
    anchor: str = ""
    link: str = ""

    @property
    def verdict(self) -> str:
        """The score and the number of the verdict, the same in all its places."""
        return f"{self.score}.{self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A piece of a text under one set of highlights; ``closes`` are those that end with it."""

    text: str
    marks: tuple[Highlight, ...] = ()
    closes: tuple[Highlight, ...] = ()

    @property
    def looks(self) -> Mapping[int, HighlightKind]:
        """How the piece looks, by the score whose highlights are shown."""
        looks: dict[int, HighlightKind] = {}
        for mark in sorted(self.marks, key=lambda mark: _PRECEDENCE[mark.kind]):
            looks.setdefault(mark.score, mark.kind)
        return looks

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdicts that have more to say of the piece."""
        return tuple(mark.verdict for mark in self.marks if mark.number is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Pieces of a text that follow each other; ``folded`` ones are hidden until they are opened."""

    pieces: tuple[Segment, ...]
    folded: bool = False

    @property
    def length(self) -> int:
        """The number of its characters."""
        return sum(len(piece.text) for piece in self.pieces)


def cut(text: str, highlights: Iterable[Highlight] = (), edges: Iterable[int] = ()) -> tuple[Segment, ...]:
    """Return the pieces of a text in order; joined they are the text. Highlights that do not fit in it are left out.

    Overlapping highlights need no nesting: each piece has all that cover it. The text is also cut at the ``edges``.

    >>> pieces = cut("so it is", [Highlight(start=3, end=5, kind="found", number=1)])
    >>> [(piece.text, [mark.number for mark in piece.marks]) for piece in pieces]
    [('so ', []), ('it', [1]), (' is', [])]
    """
    fitting = sorted((mark for mark in highlights if fits(mark.start, mark.end, text)), key=attrgetter("start"))
    places = sorted({0, len(text), *edges, *(mark.start for mark in fitting), *(mark.end for mark in fitting)})
    waiting = fitting[::-1]
    current: list[Highlight] = []
    segments = []
    for start, end in pairwise(places):
        while waiting and waiting[-1].start == start:
            current.append(waiting.pop())
        closes = tuple(mark for mark in current if mark.end == end)
        segments.append(Segment(text=text[start:end], marks=tuple(current), closes=closes))
        current = [mark for mark in current if mark.end > end]
    return tuple(segments)


def fits(start: int | None, end: int | None, text: str) -> bool:
    """Return whether a range is one of this text, and not empty."""
    return start is not None and end is not None and 0 <= start < end <= len(text)


def fold(text: str, highlights: Iterable[Highlight] = (), *, near: int = 120, head: int = 2000) -> tuple[Stretch, ...]:
    """Return a text with its long parts folded, so that the highlights are in sight; joined they are the text.

    ``near`` characters next to a highlight are shown, of a text without any the first ``head``. Where there are such,
    only numbered highlights count, and of these those that are not ok. A highlight is folded only where it is too long
    to be read whole.

    >>> text = "word " * 400 + "found" + " word" * 400
    >>> [part.folded for part in fold(text, [Highlight(start=2000, end=2005, kind="found", number=1)])]
    [True, False, True]
    """
    marks = [mark for mark in highlights if fits(mark.start, mark.end, text)]
    counted = [mark for mark in marks if mark.number is not None] or marks
    hidden = list(_hidden(text, [mark for mark in counted if mark.kind in _WRONG] or counted, near, head))
    edges = {0, len(text), *(edge for gap in hidden for edge in gap)}
    begins = {start for start, _ in hidden}
    stretches: list[Stretch] = []
    pieces: list[Segment] = []
    start = at = 0
    for piece in cut(text, marks, edges):
        pieces.append(piece)
        at += len(piece.text)
        if at in edges:
            stretches.append(Stretch(pieces=tuple(pieces), folded=start in begins))
            start, pieces = at, []
    return tuple(stretches)


def _hidden(text: str, marks: Iterable[Highlight], near: int, head: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges that are not near a highlight and long enough to be folded."""
    sights = sorted(sight for mark in marks for sight in _sights(mark, near)) or [(0, head)]
    at = 0
    for start, end in (*sights, (len(text), len(text))):
        if start - at >= _HIDDEN_MIN:
            # Neither end cuts a word, if there is white space near it.
            first = max((space.start() for space in _SPACE.finditer(text, max(at - _REACH, 0), at + 1)), default=at)
            second = next((space.end() for space in _SPACE.finditer(text, start, start + _REACH)), start)
            yield (first if at else 0), (second if start < len(text) else start)
        at = max(at, end)


def _sights(mark: Highlight, near: int) -> Iterator[tuple[int, int]]:
    head, tail = _HIGHLIGHT_ENDS
    if mark.end - mark.start < head + tail + _HIDDEN_MIN:
        yield mark.start - near, mark.end + near
    else:
        yield mark.start - near, mark.start + head
        yield mark.end - tail, mark.end + near
