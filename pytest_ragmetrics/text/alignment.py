"""Finding quoted spans in the contexts they are said to come from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeGuard

from pytest_ragmetrics.result import Evidence, Verdict
from pytest_ragmetrics.sample import as_contexts
from pytest_ragmetrics.text.matching.comparison import cut_piece
from pytest_ragmetrics.text.matching.span_search import SpanSearch
from pytest_ragmetrics.text.readable import as_readable, have_notes
from pytest_ragmetrics.text.tolerances import Tolerance, describe

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
