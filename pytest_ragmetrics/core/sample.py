"""The values a metric scores: a question, its answer and contexts, and conversations with calls of tools.

They are read from what other tools and libraries write under other names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from typing_extensions import Self

#: Names of the roles in other libraries.
_ROLES = {
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
    """A call of a tool: its name and the arguments, as a mapping of JSON values."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message: ``role`` is system, user, assistant or tool; its text, and the tools that it calls.

    ``attachments`` are the kinds of its parts that are no text, such as ``image_url``; they are not compared.
    """

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    attachments: tuple[str, ...] = field(default=(), compare=False)


def read_messages(value: object, *, name: str = "messages") -> tuple[Message, ...]:
    """Return the messages of a conversation, in order.

    ``value`` is a list of messages in the form of OpenAI's chat completions or responses, of Anthropic's messages, or
    of objects with the same attributes (LangChain and ragas messages, SDK objects), mixed if need be; the list as JSON
    text, or as the ``messages`` of a mapping, is one too. Raises ``TypeError`` naming what is not a message or not a
    content, ``ValueError`` for arguments of a tool that are not a JSON object, and for a role that is not known.

    >>> call = {"function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    >>> read_messages([{"role": "user", "content": "Rain?"}, {"role": "assistant", "tool_calls": [call]}])[1].tool_calls
    (ToolCall(name='weather', arguments={'city': 'Oslo'}),)
    """
    items = _listed(_opened(value), name, "messages")
    return tuple(message for index, item in enumerate(items) for message in _message(item, f"{name}[{index}]"))


def read_tool_calls(value: object, *, name: str = "tool_calls") -> tuple[ToolCall, ...]:
    """Return the calls of a list of them, in the forms that :func:`read_messages` reads, or ``{"name", "args"}``.

    >>> read_tool_calls([{"name": "weather", "args": {"city": "Oslo"}}, {"name": "stop"}])
    (ToolCall(name='weather', arguments={'city': 'Oslo'}), ToolCall(name='stop', arguments={}))
    """
    return tuple(_tool_call(item, f"{name}[{n}]") for n, item in enumerate(_listed(value, name, "tool calls")))


def _opened(value: object) -> object:
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
    case = _get(item, "llm_test_case") or item
    question, answer = _get(case, "input"), _get(case, "actual_output")
    if isinstance(question, str) and isinstance(answer, str):  # a turn of DeepEval up to 2.9
        calls = read_tool_calls(_get(case, "tools_called") or (), name=f"{place}.tools_called")
        yield from (Message(role="user", text=question), Message(role="assistant", text=answer, tool_calls=calls))
        return
    item = _loaded(item)
    kind = _kind(item)
    if kind in _CALL_TYPES:
        yield Message(role="assistant", tool_calls=(_tool_call(item, place),))
        return
    if kind in _RESULT_TYPES:
        yield Message(role="tool", text=_text(_get(item, "output", "content")))
        return
    given = _get(item, "role")
    # An enumeration of another library is a str too, but does not print as one.
    role = str.__str__(given if isinstance(given, str) else kind).lower()
    role = role.removesuffix("chunk").removesuffix("message")
    if not role:
        what = "has no role" if isinstance(item, Mapping) else f"is of type {type(item).__name__}"
        raise TypeError(f"{place} {what}: give a message with role and content")
    role = _ROLES.get(role, role)
    if role in _KNOWN_ROLES:
        yield from _turn(role, item, place)
    elif isinstance(given, str):
        raise ValueError(f"{place} has the role {given!r}: write one of {', '.join(_KNOWN_ROLES)}")
    elif _get(item, "content", "parts", "text") and kind not in _THOUGHT_TYPES:
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
    results = [block for block in blocks if _kind(block) in _RESULT_TYPES]
    yield from (Message(role="tool", text=_text(_get(block, "content", "output"))) for block in results)
    text, attachments = _text(blocks), tuple(filter(None, map(_attachment, blocks)))
    calls = _calls(item, blocks)
    if text or calls or attachments or not results:
        made = read_tool_calls(calls, name=f"{place}.tool_calls")
        yield Message(role=role, text=text, tool_calls=made, attachments=attachments)


def _blocks(item: object, place: str) -> list[Any]:
    """Return the parts of what a message says; raise ``TypeError`` for a content that is no text and no part."""
    if isinstance(item, Mapping) and len(item) > 1 and item.keys().isdisjoint(_SAID):
        msg = f"{place} has no content, only the keys {', '.join(map(repr, islice(item, 8)))}: give its text as content"
        raise TypeError(msg)
    # Of objects with blocks the content is their texts alone. Haystack keeps what a tool returned apart.
    content = _get(item, "blocks") or _get(item, "content", "parts", "text")
    if content is None:
        content = [_get(result, "result") for result in _get(item, "tool_call_results") or ()]
    blocks = list(content) if isinstance(content, (list, tuple)) else [content]
    for block in blocks:
        if isinstance(block, (Number, bytes)):
            raise TypeError(f"{place}.content is of type {type(block).__name__}: give a text or a list of parts")
    # Beside the content; LangChain repeats blocks there.
    text = _text(blocks)
    for holder in (item, _get(item, "additional_kwargs")):
        audio = _get(holder, "audio")
        beside = _get(holder, "refusal"), _get(audio, "transcript") or (audio and {"type": "audio"})
        blocks += [more for more in beside if more and not (isinstance(more, str) and more in text)]
    return blocks


def _calls(item: object, blocks: Sequence[Any]) -> list[Any]:
    """Return the calls of a message from the first place that has some: LangChain and others repeat them."""
    parsed = [*(_get(item, "tool_calls", "tools_called") or ()), *(_get(item, "invalid_tool_calls") or ())]
    # Ragas writes the content of a message with calls as {"text", "tool_calls"}.
    parsed = parsed or [call for block in blocks for call in _get(block, "tool_calls") or ()]
    if parsed:
        return parsed
    in_blocks = [block for block in blocks if _kind(block) in _CALL_TYPES]
    if in_blocks:
        return in_blocks
    for holder in (item, _get(item, "additional_kwargs")):
        several, single = _get(holder, "tool_calls"), _get(holder, "function_call")
        if several or single:
            return [*several] if several else [single]
    return []


def _unwrapped(block: Any) -> Any:
    """Return a call or a result that a part of Gemini's or Bedrock's contains, anything else as it is."""
    called = _get(block, "function_call", "functionCall", "toolUse")
    if called is not None:
        return {"type": "tool_call", "name": _get(called, "name"), "args": _get(called, "args", "input", "arguments")}
    result = _get(block, "function_response", "functionResponse", "toolResult")
    if result is None:
        return block
    returned = _get(result, "response", "content", "output")
    parts = returned if isinstance(returned, (list, tuple)) else [returned]
    data = [_get(part, "json") or (part if part is returned else None) for part in parts]
    shown = [
        part if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for part, value in zip(parts, data, strict=True)
    ]
    return {"type": "tool_result", "content": shown}


def _text(block: object) -> str:
    """Return the text of a content, or of one of its blocks; nothing for images and the like."""
    if isinstance(block, str):
        return block
    if isinstance(block, (list, tuple)):
        return "\n".join(filter(None, map(_text, block)))
    if block is None or _kind(block) in (_CALL_TYPES | _RESULT_TYPES):
        return ""
    text = _said(block)
    return text if isinstance(text, str) else ""


def _said(block: object) -> Any:
    text = _get(block, "text", "refusal", "transcript")
    # OpenAI's assistants annotate the value of a text.
    return text if text is None or isinstance(text, str) else _get(text, "value")


def _attachment(block: object) -> str | None:
    """Return what kind of block it is if it is no text, such as an image."""
    kind = _kind(block)
    if block is None or isinstance(block, str) or isinstance(_said(block), str) or kind in _NO_ATTACHMENTS:
        return None
    return kind or (next(map(str, block), None) if isinstance(block, Mapping) else type(block).__name__)


def _tool_call(item: object, place: str) -> ToolCall:
    function, custom = _get(item, "function"), _get(item, "custom")
    called = next((it for it in (function, custom) if _get(it, "name") is not None), item)
    name = _get(called, "name", "tool_name")
    if not isinstance(name, str) or not name:
        raise TypeError(f"{place} has no name: give a tool call with name and arguments")
    if called is custom or _kind(called) == "custom_tool_call":  # its input is any text
        return ToolCall(name=name, arguments={"input": _get(called, "input") or ""})
    arguments = _get(called, "arguments", "args", "input", "input_parameters", "inputParameters", "tool_kwargs")
    return ToolCall(name=name, arguments=_arguments(arguments, place))


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


def _kind(item: object) -> str:
    kind = _get(item, "type", "block_type")
    return kind if isinstance(kind, str) else ""


def _get(item: object, *names: str) -> Any:
    """Return the first of some keys or attributes that an item has and that is not ``None``."""
    for name in names:
        value = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
        if value is not None and not (callable(value) and not isinstance(item, Mapping)):
            return value
    return None


#: Names of the fields in other tools; a field's own name takes precedence.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "user_input": ("question", "input", "query"),
    "response": ("answer", "actual_output"),
    "retrieved_contexts": ("contexts", "retrieval_context", "context"),
    "reference": ("ground_truth", "expected_output", "expected_outcome"),
    "reference_contexts": ("relevant_contexts", "ground_truth_context"),
}

#: Names that other tools have for the messages: DeepEval's, and those of the turns before the question.
TALKS = ("turns", "chat_history", "conversation_history", "history", "conversation")
_SNAKE_CASE = (
    *("actual_output", "expected_output", "expected_outcome", "retrieval_context", "tools_called", "expected_tools"),
    *("additional_metadata", "source_file"),
)
#: Names in the files of DeepEval's runs, and elsewhere.
CAMEL_CASE = {re.sub("_(.)", lambda found: found.group(1).upper(), name): name for name in _SNAKE_CASE}


def row_of_theirs(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a row with the names in :data:`CAMEL_CASE` as elsewhere, and what Ragas has in ``eval_sample``.

    >>> row_of_theirs({"eval_sample": {"user_input": "Why?"}, "actualOutput": "So."})
    {'actual_output': 'So.', 'user_input': 'Why?'}
    """
    values = dict(row)
    if isinstance(values.get("eval_sample"), Mapping):
        values = {**values.pop("eval_sample"), **values}
    camel = [] if CAMEL_CASE.keys().isdisjoint(row) else [name for name in row if name in CAMEL_CASE]
    return {**{CAMEL_CASE[name]: values.pop(name) for name in camel}, **values} if camel else values


def is_conversation_row(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is one of DeepEval's conversations: turns or what is to come of them, and no question."""
    is_talk = "turns" in row or ("scenario" in row and "expected_outcome" in row)
    return is_talk and all(row.get(name) is None for name in ("user_input", *ALIASES["user_input"]))


def is_deepeval_row(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is as DeepEval writes it, its ``context`` the ideal one."""
    return "retrieval_context" in row or ("source_file" in row and "input" in row) or is_conversation_row(row)


def _take_talk(row: dict[str, Any]) -> None:
    """Move the first list that a row has under another name of ``messages`` there, with the contexts of its end."""
    for name in TALKS:
        talk = _opened(row[name]) if name in row else None
        if is_conversation(talk) and talk:
            del row[name]
            row["messages"] = talk = [*talk]
            if all(row.get(given) is None for given in ("retrieved_contexts", *ALIASES["retrieved_contexts"])):
                row["retrieved_contexts"] = _get(talk[-1], "retrieval_context")
            return


_DOCUMENT_TEXT = ("page_content", "get_content", "text", "content")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One row to score; every field is optional, and a metric names those it needs.

    A conversation, a list of messages as ``user_input`` (or its JSON text, where each has a role and a content and the
    user speaks) or in ``metadata["messages"]`` (see :func:`read_messages`), is kept in the metadata; the user's last
    message is the ``user_input`` then, and the assistant's text that ends it the ``response``, unless they are given.
    Contexts may be strings or documents of other libraries (objects with ``page_content``, ``get_content()``, ``text``
    or ``content``, mappings with such a key); they are kept as a tuple of strings. A bare string is one context. Raises
    ``TypeError`` naming the field that has the wrong type.

    >>> Sample(response="Yes.", retrieved_contexts="Only one passage.").retrieved_contexts
    ('Only one passage.',)
    """

    user_input: str | None = None
    response: str | None = None
    retrieved_contexts: Sequence[str] | None = None
    reference: str | None = None
    reference_contexts: Sequence[str] | None = None
    retrieved_context_ids: Sequence[str | int] | None = None
    reference_context_ids: Sequence[str | int] | None = None
    id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Return a sample to initialise; raise ``TypeError`` naming the field that an unknown one stands for."""
        unknown = given.keys() - _FIELDS if cls is Sample else ()
        for name in unknown:
            meant = meant_field(name)
            hint = f"did you mean {meant}=?" if meant else f"it takes {', '.join(FIELDS)}; put others into metadata="
            raise TypeError(f"Sample takes no {name}=; {hint}")
        return object.__new__(cls)

    if not TYPE_CHECKING:  # to mypy every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            """Raise ``AttributeError`` saying where its texts are, or which field is meant."""
            meant = None if hasattr(str, name) or name.startswith("_") else meant_field(name)
            hint = f"did you mean sample.{meant}?" if meant else "its texts are sample.user_input and sample.response"
            raise AttributeError(f"a Sample has no attribute {name!r}; {hint}")

    def __post_init__(self) -> None:
        if not isinstance(self.metadata, Mapping):
            raise TypeError(f"metadata must be a mapping, not {type(self.metadata).__name__}")
        self._take_conversation()
        for name in ("user_input", "response", "reference", "id"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                whole = "; assert_sample(row, ...) takes a whole row" if isinstance(value, Mapping) else ""
                texts = "; a list is for the contexts" if isinstance(value, (list, tuple)) else ""
                raise TypeError(f"{name} must be a str, not {type(value).__name__}{advice(value)}{whole}{texts}")
        for name in ("retrieved_contexts", "reference_contexts"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_contexts(getattr(self, name), name=name))
        for name in ("retrieved_context_ids", "reference_context_ids"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _as_ids(getattr(self, name), name))

    def _take_conversation(self) -> None:
        """Move a conversation into the metadata; its last question and the answer to it fill fields that are not set.

        A question that is not the last one of the messages came after them: the answer to it is not among them.
        """
        asked: Any = self.user_input
        if isinstance(asked, str) and asked.lstrip().startswith("["):
            asked = found if is_spoken(found := _opened(asked)) else asked
        if (asked is None or isinstance(asked, str)) and "messages" not in self.metadata:
            return  # fast, for tables of a million rows
        name = "user_input" if is_conversation(asked) else "messages"
        given = asked if name == "user_input" else _opened(self.metadata.get("messages"))
        if not is_conversation(given):
            return
        object.__setattr__(self, "metadata", {**self.metadata, "messages": [*given]})
        try:
            messages = read_messages(given, name=name)
        except (TypeError, ValueError):
            if name == "user_input":
                raise
            # Metadata: a metric that takes them says what is wrong, and the other rows of a table are scored.
            return
        if name == "user_input":
            object.__setattr__(self, "user_input", None)
        last = next((message.text for message in reversed(messages) if message.role == "user"), None)
        if self.user_input is None:
            object.__setattr__(self, "user_input", last)
        is_last = (self.user_input or "").strip() == (last or "").strip()
        ends_in_answer = bool(messages) and messages[-1].role == "assistant" and messages[-1].text.strip()
        if self.response is None and ends_in_answer and is_last:
            object.__setattr__(self, "response", messages[-1].text)

    @classmethod
    def from_mapping(cls, row: Mapping[str, Any]) -> Sample:
        """Build a sample from a row of another tool; unknown keys go into ``metadata``.

        Takes the names of this class and the aliases question/input/query, answer/actual_output,
        contexts/context/retrieval_context, ground_truth/expected_output/expected_outcome and relevant_contexts (for
        ``reference_contexts``). In a row with a ``retrieval_context``, with ``input`` and ``source_file``, or with
        ``turns`` and no question, as DeepEval writes it, ``context`` is the ideal one: ``reference_contexts``; names
        may be in camel case. A conversation is the ``user_input``, as in Ragas, ``messages``, or a list of messages as
        ``turns`` (with the ``retrieval_context`` of the last), ``history``, ``chat_history``, ``conversation`` or
        ``conversation_history``, which need not have the question. Raises ``TypeError`` when a field has the wrong
        type, ``ValueError`` for calls of tools that cannot be read.

        >>> Sample.from_mapping({"question": "Why?", "answer": "Because."}).response
        'Because.'
        """
        if not isinstance(row, Mapping):
            from pytest_ragmetrics.core.other_tools import class_of_theirs

            instead = "; write sample_from(it)" if class_of_theirs(row) else advice(row)
            instead = "; give one row, or score a list of them by evaluate()" if is_conversation(row) else instead
            raise TypeError(f"a row is a mapping of fields, not {type(row).__name__}{instead}")
        rest = row_of_theirs(row)
        if is_deepeval_row(rest) and "context" in rest and rest.get("reference_contexts") is None:
            rest["reference_contexts"] = rest.pop("context")
        if rest.get("messages") is None:
            _take_talk(rest)
        values: dict[str, Any] = {f.name: rest.pop(f.name) for f in fields(cls) if f.name in rest}
        for name, aliases in ALIASES.items():
            for alias in aliases:
                if alias in rest and values.get(name) is None:
                    values[name] = rest.pop(alias)
        values["metadata"] = {**rest, **(values.get("metadata") or {})}
        return cls(**values)

    def to_mapping(self) -> dict[str, Any]:
        """Return the fields that are set, as JSON builtins apart from the values in ``metadata``.

        >>> Sample(response="Yes.").to_mapping()
        {'response': 'Yes.'}
        """
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {
            name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
            for name, value in values
            if value is not None and value != {}
        }


#: The names of the fields of a sample.
FIELDS = tuple(f.name for f in fields(Sample))
_FIELDS = frozenset(FIELDS)


def meant_field(name: str, *others: str) -> str | None:
    """Return the field of a sample, or which of ``others``, a name means by its use in other tools or its spelling.

    >>> meant_field("contexts"), meant_field("answr"), meant_field("cluster")
    ('retrieved_contexts', 'response', None)
    """
    from difflib import get_close_matches

    meant = {name: name for name in (*FIELDS, *others)}
    meant.update((alias, field) for field, aliases in ALIASES.items() for alias in aliases)
    if name in meant:
        return meant[name]
    snake = re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name[:40]).lower()
    about = _ABOUT.findall(snake)
    found = [] if about else [field for field, looks in _LOOKS.items() if re.search(looks, snake)]
    if found:
        return "reference_contexts" if {"retrieved_contexts", "reference"} <= {*found} else found[0]
    near = get_close_matches(snake, [known for known in meant if _ABOUT.findall(known) == about], 1, cutoff=0.75)
    return meant[near[0]] if near else None


#: Patterns in the names of columns by the field that they mean, the strongest first.
_LOOKS = {
    "retrieved_contexts": "context|ctx|passage|chunk|doc|snippet|paragraph|evidence|node",
    "reference": "reference|gold|true|truth|expected|target|ideal|correct|(?<![a-z])ref(?![a-z])",
    "response": "answer|response|output|completion|predict|reply|generat",
    "user_input": "question|query|prompt|input|utterance",
}
#: Words in the names of columns that are about a field.
_ABOUT = re.compile(
    "(?<![a-z])(?:(?:u?id|uuid|type|kind|count|number|num|n|length|len|token|score|grade|rating|rank|index|date|time|url|"
    "link|path|file|title|name|lang|language|category|topic|version|embedding|hash|label|size|content|author)s?|"
    "is|has|quality|similarity|accuracy|precision|recall|relevanc[ey]|correctness|latency|cost|status|difficulty)"
    "(?![a-z])"
)


def written_for(name: str, metadata: Mapping[str, Any]) -> str:
    """Return the question whether a name in the metadata was written for a field; nothing where none seems to be.

    >>> written_for("response", {"lang": "en", "answr": "So."})
    "; did you write 'answr' for response? In a data set columns={'response': 'answr'} says so"
    """
    texts = (str(key) for key, value in metadata.items() if isinstance(value, (str, list, tuple)))
    hint = fields_written([key for key in texts if meant_field(key) == name][:1])
    return f"; {hint}" if hint else ""


def fields_written(names: Iterable[str]) -> str:
    """Return the question which names of columns were written for fields, "" where none seems to be."""
    meant = {found: name for name in islice(names, 50) if (found := meant_field(name)) not in (None, name)}
    pairs = ", ".join(f"{name!r} for {found}" for found, name in meant.items())
    return f"did you write {pairs}? In a data set columns={meant!r} says so" if meant else ""


def is_conversation(value: Any) -> TypeGuard[Collection[Any]]:
    """Tell whether a value is a list, such as one of messages; a message of a library may be iterable too."""
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))


def as_contexts(value: object, *, name: str = "contexts") -> tuple[str, ...]:
    """Return the texts of one context or of several; raise ``TypeError`` naming what is no text.

    >>> as_contexts("One passage.")
    ('One passage.',)
    >>> as_contexts(["One.", "Two."])
    ('One.', 'Two.')
    """
    if isinstance(value, (list, tuple)) and set(map(type, value)) == {str}:
        # Rows of files: without a look at every text, for tables of a million.
        return tuple(value)
    single = _document_text(value)
    if single is not None:
        return (single,)
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        msg = f"{name} must be a text, a document or a list of them, not {type(value).__name__}{advice(value)}"
        raise TypeError(msg)
    texts = []
    for index, item in enumerate(value):
        text = _document_text(item)
        if text is None:
            raise TypeError(
                f"{name}[{index}] is {_describe(item)}: give a str, or an object or a mapping whose page_content, "
                f"text or content is a str{advice(item)}"
            )
        texts.append(text)
    return tuple(texts)


def _document_text(value: object) -> str | None:
    if isinstance(value, str):
        # A subclass of str (a lazy translation, markup) must not reach the records as such.
        return str(value)
    for name in _DOCUMENT_TEXT:
        text = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if name == "get_content" and callable(text):
            text = text()
        if isinstance(text, str):
            return str(text)
    return None


def advice(value: object) -> str:
    """Return what to write instead of a value that is no text, where that can be told."""
    if isinstance(value, Awaitable):
        return "; await it first"
    if isinstance(value, Mapping):
        return f", with the keys {', '.join(map(repr, islice(value, 8)))}"[:200]
    if isinstance(_get(value, "content"), str):
        return "; give its text, the .content"
    return "; give its text" if _kind(value) in _ROLES else ""


def _describe(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _as_ids(value: object, name: str) -> tuple[str | int, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a list of ids, not {type(value).__name__}")
    ids = tuple(value)
    for index, item in enumerate(ids):
        if not isinstance(item, (str, Integral)):
            raise TypeError(f"{name}[{index}] is {_describe(item)}: give a str or an int")
    # Numbers of numpy, which an index of vectors returns, must not reach the records as such.
    return tuple(str(item) if isinstance(item, str) else int(item) for item in ids)
