"""How many tokens a model takes at once, by what it says about itself."""

from __future__ import annotations

# Of a tokenizer and a configuration that say nothing about it.
_LIMIT = 512
# A tokenizer that knows no limit has an enormous one.
_LARGEST = 1_000_000
# Families whose first positions are those of padding.
_OFFSET = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "longformer"})
_PADDING = 2


def window(*, family: str, positions: object, told: float | None) -> int:
    """Return the most tokens of one input.

    ``family`` is the ``model_type`` of a configuration, ``positions`` its ``max_position_embeddings``, which may be
    anything, and ``told`` the ``model_max_length`` of the tokenizer.

    >>> window(family="roberta", positions=514, told=1e30)
    512
    """
    counted = positions if isinstance(positions, int) else None
    if counted is not None and family in _OFFSET:
        counted -= _PADDING
    known = [limit for limit in (told, counted) if limit is not None and 0 < limit < _LARGEST]
    return int(min(known, default=_LIMIT))
