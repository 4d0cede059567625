"""Documents of a golden set: finding them, reading them, and cutting them into passages at headings and paragraphs."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pytest_ragmetrics.core.errors import ArgumentError, DatasetError
from pytest_ragmetrics.core.files import absolute, exists, read_data
from pytest_ragmetrics.text.names import find_names
from pytest_ragmetrics.text.sentences import split_sentences
from pytest_ragmetrics.text.unicode import BOM, printable

#: The longest passage that is cut here (characters).
LONGEST = 1500
# A heading begins a new passage if the one before it is at least this long; shorter sections share a passage.
_SECTION = 300
_LONGEST_HEADING = 200
#: Endings of the documents that are cut into passages.
TEXTS = (".md", ".rst", ".txt")
#: The ending of files of given passages, one a line.
PASSAGES = ".jsonl"

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}$")
_MARKDOWN_LEVELS = {"=": 1, "-": 2}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class SourcePassage:
    """A piece of a document, word for word, and its place: offsets in code points, or the line of a given passage."""

    id: str
    text: str
    file: str
    start: int | None = None
    end: int | None = None
    line: int | None = None
    heading: str = ""


#: The passages that a question is about: one or two.
Source = tuple[SourcePassage, ...]


def named(source: Source) -> str:
    """Return the ids of passages as one text."""
    return " and ".join(passage.id for passage in source)


def row_id(*texts: str) -> str:
    """Return the id of the first row that is made of passages, which depends on their texts alone."""
    return f"golden-{hashlib.sha256(chr(0).join(texts).encode('utf-8', 'replace')).hexdigest()[:12]}"


def pairs(documents: Iterable[Sequence[SourcePassage]]) -> list[list[Source]]:
    """Return the passages that may answer a question together, by the document of the first.

    They follow one another, or share a name: each is paired with the next one that has it, so there are at most as many
    pairs as names and passages.
    """
    found: list[dict[Source, None]] = []
    last: dict[tuple[str, ...], tuple[int, SourcePassage]] = {}
    for number, passages in enumerate(documents):
        found.append(dict.fromkeys(pairwise(passages)))
        for passage in passages:
            for keys in dict.fromkeys(name.keys for name in find_names(passage.text)):
                if keys in last:
                    before, other = last[keys]
                    found[before].setdefault((other, passage))
                last[keys] = number, passage
    return [[pair for pair in pairs if pair[0].text != pair[1].text] for pairs in found]


def find_documents(arguments: Iterable[Path], *, output: Path) -> tuple[dict[str, Path], list[str]]:
    """Return the documents of files and folders by name, in order, and the names of other files in the folders.

    A folder means every text file in it and below, except hidden ones and ``output``; a file of given passages
    must be named itself. Raises :class:`ArgumentError` for a missing file, one of another kind, two files that would
    have the same name, and if there is no document at all.
    """
    documents: dict[str, Path] = {}
    others: list[str] = []
    for argument in arguments:
        for path, place in _files(argument):
            # File systems allow bytes that UTF-8 cannot encode.
            name = place.as_posix().encode("utf-8", "replace").decode()
            if path.resolve() == output.resolve():
                continue
            if path.suffix.lower() not in TEXTS and path != argument:
                others.append(name)
            elif not documents.setdefault(name, path).samefile(path):
                msg = f"{documents[name]} and {path} would both be called {name}: start in a folder above both"
                raise ArgumentError(printable(msg))
    if not documents:
        passed_over = f" (passed over: {', '.join(others[:3])})" if others else ""
        raise ArgumentError(printable(f"there is no {', '.join(TEXTS)} file to read{passed_over}"))
    return documents, others


def _files(argument: Path) -> Iterator[tuple[Path, Path]]:
    # Rows are committed, and absolute paths mean nothing on another machine: a name is the path from the current
    # folder, else it begins with the last name of the argument.
    whole = absolute(argument)
    here = Path.cwd()
    base = whole.relative_to(here) if whole.is_relative_to(here) else Path(whole.name)
    if argument.is_dir():
        for parts in sorted(path.relative_to(argument).parts for path in argument.rglob("*") if path.is_file()):
            if not any(part.startswith(".") for part in parts):
                yield argument.joinpath(*parts), base.joinpath(*parts)
        return
    if not (exists(argument) and argument.is_file()):
        raise ArgumentError(f"{argument}: there is no such file or folder")
    if argument.suffix.lower() not in (*TEXTS, PASSAGES):
        raise ArgumentError(f"{argument}: is no {', '.join((*TEXTS, PASSAGES))} file: save its text as one of these")
    yield argument, base


def read_passages(path: Path, name: str) -> tuple[SourcePassage, ...]:
    """Return the passages of a document; raise ``DatasetError`` naming file and line if it cannot be read."""
    text, suffix = _text(path, printable(name)), path.suffix.lower()
    if suffix == PASSAGES:
        return tuple(_given(text, name))
    return tuple(
        SourcePassage(id=f"{name}#{number}", text=text[span.start : span.end], file=name, **span._asdict())
        for number, span in enumerate(split_passages(text, suffix), start=1)
    )


def read_whole(path: Path, name: str) -> tuple[SourcePassage, ...]:
    """Return a document as one passage, or the given passages; raises as :func:`read_passages`."""
    if path.suffix.lower() == PASSAGES:
        return read_passages(path, name)
    text = _text(path, printable(name))
    return (SourcePassage(id=name, text=text, file=name, start=0, end=len(text)),)


def _text(path: Path, file: str) -> str:
    try:
        data = read_data(path)
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}", file=file) from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DatasetError("is UTF-16: save it as UTF-8", file=file, line=1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        msg = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        raise DatasetError(msg, file=file, line=data.count(b"\n", 0, error.start) + 1) from error
    if (zero := text.find("\0")) >= 0:
        msg = "contains a zero byte, so it is no text file: leave it out"
        raise DatasetError(msg, file=file, line=text.count("\n", 0, zero) + 1)
    return text


def _given(text: str, file: str) -> Iterator[SourcePassage]:
    lines: dict[str, int] = {}
    # Not str.splitlines(): a JSON string may contain the other characters that end a line there.
    for number, line in enumerate(text.removeprefix(BOM).split("\n"), start=1):
        if not line.strip():
            continue
        place: dict[str, Any] = {"file": printable(file), "line": number}
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"no JSON: {getattr(error, 'msg', error)}", **place) from error
        values: Sequence[Any] = (row.get("id"), row.get("text")) if isinstance(row, dict) else (None, None)
        if not all(isinstance(value, str) and value.strip() for value in values):
            raise DatasetError('a passage is {"id": "...", "text": "..."}, with a text in both', **place)
        identity, passage = values
        if any(map(_SURROGATE.search, values)):
            raise DatasetError("contains half of a surrogate pair: write the whole character", **place)
        if (first := lines.setdefault(identity, number)) != number:
            msg = f"the id {printable(identity)!r} is already in line {first}: give each passage its own"
            raise DatasetError(msg, **place, field="id")
        yield SourcePassage(id=identity, text=passage, file=file, line=number)


class Span(NamedTuple):
    """The place of a passage in its document in code points, and the headings above it, outermost first."""

    start: int
    end: int
    heading: str


def split_passages(text: str, suffix: str) -> tuple[Span, ...]:
    r"""Return the passages of a document in order; ``text[start:end]`` is one, without outer white space.

    ``suffix`` (``.md``, ``.rst``, ``.txt``) says which headings there are. A passage has at most 1,500 characters of
    whole paragraphs; longer paragraphs are cut between sentences. Takes time linear in the length of the text.

    >>> text = "# Moths\n\nThey fly at night.\n"
    >>> [text[span.start : span.end] for span in split_passages(text, ".md")]
    ['# Moths\n\nThey fly at night.']
    """
    spans: list[Span] = []
    for block, block_end, above, within, has_heading in _blocks(text, suffix):
        whole = block_end - block <= LONGEST
        pieces = [(0, block_end - block)] if whole else split_sentences(text[block:block_end])
        for number, (start, end) in enumerate(pieces):
            piece = Span(block + start, block + end, within if number else above)
            begins = has_heading and not number
            last = spans[-1] if spans else None
            if last is None or piece.end - last.start > LONGEST or (begins and last.end - last.start >= _SECTION):
                spans.append(piece)
            else:
                spans[-1] = last._replace(end=piece.end)
    return tuple(spans)


def _headings(lines: Sequence[str], suffix: str) -> dict[int, tuple[int, str | None]]:
    """Return the level and the title of each line of a heading, by its number; its rules have no title."""
    found: dict[int, tuple[int, str | None]] = {}
    # The levels of reStructuredText are in the order in which a document uses the marks.
    fence, paragraph, levels = "", 0, dict(_MARKDOWN_LEVELS) if suffix == ".md" else {}
    for number, line in enumerate(lines):
        mark = _FENCE.match(line) if suffix == ".md" else None
        if fence or mark:  # comments in code look like headings
            if mark and not fence:
                fence = mark[1]
            elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            paragraph = 0
        elif suffix == ".md" and (atx := _ATX.match(line)):
            found[number], paragraph = (len(atx[1]), atx[2].rstrip("# \t")), 0
        elif suffix == ".txt" or not (rule := _UNDERLINE.match(line)):
            paragraph = paragraph + 1 if line else 0
        elif paragraph == 1 and (suffix == ".rst" or rule[1] in levels):
            level, paragraph = levels.setdefault(rule[1], len(levels) + 1), 0
            found |= {number - 1: (level, lines[number - 1].strip()), number: (level, None)}
            if number > 1 and _UNDERLINE.match(lines[number - 2].strip()):
                found.setdefault(number - 2, (level, None))
    return found


def _blocks(text: str, suffix: str) -> Iterator[tuple[int, int, str, str, bool]]:
    """Yield start and end of the paragraphs, the headings above and around them, and whether they begin with one."""
    at, headings, start = len(BOM) if text.startswith(BOM) else 0, list[tuple[int, str]](), -1
    end, above, has_heading, has_body = 0, "", False, False
    raws = text[at:].splitlines(keepends=True)
    lines = [raw.rstrip() for raw in raws]
    known = _headings(lines, suffix)
    for number, (raw, line) in enumerate(zip([*raws, ""], [*lines, ""], strict=True)):
        level, title = known.get(number, (0, None))
        if start >= 0 and has_body and (level or not line):
            yield start, end, above, _path(headings), has_heading
            start = -1
        if line:
            if start < 0:
                start, above = at + len(line) - len(line.lstrip()), _path(headings)
                has_heading = has_body = False
            end = at + len(line)
            if title is not None:
                headings = [heading for heading in headings if heading[0] < level]
                above, has_heading = above if has_heading else _path(headings), True
                headings.append((level, title[:_LONGEST_HEADING]))
            elif not level:
                has_body = True
        at += len(raw)
    if start >= 0 and not has_body:
        yield start, end, above, _path(headings), has_heading


def _path(headings: Iterable[tuple[int, str]]) -> str:
    return " > ".join(title for _, title in headings)
