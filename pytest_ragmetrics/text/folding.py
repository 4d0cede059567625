"""Comparing a piece of a quotation with a passage: what they differ in, and whether that may be overlooked.

:func:`fold` and :func:`agree` compare whole texts up to a :class:`Tolerance`; :class:`PieceComparison` compares a piece
of a quotation with the passage of a context that the search found for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from functools import lru_cache, partial
from unicodedata import category, normalize

from pytest_ragmetrics.text.characters import DASHES, INVISIBLE, UNSPACED, is_mark, is_word
from pytest_ragmetrics.text.markup import as_readable
from pytest_ragmetrics.text.search import comparison_key, key_length


class Tolerance(Flag):
    """What had to be overlooked before a quotation agreed with its source; ``EXACT`` is nothing at all."""

    EXACT = 0
    LAYOUT = auto()
    CASE = auto()
    TYPOGRAPHY = auto()
    PUNCTUATION = auto()
    ELLIPSIS = auto()
    BRACKET = auto()
    CHUNKS = auto()


#: What a verbatim quotation may differ in.
FOLDS = Tolerance.LAYOUT | Tolerance.CASE | Tolerance.TYPOGRAPHY
_PHRASES = {
    "after folding": (Tolerance.LAYOUT, Tolerance.CASE, Tolerance.TYPOGRAPHY),
    "allowing for": (Tolerance.PUNCTUATION, Tolerance.ELLIPSIS, Tolerance.BRACKET),
}
_QUOTES = "'\"`\u00ab\u00bb\u2018-\u201f\u2032-\u2037\u2039\u203a\u275b-\u275e\u300c-\u300f\u301d-\u301f"
_QUOTES += "\uff02\uff07\uff62\uff63"
_APOSTROPHES = "\u02b9\u02bb\u02bc\u02bd\u02ee\u05f3\u05f4\u055a\ua78c\u00b4"
_INNER = frozenset("'\u2018\u2019\u02b9\u02bb\u02bc\u02bd\u02ee\u05f3\u055a\ua78c\u00b4\u2032")
_PUNCTUATION = (
    "!-/:-@\\[-`{-~\u00a1-\u00bf\u0387\u055a-\u055f\u0589\u05be\u05c0\u05c3\u060c\u061b\u061f\u066a-\u066d\u06d4"
    "\u0964\u0965\u104a\u104b\u1362-\u1368\u17d4-\u17d6\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u3001-\u3003\u3008-\u301f\u30fb"
)
# Written for a hyphen at the end of a line, which belongs to the word or does not; taken out of the texts themselves.
_MAYBE_HYPHEN = "\ufdd0"
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-\u2010\u00ad][ \t]*\r?\n[ \t>]*(?=[^\W\d_])")
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_REOPENED = re.compile(rf"(\n[ \t\r]*\n[ \t>\u3000]*)[{_QUOTES}]+")
# Stars that multiply or are alone remain, and so do underscores inside a name.
_STARS = re.compile(r"(?<=[^\s\d*])\*+(?!\*)|(?<=\d)\*+(?![\d*])|(?<!\S)\*+(?=[^\s*])")
_UNDERSCORES = re.compile(r"__+|(?<![^\W_])_|_(?![^\W_])|~~+")
_SPACE_IN_UNSPACED = re.compile(rf" (?:(?=[{UNSPACED}\u3001-\u301f])|(?<=[{UNSPACED}\u3001-\u301f] ))")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
# NFKC turns 10\u00b3 into 103 and 1\u00bd into 11/2, which are other numbers.
_RAISED = re.compile(
    "(?<=\\d)(?=[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089\u2150-\u215f\u2189\u2460-\u249b])"
)
_ESCAPED_QUOTE = re.compile(rf"\\+(?=[{_QUOTES}])")
_QUOTE = re.compile(f" ?[{_QUOTES}{_APOSTROPHES}](?:[{_QUOTES}{_APOSTROPHES} ]*[{_QUOTES}{_APOSTROPHES}])? ?")
_QUOTE_GLYPH = re.compile(f"[{_QUOTES}{_APOSTROPHES}]")
_DASH = re.compile(
    r" ?[-\u2010-\u2015\u2043\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d](?:[ ]?[-\u2010-\u2015\u2212\u2e3a\u2e3b])* ?"
)
_DOTS = re.compile(r" ?(?:[\u2026\u22ef]|\.)(?: ?(?:\.|[\u2026\u22ef]))* ?")
_SPLIT_CONTRACTION = re.compile(r" (?=(?:n't|'(?:s|re|ve|ll|d|m))\b)|(?<=\b[cdjlmnst]') (?=\w)", re.IGNORECASE)
_EDGE_QUOTE = re.compile(r"'(?:(?!\w)|(?<!\w'))")
# The space in "in 1990, 20 people" keeps two numbers apart.
_LOOSE_PUNCTUATION = re.compile(
    rf" (?=[{_PUNCTUATION}])(?!(?<=\d )[.,:/]\d)|(?<=[{_PUNCTUATION}]) (?!\d)|(?<=[{_PUNCTUATION}])(?<![.,:/]) (?=\d)"
)
_SIGN = re.compile(rf"(?<!\w)[{DASHES}]?[.,]?$")
# Punctuation to Unicode, but part of what is said.
_MEANINGFUL = frozenset("%&#@\u00a7\u2030\u2031/\\\uff05\uff06\uff03\uff20\u066a")
_ELLIPSIS = re.compile(r"[\u2026\u22ef]|\.[ \u00a0]?\.")
_SPACES = " \u00a0\u2009\u202f"
# How far from the core its surroundings are looked for.
_NEAR = 8
# Case comes first: folding it also resolves ligatures, which are typography.
_FLAGS = (Tolerance.CASE, Tolerance.LAYOUT, Tolerance.TYPOGRAPHY)


@lru_cache(maxsize=256)
def describe(needed: Tolerance) -> str:
    """Say in a few words how a quotation was found.

    >>> describe(Tolerance.EXACT)
    'found, exact'
    >>> describe(Tolerance.CASE | Tolerance.TYPOGRAPHY)
    'found after folding case and typography'
    >>> describe(Tolerance.ELLIPSIS | Tolerance.CHUNKS)
    'found across adjoining chunks, allowing for ellipsis'
    """
    if not needed:
        return "found, exact"
    parts = ["across adjoining chunks"] if needed & Tolerance.CHUNKS else []
    for phrase, flags in _PHRASES.items():
        if words := [str(flag.name).lower() for flag in flags if needed & flag]:
            last = words.pop()
            parts.append(f"{phrase} {', '.join(words)} and {last}" if words else f"{phrase} {last}")
    return f"found {', '.join(parts)}"


def fold(text: str, tolerance: Tolerance = FOLDS) -> str:
    r"""Return a text without what a tolerance overlooks; two texts that agree have the same folded form.

    ``LAYOUT`` folds white space, Markdown emphasis and links, HTML entities and tags, the markers of block quotes and
    words broken at the end of a line; ``TYPOGRAPHY`` folds compatibility characters, the glyphs of quotation marks,
    apostrophes, dashes and ellipses, and characters without width; ``CASE`` folds case; ``PUNCTUATION`` folds
    quotation marks and the spaces around punctuation.

    >>> fold("„So – ﬁnally“,\nhe **said**")
    '"so-finally", he said'
    """
    if not tolerance:
        return text
    folded = _fold(text, tolerance, reopened=False)
    return folded.replace(_MAYBE_HYPHEN, "") if _MAYBE_HYPHEN in folded else folded


def agree(one: str, other: str, tolerance: Tolerance) -> bool:
    r"""Tell whether two texts are the same apart from what a tolerance overlooks.

    A hyphen at the end of a line may belong to the word or not.

    >>> agree("a well-\nknown rule", "a well-known rule", FOLDS), agree("a rec-\nord", "a record", FOLDS)
    (True, True)
    >>> agree("a battle-field", "a battle field", FOLDS)
    False
    """
    if not tolerance:
        return one == other
    if _same(_fold(one, tolerance, reopened=False), _fold(other, tolerance, reopened=False)):
        return True
    # A paragraph inside a quotation may begin with its mark again.
    if not tolerance & Tolerance.LAYOUT or ("\n" not in one and "\n" not in other):
        return False
    return _same(_fold(one, tolerance, reopened=True), _fold(other, tolerance, reopened=True))


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    if _MAYBE_HYPHEN not in one:
        one, other = other, one
    return _MAYBE_HYPHEN in one and _same_with_hyphens(one, other)


def _same_with_hyphens(broken: str, other: str) -> bool:
    """Compare letter by letter where a hyphen is in doubt, and decide the doubt by what the other side has."""
    pieces = broken.split(_MAYBE_HYPHEN)
    position = len(pieces[0])
    if not other.startswith(pieces[0]):
        return False
    for piece in pieces[1:]:
        if other[position : position + 1] in ("-", _MAYBE_HYPHEN):
            position += 1
        if not other.startswith(piece, position):
            return False
        position += len(piece)
    return position == len(other)


def _fold(text: str, tolerance: Tolerance, *, reopened: bool) -> str:
    typography, layout = bool(tolerance & Tolerance.TYPOGRAPHY), bool(tolerance & Tolerance.LAYOUT)
    if _MAYBE_HYPHEN in text:
        text = text.replace(_MAYBE_HYPHEN, "")
    if layout:
        text = _fold_layout(as_readable(text), reopened=reopened)
    if typography and not text.isascii():
        text = normalize("NFKC", _RAISED.sub("^", _INVISIBLE.sub("", text))).replace("\u2044", "/")
    if tolerance & Tolerance.CASE:
        # The dot that the capital of the Turkish i leaves behind is no letter.
        text = text.casefold().replace("i\u0307", "i")
        text = normalize("NFKC", text) if typography and not text.isascii() else text
    if layout:
        text = " ".join(text.split())
    if tolerance & Tolerance.PUNCTUATION:
        text = _fold_punctuation(text)
    if typography:
        text = _fold_marks(text)
    if layout and not text.isascii() and " " in text:
        text = _SPACE_IN_UNSPACED.sub("", text)
    return text


def _fold_layout(text: str, *, reopened: bool) -> str:
    if ">" in text:
        text = _QUOTED_LINE.sub("", text)
    if "\n" in text:
        text = _BROKEN_WORD.sub(_MAYBE_HYPHEN, text)
        if reopened:
            text = _REOPENED.sub(r"\1", text)
    if "*" in text:
        text = _STARS.sub("", text)
    if "_" in text or "~" in text:
        text = _UNDERSCORES.sub("", text)
    if "`" in text:
        text = text.replace("``", '"').replace("`", "")
    return text


def _fold_marks(text: str) -> str:
    if "\\" in text:
        text = _ESCAPED_QUOTE.sub("", text)
    text = _QUOTE.sub(_quote, text)
    text = _DASH.sub("-", text)
    if ".." in text or ". ." in text or "\u2026" in text or "\u22ef" in text:
        text = _DOTS.sub(lambda run: run[0] if run[0].strip() == "." else "...", text)
    return text


def _quote(run: re.Match[str]) -> str:
    """Tell an apostrophe inside a word from a quotation mark, which may have spaces on its inner side too."""
    text, (start, end) = run.string, run.span()
    if run[0] in _INNER and start > 0 and end < len(text) and is_word(text[start - 1]) and is_word(text[end]):
        return "'"
    return '"'


def _fold_punctuation(text: str) -> str:
    text = _SPLIT_CONTRACTION.sub("", _QUOTE_GLYPH.sub("'", text))
    text = " ".join(_EDGE_QUOTE.sub(" ", text).split())
    return _LOOSE_PUNCTUATION.sub("", text)


@dataclass(frozen=True, slots=True)
class QuotePiece:
    """A stretch of a quotation: its ``core`` from the first letter to the last, and what is outside.

    A sign or a decimal point before a number is part of the core; ``sign`` is its length. ``key`` is the comparison key
    of the core.
    """

    lead: str
    core: str
    trail: str
    key: bytes
    sign: int = 0


def cut_piece(text: str) -> QuotePiece | None:
    """Cut a text into core and surroundings; ``None`` when it has neither a letter nor a digit.

    >>> cut_piece("(-5 degrees),")
    QuotePiece(lead='(', core='-5 degrees', trail='),', key=b'5degrees', sign=1)
    """
    key = comparison_key(text)
    if not key:
        return None
    start, end = 0, len(text)
    while not key_length(text[start]):
        start += 1
    while not key_length(text[end - 1]):
        end -= 1
    while end < len(text) and is_mark(text[end]):
        end += 1
    sign = 0
    if text[start].isdigit() and (found := _SIGN.search(text, max(start - 3, 0), start)):
        sign = len(found[0])
    return QuotePiece(text[: start - sign], text[start - sign : end], text[end:], key, sign)


class PieceComparison:
    """What a quotation may differ in, and whether a piece of it agrees with a passage."""

    def __init__(self, *, casefold: bool, punctuation: bool) -> None:
        self._casefold = casefold
        self._strict = FOLDS if casefold else FOLDS & ~Tolerance.CASE
        self._loose = self._strict | Tolerance.PUNCTUATION if punctuation else None

    def whole(self, piece: QuotePiece, text: str, start: int, end: int) -> Tolerance | None:
        """Return what must be overlooked for a whole quotation to be ``text[start:end]``; ``None`` if it is not.

        What is outside the core must be there in the text too, or be punctuation that an editor may change.
        """
        start -= piece.sign
        passage = text[max(start, 0) : end]
        if text.startswith(piece.trail, end) and text.endswith(piece.lead, 0, max(start, 0)):
            difference = self._plain_difference(piece.core, passage)
            if difference is not None:
                return difference
        if not _has_sign(piece, text, start):
            return None

        def agrees(tolerance: Tolerance) -> bool:
            return agree(piece.core, passage, tolerance) and _edges_agree(piece, text, start, end, tolerance)

        if agrees(self._strict):
            return _least(self._strict, agrees)
        if self._loose is None or not _edges_may_differ(piece, text, start, end):
            return None
        breaks_off = _ELLIPSIS.search(piece.lead) or _ELLIPSIS.search(piece.trail)
        difference = self._core(piece.core, passage)
        known = Tolerance.ELLIPSIS if breaks_off else Tolerance.PUNCTUATION
        return None if difference is None else difference | known

    def part(self, piece: QuotePiece, text: str, start: int, end: int) -> Tolerance | None:
        """Return what must be overlooked for a part of a quotation, which may break off before any punctuation."""
        start -= piece.sign
        if not _has_sign(piece, text, start) or not _edges_may_differ(piece, text, start, end):
            return None
        return self._core(piece.core, text[start:end])

    def _plain_difference(self, core: str, passage: str) -> Tolerance | None:
        """Return what differs when it is white space and case at most, which is the usual case and quick to see."""
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

    def _core(self, core: str, passage: str) -> Tolerance | None:
        difference = self._plain_difference(core, passage)
        if difference is not None:
            return difference
        for limit in (self._strict, self._loose):
            if limit is not None and agree(core, passage, limit):
                return _least(limit, partial(agree, core, passage))
        return None


def _least(limit: Tolerance, agrees: Callable[[Tolerance], bool]) -> Tolerance:
    """Return what is left of a sufficient tolerance without what need not be overlooked."""
    for flag in _FLAGS:
        if limit & flag and agrees(limit & ~flag):
            limit &= ~flag
    return limit


def _has_sign(piece: QuotePiece, text: str, start: int) -> bool:
    if not piece.sign:
        return True
    return start >= 0 and (text[start] == piece.core[0] or (text[start] in DASHES and piece.core[0] in DASHES))


def _edges_agree(piece: QuotePiece, text: str, start: int, end: int, tolerance: Tolerance) -> bool:
    # The letter keeps the white space next to it from being stripped.
    before = text[max(start - len(piece.lead) - _NEAR, 0) : start]
    after = text[end : end + len(piece.trail) + _NEAR]
    if piece.lead and not fold(f"{before}x", tolerance).endswith(fold(f"{piece.lead}x", tolerance)):
        return False
    return not piece.trail or fold(f"x{after}", tolerance).startswith(fold(f"x{piece.trail}", tolerance))


def _edges_may_differ(piece: QuotePiece, text: str, start: int, end: int) -> bool:
    """Tell whether all that is outside the core is punctuation, or is in the text too."""
    signs = "".join(filter(_means_something, piece.lead))
    if signs and not text[max(start - len(piece.lead) - _NEAR, 0) : start].rstrip(_SPACES).endswith(signs):
        return False
    signs = "".join(filter(_means_something, piece.trail))
    return not signs or text[end : end + len(piece.trail) + _NEAR].lstrip(_SPACES).startswith(signs)


def _means_something(char: str) -> bool:
    return char in _MEANINGFUL or (category(char)[0] == "S" and char not in "`~^")
