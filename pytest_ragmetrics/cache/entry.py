"""One answer that is kept, with the request it answers, and what can be wrong with a place that keeps them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from pytest_ragmetrics.cache.key import EMBEDDING, key_of
from pytest_ragmetrics.errors import RagMetricsError
from pytest_ragmetrics.judges.transport import Reply

Redact = Callable[[str], str]

_KEY = re.compile("[0-9a-f]{64}")
_COUNTS = ("prompt_tokens", "completion_tokens", "calls")


class CacheError(RagMetricsError):
    """Something that was kept cannot be trusted or read."""


class CacheUnavailableError(CacheError):
    """The place where answers are kept cannot be opened, read or written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheEntry:
    """A request and its reply, both as JSON builtins, under the key of the request.

    ``request`` is what :mod:`~pytest_ragmetrics.cache.key` makes of it; ``reply`` is ``text`` with the tokens and calls
    it took, or ``vector`` as base64. ``created`` is a UTC time in ISO 8601. ``redacted`` says that the request here
    is not word for word the one that was sent, so that the key cannot be computed from it.
    """

    key: str
    request: Mapping[str, Any]
    reply: Mapping[str, Any]
    created: str
    salt: str = ""
    redacted: bool = False

    @property
    def task(self) -> str:
        """The name of the prompt."""
        return str(self.request["task"])

    @property
    def made_at(self) -> datetime:
        """When the reply was made."""
        return datetime.fromisoformat(self.created)

    def answer(self, *, cached: bool = False) -> Reply:
        """Return the reply of a judge."""
        return Reply(**self.reply, cached=cached)

    def to_row(self) -> dict[str, Any]:
        """Return the entry as JSON builtins; what says nothing is left out."""
        row: dict[str, Any] = {"key": self.key, "created": self.created}
        if self.salt:
            row["salt"] = self.salt
        if self.redacted:
            row["redacted"] = True
        return {**row, "request": dict(self.request), "reply": dict(self.reply)}

    @classmethod
    def from_row(cls, row: object) -> CacheEntry:
        """Read what :meth:`to_row` made; raise ``ValueError`` saying what is wrong with it."""
        if not isinstance(row, Mapping):
            msg = "not a JSON object"
            raise ValueError(msg)  # noqa: TRY004 - it is read from a file: a wrong value, not a wrong call
        missing = {"key", "created", "request", "reply"} - row.keys()
        surplus = row.keys() - {"key", "created", "salt", "redacted", "request", "reply"}
        if missing or surplus:
            msg = f"{'no' if missing else 'unknown'} field {min(missing or surplus)!r}"
            raise ValueError(msg)
        _check(row)
        return cls(**row)

    def problem(self) -> str | None:
        """Say how the key contradicts the request, as after an edit by hand."""
        if not self.redacted and key_of(self.request, salt=self.salt) != self.key:
            return "its key is not that of its request"
        return None


def new_entry(
    key: str, request: Mapping[str, Any], reply: Reply | str, *, salt: str, redact: Redact | None
) -> CacheEntry:
    """Return the entry of a reply just made, a judge's or a vector's base64; redacts both sides."""
    if isinstance(reply, str):
        row: dict[str, Any] = {"vector": reply}
    else:
        row = {"text": reply.text, **{name: getattr(reply, name) for name in _COUNTS}}
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    entry = CacheEntry(key=key, request=request, reply=row, created=created, salt=salt)
    return entry if redact is None else _redacted(entry, redact)


def redacted_request(request: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    """Return a request with the texts under test redacted."""
    row = dict(request)
    if "text" in row:
        row["text"] = redact(row["text"])
    if "messages" in row:
        row["messages"] = [{**message, "content": redact(message["content"])} for message in row["messages"]]
    return row


def _redacted(entry: CacheEntry, redact: Redact) -> CacheEntry:
    request = redacted_request(entry.request, redact)
    reply = dict(entry.reply)
    if "text" in reply:
        reply["text"] = _redacted_json(reply["text"], redact)
    return replace(entry, request=request, reply=reply, redacted=request != entry.request)


def _redacted_json(text: str, redact: Redact) -> str:
    """Redact the strings in a JSON text, so that what replaces them cannot break it."""
    try:
        data = json.loads(text)
    except ValueError:
        return redact(text)
    cleaned = _redacted_values(data, redact)
    return text if cleaned == data else json.dumps(cleaned, ensure_ascii=False)


def _redacted_values(data: Any, redact: Redact) -> Any:
    if isinstance(data, str):
        return redact(data)
    if isinstance(data, list):
        return [_redacted_values(item, redact) for item in data]
    if isinstance(data, dict):
        return {name: _redacted_values(item, redact) for name, item in data.items()}
    return data


def _check(row: Mapping[str, Any]) -> None:
    problem = None
    if not isinstance(row["key"], str) or not _KEY.fullmatch(row["key"]):
        problem = "the key is not a SHA-256"
    elif not isinstance(row.get("salt", ""), str) or not isinstance(row.get("redacted", False), bool):
        problem = "the salt must be a text, and redacted true or false"
    elif not isinstance(row["request"], Mapping) or not isinstance(row["request"].get("task"), str):
        problem = "the request names no task"
    elif not isinstance(row["reply"], Mapping) or not _is_reply(row["reply"], row["request"]["task"]):
        problem = "the reply is not one"
    if problem is not None:
        raise ValueError(problem)
    _check_time(row["created"])


def _is_reply(reply: Mapping[str, Any], task: str) -> bool:
    if task == EMBEDDING:
        return reply.keys() == {"vector"} and isinstance(reply["vector"], str)
    counts = [reply[name] for name in _COUNTS if name in reply]
    return (
        isinstance(reply.get("text"), str)
        and reply.keys() <= {"text", *_COUNTS}
        and all(type(count) is int and count >= 0 for count in counts)
    )


def _check_time(created: object) -> None:
    try:
        aware = isinstance(created, str) and datetime.fromisoformat(created).tzinfo is not None
    except ValueError:
        aware = False
    if not aware:
        msg = f"created must be a time with its zone, not {created!r}"
        raise ValueError(msg)
