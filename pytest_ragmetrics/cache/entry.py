"""A reply that is kept, with the request it answers, and the key that is computed from all that determines the reply.

Thresholds, retries, timeouts, time, service tier, base URL, API key and reporting options determine nothing and stay
out of the key.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core.codec import with_texts
from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.errors import CacheError
from pytest_ragmetrics.judges.transports.values import SERVICE_TIER, Reply, Request

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: The task of a row that asks for a vector.
EMBEDDING = "embedding"

# Changes whenever the same request would have to be asked anew.
_VERSION = 1
# Up to here every integer is exactly one float.
_LARGEST_EXACT = 2**53
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# A schema is made of these, and is gone through for every request.
_AS_IT_IS = frozenset({str, int, bool, type(None)})


def request_row(request: Request) -> dict[str, Any]:
    """Return all that determines the reply to a request as JSON builtins; raises as :func:`canonical`."""
    determining = {name: value for name, value in request.parameters.items() if name != SERVICE_TIER}
    return {
        "task": request.task,
        "kind": request.kind,
        "model": request.model,
        "vote": request.vote,
        "parameters": _plain(determining, "parameters"),
        "messages": [{"role": message["role"], "content": message["content"]} for message in request.messages],
        "schema": _plain(request.schema, "schema"),
    }


def embedding_row(*, kind: str, model: str, text: str, dimensions: int | None = None) -> dict[str, Any]:
    """Return all that determines the vector of a text.

    >>> embedding_row(kind="openai", model="m", text="Water is wet.")["task"]
    'embedding'
    """
    return {"task": EMBEDDING, "kind": kind, "model": model, "dimensions": dimensions, "text": text}


def key_of(row: Mapping[str, Any], *, salt: str = "", plain: bool = False) -> str:
    """Return the key of a row: the SHA-256 of its canonical JSON, 64 hexadecimal digits.

    ``salt`` separates caches by hand. ``plain`` spares a row just made by a function above what makes it one. Raises
    as :func:`canonical`.

    >>> key_of({"model": "m", "vote": 0}) == key_of({"vote": 0, "model": "m"})
    True
    >>> key_of({"model": "m", "vote": 0}) == key_of({"model": "m", "vote": 1})
    False
    """
    whole = {"version": _VERSION, "salt": salt, "request": row}
    text = _ENCODER.encode(whole) if plain else canonical(whole)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical(value: object) -> str:
    r"""Return the one JSON text of a value: ASCII, sorted, without blanks; ``1.0`` is ``1``, a tuple is a list.

    Raises ``TypeError`` for what is not JSON and ``ValueError`` for NaN and infinity.

    >>> canonical({"b": (1.0, None), "a": "ü"})
    '{"a":"\\u00fc","b":[1,null]}'
    """
    return _ENCODER.encode(_plain(value, "the value"))


def _plain(value: object, place: str) -> Any:
    if type(value) in _AS_IT_IS or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{place}: {value} is not JSON")
        return int(value) if value.is_integer() and abs(value) <= _LARGEST_EXACT else float(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"{place}: the name of a field must be a str, not {type(name).__name__}")
        return {
            name: item if type(item) in _AS_IT_IS else _plain(item, f"{place}.{name}") for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _AS_IT_IS else _plain(item, place) for item in value]
    raise TypeError(f"{place}: {type(value).__name__} is not JSON")


Redact = Callable[[str], str]

_KEY = re.compile("[0-9a-f]{64}")
_NEEDED = frozenset(("key", "created", "request", "reply"))
_OPTIONAL = ("salt", "redacted", "host", "digest")
_FIELDS = _NEEDED.union(_OPTIONAL)
_COUNTS = ("prompt_tokens", "completion_tokens", "calls")
# Written only where they are not zero: most servers report none of them, and earlier files have none.
_DETAILS = ("cached_prompt_tokens", "cache_write_tokens", "cache_write_1h_tokens", "tier", "billed", "served")
_COUNTED = frozenset((*_COUNTS, *_DETAILS))


class CacheUnavailableError(CacheError):
    """The place where answers are kept cannot be opened, read or written."""


class CacheReadOnlyError(CacheUnavailableError):
    """The place where answers are kept takes no more of them: it is read-only for us, or full."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheEntry:
    """A request and its reply, both as JSON builtins, under the key of the request.

    ``request`` is what :func:`request_row` or :func:`embedding_row` makes of it; ``reply`` is ``text`` with the tokens
    and calls it took and the model that was ``served`` (not in entries of earlier versions), or ``vector`` as base64.
    ``created`` is a UTC time in ISO 8601. ``redacted`` says that the request here is not word for word the one that was
    sent, so that the key cannot be computed from it: it is the SHA-256 of both, or ``True`` in entries of earlier
    versions. ``host`` is the server that made the reply where it is not the provider's own; entries of earlier versions
    have none. ``digest`` is that of a line in a cassette.
    """

    key: str
    request: Mapping[str, Any]
    reply: Mapping[str, Any]
    created: str
    salt: str = ""
    redacted: bool | str = False
    host: str = ""
    digest: str = field(default="", compare=False)

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
        parts = tuple(Reply(**part) for part in self.reply.get("parts", ()))
        return Reply(**{**self.reply, "parts": parts}, cached=cached)

    def to_row(self) -> dict[str, Any]:
        """Return the entry as JSON builtins; what says nothing is left out."""
        optional = {name: value for name in _OPTIONAL if (value := getattr(self, name))}
        kept = {"request": dict(self.request), "reply": dict(self.reply)}
        return {"key": self.key, "created": self.created, **optional, **kept}

    @classmethod
    def from_row(cls, row: object) -> CacheEntry:
        """Read what :meth:`to_row` made; raise ``ValueError`` saying what is wrong with it."""
        if problem := _problem(row):
            raise ValueError(problem)
        return cls(**row)  # type: ignore[arg-type] # checked above

    def digested(self) -> str:
        """Return the SHA-256 of the reply with its key, and with the request where the key is not computed from it."""
        return key_of({"key": self.key, "reply": self.reply, "request": self.request if self.redacted else None})

    @property
    def is_edited(self) -> bool:
        """Whether the digest is that of another reply; entries of earlier versions have none."""
        return self.digest not in ("", self.digested())

    def is_of(self, asked: Mapping[str, Any] | None = None, redact: Redact | None = None) -> bool:
        """Tell whether the request here is the one that the key is of.

        ``asked`` is a request that has the key, if one is known: comparing takes far less than computing the key, and
        of a redacted request nothing else tells. ``redact`` is this run's: entries of earlier versions need the same.
        """
        try:
            if self.request == asked:
                return True
            if not self.redacted:
                # Most are as a function above made them, and plain takes a third of the time.
                return any(key_of(self.request, salt=self.salt, plain=plain) == self.key for plain in (True, False))
            if asked is None or self.redacted == key_of({"asked": asked, "kept": self.request}):
                return bool(canonical(self.request))
            return redact is not None and self.request == redacted_request(asked, redact)
        except (TypeError, ValueError, RecursionError):
            return False

    def problem(self, asked: Mapping[str, Any] | None = None, *, strict: bool = False) -> str | None:
        """Say what an edit by hand broke: key, vector and, if ``strict``, the reply, which is used all the same."""
        if not self.is_of(asked):
            return "its key is not that of its request"
        try:
            if self.task == EMBEDDING:
                read_vector(self.reply["vector"])
        except CacheError as error:
            return str(error)
        edited = "its reply is not that of its digest (without a digest an edit is kept)"
        return edited if strict and self.is_edited else None


def vector_text(vector: npt.NDArray[np.float32]) -> str:
    """Return a vector as text.

    >>> import numpy as np
    >>> vector_text(np.array([1.0, -0.5], dtype=np.float32))
    'AACAPwAAAL8='
    """
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def read_vector(text: str) -> npt.NDArray[np.float32]:
    """Return the vector of a text; raise :class:`CacheError` otherwise.

    >>> read_vector("AACAPwAAAL8=").tolist()
    [1.0, -0.5]
    """
    import numpy as np

    try:
        vector = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)
    except ValueError as error:
        raise CacheError("its vector is not the base64 of 32-bit floats") from error
    if not vector.size or not np.isfinite(vector).all():
        raise CacheError("its vector is empty or not finite")
    return vector


def new_entry(
    key: str, request: Mapping[str, Any], reply: Reply | str, *, salt: str, redact: Redact | None, host: str = ""
) -> CacheEntry:
    """Return the entry of a reply just made, a judge's or a vector's base64; redacts both sides.

    What looks like a key is masked in the reply, from which it would get into reports and cassettes.
    """
    if isinstance(reply, str):
        row: dict[str, Any] = {"vector": reply}
    else:
        row = {"text": reply.text, **_counts(reply)}
        if reply.parts:
            row["parts"] = [_counts(part) for part in reply.parts]
        if masked(reply.text) != reply.text:
            row["text"] = redacted_json(reply.text, masked)
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    entry = CacheEntry(key=key, request=request, reply=row, created=created, salt=salt, host=host)
    return entry if redact is None else redacted_entry(entry, redact)


def redacted_entry(entry: CacheEntry, redact: Redact) -> CacheEntry:
    """Return an entry with the texts under test redacted on both sides."""
    shown, reply = redacted_request(entry.request, redact), dict(entry.reply)
    if "text" in reply:
        reply["text"] = redacted_json(reply["text"], redact)
    redacted = entry.redacted or (shown != entry.request and key_of({"asked": entry.request, "kept": shown}))
    return replace(entry, request=shown, reply=reply, redacted=redacted)


def _counts(reply: Reply) -> dict[str, Any]:
    details = {name: value for name in _DETAILS if (value := getattr(reply, name))}
    return {**{name: getattr(reply, name) for name in _COUNTS}, **details}


def redacted_request(request: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    """Return a request with the texts under test redacted."""
    row = dict(request)
    if "text" in row:
        row["text"] = redact(row["text"])
    if "messages" in row:
        row["messages"] = [{**message, "content": redact(message["content"])} for message in row["messages"]]
    return row


def redacted_json(text: str, redact: Redact) -> str:
    """Return a JSON text with its strings redacted, so that what replaces them cannot break it."""
    try:
        data = json.loads(text)
    except ValueError:
        return redact(text)
    cleaned = with_texts(data, redact)
    return text if cleaned == data else json.dumps(cleaned, ensure_ascii=False)


def _problem(row: object) -> str | None:
    if not isinstance(row, Mapping):
        return "not a JSON object"
    missing, surplus = _NEEDED - row.keys(), row.keys() - _FIELDS
    if missing or surplus:
        return f"{'no' if missing else 'unknown'} field {min(missing or surplus)!r}"
    request, reply, created = row["request"], row["reply"], row["created"]
    if not isinstance(row["key"], str) or not _KEY.fullmatch(row["key"]):
        return "the key is not a SHA-256"
    if not isinstance(row.get("redacted", False), (bool, str)):
        return "redacted must be a text, true or false"
    for name in ("salt", "host", "digest"):
        if not isinstance(row.get(name, ""), str):
            return f"the {name} must be a text"
    if not isinstance(request, Mapping) or not isinstance(request.get("task"), str):
        return "the request names no task"
    if not isinstance(reply, Mapping) or not _is_reply(reply, request["task"]):
        return "the reply is not one"
    return None if _is_time(created) else f"created must be a time with its zone, not {created!r}"


def _is_reply(reply: Mapping[str, Any], task: str) -> bool:
    if task == EMBEDDING:
        return reply.keys() == {"vector"} and isinstance(reply["vector"], str)
    counts = {name: value for name, value in reply.items() if name not in ("text", "parts")}
    parts = reply.get("parts", [])
    return (
        isinstance(reply.get("text"), str)
        and isinstance(parts, list)
        and all(isinstance(part, Mapping) and _are_counts(part) for part in (counts, *parts))
    )


def _are_counts(row: Mapping[str, Any]) -> bool:
    texts, billed = (row.get("tier", ""), row.get("served", "")), row.get("billed", 0)
    whole = [value for name, value in row.items() if name not in ("tier", "billed", "served")]
    return (
        row.keys() <= _COUNTED
        and all(type(count) is int and count >= 0 for count in whole)
        and all(isinstance(text, str) for text in texts)
        and type(billed) in (int, float)
        and 0 <= billed < math.inf
    )


def _is_time(created: object) -> bool:
    try:
        return isinstance(created, str) and datetime.fromisoformat(created).tzinfo is not None
    except ValueError:
        return False
