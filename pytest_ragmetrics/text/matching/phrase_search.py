"""Finding an edited quotation: its phrases in order, each with its pieces close together, in one context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_ragmetrics.text.matching.boundaries import stands_alone
from pytest_ragmetrics.text.matching.comparison import Comparison, Piece
from pytest_ragmetrics.text.matching.editorial import Edited, Gap, Phrase
from pytest_ragmetrics.text.matching.haystack import Haystack, Passage
from pytest_ragmetrics.text.matching.licence import is_licensed, is_negation
from pytest_ragmetrics.text.tolerances import Tolerance
from pytest_ragmetrics.text.words import count_words

#: How many bytes of the squeezed text may lie in a gap, and what that means in the text itself.
_WIDTHS = {Gap.CLOSED: 0, Gap.BRACKET: 160, Gap.NEAR: 160}
_MOST_WORDS_IN_BRACKET = 5
_LONGEST_NEGATION = 20
# Places tried for one quotation; only texts made for it have more.
_STEPS, _STEPS_A_PIECE = 1000, 4
_MOST_LOOKED_UP = 32


class Found(NamedTuple):
    """Where a quotation stands, piece by piece, and what had to be overlooked."""

    passages: tuple[Passage, ...]
    needed: Tolerance


class _Placed(NamedTuple):
    """A piece at a place: its position in the squeezed text and its passage."""

    start: int
    end: int
    passage: Passage
    needed: Tolerance


class PhraseSearch:
    """One search for one edited quotation; takes a bounded number of steps, however often its pieces occur."""

    def __init__(self, haystack: Haystack, comparison: Comparison) -> None:
        self._haystack = haystack
        self._comparison = comparison
        self._steps = 0

    def find(self, edited: Edited) -> Found | None:
        """Return where the phrases stand in order inside one context."""
        self._steps = _STEPS + _STEPS_A_PIECE * sum(len(phrase.pieces) for phrase in edited.phrases)
        keys = sorted({piece.key for phrase in edited.phrases for piece in phrase.pieces}, key=len, reverse=True)
        if any(self._haystack.find(key) < 0 for key in keys[:_MOST_LOOKED_UP]):
            return None
        position = self._haystack.find(keys[0])
        while position >= 0 and self._steps > 0:
            start, end = self._haystack.bounds(self._haystack.context_at(position))
            if placed := self._find_in(edited, start, end):
                needed = Tolerance.EXACT
                for piece in placed:
                    needed |= piece.needed
                return Found(tuple(piece.passage for piece in placed), needed)
            position = self._haystack.find(keys[0], end)
        return None

    def _find_in(self, edited: Edited, start: int, end: int) -> list[_Placed]:
        placed: list[_Placed] = []
        for phrase in edited.phrases:
            pieces = self._find_phrase(phrase, start, end)
            if not pieces or (placed and self._drops_negation(placed[-1].passage, pieces[0].passage)):
                return []
            placed += pieces
            start = pieces[-1].end
        return placed

    def _find_phrase(self, phrase: Phrase, start: int, end: int) -> list[_Placed]:
        anchor = max(range(len(phrase.pieces)), key=lambda index: len(phrase.pieces[index].key))
        for position in self._haystack.occurrences(phrase.pieces[anchor].key, start, end):
            if self._steps <= 0:
                return []
            here = self._place(phrase.pieces[anchor], position)
            if here is None:
                continue
            before = self._extend_left(phrase, anchor, here, start)
            if before is None:
                continue
            after = self._extend_right(phrase, anchor, here, end)
            if after is not None:
                return [*before, here, *after]
        return []

    def _extend_right(self, phrase: Phrase, anchor: int, here: _Placed, end: int) -> list[_Placed] | None:
        placed: list[_Placed] = []
        for piece, gap in zip(phrase.pieces[anchor + 1 :], phrase.gaps[anchor:], strict=True):
            limit = min(here.end + _WIDTHS[gap] + len(piece.key), end)
            positions = self._haystack.occurrences(piece.key, here.end, limit)
            found = self._first(piece, positions, gap, before=here)
            if found is None:
                return None
            placed.append(found)
            here = found
        return placed

    def _extend_left(self, phrase: Phrase, anchor: int, here: _Placed, start: int) -> list[_Placed] | None:
        placed: list[_Placed] = []
        for piece, gap in zip(phrase.pieces[:anchor][::-1], phrase.gaps[:anchor][::-1], strict=True):
            low = max(here.start - _WIDTHS[gap] - len(piece.key), start)
            positions = reversed(list(self._haystack.occurrences(piece.key, low, here.start)))
            found = self._first(piece, positions, gap, after=here)
            if found is None:
                return None
            placed.insert(0, found)
            here = found
        return placed

    def _first(
        self,
        piece: Piece,
        positions: Iterator[int],
        gap: Gap,
        *,
        before: _Placed | None = None,
        after: _Placed | None = None,
    ) -> _Placed | None:
        for position in positions:
            if self._steps <= 0:
                return None
            found = self._place(piece, position)
            if found is not None and self._bridges(gap, before or found, after or found):
                return found
        return None

    def _place(self, piece: Piece, position: int) -> _Placed | None:
        self._steps -= 1
        passage = self._haystack.passage(position, position + len(piece.key))
        text = self._haystack.text(passage.context)
        if not stands_alone(text, passage.start - piece.sign, passage.end):
            return None
        needed = self._comparison.part(piece, text, passage.start, passage.end)
        if needed is None:
            return None
        return _Placed(position, position + len(piece.key), passage, needed)

    def _bridges(self, gap: Gap, left: _Placed, right: _Placed) -> bool:
        if gap is Gap.NEAR:
            return not self._drops_negation(left.passage, right.passage)
        if gap is Gap.CLOSED:
            return True
        between = self._between(left.passage, right.passage)
        return count_words(between) <= _MOST_WORDS_IN_BRACKET and is_licensed(between)

    def _drops_negation(self, left: Passage, right: Passage) -> bool:
        """Tell whether an ellipsis leaves out a negation and nothing else, which turns the sentence round."""
        between = self._between(left, right)
        return len(between) <= _LONGEST_NEGATION and count_words(between) <= 1 and is_negation(between)

    def _between(self, left: Passage, right: Passage) -> str:
        return self._haystack.text(left.context)[left.end : right.start]
