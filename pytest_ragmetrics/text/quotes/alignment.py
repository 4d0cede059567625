"""Finding quotations in the contexts they are said to come from.

:func:`align` is the public entry; the metric on quoted spans uses :class:`Sources` for all spans of a response. A span
is looked for as a whole, then with an editor's signs read, then across the boundaries of chunks (contexts that overlap
or follow each other). The result is a :class:`~pytest_ragmetrics.core.result.Verdict` with evidence or the nearest
passage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Literal, NamedTuple

from pytest_ragmetrics.core.result import Evidence, Nearest, Verdict
from pytest_ragmetrics.core.sample import as_contexts
from pytest_ragmetrics.text.markup import Readable, as_readable, have_notes
from pytest_ragmetrics.text.quotes.ellipses import OVERLAP, Match, PhraseSearch, goes_on, lost_at_edges, read_edits
from pytest_ragmetrics.text.quotes.folding import PieceComparison, QuotePiece, Tolerance, cut_piece, describe, gap_at
from pytest_ragmetrics.text.quotes.search import Passage, SourceIndex
from pytest_ragmetrics.text.unicode import check_text, printable
from pytest_ragmetrics.text.words import begins_word, ends_word, stands_alone

#: Whether an editor's changes are accepted, or only differences in case, typography and layout.
Matching = Literal["editorial", "verbatim"]
# Bytes of the key at the edges of a chunk that are looked up.
_GRAM = 4
# Chunks that begin or end in one quotation that are followed, and places of grams that are looked at to find them.
_MOST_PARTS = 48
_MOST_GRAMS = 600
_NEAR = 32
# Places tried for one span, and characters compared; only texts made for it have more of the same key that differ.
_MOST_PLACES = 256
_MOST_COMPARED = 100_000
_ENOUGH_PLACES = 3
# Phrases that are looked up to explain a failure.
_MOST_PHRASES = 8
_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\"/\\nrt])")


def align(span: str, contexts: object, *, casefold: bool = True, matching: Matching = "editorial") -> Verdict:
    """Decide whether a quotation is in one of the contexts, and where.

    ``contexts`` is a text, a document, or a list of them. ``verbatim`` matching ignores case, typography and layout;
    ``editorial`` also what honest quoting may change: punctuation, ellipses, brackets, and a passage that runs over
    adjoining chunks (``ragmetrics docs quotations``). Where the source ends a sentence or a block, the span must have a
    mark or a line break. Contexts are one text if they share 20 characters; they are chunks of one document if the
    first stops in mid-sentence and the next continues it. Raises ``ValueError`` for any other ``matching``.

    >>> verdict = align("the tide [\u2026] turned at noon", ["We saw that the tide had, at last, turned at noon."])
    >>> verdict.ok, verdict.reason
    (True, 'found allowing for ellipsis')
    >>> align("the tide turned at midnight", ["The tide turned at noon."]).nearest.changes[-1].source
    'noon.'
    """
    check_text("span", span)
    return Sources(contexts, casefold=casefold, matching=matching).align([span])[0]


class Sources:
    """The contexts of one response, prepared once for all the spans that are to be found in them.

    ``expected`` are spans that :meth:`find` will be asked for: of many, the pieces are looked up all at once.

    >>> sources = Sources(["The tide turned at noon.", "It rained."])
    >>> [verdict.ok for verdict in sources.align(["tide turned", "tide rained"])]
    [True, False]
    """

    def __init__(
        self,
        contexts: object,
        *,
        casefold: bool = True,
        matching: Matching = "editorial",
        expected: Iterable[str] = (),
    ) -> None:
        if matching not in ("editorial", "verbatim"):
            raise ValueError(f"matching must be 'editorial' or 'verbatim', not {matching!r}")
        self._contexts = as_contexts(contexts)
        self._casefold = casefold
        self._editorial = matching == "editorial"
        self._spans = [*expected]

    def align(self, spans: Iterable[str]) -> list[Verdict]:
        """Return a verdict for each span, in order, with its evidence or the nearest passage."""
        # What is quoted twice is looked for once.
        self._spans += dict.fromkeys(spans := list(spans))
        verdicts = {span: self._align(span) for span in dict.fromkeys(spans)}
        return [verdicts[span] for span in spans]

    def find(self, span: str) -> Verdict | None:
        """Return the verdict on a span that is found, in a small part of the time that the nearest passage takes."""
        if not span.strip() or self._is_empty:
            return None
        found = self._find(span, as_readable(span))
        return found if found and found.ok else None

    @cached_property
    def _is_empty(self) -> bool:
        return all(not context or context.isspace() for context in self._contexts)

    @cached_property
    def _searches(self) -> list[SpanSearch]:
        """Searches of the contexts as they are, and without note marks where they have any."""
        kinds = (True, False) if self._editorial and have_notes(self._contexts) else (True,)
        sources = [SourceIndex(self._contexts, notes=notes, expected=self._spans) for notes in kinds]
        return [SpanSearch(each, casefold=self._casefold, editorial=self._editorial) for each in sources]

    def _align(self, span: str) -> Verdict:
        if not span or span.isspace():
            return Verdict(text=span, ok=False, reason="not found: the span is blank")
        if self._is_empty:
            return Verdict(text=span, ok=False, reason="not found: there is no context to find it in")
        text = as_readable(span)
        if found := self._find(span, text):
            return found
        problem = next((problem for search in self._searches if (problem := search.explain(text))), None)
        reason = "not found in any context" if problem is None else f"not found: {problem}"
        return Verdict(text=span, ok=False, reason=reason, nearest=self._searches[0].nearest(text))

    def _find(self, span: str, text: str) -> Verdict | None:
        """Return the verdict on a span that is found, or that has no words; ``text`` is the span without markup."""
        has_words = False
        for reading, read in self._readings(span, text):
            if (piece := cut_piece(reading)) is None:
                continue
            has_words = True
            for search in self._searches:
                if found := search.find(reading, piece):
                    return search.verdict(span, found, read)
        return None if has_words else self._find_signs(span)

    def _readings(self, span: str, text: str) -> Iterator[tuple[str, int]]:
        """Yield what a span may mean, and what was overlooked to read it so: as it is, as JSON, without note marks."""
        yield text, Tolerance.EXACT if text == span else Tolerance.LAYOUT
        if "\\" in text:
            unescaped = _JSON_ESCAPE.sub(lambda escape: str(json.loads(f'"{escape[0]}"')), text)
            if unescaped != text:
                yield unescaped, Tolerance.LAYOUT
        # What is in brackets is read with the other signs of an editor.
        if self._editorial and "[" not in span and have_notes([span]):
            yield Readable(span, notes=False).text, Tolerance.BRACKET

    def _find_signs(self, span: str) -> Verdict:
        """Look for a span of punctuation and symbols only, which must be in a context as it is."""
        wanted = span.strip()
        for context, text in enumerate(self._contexts):
            start = text.find(wanted)
            if start >= 0:
                evidence = Evidence(context=context, start=start, end=start + len(wanted), text=wanted)
                return Verdict(text=span, ok=True, reason=describe(Tolerance.EXACT), evidence=(evidence,))
        return Verdict(text=span, ok=False, reason="not found in any context: there is no word in it")


class SpanSearch:
    """Searches contexts for any number of spans."""

    def __init__(self, sources: SourceIndex, *, casefold: bool, editorial: bool) -> None:
        self.sources = sources
        self._casefold = casefold
        self._editorial = editorial
        self._comparison = PieceComparison(casefold=casefold, punctuation=editorial)
        # What the gaps of spans leave out that turns a statement round.
        self._lost: dict[str, str] = {}
        # The words between which spans run on where a sentence or a block ends.
        self._joins: dict[str, str] = {}

    @cached_property
    def _chunks(self) -> ChunkSearch:
        return ChunkSearch(self.sources, self._comparison, adjoining=self._editorial)

    def find(self, span: str, piece: QuotePiece) -> Match | None:
        """Return where a span is; ``piece`` is the span, cut into core and surroundings."""
        self._comparison.join = None
        if (found := self._find_whole(piece)) and not self._loses_at_edges(span, found):
            return found
        if self._editorial and (found := self._find_edited(span)):
            return found
        found = self._chunks.find(piece) if len(self.sources.bounds) > 1 else None
        if found and not self._loses_at_edges(span, found):
            return found
        if self._comparison.join:
            self._joins[span] = self._comparison.join
        return None

    def verdict(self, span: str, found: Match, read: int) -> Verdict:
        """Return the verdict on a span that was found, ``read`` being what was overlooked to read it."""
        reason = describe(found.needed | read)
        if found.needed & Tolerance.CHUNKS:
            *first, last = (f"contexts[{passage.context}]" for passage in found.passages)
            reason += f": it runs over {', '.join(first)} and {last}"
        places = ((passage.context, *self.sources.original(passage)) for passage in found.passages)
        evidence = (Evidence(context=context, start=start, end=end, text=text) for context, start, end, text in places)
        return Verdict(text=span, ok=True, reason=reason, evidence=tuple(evidence))

    def nearest(self, span: str) -> Nearest | None:
        """Return the passage most like a span that is not found."""
        from pytest_ragmetrics.text.quotes.nearest import find_nearest  # few spans need it

        return find_nearest(span, self.sources, self._comparison.equal)

    def explain(self, span: str) -> str | None:
        """Say why a span is not found, where that takes only a few look-ups."""
        if join := self._joins.get(span):
            return f'it has no mark where the source ends a sentence or a block: "{printable(join)}"'
        edited = read_edits(span) if self._editorial else None
        if edited is None:
            return None
        if lost := self._lost.get(span):
            return f"the {'ellipsis' if edited.has_ellipsis else 'bracket'} leaves out {lost}"
        if edited.problem:
            return edited.problem
        if not 1 < len(edited.phrases) <= _MOST_PHRASES:
            return None
        contexts: list[set[int]] = []
        for phrase in edited.phrases:
            positions = (self.sources.find(piece.key) for piece in phrase.pieces)
            contexts.append({self.sources.context_at(position) for position in positions if position >= 0})
        if not all(contexts):
            return None
        return f"its pieces stand in {'another order' if set.intersection(*contexts) else 'different contexts'}"

    def _find_whole(self, piece: QuotePiece) -> Match | None:
        sources, best = self.sources, None
        places = min(_MOST_PLACES, 2 + _MOST_COMPARED // len(piece.core))
        for place, position in enumerate(islice(sources.occurrences(piece.key), places)):
            found = self._compare(piece, sources.passage(position, position + len(piece.key)))
            if found and (best is None or found.needed < best.needed):
                best = found
            # A passage that needs less to be overlooked may follow soon.
            if best and (best.needed <= Tolerance.LAYOUT or place >= _ENOUGH_PLACES):
                break
        return best

    def _compare(self, piece: QuotePiece, passage: Passage) -> Match | None:
        text, start = self.sources.text(passage.context), passage.start - piece.sign
        if start < 0 or not stands_alone(text, start, passage.end, lead=piece.lead, trail=piece.trail):
            return None
        needed = self._comparison.whole(piece, text, passage.start, passage.end)
        return None if needed is None else self._match((passage._replace(start=start),), needed)

    def _loses_at_edges(self, span: str, found: Match) -> bool:
        if not found.needed & (Tolerance.ELLIPSIS | Tolerance.BRACKET) or (edited := read_edits(span)) is None:
            return False
        lost = lost_at_edges(edited, self.sources, found.passages[0], found.passages[-1])
        if lost:
            self._lost[span] = lost
        return lost is not None

    def _find_edited(self, span: str) -> Match | None:
        readings = [read_edits(span), read_edits(span, "changed")]
        if not self._casefold:
            readings.insert(0, read_edits(span, "swapped"))
        # Most spans are read in one way only.
        for edited in {id(edited): edited for edited in readings}.values():
            if edited is None or edited.problem:
                continue
            search = PhraseSearch(self.sources, self._comparison)
            if found := search.find(edited):
                needed = found.needed | (Tolerance.ELLIPSIS if edited.has_ellipsis else Tolerance.EXACT)
                return self._match(found.passages, needed | Tolerance.BRACKET if edited.has_bracket else needed)
            if search.lost:
                self._lost[span] = search.lost
        return None

    def _match(self, passages: tuple[Passage, ...], needed: int) -> Match:
        for passage in passages:
            start, end, _ = self.sources.original(passage)
            if end - start != passage.end - passage.start:
                # There is markup in it that a reader does not see.
                needed |= Tolerance.LAYOUT if self.sources.notes else Tolerance.BRACKET
        return Match(passages, needed)


class _Part(NamedTuple):
    """What a context has of the key of a quotation: ``key[start:end]``, at its end, at its beginning, or as a whole."""

    context: int
    start: int
    end: int


class ChunkSearch:
    """Searches for quotations that run from one context into another."""

    def __init__(self, sources: SourceIndex, comparison: PieceComparison, *, adjoining: bool) -> None:
        self._sources = sources
        self._comparison = comparison
        self._adjoining = adjoining
        key = sources.key
        # With the separator in them, those of shorter contexts are in no quotation.
        self._beginnings = _Grams([key[start : start + _GRAM] for start, _ in sources.bounds])
        self._ends = _Grams([key[max(end - _GRAM, 0) : end] for _, end in sources.bounds])

    def find(self, piece: QuotePiece) -> Match | None:
        """Return where a quotation is in contexts that overlap, or that adjoin in the middle of a sentence."""
        for parts in self._chains(piece.key):
            if found := self._join(piece, parts):
                return found
        return None

    def _chains(self, key: bytes) -> Iterator[Sequence[_Part]]:
        """Yield the rows of contexts that a quotation may run through: the first ends with the beginning of it."""
        found = (
            _Part(context, 0, position + _GRAM)
            for context, position in self._ends.found_in(key)
            if position + _GRAM < len(key) and self._ends_with(context, key[: position + _GRAM])
        )
        # Most grams of a text without spaces occur in a quotation by chance, so only chunks that agree count.
        heads = list(islice(found, _MOST_PARTS))
        tails, wholes = [], []
        for context, position in self._beginnings.found_in(key):
            start, end = self._sources.bounds[context]
            if position and self._begins_with(context, key[position:]):
                tails.append(_Part(context, position, len(key)))
            elif position and key.startswith(self._sources.key[start:end], position):
                wholes.append(_Part(context, position, position + end - start))
            if len(tails) + len(wholes) >= _MOST_PARTS:
                break
        # Where less than a gram of the quotation is on one side, the neighbour is looked at directly.
        short_heads = dict.fromkeys(
            _Part(part.context - 1, 0, part.start)
            for part in (*tails, *wholes)
            if part.start < _GRAM and part.context and self._ends_with(part.context - 1, key[: part.start])
        )
        short_tails = dict.fromkeys(
            _Part(part.context + 1, part.end, len(key))
            for part in (*heads, *wholes)
            if len(key) - part.end < _GRAM
            and part.context + 1 < len(self._sources.bounds)
            and self._begins_with(part.context + 1, key[part.end :])
        )
        return _chain([*heads, *short_heads], wholes, [*tails, *short_tails])

    def _ends_with(self, context: int, key: bytes) -> bool:
        return self._sources.key.endswith(key, *self._sources.bounds[context])

    def _begins_with(self, context: int, key: bytes) -> bool:
        return self._sources.key.startswith(key, *self._sources.bounds[context])

    def _join(self, piece: QuotePiece, chain: Sequence[_Part]) -> Match | None:
        sources = self._sources
        end = sources.bounds[chain[0].context][1]
        passages = [sources.passage(end - chain[0].end, end)]
        text, start = sources.text(chain[0].context), passages[0].start
        lead = text[max(start - _NEAR, 0) : start]
        parts: list[str] = []
        if not begins_word(text, start, piece.lead):
            return None
        for last, part in pairwise(chain):
            text_before, text = text, sources.text(part.context)
            low, shared = sources.bounds[part.context][0], last.end - part.start
            if shared:
                parts.append(text_before[start : passages[-1].end])
                start = sources.passage(low, low + shared).end
                if len(text[:start].strip()) < OVERLAP:
                    return None
            elif self._adjoining and part.context == last.context + 1 and goes_on(text_before, text):
                gap_start, gap_end = gap_at(piece.core, part.start)
                is_parted = any(map(str.isspace, piece.core[gap_start:gap_end]))
                # A capital that the quotation does not have begins another text.
                if piece.core[gap_end].islower() and text[sources.passage(low, low + 1).start].isupper():
                    return None
                parts += (text_before[start:].rstrip(), " " if is_parted else "")
                start = len(text) - len(text.lstrip())
            else:
                return None
            passages.append(sources.passage(low + shared, low + part.end - part.start))
        end = passages[-1].end
        if not ends_word(text, end, piece.trail):
            return None
        join = "".join((*parts, text[start:end]))
        whole = f"{lead}{join}{text[end : end + _NEAR]}"
        needed = self._comparison.whole(piece, whole, len(lead), len(lead) + len(join))
        return None if needed is None else Match(tuple(passages), needed | Tolerance.CHUNKS)


def _chain(heads: list[_Part], wholes: list[_Part], tails: list[_Part]) -> Iterator[Sequence[_Part]]:
    """Yield the rows that begin with a head and end with a tail; each whole context is reached in one way."""
    rows: dict[_Part, tuple[_Part, ...]] = {head: (head,) for head in heads}
    for whole in sorted(wholes, key=lambda part: part.start):
        row = next((row for row in rows.values() if _follows(whole, row)), None)
        if row is not None:
            rows[whole] = (*row, whole)
    yield from ((*row, tail) for row in rows.values() for tail in tails if _follows(tail, row))


def _follows(part: _Part, row: Sequence[_Part]) -> bool:
    last = row[-1]
    return (
        last.start < part.start <= last.end < part.end
        and (part.start < last.end or part.context == last.context + 1)
        # No text continues itself.
        and all(part.context != other.context for other in row)
    )


class _Grams:
    """The first or the last few bytes of the key of each context."""

    def __init__(self, grams: list[bytes]) -> None:
        self._contexts: dict[bytes, list[int]] = {}
        for context, gram in enumerate(grams):
            self._contexts.setdefault(gram, []).append(context)

    def found_in(self, key: bytes) -> list[tuple[int, int]]:
        """Return contexts and where in the key of a quotation their grams are; a bounded number of them, in order."""
        places = range(len(key) - _GRAM + 1)
        found = ((context, at) for at in places for context in self._contexts.get(key[at : at + _GRAM], ()))
        return sorted(islice(found, _MOST_GRAMS))
