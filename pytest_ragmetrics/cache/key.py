"""What determines an answer, as one JSON object and as the key that is computed from it.

Thresholds, retries, timeouts, time, base URL, API key and reporting options determine nothing and stay out.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from pytest_ragmetrics.judges.transport import Request

#: The task of a row that asks for a vector.
EMBEDDING = "embedding"

# Changes whenever the same request would have to be asked anew.
_VERSION = 1
# Up to here every integer is exactly one float.
_LARGEST_EXACT = 2**53
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# A schema is made of these, and is gone through for every request.
_AS_IT_IS = frozenset({str, int, bool, type(None)})


def request_row(request: Request) -> dict[str, Any]:
    """Return all that determines the reply to a request as JSON builtins; raises as :func:`canonical`."""
    return {
        "task": request.task,
        "kind": request.kind,
        "model": request.model,
        "vote": request.vote,
        "parameters": _plain(request.parameters, "parameters"),
        "messages": [{"role": message["role"], "content": message["content"]} for message in request.messages],
        "schema": _plain(request.schema, "schema"),
    }


def embedding_row(*, kind: str, model: str, text: str, dimensions: int | None = None) -> dict[str, Any]:
    """Return all that determines the vector of a text.

    >>> embedding_row(kind="openai", model="m", text="Water is wet.")["task"]
    'embedding'
    """
    return {"task": EMBEDDING, "kind": kind, "model": model, "dimensions": dimensions, "text": text}


def key_of(row: Mapping[str, Any], *, salt: str = "", plain: bool = False) -> str:
    """Return the key of a row: the SHA-256 of its canonical JSON, 64 hexadecimal digits.

    ``salt`` separates caches by hand. ``plain`` spares a row just made by a function above what makes it one. Raises
    as :func:`canonical`.

    >>> key_of({"model": "m", "vote": 0}) == key_of({"vote": 0, "model": "m"})
    True
    >>> key_of({"model": "m", "vote": 0}) == key_of({"model": "m", "vote": 1})
    False
    """
    whole = {"version": _VERSION, "salt": salt, "request": row}
    text = _ENCODER.encode(whole) if plain else canonical(whole)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical(value: object) -> str:
    r"""Return the one JSON text of a value: ASCII, sorted, without blanks; ``1.0`` is ``1``, a tuple is a list.

    Raises ``TypeError`` for what is not JSON and ``ValueError`` for NaN and infinity.

    >>> canonical({"b": (1.0, None), "a": "ü"})
    '{"a":"\\u00fc","b":[1,null]}'
    """
    return _ENCODER.encode(_plain(value, "the value"))


def _plain(value: object, place: str) -> Any:
    if type(value) in _AS_IT_IS or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(value, place)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                msg = f"{place}: the name of a field must be a str, not {type(name).__name__}"
                raise TypeError(msg)
        return {
            name: item if type(item) in _AS_IT_IS else _plain(item, f"{place}.{name}") for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _AS_IT_IS else _plain(item, place) for item in value]
    msg = f"{place}: {type(value).__name__} is not JSON"
    raise TypeError(msg)


def _number(value: float, place: str) -> float:
    if not math.isfinite(value):
        msg = f"{place}: {value} is not JSON"
        raise ValueError(msg)
    return int(value) if value.is_integer() and abs(value) <= _LARGEST_EXACT else float(value)
