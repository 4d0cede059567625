"""Finding a quotation that begins in one chunk of a document and ends in the next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from pytest_ragmetrics.text.matching.boundaries import begins_word, ends_word
from pytest_ragmetrics.text.matching.comparison import Comparison, Piece
from pytest_ragmetrics.text.matching.haystack import Haystack
from pytest_ragmetrics.text.matching.phrase_search import Found
from pytest_ragmetrics.text.matching.tolerances import Tolerance

#: Characters that two chunks must share for one to be the continuation of the other.
_OVERLAP = 20
_GRAM = 4
# Ways to part one quotation between chunks that are looked at.
_MOST = 48
_NEAR = 32

_SENTENCE_END = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\uff0e\u061f\u06d4\u0964\u0965\u0589\u1362\u17d4][\s\"'\u00bb\u00ab\u2018-\u201f\u2039\u203a\u300d\u300f)\]*_]*$"
)
_NEW_BLOCK = re.compile(r"\s*(?:#{1,6}\s|[-*+\u2022\u2013\u2014]\s|\d{1,3}[.)]\s|>)")
_PARAGRAPH_END = re.compile(r"\n[ \t\r]*\n\s*$")


class _Head(NamedTuple):
    """A context that the squeezed quotation goes into at its end, ``taken`` bytes of the quotation deep."""

    context: int
    taken: int


class Seams:
    """Where the contexts begin and end, to put quotations together that run from one into another."""

    def __init__(self, haystack: Haystack, comparison: Comparison, *, adjoining: bool) -> None:
        self._haystack = haystack
        self._comparison = comparison
        self._adjoining = adjoining
        self._beginnings, self._ends = map(_Grams, haystack.edges(_GRAM))

    def find(self, piece: Piece) -> Found | None:
        """Return where a quotation stands in two contexts that overlap, or that adjoin in the middle of a sentence."""
        for head, tail in self._crossings(piece.key):
            found = self._join(piece, head, tail)
            if found is not None:
                return found
        return None

    def _crossings(self, key: bytes) -> Iterator[tuple[_Head, _Head]]:
        """Yield pairs: a context that ends with ``key[:taken]``, and one that begins with ``key[taken:]``."""
        heads, tails = self._heads(key), self._tails(key)
        for head in heads:
            yield from ((head, tail) for tail in tails if tail.taken <= head.taken and tail.context != head.context)
        # Where less than a gram of the quotation lies on one side, the neighbour is asked directly.
        known = set(heads) | set(tails)
        for tail in tails:
            head = _Head(tail.context - 1, tail.taken)
            if (
                tail.taken < _GRAM
                and head not in known
                and head.context >= 0
                and self._ends_with(head.context, key[: tail.taken])
            ):
                yield head, tail
        for head in heads:
            tail = _Head(head.context + 1, head.taken)
            rest = key[head.taken :]
            if len(rest) < _GRAM and tail.context < len(self._haystack) and self._begins_with(tail.context, rest):
                yield head, tail

    def _heads(self, key: bytes) -> list[_Head]:
        found = []
        for context, position in self._ends.sightings(key):
            taken = position + _GRAM
            if taken < len(key) and self._ends_with(context, key[:taken]):
                found.append(_Head(context, taken))
        return found

    def _tails(self, key: bytes) -> list[_Head]:
        found = []
        for context, position in self._beginnings.sightings(key):
            if position > 0 and self._begins_with(context, key[position:]):
                found.append(_Head(context, position))
        return found

    def _ends_with(self, context: int, key: bytes) -> bool:
        return self._haystack.key.endswith(key, *self._haystack.bounds(context))

    def _begins_with(self, context: int, key: bytes) -> bool:
        return self._haystack.key.startswith(key, *self._haystack.bounds(context))

    def _join(self, piece: Piece, head: _Head, tail: _Head) -> Found | None:
        shared = head.taken - tail.taken
        first_end = self._haystack.bounds(head.context)[1]
        second_start = self._haystack.bounds(tail.context)[0]
        left = self._haystack.passage(first_end - head.taken, first_end)
        right = self._haystack.passage(second_start + shared, second_start + len(piece.key) - tail.taken)
        first, second = self._haystack.text(left.context), self._haystack.text(right.context)
        if not (begins_word(first, left.start) and ends_word(second, right.end)):
            return None
        if shared:
            overlap_end = self._haystack.passage(second_start, second_start + shared).end
            if len(second[:overlap_end].strip()) < _OVERLAP:
                return None
            joins = [first[left.start : left.end] + second[overlap_end : right.end]]
        elif self._adjoining and tail.context == head.context + 1 and _goes_on(first, second):
            before, after = first[left.start :].rstrip(), second[: right.end].lstrip()
            joins = [f"{before} {after}", before + after]
        else:
            return None
        lead, trail = first[max(left.start - _NEAR, 0) : left.start], second[right.end : right.end + _NEAR]
        for join in joins:
            needed = self._comparison.whole(piece, f"{lead}{join}{trail}", len(lead), len(lead) + len(join))
            if needed is not None:
                return Found((left, right), needed | Tolerance.CHUNKS)
        return None


def _goes_on(first: str, second: str) -> bool:
    return not (_SENTENCE_END.search(first[-64:]) or _PARAGRAPH_END.search(first[-64:]) or _NEW_BLOCK.match(second))


class _Grams:
    """The first or the last few bytes of each context."""

    def __init__(self, grams: list[bytes]) -> None:
        self._grams = grams

    @cached_property
    def _contexts(self) -> dict[bytes, list[int]]:
        contexts: dict[bytes, list[int]] = {}
        for context, gram in enumerate(self._grams):
            contexts.setdefault(gram, []).append(context)
        return contexts

    def sightings(self, key: bytes) -> Iterator[tuple[int, int]]:
        """Yield contexts and where in a squeezed quotation their grams stand; a bounded number of them."""
        pairs: Iterable[tuple[int, bytes]]
        if len(self._grams) < len(key):
            pairs = [(context, gram) for context, gram in enumerate(self._grams) if gram in key]
        else:
            present = {key[at : at + _GRAM] for at in range(len(key) - _GRAM + 1)} & self._contexts.keys()
            pairs = ((context, gram) for gram in present for context in self._contexts[gram])
        found = ((context, at) for context, gram in pairs if len(gram) == _GRAM for at in _positions(gram, key))
        return islice(found, _MOST)


def _positions(gram: bytes, key: bytes) -> Iterator[int]:
    position = key.find(gram)
    while position >= 0:
        yield position
        position = key.find(gram, position + 1)
