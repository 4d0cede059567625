"""Finding the documents that a user names, and reading them into passages."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_ragmetrics.errors import DatasetError, RagMetricsError
from pytest_ragmetrics.generating.passages import split_passages
from pytest_ragmetrics.text.printable import printable

#: What is cut into passages here.
TEXTS = (".md", ".rst", ".txt")
#: Holds passages as they are, one a line.
PASSAGES = ".jsonl"
#: What the id of a row looks like.
ROW_ID = r"golden-[0-9a-f]{12}"


class ArgumentError(RagMetricsError):
    """A command was asked for something that it cannot do; nothing was read from a judge or written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
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
class Document:
    """A file to read, under the name that rows call it by."""

    path: Path
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The documents there are, and the names of files in folders that are none."""

    documents: tuple[Document, ...]
    passed_over: tuple[str, ...]


def find_documents(named: Iterable[Path], *, output: Path) -> Found:
    """Return the documents of files and folders, in order, each once; ``output`` is none of them.

    Of a folder that is every text file in it and below, hidden ones left out; a file of given passages counts where it
    is named itself. Raises :class:`ArgumentError` for what is not there or no text file, for two files of one name,
    and if there is no document at all.
    """
    documents: dict[str, Document] = {}
    passed_over: list[str] = []
    for argument in named:
        for path, name in _files(argument):
            if path.resolve() == output.resolve():
                continue
            if path.suffix.lower() not in TEXTS and path != argument:
                passed_over.append(name)
                continue
            document = documents.setdefault(name, Document(path=path, name=name))
            if not document.path.samefile(path):
                msg = f"{document.path} and {path} would both be called {name}: start in a folder that holds both"
                raise ArgumentError(printable(msg))
    if not documents:
        told = f" (passed over: {', '.join(passed_over[:3])})" if passed_over else ""
        msg = f"there is no {', '.join(TEXTS)} file to read{told}"
        raise ArgumentError(printable(msg))
    return Found(documents=tuple(documents.values()), passed_over=tuple(passed_over))


def read_passages(document: Document) -> tuple[Passage, ...]:
    """Return the passages of a document; raise ``DatasetError`` naming file and line if it cannot be read."""
    text = _text(document)
    if document.path.suffix.lower() == PASSAGES:
        return tuple(_given(text, document.name))
    spans = split_passages(text, document.path.suffix.lower())
    return tuple(
        Passage(
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


def _text(document: Document) -> str:
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


def _given(text: str, file: str) -> Iterator[Passage]:
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


def _given_one(line: str, file: str, number: int) -> Passage:
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
    return Passage(id=identity, text=text, file=file, line=number)
