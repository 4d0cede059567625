"""Why an answer of a provider's API has no reply, and what a server says in the body of an error."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import unescape
from typing import Any

from pytest_ragmetrics.judges.providers.bounds import repeats_itself
from pytest_ragmetrics.judges.providers.vendor import vendor_of
from pytest_ragmetrics.judges.transports.values import shown

# How much of a reply that repeats itself an error shows.
_TAIL = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why an answer has no reply; a ``passing`` one is asked for once more, with more room if it ``is_cut``."""

    text: str
    passing: bool = False
    is_cut: bool = False


def cut(spec: str, text: object) -> Problem:
    """Return the problem of a reply that met the limit of its length; one that repeats itself would meet any."""
    if isinstance(text, str) and repeats_itself(text):
        vendor = vendor_of(spec)
        is_penalized = vendor is not None and "frequency_penalty" in vendor.parameters
        advice = f"write '{spec}?frequency_penalty=0.5', or name" if is_penalized else "name"
        return Problem(text=f"repeats itself without an end: {shown(text[-_TAIL:])}; {advice} a larger model")
    advice = f"raise max_tokens ('{spec}?max_tokens=N') or the server's context, or give it shorter texts"
    return Problem(text=f"was cut off by its length limit; {advice}", passing=True, is_cut=True)


def unlike(label: str, answer: object, check: str) -> Problem:
    """Return the problem of an answer that has not the form of the API; ``check`` names what may be set wrongly."""
    return Problem(text=f"does not answer like the {label} API, it sent {came(answer)}; check {check}", passing=True)


def no_text(content: object) -> Problem | None:
    """Return the problem of what stands where the text of a reply should, ``None`` for a text."""
    if isinstance(content, str) and content.strip():
        return None
    what = "nothing" if content is None or isinstance(content, str) else f"what is no text: {came(content)}"
    return Problem(text=f"replied with {what}", passing=True)


def came(answer: object) -> str:
    """Return the beginning of an answer for an error message, without what looks like a key.

    >>> came([500, None])
    "'[500, null]'"
    """
    return shown(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))


# Where servers put what they say, in the order in which it is looked for.
_SAYING = (
    "error",
    "errors",
    "message",
    "detail",
    "details",
    "msg",
    "error_description",
    "description",
    "reason",
    "title",
)
_HTML = re.compile(r"\s*<(?:!doctype|html|head|body|h\d|p|title)\b", re.IGNORECASE)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^<>]*>", re.IGNORECASE | re.DOTALL)
# Nested deeper than this, it is no message.
_DEPTH = 8


def said_in(body: object, depth: int = _DEPTH) -> str:
    """Return what a server says in the body of an error, whatever its form; an empty text if it says nothing.

    >>> said_in({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Not permitted", "input": 7}]})
    'body.seed: Not permitted (extra_forbidden)'
    >>> said_in([{"error": {"code": 400, "message": "Unknown name"}}]), said_in("<html><h1>Bad &amp; gone</h1></html>")
    ('Unknown name', 'Bad & gone')
    """
    if isinstance(body, str):
        return " ".join((unescape(_UNSEEN.sub(" ", body)) if _HTML.match(body) else body).split())
    if not depth or body is None or body in ([], {}):
        return ""
    if isinstance(body, list):
        return "; ".join(filter(None, (said_in(part, depth - 1) for part in body)))
    if isinstance(body, dict):
        found = _said_of(body, depth) or next(
            filter(None, (said_in(body[name], depth - 1) for name in _SAYING if name in body)), ""
        )
        if found or set(body) & set(_SAYING):
            return found
    return json.dumps(body, ensure_ascii=False)


def _said_of(fault: dict[str, Any], depth: int) -> str:
    """Return one fault of those that pydantic lists, without the input that it repeats."""
    place, said = fault.get("loc"), said_in(fault.get("msg"), depth - 1)
    if not isinstance(place, (list, tuple)):
        return ""
    kind = fault.get("type")
    return f"{'.'.join(map(str, place))}: {said}" + (f" ({kind})" if isinstance(kind, str) else "")
