"""Texts cut into pieces where marks begin and end, so that overlapping marks need no nesting.

All offsets are code points of the original text; a piece's text is cut from it before anything else is done to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

#: What a mark says of its text; where several lie over one another, the first of these shows.
MarkKind = Literal["missing", "found", "against", "evidence", "nearest"]
_STRENGTH: dict[MarkKind, int] = {"missing": 0, "found": 1, "against": 2, "evidence": 3, "nearest": 4}

#: A stretch without marks is folded when this much of it would be hidden.
_HIDDEN_MIN = 400
#: How much of the beginning and the end of a mark stays in sight whatever its length.
_MARK_ENDS = (1500, 500)
#: How far to look for white space, so as not to cut a word.
_REACH = 40
_SPACE = re.compile(r"\s")


@dataclass(frozen=True, kw_only=True, slots=True)
class Highlight:
    """A marked range of a text: what it says, and the number of the verdict it belongs to."""

    start: int
    end: int
    kind: MarkKind
    number: int
    piece: int = 0

    @property
    def anchor(self) -> str:
        """Its name among the marks of the same sample."""
        letter = {"missing": "m", "found": "m", "against": "e", "evidence": "e", "nearest": "n"}[self.kind]
        return f"{letter}{self.number}" if letter != "e" else f"e{self.number}.{self.piece}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A piece of a text under one set of marks; ``opens`` and ``closes`` are those that begin and end with it.

    ``mark`` is the strongest of them. A ``folded`` piece is long and hidden until asked for.
    """

    text: str
    marks: tuple[Highlight, ...] = ()
    opens: tuple[Highlight, ...] = ()
    closes: tuple[Highlight, ...] = ()
    folded: bool = False

    @property
    def mark(self) -> Highlight | None:
        """The mark that decides how the piece looks, or nothing."""
        return min(self.marks, key=lambda mark: _STRENGTH[mark.kind], default=None)


def cut(text: str, marks: Iterable[Highlight] = ()) -> tuple[Segment, ...]:
    """Return the pieces of a text in order; joined they are the text. Marks that do not fit in it are left out.

    >>> pieces = cut("so it is", [Highlight(start=3, end=5, kind="found", number=1)])
    >>> [(piece.text, [mark.number for mark in piece.marks]) for piece in pieces]
    [('so ', []), ('it', [1]), (' is', [])]
    """
    fitting = sorted((mark for mark in marks if fits(mark.start, mark.end, text)), key=_order)
    edges = sorted({0, len(text), *(mark.start for mark in fitting), *(mark.end for mark in fitting)})
    waiting = fitting[::-1]
    open_marks: list[Highlight] = []
    segments = []
    for start, end in pairwise(edges):
        while waiting and waiting[-1].start == start:
            open_marks.append(waiting.pop())
        segments.append(_segment(text, start, end, open_marks))
        open_marks = [mark for mark in open_marks if mark.end > end]
    return tuple(segments)


def fits(start: int | None, end: int | None, text: str) -> bool:
    """Return whether a range is one of this text, and not empty."""
    return start is not None and end is not None and 0 <= start < end <= len(text)


def _order(mark: Highlight) -> tuple[int, int, int]:
    return mark.start, mark.number, mark.piece


def _segment(text: str, start: int, end: int, marks: Sequence[Highlight]) -> Segment:
    return Segment(
        text=text[start:end],
        marks=tuple(marks),
        opens=tuple(mark for mark in marks if mark.start == start),
        closes=tuple(mark for mark in marks if mark.end == end),
    )


def fold(segments: Sequence[Segment], *, near: int = 200, head: int = 2000) -> tuple[Segment, ...]:
    """Return the pieces with the middle of every long one folded, so that the marks are in sight.

    ``near`` characters stay in sight next to a mark; of a text without marks, the first ``head`` do. A mark is
    folded only if nobody would read all of it.

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
        head, tail = _MARK_ENDS
    if len(text) < head + tail + _HIDDEN_MIN:
        yield segment
        return
    first = _space_before(text, head) if head else 0
    second = _space_after(text, len(text) - tail) if tail else len(text)
    if first > 0:
        yield Segment(text=text[:first], marks=segment.marks, opens=segment.opens)
    yield Segment(text=text[first:second], marks=segment.marks, folded=True)
    if second < len(text):
        yield Segment(text=text[second:], marks=segment.marks, closes=segment.closes)


def _space_before(text: str, index: int) -> int:
    for position in range(index, max(index - _REACH, 0), -1):
        if _SPACE.match(text, position):
            return position
    return index


def _space_after(text: str, index: int) -> int:
    found = _SPACE.search(text, index, min(index + _REACH, len(text)))
    return found.end() if found else index
