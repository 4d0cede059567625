"""Finding one span in a set of contexts, by the strictest way that succeeds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from pytest_ragmetrics.result import Evidence, Nearest
from pytest_ragmetrics.text.matching.boundaries import stands_alone
from pytest_ragmetrics.text.matching.comparison import Comparison, Piece
from pytest_ragmetrics.text.matching.editorial import Edited, read_edits
from pytest_ragmetrics.text.matching.haystack import Haystack, Passage
from pytest_ragmetrics.text.matching.nearest import find_nearest
from pytest_ragmetrics.text.matching.phrase_search import Found, PhraseSearch
from pytest_ragmetrics.text.matching.seams import Seams
from pytest_ragmetrics.text.tolerances import Tolerance

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
        self._comparison = Comparison(casefold=casefold, punctuation=editorial)

    @cached_property
    def _haystack(self) -> Haystack:
        return Haystack(self._contexts, notes=self._notes)

    @cached_property
    def _seams(self) -> Seams:
        return Seams(self._haystack, self._comparison, adjoining=self._editorial)

    def find(self, span: str, piece: Piece) -> Found | None:
        """Return where a span stands; ``piece`` is the span, cut into core and surroundings."""
        if found := self._find_whole(piece):
            return found
        if self._editorial and (found := self._find_edited(span)):
            return found
        return self._seams.find(piece) if len(self._contexts) > 1 else None

    def nearest(self, span: str) -> Nearest | None:
        """Return the passage most like a span that stands nowhere."""
        return find_nearest(span, self._haystack)

    def evidence(self, found: Found) -> tuple[Evidence, ...]:
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

    def _find_whole(self, piece: Piece) -> Found | None:
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

    def _compare(self, piece: Piece, passage: Passage) -> Found | None:
        text, start = self._haystack.text(passage.context), passage.start - piece.sign
        if start < 0 or not stands_alone(text, start, passage.end):
            return None
        needed = self._comparison.whole(piece, text, passage.start, passage.end)
        return None if needed is None else self._found([passage._replace(start=start)], needed)

    def _find_exact(self, piece: Piece, position: int) -> Found | None:
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

    def _find_edited(self, span: str) -> Found | None:
        for swap_case in (False,) if self._casefold else (True, False):
            edited = read_edits(span, swap_case=swap_case)
            if edited is None or edited.problem:
                return None
            if found := PhraseSearch(self._haystack, self._comparison).find(edited):
                return self._found(found.passages, found.needed | _signs(edited))
        return None

    def _found(self, passages: Sequence[Passage], needed: Tolerance) -> Found:
        for passage in passages:
            start, end, _ = self._haystack.source(passage)
            if end - start != passage.end - passage.start:
                # There is markup in it that a reader does not see.
                needed |= Tolerance.LAYOUT if self._notes else Tolerance.BRACKET
        return Found(tuple(passages), needed)


def _signs(edited: Edited) -> Tolerance:
    signs = Tolerance.ELLIPSIS if edited.has_ellipsis else Tolerance.EXACT
    return signs | Tolerance.BRACKET if edited.has_bracket else signs
