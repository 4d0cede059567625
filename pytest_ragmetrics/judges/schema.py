"""Schemas of a judge's answers: making and checking them, and finding the one JSON object in a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core.files import STRICT_JSON
from pytest_ragmetrics.text.unicode import plain

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}


class InvalidAnswer(Exception):  # noqa: N818 - it is the answer that is named, and a judge may be asked again
    """A judge's answer does not fit the task; the message names the fault, ``advice`` what a person may do."""

    def __init__(self, fault: str = "", *, advice: str = "") -> None:
        super().__init__(fault)
        self.advice = advice

    @property
    def explained(self) -> str:
        """The fault, with the advice."""
        return f"{self}: {self.advice}" if self.advice else str(self)


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with exactly these fields, in this order."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def one_of(*values: str | int) -> Schema:
    """Return the schema of an enumerated value."""
    return {"type": "integer" if isinstance(values[0], int) else "string", "enum": list(values)}


def validate(data: Any, schema: Schema) -> Any:
    """Return the answer if it has the form of the schema; raise :class:`InvalidAnswer` naming the place if not.

    >>> validate({"claims": ["Water is wet."]}, record(claims=list_of(TEXT)))
    {'claims': ['Water is wet.']}
    """
    # At the first answer: importing this package stays fast.
    from pydantic_core import ValidationError

    try:
        return _validator(json.dumps(schema)).validate_python(data, strict=True)
    except ValidationError as error:
        raise InvalidAnswer(_fault([(fault["type"], fault["loc"]) for fault in error.errors()], schema)) from None


@lru_cache(maxsize=128)
def _validator(schema: str) -> SchemaValidator:
    from pydantic_core import SchemaValidator

    return SchemaValidator(_core(json.loads(schema)))


def _core(schema: Schema) -> Any:
    """Return a schema in the form of pydantic."""
    kind = schema["type"]
    if kind == "object":
        fields = {name: {"type": "typed-dict-field", "schema": _core(p)} for name, p in schema["properties"].items()}
        return {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid"}
    if kind == "array":
        return {"type": "list", "items_schema": _core(schema["items"])}
    plain = {"type": {"string": "str", "integer": "int", "boolean": "bool"}[kind]}
    # A literal alone takes True for 1.
    enum = [{"type": "literal", "expected": schema["enum"]}] if "enum" in schema else []
    return {"type": "chain", "steps": [plain, *enum]}


def _fault(faults: Sequence[tuple[str, tuple[str | int, ...]]], schema: Schema) -> str:
    """Return the first fault in words, with its place."""
    kind, place = faults[0]
    if is_field := kind in ("missing", "extra_forbidden"):
        place = place[:-1]
    where = ""
    for step in place:
        if isinstance(step, int):
            where, schema = f"{where or 'the answer'}, item {step + 1}", schema["items"]
        else:
            where, schema = f"{step} of {where}" if where else step, schema["properties"][step]
    where = where or "the answer"
    if is_field:
        found = [(kind, str(at[-1])) for kind, at in faults if at[:-1] == place]
        missing = [name for kind, name in found if kind == "missing"]
        surplus = sum(kind == "extra_forbidden" for kind, _ in found)
        # Names that the judge made up are counted, not repeated: they may come from the text under test.
        parts = ([f"lacks {named(missing)}"] if missing else []) + ([f"has {surplus} too many"] if surplus else [])
        return f"{where} must have the fields {named(list(schema['properties']))}: it {' and '.join(parts)}"
    if kind == "literal_error":
        return f"{where} must be one of {', '.join(map(str, schema['enum']))}"
    return f"{where} must be {'an' if schema['type'][0] in 'aio' else 'a'} {schema['type']}"


def in_order(
    items: Iterable[Mapping[str, Any]], numbers: int | Sequence[int], noun: str, *, field: str = "number"
) -> list[Mapping[str, Any]]:
    """Return items in the order of their ``numbers``, from 1 on where that is a count; raise unless each is there once.

    >>> in_order([{"number": 2}, {"number": 1}], 2, "claim")
    [{'number': 1}, {'number': 2}]
    """
    wanted = range(1, numbers + 1) if isinstance(numbers, int) else numbers
    by_number: dict[int, Mapping[str, Any]] = {}
    repeated, unknown = set(), set()
    for item in items:
        number = item[field]
        if number not in wanted:
            unknown.add(number)
        elif number in by_number:
            repeated.add(number)
        by_number[number] = item
    missing = [number for number in wanted if number not in by_number]
    problems = [
        f"{what} {noun} {listed(sorted(numbers))}"
        for what, numbers in (("nothing for", missing), ("more than one for", repeated), ("there is no", unknown))
        if numbers
    ]
    if problems:
        each = f"{noun} from 1 to {numbers}" if isinstance(numbers, int) else f"{noun} of {listed(numbers)}"
        raise InvalidAnswer(f"each {each} must be answered exactly once: {'; '.join(problems)}")
    return [by_number[number] for number in wanted]


def distinct(texts: Iterable[str], noun: str) -> tuple[str, ...]:
    r"""Return the texts trimmed and without repetitions, ignoring case, space and Unicode form; raise if one is blank.

    >>> distinct(["Ros\u00e9. ", "rose\u0301.", "Blue."], "claim")
    ('Rosé.', 'Blue.')
    """
    kept: dict[str, str] = {}
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            raise InvalidAnswer(f"{noun} {number} is blank")
        kept.setdefault(plain(text.casefold()), text.strip())
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


# A reply of braces alone must not be tried from each of them.
_MOST_STARTS = 100
# What a reasoning model writes before its answer, where a server leaves it in. Thoughts without a mark at their begin
# stay: behind the mark at their end could be what a text under test says, quoted.
_THOUGHT = r"(?:think(?:ing)?|thoughts?|reasoning)"
_THOUGHTS = re.compile(
    rf"\A\s*<{_THOUGHT}>.*</{_THOUGHT}>|\A\s*\[THINK\].*\[/THINK\]|\A\s*◁think▷.*◁/think▷"
    r"|\A\s*<\|channel\|>analysis.*<\|channel\|>final[^{]*?<\|message\|>",
    re.DOTALL,
)


def parse_json(text: str) -> object:
    """Return the value of a JSON text; raise :class:`InvalidAnswer` if it is not valid or has a field twice."""
    try:
        return STRICT_JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer("the answer is not valid JSON") from error


def extract_object(text: str) -> tuple[str, object]:
    """Return the JSON object in a reply that may wrap it in prose or fences, as text and as a value.

    Raises :class:`InvalidAnswer` if there is none or several: a reply with two objects might quote one from the text
    under test, and which of them answers is not guessed.

    >>> extract_object('Here you are: {"claims": []}. Anything else?')
    ('{"claims": []}', {'claims': []})
    """
    found = json_objects(_THOUGHTS.sub("", text).strip())
    if len(found) != 1:
        problem = "contains several JSON objects" if found else "is not a JSON object"
        raise InvalidAnswer(f"the answer {problem}; there must be one and nothing else")
    return next(iter(found.items()))


def json_objects(text: str) -> dict[str, object]:
    """Return the JSON objects in a text, none within another, and their values."""
    found = {}
    start = text.find("{")
    for _ in range(_MOST_STARTS):
        if start < 0:
            break
        try:
            value, end = STRICT_JSON.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            found[text[start:end]] = value
        start = text.find("{", end)
    return found
