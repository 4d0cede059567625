"""Finding a quotation that runs over two or more chunks of a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from pytest_ragmetrics.text.matching.boundaries import begins_word, ends_word
from pytest_ragmetrics.text.matching.comparison import Comparison, Piece
from pytest_ragmetrics.text.matching.haystack import Haystack
from pytest_ragmetrics.text.matching.phrase_search import Found
from pytest_ragmetrics.text.matching.squeezing import squeezed_length
from pytest_ragmetrics.text.tolerances import Tolerance

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


class _Share(NamedTuple):
    """What a context has of a squeezed quotation: ``key[start:end]``, at its end, at its beginning, or as a whole."""

    context: int
    start: int
    end: int


class Seams:
    """Where the contexts begin and end, to put quotations together that run from one into another."""

    def __init__(self, haystack: Haystack, comparison: Comparison, *, adjoining: bool) -> None:
        self._haystack = haystack
        self._comparison = comparison
        self._adjoining = adjoining
        self._beginnings, self._ends = map(_Grams, haystack.edges(_GRAM))

    def find(self, piece: Piece) -> Found | None:
        """Return where a quotation stands in contexts that overlap, or that adjoin in the middle of a sentence."""
        for shares in self._crossings(piece.key):
            found = self._join(piece, shares)
            if found is not None:
                return found
        return None

    def _crossings(self, key: bytes) -> Iterator[Sequence[_Share]]:
        """Yield the rows of contexts that a quotation may run through: the first ends with the beginning of it."""
        heads, tails, wholes = self._heads(key), *self._later(key)
        # Where less than a gram of the quotation lies on one side, the neighbour is asked directly.
        short_heads = dict.fromkeys(
            _Share(share.context - 1, 0, share.start)
            for share in (*tails, *wholes)
            if share.start < _GRAM and share.context and self._ends_with(share.context - 1, key[: share.start])
        )
        short_tails = dict.fromkeys(
            _Share(share.context + 1, share.end, len(key))
            for share in (*heads, *wholes)
            if len(key) - share.end < _GRAM
            and share.context + 1 < len(self._haystack)
            and self._begins_with(share.context + 1, key[share.end :])
        )
        return _rows([*heads, *short_heads], wholes, [*tails, *short_tails])

    def _heads(self, key: bytes) -> list[_Share]:
        found = []
        for context, position in self._ends.sightings(key):
            taken = position + _GRAM
            if taken < len(key) and self._ends_with(context, key[:taken]):
                found.append(_Share(context, 0, taken))
        return found

    def _later(self, key: bytes) -> tuple[list[_Share], list[_Share]]:
        """Return the contexts that begin with the end of a quotation, and those that stand in the middle of it."""
        tails, wholes = [], []
        for context, position in self._beginnings.sightings(key):
            start, end = self._haystack.bounds(context)
            if position and self._begins_with(context, key[position:]):
                tails.append(_Share(context, position, len(key)))
            elif position and key.startswith(self._haystack.key[start:end], position):
                wholes.append(_Share(context, position, position + end - start))
        return tails, wholes

    def _ends_with(self, context: int, key: bytes) -> bool:
        return self._haystack.key.endswith(key, *self._haystack.bounds(context))

    def _begins_with(self, context: int, key: bytes) -> bool:
        return self._haystack.key.startswith(key, *self._haystack.bounds(context))

    def _join(self, piece: Piece, shares: Sequence[_Share]) -> Found | None:
        haystack = self._haystack
        end = haystack.bounds(shares[0].context)[1]
        passages = [haystack.passage(end - shares[0].end, end)]
        text, start = haystack.text(shares[0].context), passages[0].start
        lead = text[max(start - _NEAR, 0) : start]
        parts: list[str] = []
        if not begins_word(text, start):
            return None
        for last, share in pairwise(shares):
            text_before, text = text, haystack.text(share.context)
            low, shared = haystack.bounds(share.context)[0], last.end - share.start
            if shared:
                parts.append(text_before[start : passages[-1].end])
                start = haystack.passage(low, low + shared).end
                if len(text[:start].strip()) < _OVERLAP:
                    return None
            elif self._adjoining and share.context == last.context + 1 and _goes_on(text_before, text):
                parts += (text_before[start:].rstrip(), " " if _is_parted(piece.core, share.start) else "")
                start = len(text) - len(text.lstrip())
            else:
                return None
            passages.append(haystack.passage(low + shared, low + share.end - share.start))
        end = passages[-1].end
        if not ends_word(text, end):
            return None
        join = "".join((*parts, text[start:end]))
        whole = f"{lead}{join}{text[end : end + _NEAR]}"
        needed = self._comparison.whole(piece, whole, len(lead), len(lead) + len(join))
        return None if needed is None else Found(tuple(passages), needed | Tolerance.CHUNKS)


def _rows(heads: list[_Share], wholes: list[_Share], tails: list[_Share]) -> Iterator[Sequence[_Share]]:
    """Yield the rows that begin with a head and end with a tail; each whole context is reached in one way."""
    rows: dict[_Share, tuple[_Share, ...]] = {head: (head,) for head in heads}
    for whole in sorted(wholes, key=lambda share: share.start):
        row = next((row for row in rows.values() if _follows(whole, row)), None)
        if row is not None:
            rows[whole] = (*row, whole)
    yield from ((*row, tail) for row in rows.values() for tail in tails if _follows(tail, row))


def _follows(share: _Share, row: Sequence[_Share]) -> bool:
    last = row[-1]
    return (
        last.start < share.start <= last.end < share.end
        and (share.start < last.end or share.context == last.context + 1)
        # No text continues itself.
        and all(share.context != other.context for other in row)
    )


def _is_parted(core: str, position: int) -> bool:
    """Tell whether there is white space in a quotation before the letter at a position of its squeezed form."""
    offset = 0
    while position > 0:
        position -= squeezed_length(core[offset])
        offset += 1
    gap = takewhile(lambda char: not squeezed_length(char), core[offset:])
    return any(map(str.isspace, gap))


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
