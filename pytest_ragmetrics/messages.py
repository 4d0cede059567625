"""Reading a conversation, however the library that led it writes it down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: How the roles are called elsewhere.
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}
_CALL_TYPES = frozenset({"function_call", "tool_use", "tool_call", "custom_tool_call"})
_RESULT_TYPES = frozenset({"function_call_output", "tool_result", "custom_tool_call_output"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call of a tool: its name and the arguments, as a mapping of JSON values."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message: ``role`` is system, user, assistant or tool; its text, and the tools that it calls."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


def read_messages(value: object, *, name: str = "messages") -> tuple[Message, ...]:
    """Return the messages of a conversation, in order.

    ``value`` is a list of messages in the form of OpenAI's chat completions or responses, of Anthropic's messages, or
    of objects with the same attributes (LangChain and ragas messages, SDK objects), mixed if need be. Raises
    ``TypeError`` naming the message that is none, ``ValueError`` for arguments of a tool that are not a JSON object.

    >>> call = {"function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    >>> read_messages([{"role": "user", "content": "Rain?"}, {"role": "assistant", "tool_calls": [call]}])[1].tool_calls
    (ToolCall(name='weather', arguments={'city': 'Oslo'}),)
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        msg = f"{name} must be a list of messages, not {type(value).__name__}"
        raise TypeError(msg)
    return tuple(message for index, item in enumerate(value) for message in _message(item, f"{name}[{index}]"))


def read_tool_calls(value: object, *, name: str = "tool_calls") -> tuple[ToolCall, ...]:
    """Return the calls of a list of them, in the forms that :func:`read_messages` reads, or ``{"name", "args"}``.

    >>> read_tool_calls([{"name": "weather", "args": {"city": "Oslo"}}, {"name": "stop"}])
    (ToolCall(name='weather', arguments={'city': 'Oslo'}), ToolCall(name='stop', arguments={}))
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        msg = f"{name} must be a list of tool calls, not {type(value).__name__}"
        raise TypeError(msg)
    return tuple(_tool_call(item, f"{name}[{index}]") for index, item in enumerate(value))


def _message(item: object, place: str) -> Iterator[Message]:
    """Yield what an item holds: one message, or more where results of tools stand in the user's."""
    kind = _kind(item)
    if kind in _CALL_TYPES:
        yield Message(role="assistant", tool_calls=(_tool_call(item, place),))
        return
    if kind in _RESULT_TYPES:
        yield Message(role="tool", text=_text(_get(item, "output", "content")))
        return
    role = _get(item, "role")
    role = role if isinstance(role, str) else kind
    if not role:
        what = "has no role" if isinstance(item, Mapping) else f"is of type {type(item).__name__}"
        msg = f"{place} {what}: give a message with role and content"
        raise TypeError(msg)
    role = _ROLES.get(role, role)
    # What else a log of events holds, such as reasoning, is no message.
    if role in ("system", "user", "assistant", "tool"):
        yield from _spoken(role, item, place)


def _spoken(role: str, item: object, place: str) -> Iterator[Message]:
    content = _get(item, "content", "parts")
    blocks = [content] if not isinstance(content, (list, tuple)) else list(content)
    yield from (
        Message(role="tool", text=_text(_get(block, "content", "output")))
        for block in blocks
        if _kind(block) in _RESULT_TYPES
    )
    in_blocks = [block for block in blocks if _kind(block) in _CALL_TYPES]
    listed = _get(item, "tool_calls") or ()
    single = _get(item, "function_call")
    # LangChain says the calls of an Anthropic message twice; the list is the one that it has read.
    calls = [*listed] or in_blocks or ([single] if single else [])
    text = "\n".join(filter(None, map(_text, blocks)))
    if text or calls or not any(_kind(block) in _RESULT_TYPES for block in blocks):
        yield Message(role=role, text=text, tool_calls=read_tool_calls(calls, name=f"{place}.tool_calls"))


def _text(block: object) -> str:
    """Return the text of a content, or of one of its blocks; nothing for images and the like."""
    if isinstance(block, str):
        return block
    if isinstance(block, (list, tuple)):
        return "\n".join(filter(None, map(_text, block)))
    if block is None or _kind(block) in (_CALL_TYPES | _RESULT_TYPES):
        return ""
    text = _get(block, "text", "refusal")
    return text if isinstance(text, str) else ""


def _tool_call(item: object, place: str) -> ToolCall:
    function, custom = _get(item, "function"), _get(item, "custom")
    called = next((it for it in (function, custom) if _get(it, "name") is not None), item)
    name = _get(called, "name")
    if not isinstance(name, str) or not name:
        msg = f"{place} has no name: give a tool call with name and arguments"
        raise TypeError(msg)
    if called is custom or _kind(called) == "custom_tool_call":  # its input is any text
        return ToolCall(name=name, arguments={"input": _get(called, "input") or ""})
    arguments = _get(called, "arguments", "args", "input", "input_parameters")
    return ToolCall(name=name, arguments=_arguments(arguments, place))


def _arguments(written: object, place: str) -> dict[str, Any]:
    value = _parsed(written, place) if isinstance(written, str) and written else written
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping):
        msg = f"{place}: the arguments must be a JSON object, not {type(value).__name__}"
        raise ValueError(msg)  # noqa: TRY004 - a value inside of the conversation, often JSON text
    return dict(value)


def _parsed(written: str, place: str) -> object:
    try:
        value: object = json.loads(written)
    except (ValueError, RecursionError) as error:
        msg = f"{place}: the arguments are not JSON: {written[:80]!r}"
        raise ValueError(msg) from error
    return value


def _kind(item: object) -> str:
    kind = _get(item, "type")
    return kind if isinstance(kind, str) else ""


def _get(item: object, *names: str) -> Any:
    """Return the first of some keys or attributes that an item has and that is not ``None``."""
    for name in names:
        value = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
        if value is not None and not (callable(value) and not isinstance(item, Mapping)):
            return value
    return None
