"""How alike two texts are, character by character."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Literal, TypeAlias, get_args

Measure: TypeAlias = Literal["levenshtein", "indel", "hamming", "jaro", "jaro_winkler"]
MEASURES: tuple[Measure, ...] = get_args(Measure)

_MODULES = {"levenshtein": "Levenshtein", "indel": "Indel", "hamming": "Hamming", "jaro": "Jaro"}
_MODULES["jaro_winkler"] = "JaroWinkler"


def likeness(measure: Measure) -> Callable[[str, str], float]:
    """Return the function that says how alike two texts are, from 0.0 to 1.0; 1.0 for the same text.

    Levenshtein, indel and Hamming similarities are 1 - edits / the most that there could be.

    >>> likeness("levenshtein")("moth", "moths"), likeness("hamming")("moth", "math")
    (0.8, 0.75)
    """
    function: Callable[[str, str], float] = import_module(
        f"rapidfuzz.distance.{_MODULES[measure]}"
    ).normalized_similarity
    return function
