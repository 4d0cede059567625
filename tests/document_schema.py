"""The JSON schema of a run's document, made from the types it is written with.

``python -m tests.document_schema`` writes it to where the package keeps it.
"""

from __future__ import annotations

import json
import types
import typing
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from pytest_ragmetrics import records

FILE = Path(records.__file__).with_name("schema.json")
_NAMES = {str: "string", float: "number", int: "integer", bool: "boolean", type(None): "null"}


def document_schema() -> dict[str, Any]:
    """Return the schema of :class:`~pytest_ragmetrics.records.Document`."""
    shapes: dict[str, Any] = {}
    _schema_of(records.Document, shapes)
    document = shapes.pop("Document")
    document["properties"]["version"]["enum"] = [records.VERSION]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:pytest-ragmetrics:document:{records.VERSION}",
        **document,
        "$defs": dict(sorted(shapes.items())),
    }


def _schema_of(kind: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return _reference_to(kind, shapes)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema_of(arguments[0], shapes)}
    if origin is dict:
        values = arguments[1]
        return {"type": "object"} | ({} if values is Any else {"additionalProperties": _schema_of(values, shapes)})
    if origin in (Union, types.UnionType):
        if all(argument in _NAMES for argument in arguments):
            return {"type": [_NAMES[argument] for argument in arguments]}
        return {"anyOf": [_schema_of(argument, shapes) for argument in arguments]}
    return {"type": _NAMES[kind]}


def _reference_to(kind: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in shapes:
        shapes[name] = None
        fields = {
            field: _schema_of(expected, shapes)
            for field, expected in get_type_hints(kind, vars(typing) | vars(records)).items()
        }
        shapes[name] = {
            "type": "object",
            "description": " ".join((kind.__doc__ or "").split()),
            "properties": fields,
            "required": [field for field in fields if field in kind.__required_keys__],
        }
    return {"$ref": f"#/$defs/{name}"}


def schema_file_text() -> str:
    """Return what stands in the file."""
    return json.dumps(document_schema(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema_file_text(), encoding="utf-8")
