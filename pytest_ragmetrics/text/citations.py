"""The marks in a text that cite its sources by number, and the sentences they belong to.

The metrics on citations compare what is found here with the contexts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.text.characters import is_unspaced
from pytest_ragmetrics.text.markup import mask_markup
from pytest_ragmetrics.text.sentences import split_sentences

# A range over more numbers than this is an interval, not a citation.
_WIDEST = 99
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_DIGITS = str.maketrans(_RAISED, "0123456789")
_NUMBER = r"(?<!\d)\d{1,3}(?!\d)"
_BETWEEN = r"\s{0,3}(?:[,;&、，；\-\u2010-\u2015~\uff5e]|and\b|to\b)\s{0,3}"
_LABEL = r"(?:(?i:sources?|docs?|documents?|contexts?|passages?|chunks?|refs?|references?|citations?)[ :#]{0,2}|\^|\#)?"
_LIST = rf"\s{{0,3}}{_LABEL}{_NUMBER}(?:{_BETWEEN}{_LABEL}{_NUMBER}){{0,30}}\s{{0,3}}"
_MARKER = re.compile(
    rf"""
      \\?\[(?P<square>{_LIST})\\?\] | ［(?P<wide>{_LIST})］ | 【(?P<lens>{_LIST})】 | 〔(?P<shell>{_LIST})〕
    | (?P<raised>[{_RAISED}]{{1,3}}(?:[,˒⸴⁻\u2013][{_RAISED}]{{1,3}}){{0,30}})(?![{_RAISED}⁺⁻])
    """,
    re.VERBOSE,
)
_RAISED_TAG = re.compile(rf"<sup>({_LIST})</sup>", re.IGNORECASE)
_PIECE = re.compile(rf"({_NUMBER})(?:\s{{0,3}}(?:[\-\u2010-\u2015~\uff5e⁻]|to\b)\s{{0,3}}(?:{_LABEL})({_NUMBER}))?")
# What a raised number is the power of: a number, a sign, a variable; what a second or third power, a unit, a term.
_POWER = re.compile(r"(?:[\d⁻⁺]|(?<![^\W_])[A-Za-z])$")
_SQUARED = re.compile(r"(?:(?<![^\W_])[A-Za-z]{2}|\))$")
# What a number in brackets is the index of.
_INDEXED = re.compile(r"(?:(?<!\w)[a-z]|(?<!\w)\w*_\w*)$")
_GLANCE = 40
# What makes a marker the text of a link, or of an image.
_TARGET = re.compile(r"\((?:[^()\s]|\([^()\s]{0,300}\)){0,2000}(?:\s+(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?\s*\)")
_IMAGE = re.compile(r"(?<!\S)!$")
# A mark at the beginning of a line and before a small letter is what the sentence is about: "[1] says that".
_GOES_ON = re.compile(r"[ \t]+(?=[^\W\d_])")
_JOINS = re.compile(r"[ \t]*(?:[,;、，&]|and\b)?[ \t]*$")
_EMPTY = re.compile(r"\s?[(（][\s,;]{0,9}[)）]")
_ENTRY = re.compile(r"[ \t]*(?:[-*+•][ \t]+)?\\?[\[［【〔]\^?(\d{1,3})\\?[\]］】〕](:?)[ \t]*\S")
_HEADING = re.compile(r"[ \t]*(?:#{1,6}[ \t].*|[^.!?]{1,60}[:：][*_]{0,2}|\*\*.{1,60}\*\*)[ \t]*")
_DEFINES = re.compile(r"[ \t]*(?:[-*+•][ \t]+)?$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A mark that cites sources: its place in the text, and the numbers as written, counted from 1."""

    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedSentence:
    """A sentence: its place in the text, what it says without marks, and the numbers it cites, each once."""

    start: int
    end: int
    text: str
    numbers: tuple[int, ...]


def find_citations(text: str) -> tuple[Citation, ...]:
    """Return the marks of a text that cite sources by number, in order.

    Read as such: [1], [1, 2], [1-3], ［1］, 【1】, [^1], [source 1], links [1](...), superscripts. Numbers have
    at most three digits, so not years. Not citations: code, powers (m², 10³), indexes (a[0], to_do[1]), intervals
    (lists with a zero, ranges over more than 99), definitions of links and notes, and a list of sources that ends the
    text: lines that begin with ascending marks, one of which was cited before.

    >>> [citation.numbers for citation in find_citations("Otters float [1, 3]. They dive¹ for crabs[2][4-6].")]
    [(1, 3), (1,), (2,), (4, 5, 6)]
    """
    return _read(text)[1]


def cited_sentences(text: str) -> tuple[CitedSentence, ...]:
    """Return the sentences of a text with what each of them cites; its list of sources is left out.

    A mark belongs to the sentence in which it is or which it follows, behind the full stop too; one that begins a
    line belongs to what follows.

    >>> for sentence in cited_sentences("Otters float. [1] They dive [1][2], often. Why?"):
    ...     print(sentence.text, sentence.numbers)
    Otters float. (1,)
    They dive, often. (1, 2)
    Why? ()
    """
    body, citations = _read(text)
    plain = _PlainText(body)
    anchors = [plain.leave_out(citation) for citation in citations]
    plain.finish()
    sentences = split_sentences(plain.text)
    cited: list[dict[int, None]] = [{} for _ in sentences]
    for anchor, citation in zip(anchors, citations, strict=True):
        if sentences:
            cited[_owner(anchor, sentences, plain.text)] |= dict.fromkeys(citation.numbers)
    return tuple(
        CitedSentence(
            start=plain.origin(start),
            end=plain.origin(end - 1) + 1,
            text=_EMPTY.sub("", plain.text[start:end]),
            numbers=tuple(numbers),
        )
        for (start, end), numbers in zip(sentences, cited, strict=True)
    )


def _read(text: str) -> tuple[str, tuple[Citation, ...]]:
    """Return a text without the list of sources that ends it, and the citations in it."""
    citations = tuple(_citations(text, mask_markup(text)))
    end = _end_of_body(text, citations)
    return text[:end], tuple(citation for citation in citations if citation.start < end)


def _citations(text: str, masked: str) -> Iterator[Citation]:
    tags = _RAISED_TAG.finditer(text) if "<" in text else ()
    for match in sorted((*_MARKER.finditer(masked), *tags), key=lambda match: match.start()):
        numbers = _numbers(match[match.lastindex or 1].translate(_DIGITS))
        before = masked[max(0, match.start() - _GLANCE) : match.start()]
        if numbers and not _is_something_else(match, before, text[match.end() : match.end() + 1]):
            target = _TARGET.match(text, match.end()) if match.lastgroup == "square" else None
            yield Citation(start=match.start(), end=target.end() if target else match.end(), numbers=numbers)


def _numbers(written: str) -> tuple[int, ...]:
    """Return the numbers of a mark, ranges spelt out; none where it is an interval."""
    numbers: dict[int, None] = {}
    for piece in _PIECE.finditer(written):
        first, last = int(piece[1]), int(piece[2] or piece[1])
        if abs(last - first) >= _WIDEST:
            return ()
        numbers |= dict.fromkeys(range(min(first, last), max(first, last) + 1))
    return () if 0 in numbers and len(numbers) > 1 else tuple(numbers)


def _is_something_else(match: re.Match[str], before: str, after: str) -> bool:
    if match.lastgroup in ("raised", None):
        square = match[1 if match.lastgroup is None else match.lastgroup] in ("²", "³", "2", "3")
        return after.isalpha() or bool(_POWER.search(before) or (square and _SQUARED.search(before)))
    if after in (":", "：") and _DEFINES.match(before[before.rfind("\n") + 1 :]):
        return True
    image = after in ("(", "[") and _IMAGE.search(before)
    return match.lastgroup == "square" and bool(image or _INDEXED.search(before))


def _end_of_body(text: str, citations: Sequence[Citation]) -> int:
    """Return where the list of sources begins that ends a text, with its heading, or the end of the text."""
    first = end = len(text)
    listed: list[int] = []
    defines, headed = False, None
    while end > 0:
        start = text.rfind("\n", 0, end) + 1
        entry = _ENTRY.match(text, start, end)
        if entry and (not listed or int(entry[1]) < listed[-1]):
            listed.append(int(entry[1]))
            first, defines = start, defines or bool(entry[2])
        elif text[start:end].strip():
            headed = _HEADING.fullmatch(text, start, end) if listed else None
            break
        end = start - 1
    cited = {number for citation in citations if citation.start < first for number in citation.numbers}
    if cited.isdisjoint(listed) or not (len(listed) > 1 or defines or headed):
        return len(text)
    return headed.start() if headed else first


class _PlainText:
    """A text without its marks, made from front to back; its offsets lead back to the original."""

    def __init__(self, source: str) -> None:
        self.text = ""
        self._source = source
        self._pieces: list[str] = []
        self._length = self._done = 0
        self._last = "\n"
        self._lengths: list[int] = []
        self._shifts: list[int] = []

    def leave_out(self, citation: Citation) -> int:
        """Leave a mark out, with the space before it; return the offset that decides which sentence it belongs to."""
        source, start, end = self._source, citation.start, citation.end
        before = source[self._done : start]
        self._keep("" if self._done and _JOINS.match(before) else before.rstrip(" \t"))
        anchor = self._length
        after = _GOES_ON.match(source, end)
        if self._last == "\n":
            if after and source[after.end()].islower():
                self._lengths.append(anchor)
                self._shifts.append(start - anchor)
                self._keep(source[start:end])
                anchor += 1
            elif after:
                end = after.end()
        elif source[end : end + 1].isalnum() and not is_unspaced(self._last):
            self._keep(" ")
        self._done = end
        self._lengths.append(self._length)
        self._shifts.append(end - self._length)
        return anchor

    def finish(self) -> None:
        """Add what follows the last mark."""
        self._keep(self._source[self._done :])
        self.text = "".join(self._pieces)

    def origin(self, offset: int) -> int:
        """Return the offset in the original of a character of ``text``."""
        index = bisect_right(self._lengths, offset)
        return offset + self._shifts[index - 1] if index else offset

    def _keep(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)
        self._last = piece[-1:] or self._last


def _owner(anchor: int, sentences: Sequence[tuple[int, int]], text: str) -> int:
    """Return which sentence a mark that stood at an offset belongs to."""
    index = bisect_left(sentences, anchor, key=lambda sentence: sentence[1])
    if index == len(sentences):
        return index - 1
    start = sentences[index][0]
    follows = start < anchor or "\n" not in text[anchor:start]
    return index if follows or not index else index - 1
