"""How far a quotation may differ from its source, as values that combine and can be worded."""

from __future__ import annotations

from enum import Flag, auto
from functools import lru_cache


class Tolerance(Flag):
    """What had to be overlooked before a quotation agreed with its source; ``EXACT`` is nothing at all."""

    EXACT = 0
    LAYOUT = auto()
    CASE = auto()
    TYPOGRAPHY = auto()
    PUNCTUATION = auto()
    ELLIPSIS = auto()
    BRACKET = auto()
    CHUNKS = auto()


#: What a verbatim quotation may differ in.
FOLDS = Tolerance.LAYOUT | Tolerance.CASE | Tolerance.TYPOGRAPHY

_FOLDED = {Tolerance.LAYOUT: "layout", Tolerance.CASE: "case", Tolerance.TYPOGRAPHY: "typography"}
_ALLOWED = {
    Tolerance.PUNCTUATION: "punctuation",
    Tolerance.ELLIPSIS: "ellipsis",
    Tolerance.BRACKET: "bracket",
}


@lru_cache(maxsize=256)
def describe(needed: Tolerance) -> str:
    """Say in a few words how a quotation was found.

    >>> describe(Tolerance.EXACT)
    'found, exact'
    >>> describe(Tolerance.CASE | Tolerance.TYPOGRAPHY)
    'found after folding case and typography'
    >>> describe(Tolerance.ELLIPSIS | Tolerance.CHUNKS)
    'found across adjoining chunks, allowing for ellipsis'
    """
    if not needed:
        return "found, exact"
    parts = []
    if needed & Tolerance.CHUNKS:
        parts.append("across adjoining chunks")
    if folded := [word for flag, word in _FOLDED.items() if needed & flag]:
        parts.append(f"after folding {_list(folded)}")
    if allowed := [word for flag, word in _ALLOWED.items() if needed & flag]:
        parts.append(f"allowing for {_list(allowed)}")
    return f"found {', '.join(parts)}"


def _list(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
