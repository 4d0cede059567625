"""Finding quoted spans in the contexts they are said to come from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise, takewhile
from typing import Literal, NamedTuple, TypeGuard

from pytest_ragmetrics.result import Evidence, Nearest, Verdict
from pytest_ragmetrics.sample import as_contexts
from pytest_ragmetrics.text.editorial import Edited, FoundPhrase, PhraseSearch, read_edits
from pytest_ragmetrics.text.folding import PieceComparison, QuotePiece, Tolerance, cut_piece, describe
from pytest_ragmetrics.text.markup import as_readable, have_notes
from pytest_ragmetrics.text.nearest import find_nearest
from pytest_ragmetrics.text.search import Haystack, Passage, begins_word, ends_word, squeezed_length, stands_alone

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

    def __init__(self, haystack: Haystack, comparison: PieceComparison, *, adjoining: bool) -> None:
        self._haystack = haystack
        self._comparison = comparison
        self._adjoining = adjoining
        self._beginnings, self._ends = map(_Grams, haystack.edges(_GRAM))

    def find(self, piece: QuotePiece) -> FoundPhrase | None:
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

    def _join(self, piece: QuotePiece, shares: Sequence[_Share]) -> FoundPhrase | None:
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
        return None if needed is None else FoundPhrase(tuple(passages), needed | Tolerance.CHUNKS)


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


# Places tried for one span, and characters compared; only texts made for it have more that look right and are not.
_MOST_PLACES = 256
_MOST_COMPARED = 100_000
_ENOUGH_PLACES = 3
# Phrases whose whereabouts are looked up to explain a failure.
_MOST_PHRASES = 8


class SpanSearch:
    """Searches contexts, squeezed once, for any number of spans; ``notes=False`` overlooks marks of notes in them."""

    def __init__(self, contexts: Sequence[str], *, casefold: bool, editorial: bool, notes: bool = True) -> None:
        self._contexts = contexts
        self._casefold = casefold
        self._editorial = editorial
        self._notes = notes
        self._comparison = PieceComparison(casefold=casefold, punctuation=editorial)

    @cached_property
    def _haystack(self) -> Haystack:
        return Haystack(self._contexts, notes=self._notes)

    @cached_property
    def _seams(self) -> Seams:
        return Seams(self._haystack, self._comparison, adjoining=self._editorial)

    def find(self, span: str, piece: QuotePiece) -> FoundPhrase | None:
        """Return where a span stands; ``piece`` is the span, cut into core and surroundings."""
        if found := self._find_whole(piece):
            return found
        if self._editorial and (found := self._find_edited(span)):
            return found
        return self._seams.find(piece) if len(self._contexts) > 1 else None

    def nearest(self, span: str) -> Nearest | None:
        """Return the passage most like a span that stands nowhere."""
        return find_nearest(span, self._haystack)

    def evidence(self, found: FoundPhrase) -> tuple[Evidence, ...]:
        """Return what was found, piece by piece, in terms of the original contexts."""
        evidence = []
        for passage in found.passages:
            start, end, text = self._haystack.source(passage)
            evidence.append(Evidence(context=passage.context, start=start, end=end, text=text))
        return tuple(evidence)

    def explain(self, span: str) -> str | None:
        """Say why an edited span is not found, where that is known without much ado."""
        edited = read_edits(span) if self._editorial else None
        if edited is None:
            return None
        if edited.problem:
            return edited.problem
        if not 1 < len(edited.phrases) <= _MOST_PHRASES:
            return None
        contexts: list[set[int]] = []
        for phrase in edited.phrases:
            positions = (self._haystack.find(piece.key) for piece in phrase.pieces)
            contexts.append({self._haystack.context_at(position) for position in positions if position >= 0})
        if not all(contexts):
            return None
        return f"its pieces stand in {'another order' if set.intersection(*contexts) else 'different contexts'}"

    def _find_whole(self, piece: QuotePiece) -> FoundPhrase | None:
        haystack, best = self._haystack, None
        places = min(_MOST_PLACES, 2 + _MOST_COMPARED // len(piece.core))
        for place, position in enumerate(islice(haystack.occurrences(piece.key), places)):
            if place == 0 and (found := self._find_exact(piece, position)):
                return found
            found = self._compare(piece, haystack.passage(position, position + len(piece.key)))
            if found and (best is None or found.needed.value < best.needed.value):
                best = found
            # A passage that needs less to be overlooked may follow soon.
            if best and (best.needed.value <= Tolerance.LAYOUT.value or place >= _ENOUGH_PLACES):
                break
        return best

    def _compare(self, piece: QuotePiece, passage: Passage) -> FoundPhrase | None:
        text, start = self._haystack.text(passage.context), passage.start - piece.sign
        if start < 0 or not stands_alone(text, start, passage.end):
            return None
        needed = self._comparison.whole(piece, text, passage.start, passage.end)
        return None if needed is None else self._found([passage._replace(start=start)], needed)

    def _find_exact(self, piece: QuotePiece, position: int) -> FoundPhrase | None:
        """Look for a span as it is written near a position, which is quicker than finding out where exactly that is."""
        block = self._haystack.block_at(position)
        text = self._haystack.text(block.context)
        start = text.find(piece.core, max(block.start - piece.sign, 0), block.end + len(piece.core))
        end = start + len(piece.core)
        if start < 0 or not stands_alone(text, start, end):
            return None
        if not (text.startswith(piece.trail, end) and text.endswith(piece.lead, 0, start)):
            return None
        return self._found([Passage(block.context, start, end)], Tolerance.EXACT)

    def _find_edited(self, span: str) -> FoundPhrase | None:
        for swap_case in (False,) if self._casefold else (True, False):
            edited = read_edits(span, swap_case=swap_case)
            if edited is None or edited.problem:
                return None
            if found := PhraseSearch(self._haystack, self._comparison).find(edited):
                return self._found(found.passages, found.needed | _signs(edited))
        return None

    def _found(self, passages: Sequence[Passage], needed: Tolerance) -> FoundPhrase:
        for passage in passages:
            start, end, _ = self._haystack.source(passage)
            if end - start != passage.end - passage.start:
                # There is markup in it that a reader does not see.
                needed |= Tolerance.LAYOUT if self._notes else Tolerance.BRACKET
        return FoundPhrase(tuple(passages), needed)


def _signs(edited: Edited) -> Tolerance:
    signs = Tolerance.ELLIPSIS if edited.has_ellipsis else Tolerance.EXACT
    return signs | Tolerance.BRACKET if edited.has_bracket else signs


Matching = Literal["editorial", "verbatim"]

_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\"/\\nrt])")


def align(span: str, contexts: object, *, casefold: bool = True, matching: Matching = "editorial") -> Verdict:
    """Decide whether a quotation stands in one of the contexts, and where.

    ``contexts`` is a text, a document, or a list of them. ``verbatim`` matching overlooks case, typography and layout;
    ``editorial`` matching also what honest quoting may change: punctuation at the ends, ellipses, brackets, and a
    passage that runs over adjoining chunks. Raises ``ValueError`` for any other ``matching``.

    >>> verdict = align("the tide [\u2026] turned at noon", ["We saw that the tide had, at last, turned at noon."])
    >>> verdict.ok, verdict.reason
    (True, 'found allowing for ellipsis')
    >>> align("the tide turned at midnight", ["The tide turned at noon."]).nearest.changes[-1].source
    'noon.'
    """
    return Sources(contexts, casefold=casefold, matching=matching).align([span])[0]


class Sources:
    """The contexts of one response, prepared once for all the spans that are to be found in them.

    >>> sources = Sources(["The tide turned at noon.", "It rained."])
    >>> [verdict.ok for verdict in sources.align(["tide turned", "tide rained"])]
    [True, False]
    """

    def __init__(self, contexts: object, *, casefold: bool = True, matching: Matching = "editorial") -> None:
        if matching not in ("editorial", "verbatim"):
            msg = f"matching must be 'editorial' or 'verbatim', not {matching!r}"
            raise ValueError(msg)
        self._contexts = contexts if _are_texts(contexts) else as_contexts(contexts)
        self._casefold = casefold
        self._editorial = matching == "editorial"
        self._search = SpanSearch(self._contexts, casefold=casefold, editorial=self._editorial)

    def align(self, spans: Iterable[str]) -> list[Verdict]:
        """Return a verdict for each span, in order, with its evidence or the nearest passage."""
        verdicts: dict[str, Verdict] = {}
        # What is quoted twice is looked for once.
        return [verdicts[span] if span in verdicts else verdicts.setdefault(span, self._align(span)) for span in spans]

    @cached_property
    def _is_empty(self) -> bool:
        return all(not context or context.isspace() for context in self._contexts)

    @cached_property
    def _searches(self) -> list[SpanSearch]:
        """The contexts as they are, and without note marks where they have any."""
        if not self._editorial or not have_notes(self._contexts):
            return [self._search]
        return [self._search, SpanSearch(self._contexts, casefold=self._casefold, editorial=True, notes=False)]

    def _align(self, span: str) -> Verdict:
        if not span or span.isspace():
            return Verdict(text=span, ok=False, reason="not found: the span is blank")
        if self._is_empty:
            return Verdict(text=span, ok=False, reason="not found: there is no context to find it in")
        text = as_readable(span)
        readings = [(reading, piece) for reading in _readings(text) if (piece := cut_piece(reading))]
        if not readings:
            return self._find_signs(span)
        for reading, piece in readings:
            for search in self._searches:
                if found := search.find(reading, piece):
                    needed = found.needed | Tolerance.LAYOUT if reading != span else found.needed
                    return Verdict(text=span, ok=True, reason=describe(needed), evidence=search.evidence(found))
        problem = self._search.explain(text)
        reason = "not found in any context" if problem is None else f"not found: {problem}"
        return Verdict(text=span, ok=False, reason=reason, nearest=self._search.nearest(text))

    def _find_signs(self, span: str) -> Verdict:
        """Look for a span of nothing but punctuation and symbols, which must stand in a context as it is."""
        wanted = span.strip()
        for context, text in enumerate(self._contexts):
            start = text.find(wanted)
            if start >= 0:
                evidence = Evidence(context=context, start=start, end=start + len(wanted), text=wanted)
                return Verdict(text=span, ok=True, reason=describe(Tolerance.EXACT), evidence=(evidence,))
        return Verdict(text=span, ok=False, reason="not found in any context: there is no word in it")


def _are_texts(contexts: object) -> TypeGuard[tuple[str, ...]]:
    """Tell whether contexts are as a sample keeps them already."""
    return type(contexts) is tuple and all(type(context) is str for context in contexts)


def _readings(span: str) -> Iterator[str]:
    """Yield a span as it is, and as what it says where it is a piece of JSON."""
    yield span
    if "\\" in span and (unescaped := _JSON_ESCAPE.sub(_unescape, span)) != span:
        yield unescaped


def _unescape(escape: re.Match[str]) -> str:
    return str(json.loads(f'"{escape[0]}"'))
