"""All contexts in one squeezed text: quick to search, with the way back to each original."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from pytest_ragmetrics.text.matching.gram_index import GRAM, GramIndex
from pytest_ragmetrics.text.matching.squeezing import Squeezer, squeezed_length
from pytest_ragmetrics.text.readable import Readable, has_markup
from pytest_ragmetrics.text.scripts import is_mark

#: Code points between two offsets that are known in both texts.
_BLOCK = 1024
#: Contexts of this length are looked through whole.
_SMALL = 4096
# Bytes that are passed over one character after the other.
_STEP = 16
_SEPARATOR = "\x1e"
# An index costs about as much as this many passes over the text.
_PASSES = 48
_MOST_MARKS = 32
# Pieces of a text that are looked up to find its place, and how often each is followed.
_MOST_SIGHTINGS = 64
_MOST_REPEATS = 4


class Passage(NamedTuple):
    """A piece of a context; offsets are those of the context as a reader sees it."""

    context: int
    start: int
    end: int


class _Block(NamedTuple):
    """A stretch of a context, and where in the squeezed text it starts and how long it is there."""

    context: int
    low: int
    high: int
    start: int
    length: int


class Haystack:
    """The contexts that quotations are looked for in.

    Positions are byte offsets of ``key``, the squeezed contexts one after the other. Many searches
    build an index, so that the time of each does not grow with the size of the contexts. ``notes=False`` leaves out the
    marks of notes.
    """

    def __init__(self, contexts: Sequence[str], *, notes: bool = True) -> None:
        self._sources = contexts
        self._readable = {
            number: readable
            for number, text in enumerate(contexts)
            if (not notes or has_markup(text)) and (readable := Readable(text, notes=notes))
        }
        self._texts = list(contexts)
        for number, readable in self._readable.items():
            self._texts[number] = readable.text
        # Nothing is found across two contexts: the separator is in no squeezed text.
        self._squeezer = Squeezer(_SEPARATOR.join(self._texts), keep=_SEPARATOR.encode())
        self.key = self._squeezer.key
        self._starts = _starts(self.key)
        if len(self._starts) != len(contexts) + 1:
            # The texts have separators of their own.
            self.key = _SEPARATOR.encode().join([self._squeezer.squeeze(text) for text in self._texts])
            self._starts = _starts(self.key)
        self._lengths: list[list[int] | None] = [None] * len(contexts)
        self._index: GramIndex | None = None
        self._searched = 0

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, context: int) -> str:
        """Return a context as a reader sees it."""
        return self._texts[context]

    def source(self, passage: Passage) -> tuple[int, int, str]:
        """Return start, end and text of a passage in the original context."""
        start, end = passage.start, passage.end
        if readable := self._readable.get(passage.context):
            start, end = readable.start(start), readable.end(end)
        return start, end, self._sources[passage.context][start:end]

    def bounds(self, context: int) -> tuple[int, int]:
        """Return from where to where in ``key`` a context goes."""
        return self._starts[context], self._starts[context + 1] - 1

    def edges(self, length: int) -> tuple[list[bytes], list[bytes]]:
        """Return the first and the last bytes of each squeezed context, more than it has where it is shorter."""
        key, starts = self.key, self._starts
        first = [key[start : start + length] for start in starts[:-1]]
        return first, [key[max(after - 1 - length, 0) : after - 1] for after in starts[1:]]

    def context_at(self, position: int) -> int:
        """Return which context a position of ``key`` belongs to."""
        return bisect_right(self._starts, position, hi=len(self._texts)) - 1

    def find(self, needle: bytes, start: int = 0, end: int | None = None) -> int:
        """Return the first position of a squeezed text in ``key[start:end]``, or -1."""
        end = len(self.key) if end is None else end
        if len(needle) >= 2 * GRAM and self._is_indexed():
            position = self._indexed.find(needle, start, end)
            if position is not None:
                return position
        position = self.key.find(needle, start, end)
        self._searched += (end if position < 0 else position) - start
        return position

    def occurrences(self, needle: bytes, start: int = 0, end: int | None = None) -> Iterator[int]:
        """Yield the positions of a squeezed text in ``key[start:end]`` in order."""
        position = self.find(needle, start, end)
        while position >= 0:
            yield position
            position = self.find(needle, position + 1, end)

    def sightings(self, key: bytes) -> list[int]:
        """Return where a squeezed text would start, judging by the pieces of it that occur."""
        if len(key) >= 2 * GRAM and self._is_indexed():
            return self._indexed.sightings(key)
        size = min(max(len(key) // 4, GRAM // 2), GRAM + GRAM // 2)
        offsets = range(0, len(key) - size + 1, max(size, len(key) // _MOST_SIGHTINGS))
        pieces = [(offset, key[offset : offset + size]) for offset in offsets]
        found: list[int] = []
        for offset, piece in pieces:
            position = self.find(piece)
            if position >= 0:
                nearby = self._nearby(pieces, position - offset, slack=2 * size)
                # Half of it in one place is as good as it gets.
                if 2 * len(nearby) > len(pieces):
                    return nearby
                found += nearby
        repeats = (self._later(piece, offset) for offset, piece in pieces)
        return found + [position for positions in repeats for position in positions]

    def _nearby(self, pieces: list[tuple[int, bytes]], start: int, *, slack: int) -> list[int]:
        """Return where a text would start, judging by those of its pieces that stand about where one of them says."""
        found = []
        for offset, piece in pieces:
            expected = start + offset
            position = self.key.find(piece, max(expected - slack, 0), max(expected + slack + len(piece), 0))
            if position >= 0:
                found.append(position - offset)
        return found

    def _later(self, piece: bytes, offset: int) -> list[int]:
        return [position - offset for position in islice(self.occurrences(piece), 1, _MOST_REPEATS)]

    def block_at(self, position: int) -> Passage:
        """Return a small piece of a context that a position of ``key`` is somewhere in."""
        block = self._block(position)
        return Passage(block.context, block.low, block.high)

    def passage(self, start: int, end: int) -> Passage:
        """Return the piece of a context that was squeezed into ``key[start:end]``."""
        context, first = self.character_at(start)
        text = self._texts[context]
        last = self.character_at(end - 1)[1] + 1
        stop = min(last + _MOST_MARKS, len(text))
        while last < stop and is_mark(text[last]):
            last += 1
        return Passage(context, first, last)

    def character_at(self, position: int) -> tuple[int, int]:
        """Return the context and the offset of the character that was squeezed into a byte of ``key``."""
        context, low, high, start, total = self._block(position)
        text = self._texts[context]
        # The character lies in [low, high), which makes up ``total`` bytes; ``wanted`` of them stand before it.
        wanted, margin = position - start, _STEP
        while wanted > _STEP and high - low > 1:
            # Letters are spread evenly as a rule; where they are not, halving gets there.
            guess = (high - low) * wanted // total - margin if margin else (high - low) // 2
            middle = low + min(max(guess, 1), high - low - 1)
            before = len(self._squeezer.squeeze(text[low:middle]))
            if before <= wanted:
                low, wanted, total = middle, wanted - before, total - before
            else:
                high, total = middle, before
            margin //= 4
        while (length := squeezed_length(text[low])) <= wanted:
            wanted -= length
            low += 1
        return context, low

    def _block(self, position: int) -> _Block:
        context = self.context_at(position)
        text, (start, end) = self._texts[context], self.bounds(context)
        if len(text) <= _SMALL:
            return _Block(context, 0, len(text), start, end - start)
        lengths = self._lengths[context]
        if lengths is None:
            pieces = (text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK))
            lengths = [len(self._squeezer.squeeze(piece)) for piece in pieces]
            lengths = self._lengths[context] = list(accumulate(lengths, initial=0))
        number = bisect_right(lengths, position - start) - 1
        low, before = number * _BLOCK, lengths[number]
        return _Block(context, low, min(low + _BLOCK, len(text)), start + before, lengths[number + 1] - before)

    def _is_indexed(self) -> bool:
        return self._index is not None or self._searched > _PASSES * len(self.key)

    @property
    def _indexed(self) -> GramIndex:
        if self._index is None:
            self._index = GramIndex(self.key)
        return self._index


def _starts(key: bytes) -> list[int]:
    """Return where the parts of a squeezed text begin, and where one more would."""
    starts = [0]
    while (position := key.find(_SEPARATOR.encode(), starts[-1])) >= 0:
        starts.append(position + 1)
    return [*starts, len(key) + 1]
