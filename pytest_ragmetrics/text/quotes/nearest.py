"""The passage of the contexts that is most like a quotation which is in none, and how it differs word by word."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import NamedTuple

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.core.result import ChangeKind, Nearest, WordChange
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.quotes.search import Passage, SourceIndex, comparison_key
from pytest_ragmetrics.text.unicode import UNSPACED, are_joined

# Longer quotations are compared by their beginning.
_LONGEST = 4000
# Up to this length the passage is found character by character.
_LONG = 500
# Less similar passages are not given.
_FAINTEST = 0.3
# How far a passage is widened to whole words.
_FARTHEST = 64
_TOKEN = lazily(rf"(?:[{UNSPACED}]|[^\s{UNSPACED}]+)\s*")
_KINDS: dict[str, ChangeKind] = {"equal": "same", "replace": "replaced", "delete": "added", "insert": "missing"}
_PLAIN = str.maketrans(dict.fromkeys(unicode.APOSTROPHES, "'") | dict.fromkeys(unicode.ALL_DASHES, "-"))
_EDGES = f".,;:!?'\"()[]*_-{unicode.WHITE_SPACE}{unicode.QUOTES}{unicode.ELLIPSES}{unicode.STOPS}{unicode.COMMAS}"


class _Words(NamedTuple):
    """The words of a text: as they are written, with the space after them, and as they are compared."""

    tokens: list[str]
    keys: list[str]

    def between(self, start: int, end: int) -> str:
        """Return the text from one word up to another."""
        return "".join(self.tokens[start:end]).strip()


def find_nearest(span: str, sources: SourceIndex) -> Nearest | None:
    """Return the passage most like a quotation, in whole words; ``None`` when nothing in the contexts is like it.

    The search follows pieces of the quotation that occur, so its time does not depend on how the contexts look.
    """
    from rapidfuzz.fuzz import ratio

    span = span[:_LONGEST]
    key = comparison_key(span)
    window = _window(key, len(span), sources) if key else None
    if window is None:
        return None
    inside = sources.text(window.context)[window.start : window.end]
    quoted, around = _split_words(span), _split_words(inside)
    first, last, changes = _closest(span, quoted, inside, around)
    similarity = ratio(" ".join(quoted.keys), " ".join(around.keys[first:last])) / 100
    if similarity < _FAINTEST:
        return None
    at = window.start + len(inside) - len(inside.lstrip()) + sum(map(len, around.tokens[:first]))
    end = at + len("".join(around.tokens[first:last]).rstrip())
    start, end, text = sources.original(Passage(window.context, at, end))
    return Nearest(context=window.context, start=start, end=end, text=text, similarity=similarity, changes=changes)


def _window(key: bytes, length: int, sources: SourceIndex) -> Passage | None:
    """Return the stretch of a context where most pieces of a key agree that the quotation would be, and some more."""
    starts = sorted(sources.likely_starts(key))
    if not starts:
        return None
    slack = max(len(key) // 4, 8)
    best, most, first = 0, 0, 0
    for last, position in enumerate(starts):
        while starts[first] < position - slack:
            first += 1
        if last - first + 1 > most:
            best, most = first, last - first + 1
    agreeing = starts[best : best + most]
    middle = min(max(agreeing[len(agreeing) // 2] + len(key) // 2, 0), len(sources.key) - 1)
    low, high = sources.bounds[sources.context_at(middle)]
    if low == high:
        return None
    context, start = sources.character_at(min(max(agreeing[0] - slack // 2, low), high - 1))
    text = sources.text(context)
    end = min(start + length + length // 4 + 2 * slack, len(text))
    low, high = max(start - _FARTHEST, 0), min(end + _FARTHEST, len(text))
    # In whole words.
    while start > low and are_joined(text[start - 1], text[start]):
        start -= 1
    while end < high and are_joined(text[end - 1], text[end]):
        end += 1
    return Passage(context, start, end)


def _closest(span: str, quoted: _Words, inside: str, around: _Words) -> tuple[int, int, tuple[WordChange, ...]]:
    """Return the (start, end) word indexes of the closest passage, and how it differs."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.fuzz import partial_ratio_alignment

    first, last = 0, len(around.keys)
    if len(span) <= _LONG and len(span) < len(inside):
        alignment = partial_ratio_alignment(_lower(span), _lower(inside))
        if alignment:
            starts = list(accumulate(map(len, around.tokens), initial=len(inside) - len(inside.lstrip())))
            first = max(bisect_right(starts, alignment.dest_start) - 1, 0)
            last = bisect_left(starts, alignment.dest_end)
    steps, low, high = Levenshtein.opcodes(quoted.keys, around.keys[first:last]), first, last
    if steps:
        # Cut off what is outside the first and last word that are equal; put back what was cut off too early.
        head, tail = steps[0], steps[-1]
        if head.tag == "insert":
            low += head.dest_end
        elif head.tag == "delete" and around.keys[max(first - head.src_end, 0) : first] == quoted.keys[: head.src_end]:
            low -= head.src_end
        dropped = tail.src_end - tail.src_start
        if tail.tag == "insert":
            high -= tail.dest_end - tail.dest_start
        elif tail.tag == "delete" and around.keys[last : last + dropped] == quoted.keys[tail.src_start :]:
            high += dropped
        high = max(low, high)
    if (low, high) != (first, last):
        steps = Levenshtein.opcodes(quoted.keys, around.keys[low:high])
    changes = (
        WordChange(
            kind=_KINDS[step.tag],
            said=quoted.between(step.src_start, step.src_end),
            source=around.between(low + step.dest_start, low + step.dest_end),
        )
        for step in steps
    )
    return low, high, tuple(changes)


def split_tokens(text: str) -> list[str]:
    """Return the words of a text as :func:`find_nearest` compares them, with the punctuation beside them.

    >>> split_tokens("Rope \u2013 tar, sails")
    ['Rope \u2013', 'tar,', 'sails']
    """
    return [token.strip() for token in _split_words(text[:_LONGEST]).tokens]


def _lower(text: str) -> str:
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def _split_words(text: str) -> _Words:
    words = _Words([], [])
    forms = _TOKEN.findall(text.translate(_PLAIN).casefold())
    for token, key in zip(_TOKEN.findall(text), (form.strip(_EDGES) for form in forms), strict=True):
        # A dash between two words goes with the first.
        if key or not words.tokens:
            words.tokens.append(token)
            words.keys.append(key)
        else:
            words.tokens[-1] += token
    return words
