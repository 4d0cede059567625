"""All contexts in one squeezed text: quick to search, with the way back to each original."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import NamedTuple
from unicodedata import normalize

from pytest_ragmetrics.text.characters import INVISIBLE, are_joined, is_mark
from pytest_ragmetrics.text.markup import Readable, has_markup

# Emphasis and what has no width do not part a word.
_TRANSPARENT = re.compile(f"[*_~{INVISIBLE}]+")
_NEAR = 16

_DASH = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
_WITHIN_NUMBER = ".,:/'\u2019\u2044\u00b7\u066b\u066c^"
_GROUPING = " \u00a0\u2009\u202f"

# A number that goes on to the left: 3.|5, 10:|30, .|5, a sign, and groups of three digits.
_NUMBER_BEFORE = re.compile(rf"\d[{_WITHIN_NUMBER}]$|(?:^|[^\w.])[.,]$|(?:^|[\s(\[=<>~$€£¥])[{_DASH}]$")
_NUMBER_AFTER = re.compile(rf"[{_WITHIN_NUMBER}]\d")
_GROUP_BEFORE = re.compile(rf"(?<!\d)\d{{1,3}}[{_GROUPING}]$")
_GROUP_AFTER = re.compile(rf"[{_GROUPING}]\d{{3}}(?!\d)")
_GROUP = re.compile(r"\d{3}(?!\d)")
_FIRST_GROUP = re.compile(r"(?<!\d)\d{1,3}$")

# Cutting these off turns a statement round: non-|toxic, ca|n't.
_NEGATING_PREFIX = re.compile(r"\b(?:non|un|anti|nicht|niet)[-\u2010\u2011]$", re.IGNORECASE)
_NEGATING_SUFFIX = re.compile(r"['\u2018\u2019\u02bc\uff07]t\b", re.IGNORECASE)
_SPLIT_NEGATION = re.compile(r" n['\u2018\u2019\u02bc\uff07]t\b", re.IGNORECASE)
_NEGATED_BEFORE = re.compile(r"n['\u2018\u2019\u02bc\uff07]$", re.IGNORECASE)

_BROKEN_BEFORE = re.compile(r"[^\W\d_][-\u2010\u00ad][ \t]*\r?\n[ \t>]*$")
_BROKEN_AFTER = re.compile(r"[-\u2010\u00ad][ \t]*\r?\n[ \t>]*[^\W\d_]")


def stands_alone(text: str, start: int, end: int) -> bool:
    """Tell whether ``text[start:end]`` begins and ends on word boundaries of the text.

    Scripts without spaces have no such boundaries, except inside numbers.

    >>> stands_alone("They grow faster.", 5, 9), stands_alone("They grow faster.", 6, 14)
    (True, False)
    >>> stands_alone("It cost 3.5 million.", 10, 19)
    False
    """
    return begins_word(text, start) and ends_word(text, end)


def begins_word(text: str, start: int) -> bool:
    """Tell whether a passage may begin here."""
    before = text[max(start - _NEAR, 0) : start]
    if not before:
        return True
    first = text[start]
    if before[-1] == " " and not first.isdigit() and "\n" not in before:
        return True
    left = _TRANSPARENT.sub("", before)[-1:]
    if left and are_joined(left, first):
        return False
    if first.isdigit() and _number_goes_on_before(text, start, before):
        return False
    if first in "tT" and _NEGATED_BEFORE.search(before) and ends_word(text, start + 1):
        return False
    return not (_NEGATING_PREFIX.search(before) or _BROKEN_BEFORE.search(before))


def ends_word(text: str, end: int) -> bool:
    """Tell whether a passage may end here."""
    after = text[end : end + _NEAR]
    if not after:
        return True
    last = text[end - 1]
    if after[0] == " " and not last.isdigit():
        # Tokenised text parts a negation from its verb.
        return after[1:2] not in ("n", "N") or not _SPLIT_NEGATION.match(after)
    right = _TRANSPARENT.sub("", after)[:1]
    if right and are_joined(last, right):
        return False
    if last.isdigit() and _number_goes_on_after(text, end, after):
        return False
    if last in "nN" and _NEGATING_SUFFIX.match(after):
        return False
    return not (last.isalpha() and _BROKEN_AFTER.match(after))


def _number_goes_on_before(text: str, start: int, before: str) -> bool:
    if _NUMBER_BEFORE.search(before):
        return True
    return bool(_GROUP_BEFORE.search(before) and _GROUP.match(text, start))


def _number_goes_on_after(text: str, end: int, after: str) -> bool:
    if _NUMBER_AFTER.match(after):
        return True
    return bool(_GROUP_AFTER.match(after) and _FIRST_GROUP.search(text[max(end - _NEAR, 0) : end]))


_ASCII = bytes(range(128))
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())
_FOREIGN = bytes(range(128, 256))
_LOWERED = bytes(range(256)).lower()
# Replacing one character after the other is the faster way up to about this many.
_FEW = 160
_KANA = "ぁあぃいぅうぇえぉおかきくけこさしすせそたちっつてとなにぬねのはひふへほまみむめもゃやゅゆょよらりるれろわをん"
#: Most letters of texts in other scripts are squeezed to themselves; these need not be looked at one by one.
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


class Squeezer:
    """Squeezes a text, and then any piece of it, having looked at its characters once.

    ``key`` is the whole text squeezed; ASCII characters to ``keep`` stay in it.

    >>> squeezer = Squeezer("Caf\u00e9 \u2013 \ufb01ne!", keep=b"!")
    >>> squeezer.key, squeezer.squeeze("\ufb01ne!")
    (b'cafefine!', b'fine')
    """

    __slots__ = ("_changes", "_dropped", "_table", "key")

    def __init__(self, text: str, *, keep: bytes = b"") -> None:
        self._changes: dict[str, str] = {}
        self._table: dict[int, str] = {}
        self._dropped = _DROPPED + _FOREIGN
        encoded = text.encode("utf-8", "surrogatepass")
        if not text.isascii():
            self._look_at(encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
        if self._changes:
            encoded = self._replace(text).encode("utf-8", "surrogatepass")
        self.key = encoded.translate(_LOWERED, self._dropped.translate(None, keep))

    def squeeze(self, piece: str) -> bytes:
        """Squeeze a piece of the text."""
        if self._changes:
            piece = self._replace(piece)
        return piece.encode("utf-8", "surrogatepass").translate(_LOWERED, self._dropped)

    def _look_at(self, foreign: str) -> None:
        unusual = "".join(_NOT_PLAIN.findall(foreign))
        bare = {char: _skeleton(char) for char in set(unusual)}
        self._changes = {char: letters for char, letters in bare.items() if letters not in (char, "")}
        if len(unusual) < len(foreign) or not all(letters.isascii() for letters in bare.values()):
            self._dropped = _DROPPED
            self._changes |= {char: "" for char, letters in bare.items() if not letters}
        if len(self._changes) > _FEW:
            self._table = str.maketrans(self._changes)

    def _replace(self, text: str) -> str:
        if self._table:
            return text.translate(self._table)
        for char, letters in self._changes.items():
            text = text.replace(char, letters)
        return text


def squeeze(text: str) -> bytes:
    """Return the letters and digits of a text in UTF-8: caseless, without marks, compatibility forms resolved.

    >>> squeeze("Caf\u00e9 \u2013 \ufb01ne!") == squeeze("CAFE\u0301 FINE")
    True
    """
    return text.encode().translate(_LOWERED, _DROPPED) if text.isascii() else Squeezer(text).key


@lru_cache(maxsize=65536)
def squeezed_length(char: str) -> int:
    """Return how many bytes squeezing leaves of a character."""
    return len(squeeze(char))


@lru_cache(maxsize=65536)
def _skeleton(char: str) -> str:
    decomposed = normalize("NFKD", normalize("NFKD", char).casefold())
    return "".join(part for part in decomposed if part.isalnum() and part not in _NO_LETTERS)


#: Length in bytes of the pieces that are indexed: those that an unsigned 64-bit number holds.
GRAM = 8
# Stretches of a needle that are tried before giving up.
_STRETCHES = 8
_MOST_SIGHTINGS = 256


class GramIndex:
    """Where the pieces of a byte string stand, taken side by side.

    Wherever a needle stands, any GRAM positions of it in a row include one that an indexed piece begins at. So the
    pieces of the needle at these positions tell all its places, unless one of them occurs too often.

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
        for stretch in range(0, min(len(needle) - 2 * GRAM + 1, _STRETCHES * GRAM), GRAM):
            places = self._places(needle, stretch)
            if places is not None:
                inside = (place for place in sorted(places) if start <= place <= end - len(needle))
                return next((place for place in inside if self._text.startswith(needle, place)), -1)
        return None

    def sightings(self, needle: bytes) -> list[int]:
        """Return where a needle would start, judging by each of its pieces that is indexed."""
        found: list[int] = []
        for offset in range(len(needle) - GRAM + 1):
            gram = _number(needle, offset)
            first = self._first.get(gram)
            if first is not None:
                found += {first * GRAM - offset, self._last[gram] * GRAM - offset}
            if len(found) >= _MOST_SIGHTINGS:
                break
        return found

    def _places(self, needle: bytes, stretch: int) -> list[int] | None:
        """Return where a needle may start, judging by one stretch; ``None`` when a piece of it occurs repeatedly."""
        places = []
        for offset in range(stretch, stretch + GRAM):
            gram = _number(needle, offset)
            first = self._first.get(gram)
            if first is None:
                continue
            if first != self._last[gram]:
                return None
            places.append(first * GRAM - offset)
        return places


def _number(text: bytes, offset: int) -> int:
    return int.from_bytes(text[offset : offset + GRAM], sys.byteorder)


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
_HAYSTACK_MOST_SIGHTINGS = 64
_MOST_REPEATS = 4


class Passage(NamedTuple):
    """A piece of a context; offsets are those of the context as a reader sees it."""

    context: int
    start: int
    end: int


class _HaystackBlock(NamedTuple):
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
        offsets = range(0, len(key) - size + 1, max(size, len(key) // _HAYSTACK_MOST_SIGHTINGS))
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

    def _block(self, position: int) -> _HaystackBlock:
        context = self.context_at(position)
        text, (start, end) = self._texts[context], self.bounds(context)
        if len(text) <= _SMALL:
            return _HaystackBlock(context, 0, len(text), start, end - start)
        lengths = self._lengths[context]
        if lengths is None:
            pieces = (text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK))
            lengths = [len(self._squeezer.squeeze(piece)) for piece in pieces]
            lengths = self._lengths[context] = list(accumulate(lengths, initial=0))
        number = bisect_right(lengths, position - start) - 1
        low, before = number * _BLOCK, lengths[number]
        return _HaystackBlock(context, low, min(low + _BLOCK, len(text)), start + before, lengths[number + 1] - before)

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
