"""Squeezing a text to its bare letters and digits, which is quick to make and to search.

Whatever folding overlooks (case, white space, punctuation, marks on letters, layout) is gone from a squeezed
text, so a quotation can only stand where its squeezed form does. The converse does not hold: what is found here
must be compared in full. Every character is squeezed by itself, so offsets map back by counting.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

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
