"""Messages of conversations with calls of tools, read from what the libraries of the field write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Number
from typing import Any

#: Names of the roles in other libraries.
ROLES = {
    "human": "user",
    **dict.fromkeys(("ai", "model", "bot", "chatbot", "agent"), "assistant"),
    **dict.fromkeys(("function", "ipython", "observation"), "tool"),
    "developer": "system",
}
_KNOWN_ROLES = ("system", "user", "assistant", "tool")
_CALL_TYPES = frozenset({"function_call", "tool_use", "tool_call", "custom_tool_call"})
_RESULT_TYPES = frozenset({"function_call_output", "tool_result", "custom_tool_call_output"})
#: The types of what a model thinks, which is no text of its message.
_THOUGHT_TYPES = frozenset({"reasoning", "thinking", "redacted_thinking"})
_NO_ATTACHMENTS = _CALL_TYPES | _RESULT_TYPES | _THOUGHT_TYPES
#: The names under which a message has its texts and calls.
_SAID = (
    *("content", "blocks", "parts", "text", "refusal", "audio", "tool_calls", "tools_called", "invalid_tool_calls"),
    *("function_call", "additional_kwargs", "tool_call_results"),
)
#: Every message in the JSON text of a conversation has one of these names.
_SPEECH = frozenset({"content", "parts", "tool_calls"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call of a tool: its name and the arguments, as a mapping of JSON values; ``id`` is how its result names it."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    id: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message: ``role`` is system, user, assistant or tool; its text, and the tools that it calls.

    ``attachments`` are the kinds of its parts that are no text, such as ``image_url``; they are not compared. ``tool``
    is the name of the tool whose result it is.
    """

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    attachments: tuple[str, ...] = field(default=(), compare=False)
    tool: str | None = field(default=None, compare=False, repr=False)


def read_messages(value: object, *, name: str = "messages") -> tuple[Message, ...]:
    """Return the messages of a conversation, in order.

    ``value`` is a list of messages in the form of OpenAI's chat completions or responses, of Anthropic's messages, of
    OpenTelemetry's ``gen_ai.input.messages``, or of objects with the same attributes (LangChain and ragas messages, SDK
    objects), mixed if need be; the list as JSON text, or as the ``messages`` of a mapping, is one too. Raises
    ``TypeError`` naming what is not a message or not a content, ``ValueError`` for arguments of a tool that are not a
    JSON object, and for a role that is not known.

    >>> call = {"function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    >>> read_messages([{"role": "user", "content": "Rain?"}, {"role": "assistant", "tool_calls": [call]}])[1].tool_calls
    (ToolCall(name='weather', arguments={'city': 'Oslo'}),)
    """
    return tuple(message for message, _ in read_items(value, name=name))


def read_items(value: object, *, name: str = "messages") -> Iterator[tuple[Message, int]]:
    """Yield the messages of a conversation as :func:`read_messages`, each with the index of its item in the list."""
    names: dict[str | None, str] = {}
    waiting: list[str] = []
    for index, item in enumerate(_listed(opened(value), name, "messages")):
        for message in _message(item, f"{name}[{index}]"):
            waiting += (call.name for call in message.tool_calls)
            names.update((call.id, call.name) for call in message.tool_calls if call.id)
            if message.role != "tool":
                yield message, index
                continue
            # A result names its call, or its tool, or is that of the next call.
            known = names.get(message.tool) or (message.tool if message.tool in waiting else None)
            tool = known or next(iter(waiting), message.tool)
            if tool in waiting:
                waiting.remove(tool)
            yield replace(message, tool=tool), index


def read_tool_calls(value: object, *, name: str = "tool_calls") -> tuple[ToolCall, ...]:
    """Return the calls of a list of them, in the forms that :func:`read_messages` reads, or ``{"name", "args"}``.

    >>> read_tool_calls([{"name": "weather", "args": {"city": "Oslo"}}, {"name": "stop"}])
    (ToolCall(name='weather', arguments={'city': 'Oslo'}), ToolCall(name='stop', arguments={}))
    """
    return tuple(_tool_call(item, f"{name}[{n}]") for n, item in enumerate(_listed(value, name, "tool calls")))


def opened(value: object) -> object:
    """Return the list in JSON text, in the ``messages`` of a mapping or of an iterator; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, Mapping) and "messages" in value:
        value = value["messages"]
    return list(value) if isinstance(value, Iterator) else value


def is_spoken(value: object) -> bool:
    """Tell whether a value is a list of messages in which the user speaks, and each of which says or calls something.

    >>> is_spoken([{"role": "user", "content": "Rain?"}]), is_spoken([{"city": "Oslo"}])
    (True, False)
    """
    if not isinstance(value, list) or not all(isinstance(item, Mapping) and _SPEECH & item.keys() for item in value):
        return False
    try:
        return any(message.role == "user" and message.text.strip() for message in read_messages(value))
    except (TypeError, ValueError):
        return False


def _listed(value: object, name: str, what: str) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        msg = f"{name} must be a list of {what}, not {type(value).__name__}"
        msg += " that is no JSON" if isinstance(value, str) and value.lstrip().startswith("[") else ""
        raise TypeError(msg)
    return tuple(value)


def _message(item: object, place: str) -> Iterator[Message]:
    """Yield the messages of an item: one, or more where a user message contains results of tools."""
    if isinstance(item, Message) and item.role in _KNOWN_ROLES:
        yield item
        return
    case = first_of(item, "llm_test_case") or item
    question, answer = first_of(case, "input"), first_of(case, "actual_output")
    if isinstance(question, str) and isinstance(answer, str):  # a turn of DeepEval up to 2.9
        calls = read_tool_calls(first_of(case, "tools_called") or (), name=f"{place}.tools_called")
        yield from (Message(role="user", text=question), Message(role="assistant", text=answer, tool_calls=calls))
        return
    item = _loaded(item)
    kind = kind_of(item)
    if kind in _CALL_TYPES:
        yield Message(role="assistant", tool_calls=(_tool_call(item, place),))
        return
    if kind in _RESULT_TYPES:
        yield _result(item, _text(first_of(item, "output", "content")))
        return
    given = first_of(item, "role")
    # An enumeration of another library is a str too, but does not print as one.
    role = str.__str__(given if isinstance(given, str) else kind).lower()
    role = role.removesuffix("chunk").removesuffix("message")
    if not role:
        what = "has no role" if isinstance(item, Mapping) else f"is of type {type(item).__name__}"
        raise TypeError(f"{place} {what}: give a message with role and content")
    role = ROLES.get(role, role)
    if role in _KNOWN_ROLES:
        yield from _turn(role, item, place)
    elif isinstance(given, str):
        raise ValueError(f"{place} has the role {given!r}: write one of {', '.join(_KNOWN_ROLES)}")
    elif first_of(item, "content", "parts", "text") and kind not in _THOUGHT_TYPES:
        raise ValueError(f"{place} is of type {kind!r} and has no role: write one of {', '.join(_KNOWN_ROLES)}")
    elif kind not in _THOUGHT_TYPES:
        # Other events of a log, such as a search, have a type and no role.
        yield Message(role="assistant", attachments=(kind,))


def _loaded(item: object) -> object:
    """Return the message that LangChain's ``messages_to_dict`` or ``dumpd`` has written, anything else as it is."""
    if not isinstance(item, Mapping):
        return item
    if isinstance(item.get("kwargs"), Mapping) and "lc" in item:
        path = item.get("id") or [""]
        return {"type": str(path[-1]), **item["kwargs"]}
    if isinstance(item.get("data"), Mapping) and item.keys().isdisjoint(("role", *_SAID)):
        return {**item["data"], "type": item.get("type")}
    return item


def _turn(role: str, item: object, place: str) -> Iterator[Message]:
    blocks = [_unwrapped(block) for block in _blocks(item, place)]
    results = [block for block in blocks if kind_of(block) in _RESULT_TYPES]
    yield from (_result(block, _text(first_of(block, "content", "output"))) for block in results)
    text, attachments = _text(blocks), tuple(filter(None, map(_attachment, blocks)))
    calls = _calls(item, blocks)
    if text or calls or attachments or not results:
        made = read_tool_calls(calls, name=f"{place}.tool_calls")
        tool = _result(item, text).tool if role == "tool" else None
        yield Message(role=role, text=text, tool_calls=made, attachments=attachments, tool=tool)


def _result(item: object, text: str) -> Message:
    tool = first_of(item, "tool_call_id", "tool_use_id", "call_id", "name")
    return Message(role="tool", text=text, tool=tool if isinstance(tool, str) else None)


def _blocks(item: object, place: str) -> list[Any]:
    """Return the parts of what a message says; raise ``TypeError`` for a content that is no text and no part."""
    if isinstance(item, Mapping) and len(item) > 1 and item.keys().isdisjoint(_SAID):
        msg = f"{place} has no content, only the keys {', '.join(map(repr, islice(item, 8)))}: give its text as content"
        raise TypeError(msg)
    # Of objects with blocks the content is their texts alone. Haystack keeps what a tool returned apart.
    content = first_of(item, "blocks") or first_of(item, "content", "parts", "text")
    if content is None:
        content = [first_of(result, "result") for result in first_of(item, "tool_call_results") or ()]
    blocks = list(content) if isinstance(content, (list, tuple)) else [content]
    for block in blocks:
        if isinstance(block, (Number, bytes)):
            raise TypeError(f"{place}.content is of type {type(block).__name__}: give a text or a list of parts")
    # Beside the content; LangChain repeats blocks there.
    text = _text(blocks)
    for holder in (item, first_of(item, "additional_kwargs")):
        audio = first_of(holder, "audio")
        beside = first_of(holder, "refusal"), first_of(audio, "transcript") or (audio and {"type": "audio"})
        blocks += [more for more in beside if more and not (isinstance(more, str) and more in text)]
    return blocks


def _calls(item: object, blocks: Sequence[Any]) -> list[Any]:
    """Return the calls of a message from the first place that has some: LangChain and others repeat them."""
    parsed = [*(first_of(item, "tool_calls", "tools_called") or ()), *(first_of(item, "invalid_tool_calls") or ())]
    # Ragas writes the content of a message with calls as {"text", "tool_calls"}.
    parsed = parsed or [call for block in blocks for call in first_of(block, "tool_calls") or ()]
    if parsed:
        return parsed
    in_blocks = [block for block in blocks if kind_of(block) in _CALL_TYPES]
    if in_blocks:
        return in_blocks
    for holder in (item, first_of(item, "additional_kwargs")):
        several, single = first_of(holder, "tool_calls"), first_of(holder, "function_call")
        if several or single:
            return [*several] if several else [single]
    return []


def _unwrapped(block: Any) -> Any:
    """Return a call or a result that a part of Gemini's, Bedrock's or OpenTelemetry's is; anything else as it is."""
    called = first_of(block, "function_call", "functionCall", "toolUse")
    if called is not None:
        arguments, id = first_of(called, "args", "input", "arguments"), first_of(called, "id", "toolUseId")
        return {"type": "tool_call", "name": first_of(called, "name"), "args": arguments, "id": id}
    result = first_of(block, "function_response", "functionResponse", "toolResult")
    if result is None and kind_of(block) == "tool_call_response":  # of OpenTelemetry
        result = block
    if result is None:
        return block
    returned = first_of(result, "response", "content", "output", "result")
    parts = returned if isinstance(returned, (list, tuple)) else [returned]
    data = [first_of(part, "json") or (part if part is returned else None) for part in parts]
    shown = [
        part if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for part, value in zip(parts, data, strict=True)
    ]
    return {"type": "tool_result", "content": shown, "call_id": first_of(result, "id", "toolUseId", "name")}


def _text(block: object) -> str:
    """Return the text of a content, or of one of its blocks; nothing for images and the like."""
    if isinstance(block, str):
        return block
    if isinstance(block, (list, tuple)):
        return "\n".join(filter(None, map(_text, block)))
    if block is None or kind_of(block) in (_CALL_TYPES | _RESULT_TYPES):
        return ""
    text = _said(block)
    return text if isinstance(text, str) else ""


def _said(block: object) -> Any:
    # A part of OpenTelemetry's has its text as content.
    text = first_of(block, "text", "refusal", "transcript", *(("content",) if kind_of(block) == "text" else ()))
    # OpenAI's assistants annotate the value of a text.
    return text if text is None or isinstance(text, str) else first_of(text, "value")


def _attachment(block: object) -> str | None:
    """Return what kind of block it is if it is no text, such as an image."""
    kind = kind_of(block)
    if block is None or isinstance(block, str) or isinstance(_said(block), str) or kind in _NO_ATTACHMENTS:
        return None
    return kind or (next(map(str, block), None) if isinstance(block, Mapping) else type(block).__name__)


def _tool_call(item: object, place: str) -> ToolCall:
    function, custom = first_of(item, "function"), first_of(item, "custom")
    called = next((it for it in (function, custom) if first_of(it, "name") is not None), item)
    name = first_of(called, "name", "tool_name")
    if not isinstance(name, str) or not name:
        raise TypeError(f"{place} has no name: give a tool call with name and arguments")
    id = first_of(item, "call_id", "id")
    id = id if isinstance(id, str) else None
    if called is custom or kind_of(called) == "custom_tool_call":  # its input is any text
        return ToolCall(name=name, arguments={"input": first_of(called, "input") or ""}, id=id)
    arguments = first_of(called, "arguments", "args", "input", "input_parameters", "inputParameters", "tool_kwargs")
    return ToolCall(name=name, arguments=_arguments(arguments, place), id=id)


def _arguments(written: object, place: str) -> dict[str, Any]:
    value = written
    if isinstance(written, str) and written:
        try:
            value = json.loads(written)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place}: the arguments are not JSON: {written[:80]!r}") from error
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{place}: the arguments must be a JSON object, not {type(value).__name__}")  # noqa: TRY004 - a value inside of the conversation, often JSON text
    return dict(value)


def kind_of(item: object) -> str:
    """Return the type that an item names, "" if it names none."""
    kind = first_of(item, "type", "block_type")
    return kind if isinstance(kind, str) else ""


def first_of(item: object, *names: str) -> Any:
    """Return the first of some keys or attributes that an item has and that is not ``None``."""
    for name in names:
        value = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
        if value is not None and not (callable(value) and not isinstance(item, Mapping)):
            return value
    return None
