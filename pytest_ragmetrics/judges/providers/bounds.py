"""Bounds on replies: a small model that nothing bounds writes without an end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_ragmetrics.judges.schema import Schema
from pytest_ragmetrics.judges.tasks import Task

# Characters of a text beside what the texts under test have, of a reason, and of the rest of an entry.
_TEXT, _REASON, _ENTRY = 200, 500, 60
# llama.cpp refuses larger repetitions, or passes over them; with more numbers than these to choose from it is slower.
_LONGEST, _MOST, _MOST_NUMBERS = 1000, 500, 50
# Entries of a list besides one for each few characters of the texts, and the tokens of a reply besides one for each.
_FEW, _SHORTEST, _TOKENS, _MOST_TOKENS = 8, 8, 512, 8192
# A repetition of up to so many characters is written out three times more, and so many characters at least.
_LONGEST_PERIOD, _WRITTEN = 400, 80


def bounded(schema: Mapping[str, Any], task: Task[Any]) -> tuple[Schema, int]:
    """Return the schema of an answer with bounds on its texts and lists, and the most tokens that it may take.

    Numbered entries are exactly as many as there are items. No honest answer comes near the other bounds.

    >>> from pytest_ragmetrics.judges.tasks import ListClaims
    >>> bounded(ListClaims.form, ListClaims(text="Moths fly at night."))[0]["properties"]["claims"]
    {'type': 'array', 'items': {'type': 'string', 'maxLength': 219}, 'maxItems': 10}
    """
    size = sum(len(block.text) for block in task.blocks())
    found = _bounded(schema, size, task.entries())
    return found, min(_longest(found), _TOKENS + 4 * size, _MOST_TOKENS)


def _bounded(schema: Any, size: int, entries: int | None, name: str = "") -> Any:
    """Return a schema with bounds where it has none of its own; what is unknown in it stays."""
    if not isinstance(schema, Mapping) or "enum" in schema:
        return schema
    found, kind = dict(schema), schema.get("type")
    if "properties" in schema:
        fields = schema["properties"].items()
        found["properties"] = {field: _bounded(form, size, entries, field) for field, form in fields}
    if "items" in schema:
        found["items"] = _bounded(schema["items"], size, entries)
    if kind == "array" and not schema.keys() & {"minItems", "maxItems"}:
        # A list within an entry has a length of its own.
        items = schema.get("items")
        is_exact = entries is not None and isinstance(items, Mapping) and "properties" in items
        most = entries if is_exact and entries is not None else _FEW + size // _SHORTEST
        bounds = {"minItems": most, "maxItems": most} if is_exact else {"maxItems": most}
        found |= bounds if most <= _MOST else {}
    if kind == "string":
        found.setdefault("maxLength", _REASON if name == "reason" else min(_TEXT + size, _LONGEST))
    if name == "number" and kind == "integer" and entries is not None and entries <= _MOST_NUMBERS:
        found["enum"] = [*range(1, entries + 1)]
    return found


def _longest(schema: Any) -> int:
    """Return about how many characters an answer has at most."""
    if not isinstance(schema, Mapping):
        return _ENTRY
    if "properties" in schema:
        return _ENTRY + sum(map(_longest, schema["properties"].values()))
    if "items" in schema:
        most: int = schema.get("maxItems", _MOST)
        return most * (_longest(schema["items"]) + 1)
    longest: int = schema.get("maxLength", _ENTRY)
    return longest + 4


def repeats_itself(text: str) -> bool:
    """Tell whether a text ends in repetitions: its writer would have gone on so.

    Numbered entries that say the same are none, as their numbers differ.

    >>> repeats_itself("It is. " + "The pump hums. " * 8 + "The pu"), repeats_itself("It is. The pump hums.")
    (True, False)
    """
    tail = text[-4 * _LONGEST_PERIOD :]
    for period in range(1, _LONGEST_PERIOD + 1):
        written = max(3 * period, _WRITTEN)
        if written + period <= len(tail) and tail[-written:] == tail[-written - period : -period]:
            return True
    return False
