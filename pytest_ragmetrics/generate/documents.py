"""Finding the documents that a user names, and reading them into passages."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_ragmetrics.errors import DatasetError, RagMetricsError
from pytest_ragmetrics.text.characters import printable
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


class _TextPiece(NamedTuple):
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


def _packed(pieces: Iterator[_TextPiece]) -> Iterator[Span]:
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


def _pieces(text: str, suffix: str) -> Iterator[_TextPiece]:
    for block in _blocks(text, suffix):
        if block.end - block.start <= LONGEST:
            yield _TextPiece(block.start, block.end, block.above, block.opens)
            continue
        for number, (start, end) in enumerate(split_sentences(text[block.start : block.end])):
            heading, opens = (block.within, False) if number else (block.above, block.opens)
            yield _TextPiece(block.start + start, block.start + end, heading, opens)


class _MarkdownBlock(NamedTuple):
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


def _blocks(text: str, suffix: str) -> Iterator[_MarkdownBlock]:
    """Yield the paragraphs of a document; a heading begins a block, which the paragraph below it ends."""
    headings = _Headings(suffix)
    reader = _BlockReader(headings)
    at = len(_BOM) if text.startswith(_BOM) else 0
    for line in text[at:].splitlines(keepends=True):
        block = reader.take(line, at)
        if block is not None:
            yield block
        at += len(line)
    last = reader.close()
    if last is not None:
        yield last


class _BlockReader:
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

    def take(self, line: str, at: int) -> _MarkdownBlock | None:
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

    def close(self) -> _MarkdownBlock | None:
        """Return the block that was begun, and begin anew."""
        if self._start is None:
            return None
        block = _MarkdownBlock(self._start, self._end, self._above, self._headings.path(), self._opens)
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


#: What is cut into passages here.
TEXTS = (".md", ".rst", ".txt")
#: Holds passages as they are, one a line.
PASSAGES = ".jsonl"
#: What the id of a row looks like.
ROW_ID = r"golden-[0-9a-f]{12}"


class ArgumentError(RagMetricsError):
    """A command was asked for something that it cannot do; nothing was read from a judge or written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourcePassage:
    """A piece of a document, word for word, and where it stands: offsets in code points, or the line of a passage."""

    id: str
    text: str
    file: str
    start: int | None = None
    end: int | None = None
    line: int | None = None
    heading: str = ""

    @property
    def row_id(self) -> str:
        """The id of the row that is made of it, the same wherever the passage stands."""
        return row_id(self.text)


def row_id(text: str) -> str:
    """Return the id of the row that is made of a passage."""
    return f"golden-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceDocument:
    """A file to read, under the name that rows call it by."""

    path: Path
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundDocuments:
    """The documents there are, and the names of files in folders that are none."""

    documents: tuple[SourceDocument, ...]
    passed_over: tuple[str, ...]


def find_documents(named: Iterable[Path], *, output: Path) -> FoundDocuments:
    """Return the documents of files and folders, in order, each once; ``output`` is none of them.

    Of a folder that is every text file in it and below, hidden ones left out; a file of given passages counts where it
    is named itself. Raises :class:`ArgumentError` for what is not there or no text file, for two files of one name,
    and if there is no document at all.
    """
    documents: dict[str, SourceDocument] = {}
    passed_over: list[str] = []
    for argument in named:
        for path, name in _files(argument):
            if path.resolve() == output.resolve():
                continue
            if path.suffix.lower() not in TEXTS and path != argument:
                passed_over.append(name)
                continue
            document = documents.setdefault(name, SourceDocument(path=path, name=name))
            if not document.path.samefile(path):
                msg = f"{document.path} and {path} would both be called {name}: start in a folder that holds both"
                raise ArgumentError(printable(msg))
    if not documents:
        told = f" (passed over: {', '.join(passed_over[:3])})" if passed_over else ""
        msg = f"there is no {', '.join(TEXTS)} file to read{told}"
        raise ArgumentError(printable(msg))
    return FoundDocuments(documents=tuple(documents.values()), passed_over=tuple(passed_over))


def read_passages(document: SourceDocument) -> tuple[SourcePassage, ...]:
    """Return the passages of a document; raise ``DatasetError`` naming file and line if it cannot be read."""
    text = _text(document)
    if document.path.suffix.lower() == PASSAGES:
        return tuple(_given(text, document.name))
    spans = split_passages(text, document.path.suffix.lower())
    return tuple(
        SourcePassage(
            id=f"{document.name}#{number}",
            text=text[span.start : span.end],
            file=document.name,
            start=span.start,
            end=span.end,
            heading=span.heading,
        )
        for number, span in enumerate(spans, start=1)
    )


def _files(argument: Path) -> Iterator[tuple[Path, str]]:
    if argument.is_dir():
        name = _name(argument)
        yield from ((path, (Path(name) / _encodable(path.relative_to(argument))).as_posix()) for path in _in(argument))
        return
    kind = argument.suffix.lower()
    if not argument.is_file():
        msg = f"{argument}: there is no such file or folder"
        raise ArgumentError(msg)
    if kind not in (*TEXTS, PASSAGES):
        msg = f"{argument}: is no {', '.join((*TEXTS, PASSAGES))} file: save its text as one of these"
        raise ArgumentError(msg)
    yield argument, _name(argument)


def _in(folder: Path) -> list[Path]:
    """Return the files of a folder and those below, in order, hidden ones and hidden folders left out."""
    found: list[Path] = []
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(here, name) for name in files if not name.startswith("."))
        found.extend(path for path in paths if path.is_file())
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def _name(path: Path) -> str:
    """Return how rows call a file or folder: by its path from here, else by its last name, never by a whole path."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - as the user knows it, links and all
    here = Path.cwd()
    return _encodable(whole.relative_to(here) if whole.is_relative_to(here) else Path(whole.name)).as_posix()


def _encodable(path: Path) -> Path:
    """Return a path that UTF-8 can hold, whatever bytes a file system has."""
    return Path(str(path).encode("utf-8", "replace").decode())


def _text(document: SourceDocument) -> str:
    file = printable(document.name)
    try:
        data = document.path.read_bytes()
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise DatasetError(msg, file=file) from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        msg = "is UTF-16: save it as UTF-8"
        raise DatasetError(msg, file=file, line=1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        msg = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        raise DatasetError(msg, file=file, line=data.count(b"\n", 0, error.start) + 1) from error
    at = text.find("\0")
    if at >= 0:
        msg = "holds a zero byte, so it is no text: leave it out"
        raise DatasetError(msg, file=file, line=text.count("\n", 0, at) + 1)
    return text


def _given(text: str, file: str) -> Iterator[SourcePassage]:
    """Yield the passages that a file of JSON lines holds."""
    lines: dict[str, int] = {}
    # Only \n ends a line: a JSON string may hold the other characters that end one for str.splitlines().
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        passage = _given_one(line, file, number)
        first = lines.setdefault(passage.id, number)
        if first != number:
            msg = f"the id {printable(passage.id)!r} stands already in line {first}: give each passage its own"
            raise DatasetError(msg, file=printable(file), line=number, field="id")
        yield passage


def _given_one(line: str, file: str, number: int) -> SourcePassage:
    where: dict[str, Any] = {"file": printable(file), "line": number}
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        msg = f"no JSON: {getattr(error, 'msg', error)}"
        raise DatasetError(msg, **where) from error
    values: Sequence[Any] = (row.get("id"), row.get("text")) if isinstance(row, dict) else (None, None)
    if not all(isinstance(value, str) and value.strip() for value in values):
        msg = 'a passage is {"id": "...", "text": "..."}, with a text in both'
        raise DatasetError(msg, **where)
    identity, text = values
    try:
        f"{identity}{text}".encode()
    except UnicodeEncodeError as error:
        msg = "holds half of a surrogate pair, which is no character: write the whole character"
        raise DatasetError(msg, **where) from error
    return SourcePassage(id=identity, text=text, file=file, line=number)
