"""The contexts as one byte string of comparison keys: searched quickly, with the way back to each original.

The comparison key of a text is its letters and digits in UTF-8: caseless, compatibility forms resolved; white space,
punctuation, symbols, and marks on letters are removed. Texts that :mod:`~pytest_ragmetrics.text.quotes.folding` finds
equal have the same key, so what is not found here need not be compared. Alignment uses :class:`SourceIndex`, and
:func:`comparison_key` for what it looks for.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from io import BytesIO
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.markup import Readable, has_markup
from pytest_ragmetrics.text.unicode import is_mark

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# In no key of a text, so that nothing is found across two contexts.
_SEPARATOR = "\x1e"
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum() and chr(code) != _SEPARATOR)
_LOWERED = bytes(range(256)).lower()
# Added to a code point that stands for several letters; Hangul syllables do, and are many.
_SEVERAL, _NEW = 1 << 21, 1 << 22
# The letters of Hangul, 67 in three rows, in bytes that no letter has: to search three times three takes much longer.
_FREE = [*range(0x01, 0x1E), *range(0x21, 0x30), *range(0x3A, 0x51)]
_HANGUL = (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3))
_JAMO = dict(zip(map(chr, _HANGUL), map(chr, _FREE), strict=True))
# With more than one of those to so many characters, the text is read character by character.
_CROWDED = 16
# Shorter texts are read character by character: German of 120 in 3 us, with arrays in 8 us, of 500 in 15 and 10 us.
_SHORT = 160
# Characters whose key is made at a time, so that the memory needed does not grow with the text.
_BATCH = 32_768
# Letters to Unicode, and apostrophes, primes or mere lengthening to whoever quotes.
_NO_LETTERS = frozenset(f"\u115f\u1160\u02ba\u02be\u02bf\u02c8\u02ca\u02cb\u07fa{unicode.TATWEEL}{unicode.APOSTROPHES}")

#: Length in bytes of the pieces that are indexed: as many as an unsigned 64-bit number has.
GRAM = 8
# The halves of an entry of the index: a hash of the piece, and its number.
_HASH, _NUMBER = 0xFFFF_FFFF_0000_0000, 0xFFFF_FFFF
# How much of a needle is looked up, and in how many places that may be.
_LOOKED_UP = 256
_MOST_SOUGHT = 1024
_MOST_STARTS = 256

# Code points between two offsets that are known in both text and key; shorter contexts are looked through whole.
_BLOCK = 1024
_SMALL = 4096
# Bytes that are passed over one character after the other.
_STEP = 16
# The index needs as much memory as the key: few searches go without. Until then pieces of any length are looked up.
_PASSES = 48
_INDEXED = 65_536
_MOST_MARKS = 32
# Pieces of a text that are looked up to find its place, and how often each is followed.
_MOST_PIECES = 64
_MOST_REPEATS = 4


def comparison_key(text: str) -> bytes:
    """Return the letters and digits of a text in UTF-8: caseless, without marks, compatibility forms resolved.

    The letters of Hangul are a byte each. The key of two texts together is that of one and that of the other.

    >>> comparison_key("Caf\u00e9 \u2013 \ufb01ne!") == comparison_key("CAFE\u0301 FINE") == b"cafefine"
    True
    """
    return _key(text.replace(_SEPARATOR, " "))


def _key(text: str) -> bytes:
    if len(text) > _BATCH:
        return b"".join([_key(text[at : at + _BATCH]) for at in range(0, len(text), _BATCH)])
    return text.encode().translate(_LOWERED, _DROPPED) if text.isascii() else _in_letters(text).encode()


def _in_letters(text: str) -> str:
    """Return the letters of a text that is not ASCII."""
    if len(text) < _SHORT:
        return text.translate(_SHORT_LETTERS)
    import numpy as np

    table = _letter_table()
    # An array of texts holds code points, and is made and read back faster than bytes of any encoding.
    codes = np.array([text]).view(np.uint32)
    letters = table.take(codes, mode="wrap")
    if (largest := np.maximum.reduce(letters)) == _NEW:
        for code in np.unique(codes[letters == _NEW]).tolist():
            key = _SHORT_LETTERS[code] or " "
            table[code] = ord(key) if len(key) == 1 else code | _SEVERAL
        letters = table.take(codes, mode="wrap")
        largest = np.maximum.reduce(letters)
    changes: dict[str, str] = {}
    if largest >= _SEVERAL:
        # Numbers of places: an array of truth values takes ten times longer to read and write with.
        places = (letters >= _SEVERAL).nonzero()[0]
        if places.size * _CROWDED > codes.size:
            return text.translate(_SHORT_LETTERS)
        letters[places] = codes[places]
        changes = {char: _SHORT_LETTERS[ord(char)] for char in map(chr, set(codes[places].tolist()))}
    letters = letters.compress(letters != ord(" "))
    found = "".join(letters.view(f"<U{letters.size or 1}").tolist())
    for char, key in changes.items():
        found = found.replace(char, key)
    return found


@lru_cache(maxsize=1)
def _letter_table() -> npt.NDArray[np.uint32]:
    """Return an array of the letter that each character stands for, ``_NEW`` as long as nobody has met it.

    Looking all characters up would take a second. A space is for none, the character with ``_SEVERAL`` for several.
    """
    import numpy as np

    return np.full(sys.maxunicode + 1, _NEW, np.uint32)


@lru_cache(maxsize=65536)
def key_length(char: str) -> int:
    """Return how many bytes the key of a character has."""
    return len(comparison_key(char))


class _Letters(dict[int, str]):
    """The letters of characters by code point, as str.translate wants them; each is worked out when first met."""

    def __missing__(self, code: int) -> str:
        # The capital of the dotless i is that of the other, too.
        decomposed = normalize("NFKD", normalize("NFKD", chr(code)).casefold()).replace("\u0131", "i")
        letters = (_JAMO.get(part, part) for part in decomposed if part.isalnum() and part not in _NO_LETTERS)
        self[code] = found = "".join(letters)
        return found


_SHORT_LETTERS = _Letters({ord(_SEPARATOR): _SEPARATOR})


class GramIndex:
    """Where the pieces of a byte string are, taken side by side.

    Wherever a needle is, any GRAM offsets of it in a row include one that an indexed piece begins at. So the
    pieces of the needle at these offsets give all its places. There are eight bytes to an indexed piece.

    >>> GramIndex(b"thequickbrownfoxjumpsover").places(b"ickbrownfoxjumps")
    [5]
    """

    def __init__(self, text: bytes) -> None:
        import numpy as np

        # Half of an entry is a hash of the piece, half its number; sorted, those of equal pieces are together.
        pieces = np.frombuffer(text, np.uint64, len(text) // GRAM)
        self._entries = np.empty(len(pieces), np.uint64)
        for start in range(0, len(pieces), _BATCH):
            part = slice(start, start + _BATCH)
            self._entries[part] = _hashes(pieces[part])
            self._entries[part] |= np.arange(start, start + len(pieces[part]), dtype=np.uint64)
        self._entries.sort()

    def places(self, needle: bytes) -> list[int] | None:
        """Return where a needle may be, in order, ``None`` when its pieces are too frequent to tell.

        The needle must be at least ``2 * GRAM`` bytes long.
        """
        import numpy as np

        lows, counts = self._ranges(needle[:_LOOKED_UP])
        totals = counts.cumsum()
        rows = totals[GRAM - 1 :].copy()
        rows[1:] -= totals[:-GRAM]
        row = int(rows.argmin())
        if rows[row] > _MOST_SOUGHT:
            return None
        if not rows[row]:
            return []
        offsets = np.arange(row, row + GRAM)
        lows, counts = lows[offsets], counts[offsets]
        entries = np.repeat(lows - counts.cumsum() + counts, counts) + np.arange(rows[row])
        return sorted(self._starts(entries, np.repeat(offsets, counts)))

    def likely_starts(self, needle: bytes) -> list[int]:
        """Return where a needle would start, judging by the first and last place of each of its indexed pieces."""
        import numpy as np

        lows, counts = self._ranges(needle)
        offsets = np.flatnonzero(counts)
        offsets = offsets[: np.minimum(counts[offsets], 2).cumsum().searchsorted(_MOST_STARTS) + 1]
        again = offsets[counts[offsets] > 1]
        entries = np.concatenate((lows[offsets], lows[again] + counts[again] - 1))
        return self._starts(entries, np.concatenate((offsets, again)))

    def _ranges(self, needle: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return for the piece at each offset of a needle its first entry, and how many there are."""
        import numpy as np

        pieces = np.ndarray((len(needle) - GRAM + 1,), np.uint64, needle, strides=(1,))
        hashes = _hashes(pieces)
        lows = self._entries.searchsorted(hashes)
        hashes |= np.uint64(_NUMBER)
        return lows, self._entries.searchsorted(hashes, side="right") - lows

    def _starts(self, entries: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> list[int]:
        """Return where a needle would start if its pieces at these offsets were those of these entries."""
        import numpy as np

        numbers = (self._entries[entries] & np.uint64(_NUMBER)).astype(np.int64)
        starts: list[int] = (numbers * GRAM - offsets).tolist()
        return starts


def _hashes(pieces: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return hashes of numbers, in the upper half of the bits (Knuth, The Art of Computer Programming, section 6.4)."""
    import numpy as np

    hashes: npt.NDArray[np.uint64] = pieces * np.uint64(0x9E3779B97F4A7C15)
    hashes &= np.uint64(_HASH)
    return hashes


class Passage(NamedTuple):
    """A piece of a context; offsets are those of the context as a reader sees it."""

    context: int
    start: int
    end: int


class SourceBlock(NamedTuple):
    """A stretch of a context; where in the key it begins, and how long it is there."""

    context: int
    start: int
    end: int
    key_start: int
    key_length: int


class SourceIndex:
    """The contexts that quotations are looked for in.

    Positions are byte offsets of ``key``, the keys of the contexts one after the other. Many searches build an index,
    so that the time of each does not grow with the size of the contexts. ``notes=False`` leaves out note marks.
    """

    def __init__(self, contexts: Sequence[str], *, notes: bool = True) -> None:
        self._contexts = contexts
        self._readable = {
            number: readable
            for number, text in enumerate(contexts)
            if (not notes or has_markup(text)) and (readable := Readable(text, notes=notes))
        }
        self._texts = list(contexts)
        for number, readable in self._readable.items():
            self._texts[number] = readable.text
        self.key = _joined_keys(self._texts)
        self._starts = [0]
        while end := self.key.find(_SEPARATOR.encode(), self._starts[-1]) + 1:
            self._starts.append(end)
        #: From where to where in ``key`` each context goes.
        self.bounds = [(start, end - 1) for start, end in pairwise((*self._starts, len(self.key) + 1))]
        self._block_starts: dict[int, list[int]] = {}
        self._searched = 0

    def text(self, context: int) -> str:
        """Return a context as a reader sees it."""
        return self._texts[context]

    def original(self, passage: Passage) -> tuple[int, int, str]:
        """Return start, end and text of a passage in the original context."""
        start, end = passage.start, passage.end
        if readable := self._readable.get(passage.context):
            start, end = readable.start(start), readable.end(end)
        return start, end, self._contexts[passage.context][start:end]

    def context_at(self, position: int) -> int:
        """Return which context a position of ``key`` belongs to."""
        return bisect_right(self._starts, position) - 1

    def find(self, needle: bytes, start: int = 0, end: int | None = None) -> int:
        """Return the first position of a key in ``key[start:end]``, or -1."""
        return next(self.occurrences(needle, start, end), -1)

    def occurrences(self, needle: bytes, start: int = 0, end: int | None = None) -> Iterator[int]:
        """Yield the positions of a key in ``key[start:end]`` in order."""
        key, end = self.key, len(self.key) if end is None else end
        # Short keys are searched faster without.
        indexed = len(key) >= _INDEXED and self._is_indexed(needle)
        places = self._index.places(needle) if indexed else None
        if places is None:
            place = key.find(needle, start, end)
            while place >= 0:
                self._searched += place - start
                yield place
                start = place + 1
                place = key.find(needle, start, end)
        else:
            for place in places:
                if start <= place <= end - len(needle) and key.startswith(needle, place):
                    self._searched += place - start
                    yield place
                    start = place + 1
        self._searched += end - start

    def likely_starts(self, key: bytes) -> list[int]:
        """Return where a text would start, judging by the pieces of its key that occur."""
        if self._is_indexed(key):
            return self._index.likely_starts(key)
        size = min(max(len(key) // 4, GRAM // 2), GRAM + GRAM // 2)
        offsets = range(0, len(key) - size + 1, max(size, len(key) // _MOST_PIECES))
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
        for offset, piece in pieces:
            found += (position - offset for position in islice(self.occurrences(piece), 1, _MOST_REPEATS))
        return found

    def _nearby(self, pieces: list[tuple[int, bytes]], start: int, *, slack: int) -> list[int]:
        """Return where a text would start, judging by those of its pieces that are about where one of them says."""
        found = []
        for offset, piece in pieces:
            expected = start + offset
            position = self.key.find(piece, max(expected - slack, 0), max(expected + slack + len(piece), 0))
            if position >= 0:
                found.append(position - offset)
        return found

    def passage(self, start: int, end: int) -> Passage:
        """Return the piece of a context whose key is ``key[start:end]``."""
        context, low, high, key_start, length = self.block(start)
        text = self._texts[context]
        first, before = _character_with(text, low, high, start - key_start, length)
        wanted = end - 1 - key_start
        if wanted < length:
            # What is before the passage need not be read again: that takes 15 us in 2 KB of German.
            last = _character_with(text, first, high, wanted - before, length - before)[0] + 1
        else:
            last = self.character_at(end - 1)[1] + 1
        stop = min(last + _MOST_MARKS, len(text))
        while last < stop and is_mark(text[last]):
            last += 1
        return Passage(context, first, last)

    def character_at(self, position: int) -> tuple[int, int]:
        """Return the context and the offset of the character whose key has the byte at a position."""
        context, low, high, start, total = self.block(position)
        return context, _character_with(self._texts[context], low, high, position - start, total)[0]

    def block(self, position: int) -> SourceBlock:
        """Return a small piece of a context that a position of ``key`` is somewhere in."""
        context = self.context_at(position)
        text, (start, end) = self._texts[context], self.bounds[context]
        if len(text) <= _SMALL:
            return SourceBlock(context, 0, len(text), start, end - start)
        starts = self._block_starts.get(context)
        if starts is None:
            lengths = (len(comparison_key(text[at : at + _BLOCK])) for at in range(0, len(text), _BLOCK))
            starts = self._block_starts[context] = list(accumulate(lengths, initial=0))
        number = bisect_right(starts, position - start) - 1
        low, before = number * _BLOCK, starts[number]
        return SourceBlock(context, low, min(low + _BLOCK, len(text)), start + before, starts[number + 1] - before)

    def _is_indexed(self, needle: bytes) -> bool:
        return len(needle) >= 2 * GRAM and self._searched > _PASSES * len(self.key)

    @cached_property
    def _index(self) -> GramIndex:
        return GramIndex(self.key)


def _character_with(text: str, low: int, high: int, position: int, total: int) -> tuple[int, int]:
    """Return the offset of the character with a byte of the key of ``text[low:high]``, and the first of its bytes.

    ``total`` is the length of that key.
    """
    # The character lies in [low, high), whose key has ``total`` bytes; ``wanted`` of them are before it.
    wanted, margin = position, _STEP
    while wanted > _STEP and high - low > 1:
        # Letters are spread evenly as a rule; where they are not, halving gets there.
        guess = (high - low) * wanted // total - margin if margin else (high - low) // 2
        middle = low + min(max(guess, 1), high - low - 1)
        before = len(comparison_key(text[low:middle]))
        if before <= wanted:
            low, wanted, total = middle, wanted - before, total - before
        else:
            high, total = middle, before
        margin //= 4
    while (length := key_length(text[low])) <= wanted:
        wanted -= length
        low += 1
    return low, position - wanted


def _joined_keys(texts: list[str]) -> bytes:
    """Return the keys of texts, with a separator between any two."""
    keys, batch, size = BytesIO(), [], 0
    for number, text in enumerate(texts, start=1):
        batch.append(text.replace(_SEPARATOR, " "))
        size += len(text)
        # One key of a few short texts is made faster than one of each.
        if size < _BATCH and number < len(texts):
            continue
        together = _SEPARATOR.join(batch)
        # A part of it at a time, as the rest of the memory is needed more.
        for at in range(0, len(together), _BATCH):
            keys.write(_key(together[at : at + _BATCH]))
        if number < len(texts):
            keys.write(_SEPARATOR.encode())
        batch, size = [], 0
    return keys.getvalue()
