"""Reading a text as it would be shown: HTML entities, inline tags and link targets resolved, with the way back."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Sequence
from html.entities import html5

_ENTITY = r"&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|(?P<name>[A-Za-z][A-Za-z0-9]{1,31}));"
_TAG = r"""</?(?i:a|abbr|b|big|cite|del|dfn|em|font|i|ins|mark|q|s|small|span|strike|strong|sub|u|var|wbr
    |(?P<raised>sup)|(?P<block>blockquote|br|dd|div|dt|h[1-6]|hr|li|ol|p|pre|table|tbody|td|th|tr|ul))
    (?:\s[^<>]{0,400})?/?>"""
_TARGET = r"\]\((?:https?://|www\.|mailto:|[#/.])[^()\s]{0,500}\)"
_LINK = rf"(?P<link>!?\[(?=[^\[\]\n]{{1,300}}{_TARGET})|{_TARGET})"
_RAISED = "\u00b9\u00b2\u00b3\u2070\u2074-\u2079"
# In brackets anywhere; raised behind a word or a stop. The class in front makes this fast.
_NOTE = rf"""(?P<note>[\[<{_RAISED}](?:
      (?<=\[) \d{{1,3}}(?:\s?[,;\u2013-]\s?\d{{1,3}}){{0,9}} \]
    | (?:(?<=[^\W\d_]{{3}}[<{_RAISED}])|(?<=[.,;:!?)"\u2019\u201d\u00bb][<{_RAISED}]))
      (?:(?<=<)(?i:sup)(?:\s[^<>]{{0,400}})?>(?:<a\s[^<>]{{0,400}}>)?\[?\d{{1,3}}\]?(?:</a>)?</(?i:sup)>
        |(?<!<)[{_RAISED}]{{0,2}}(?![{_RAISED}\u207a\u207b]))
      (?![^\W_])))"""
# What a raised number is the power of, and not a note on: a unit, a function, a Greek letter.
_POWERED = re.compile(
    r"(?:[\d/]\s?|\b(?:per|pro|par|por|al)\s)[^\W\d_]+$|\b(?:a?(?:sin|cos|tan)h?|log|exp|chi|khi|eta|rho|phi|tau|sigma|lambda|omega)$|\)$"
    r"|(?:m[eèé]t\w{1,3}|miles?|feet|foot|inch(?:es)?|yards?)$",
    re.IGNORECASE,
)
_GLANCE = 40

_MARKUP = re.compile(rf"{_ENTITY}|{_TAG}|{_LINK}", re.VERBOSE)
_MARKUP_AND_NOTES = re.compile(rf"{_NOTE}|{_ENTITY}|{_TAG}|{_LINK}", re.VERBOSE)
_ANY_NOTE = re.compile(_NOTE, re.VERBOSE)
# The first notes stand for all: the other raised digits take many times longer to look for.
_NOTE_SIGNS = "]<\u00b9\u00b2\u00b3"


class Readable:
    """A text as a reader sees it; offsets of ``text`` map back to the original.

    ``notes=False`` leaves the marks of notes out, such as ``[3]`` and ``¹``.

    >>> readable = Readable("Marks &amp; <b>Sons</b>")
    >>> readable.text, readable.start(8), readable.end(12)
    ('Marks & Sons', 15, 19)
    """

    __slots__ = ("_ends", "_shifts", "_widths", "text")

    def __init__(self, source: str, *, notes: bool = True) -> None:
        self.text = source
        self._ends: list[int] = []
        self._widths: list[int] = []
        self._shifts: list[int] = []
        if has_markup(source) or not notes:
            self._resolve(source, _MARKUP if notes else _MARKUP_AND_NOTES)

    def __bool__(self) -> bool:
        """Tell whether the text differs from the original."""
        return bool(self._ends)

    def start(self, offset: int) -> int:
        """Return the offset in the original of what begins at an offset of ``text``."""
        index = bisect_right(self._ends, offset)
        return offset + self._shifts[index - 1] if index else offset

    def end(self, offset: int) -> int:
        """Return the offset in the original of what ends at an offset of ``text``."""
        index = bisect_right(self._ends, offset)
        # What follows and is not shown, such as a closing tag, does not belong to it.
        while index and self._ends[index - 1] == offset and not self._widths[index - 1]:
            index -= 1
        return offset + self._shifts[index - 1] if index else offset

    def _resolve(self, source: str, markup: re.Pattern[str]) -> None:
        pieces: list[str] = []
        done = shift = 0
        for found in markup.finditer(source):
            shown = as_readable(found[0]) if _is_power(found) else _shown(found)
            if shown == found[0]:
                continue
            pieces += (source[done : found.start()], shown)
            done = found.end()
            self._ends.append(found.start() - shift + len(shown))
            self._widths.append(len(shown))
            shift += len(found[0]) - len(shown)
            self._shifts.append(shift)
        if pieces:
            self.text = "".join((*pieces, source[done:]))


def has_markup(text: str) -> bool:
    """Tell, quickly, whether a text may hold what :class:`Readable` resolves."""
    return "&" in text or "<" in text or ("]" in text and "](" in text)


def have_notes(texts: Sequence[str]) -> bool:
    """Tell whether texts have marks of notes in them, or powers that look like some."""
    return any(sign in text for text in texts for sign in _NOTE_SIGNS) and any(map(_ANY_NOTE.search, texts))


def as_readable(text: str) -> str:
    """Return a text as a reader sees it; what only looks like markup is left alone.

    >>> as_readable("&ldquo;R&amp;D&rdquo; &nosuch; AT&T, 1 <b 2, [the <i>report</i>](https://example.org)")
    '“R&D” &nosuch; AT&T, 1 <b 2, the report'
    """
    return _MARKUP.sub(_shown, text) if has_markup(text) else text


def _is_power(found: re.Match[str]) -> bool:
    if found.lastgroup != "note" or found[0][0] == "[" or found[0] == "\u00b9":
        return False
    return _POWERED.search(found.string[max(0, found.start() - _GLANCE) : found.start()]) is not None


def _shown(found: re.Match[str]) -> str:
    if found[0][0] == "&":
        return html.unescape(found[0]) if found["name"] is None else html5.get(f"{found['name']};", found[0])
    if found["block"]:
        return "\n"
    # A power is not the number that its digits would make.
    return "^" if found["raised"] and found[0][1] != "/" else ""
