"""Cutting a document into passages of whole paragraphs or sentences, each at its exact place in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_ragmetrics.text.sentences import split_sentences

#: No passage that is cut here is longer (characters).
LONGEST = 1500
# A heading begins a new passage if the one before it has so much; shorter sections share one.
_SECTION = 300
_LONGEST_HEADING = 200

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}$")
_BOM = "\ufeff"
# An underline of Markdown makes a heading of the first or the second level.
_MARKDOWN_LEVELS = {"=": 1, "-": 2}


class Span(NamedTuple):
    """The place of a passage in its document in code points, and the headings above it, outermost first."""

    start: int
    end: int
    heading: str


class _Piece(NamedTuple):
    """What is not cut further: a paragraph with the headings right above it, or a sentence of a long one."""

    start: int
    end: int
    heading: str
    opens: bool


def split_passages(text: str, suffix: str) -> tuple[Span, ...]:
    r"""Return the passages of a document in order; ``text[start:end]`` is one, without outer white space.

    ``suffix`` (``.md``, ``.rst``, ``.txt``) says which headings there are. A passage has at most 1,500 characters, and
    holds whole paragraphs; of a longer paragraph whole sentences. Takes time linear in the length of the text.

    >>> text = "# Moths\n\nThey fly at night.\n"
    >>> [text[span.start : span.end] for span in split_passages(text, ".md")]
    ['# Moths\n\nThey fly at night.']
    """
    return tuple(_packed(_pieces(text, suffix)))


def _packed(pieces: Iterator[_Piece]) -> Iterator[Span]:
    """Join pieces as long as they fit into one passage."""
    held: Span | None = None
    for piece in pieces:
        if held is not None:
            full = piece.end - held.start > LONGEST or (piece.opens and held.end - held.start >= _SECTION)
            if not full:
                held = held._replace(end=piece.end)
                continue
            yield held
        held = Span(piece.start, piece.end, piece.heading)
    if held is not None:
        yield held


def _pieces(text: str, suffix: str) -> Iterator[_Piece]:
    for block in _blocks(text, suffix):
        if block.end - block.start <= LONGEST:
            yield _Piece(block.start, block.end, block.above, block.opens)
            continue
        for number, (start, end) in enumerate(split_sentences(text[block.start : block.end])):
            heading, opens = (block.within, False) if number else (block.above, block.opens)
            yield _Piece(block.start + start, block.start + end, heading, opens)


class _Block(NamedTuple):
    """A paragraph with the headings right above it; ``above`` are those over these, ``within`` all of them."""

    start: int
    end: int
    above: str
    within: str
    opens: bool


@dataclass(slots=True)
class _Headings:
    """The headings that hold at a place of a document."""

    suffix: str
    _held: list[tuple[int, str]] = field(default_factory=list)
    _levels: dict[str, int] = field(default_factory=dict)

    def path(self) -> str:
        return " > ".join(text for _, text in self._held)

    def open(self, level: int, text: str) -> str:
        """Take in a heading; return the path of those above it."""
        while self._held and self._held[-1][0] >= level:
            self._held.pop()
        above = self.path()
        self._held.append((level, text[:_LONGEST_HEADING]))
        return above

    def read(self, line: str) -> tuple[int, str] | None:
        """Return the level and the text of a line that is a heading by itself."""
        found = _ATX.match(line) if self.suffix == ".md" else None
        return (len(found[1]), found[2].rstrip("# \t")) if found else None

    def level_of_underline(self, line: str) -> int | None:
        """Return the level of the heading that a line makes of the one before it; ``None`` if it makes none."""
        found = _UNDERLINE.match(line) if self.suffix in (".md", ".rst") else None
        if found is None:
            return None
        if self.suffix == ".md":
            return _MARKDOWN_LEVELS.get(found[1])
        # In reStructuredText the marks have their levels in the order in which a document uses them.
        return self._levels.setdefault(found[1], len(self._levels) + 1)


def _blocks(text: str, suffix: str) -> Iterator[_Block]:
    """Yield the paragraphs of a document; a heading begins a block, which the paragraph below it ends."""
    headings = _Headings(suffix)
    reader = _Reader(headings)
    at = len(_BOM) if text.startswith(_BOM) else 0
    for line in text[at:].splitlines(keepends=True):
        block = reader.take(line, at)
        if block is not None:
            yield block
        at += len(line)
    last = reader.close()
    if last is not None:
        yield last


class _Reader:
    """Takes the lines of a document one by one, and gives back a block whenever one is complete."""

    def __init__(self, headings: _Headings) -> None:
        self._headings = headings
        self._fence: str | None = None
        self._start: int | None = None
        self._end = 0
        self._above = ""
        self._opens = False
        self._lines: list[str] = []
        self._body = False

    def take(self, line: str, at: int) -> _Block | None:
        bare = line.rstrip()
        if not bare:
            # A heading waits for the paragraph below it.
            self._lines.clear()
            return self.close() if self._body else None
        heading = None if self._fenced(bare) else self._headings.read(bare)
        done = self.close() if heading is not None and self._body else None
        is_underline = heading is None and self._underlines(bare)
        self._begin(bare, at)
        if heading is not None:
            self._open(*heading)
        elif not is_underline:
            self._body = True
            if not _UNDERLINE.match(bare):
                # Two are enough to know that there is more than one.
                self._lines = [*self._lines[-1:], bare.strip()]
        return done

    def close(self) -> _Block | None:
        """Return the block that was begun, and begin anew."""
        if self._start is None:
            return None
        block = _Block(self._start, self._end, self._above, self._headings.path(), self._opens)
        self._start, self._opens, self._body = None, False, False
        self._lines.clear()
        return block

    def _begin(self, bare: str, at: int) -> None:
        if self._start is None:
            self._start = at + len(bare) - len(bare.lstrip())
            self._above = self._headings.path()
        self._end = at + len(bare)

    def _underlines(self, bare: str) -> bool:
        """Tell whether a line makes a heading of the only line before it, which is a heading from then on."""
        level = self._headings.level_of_underline(bare) if self._fence is None and len(self._lines) == 1 else None
        if level is None:
            return False
        self._open(level, self._lines[0])
        self._lines.clear()
        self._body = False
        return True

    def _open(self, level: int, text: str) -> None:
        above = self._headings.open(level, text)
        if not self._opens:
            self._above, self._opens = above, True

    def _fenced(self, bare: str) -> bool:
        """Tell whether a line belongs to a block of code, whose comments may look like headings."""
        mark = _FENCE.match(bare) if self._headings.suffix == ".md" else None
        if self._fence is None:
            self._fence = mark[1] if mark else None
            return self._fence is not None
        if mark and mark[1].startswith(self._fence) and not bare.strip().strip(self._fence[0]):
            self._fence = None
        return True
