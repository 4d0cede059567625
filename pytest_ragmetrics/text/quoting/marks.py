"""Reading the quotation marks of a text: which glyph, where, and what stands on either side of it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

STRAIGHT, SINGLE, LATEX_OPENING, LATEX_CLOSING = '"', "'", "``", "''"
LATEX_SINGLE = "`"
LEFT_SINGLE, RIGHT_SINGLE, LOW_SINGLE = "\u2018", "\u2019", "\u201a"
LEFT_ANGLE, RIGHT_ANGLE = "\u2039", "\u203a"
OPENING_TAG, CLOSING_TAG = "<q>", "</q>"

#: Marks that are written differently and read the same.
_SAME = {
    **dict.fromkeys("\uff02\u2033\u2036", STRAIGHT),
    **dict.fromkeys("\u201f\u275d", "“"),
    "\u275e": "”",
    **dict.fromkeys("\u201b\u275b", LEFT_SINGLE),
    "\u275c": RIGHT_SINGLE,
    "\uff07": SINGLE,
    **dict.fromkeys("｢﹁", "「"),
    **dict.fromkeys("｣﹂", "」"),
    "﹃": "『",
    "﹄": "』",
    "〟": "〞",
    ",,": "„",
}
_SINGLES = "'\uff07\u2018\u2019\u201b\u275b\u275c"
_OTHERS = '"“”„«»\u2039\u203a「」『』〝〞\u201a' + "".join(same for same in _SAME if same not in (",,", *_SINGLES))
_GLYPHS = frozenset((*_SINGLES, *_OTHERS, LATEX_OPENING, LATEX_CLOSING, LATEX_SINGLE, OPENING_TAG, CLOSING_TAG))
_ANY = re.compile(rf"[&>`\\{_SINGLES}{_OTHERS}]")

#: Letters and digits of the scripts in which a single mark between two of them is an apostrophe.
_SPACED = r"0-9A-Za-z\u00aa\u00b5\u00ba\u00c0-\u0dff\u10a0-\u10ff\u1200-\u177f\u1e00-\u1fff"
# The class in front makes this fast: the engine looks for one of its characters and for nothing else.
_TOKEN = re.compile(
    rf"""[\n,&<`\\{_SINGLES}{_OTHERS}](?:
      (?<=[{_OTHERS}])
    | (?<=[{_SINGLES}]) (?! (?<=[{_SPACED}].)[{_SPACED}] ) (?: (?<=')'* | )
    | (?<=\n) [ \t\r]* (?: \n\s* | (?:[-*+•]|[0-9]{{1,3}}[.)]|\#{{1,6}}) [ \t] | \| )
    | (?<=,) ,
    | (?<=(?<!`)`) (?: `(?!`) | (?![`\s]) )
    | (?<=\\) (?: u[0-9a-fA-F]{{4}} | \\{{0,3}}["'] )
    | (?<=<) /? [qQ] [ ]* >
    | (?<=&) (?: \#[0-9]{{2,7}} | \#[xX][0-9a-fA-F]{{2,6}} | [a-z]{{4,6}} ) ;
    )""",
    re.VERBOSE,
)

#: What a mark looks past when it looks at its neighbours: emphasis, what has no width, and other marks.
_THROUGH = _GLYPHS - {LATEX_SINGLE} | frozenset("*_~\\\u00ad\u200b\u200c\u200d\u2060\ufeff")
_FARTHEST = 32
_NEAR = 8
_BLANKS = " \t\u00a0\u3000"

#: Spaces that are set between a mark and what it quotes, not outside.
INNER_SPACES = frozenset("\u00a0\u2007\u2009\u202f")
#: What a quotation follows without a space, what follows it without one, and what may do either.
_BRACKETS = frozenset("([{<=|&+^¿¡\uff08［【〔〈《")
_STOPS = frozenset(".,;:!?)]}>…%、。\uff0c\uff0e\uff01\uff1f\uff1b\uff1a\uff09］】〕〉》")
_DASHES = frozenset("-/\u2010\u2011\u2012\u2013—―\u2212")
_ANNOUNCING = frozenset(":=\uff1a")


class Place(IntEnum):
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

    def place(self, text: str) -> Place:
        """Tell from its neighbours what the mark may be."""
        before, after = self.before, self.after
        if before.isspace() and after.isspace():
            return _loose_place(self, text)
        if before in _BRACKETS:
            return Place.OPENS
        if before.isspace():
            # A stop alone after the mark is tokenised text; one that goes on is an ellipsis, or a word such as ".net".
            alone = after in _STOPS and after != "…" and text[self.right + 1 : self.right + 2].isspace()
            return Place.LEANS_CLOSED if alone else Place.OPENS
        if after.isspace() or after in _STOPS or (after in _DASHES and before not in _DASHES):
            return Place.LEANS_CLOSED if before in _ANNOUNCING else Place.CLOSES
        return _tight_place(self)


class Paragraph(NamedTuple):
    """The marks of a paragraph; ``led`` when it begins with the first of them and may go on with a quotation."""

    marks: list[Mark]
    led: bool


def may_have_marks(text: str) -> bool:
    """Tell quickly that a text has nothing in it that could be a quotation."""
    return _ANY.search(text) is not None


def read_paragraphs(text: str, start: int, end: int) -> Iterator[Paragraph]:
    """Yield the paragraphs of a piece of text with the marks in them, paragraphs without marks too.

    Blank lines, list items, headings and table rows begin a paragraph.
    """
    marks: list[Mark] = []
    free = True
    for token in _TOKEN.finditer(text, start, end):
        if text[token.start()] == "\n":
            yield Paragraph(marks, free and _leads(marks, text, start))
            # A list item or a table row goes on with nothing.
            marks, start, free = [], token.end(), token[0].isspace()
        elif glyph := _glyph(token[0]):
            marks.append(_mark(text, token.start(), token.end(), glyph))
        elif token[0] == "'''" and token.start() > start and not text[token.start() - 1].isspace():
            # A quotation in a quotation ends with it, or an elision.
            marks.append(_mark(text, token.start() + 1, token.end(), LATEX_CLOSING))
    yield Paragraph(marks, free and _leads(marks, text, start))


def _leads(marks: list[Mark], text: str, start: int) -> bool:
    return bool(marks) and not text[start : marks[0].start].strip(f"*_~\u2060\r\n{_BLANKS}")


def _glyph(written: str) -> str:
    """Return the glyph that a token stands for, or nothing when it stands for something else."""
    if written[0] == "<":
        return CLOSING_TAG if written[1] == "/" else OPENING_TAG
    if written[0] == "&":
        written = html.unescape(written)
    elif written[0] == "\\":
        written = chr(int(written[-4:], 16)) if written[1] == "u" else written[-1]
    glyph = _SAME.get(written, written)
    return glyph if glyph in _GLYPHS else ""


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


def _loose_place(mark: Mark, text: str) -> Place:
    """Tell what a mark with spaces on either side may be: French spacing, or tokenised text."""
    inner_before, inner_after = mark.before in INNER_SPACES, mark.after in INNER_SPACES
    if inner_before != inner_after:
        return Place.OPENS if inner_after else Place.CLOSES
    begins, later = mark.earlier(text) == "\n", mark.later(text)
    if later in _STOPS and later != "…" and not begins:
        return Place.LEANS_CLOSED
    if begins != (later == "\n"):
        return Place.LEANS_OPEN if begins else Place.LEANS_CLOSED
    return Place.LOOSE


def _tight_place(mark: Mark) -> Place:
    """Tell what a mark with text on either side may be; beside another mark, each touches its own text."""
    if mark.before in _DASHES or mark.before in _ANNOUNCING:
        return Place.LEANS_OPEN
    touches_left, touches_right = mark.left == mark.start - 1, mark.right == mark.end
    if (
        mark.after in _BRACKETS
        or (touches_left and not touches_right)
        or (mark.before in _STOPS and mark.after.islower())
    ):
        return Place.LEANS_CLOSED
    return Place.LEANS_OPEN if touches_right and not touches_left and mark.before not in _STOPS else Place.TIGHT
