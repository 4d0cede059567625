"""The contexts as one byte string of comparison keys: searched quickly, with the way back to each original.

The comparison key of a text is its letters and digits in UTF-8: caseless, compatibility forms resolved; white space,
punctuation, symbols, and marks on letters are removed. Texts that :mod:`~pytest_ragmetrics.text.quotes.folding` finds
equal have the same key, so what is not found here need not be compared. Alignment uses :class:`SourceIndex`, and
:func:`comparison_key` for what it looks for.
"""

from __future__ import annotations

import codecs
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple
from unicodedata import normalize

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.markup import Readable, as_readable, has_markup
from pytest_ragmetrics.text.unicode import is_mark

# In no key of a text, so that nothing is found across two contexts.
_SEPARATOR = b"\x1e"
_ASCII = "".join(map(chr, range(128)))
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())
_LOWERED = bytes(range(256)).lower()
# What texts in the letters of Latin and of Cyrillic are made of beside ASCII: 128 characters at most, each with a key
# of one letter or none. As one byte a character they are read five times faster than one by one.
_TYPOGRAPHIC = "".join(mark for mark in unicode.QUOTATION_MARKS if "\x7f" < mark < unicode.LEFT_CORNER)
_TYPOGRAPHIC += f"{unicode.PAUSES}{unicode.MINUS}{unicode.ELLIPSIS}{unicode.BULLET}{unicode.THIN_SPACES}"
_LATIN = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿĄąĆćĘęŁłŃńŚśŹźŻżČčĎďĚěŇňŘřŠšŤťŮůŽžŐőŰűĞğŞş"
_CYRILLIC = "".join(map(chr, range(0x410, 0x450))) + "ЁёІіЇїЄєҐґ"
# The letters of Hangul, 67 in three rows, in bytes that no letter has: to search three times three takes much longer.
_FREE = [*range(0x01, 0x1E), *range(0x21, 0x30), *range(0x3A, 0x51)]
_HANGUL = (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3))
_JAMO = dict(zip(map(chr, _HANGUL), map(chr, _FREE), strict=True))
# Letters to Unicode, and apostrophes, primes or mere lengthening to whoever quotes.
_NO_LETTERS = frozenset(f"\u115f\u1160\u02ba\u02be\u02bf\u02c8\u02ca\u02cb\u07fa{unicode.TATWEEL}{unicode.APOSTROPHES}")

# Han characters that are their own letters: str.translate reads them one by one, which takes twice as long.
_HAN = lazily("([\u4e00-\u9fef]{4,})")

# Code points between two offsets that are known in both text and key.
_BLOCK = 512
# When single look-ups have passed over all of the key so often, pieces of all quotations are looked up at once. They
# have so many bytes, twice as many where most characters have three.
_PASSES = 48
_GRAM = 8
# Less is searched faster without, and so is what has pieces in more places.
_INDEXED = 65_536
_MOST_SOUGHT = 1024
_MOST_STARTS = 256
_MOST_MARKS = 32
# Pieces of a text that are looked up to find its place, and how often each is followed.
_MOST_PIECES = 64
_MOST_REPEATS = 4


class _Letters(dict[int, str]):
    """The letters of characters by code point, as str.translate wants them; each is worked out when first met."""

    def __missing__(self, code: int) -> str:
        # The capital of the dotless i is that of the other, too.
        decomposed = normalize("NFKD", normalize("NFKD", chr(code)).casefold()).replace("\u0131", "i")
        letters = (_JAMO.get(part, part) for part in decomposed if part.isalnum() and part not in _NO_LETTERS)
        self[code] = found = "".join(letters)
        return found


_LETTERS = _Letters()


class _Alphabet:
    """Reads texts that have no other characters than those of ASCII and 128 more, a byte each."""

    def __init__(self, others: str) -> None:
        self._chars = f"{_ASCII}{others}".ljust(256, "\ufffe")
        self._bytes = codecs.charmap_build(self._chars)
        letters = [char.translate(_LETTERS) for char in self._chars]
        self._letters = bytes(map(self._chars.index, letters))
        self._dropped = bytes(code for code, letter in enumerate(letters) if not letter)

    def key(self, text: str) -> bytes:
        key = codecs.charmap_encode(text, "strict", self._bytes)[0].translate(self._letters, self._dropped)
        return key if key.isascii() else codecs.charmap_decode(key, "strict", self._chars)[0].encode()


_alphabets = lru_cache(maxsize=1)(lambda: [_Alphabet(f"{_TYPOGRAPHIC}{letters}") for letters in (_LATIN, _CYRILLIC)])


def comparison_key(text: str) -> bytes:
    """Return the letters and digits of a text in UTF-8: caseless, without marks, compatibility forms resolved.

    The letters of Hangul are a byte each. The key of two texts together is that of one and that of the other.

    >>> comparison_key("Caf\u00e9 \u2013 \ufb01ne!") == comparison_key("CAFE\u0301 FINE") == b"cafefine"
    True
    """
    if text.isascii():
        return text.encode().translate(_LOWERED, _DROPPED)
    for alphabet in _alphabets():
        with suppress(UnicodeEncodeError):
            return alphabet.key(text.replace("ß", "ss"))
    # In Chinese alone, where they stand in long runs.
    pieces = _HAN.split(text) if "的" in text else [text]
    pieces[::2] = [piece.translate(_LETTERS) for piece in pieces[::2]]
    return "".join(pieces).encode()


@lru_cache(maxsize=65536)
def key_length(char: str) -> int:
    """Return how many bytes the key of a character has."""
    return len(comparison_key(char))


class Passage(NamedTuple):
    """A piece of a context; offsets are those of the context as a reader sees it."""

    context: int
    start: int
    end: int


class SourceIndex:
    """The contexts that quotations are looked for in.

    Positions are byte offsets of ``key``, the keys of the contexts one after the other. ``expected`` are texts that are
    looked for; of many, the pieces are looked up all at once. ``notes=False`` leaves out note marks.
    """

    def __init__(self, contexts: Sequence[str], *, notes: bool = True, expected: Sequence[str] = ()) -> None:
        self.contexts, self.notes = contexts, notes
        self._expected = expected
        self._readable = {
            number: readable
            for number, text in enumerate(contexts)
            if (not notes or has_markup(text)) and (readable := Readable(text, notes=notes))
        }
        #: From where to where in ``key`` each context goes.
        self.bounds: list[tuple[int, int]] = []
        self._blocks: list[Passage] = []
        self._starts: list[int] = []
        keys, length = [], 0
        for number in range(len(contexts)):
            text, start = self.text(number), length
            for at in range(0, len(text) or 1, _BLOCK):
                self._blocks.append(Passage(number, at, min(at + _BLOCK, len(text))))
                self._starts.append(length)
                keys.append(comparison_key(text[at : at + _BLOCK]))
                length += len(keys[-1])
            self.bounds.append((start, length))
            keys.append(_SEPARATOR)
            length += 1
        self.key = b"".join(keys[:-1])
        self._gram = _GRAM if length < 2 * sum(map(len, contexts)) else 2 * _GRAM
        self._searched = 0

    def text(self, context: int) -> str:
        """Return a context as a reader sees it."""
        readable = self._readable.get(context)
        return readable.text if readable else self.contexts[context]

    def original(self, passage: Passage) -> tuple[int, int, str]:
        """Return start, end and text of a passage in the original context."""
        start, end = passage.start, passage.end
        if readable := self._readable.get(passage.context):
            start, end = readable.start(start), readable.end(end)
        return start, end, self.contexts[passage.context][start:end]

    def context_at(self, position: int) -> int:
        """Return which context a position of ``key`` belongs to."""
        return self._blocks[self._block(position)].context

    def find(self, needle: bytes, start: int = 0, end: int | None = None) -> int:
        """Return the first position of a key in ``key[start:end]``, or -1."""
        return next(self.occurrences(needle, start, end), -1)

    def occurrences(self, needle: bytes, start: int = 0, end: int | None = None) -> Iterator[int]:
        """Yield the positions of a key in ``key[start:end]`` in order."""
        key, end = self.key, len(self.key) if end is None else end
        # Little is searched faster without.
        places = self._places(needle) if end - start >= _INDEXED else None
        if places is not None:
            yield from (place for place in places if start <= place <= end - len(needle))
            return
        place = key.find(needle, start, end)
        while place >= 0:
            self._searched += place - start
            yield place
            start = place + 1
            place = key.find(needle, start, end)
        self._searched += end - start

    def _places(self, needle: bytes) -> list[int] | None:
        """Return the positions of a key in order, ``None`` where the pieces that were looked up do not tell."""
        if not self._is_indexed(needle):
            return None
        # Any row of places of a piece has one that a piece of the key begins at.
        found = [(at, self._pieces.get(needle[at : at + self._gram])) for at in range(self._gram)]
        if any(places is None for _, places in found) or sum(len(places or ()) for _, places in found) > _MOST_SOUGHT:
            return None
        starts = sorted(place - at for at, places in found for place in places or ())
        return [start for start in starts if start >= 0 and self.key.startswith(needle, start)]

    def _is_indexed(self, needle: bytes) -> bool:
        is_late = len(needle) >= 2 * self._gram and self._searched > _PASSES * len(self.key)
        return is_late and needle[: self._gram] in self._pieces

    @cached_property
    def _pieces(self) -> dict[bytes, list[int]]:
        """The pieces of what is expected, with their places among those of ``key`` that are side by side."""
        keys = {comparison_key(as_readable(text)) for text in self._expected}
        pieces: dict[bytes, list[int]] = {
            key[at : at + self._gram]: [] for key in keys for at in range(len(key) - self._gram + 1)
        }
        for place in range(0, len(self.key), self._gram):
            if (places := pieces.get(self.key[place : place + self._gram])) is not None:
                places.append(place)
        return pieces

    def likely_starts(self, key: bytes) -> list[int]:
        """Return where a text would start, judging by the pieces of its key that occur."""
        found: list[int] = []
        if self._is_indexed(key):
            for at in range(len(key) - self._gram + 1):
                places = self._pieces.get(key[at : at + self._gram])
                found += (place - at for place in {places[0], places[-1]}) if places else ()
                if len(found) >= _MOST_STARTS:
                    break
            return found
        size = min(max(len(key) // 4, _GRAM // 2), _GRAM + _GRAM // 2)
        offsets = range(0, len(key) - size + 1, max(size, len(key) // _MOST_PIECES))
        pieces = [(offset, key[offset : offset + size]) for offset in offsets]
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
        context, first = self.character_at(start)
        text, last = self.text(context), self.character_at(end - 1)[1] + 1
        stop = min(last + _MOST_MARKS, len(text))
        while last < stop and is_mark(text[last]):
            last += 1
        return Passage(context, first, last)

    def character_at(self, position: int) -> tuple[int, int]:
        """Return the context and the offset of the character whose key has the byte at a position."""
        block = self._block(position)
        context, low, high = self._blocks[block]
        text, wanted = self.text(context), position - self._starts[block]
        while high - low > 1:
            middle = (low + high) // 2
            before = len(comparison_key(text[low:middle]))
            if before <= wanted:
                low, wanted = middle, wanted - before
            else:
                high = middle
        return context, low

    def _block(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1
