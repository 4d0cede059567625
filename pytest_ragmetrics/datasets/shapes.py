"""The shapes in which other tools write a row, brought to that of a sample."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from itertools import islice
from typing import Any

from pytest_ragmetrics.datasets.row import RowError
from pytest_ragmetrics.sample import ALIASES, Sample

#: The older name of ragas for a list of references.
_REFERENCES = "ground_truths"
_METADATA = ("metadata", "additional_metadata")
_CONTENT = tuple(f.name for f in fields(Sample) if f.name not in ("id", "metadata"))
#: The names of which a row has at least one; ``messages`` is a conversation.
KNOWN = frozenset([*_CONTENT, _REFERENCES, "messages", *(alias for aliases in ALIASES.values() for alias in aliases)])
# Of how many unknown names the known one is looked for that was meant.
_GUESSED = 5
# Numbers far beyond this have no decimal form that Python would write.
_BITS = 1000
_NAMED_FIRST = re.compile(r"[a-z_]+")


def sample_of(row: Mapping[str, Any], *, id: str | None = None) -> Sample:  # noqa: A002 - as the field is called
    """Return the sample of a row; raise ``RowError`` naming the value at fault as it was written.

    Besides what :meth:`Sample.from_mapping` takes: ``ground_truths`` (several are joined by line breaks) and
    ``additional_metadata``. What is ``None`` is missing, and what has an unknown name is metadata.

    >>> sample_of({"input": "Why?", "retrieval_context": None, "context": ["So."]}).reference_contexts
    ('So.',)
    """
    values = {name: value for name, value in row.items() if value is not None or name == "retrieval_context"}
    if KNOWN.isdisjoint(values):
        raise RowError(_nothing_known(values))
    values["id"] = id
    values["metadata"] = _metadata(values)
    _take_references(values)
    try:
        return Sample.from_mapping(values)
    except (TypeError, ValueError) as error:
        raise RowError(str(error), field=_field(str(error), values)) from error


def written_id(row: Mapping[str, Any]) -> str | None:
    """Return the id that a row was given as text, ``None`` for none; raise ``RowError`` for what is no id."""
    value = row.get("id")
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < _BITS:
        return str(value)
    if value is None:
        return None
    kind = "one this long" if type(value) is int else type(value).__name__
    msg = f"must be a text or a whole number, not {kind}"
    raise RowError(msg, field="id")


def _nothing_known(names: Iterable[str]) -> str:
    listed = ", ".join(map(repr, names)) or "nothing"
    near = [match for name in islice(names, _GUESSED) for match in get_close_matches(name[:40], KNOWN, 1)]
    hint = f"did you mean {near[0]!r}?" if near else f"give at least one of {', '.join(_CONTENT)}"
    return f"has no field to score, only {listed[:200]}; {hint}"


def _metadata(values: dict[str, Any]) -> dict[str, Any]:
    collected: dict[str, Any] = {}
    for name in _METADATA:
        value = values.pop(name, {})
        if not isinstance(value, Mapping):
            msg = f"must be an object (a mapping), not {type(value).__name__}"
            raise RowError(msg, field=name)
        collected.update(value)
    return collected


def _take_references(values: dict[str, Any]) -> None:
    if values.get("reference") is not None or values.get("ground_truth") is not None or _REFERENCES not in values:
        return
    references = values.pop(_REFERENCES)
    if isinstance(references, str):
        references = [references]
    if not isinstance(references, (list, tuple)) or not all(isinstance(text, str) for text in references):
        msg = "must be a list of texts"
        raise RowError(msg, field=_REFERENCES)
    values["reference"] = "\n".join(references) or None


def _field(message: str, values: Mapping[str, Any]) -> str | None:
    """Return under which name the row has the field with which a message begins."""
    found = _NAMED_FIRST.match(message)
    field = found.group() if found else ""
    names = (field, *ALIASES.get(field, ()), *(["context"] if field == "reference_contexts" else []))
    return next((name for name in names if values.get(name) is not None), None)
