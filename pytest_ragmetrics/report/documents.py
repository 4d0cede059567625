"""Documents as files: written one test a line, and read back strictly, the place of a fault named."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from pytest_ragmetrics.errors import RagMetricsError
from pytest_ragmetrics.files.json_file import read_json
from pytest_ragmetrics.report.records import VERSION, Document

_PACKAGE, _SCHEMA = "pytest_ragmetrics.report", "schema.json"
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (float, int),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


class DocumentError(RagMetricsError):
    """A file is not the document of a run; says the file and the place in it."""

    def __init__(self, message: str, *, file: Path) -> None:
        self.file = file
        super().__init__(f"{file}: {message}")


class _MisfitError(Exception):
    """A value is not as the schema has it."""


def render_json(document: Document) -> str:
    """Return the document as JSON text, one test a line, so that a change of one test is a change of one line.

    The text is ASCII, and fits the schema that :func:`schema_text` returns.
    """
    head, run = json.dumps(document["version"]), json.dumps(document["run"], allow_nan=False)
    rows = ",\n".join(json.dumps(row, allow_nan=False) for row in document["tests"])
    tests = f"[\n{rows}\n]" if rows else "[]"
    return f'{{"version": {head},\n"run": {run},\n"tests": {tests}}}\n'


def schema_text() -> str:
    """Return the JSON schema (draft 2020-12) of a document."""
    return (files(_PACKAGE) / _SCHEMA).read_text(encoding="utf-8")


def read_document(file: Path) -> Document:
    """Return the document in a file that ``--rag-json`` wrote.

    Fields that this version does not know are kept. Raises :class:`DocumentError` naming the file, and the place in
    it that is wrong.
    """
    try:
        data = read_json(file)
    except OSError as error:
        raise DocumentError(error.strerror or str(error), file=file) from error
    except ValueError as error:
        msg = f"not JSON: {error}; give a file that --rag-json wrote"
        raise DocumentError(msg, file=file) from error
    version = data.get("version") if isinstance(data, dict) else None
    if type(version) is not int:
        msg = "not the result of a run: it has no version; give a file that --rag-json wrote"
        raise DocumentError(msg, file=file)
    if version != VERSION:
        msg = f"it is of version {version}, and this release reads version {VERSION}: write it anew with --rag-json"
        raise DocumentError(msg, file=file)
    try:
        _hold(data, _schema(), "")
    except _MisfitError as error:
        raise DocumentError(str(error), file=file) from error
    return cast("Document", data)


@lru_cache(maxsize=1)
def _schema() -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", json.loads(schema_text()))


def _hold(data: object, schema: Mapping[str, Any], place: str) -> None:
    """Raise for the first value that does not fit; covers the words that our schema is written in."""
    if "$ref" in schema:
        _hold(data, _schema()["$defs"][schema["$ref"].rpartition("/")[2]], place)
    elif "anyOf" in schema:
        # Always something or null.
        if data is not None:
            _hold(data, schema["anyOf"][0], place)
    else:
        _hold_kind(data, schema, place)
        if isinstance(data, dict):
            _hold_fields(data, schema, place)
        elif isinstance(data, list):
            for number, item in enumerate(data):
                _hold(item, schema["items"], f"{place}[{number}]")


def _hold_kind(data: object, schema: Mapping[str, Any], place: str) -> None:
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(_is(data, kind) for kind in kinds):
        msg = f"{place or 'the document'} must be {' or '.join(kinds)}, not {_shown(data)}"
        raise _MisfitError(msg)
    if "enum" in schema and data not in schema["enum"]:
        msg = f"{place} must be one of {', '.join(map(str, schema['enum']))}, not {_shown(data)}"
        raise _MisfitError(msg)


def _hold_fields(data: Mapping[str, object], schema: Mapping[str, Any], place: str) -> None:
    known: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in data]
    if missing:
        msg = f"{place or 'the document'} lacks {missing[0]}"
        raise _MisfitError(msg)
    others = schema.get("additionalProperties")
    for name, value in data.items():
        expected = known.get(name, others)
        if isinstance(expected, dict):
            _hold(value, expected, f"{place}.{name}" if place else name)


def _is(data: object, kind: str) -> bool:
    if not isinstance(data, _TYPES[kind]) or (isinstance(data, bool) and kind != "boolean"):
        return False
    if kind != "number":
        return True
    try:
        return math.isfinite(cast("float", data))
    except OverflowError:
        return False


def _shown(data: object) -> str:
    text = json.dumps(data)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - enough to find it
