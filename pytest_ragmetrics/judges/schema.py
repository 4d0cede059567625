"""The form of a judge's answer: building JSON schemas, and holding an answer strictly against one.

The schemas keep to what strict structured output allows everywhere: objects whose fields are all required and no
others allowed, lists, strings, integers, booleans and enumerated values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}

_TYPES: Mapping[str, type] = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


class InvalidAnswer(Exception):  # noqa: N818 - it is the answer that is named, and a judge may be asked again
    """A judge's answer does not fit what was asked; the message says what is wrong with it."""


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with exactly these fields, in this order."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def one_of(*values: str | int) -> Schema:
    """Return the schema of an enumerated value."""
    return {"type": "integer" if isinstance(values[0], int) else "string", "enum": list(values)}


def hold(data: object, schema: Mapping[str, Any], place: str = "the answer") -> Any:
    """Return the answer if it has the form of the schema; raise :class:`InvalidAnswer` naming the place if not.

    >>> hold({"claims": ["Water is wet."]}, record(claims=list_of(TEXT)))
    {'claims': ['Water is wet.']}
    """
    kind = schema["type"]
    # For Python a bool is an int; for a schema it is not.
    if not isinstance(data, _TYPES[kind]) or (isinstance(data, bool) and kind != "boolean"):
        msg = f"{place} must be {'an' if kind[0] in 'aio' else 'a'} {kind}"
        raise InvalidAnswer(msg)
    if "enum" in schema and data not in schema["enum"]:
        msg = f"{place} must be one of {', '.join(map(str, schema['enum']))}"
        raise InvalidAnswer(msg)
    if isinstance(data, dict):
        _hold_fields(data, schema["properties"], place)
    if isinstance(data, list):
        for number, item in enumerate(data, start=1):
            hold(item, schema["items"], f"{place}, item {number}")
    return data


def _hold_fields(data: dict[str, Any], fields: Mapping[str, Schema], place: str) -> None:
    missing = [name for name in fields if name not in data]
    surplus = [name for name in data if name not in fields]
    if missing or surplus:
        # Names that the judge made up are counted, not repeated: they may come from the text under test.
        parts = ([f"lacks {named(missing)}"] if missing else []) + ([f"has {len(surplus)} too many"] if surplus else [])
        msg = f"{place} must have the fields {named(list(fields))}: it {' and '.join(parts)}"
        raise InvalidAnswer(msg)
    for name, schema in fields.items():
        hold(data[name], schema, name if place == "the answer" else f"{name} of {place}")


def in_order(items: Iterable[Mapping[str, Any]], count: int, noun: str) -> list[Mapping[str, Any]]:
    """Return numbered items in the order 1 to ``count``; raise unless each number stands there exactly once.

    >>> in_order([{"number": 2}, {"number": 1}], 2, "claim")
    [{'number': 1}, {'number': 2}]
    """
    by_number: dict[int, Mapping[str, Any]] = {}
    repeated, unknown = set(), set()
    for item in items:
        number = item["number"]
        if not 1 <= number <= count:
            unknown.add(number)
        elif number in by_number:
            repeated.add(number)
        by_number[number] = item
    missing = [number for number in range(1, count + 1) if number not in by_number]
    problems = [
        f"{what} {noun} {listed(sorted(numbers))}"
        for what, numbers in (("nothing for", missing), ("more than one for", repeated), ("there is no", unknown))
        if numbers
    ]
    if problems:
        msg = f"each {noun} from 1 to {count} must be answered exactly once: {'; '.join(problems)}"
        raise InvalidAnswer(msg)
    return [by_number[number] for number in range(1, count + 1)]


def distinct(texts: Iterable[str], noun: str) -> tuple[str, ...]:
    """Return the texts trimmed, without those that say the same again; raise if one is blank.

    >>> distinct(["Red. ", "red.", "Blue."], "claim")
    ('Red.', 'Blue.')
    """
    kept: dict[str, str] = {}
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            msg = f"{noun} {number} is blank"
            raise InvalidAnswer(msg)
        kept.setdefault(" ".join(text.casefold().split()), text.strip())
    return tuple(kept.values())


def named(names: Sequence[str]) -> str:
    """Return field names quoted and joined."""
    return listed([f'"{name}"' for name in names])


def listed(items: Sequence[object], limit: int = 8) -> str:
    """Return items joined for a sentence, at most ``limit`` of them.

    >>> listed([1, 2, 3])
    '1, 2 and 3'
    """
    if len(items) > limit:
        return f"{', '.join(map(str, items[:limit]))} and {len(items) - limit} more"
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
