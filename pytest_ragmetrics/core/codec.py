"""Values as JSON and back: reports, messages between xdist workers, the JSON schema of ``--rag-json``.

Writing needs the standard library alone. Reading and the schema come from pydantic, over the dataclasses themselves,
and it is imported when the first value is read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_ragmetrics.core.sample import Sample

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

V = TypeVar("V")

# In bits: by default Python writes no integer of more than 4,300 digits (14,284 bits).
_LONGEST = 10_000
# How deep metadata is written: a value that contains itself has no end.
_DEEPEST = 100
# A lone surrogate has no encoding: it would end an xdist worker, and no JSON parser but Python's reads it.
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 60


class CodecError(ValueError):
    """A value is not of its kind; the message begins with the place in it."""


def encodable(text: str) -> str:
    """Return a text as an exact ``str`` in which U+FFFD replaces lone surrogates."""
    return text if type(text) is str and text.isascii() else str(_SURROGATE.sub("\ufffd", text))


def dump(value: object, *, text: Callable[[str], str] = encodable) -> Any:
    """Return a value as exact JSON builtins, every text and every name in a mapping passed through ``text``.

    Dataclasses become objects, a sample only with the fields that are set, numpy scalars numbers; NaN, infinity and
    what JSON has no type for become their text.

    >>> dump({"when": (1, 2.5), "none": None, "nan": float("nan")})
    {'when': [1, 2.5], 'none': None, 'nan': 'nan'}
    """
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return _number(value)
    if isinstance(value, Sample):
        return {name: dump(item, text=text) for name, item in value.to_mapping().items()}
    if is_dataclass(value):
        return {field.name: dump(getattr(value, field.name), text=text) for field in fields(value)}
    if isinstance(value, Mapping):
        found: dict[str, Any] = {}
        for key, item in value.items():
            # Two names may become one.
            found[_unused(text(encodable(str(key))), found)] = dump(item, text=text)
        return found
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [dump(item, text=text) for item in value]
    if hasattr(value, "item"):
        return dump(value.item(), text=text)  # a numpy scalar
    return text(str(value))


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON builtins with the texts among their values changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [with_texts(item, change) for item in value]
    return {name: with_texts(item, change) for name, item in value.items()} if isinstance(value, dict) else value


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    names = (name, *(f"{name} ({number})" for number in range(2, len(taken) + 2))) if name in taken else (name,)
    return next(each for each in names if each not in taken)


def _number(value: float | None) -> float | str | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if math.isfinite(value) else str(float(value))


def load(kind: type[V], data: object, *, place: str = "") -> V:
    """Return the value of a kind that :func:`dump` made ``data`` of; keys that the kind does not know are left out.

    Raises :class:`CodecError` naming the first fault by its place, below ``place``.

    >>> load(Sample, {"response": "Yes.", "id": 7}, place="rows[2]")
    Traceback (most recent call last):
    pytest_ragmetrics.core.codec.CodecError: rows[2].id must be a valid string, not 7
    """
    from pydantic import ValidationError

    try:
        # Pydantic's strict mode takes arrays for tuples and objects for dataclasses from JSON text alone.
        text = _SURROGATE.sub("\ufffd", json.dumps([data], ensure_ascii=False))
        return cast("V", _adapter(cast("Any", kind)).validate_json(text)[0])
    except RecursionError:
        raise CodecError(f"{place or 'the document'} is nested too deeply") from None
    except ValidationError as error:
        raise CodecError(_fault(error, data, place)) from error


def schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a kind."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind).json_schema()


@lru_cache(maxsize=16)
def _adapter(kind: Any) -> TypeAdapter[list[Any]]:
    from pydantic import ConfigDict, TypeAdapter

    # A dataclass itself takes no configuration from here, a list of it does.
    return TypeAdapter(list[kind], config=ConfigDict(strict=True, allow_inf_nan=False))


def _fault(error: ValidationError, data: object, place: str) -> str:
    """Return the first of the faults, those of all types that a place may have in one."""
    first, *others = error.errors(include_url=False, include_input=False)
    where, found = _reached(data, first["loc"][1:], place)
    if first["type"] == "missing":
        return f"{where or 'the document'} lacks {first['loc'][-1]}"
    same = [first, *(other for other in others if _reached(data, other["loc"][1:], place)[0] == where)]
    wanted = dict.fromkeys(fault["msg"].removeprefix("Input should be ") for fault in same)
    shown = json.dumps(found)
    shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."
    return f"{where or 'the document'} must be {' or '.join(wanted)}, not {shown}"


def _reached(data: object, location: Iterable[int | str], place: str) -> tuple[str, object]:
    """Follow a location as far as the data goes; the last steps of some name a type or a missing field."""
    for step in location:
        if isinstance(data, list) and isinstance(step, int):
            data, place = data[step], f"{place}[{step}]"
        elif isinstance(data, dict) and step in data:
            data, place = data[step], f"{place}.{step}" if place else str(step)
        else:
            break
    return place, data


def json_builtins(value: Any, depth: int = 0) -> Any:
    """Return any value as JSON builtins, as metadata may be: what JSON lacks becomes ``None``, a text or a list."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        return hex(value)
    if value is None or isinstance(value, (str, int)):
        return value
    if depth == _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {_text(name): json_builtins(item, depth + 1) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [json_builtins(item, depth + 1) for item in value]
    # The numbers and arrays of numpy, which data frames are made of.
    return json_builtins(value.tolist(), depth + 1) if hasattr(value, "tolist") else _text(value)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a value without a text must not prevent writing the table
        return object.__repr__(value)
