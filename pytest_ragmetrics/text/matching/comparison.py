"""Holding a piece of a quotation against a passage that was found for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import category

from pytest_ragmetrics.text.folding import agree, fold
from pytest_ragmetrics.text.matching.squeezing import squeeze, squeezed_length
from pytest_ragmetrics.text.scripts import is_mark
from pytest_ragmetrics.text.tolerances import FOLDS, Tolerance

_SIGN = re.compile(r"(?<!\w)[-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d]?[.,]?$")
_DASHES = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
# Punctuation to Unicode, but part of what is said.
_MEANINGFUL = frozenset("%&#@\u00a7\u2030\u2031/\\\uff05\uff06\uff03\uff20\u066a")
_ELLIPSIS = re.compile(r"[\u2026\u22ef]|\.[ \u00a0]?\.")
_SPACES = " \u00a0\u2009\u202f"
_NEAR = 8
# Case comes first: folding it also resolves ligatures, which are typography.
_FLAGS = (Tolerance.CASE, Tolerance.LAYOUT, Tolerance.TYPOGRAPHY)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a quotation: its ``core`` from the first letter to the last, and what stands outside.

    A sign or a decimal point before a number is part of the core; ``sign`` is its length. ``key`` is the squeezed core.
    """

    lead: str
    core: str
    trail: str
    key: bytes
    sign: int = 0


def cut_piece(text: str) -> Piece | None:
    """Cut a text into core and surroundings; ``None`` when it has neither a letter nor a digit.

    >>> cut_piece("(-5 degrees),")
    Piece(lead='(', core='-5 degrees', trail='),', key=b'5degrees', sign=1)
    """
    key = squeeze(text)
    if not key:
        return None
    start, end = 0, len(text)
    while not squeezed_length(text[start]):
        start += 1
    while not squeezed_length(text[end - 1]):
        end -= 1
    while end < len(text) and is_mark(text[end]):
        end += 1
    sign = 0
    if text[start].isdigit() and (found := _SIGN.search(text, max(start - 3, 0), start)):
        sign = len(found[0])
    return Piece(text[: start - sign], text[start - sign : end], text[end:], key, sign)


class Comparison:
    """What a quotation may differ in, and whether a piece of it agrees with a passage."""

    def __init__(self, *, casefold: bool, punctuation: bool) -> None:
        self._strict = FOLDS if casefold else FOLDS & ~Tolerance.CASE
        self._loose = self._strict | Tolerance.PUNCTUATION
        self._casefold = casefold
        self._punctuation = punctuation

    def whole(self, piece: Piece, text: str, start: int, end: int) -> Tolerance | None:
        """Return what must be overlooked for a whole quotation to be ``text[start:end]``; ``None`` if it is not.

        What stands outside the core must stand there in the text too, or be punctuation that an editor may change.
        """
        start -= piece.sign
        passage = text[max(start, 0) : end]
        if text.startswith(piece.trail, end) and text.endswith(piece.lead, 0, max(start, 0)):
            difference = self._plain_difference(piece.core, passage)
            if difference is not None:
                return difference
        if not _has_sign(piece, text, start):
            return None
        if agree(piece.core, passage, self._strict) and _edges_agree(piece, text, start, end, self._strict):
            return self._least(piece, text, start, end, self._strict)
        if not self._punctuation or not _edges_may_differ(piece, text, start, end):
            return None
        breaks_off = _ELLIPSIS.search(piece.lead) or _ELLIPSIS.search(piece.trail)
        return self._core(piece.core, passage, Tolerance.ELLIPSIS if breaks_off else Tolerance.PUNCTUATION)

    def part(self, piece: Piece, text: str, start: int, end: int) -> Tolerance | None:
        """Return what must be overlooked for a part of a quotation, which may break off before any punctuation."""
        start -= piece.sign
        if not _has_sign(piece, text, start) or not _edges_may_differ(piece, text, start, end):
            return None
        return self._core(piece.core, text[start:end], Tolerance.EXACT)

    def _plain_difference(self, core: str, passage: str) -> Tolerance | None:
        """Return what differs when it is white space and case at most, which is quick to see and most often so."""
        if core == passage:
            return Tolerance.EXACT
        if self._casefold and core.lower() == passage.lower():
            return Tolerance.CASE
        core, passage = " ".join(core.split()), " ".join(passage.split())
        if core == passage:
            return Tolerance.LAYOUT
        if self._casefold and core.lower() == passage.lower():
            return Tolerance.LAYOUT | Tolerance.CASE
        return None

    def _core(self, core: str, passage: str, known: Tolerance) -> Tolerance | None:
        difference = self._plain_difference(core, passage)
        if difference is not None:
            return difference | known
        limit = self._strict
        if not agree(core, passage, limit):
            limit = self._loose
            if not self._punctuation or not agree(core, passage, limit):
                return None
        for flag in _FLAGS:
            if limit & flag and agree(core, passage, limit & ~flag):
                limit &= ~flag
        return limit | known

    def _least(self, piece: Piece, text: str, start: int, end: int, limit: Tolerance) -> Tolerance:
        for flag in _FLAGS:
            fewer = limit & ~flag
            if (
                limit & flag
                and agree(piece.core, text[start:end], fewer)
                and _edges_agree(piece, text, start, end, fewer)
            ):
                limit = fewer
        return limit


def _has_sign(piece: Piece, text: str, start: int) -> bool:
    if not piece.sign:
        return True
    return start >= 0 and (text[start] == piece.core[0] or (text[start] in _DASHES and piece.core[0] in _DASHES))


def _edges_agree(piece: Piece, text: str, start: int, end: int, tolerance: Tolerance) -> bool:
    # The letter keeps the white space next to it from being stripped.
    before = text[max(start - len(piece.lead) - _NEAR, 0) : start]
    after = text[end : end + len(piece.trail) + _NEAR]
    if piece.lead and not fold(f"{before}x", tolerance).endswith(fold(f"{piece.lead}x", tolerance)):
        return False
    return not piece.trail or fold(f"x{after}", tolerance).startswith(fold(f"x{piece.trail}", tolerance))


def _edges_may_differ(piece: Piece, text: str, start: int, end: int) -> bool:
    """Tell whether all that stands outside the core is punctuation, or stands in the text as well."""
    signs = "".join(char for char in piece.lead if _means_something(char))
    if signs and not text[max(start - len(piece.lead) - _NEAR, 0) : start].rstrip(_SPACES).endswith(signs):
        return False
    signs = "".join(char for char in piece.trail if _means_something(char))
    return not signs or text[end : end + len(piece.trail) + _NEAR].lstrip(_SPACES).startswith(signs)


def _means_something(char: str) -> bool:
    if char.isspace() or char in "`~^":
        return False
    return char in _MEANINGFUL or category(char)[0] == "S"
