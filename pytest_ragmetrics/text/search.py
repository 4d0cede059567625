"""The contexts as one byte string of comparison keys: searched quickly, with the way back to each original.

The comparison key of a text is its letters and digits in UTF-8: caseless, compatibility forms resolved; white space,
punctuation, symbols, and marks on letters are removed. Texts that :mod:`~pytest_ragmetrics.text.folding` finds equal
have the same key, so what is not found here need not be compared. Alignment uses :class:`SourceIndex`, and
:func:`comparison_key` for what it looks for; when every search failed, :func:`find_nearest` returns the closest passage
and how it differs word by word.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, islice, pairwise
from typing import Literal, NamedTuple
from unicodedata import normalize

from pytest_ragmetrics.result import Nearest, WordChange
from pytest_ragmetrics.text.characters import UNSPACED, UNSPACED_CHARACTER, are_joined, is_mark
from pytest_ragmetrics.text.markup import Readable, has_markup

_ASCII = bytes(range(128))
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())
_FOREIGN = bytes(range(128, 256))
_LOWERED = bytes(range(256)).lower()
# Replacing one character after the other is faster than str.translate up to about this many.
_FEW = 160
_KANA = "ぁあぃいぅうぇえぉおかきくけこさしすせそたちっつてとなにぬねのはひふへほまみむめもゃやゅゆょよらりるれろわをん"
# Letters that are their own key, so that most of a text in these scripts need not be looked at one by one.
_PLAIN = (
    "\u03b1-\u03c1\u03c3-\u03c9\u0430-\u0438\u043a-\u044f\u05d0-\u05ea\u0627-\u063f\u0641-\u064a"
    "\u0904-\u0928\u092a-\u0930\u0935-\u0939\u0e01-\u0e2e\u3400-\u4db5\u4e00-\u9fef"
    f"{_KANA}{''.join(chr(ord(char) + 0x60) for char in _KANA)}"
)
_NOT_PLAIN = re.compile(f"[^{_PLAIN}]+")
# Letters to Unicode, and apostrophes, primes or mere lengthening to whoever quotes.
_NO_LETTERS = frozenset(
    "\u115f\u1160\u02b9\u02ba\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u02ca\u02cb\u02ee\u0640\u07fa\ua78c"
)

#: Length in bytes of the pieces that are indexed: as many as an unsigned 64-bit number has.
GRAM = 8
# Rows of GRAM offsets of a needle that are tried before giving up.
_ROWS = 8
_MOST_STARTS = 256

# Code points between two offsets that are known in both text and key; shorter contexts are looked through whole.
_BLOCK = 1024
_SMALL = 4096
# Bytes that are passed over one character after the other.
_STEP = 16
# In no key, so that nothing is found across two contexts.
_SEPARATOR = "\x1e"
# An index costs about as much as this many passes over the key.
_PASSES = 48
_MOST_MARKS = 32
# Pieces of a text that are looked up to find its place, and how often each is followed.
_MOST_PIECES = 64
_MOST_REPEATS = 4

# Longer quotations are compared by their beginning.
_LONGEST = 4000
# Up to this length the passage is found character by character.
_LONG = 500
# Less similar passages are not given.
_FAINTEST = 0.3
# How far a passage is widened to whole words.
_FARTHEST = 64
_TOKEN = re.compile(r"\S+\s*")
_UNSPACED_TOKEN = re.compile(rf"(?:[{UNSPACED}]|[^\s{UNSPACED}]+)\s*")
_KINDS: dict[str, Literal["same", "replaced", "added", "missing"]] = {
    "equal": "same",
    "replace": "replaced",
    "delete": "added",
    "insert": "missing",
}
_GLYPHS = {
    **dict.fromkeys("\u2018\u2019\u02bc\uff07", "'"),
    **dict.fromkeys("\u2010\u2011\u2013\u2014\u2212", "-"),
}
_EDGES = " \t\r\n\u00a0\u202f\u3000.,;:!?'\"()[]*_-"
_EDGES += "\u00ab\u00bb\u201c\u201d\u201e\u2026\u3001\u3002\u300c\u300d\uff01\uff0c\uff1f"


class KeyMaker:
    """The key of a text, and the keys of pieces of it, having looked at its characters once.

    A character to ``keep`` remains in the key of the text, and in none of its pieces.

    >>> maker = KeyMaker("Caf\u00e9 \u2013 \ufb01ne!")
    >>> maker.key, maker.key_of("\ufb01ne!")
    (b'cafefine', b'fine')
    """

    __slots__ = ("_changes", "_dropped", "_table", "key")

    def __init__(self, text: str, *, keep: str = "") -> None:
        self._changes: dict[str, str] = {}
        self._table: dict[int, str] = {}
        self._dropped = _DROPPED + _FOREIGN
        encoded = text.encode("utf-8", "surrogatepass")
        if not text.isascii():
            foreign = encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass")
            unusual = "".join(_NOT_PLAIN.findall(foreign))
            letters = {char: _letters(char) for char in set(unusual)}
            self._changes = {char: key for char, key in letters.items() if key not in (char, "")}
            if len(unusual) < len(foreign) or not all(key.isascii() for key in letters.values()):
                self._dropped = _DROPPED
                self._changes |= {char: "" for char, key in letters.items() if not key}
            if len(self._changes) > _FEW:
                self._table = str.maketrans(self._changes)
            if self._changes:
                encoded = self._changed(text)
        self.key = encoded.translate(_LOWERED, self._dropped.translate(None, keep.encode()))

    def key_of(self, piece: str) -> bytes:
        """Return the comparison key of a piece of the text."""
        return self._changed(piece).translate(_LOWERED, self._dropped)

    def _changed(self, piece: str) -> bytes:
        if self._table:
            piece = piece.translate(self._table)
        elif self._changes and not piece.isascii():
            for char, letters in self._changes.items():
                piece = piece.replace(char, letters)
        return piece.encode("utf-8", "surrogatepass")


def comparison_key(text: str) -> bytes:
    """Return the letters and digits of a text in UTF-8: caseless, without marks, compatibility forms resolved.

    >>> comparison_key("Caf\u00e9 \u2013 \ufb01ne!") == comparison_key("CAFE\u0301 FINE")
    True
    """
    return text.encode().translate(_LOWERED, _DROPPED) if text.isascii() else KeyMaker(text).key


@lru_cache(maxsize=65536)
def key_length(char: str) -> int:
    """Return how many bytes the key of a character has."""
    return len(comparison_key(char))


@lru_cache(maxsize=65536)
def _letters(char: str) -> str:
    decomposed = normalize("NFKD", normalize("NFKD", char).casefold())
    return "".join(part for part in decomposed if part.isalnum() and part not in _NO_LETTERS)


class GramIndex:
    """Where the pieces of a byte string are, taken side by side.

    Wherever a needle is, any GRAM offsets of it in a row include one that an indexed piece begins at. So the
    pieces of the needle at these offsets give all its places, unless one of them occurs repeatedly.

    >>> GramIndex(b"thequickbrownfoxjumpsover").find(b"ickbrownfoxjumps", 0, 25)
    5
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        grams = memoryview(text)[: len(text) // GRAM * GRAM].cast("Q").tolist()
        numbers = range(len(grams))
        self._last: dict[int, int] = dict(zip(grams, numbers, strict=True))
        self._first: dict[int, int] = dict(zip(reversed(grams), reversed(numbers), strict=True))

    def find(self, needle: bytes, start: int, end: int) -> int | None:
        """Return the first position of a needle in ``text[start:end]``, -1 for none, ``None`` for "cannot tell".

        The needle must be at least ``2 * GRAM`` bytes long.
        """
        for row in range(0, min(len(needle) - 2 * GRAM + 1, _ROWS * GRAM), GRAM):
            places = []
            for offset in range(row, row + GRAM):
                gram = _number(needle, offset)
                first = self._first.get(gram)
                if first is None:
                    continue
                if first != self._last[gram]:
                    break  # a piece that occurs repeatedly does not tell where the needle is
                places.append(first * GRAM - offset)
            else:
                inside = (place for place in sorted(places) if start <= place <= end - len(needle))
                return next((place for place in inside if self._text.startswith(needle, place)), -1)
        return None

    def likely_starts(self, needle: bytes) -> list[int]:
        """Return where a needle would start, judging by each of its pieces that is indexed."""
        found: list[int] = []
        for offset in range(len(needle) - GRAM + 1):
            gram = _number(needle, offset)
            first = self._first.get(gram)
            if first is not None:
                found += {first * GRAM - offset, self._last[gram] * GRAM - offset}
            if len(found) >= _MOST_STARTS:
                break
        return found


def _number(text: bytes, offset: int) -> int:
    return int.from_bytes(text[offset : offset + GRAM], sys.byteorder)


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
        # One key of all texts is made faster than one of each.
        together = _SEPARATOR.join([text.replace(_SEPARATOR, " ") for text in self._texts])
        self._maker = KeyMaker(together, keep=_SEPARATOR)
        self.key = self._maker.key
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
        end = len(self.key) if end is None else end
        if self._is_indexed(needle):
            position = self._index.find(needle, start, end)
            if position is not None:
                return position
        position = self.key.find(needle, start, end)
        self._searched += (end if position < 0 else position) - start
        return position

    def occurrences(self, needle: bytes, start: int = 0, end: int | None = None) -> Iterator[int]:
        """Yield the positions of a key in ``key[start:end]`` in order."""
        position = self.find(needle, start, end)
        while position >= 0:
            yield position
            position = self.find(needle, position + 1, end)

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
        context, first = self.character_at(start)
        text = self._texts[context]
        last = self.character_at(end - 1)[1] + 1
        stop = min(last + _MOST_MARKS, len(text))
        while last < stop and is_mark(text[last]):
            last += 1
        return Passage(context, first, last)

    def character_at(self, position: int) -> tuple[int, int]:
        """Return the context and the offset of the character whose key has the byte at a position."""
        context, low, high, start, total = self.block(position)
        text = self._texts[context]
        # The character lies in [low, high), whose key has ``total`` bytes; ``wanted`` of them are before it.
        wanted, margin = position - start, _STEP
        while wanted > _STEP and high - low > 1:
            # Letters are spread evenly as a rule; where they are not, halving gets there.
            guess = (high - low) * wanted // total - margin if margin else (high - low) // 2
            middle = low + min(max(guess, 1), high - low - 1)
            before = len(self._maker.key_of(text[low:middle]))
            if before <= wanted:
                low, wanted, total = middle, wanted - before, total - before
            else:
                high, total = middle, before
            margin //= 4
        while (length := key_length(text[low])) <= wanted:
            wanted -= length
            low += 1
        return context, low

    def block(self, position: int) -> SourceBlock:
        """Return a small piece of a context that a position of ``key`` is somewhere in."""
        context = self.context_at(position)
        text, (start, end) = self._texts[context], self.bounds[context]
        if len(text) <= _SMALL:
            return SourceBlock(context, 0, len(text), start, end - start)
        starts = self._block_starts.get(context)
        if starts is None:
            lengths = (len(self._maker.key_of(text[at : at + _BLOCK])) for at in range(0, len(text), _BLOCK))
            starts = self._block_starts[context] = list(accumulate(lengths, initial=0))
        number = bisect_right(starts, position - start) - 1
        low, before = number * _BLOCK, starts[number]
        return SourceBlock(context, low, min(low + _BLOCK, len(text)), start + before, starts[number + 1] - before)

    def _is_indexed(self, needle: bytes) -> bool:
        if len(needle) < 2 * GRAM:
            return False
        return "_index" in self.__dict__ or self._searched > _PASSES * len(self.key)

    @cached_property
    def _index(self) -> GramIndex:
        return GramIndex(self.key)


class _Words(NamedTuple):
    """The words of a text: as they are written, with the space after them, and as they are compared."""

    tokens: list[str]
    keys: list[str]

    def between(self, start: int, end: int) -> str:
        """Return the text from one word up to another."""
        return "".join(self.tokens[start:end]).strip()


def find_nearest(span: str, sources: SourceIndex) -> Nearest | None:
    """Return the passage most like a quotation, in whole words; ``None`` when nothing in the contexts is like it.

    The search follows pieces of the quotation that occur, so its time does not depend on how the contexts look.
    """
    from rapidfuzz.fuzz import ratio

    span = span[:_LONGEST]
    key = comparison_key(span)
    window = _window(key, len(span), sources) if key else None
    if window is None:
        return None
    inside = sources.text(window.context)[window.start : window.end]
    quoted, around = _split_words(span), _split_words(inside)
    first, last, changes = _closest(span, quoted, inside, around)
    similarity = ratio(" ".join(quoted.keys), " ".join(around.keys[first:last])) / 100
    if similarity < _FAINTEST:
        return None
    at = window.start + len(inside) - len(inside.lstrip()) + sum(map(len, around.tokens[:first]))
    end = at + len("".join(around.tokens[first:last]).rstrip())
    start, end, text = sources.original(Passage(window.context, at, end))
    return Nearest(context=window.context, start=start, end=end, text=text, similarity=similarity, changes=changes)


def _window(key: bytes, length: int, sources: SourceIndex) -> Passage | None:
    """Return the stretch of a context where most pieces of a key agree that the quotation would be, and some more."""
    starts = sorted(sources.likely_starts(key))
    if not starts:
        return None
    slack = max(len(key) // 4, 8)
    best, most, first = 0, 0, 0
    for last, position in enumerate(starts):
        while starts[first] < position - slack:
            first += 1
        if last - first + 1 > most:
            best, most = first, last - first + 1
    agreeing = starts[best : best + most]
    middle = min(max(agreeing[len(agreeing) // 2] + len(key) // 2, 0), len(sources.key) - 1)
    low, high = sources.bounds[sources.context_at(middle)]
    if low == high:
        return None
    context, start = sources.character_at(min(max(agreeing[0] - slack // 2, low), high - 1))
    text = sources.text(context)
    end = min(start + length + length // 4 + 2 * slack, len(text))
    low, high = max(start - _FARTHEST, 0), min(end + _FARTHEST, len(text))
    # In whole words.
    while start > low and are_joined(text[start - 1], text[start]):
        start -= 1
    while end < high and are_joined(text[end - 1], text[end]):
        end += 1
    return Passage(context, start, end)


def _closest(span: str, quoted: _Words, inside: str, around: _Words) -> tuple[int, int, tuple[WordChange, ...]]:
    """Return the (start, end) word indexes of the closest passage, and how it differs."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.fuzz import partial_ratio_alignment

    first, last = 0, len(around.keys)
    if len(span) <= _LONG and len(span) < len(inside):
        alignment = partial_ratio_alignment(_lower(span), _lower(inside))
        if alignment:
            starts = list(accumulate(map(len, around.tokens), initial=len(inside) - len(inside.lstrip())))
            first = max(bisect_right(starts, alignment.dest_start) - 1, 0)
            last = bisect_left(starts, alignment.dest_end)
    steps, low, high = Levenshtein.opcodes(quoted.keys, around.keys[first:last]), first, last
    if steps:
        # Cut off what is outside the first and last word that are equal; put back what was cut off too early.
        head, tail = steps[0], steps[-1]
        if head.tag == "insert":
            low += head.dest_end
        elif head.tag == "delete" and around.keys[max(first - head.src_end, 0) : first] == quoted.keys[: head.src_end]:
            low -= head.src_end
        dropped = tail.src_end - tail.src_start
        if tail.tag == "insert":
            high -= tail.dest_end - tail.dest_start
        elif tail.tag == "delete" and around.keys[last : last + dropped] == quoted.keys[tail.src_start :]:
            high += dropped
        high = max(low, high)
    if (low, high) != (first, last):
        steps = Levenshtein.opcodes(quoted.keys, around.keys[low:high])
    changes = (
        WordChange(
            kind=_KINDS[step.tag],
            said=quoted.between(step.src_start, step.src_end),
            source=around.between(low + step.dest_start, low + step.dest_end),
        )
        for step in steps
    )
    return low, high, tuple(changes)


def _lower(text: str) -> str:
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def _split_words(text: str) -> _Words:
    comparable = text
    for glyph, plain in () if text.isascii() else _GLYPHS.items():
        comparable = comparable.replace(glyph, plain)
    comparable = comparable.casefold()
    if text.isascii() or not UNSPACED_CHARACTER.search(text):
        # The quicker way, as splitting at white space finds the same words.
        tokens, forms = _TOKEN.findall(text), comparable.split()
    else:
        tokens, forms = _UNSPACED_TOKEN.findall(text), _UNSPACED_TOKEN.findall(comparable)
    keys = [form.strip(_EDGES) for form in forms]
    if "" not in keys:
        return _Words(tokens, keys)
    words = _Words([], [])
    for token, key in zip(tokens, keys, strict=True):
        # A dash between two words goes with the first.
        if key or not words.tokens:
            words.tokens.append(token)
            words.keys.append(key)
        else:
            words.tokens[-1] += token
    return words
