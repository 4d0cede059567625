"""Spans of traces, known by their shape: what each asks, says, retrieves and calls.

Read are OTLP/JSON, the JSON of OpenTelemetry's SDKs, and the exports of Phoenix and Langfuse. ``spans.json`` has the
names: of the ``gen_ai`` semantic conventions (github.com/open-telemetry/semantic-conventions-genai, and the events of
earlier versions), of OpenInference (github.com/Arize-ai/openinference), and those of Langfuse, OpenLLMetry, Pydantic AI
and Vercel's AI SDK.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from pytest_ragmetrics.core.files import packaged_text
from pytest_ragmetrics.core.messages import Message, first_of, opened, read_messages
from pytest_ragmetrics.core.sample import as_contexts
from pytest_ragmetrics.datasets.rows import KNOWN

#: Messages in plain JSON: role, content, tool_calls, and the name of the tool whose result one is.
Talk = list[dict[str, Any]]
#: A text, after ``True`` for data whose meaning is not known, as JSON: any other text counts before it.
Said = tuple[bool, str]
#: The id and the text of a document.
Document = tuple["str | int | None", "str | None"]

#: Fields of a row that no span has.
_OF_ROWS = KNOWN - {"input", "context"}
# An attribute of an element of a list, such as llm.input_messages.0.message.content.
_ELEMENT = re.compile(r"(.+?)\.(\d{1,6})(?:\.(.+))?")
# A longer name is no attribute that is read, and might nest lists too deeply.
_LONGEST_NAME = 300
_LAYERS = re.compile(r"(?:(?:message|message_content|tool_call|document|function)\.)+")
_INNER = ("message", "message_content", "tool_call", "document", "node")
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_INTEGER = re.compile("-?[0-9]{1,19}")
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_prompt_tokens")
_ISO_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?")


@dataclass(kw_only=True, slots=True)
class Span:
    """What rows need of a span; ``kind`` is model, agent, retriever, reranker, tool, aside, or empty where not known.

    An aside is what embeds, evaluates or guards: what it asks and says is not what the application does. ``time`` is a
    text that sorts as those of one export do, as ``end`` and ``first`` are, the time of its first text, where that is
    written. ``talk`` are the messages that a model or an agent was sent, ``usage`` the tokens and the price of a model.
    """

    id: str | None
    parent: str | None
    time: str
    kind: str
    name: str
    question: Said | None = None
    answer: Said | None = None
    talk: Talk = field(default_factory=list)
    documents: list[Document] | None = None
    end: str = ""
    first: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    #: The call of a tool and its result, as messages.
    steps: Talk = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


@cache
def _table(name: str) -> Mapping[str, tuple[str, ...]]:
    table = json.loads(packaged_text("datasets/spans.json"))[name]
    return {key: tuple(names) for key, names in table.items()}


@cache
def _kinds() -> Mapping[str, str]:
    return {name: kind for kind, names in _table("kinds").items() for name in names}


def is_trace(row: object) -> bool:
    """Tell whether a row is a span, an observation of Langfuse, or an object that holds them, and no row to score.

    >>> is_trace({"traceId": "7c", "spanId": "a1", "name": "chat"}), is_trace({"question": "Why?", "trace_id": "7c"})
    (True, False)
    """
    if not isinstance(row, Mapping) or not _OF_ROWS.isdisjoint(row):
        return False
    if isinstance(first_of(row, "resourceSpans", "resource_spans"), list):
        return True
    held = next(_mappings(row.get("observations")), row)
    if value_of(held, "trace") is None or not isinstance(held.get("context", {}), Mapping):
        return False
    is_observation = str(held.get("type")).lower() in _kinds() and value_of(held, "time") is not None
    return is_observation or not {"spanId", "span_id", "context", "context.span_id"}.isdisjoint(held)


def spans_of(row: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return the spans that a row is or holds."""
    if observations := [*_mappings(row.get("observations"))]:
        whole = row["trace"] if isinstance(row.get("trace"), Mapping) else row
        id = value_of(observations[0], "trace")
        return [{**whole, "traceId": id, "spanId": id, "type": "trace"}, *({"whole": id, **it} for it in observations)]
    if (resources := first_of(row, "resourceSpans", "resource_spans")) is None:
        return (row,)
    scopes = (first_of(resource, "scopeSpans", "scope_spans") for resource in _mappings(resources))
    return (span for each in scopes for scope in _mappings(each) for span in _mappings(scope.get("spans")))


def read_span(fields: Mapping[str, Any]) -> Span:
    """Return what counts of one of :func:`spans_of`; raise ``RecursionError`` for values nested too deeply."""
    own = {str(name).removeprefix("attributes."): value for name, value in fields.items()}
    values = _folded({**own, **_attributes(fields.get("attributes"))})
    _take_events(values)
    id, parent = (id_of(value_of(values, what)) for what in ("span", "parent"))
    span = Span(
        id=id,
        parent=None if parent == id else parent,
        time=_time(value_of(values, "time")),
        kind=_kind(values),
        name=str(value_of(values, "tool") or re.sub(r"^execute_tool |\.tool$", "", str(values.get("name")))),
        metadata={name: value for name in ("session", "user", "tags") if (value := value_of(values, name)) is not None},
    )
    span.end, span.first = (
        _time(it) if (it := value_of(values, name)) is not None else "" for name in ("end", "first")
    )
    if span.kind == "model":
        found = {name: value_of(values, name) for name in ("model", *_TOKENS)}
        spent = value_of(values, "spent")
        cost = float(spent) if isinstance(spent, (int, float)) and spent > 0 else None
        span.usage = {name: it for name, it in {**found, "cost": cost}.items() if it is not None}
    if span.kind in ("retriever", "reranker", "tool"):
        span.documents = _documents(values, span.kind)
        span.steps = _steps(values, span.name) if span.kind == "tool" else []
    elif span.kind != "aside":
        span.talk = _talk(value_of(values, "asked", "input"))
        question = _last(span.talk, "user")
        span.question = (False, question) if question else _text(values, ("asked", "input"), "user")
        span.answer = _text(values, ("said", "output"), "assistant")
    return span


def value_of(values: Mapping[str, Any], *what: str) -> Any:
    """Return the first value that a span has of names in the table, ``None`` where it has none.

    A name with dots is that of an attribute, or the way through objects to it.
    """
    for name in (name for each in what for name in _table("names")[each]):
        value: Any = values.get(name)
        if value is None and "." in name:
            value = values
            for part in name.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None and value != "":
            return value
    return None


def id_of(value: object) -> str | None:
    """Return an id as a text, ``None`` for what is none."""
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a list, nothing of what is none."""
    yield from (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()


def _attributes(given: object) -> dict[str, Any]:
    given = opened(given)
    if isinstance(given, list):  # keys and values of OTLP
        return {str(item.get("key")): _any_value(item.get("value")) for item in _mappings(given)}
    return dict(given) if isinstance(given, Mapping) else {}


def _any_value(value: Any) -> Any:
    """Return the value in an ``AnyValue`` of OTLP."""
    kind, held = next(iter(value.items()), ("", None)) if isinstance(value, Mapping) else ("", value)
    if kind == "kvlistValue":
        return _attributes(first_of(held, "values"))
    if kind == "arrayValue":
        return [_any_value(item) for item in first_of(held, "values") or ()]
    # Protobuf writes long integers as texts.
    return int(held) if kind == "intValue" and isinstance(held, str) and _INTEGER.fullmatch(held) else held


def _folded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with the lists whose elements were attributes of their own, as OpenInference writes them."""
    found: dict[str, Any] = {}
    lists: defaultdict[str, defaultdict[int, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for name, value in values.items():
        element = _ELEMENT.fullmatch(name) if len(name) <= _LONGEST_NAME else None
        if element is None:
            found[name] = value
        else:
            lists[element[1]][int(element[2])][element[3] or ""] = value
    for name, items in lists.items():
        found.setdefault(name, [items[n].get("") or _folded(items[n]) for n in sorted(items)])
    return found


def _time(value: object) -> str:
    text = f"{value:.6f}" if isinstance(value, float) else str(value)[:60]
    found = _ISO_TIME.match(text)
    return f"{found[1]} {found[2]}.{found[3] or '':0<9}" if found else text.zfill(30)


def seconds_between(start: str, end: str) -> float | None:
    """Return the seconds between two times of spans, ``None`` where they are of no form that says them.

    >>> seconds_between(_time("2026-10-01T09:00:00.5Z"), _time("2026-10-01 09:00:02")), seconds_between("7", "")
    (1.5, None)
    """
    with suppress(ValueError):
        if start.isdigit() and end.isdigit():
            return (int(end) - int(start)) / 1e9
        days = datetime.fromisoformat(end[:19]) - datetime.fromisoformat(start[:19])
        return days.total_seconds() + float(f"0{end[19:]}") - float(f"0{start[19:]}")
    return None


def _kind(values: Mapping[str, Any]) -> str:
    named = (_kinds().get(str(values[name]).lower()) for name in _table("names")["kind"] if name in values)
    marks = {"tool": "tool", "reranker": "reranker", "retriever": "retriever", "asked": "model", "said": "model"}
    marked = (kind for name, kind in marks.items() if value_of(values, name) is not None)
    return next(filter(None, named), "") or next(marked, "")


def _take_events(values: dict[str, Any]) -> None:
    """Add the messages in the events of a span to its attributes: versions of gen_ai before 1.37 have them there."""
    messages: dict[str, list[Any]] = {"gen_ai.input.messages": [], "gen_ai.output.messages": []}
    for event in _mappings(opened(values.get("events"))):
        given, name = _attributes(event.get("attributes")), str(event.get("name"))
        given.update(_attributes(given.get("gen_ai.event.content")))
        if spoken := _EVENT.fullmatch(name):
            messages["gen_ai.input.messages"].append({"role": spoken[1], **given})
        elif name == "gen_ai.choice":
            message = opened(given.get("message", given))
            said = message if isinstance(message, Mapping) else {"content": message}
            messages["gen_ai.output.messages"].append({**said, "role": "assistant"})
        elif name.startswith("gen_ai."):
            values.update({name: value for name, value in given.items() if name not in values})
    values.update({name: found for name, found in messages.items() if found and name not in values})


def _unlayered(item: Any) -> Any:
    """Return a message or a document without the layers that OpenInference has around and in front of its fields."""
    if isinstance(item, list):
        return [_unlayered(each) for each in item]
    if not isinstance(item, Mapping):
        return item
    inner = next((item[name] for name in _INNER if isinstance(item.get(name), Mapping) and "role" not in item), None)
    if inner is not None:
        return _unlayered(inner)
    bare = {_LAYERS.sub("", str(name)): value for name, value in item.items()}
    if "contents" in bare:
        bare["content"] = bare.pop("contents")
    if isinstance(bare.get("content"), str) and bare["content"].startswith("[{"):
        # OpenLLMetry and Strands write the parts of a message as JSON.
        parts = opened(bare["content"])
        is_parts = isinstance(parts, list) and all(first_of(part, "type", "text") for part in parts)
        bare["content"] = parts if is_parts else bare["content"]
    return {name: _unlayered(value) if name in ("content", "tool_calls") else value for name, value in bare.items()}


def _talk(value: object) -> Talk:
    """Return the messages in a value; what is no message is left out."""
    given = opened(value)
    while isinstance(given, list) and len(given) == 1 and isinstance(given[0], list):
        given = given[0]
    if isinstance(given, Mapping) and not {"role", "lc"}.isdisjoint(given):
        given = [given]
    items = [_unlayered(item) for item in _mappings(given)]
    with suppress(TypeError, ValueError):
        return [*map(_plain, read_messages(items))]
    found: Talk = []
    for item in items:
        with suppress(TypeError, ValueError):
            found += map(_plain, read_messages([item]))
    return found


def _plain(message: Message) -> dict[str, Any]:
    content: Any = message.text
    if message.attachments:
        content = [{"type": "text", "text": message.text}, *({"type": kind} for kind in message.attachments)]
    calls = [{"id": call.id, "name": call.name, "args": dict(call.arguments)} for call in message.tool_calls]
    more = {"tool_calls": calls, "name": message.tool}
    return {"role": message.role, "content": content, **{name: value for name, value in more.items() if value}}


def _last(talk: Talk, role: str) -> str:
    said = (message["content"] for message in reversed(talk) if message["role"] == role)
    texts = (content if isinstance(content, str) else content[0]["text"] for content in said)
    return next(filter(str.strip, texts), "")


def _text(values: Mapping[str, Any], names: Iterable[str], role: str) -> Said | None:
    """Return what a role says in a span."""
    given = [value for name in names if (value := value_of(values, name)) is not None]
    found = [_said(value, role) for value in given]
    if text := next(filter(None, found), None):
        return False, text
    return (True, _json(given[0])) if given and "" not in found else None


def _said(value: object, role: str, depth: int = 5) -> str | None:
    """Return the last text of a role in a value, "" where it says none, ``None`` where the value is of another form."""
    given = opened(value)
    if talk := _talk(given):
        return _last(talk, role)
    if isinstance(given, str):
        return given if given.strip() else ""
    if isinstance(given, list) and given and depth:
        return _said(given[0], role, depth - 1)
    if isinstance(given, Mapping) and depth:
        found = [_said(given[name], role, depth - 1) for name in _table("keys")[role] if given.get(name) is not None]
        return next(filter(None, found), "" if "" in found else None)
    return None


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _steps(values: Mapping[str, Any], name: str) -> Talk:
    """Return the call of a tool and its result as messages."""
    given, result = opened(value_of(values, "arguments", "input")), value_of(values, "result", "output")
    arguments = dict(given) if isinstance(given, Mapping) else {} if given is None else {"input": given}
    call = {"role": "assistant", "content": "", "tool_calls": [{"name": name, "args": arguments}]}
    return [call] if result is None else [call, {"role": "tool", "name": name, "content": _json(result)}]


def _documents(values: Mapping[str, Any], kind: str) -> list[Document] | None:
    """Return the documents that a span has retrieved, ``None`` where it says nothing of them."""
    is_tool = kind == "tool"
    given = opened(value_of(values, *(("retriever", "result", "output") if is_tool else (kind, "output"))))
    if isinstance(given, Mapping):
        given = next((given[name] for name in _table("keys")["documents"] if isinstance(given.get(name), list)), None)
    if isinstance(given, str) and not is_tool:
        given = [given]
    if not isinstance(given, list):
        return None
    found = [_document(item) for item in given]
    # A list that a tool returns may be of anything: of documents if each has a text.
    if is_tool and not (all(isinstance(item, Mapping) for item in given) and all(text for _, text in found)):
        return None
    return [document for document in found if document != (None, None)]


def _document(item: Any) -> Document:
    item = _unlayered(item)
    item = item["kwargs"] if isinstance(first_of(item, "kwargs"), Mapping) else item
    text = None
    with suppress(TypeError):
        (text,) = as_contexts([item])
    ids = (first_of(part, *_table("keys")["id"]) for part in (item, opened(first_of(item, "metadata"))))
    return next((id for id in ids if isinstance(id, (str, int)) and not isinstance(id, bool)), None), text
