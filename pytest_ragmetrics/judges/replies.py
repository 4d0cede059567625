"""Finding the one JSON object in what a judge wrote."""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_ragmetrics.judges.schema import InvalidAnswer

# A reply of braces alone must not be tried from each of them.
_MOST_STARTS = 100
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*</think(?:ing)?>", re.DOTALL)


def parse_json(text: str) -> object:
    """Return the value of a JSON text; raise :class:`InvalidAnswer` if it is none, or says one thing twice."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        msg = "the answer is not valid JSON"
        raise InvalidAnswer(msg) from error


def extract_json(text: str) -> str:
    """Return the JSON object in a reply that may wrap it in prose or fences; raise if there is none or several.

    A reply with two objects might quote one from the text under test, and which of them answers is not guessed.

    >>> extract_json('Here you are: {"claims": []}. Anything else?')
    '{"claims": []}'
    """
    text = _THOUGHTS.sub("", text).strip()
    found = dict.fromkeys(_objects(text))
    if len(found) != 1:
        problem = "holds several JSON objects" if found else "is not a JSON object"
        msg = f"the answer {problem}; there must be one and nothing else"
        raise InvalidAnswer(msg)
    return next(iter(found))


def _objects(text: str) -> list[str]:
    found = []
    start = text.find("{")
    for _ in range(_MOST_STARTS):
        if start < 0:
            break
        try:
            _, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            found.append(text[start:end])
        start = text.find("{", end)
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        msg = "a field stands twice"
        raise ValueError(msg)
    return fields


def _refuse(constant: str) -> None:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
