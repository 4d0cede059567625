"""Comparing a piece of a quotation with a passage: what they differ in, and whether that may be overlooked.

:func:`fold` and :func:`agree` compare whole texts up to a :class:`Tolerance`; :class:`PieceComparison` compares a piece
of a quotation with the passage of a context that the search found for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from unicodedata import category, normalize

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.markup import as_readable
from pytest_ragmetrics.text.quotes.search import comparison_key, key_length
from pytest_ragmetrics.text.sentences import ENDS, split_sentences
from pytest_ragmetrics.text.unicode import (
    DENIALS,
    UNSPACED,
    VOWEL_SIGNS,
    are_joined,
    is_mark,
    is_unspaced,
    is_word,
)
from pytest_ragmetrics.text.words import LINE_END_HYPHEN, fold_word, is_function_word


class Tolerance:
    """What had to be overlooked before a quotation agreed with its source, a bit each; ``EXACT`` is nothing at all.

    They are plain numbers: to combine the members of an enumeration takes thirty times longer.
    """

    EXACT, LAYOUT, CASE, TYPOGRAPHY, PUNCTUATION, ELLIPSIS, BRACKET, CHUNKS = 0, 1, 2, 4, 8, 16, 32, 64


#: What a verbatim quotation may differ in.
FOLDS = Tolerance.LAYOUT | Tolerance.CASE | Tolerance.TYPOGRAPHY
_PHRASES = {
    "after folding": {"layout": Tolerance.LAYOUT, "case": Tolerance.CASE, "typography": Tolerance.TYPOGRAPHY},
    "allowing for": {
        "punctuation": Tolerance.PUNCTUATION,
        "ellipsis": Tolerance.ELLIPSIS,
        "bracket": Tolerance.BRACKET,
    },
}
_QUOTES = f"'\"`{unicode.QUOTES}{unicode.PRIMES}"
_ANY_QUOTE = f"{_QUOTES}{unicode.APOSTROPHES}"
_INNER = frozenset(f"'{unicode.APOSTROPHES}{unicode.GERESH}{unicode.PRIME}")
# Written for a hyphen at the end of a line, which belongs to the word or does not; taken out of the texts themselves.
_MAYBE_HYPHEN = "\ufdd0"
_BROKEN_WORD = lazily(rf"(?<=[^\W\d_]){LINE_END_HYPHEN}(?=[^\W\d_])")
_QUOTED_LINE = lazily(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_REOPENED = lazily(rf"(\n[ \t\r]*\n[ \t>{unicode.WIDE_SPACE}]*)[{_QUOTES}]+")
# Stars that multiply or are alone remain, and so do underscores inside a name.
# Emphasis, not a product: a*b, 2*z.
_STARS = lazily(
    r"(?<=[^\s\d*])(?!(?<=[\s(=+-]\w)\*\w(?![\w*]))\*+(?!\*)|(?<=\d)(?:\*+(?![\w*])|\*\*+(?![\d*]))|(?<!\S)\*+(?=[^\s*])"
)
_UNDERSCORES = lazily(r"__+|(?<![^\W_])_|_(?![^\W_])|~~+")
_SPACE_IN_UNSPACED = lazily(
    rf" (?:(?=[{UNSPACED}{unicode.CJK_PUNCTUATION}])|(?<=[{UNSPACED}{unicode.CJK_PUNCTUATION}] ))"
)
_INVISIBLE = lazily(f"[{unicode.INVISIBLE}]+")
# NFKC turns 10\u00b3 into 103 and 1\u00bd into 11/2, which are other numbers.
_RAISED = lazily(
    "([\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089\u2150-\u215f\u2189\u2460-\u249b])(?<=\\d.)"
)
# Vowel signs of Arabic and Hebrew, and the dots of the Russian letter, are left out as a rule.
_VOWEL_SIGN = lazily(f"[{VOWEL_SIGNS}]+")
_ESCAPED_QUOTE = lazily(rf"\\+(?=[{_QUOTES}])")
_QUOTE = lazily(f" ?[{_ANY_QUOTE}](?:[{_ANY_QUOTE} ]*[{_ANY_QUOTE}])? ?")
_QUOTE_GLYPH = lazily(f"[{_ANY_QUOTE}]")
_DASH = lazily(rf" ?[-{unicode.ALL_DASHES}](?: ?[-{unicode.ALL_DASHES}])* ?")
_DOTS = lazily(rf" ?[.{unicode.ELLIPSES}](?: ?[.{unicode.ELLIPSES}])* ?")
_SPLIT_CONTRACTION = lazily(r" (?=(?:n't|'(?:s|re|ve|ll|d|m))\b)|(?<=\b[cdjlmnst]') (?=\w)", re.IGNORECASE)
_CASED = "a-zA-Z\u00c0-\u024f\u0370-\u03ff\u0400-\u052f"
# Letters that dots join: U.S., z.B., Ph.D.; and single letters that dots or spaces part: J. R., z. B.
_INITIALS = lazily(rf"(?<!\w)[{_CASED}]{{1,2}}(?:\.[{_CASED}]{{1,2}})+(?=\.|(?<=\.\w)(?!\w))")
_SPACED_INITIALS = lazily(rf"(?<!\w)[{_CASED}](?:(?:\. ?| )[{_CASED}](?!\w))+")
# Numbers that commas list, or a day and a year: not 1,000 and not 1,5.
_GROUPS = r"\d{1,3}(?:,\d{3})+(?![\d,])|\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])"
_LISTED = lazily(rf"(?<![\d.,])(?:(?!{_GROUPS})\d+(?:,\d+){{2,}}(?![\d.])|\d{{1,2}},[12]\d{{3}}(?![\d.,]))")
_GROUP_BEFORE, _GROUP_AFTER = lazily(r"(?<!\d)\d{1,3}$"), lazily(r"\d{3}(?!\d)")
_SEPARATOR = lazily(r"[\W_]+")
_PRIMES = f"{unicode.PRIME}{unicode.DOUBLE_PRIME}"
_MEASURED = lazily(rf"\d[{_PRIMES}]*$")
_LONG_DASHES = frozenset(unicode.LONG_DASHES)
_HYPHENS = frozenset(f"-{unicode.ALL_DASHES}") - _LONG_DASHES
# Capitals that stand for several letters, and letters without case (Old Italic) in their place.
_CAPITALS = str.maketrans("I\u0391\u0395\u0397\u0399\u039f\u03a5\u03a9", "".join(map(chr, range(0x10300, 0x10308))))
_GREEK = [chr(code) for code in (*range(0x370, 0x400), *range(0x1F00, 0x2000))]
_LETTERS_OF = {
    chr(stand_in): {char for char in _GREEK if normalize("NFD", char)[0] == chr(capital).casefold()}
    for capital, stand_in in _CAPITALS.items()
} | {chr(_CAPITALS[ord("I")]): {"i", "\u0131"}}
_OF_SOME_CAPITAL = lazily("[\u0131\u0386-\u0390\u03aa-\u03b0\u03ca-\u03ce\u1f00-\u1fff]")
_SIGN = lazily(rf"(?<!\w)[-{unicode.DASHES}]?[.,]?$")
# Punctuation to Unicode, but part of what is said.
_MEANINGFUL = frozenset(f"%&#@\u00a7\u2030\u2031/\\\uff06\uff03\uff20{unicode.PERCENTS}")
# Symbols to Unicode that say nothing: ornaments, pictures, marks of rights; not those for no, a sum or a direction.
_ORNAMENT = lazily(
    rf"(?![{DENIALS}])[`|{unicode.APOSTROPHES}\u00a8\u00a9\u00ae\u00af\u00b8\u02c2-\u02df\u2300-\u23ff\u2500-\u263f\u2641\u2643-\u266c\u2670-\u2793\u27b0"
    "\u2b1b-\u2bff\u3004\u3012\u3013\u3020\u3036\ufffd\U0001f000-\U0001f7ef\U0001f900-\U0001faff]"
)
_ELLIPSIS = lazily(rf"[{unicode.ELLIPSES}]|\.[ {unicode.NO_BREAK_SPACE}]?\.")
_EDITED = lazily(rf"{_ELLIPSIS.pattern}|[\[\]{unicode.LEFT_SQUARE}{unicode.RIGHT_SQUARE}]")
_SPACES = f" {unicode.THIN_SPACES}"
# How far from the core its surroundings are looked for.
_NEAR = 8
# Where a sentence or a block may end: stops of all scripts, the border of a cell, what breaks a line.
_BREAK = lazily(f"\r\n|[\n{unicode.LINE_BREAKS}]")
_MAY_PART = lazily(rf"{_BREAK.pattern}|[;|\t{unicode.GREEK_QUESTION_MARK}{ENDS}]")
# Emphasis, apostrophes and what has no width do not part two words for whoever reads a quotation.
_UNPARTING = lazily(rf"[{unicode.INVISIBLE}*_~`'{unicode.APOSTROPHES}{unicode.GERESH}{unicode.GERSHAYIM}]")
_ENCLOSING = lazily(rf"[{_QUOTES}()\[\]*_~]|{_BREAK.pattern}")
# What a line has before an item of a list, or a line before it at its end, and what a heading begins with.
_NEW_BLOCK = lazily(rf"[:{unicode.COLONS}][^\n]*\n|\n[\s>]*[^\w\s>]{{1,6}}\s")
_HEADING = lazily(r"[ \t>]*(?:#{1,6}|={1,6})[ \t]")
# How far around a gap sentences and lines are read, and how long a line is that was broken to fit a page.
_AROUND, _WRAPPED = 300, 40
_UNIT = lazily(r"(?<=\d)[\s-]?([^\W\d_]{2,4})(?![^\W_])")
# Two units, capitals first, that differ in one letter; not KG and kg, kw and kW, which people write either way.
_OTHER_UNIT = lazily(r"M(\w*[A-Z\u03a9\u2126]\w*) m\1|([kKMGTPE])B(\w*) \2b\3|([munp\u00b5\u03bc])(?:S \4s|M \4m)")
# Case comes first: folding it also resolves ligatures, which are typography. To fold that also resolves spaces.
_FLAGS = (Tolerance.CASE, Tolerance.TYPOGRAPHY, Tolerance.LAYOUT)


@lru_cache(maxsize=256)
def describe(needed: int) -> str:
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
        if words := [word for word, flag in flags.items() if needed & flag]:
            last = words.pop()
            parts.append(f"{phrase} {', '.join(words)} and {last}" if words else f"{phrase} {last}")
    return f"found {', '.join(parts)}"


def fold(text: str, tolerance: int = FOLDS) -> str:
    r"""Return a text without what a tolerance overlooks; two texts that agree have the same folded form.

    ``LAYOUT`` folds white space, Markdown emphasis and links, HTML entities and tags, the markers of block quotes and
    words broken at the end of a line; ``TYPOGRAPHY`` folds compatibility characters, the glyphs of quotation marks,
    apostrophes, dashes and ellipses, and characters without width; ``CASE`` folds case; ``PUNCTUATION`` folds
    what is between words, but for the signs that change a word or a number.

    >>> fold("„So – ﬁnally“,\nhe **said**")
    '"so-finally", he said'
    """
    if not tolerance:
        return text
    folded = _fold(text, tolerance)
    return folded.replace(_MAYBE_HYPHEN, "") if _MAYBE_HYPHEN in folded else folded


def agree(one: str, other: str, tolerance: int) -> bool:
    r"""Tell whether two texts are the same apart from what a tolerance overlooks.

    A hyphen at the end of a line may belong to the word or not.

    >>> agree("a well-\nknown rule", "a well-known rule", FOLDS), agree("a rec-\nord", "a record", FOLDS)
    (True, True)
    >>> agree("a battle-field", "a battle field", FOLDS)
    False
    """
    if one == other or not tolerance:
        return one == other
    if _same(_fold(one, tolerance), _fold(other, tolerance)):
        return True
    # A paragraph inside a quotation may begin with its mark again.
    reopened = bool(tolerance & Tolerance.LAYOUT) and ("\n" in one or "\n" in other)
    # Whether J. R. is one word or two is for the other text to say.
    spaced = bool(tolerance & Tolerance.PUNCTUATION)
    if (reopened or spaced) and _same(
        _fold(one, tolerance, reopened=reopened, spaced=spaced),
        _fold(other, tolerance, reopened=reopened, spaced=spaced),
    ):
        return True
    return bool(tolerance & Tolerance.CASE) and _same_in_capitals(one, other, tolerance)


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    if _MAYBE_HYPHEN not in one:
        one, other = other, one
    return _MAYBE_HYPHEN in one and _same_with_hyphens(one, other)


def _same_in_capitals(one: str, other: str, tolerance: int) -> bool:
    """Compare texts whose capitals stand for several letters: I for two, those of Greek for accented ones."""
    if not (_OF_SOME_CAPITAL.search(one) or _OF_SOME_CAPITAL.search(other)):
        return False
    one, other = fold(one.translate(_CAPITALS), tolerance), fold(other.translate(_CAPITALS), tolerance)
    return len(one) == len(other) and all(
        a == b or b in _LETTERS_OF.get(a, ()) or a in _LETTERS_OF.get(b, ()) for a, b in zip(one, other, strict=True)
    )


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


def _fold(text: str, tolerance: int, *, reopened: bool = False, spaced: bool = False) -> str:
    typography, layout = bool(tolerance & Tolerance.TYPOGRAPHY), bool(tolerance & Tolerance.LAYOUT)
    if _MAYBE_HYPHEN in text:
        text = text.replace(_MAYBE_HYPHEN, "")
    if layout:
        text = _fold_layout(as_readable(text), reopened=reopened)
    if typography and not text.isascii():
        text = normalize("NFKC", _RAISED.sub(r"^\1", _INVISIBLE.sub("", text))).replace("\u2044", "/")
        text = _VOWEL_SIGN.sub("", text.replace("\u0401", "\u0415").replace("\u0451", "\u0435"))
    if tolerance & Tolerance.CASE:
        # The dot that the capital of the Turkish i leaves behind is no letter.
        text = text.casefold().replace("i\u0307", "i")
        text = normalize("NFKC", text) if typography and not text.isascii() else text
    if layout:
        text = " ".join(text.split())
    if tolerance & Tolerance.PUNCTUATION:
        text = _fold_punctuation(text, _SPACED_INITIALS if spaced else _INITIALS)
    elif typography:
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
    if ".." in text or ". ." in text or any(map(text.__contains__, unicode.ELLIPSES)):
        text = _DOTS.sub(lambda run: run[0] if run[0].strip() == "." else "...", text)
    return text


def _quote(run: re.Match[str]) -> str:
    """Tell an apostrophe inside a word from a quotation mark, which may have spaces on its inner side too."""
    text, (start, end) = run.string, run.span()
    if run[0] in _INNER and start > 0 and end < len(text) and is_word(text[start - 1]) and is_word(text[end]):
        return "'"
    return '"'


def _fold_punctuation(text: str, initials: re.Pattern[str]) -> str:
    """Return words parted by spaces, whatever punctuation is there, and the signs that change a word or a number."""
    text = _SPLIT_CONTRACTION.sub("", _QUOTE_GLYPH.sub(_plain_quote, _ESCAPED_QUOTE.sub("", text)))
    text = initials.sub(lambda run: "".join(filter(str.isalpha, run[0])), " ".join(text.split()))
    if "," in text:
        text = _LISTED.sub(lambda row: row[0].replace(",", ", "), text)
    return _SEPARATOR.sub(_separate, text).strip()


def _plain_quote(glyph: re.Match[str]) -> str:
    if glyph[0] in _PRIMES and _MEASURED.search(glyph.string, max(glyph.start() - 4, 0), glyph.start()):
        return _PRIMES[0]
    return "'" if glyph[0] in _INNER else '"'


def _separate(run: re.Match[str]) -> str:
    text, (start, end) = run.string, run.span()
    if run[0].isascii() or not any(map(is_mark, run[0])):
        return _between(text, start, end)
    # Marks on letters belong to the words.
    pieces = []
    for has_marks, chars in groupby(run[0], is_mark):
        piece = "".join(chars)
        pieces.append(piece if has_marks else _between(text, start, start + len(piece)))
        start += len(piece)
    return "".join(pieces)


def _between(text: str, start: int, end: int) -> str:
    """Return what counts of the characters between two words: signs, or a space, or nothing where words have none."""
    left, right = text[start - 1 : start] if start else "", text[end : end + 1]
    if signs := "".join(text[at] for at in range(start, end) if _counts(text, at, start, end)):
        return "".join("-" if sign in _HYPHENS or sign in _LONG_DASHES else sign for sign in signs)
    if left.isdigit() and right.isdigit() and text[start:end] != " ":
        # 2, 500 may be two numbers or one.
        grouped = _GROUP_BEFORE.search(text, max(start - 4, 0), start) and _GROUP_AFTER.match(text, end)
        return f"{text[start]} " if grouped else " "
    if left and right and (is_unspaced(left) or is_unspaced(right)):
        return "," if are_joined(left, right) else ""
    return " "


def _counts(text: str, at: int, start: int, end: int) -> bool:
    """Tell whether a character of ``text[start:end]``, which is between two words, changes a word or a number."""
    char, last, following = text[at], text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    is_tight = end - start == 1 and bool(last and following)
    between_digits = is_tight and last.isdigit() and following.isdigit()
    if char in _LONG_DASHES:
        return between_digits
    if char in _HYPHENS:
        if {last, following} & _HYPHENS:
            return False
        begins_number = following.isdigit() and (at > start or not start)
        return (
            is_tight
            or begins_number
            or char == unicode.MINUS
            or (_is_operand(text, start - 1) and _is_operand(text, end))
        )
    if char in "'_":
        return is_tight
    if char in ".,":
        return between_digits or (
            following.isdigit() and (not last or last in f" (=<>~$-{unicode.CURRENCIES}{unicode.MINUS}")
        )
    if char in f":*{unicode.NUMBER_MARKS}":
        return between_digits
    if char in f"~{unicode.PRIME}":
        return following.isdigit() or char != "~"
    return _means_something(char)


def _is_operand(text: str, at: int) -> bool:
    """Tell whether there is a digit or a single letter, which a dash may subtract."""
    if not 0 <= at < len(text):
        return False
    return text[at].isdigit() or not (is_word(text[at - 1 : at] or " ") or is_word(text[at + 1 : at + 2] or " "))


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
        self._strict = FOLDS if casefold else FOLDS & ~Tolerance.CASE
        self._loose = self._strict | Tolerance.PUNCTUATION if punctuation else None
        #: The words between which the last quotation ran on that was refused for joining sentences or blocks.
        self.join: str | None = None

    def whole(self, piece: QuotePiece, text: str, start: int, end: int) -> int | None:
        """Return what must be overlooked for a whole quotation to be ``text[start:end]``; ``None`` if it is not.

        What is outside the core must be there in the text too, or be punctuation that an editor may change.
        """
        return self._without_join(piece, text, start, end, self._whole(piece, text, start, end))

    def _whole(self, piece: QuotePiece, text: str, start: int, end: int) -> int | None:
        start -= piece.sign
        passage = text[max(start, 0) : end]
        if not _has_sign(piece, text, start):
            return None

        def agrees(tolerance: int) -> bool:
            return agree(piece.core, passage, tolerance) and _edges_agree(piece, text, start, end, tolerance)

        if agrees(self._strict):
            return _least(self._strict, agrees)
        if self._loose is None or not _edges_may_differ(piece, text, start, end):
            return None
        breaks_off = _ELLIPSIS.search(piece.lead) or _ELLIPSIS.search(piece.trail)
        difference = self._core(piece.core, passage)
        known = Tolerance.ELLIPSIS if breaks_off else Tolerance.PUNCTUATION
        return None if difference is None else difference | known

    def part(self, piece: QuotePiece, text: str, start: int, end: int) -> int | None:
        """Return what must be overlooked for a part of a quotation, which may break off before any punctuation."""
        start -= piece.sign
        if not _has_sign(piece, text, start) or not _edges_may_differ(piece, text, start, end):
            return None
        return self._without_join(piece, text, start, end, self._core(piece.core, text[start:end]))

    def _without_join(self, piece: QuotePiece, text: str, start: int, end: int, needed: int | None) -> int | None:
        """Return what must be overlooked, ``None`` where the quotation joins sentences or blocks of the text."""
        if needed is None or (needed & Tolerance.CASE and _has_other_unit(piece.core, text[max(start, 0) : end])):
            return None
        # With the case alone nothing else differs.
        if not needed & ~Tolerance.CASE or not (join := find_join(piece.core, text, start, end)):
            return needed
        self.join = join
        return None

    def equal(self, one: str, other: str) -> bool:
        """Tell whether two words with their punctuation may stand for each other."""
        return agree(one, other, self._strict) or (self._loose is not None and agree(one, other, self._loose))

    def _core(self, core: str, passage: str) -> int | None:
        if agree(core, passage, self._strict):
            return _least(self._strict, partial(agree, core, passage))
        # The signs of an editor are read by themselves.
        if self._loose is None or (_EDITED.search(core) and not _EDITED.search(passage)):
            return None
        return _least(self._loose, partial(agree, core, passage)) if agree(core, passage, self._loose) else None


def _least(limit: int, agrees: Callable[[int], bool]) -> int:
    """Return what is left of a sufficient tolerance without what need not be overlooked."""
    for flag in _FLAGS:
        if limit & flag and agrees(limit & ~flag):
            limit &= ~flag
    return limit


def _has_sign(piece: QuotePiece, text: str, start: int) -> bool:
    if not piece.sign:
        return True
    return start >= 0 and (text[start] == piece.core[0] or {text[start], piece.core[0]} <= _HYPHENS)


def _edges_agree(piece: QuotePiece, text: str, start: int, end: int, tolerance: int) -> bool:
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
    return char in _MEANINGFUL or (category(char)[0] == "S" and not _ORNAMENT.match(char))


def _has_other_unit(core: str, passage: str) -> bool:
    """Tell whether a unit behind a number is another with its capitals: mW and MW, Mb and MB, mm and mM."""
    pairs = zip(_UNIT.findall(core), _UNIT.findall(passage), strict=False)
    return any(_OTHER_UNIT.fullmatch(" ".join(sorted(pair))) for pair in pairs)


def find_join(core: str, text: str, start: int, end: int) -> str | None:
    """Return the end of a sentence or a block inside ``text[start:end]`` that a quotation of it shows by nothing.

    >>> find_join("it rained we left", "It rained. We left.", 0, 18), find_join("it rained; we", "It rained. We", 0, 13)
    ('rained. We', None)
    """
    offset = position = high = 0
    at = start
    for found in _MAY_PART.finditer(text, start, end):
        if found.start() < high:
            continue
        low, high = found.span()
        while low > start and not key_length(text[low - 1]):
            low -= 1
        while high < end and not key_length(text[high]):
            high += 1
        position += len(comparison_key(text[at:low]))
        at = low
        shown = gap_at(core, position, offset)
        position, offset = 0, shown[0]
        if low > start and high < end and not any(map(is_seen, core[slice(*shown)])) and parts(text, low, high):
            return f"{text[start:low].rsplit(maxsplit=1)[-1]}{text[low:high]}{text[high:end].split(maxsplit=1)[0]}"
    return None


def gap_at(core: str, position: int, start: int = 0) -> tuple[int, int]:
    """Return from where to where a text has no letters at a position of the key of ``core[start:]``."""
    while position > 0 and start < len(core):
        position -= key_length(core[start])
        start += 1
    end = start
    while end < len(core) and not key_length(core[end]):
        end += 1
    return start, end


def is_seen(char: str) -> bool:
    """Tell whether a character parts two words for whoever reads them: a mark, the end of a line, a tab."""
    if char.isspace():
        return char == "\t" or _BREAK.match(char) is not None
    return not (is_mark(char) or _UNPARTING.match(char))


def _is_small(char: str) -> bool:
    # Georgian letters are lower case to Unicode, and begin sentences.
    return char != char.title()


def parts(text: str, start: int, end: int) -> bool:
    r"""Tell whether a sentence or a block ends between two words, ``text[start:end]`` being what is between them.

    >>> parts("by Dr. Ito", 5, 7), parts("by him. Why", 6, 8), parts("- him\n- her", 5, 8), parts("by\nhim", 2, 3)
    (False, True, True, False)
    """
    around = text[max(start - _AROUND, 0) : start], text[start:end], text[end : end + _AROUND]
    before, gap, after = (_BREAK.sub("\n", part) for part in around)
    line = before.rpartition("\n")[2]
    if "|" in gap or gap.count("\n") > 1 or not set(unicode.STOPS).isdisjoint(gap):
        return True
    if "\n" in gap and (_NEW_BLOCK.search(gap) or _HEADING.match(line) or _is_last_line(before, after)):
        return True
    # The border of a cell, where words are parted by spaces.
    if "\t" in gap and "\n" not in gap and (" " in line.strip() or is_unspaced(line[-1])):
        return True
    # The splitter takes three stops for the end of a sentence, and not the one character.
    between = _ENCLOSING.sub("", gap).replace(unicode.ELLIPSIS, "...") + " " * ("\n" in gap)
    if not between.strip():
        return False
    if _is_small(after[0]):
        # In a text with capitals it follows an abbreviation, or what somebody cries.
        if not (before.islower() and after.islower()):
            return False
        after = after.capitalize()
    before = _ENCLOSING.sub(" ", before)
    return any(0 <= last - len(before) <= len(between) for _, last in split_sentences(before + between + after))


def _is_last_line(before: str, after: str) -> bool:
    """Tell whether a line is the last of its block: the next word has no small letter, and would have fitted in it."""
    *_, line = paragraph = before.rpartition("\n\n")[2].split("\n")
    if _is_small(after[0]) or is_function_word(fold_word(line.split()[-1])):
        return False
    paragraph += after.partition("\n\n")[0].split("\n")
    width = max(len(each.strip()) for each in paragraph)
    word = 0 if is_unspaced(after[0]) else len(after.split(maxsplit=1)[0])
    # Lines that were broken to fit a page are about as long as it is wide.
    return len(line.strip()) + 1 + word <= (width - 2 if width < _WRAPPED else width * 3 // 5)
