"""A golden set held against the documents of today: whether what its answers rest on still stands there, and where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_ragmetrics.cli.generate.documents import SourcePassage, read_passages, read_whole
from pytest_ragmetrics.cli.generate.drafts import Row
from pytest_ragmetrics.cli.generate.golden_set import support_of, turns_of
from pytest_ragmetrics.core.errors import ArgumentError
from pytest_ragmetrics.core.files import read_data, write_atomically
from pytest_ragmetrics.core.result import WordChange
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.runs.wording.figures import SHOWN, and_more, counted, named, quoted
from pytest_ragmetrics.text.diff import word_changes
from pytest_ragmetrics.text.quotes.alignment import Sources
from pytest_ragmetrics.text.sentences import sentence_table, split_sentences
from pytest_ragmetrics.text.unicode import BOM

State = Literal["same", "moved", "changed", "gone", "unchecked"]
# The state of a row is the last of its sentences'.
_STATES: tuple[State, ...] = ("unchecked", "same", "moved", "changed", "gone")
# A sentence that is less like the nearest passage is gone, not changed.
_FAINTEST = 0.7
# Characters in which the paragraph around a sentence is looked for.
_AROUND = 4000
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_CHANGES_SHOWN = 3
_MOST_PLACES = 16
# Half of a character, which UTF-8 cannot encode.
_SURROGATE = re.compile("[\ud800-\udfff]")
# How `ragmetrics generate` and other programs write a row.
_STYLES: tuple[dict[str, Any], ...] = tuple(
    {"ensure_ascii": is_ascii, "separators": separators}
    for separators in ((", ", ": "), (",", ":"))
    for is_ascii in (False, True)
)


class Place(NamedTuple):
    """A stretch of a document or of a given passage."""

    text: SourcePassage
    start: int
    end: int

    def __str__(self) -> str:
        file, line = self.text.file, self.text.line
        return f"{file}[{self.start}:{self.end}]" if line is None else f"{file}:{line}"

    def has(self, other: Place) -> bool:
        """Tell whether another place is a part of this one."""
        return self.text is other.text and self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One of the passages that a row rests on: where it was, its text, and its sentences that state the answer."""

    place: dict[str, Any]
    context: str
    support: Sequence[str]
    index: int


class Texts:
    """Documents that texts are looked for in; ``expected`` are these."""

    def __init__(self, texts: Sequence[SourcePassage], expected: Iterable[str]) -> None:
        self.texts = texts
        self._sources = Sources([each.text for each in texts], expected=expected)

    def find(self, text: str) -> Place | None:
        """Return where a text is; what runs from one document into another is in none."""
        verdict = self._sources.find(text)
        if verdict is None or len({piece.context for piece in verdict.evidence}) != 1:
            return None
        first, *_, last = verdict.evidence * 2
        source = self.texts[first.context]
        # Evidence is without the marks around it.
        exact = source.text.find(text, max(first.start - len(text), 0), last.end + len(text))
        return Place(source, first.start, last.end) if exact < 0 else Place(source, exact, exact + len(text))

    def find_sentence(self, text: str) -> Place | None:
        """Return where a text is that has neither a word before it in its sentence nor one behind it."""
        found = self.find(text)
        # The first place may be in a longer sentence, and another one is not.
        places = chain([found], islice(self._exact(text), _MOST_PLACES)) if found else ()
        return next(filter(_is_whole, places), None)

    def _exact(self, text: str) -> Iterator[Place]:
        for source in self.texts:
            at = source.text.find(text)
            while at >= 0:
                yield Place(source, at, at + len(text))
                at = source.text.find(text, at + 1)

    def nearest(self, text: str) -> Place | None:
        """Return the sentences that a text may have become."""
        near = self._sources.align([text])[0]
        if near.ok:  # a part of a longer sentence
            found = self.find(text)
            return found and _sentences_at(found)
        if near.nearest is None or near.nearest.similarity < _FAINTEST:
            return None
        source = self.texts[near.nearest.context]
        return _sentences_at(Place(source, near.nearest.start, near.nearest.end))


def _is_whole(place: Place) -> bool:
    """Tell whether no word stands beside a place in its sentences."""
    whole, text = _sentences_at(place), place.text.text
    return not any(map(str.isalnum, text[whole.start : place.start] + text[place.end : whole.end]))


def _sentences_at(place: Place) -> Place:
    """Return the sentences that a place has a part of."""
    text, (_, start, end) = place.text.text, place
    low, high = max(start - _AROUND, 0), min(end + _AROUND, len(text))
    before = [found.end() for found in _BLANK_LINE.finditer(text, low, start)]
    behind = _BLANK_LINE.search(text, end, high)
    low, high = before[-1] if before else low, behind.start() if behind else high
    there = ((low + first, low + last) for first, last in split_sentences(text[low:high]))
    touched = [(first, last) for first, last in there if first < end and start < last]
    return Place(place.text, min(touched[0][0], start), max(touched[-1][1], end)) if touched else place


class Finding(NamedTuple):
    """What became of a passage: its state, where it is now, and the sentences that are lost, with what is there now."""

    state: State
    now: Place | None = None
    lost: Sequence[tuple[str, Place | None]] = ()


class Library:
    """The documents of today, by file and all together, searched for the parts of all rows."""

    def __init__(self, documents: Mapping[str, Path], parts: Sequence[Part]) -> None:
        self._documents = documents
        self._by_file = {name: read_whole(path, name) for name, path in documents.items()}
        self._parts = parts
        self._texts: dict[str, Texts] = {}

    def finding(self, part: Part) -> Finding:
        """Return what became of a passage: it is looked for in the file it came from, then in all."""
        was = self._recorded(part.place)
        if was is not None and part.context and was.text.text[was.start : was.end] == part.context:
            return Finding("same", was)
        left, found = list(part.support), list[Place]()
        for texts in self._searched(part):
            if whole := texts.find(part.context):
                return Finding(_kept(part, was, whole), whole)
            places = {text: place for text in left if (place := texts.find_sentence(text))}
            found += places.values()
            if not (left := [text for text in left if text not in places]):
                return Finding(max((_kept(part, was, it) for it in found), key=_STATES.index), _together(found))
        near = {text: map(Texts.nearest, self._searched(part), repeat(text)) for text in left}
        lost = [(text, next(filter(None, places), None)) for text, places in near.items()]
        return Finding("changed" if all(place for _, place in lost) else "gone", lost=lost)

    def id_of(self, place: Place) -> str:
        """Return the id that ``ragmetrics generate`` gives the passage at a place."""
        if place.text.line is not None:
            return place.text.id
        passages = read_passages(self._documents[place.text.file], place.text.file)
        starts = (it.id for it in reversed(passages) if it.start is not None and it.start <= place.start)
        return next(starts, place.text.id)

    def _searched(self, part: Part) -> Iterator[Texts]:
        name = part.place.get("file")
        if isinstance(name, str) and name in self._by_file:
            if name not in self._texts:
                parts = (it for it in self._parts if it.place.get("file") == name)
                self._texts[name] = Texts(self._by_file[name], _expected(parts))
            yield self._texts[name]
        yield self._all

    @cached_property
    def _all(self) -> Texts:
        return Texts([*chain.from_iterable(self._by_file.values())], _expected(self._parts))

    def _recorded(self, place: Mapping[str, Any]) -> Place | None:
        """Return where a passage was, ``None`` where there is no such place today."""
        start, end, line = (place.get(name) for name in ("start", "end", "line"))
        for text in self._by_file.get(str(place.get("file")), ()):
            if text.line is None and type(start) is int and type(end) is int:
                return Place(text, start, end)
            if text.line is not None and text.line == line:
                return Place(text, 0, len(text.text))
        return None


def _kept(part: Part, was: Place | None, now: Place) -> State:
    is_same = was.has(now) if was else part.place.get("file") in (None, now.text.file)
    return "same" if is_same else "moved"


def _expected(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        yield from (part.context, *part.support)


def _together(places: Sequence[Place]) -> Place | None:
    """Return the stretch from the first place to the last, ``None`` where they are in several texts."""
    (text, *_), starts, ends = zip(*places, strict=True)
    return Place(text, min(starts), max(ends)) if all(place.text is text for place in places) else None


class Entry(NamedTuple):
    """A row of the file: its line, its number, and the passages that it rests on."""

    text: str
    number: int
    row: dict[str, Any]
    parts: Sequence[Part]


def check(file: Path, documents: Mapping[str, Path], *, fix: bool) -> tuple[list[str], bool]:
    """Return the lines that say what became of the rows of a golden set, and whether all of them still hold.

    A row is *same* or *moved* if the sentences that state its answer stand in the documents as whole sentences, but for
    case, typography, layout and punctuation; else *changed* if a passage is like each that does not, and *gone* if none
    is. With ``fix`` the new places are written, and nothing else of the file changes. Raises :class:`ArgumentError`
    for a file that is no golden set, and for one that cannot be written.
    """
    lines, entries = _read(file)
    library = Library(documents, [part for entry in entries for part in entry.parts])
    told: dict[str, list[str]] = {state: [] for state in _STATES}
    fixed = 0
    for entry in entries:
        findings = [library.finding(part) for part in entry.parts]
        state = max((finding.state for finding in findings), key=_STATES.index, default="unchecked")
        place = f"{file}:{entry.number}: {named(str(entry.row.get('id', '')))}"
        shown = (each for found in zip(entry.parts, findings, strict=True) for each in _explained(place, *found))
        told[state].append("\n".join(shown))
        if fix and state == "moved" and all(finding.now for finding in findings):
            lines[entry.number - 1] = _moved(entry, findings, library)
            fixed += 1
    if fixed:
        try:
            write_atomically(file, "\n".join(lines))
        except OSError as error:
            raise ArgumentError(f"{file} cannot be written: {error.strerror}: {error.filename!r}") from error
    counts = ", ".join(f"{len(told[state])} {state}" for state in _STATES[1:])
    unchecked = len(told["unchecked"])
    summary = [f"{file}: {counted(len(entries), 'row')}: {counts}"]
    summary += [f"{counted(unchecked, 'row')} without support or reference_contexts"] if unchecked else []
    summary += [*told["gone"], *told["changed"], *told["moved"][:SHOWN], *and_more(len(told["moved"]), shown=SHOWN)]
    if told["moved"]:
        written = f"the new places of {counted(fixed, 'row')} are written"
        summary.append(written if fix else "--fix writes the new places of rows that moved")
    return "\n".join(summary).split("\n"), not told["changed"] and not told["gone"]


def _read(path: Path) -> tuple[list[str], list[Entry]]:
    """Return the lines of a golden set and its rows."""
    try:
        lines = read_data(path).decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    entries = []
    for number, line in enumerate(lines, start=1):
        if not (text := line.removeprefix(BOM).strip()):
            continue
        try:
            row = json.loads(text)
            entries.append(Entry(line, number, row, _parts(row)))
        except (ValueError, TypeError, RecursionError) as error:
            raise ArgumentError(f"{path}:{number}: is no row of a golden set: {error}") from error
    return lines, entries


def _parts(row: Row) -> list[Part]:
    """Return the passages of a row, each with the sentences that must be there: its support, or else all."""
    sample = Sample.from_mapping(row if not isinstance(row, dict) else {**row, "id": None})
    contexts = [*(sample.reference_contexts or turns_of(row)[-1].get("reference_contexts") or ())]
    metadata, support = row.get("metadata"), support_of(row)
    places = [metadata, metadata.get("second")] if isinstance(metadata, dict) else []
    # What is in none of the contexts, which may have been edited, is looked for as if it were in the first.
    apart = [text for text in support if not any(text in context for context in contexts)]
    parts = []
    for index, context in enumerate(contexts or [""]):
        place = places[index] if index < len(places) else None
        within = [text for text in support if text in context] if support else _sentences_of(context)
        place = place if isinstance(place, dict) else {}
        parts.append(Part(place=place, context=context, support=[*within, *apart], index=index))
        apart = []
    return [part for part in parts if part.support]


def _sentences_of(context: str) -> list[str]:
    return [sentence.text for sentence in sentence_table((context,))]


def _explained(where: str, part: Part, finding: Finding) -> Iterator[str]:
    """Yield the lines on a passage that is not where it was."""
    if finding.state == "moved":
        file, start, end, line = (part.place.get(name) for name in ("file", "start", "end", "line"))
        was = f"{file}[{start}:{end}]" if line is None else f"{file}:{line}"
        yield f"{where}: moved: {was} -> {finding.now or 'several places'}"
    for text, place in finding.lost:
        yield f"{where}: {'changed' if place else 'gone'}: {quoted(text)}"
        if place is None:
            continue
        now = place.text.text[place.start : place.end]
        yield f"  {place}: {quoted(now)}"
        changes = [_change_text(change) for change in word_changes(text, now) if change.kind != "same"]
        yield f"  {'; '.join(changes[:_CHANGES_SHOWN])}{'; ...' if len(changes) > _CHANGES_SHOWN else ''}"


def _change_text(change: WordChange) -> str:
    was, now = quoted(change.source.strip()), quoted(change.said.strip())
    return {"added": f"{now} was added", "missing": f"{was} is gone"}.get(change.kind, f"{was} became {now}")


def _moved(entry: Entry, findings: Sequence[Finding], library: Library) -> str:
    """Return the line of a row with the places where its passages are now, written as it was."""
    body = entry.text.removeprefix(BOM).strip()
    whole = not _SURROGATE.search(json.dumps(entry.row, ensure_ascii=False))
    style = next((each for each in _STYLES if json.dumps(entry.row, **each) == body), {"ensure_ascii": not whole})
    for part, finding in zip(entry.parts, findings, strict=True):
        if finding.state == "moved" and finding.now is not None:
            _move(entry.row, part, finding.now, library)
    return entry.text.replace(body, json.dumps(entry.row, **style))


def _move(row: Row, part: Part, now: Place, library: Library) -> None:
    """Write the place of a passage into its row, and its id unless somebody gave it another."""
    place, own_id = part.place, re.compile(f"{re.escape(str(part.place.get('file')))}#\\d+")
    for turn in turns_of(row):
        ids = turn.get("reference_context_ids")
        if isinstance(ids, list) and ids[part.index : part.index + 1]:
            given = ids[part.index]
            if "line" in place or (isinstance(given, str) and own_id.fullmatch(given)):
                ids[part.index] = library.id_of(now)
    place["file"] = now.text.file
    if now.text.line is not None:
        place["line"] = now.text.line
    else:
        place |= {"start": now.start, "end": now.end}
    for name in ("start", "end") if now.text.line is not None else ("line",):
        place.pop(name, None)
