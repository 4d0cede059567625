"""The passage of the contexts that is most like a quotation which is in none, and how it differs word by word."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.core.result import Nearest, WordChange
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.diff import Words, changes_of_words, runs_of
from pytest_ragmetrics.text.markup import as_readable
from pytest_ragmetrics.text.quotes.search import Passage, SourceIndex, comparison_key
from pytest_ragmetrics.text.unicode import UNSPACED, are_joined, caseless, is_word
from pytest_ragmetrics.text.words import begins_word, ends_word

# Longer quotations are compared by their beginning.
_LONGEST = 4000
# Up to this length the passage is found character by character.
_LONG = 500
# Less similar passages are not given.
_FAINTEST = 0.4
# How far a passage is widened to whole words.
_FARTHEST = 64
_TOKEN = lazily(rf"(?:[{UNSPACED}]|[^\s{UNSPACED}]+)\s*")
_OPENING = f"([\"'*_{unicode.QUOTES}{unicode.OPENING_STOPS}"
_CLOSING = f".,;:!?)]\"'*_{unicode.QUOTES}{unicode.ELLIPSES}"
# What of the source is shown beside a passage that ends inside a word or a number of it.
_BESIDE, _LAST_TOKEN, _FIRST_TOKEN = 32, re.compile(r"\S*\s*$"), re.compile(r"\s*\S*")
_PLAIN = str.maketrans(dict.fromkeys(unicode.APOSTROPHES, "'") | dict.fromkeys(unicode.ALL_DASHES, "-"))
_EDGES = f".,;:!?'\"()[]*_-{unicode.WHITE_SPACE}{unicode.QUOTES}{unicode.ELLIPSES}{unicode.STOPS}{unicode.COMMAS}"


def find_nearest(span: str, sources: SourceIndex, equal: Callable[[str, str], bool]) -> Nearest | None:
    """Return the passage most like a quotation, in whole words; ``None`` when nothing in the contexts is like it.

    Where the words are the same, ``equal`` tells whether two of them are written alike. The search follows pieces of
    the quotation that occur, so its time does not depend on how the contexts look.
    """
    from rapidfuzz.fuzz import ratio

    span = span[:_LONGEST]
    key = comparison_key(span)
    window = _window(key, len(span), sources) if key else None
    if window is None:
        return None
    inside = sources.text(window.context)[window.start : window.end]
    quoted, around = _split_words(span), _split_words(inside)
    first, last = _closest(span, quoted, inside, around)
    closest = Words(around.tokens[first:last], around.keys[first:last])
    similarity = ratio(" ".join(quoted.keys), " ".join(closest.keys)) / 100
    if similarity < _FAINTEST:
        return None
    changes = tuple(
        replace(change, said=change.said.strip(), source=change.source.strip())
        for change in changes_of_words(closest, quoted)
    )
    at = window.start + len(inside) - len(inside.lstrip()) + sum(map(len, around.tokens[:first]))
    end = at + len("".join(closest.tokens).rstrip())
    start, end, text = sources.original(Passage(window.context, at, end))
    if all(change.kind == "same" for change in changes):
        changes = tuple(_differences(quoted.tokens, text, sources.contexts[window.context], (start, end), equal))
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


def _closest(span: str, quoted: Words, inside: str, around: Words) -> tuple[int, int]:
    """Return the (start, end) word indexes of the closest passage."""
    from rapidfuzz.fuzz import partial_ratio_alignment

    first, last = 0, len(around.keys)
    if len(span) <= _LONG and len(span) < len(inside):
        alignment = partial_ratio_alignment(_lower(span), _lower(inside))
        if alignment:
            starts = list(accumulate(map(len, around.tokens), initial=len(inside) - len(inside.lstrip())))
            first = max(bisect_right(starts, alignment.dest_start) - 1, 0)
            last = bisect_left(starts, alignment.dest_end)
    runs = runs_of(around.keys[first:last], quoted.keys)
    if not any(run.same for run in runs):
        return first, last
    # Cut off what the quotation has no words for in front of the first word that is equal, and behind the last; put
    # back what was cut off too early.
    before, behind = (0 if run.same else run.old_end - run.old - (run.new_end - run.new) for run in (runs[0], runs[-1]))
    if before > 0 or around.keys[max(first + before, 0) : first] == quoted.keys[:-before]:
        first += before
    if behind > 0 or around.keys[last : last - behind] == quoted.keys[behind:]:
        last -= behind
    return first, last


def _differences(
    tokens: Sequence[str], text: str, source: str, place: tuple[int, int], equal: Callable[[str, str], bool]
) -> Iterator[WordChange]:
    """Yield how a quotation differs from a passage with the same words: in signs, or where the source goes on."""
    (start, end), said = place, [token.strip() for token in tokens]
    wanted = [token.strip() for token in _split_words(as_readable(text)).tokens]
    count = len(wanted)
    # A quotation may begin behind punctuation, and end before it.
    if is_word(said[0][0]):
        wanted[0] = wanted[0].lstrip(_OPENING)
    if is_word(said[-1][-1]):
        wanted[-1] = wanted[-1].rstrip(_CLOSING)
    if not begins_word(source, start):
        wanted[0] = _LAST_TOKEN.findall(source[max(start - _BESIDE, 0) : start])[0] + wanted[0]
    if not ends_word(source, end):
        wanted[-1] += _FIRST_TOKEN.findall(source[end : end + _BESIDE])[0]
    if len(said) != count or all(map(equal, said, wanted)):
        # Nothing in a word differs: it is where words begin, or their order.
        yield WordChange(kind="replaced", said="".join(tokens).strip(), source=text)
        return
    for same, group in groupby(zip(said, wanted, strict=True), lambda pair: equal(*pair)):
        ours, theirs = (" ".join(words) for words in zip(*group, strict=True))
        yield WordChange(kind="same" if same else "replaced", said=ours, source=theirs)


def _lower(text: str) -> str:
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def _split_words(text: str) -> Words:
    words = Words([], [])
    for token in _TOKEN.findall(text):
        key = caseless(token.translate(_PLAIN)).strip(_EDGES)
        # A dash between two words goes with the first.
        if key or not words.tokens:
            words.tokens.append(token)
            words.keys.append(key)
        else:
            words.tokens[-1] += token
    return words
