"""The quotation marks of a text: where they are, and what it costs to read each as opening, as closing, or as neither.

A mark may be an apostrophe, a prime or the mark of an acronym as well; its neighbours tell. Finding quotations takes
the cheapest reading of all marks together.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from typing import Literal, NamedTuple
from unicodedata import category

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.unicode import is_unspaced, is_word

STRAIGHT, SINGLE, LATEX_OPENING, LATEX_CLOSING = '"', "'", "``", "''"
LATEX_SINGLE = "`"
LEFT_DOUBLE, RIGHT_DOUBLE, LOW_DOUBLE = unicode.LEFT_DOUBLE, unicode.RIGHT_DOUBLE, unicode.LOW_DOUBLE
LEFT_SINGLE, RIGHT_SINGLE, LOW_SINGLE = unicode.LEFT_SINGLE, unicode.RIGHT_SINGLE, unicode.LOW_SINGLE
LEFT_GUILLEMET, RIGHT_GUILLEMET, LEFT_ANGLE, RIGHT_ANGLE = (*unicode.GUILLEMETS,)
OPENING_TAG, CLOSING_TAG = "<q>", "</q>"
# Marks that are written differently and read the same.
_EQUIVALENT = {other: mark for mark, others in unicode.QUOTATION_MARKS.items() for other in others} | {",,": LOW_DOUBLE}
_SINGLES = "".join(f"{mark}{unicode.QUOTATION_MARKS[mark]}" for mark in (SINGLE, LEFT_SINGLE, RIGHT_SINGLE))
_OTHERS = f"{STRAIGHT}{unicode.QUOTES}".translate(str.maketrans("", "", _SINGLES))
_GLYPHS = frozenset((*_SINGLES, *_OTHERS, LATEX_OPENING, LATEX_CLOSING, LATEX_SINGLE, OPENING_TAG, CLOSING_TAG))
# Letters and digits of the scripts in which a single mark between two of them is an apostrophe.
_SPACED = r"0-9A-Za-z\u00aa\u00b5\u00ba\u00c0-\u037d\u037f-\u0386\u0388-\u0559\u0560-\u0588"
_SPACED += r"\u10a0-\u10fa\u10fc-\u10ff\u1200-\u135f\u1369-\u177f\u1e00-\u1fff"
_SPACED_LETTER = lazily(f"[{_SPACED}]")
# What every text with a quotation has; a single mark behind a letter opens none.
_ANY_MARK = lazily(
    rf"[&<>`\\{_SINGLES}{_OTHERS}](?:(?<=[&`\\{_OTHERS}])|(?<![{_SPACED}].)(?<=[{_SINGLES}])|(?<=<)(?:[qQ]|[bB][lL])|(?<![^\s>]>)(?<=>))"
)
# Turkish endings of what is quoted; no elision leaves these.
_SUFFIX = r"(?:[dt][ae]n?|[dt][ae]ki|n[\u0131iu\u00fc]n|yl?[ae]|l[ae]r\w*|d[\u0131iu\u00fc]r)(?![^\W_])"
# More marks than this in a row enclose nothing.
_LONGEST_ROW = 8
# The class in front makes this fast: the engine looks for one of its characters and for nothing else.
_TOKEN = lazily(
    rf"""[\n,&<`\\{_SINGLES}{_OTHERS}](?:
      (?<=[{_SINGLES}{_OTHERS}]) [{_SINGLES}{_OTHERS}]{{{_LONGEST_ROW},}}
    | (?<=[{_OTHERS}])
    | (?<=[{_SINGLES}]) (?! (?<=[{_SPACED}].)(?!{_SUFFIX})[{_SPACED}] ) (?: (?<=')'* | )
    | (?<=\n) [ \t\r]* (?: \n\s* | (?:[-*+{unicode.BULLET}]|[0-9]{{1,3}}[.)]|\#{{1,6}}) [ \t] | \| )
    | (?<=,) ,
    | (?<=(?<!`)`) (?: `(?!`) | (?![`\s]) )
    | (?<=\\) (?: u[0-9a-fA-F]{{4}} | \\{{0,3}}["'] )
    | (?<=<) /? [qQ] [ ]* >
    | (?<=&) (?: \#[0-9]{{2,7}} | \#[xX][0-9a-fA-F]{{2,6}} | [a-z]{{4,6}} ) ;
    )""",
    re.VERBOSE,
)
# What a mark looks past when it looks at its neighbours: emphasis, markup, and other marks.
_THROUGH = _GLYPHS - {LATEX_SINGLE} | frozenset(f"*_~\\{unicode.WORD_JOINER}")
_FARTHEST = 32
_NEAR = 8
_BLANKS = f" \t{unicode.NO_BREAK_SPACE}{unicode.WIDE_SPACE}"
# Spaces that are set between a mark and what it quotes, not outside.
_INNER_SPACES = frozenset(f"{unicode.THIN_SPACES}{unicode.FIGURE_SPACE}")
# What a quotation follows without a space beside brackets, what is no stop, and what may be before and behind it.
_OPENING_SIGNS = frozenset(f"<=|&+^{unicode.OPENING_STOPS}")
_NO_STOPS = frozenset(f"#&@*/\\§¶※{unicode.OPENING_STOPS}{unicode.DAGGER}{unicode.DOUBLE_DAGGER}{unicode.BULLET}")
_DASHES = frozenset(f"-/{unicode.DASHES}{unicode.LONG_DASHES}")
_QUOTATIVE = frozenset("とっ")
_ANNOUNCING = frozenset(f":={unicode.COLONS}")
_SUFFIXED = lazily(_SUFFIX)
# What elision leaves of a word, and the years of a decade.
_ELIDED = lazily(
    r"(?:[Tt](?:is|was|were|ill|would|isn|wasn|il|ween)|[Cc](?:os|uz|oz)|em|bout|neath|gainst|fraid|nuff|nough|nother|n|ere"
    r"|ed|ad|ave|aven|ow|ome|ouses?|orses?|ead|ear|eard|eart|ell|elp|alf|igh|imself|erself|usband|undred|appen|oo|e"
    r"|s|t|d|m|ll|re|ve|nt|nen|nem|ner|r|k|[0-9]{2}(?:ern?|s)?)(?![^\W_])"
)
# The same for what may also be a word that begins a quotation.
_PERHAPS_ELIDED = lazily(
    r"(?:Em|[Cc]ause|till|[Rr]ound|kay|un|im|er|is|as|at|and|old|ard|ill|all|ope|our|ot|ne)(?![^\W_])"
)
# What Hebrew puts before a word, and the marks before it; a mark before the last letter is that of an acronym.
_HEBREW_PREFIX = lazily("(?<![\u05d0-\u05ea])[\u05de\u05e9\u05d4\u05d5\u05db\u05dc\u05d1]{1,3}$")
_HEBREW_WORD = lazily(
    f"(?![\u05d0-\u05ea]+['\"{unicode.GERESH}{unicode.GERSHAYIM}{RIGHT_SINGLE}{RIGHT_DOUBLE}][\u05d0-\u05ea](?![\u05d0-\u05ea]))[\u05d0-\u05ea]{{2}}"
)
_HEBREW_ABBREVIATION = lazily("(?<![\u05d0-\u05ea])[\u05d0-\u05ea]{1,5}$")
# What an elision leaves of the end of a word: goin', an', o', th', un po'.
_ELIDING = lazily(r"(?:[^\W_]in|(?<![^\W_])(?:an|i|lil|mo|o|ol|po|th|wi))$", re.IGNORECASE)
_TOKENISED = lazily(r"[^\W\d_] [,.](?:\s|$)")
_SIBILANTS = frozenset("sxzSXZ")
# Words that do not follow a possessive: "the boys' and" closes, "the boys' tea" need not.
_NOT_OWNED = lazily(
    r"\s+(?:and|or|but|is|was|are|were|has|had|said|says|he|she|it|they|we|i|you|in|of|on|at|by|to|for|from|with|that"
    r"|which|who|when|while|as|if|because|then|than|not|the|a|an|cried|asked|replied|answered)(?![^\W_])",
    re.IGNORECASE,
)
#: By opening mark: what closes it, and what that costs where conventions are mixed.
CLOSED_BY: dict[str, dict[str, int]] = {
    STRAIGHT: {STRAIGHT: 0, RIGHT_DOUBLE: 20, LEFT_DOUBLE: 50, LATEX_CLOSING: 30},
    LEFT_DOUBLE: {RIGHT_DOUBLE: 0, STRAIGHT: 20, LATEX_CLOSING: 20, LEFT_DOUBLE: 40},
    RIGHT_DOUBLE: {RIGHT_DOUBLE: 0, STRAIGHT: 30, LEFT_DOUBLE: 30},
    LOW_DOUBLE: {LEFT_DOUBLE: 0, RIGHT_DOUBLE: 0, STRAIGHT: 10, LATEX_CLOSING: 0},
    LATEX_OPENING: {LATEX_CLOSING: 0, STRAIGHT: 10, RIGHT_DOUBLE: 10},
    LATEX_CLOSING: {LATEX_CLOSING: 0, STRAIGHT: 30},
    LEFT_GUILLEMET: {RIGHT_GUILLEMET: 0},
    RIGHT_GUILLEMET: {LEFT_GUILLEMET: 0, RIGHT_GUILLEMET: 0},
    LEFT_ANGLE: {RIGHT_ANGLE: 0},
    RIGHT_ANGLE: {LEFT_ANGLE: 0, RIGHT_ANGLE: 0},
    LEFT_SINGLE: {RIGHT_SINGLE: 0, SINGLE: 20},
    LATEX_SINGLE: {SINGLE: 0, RIGHT_SINGLE: 10},
    LOW_SINGLE: {LEFT_SINGLE: 0, RIGHT_SINGLE: 0, SINGLE: 10},
    RIGHT_SINGLE: {RIGHT_SINGLE: 0},
    SINGLE: {SINGLE: 0, RIGHT_SINGLE: 20},
    unicode.LEFT_CORNER: {unicode.RIGHT_CORNER: 0},
    unicode.LEFT_WHITE_CORNER: {unicode.RIGHT_WHITE_CORNER: 0},
    unicode.LEFT_RAISED: {unicode.RIGHT_RAISED: 0},
    OPENING_TAG: {CLOSING_TAG: 0},
}
#: What begins the next paragraph of a quotation; in Spanish and old French it is the closing mark.
REOPENED_BY = {opening: {opening} for opening in CLOSED_BY} | {
    LEFT_DOUBLE: {LEFT_DOUBLE, RIGHT_DOUBLE},
    LEFT_GUILLEMET: {LEFT_GUILLEMET, RIGHT_GUILLEMET},
    LATEX_SINGLE: set(),
}
#: The cost of what cannot be, and of leaving alone what can only be a quotation mark.
NEVER = 100_000
STRAY = 100


#: Which way the guillemets of a text point.
Guillemets = Literal["out", "in", "right"]


def has_mark(text: str) -> bool:
    """Tell, quickly, whether a text may have a quotation."""
    return _ANY_MARK.search(text) is not None


class Costs(NamedTuple):
    """What it costs to read a mark as opening a quotation, as closing one, and as neither."""

    opening: int
    closing: int
    stray: int = STRAY


# By glyph, in the order of ``MarkPlace``: OPENS, CLOSES, LOOSE, TIGHT, LEANS_OPEN, LEANS_CLOSED.
_COSTS: dict[str, tuple[Costs, ...]] = {
    STRAIGHT: (
        *(Costs(0, NEVER), Costs(NEVER, 0), Costs(30, 30, 60)),
        *(Costs(50, 50, 35), Costs(10, 50, 90), Costs(50, 10, 90)),
    ),
    # With a space or a stop behind it, it opens nothing: title: '', author: ''.
    LATEX_CLOSING: (
        *(Costs(10, NEVER, 80), Costs(NEVER, 0, 80), Costs(NEVER, 10, 60)),
        *(Costs(60, 10, 60), Costs(10, 50, 60), Costs(NEVER, 0, 80)),
    ),
    LEFT_SINGLE: (
        *(Costs(0, 80, 80), Costs(80, 0, 60), Costs(20, 40, 60)),
        *(Costs(10, 30, 60), Costs(0, 60, 80), Costs(50, 10, 60)),
    ),
    LEFT_DOUBLE: (Costs(0, 80), Costs(60, 0), Costs(10, 30), Costs(10, 20), Costs(0, 60), Costs(50, 10)),
    RIGHT_DOUBLE: (Costs(10, 60), Costs(NEVER, 0), Costs(60, 10), Costs(60, 10), Costs(40, 30), Costs(NEVER, 0)),
    LOW_SINGLE: (Costs(0, NEVER), *(Costs(30, NEVER, 20),) * 5),
    # An unpaired one is a letter of an Arabic name, or of code that was not closed.
    LATEX_SINGLE: (Costs(0, NEVER, 15),) * 6,
    **dict.fromkeys(
        (LEFT_GUILLEMET, LEFT_ANGLE),
        (Costs(0, NEVER), Costs(70, 10), Costs(10, 110), Costs(20, 30), Costs(0, 110), Costs(50, 10)),
    ),
    **dict.fromkeys(
        (RIGHT_GUILLEMET, RIGHT_ANGLE),
        (Costs(10, 70), Costs(NEVER, 0), Costs(110, 10), Costs(30, 20), Costs(20, 50), Costs(110, 0)),
    ),
    **dict.fromkeys(
        (LOW_DOUBLE, LATEX_OPENING, unicode.LEFT_CORNER, unicode.LEFT_WHITE_CORNER, unicode.LEFT_RAISED, OPENING_TAG),
        (Costs(0, NEVER),) * 6,
    ),
    **dict.fromkeys(
        (unicode.RIGHT_CORNER, unicode.RIGHT_WHITE_CORNER, unicode.RIGHT_RAISED, CLOSING_TAG), (Costs(NEVER, 0),) * 6
    ),
}
# In a text without spaces the order of the marks decides, and which way they are curved; the second is likely to close.
_UNSPACED_COSTS = {
    STRAIGHT: (Costs(30, 30, 80), Costs(50, 10, 80)),
    SINGLE: (Costs(30, 20, 40),) * 2,
    RIGHT_SINGLE: (Costs(60, 20, 40),) * 2,
    LEFT_DOUBLE: (Costs(0, 60),) * 2,
    RIGHT_DOUBLE: (Costs(90, 0),) * 2,
}


def reading_costs(mark: Mark, text: str, guillemets: Guillemets) -> Costs:
    """Return what each reading of a mark costs, given its neighbours."""
    place = mark.place(text)
    if mark.glyph in (SINGLE, RIGHT_SINGLE):
        return _apostrophe_costs(mark, text, place)
    if mark.glyph in unicode.GUILLEMETS:
        return _guillemet_costs(mark, text, place, guillemets)
    if place is MarkPlace.TIGHT and _is_hebrew(mark):
        return _hebrew_costs(mark, text)
    is_cut = (mark.glyph == LEFT_DOUBLE and mark.right == len(text)) or (mark.glyph == RIGHT_DOUBLE and mark.left < 0)
    if (place is MarkPlace.TIGHT or is_cut) and mark.glyph in _UNSPACED_COSTS and is_in_unspaced(mark):
        # What was said ends with a stop more often than what is before it; in Japanese a particle follows it.
        return _UNSPACED_COSTS[mark.glyph][_is_stop(mark.before) or mark.after in _QUOTATIVE]
    costs = _COSTS[mark.glyph][place]
    if mark.glyph in (LEFT_SINGLE, LATEX_SINGLE) and costs.opening == 0 and _ELIDED.match(text, mark.end):
        # The apostrophe of an elision, turned round by an editor that knows no better, or a quotation that is closed.
        return Costs(38, NEVER, 10)
    if mark.before.isdigit() and mark.glyph in (STRAIGHT, LATEX_CLOSING, RIGHT_DOUBLE):
        # Inches and seconds, unless a quotation that ends in a number needs its mark.
        return Costs(NEVER, max(costs.closing, 15), 5)
    return costs


def _guillemet_costs(mark: Mark, text: str, place: MarkPlace, guillemets: Guillemets) -> Costs:
    left = mark.glyph in (LEFT_GUILLEMET, LEFT_ANGLE)
    if (mark.after if left else mark.before) in _INNER_SPACES:
        return _COSTS[mark.glyph][MarkPlace.OPENS if left else MarkPlace.CLOSES]
    spaced = mark.before.isspace() and mark.after.isspace()
    if not spaced and place is not MarkPlace.TIGHT:
        return _COSTS[mark.glyph][place]
    if guillemets == "right":
        return Costs(10, 10)
    opens = left == (guillemets == "out")
    if not spaced:
        return _COSTS[LEFT_GUILLEMET if opens else RIGHT_GUILLEMET][place]
    later = mark.later(text)
    if _is_stop(later) and later != unicode.ELLIPSIS:
        return Costs(110, 10)
    # What is quoted begins with a capital more often than what goes on behind it.
    capital = later.isupper()
    return Costs(10 if capital else 30, 110, 75) if opens else Costs(110, 30 if capital else 10, 75)


def _apostrophe_costs(mark: Mark, text: str, place: MarkPlace) -> Costs:
    if place is MarkPlace.LOOSE or (place is MarkPlace.LEANS_OPEN and mark.after.isspace()):
        # Tokenised text: what is before the space distinguishes a closing mark from a possessive.
        return Costs(50, 40, 10) if mark.earlier(text).isalnum() else Costs(30, 0, 60)
    if place in (MarkPlace.OPENS, MarkPlace.LEANS_OPEN):
        return _leading_apostrophe_costs(mark, text)
    if place is not MarkPlace.TIGHT:
        return _trailing_apostrophe_costs(mark, text)
    if is_in_unspaced(mark):
        return _UNSPACED_COSTS[mark.glyph][0]
    if _is_hebrew(mark):
        return _hebrew_costs(mark, text)
    if _SUFFIXED.match(text, mark.end):
        return Costs(NEVER, 35, 0)
    if not is_word(mark.before):
        return Costs(30 if mark.glyph == SINGLE else 60, 10, 40)
    # In Arabic a conjunction is written before a mark, in Indic scripts an ending behind it; elisions are rare.
    return Costs(60, 60, 0) if _SPACED_LETTER.match(mark.before) else Costs(45, 35, 20)


def _is_hebrew(mark: Mark) -> bool:
    return "\u05d0" <= mark.before <= "\u05ea" and "\u05d0" <= mark.after <= "\u05ea"


def _hebrew_costs(mark: Mark, text: str) -> Costs:
    """Return the costs of a mark between two Hebrew letters: that of an acronym or a sound, or an opening one."""
    prefixed = _HEBREW_PREFIX.search(text, max(mark.left - _NEAR, 0), mark.left + 1)
    if prefixed and _HEBREW_WORD.match(text, mark.right):
        return Costs(15, NEVER, 30)
    return Costs(80, 60, 0)


def _leading_apostrophe_costs(mark: Mark, text: str) -> Costs:
    if _ELIDED.match(text, mark.end):
        # What closes a quotation and is no possessive costs 12 more to leave alone.
        return Costs(28 if mark.glyph == SINGLE and not _is_tokenised(text) else 60, NEVER, 0)
    if _PERHAPS_ELIDED.match(text, mark.end):
        return Costs(30, NEVER, 15)
    # Elisions are rare at the beginning of a sentence.
    capital = not mark.after.islower()
    if mark.glyph == SINGLE:
        return Costs(10, NEVER, 70 if capital else 40)
    return Costs(30, NEVER, 30 if capital else 10)


@lru_cache(maxsize=8)
def _is_tokenised(text: str) -> bool:
    """Tell whether a text parts words and commas by spaces, as in "it 's late , he said"."""
    return _TOKENISED.search(text) is not None


def _trailing_apostrophe_costs(mark: Mark, text: str) -> Costs:
    before = mark.before
    if not is_word(before):
        return Costs(NEVER, 0, 90)
    if before.isdigit() and not text[max(mark.left - 3, 0) : mark.left + 1].isdecimal():
        return Costs(NEVER, 15, 5)
    if before.isascii() and not text[mark.left - 1 : mark.left].isalnum():
        # A prime: f'(x), or the point A'.
        return Costs(NEVER, 60, 0) if mark.after == "(" else Costs(NEVER, 10, 15)
    elided = _ELIDING.search(text, max(mark.left - _NEAR, 0), mark.left + 1) is not None
    if not mark.after.isspace() or mark.after == "\n":
        return Costs(NEVER, 10, 45 if before in _SIBILANTS else 30 if elided else 40)
    if _HEBREW_ABBREVIATION.search(text, max(mark.left - _NEAR, 0), mark.left + 1):
        return Costs(NEVER, 20, 15)
    if before in _SIBILANTS:
        return Costs(NEVER, 10, 35) if _NOT_OWNED.match(text, mark.end) else Costs(NEVER, 30, 10)
    return Costs(NEVER, 20, 15) if elided else Costs(NEVER, 5, 40)


@lru_cache(maxsize=4096)
def _is_opening(char: str) -> bool:
    return char in _OPENING_SIGNS or category(char) == "Ps"


@lru_cache(maxsize=4096)
def _is_stop(char: str) -> bool:
    """Tell whether a character follows a quotation without a space: a stop or a closing bracket of any script."""
    return char == ">" or (category(char) in ("Pe", "Po") and char not in _NO_STOPS)


def is_in_unspaced(mark: Mark) -> bool:
    """Tell whether a mark touches a script without spaces, or Korean, where a particle follows it without one."""
    return any(is_unspaced(char) or "\uac00" <= char <= "\ud7a3" for char in (mark.before, mark.after))


class MarkPlace(IntEnum):
    """What the neighbours of a mark say about it."""

    OPENS = 0
    CLOSES = 1
    LOOSE = 2
    TIGHT = 3
    LEANS_OPEN = 4
    LEANS_CLOSED = 5


class Mark(NamedTuple):
    """A quotation mark, or what may be one.

    ``left`` and ``right`` are the offsets of its neighbours, past emphasis and other marks; ``before`` and
    ``after`` are these characters, a line break where there is none.
    """

    start: int
    end: int
    glyph: str
    left: int
    right: int
    before: str
    after: str

    def earlier(self, text: str) -> str:
        """Return the last character before the spaces before the mark, a line break if it begins its line."""
        return text[max(self.left - _NEAR, 0) : self.left + 1].rstrip(_BLANKS)[-1:] or "\n"

    def later(self, text: str) -> str:
        """Return the first character after the spaces after the mark, a line break if it ends its line."""
        return text[self.right : self.right + _NEAR].lstrip(_BLANKS)[:1] or "\n"

    def is_torn(self, text: str) -> bool:
        """Tell whether a text ends with the mark, and a space is before it: it opens what is cut off."""
        ends = self.right + _NEAR >= len(text) and not text[self.right :].strip()
        return ends and self.left == self.start - 1 and self.before.isspace()

    def place(self, text: str) -> MarkPlace:
        """Tell from its neighbours what the mark may be."""
        before, after = self.before, self.after
        if before.isspace() and after.isspace():
            return self._loose_place(text)
        if _is_opening(before):
            return MarkPlace.OPENS
        if before.isspace():
            # A stop alone after the mark is tokenised text; one that goes on is an ellipsis, or a word such as ".net".
            alone = _is_stop(after) and after != unicode.ELLIPSIS and text[self.right + 1 : self.right + 2].isspace()
            return MarkPlace.LEANS_CLOSED if alone else MarkPlace.OPENS
        if after.isspace() or _is_stop(after) or (after in _DASHES and before not in _DASHES):
            return MarkPlace.LEANS_CLOSED if before in _ANNOUNCING else MarkPlace.CLOSES
        # With text on either side; beside another mark, each touches its own text.
        if before in _DASHES or before in _ANNOUNCING:
            return MarkPlace.LEANS_OPEN
        touches_left, touches_right = self.left == self.start - 1, self.right == self.end
        if _is_opening(after) or (touches_left and not touches_right) or (_is_stop(before) and after.islower()):
            return MarkPlace.LEANS_CLOSED
        return MarkPlace.LEANS_OPEN if touches_right and not touches_left and not _is_stop(before) else MarkPlace.TIGHT

    def _loose_place(self, text: str) -> MarkPlace:
        """Tell what a mark with spaces on either side may be: French spacing, or tokenised text."""
        inner_before, inner_after = self.before in _INNER_SPACES, self.after in _INNER_SPACES
        if inner_before != inner_after:
            return MarkPlace.OPENS if inner_after else MarkPlace.CLOSES
        begins, later = self.earlier(text) == "\n", self.later(text)
        if _is_stop(later) and later != unicode.ELLIPSIS and not begins:
            return MarkPlace.LEANS_CLOSED
        if begins != (later == "\n"):
            return MarkPlace.LEANS_OPEN if begins else MarkPlace.LEANS_CLOSED
        return MarkPlace.LOOSE


#: The marks of a paragraph, and whether it begins with the first of them and may go on with a quotation.
Paragraph = tuple[list["Mark"], bool]


def paragraphs_of(text: str, start: int, end: int) -> Iterator[Paragraph]:
    """Yield the paragraphs of a piece of text, those without marks too.

    Blank lines, list items, headings and table rows begin a paragraph.
    """
    marks: list[Mark] = []
    free = True
    for token in _TOKEN.finditer(text, start, end):
        if text[token.start()] == "\n":
            yield marks, free and _leads(marks, text, start)
            # A list item or a table row goes on with nothing.
            marks, start, free = [], token.end(), token[0].isspace()
        elif glyph := _glyph(token[0]):
            marks.append(_mark(text, token.start(), token.end(), glyph))
        elif token[0] == "'''" and token.start() > start and not text[token.start() - 1].isspace():
            # A quotation in a quotation ends with it, or an elision.
            marks.append(_mark(text, token.start() + 1, token.end(), LATEX_CLOSING))
    yield marks, free and _leads(marks, text, start)


def _leads(marks: list[Mark], text: str, start: int) -> bool:
    return bool(marks) and not text[start : marks[0].start].strip(f"*_~{unicode.WORD_JOINER}\r\n{_BLANKS}")


def _glyph(written: str) -> str:
    """Return the glyph that a token is written for; empty where it is no mark."""
    if written[0] == "<":
        return CLOSING_TAG if written[1] == "/" else OPENING_TAG
    written = character_of(written)
    glyph = _EQUIVALENT.get(written, written)
    return glyph if glyph in _GLYPHS else ""


def character_of(written: str) -> str:
    """Return what an HTML entity or an escape stands for."""
    if written[0] == "&":
        return html.unescape(written)
    if written[0] == "\\":
        return chr(int(written[-4:], 16)) if written[1] == "u" else written[-1]
    return written


def _mark(text: str, start: int, end: int, glyph: str) -> Mark:
    left, right = start - 1, end
    first, last = max(left - _FARTHEST, -1), min(right + _FARTHEST, len(text))
    while left > first and text[left] in _THROUGH:
        left -= 1
    while right < last and text[right] in _THROUGH:
        right += 1
    before = text[left] if left >= 0 else "\n"
    after = text[right] if right < len(text) else "\n"
    return Mark(start, end, glyph, left, right, before, after)
