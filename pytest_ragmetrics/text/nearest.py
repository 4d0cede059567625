"""The passage closest to a quotation that stands nowhere, and how the two differ word by word."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Literal, NamedTuple

from pytest_ragmetrics.result import Nearest, WordChange
from pytest_ragmetrics.text.characters import UNSPACED, are_joined
from pytest_ragmetrics.text.search import Haystack, Passage, squeeze

#: Longer quotations are compared by their beginning.
_LONGEST = 4000
#: Up to this length the passage is found character by character.
_LONG = 500
_FAINTEST = 0.3
_FARTHEST = 64

_TOKEN = re.compile(r"\S+\s*")
_UNSPACED_TOKEN = re.compile(rf"(?:[{UNSPACED}]|[^\s{UNSPACED}]+)\s*")
_KINDS: dict[str, Literal["same", "replaced", "added", "missing"]] = {
    "equal": "same",
    "replace": "replaced",
    "delete": "added",
    "insert": "missing",
}
_UNSPACED = re.compile(f"[{UNSPACED}]")
_GLYPHS = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc\uff07", "'") | dict.fromkeys("\u2010\u2011\u2013\u2014\u2212", "-")
)
_EDGES = " \t\r\n\u00a0\u202f\u3000.,;:!?'\"()[]*_-"
_EDGES += "\u00ab\u00bb\u201c\u201d\u201e\u2026\u3001\u3002\u300c\u300d\uff01\uff0c\uff1f"


class _PassageWords(NamedTuple):
    """The words of a text: as they stand there, with the space after them, and as they are compared."""

    tokens: list[str]
    keys: list[str]

    def between(self, start: int, end: int) -> str:
        """Return the text from one word up to another."""
        return "".join(self.tokens[start:end]).strip()


def find_nearest(span: str, haystack: Haystack) -> Nearest | None:
    """Return the passage most like a quotation, in whole words; ``None`` when nothing in the contexts is like it.

    The search follows pieces of the quotation that occur, so its time does not depend on how the contexts look.
    """
    span = span[:_LONGEST]
    key = squeeze(span)
    window = _window(key, len(span), haystack) if key else None
    if window is None:
        return None
    inside = haystack.text(window.context)[window.start : window.end]
    said, around = _words(span), _words(inside)
    first, last = _likest(span, said, inside, around)
    source = _PassageWords(around.tokens[first:last], around.keys[first:last])
    similarity = _similarity(said, source)
    if similarity < _FAINTEST:
        return None
    at = window.start + len(inside) - len(inside.lstrip()) + sum(map(len, around.tokens[:first]))
    passage = Passage(window.context, at, at + len("".join(source.tokens).rstrip()))
    start, end, original = haystack.source(passage)
    return Nearest(
        context=passage.context,
        start=start,
        end=end,
        text=original,
        similarity=similarity,
        changes=tuple(_changes(said, source)),
    )


def _window(key: bytes, length: int, haystack: Haystack) -> Passage | None:
    """Return the stretch of a context where most pieces of a squeezed quotation agree that it would stand, and some."""
    sightings = sorted(haystack.sightings(key))
    if not sightings:
        return None
    slack = max(len(key) // 4, 8)
    best, most, first = 0, 0, 0
    for last, position in enumerate(sightings):
        while sightings[first] < position - slack:
            first += 1
        if last - first + 1 > most:
            best, most = first, last - first + 1
    seen = sightings[best : best + most]
    middle = min(max(seen[len(seen) // 2] + len(key) // 2, 0), len(haystack.key) - 1)
    low, high = haystack.bounds(haystack.context_at(middle))
    if low == high:
        return None
    context, start = haystack.character_at(min(max(seen[0] - slack // 2, low), high - 1))
    text = haystack.text(context)
    end = min(start + length + length // 4 + 2 * slack, len(text))
    low, high = max(start - _FARTHEST, 0), min(end + _FARTHEST, len(text))
    # In whole words.
    while start > low and are_joined(text[start - 1], text[start]):
        start -= 1
    while end < high and are_joined(text[end - 1], text[end]):
        end += 1
    return Passage(context, start, end)


def _likest(span: str, said: _PassageWords, inside: str, around: _PassageWords) -> tuple[int, int]:
    """Return from which word of a text to which it is most like a quotation."""
    from rapidfuzz.distance import Levenshtein

    first, last = 0, len(around.keys)
    if len(span) <= _LONG:
        first, last = _likest_characters(span, inside, around)
    steps = Levenshtein.opcodes(said.keys, around.keys[first:last])
    if not steps:
        return first, last
    # What lies outside the first and last word that are alike is cut off, and what was cut off too early put back.
    head, tail = steps[0], steps[-1]
    if head.tag == "insert":
        first += head.dest_end
    elif head.tag == "delete" and around.keys[max(first - head.src_end, 0) : first] == said.keys[: head.src_end]:
        first -= head.src_end
    dropped = tail.src_end - tail.src_start
    if tail.tag == "insert":
        last -= tail.dest_end - tail.dest_start
    elif tail.tag == "delete" and around.keys[last : last + dropped] == said.keys[tail.src_start :]:
        last += dropped
    return first, max(first, last)


def _likest_characters(span: str, inside: str, around: _PassageWords) -> tuple[int, int]:
    from rapidfuzz.fuzz import partial_ratio_alignment

    alignment = partial_ratio_alignment(_lower(span), _lower(inside))
    if alignment is None or len(span) >= len(inside):
        return 0, len(around.keys)
    indent = len(inside) - len(inside.lstrip())
    starts = list(accumulate(map(len, around.tokens), initial=indent))
    first = bisect_right(starts, alignment.dest_start) - 1
    return max(first, 0), bisect_left(starts, alignment.dest_end)


def _lower(text: str) -> str:
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def _words(text: str) -> _PassageWords:
    comparable = (text if text.isascii() else text.translate(_GLYPHS)).casefold()
    if text.isascii() or not _UNSPACED.search(text):
        # The quicker way, as splitting at white space finds the same words.
        tokens, forms = _TOKEN.findall(text), comparable.split()
    else:
        tokens, forms = _UNSPACED_TOKEN.findall(text), _UNSPACED_TOKEN.findall(comparable)
    keys = [form.strip(_EDGES) for form in forms]
    if "" not in keys:
        return _PassageWords(tokens, keys)
    words = _PassageWords([], [])
    for token, key in zip(tokens, keys, strict=True):
        # A dash between two words goes with the first.
        if key or not words.tokens:
            words.tokens.append(token)
            words.keys.append(key)
        else:
            words.tokens[-1] += token
    return words


def _similarity(said: _PassageWords, source: _PassageWords) -> float:
    from rapidfuzz.fuzz import ratio

    return ratio(" ".join(said.keys), " ".join(source.keys)) / 100


def _changes(said: _PassageWords, source: _PassageWords) -> Iterator[WordChange]:
    from rapidfuzz.distance import Levenshtein

    for step in Levenshtein.opcodes(said.keys, source.keys):
        yield WordChange(
            kind=_KINDS[step.tag],
            said=said.between(step.src_start, step.src_end),
            source=source.between(step.dest_start, step.dest_end),
        )
