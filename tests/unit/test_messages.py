"""Conversations in the forms in which libraries write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from openai.types.chat import ChatCompletionMessage

from pytest_ragmetrics import Sample
from pytest_ragmetrics.core.messages import Message, ToolCall, read_messages, read_tool_calls


def said(text: str = "So.", role: Any = "assistant", **more: Any) -> Message:
    return Message(role=role, text=text, **more)


CALL = ToolCall(name="weather", arguments={"city": "Oslo", "days": 2})
TALK = (
    Message(role="system", text="Be brief."),
    Message(role="user", text="Rain in Oslo?"),
    Message(role="assistant", text="I look.", tool_calls=(CALL,)),
    Message(role="tool", text="Dry."),
    Message(role="assistant", text="No rain."),
)
ARGUMENTS = '{"city": "Oslo", "days": 2}'
CALLED = {"id": "1", "name": "weather", "input": CALL.arguments}

OPENAI_CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Rain in Oslo?"}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": "I look.", "tool_calls": [OPENAI_CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "Dry."},
    {"role": "assistant", "content": "No rain.", "tool_calls": None},
]
OLD_CALL: dict[str, Any] = {"function_call": {"name": "weather", "arguments": ARGUMENTS}}
DRY = {"role": "function", "name": "weather", "content": "Dry."}
OLD_CHAT = [*CHAT[:2], {**CHAT[4], "content": "I look.", **OLD_CALL}, DRY, CHAT[4]]
RESPONSES = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "Rain in Oslo?"}]},
    {"type": "reasoning", "summary": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "call_id": "1", "name": "weather", "arguments": ARGUMENTS},
    {"type": "function_call_output", "call_id": "1", "output": "Dry."},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "No rain."}]},
]
ANTHROPIC: list[dict[str, Any]] = [
    CHAT[0],
    {"role": "user", "content": "Rain in Oslo?"},
    {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", **CALLED}]},
    {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "Dry."}]}]},
    {"role": "assistant", "content": [{"type": "text", "text": "No rain."}]},
]


@dataclass
class Called:
    """A call of a tool as Ragas has it."""

    name: str
    args: Mapping[str, Any]


@dataclass
class Spoken:
    """A message as Ragas and LangChain have it."""

    content: Any
    type: str
    tool_calls: list[Any] | None = field(default=None)


class Role(str, Enum):
    """Roles as LlamaIndex and Haystack have them."""

    ASSISTANT = "assistant"


OBJECTS = [
    Spoken("Be brief.", "system"),
    Spoken("Rain in Oslo?", "human"),
    Spoken("I look.", "ai", [Called("weather", CALL.arguments)]),
    Spoken("Dry.", "tool"),
    Spoken("No rain.", "ai"),
]
# LangChain keeps the blocks of Anthropic beside the list that it has made of them.
BOTH = [*OBJECTS[:2], Spoken(ANTHROPIC[2]["content"], "ai", OBJECTS[2].tool_calls), *OBJECTS[3:]]

GEMINI = [
    *OBJECTS[:1],
    {"role": "user", "parts": [{"text": "Rain in Oslo?"}]},
    {"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"name": "weather", "args": CALL.arguments}}]},
    {"role": "user", "parts": [{"function_response": {"name": "weather", "response": "Dry."}}]},
    {"role": "model", "parts": [SimpleNamespace(text="No rain.", function_call=None)]},
]
BEDROCK = [
    *OBJECTS[:1],
    {"role": "user", "content": [{"text": "Rain in Oslo?"}]},
    {"role": "assistant", "content": [{"text": "I look."}, {"toolUse": CALLED}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "Dry."}]}}]},
    {"role": "assistant", "content": [{"text": "No rain."}]},
]
OPENTELEMETRY = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": "Rain in Oslo?"}]},
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "I look."},
            {"type": "tool_call", "arguments": CALL.arguments, "id": "1", "name": "weather"},
        ],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "Dry."}]},
    {"role": "assistant", "parts": [{"type": "reasoning", "content": "Dry."}, {"type": "text", "content": "No rain."}]},
]
# messages_to_dict of LangChain, and dumpd
_WRITTEN: list[dict[str, Any]] = [{"content": it.content, "type": it.type, "additional_kwargs": {}} for it in OBJECTS]
_WRITTEN[2]["tool_calls"] = [{"name": "weather", "args": CALL.arguments}]
BY_TYPE = [{"type": written["type"], "data": written} for written in _WRITTEN]
_CLASSES = ("SystemMessage", "HumanMessage", "AIMessageChunk", "ToolMessage", "AIMessage")
_FIELDS = [{key: written[key] for key in written if key != "type"} for written in _WRITTEN[:4]] + _WRITTEN[4:]
SERIALISED = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": fields}
    for name, fields in zip(_CLASSES, _FIELDS, strict=True)
]

CALLS = said("", tool_calls=(CALL,))
#: What a message says beside its content.
BESIDE: list[tuple[dict[str, Any], Message]] = [
    ({"refusal": "No."}, said("No.")),
    ({"content": "I: No.", "refusal": "No."}, said("I: No.")),
    ({"content": "I am sorry.", "refusal": "No."}, said("I am sorry.\nNo.")),
    ({"audio": {"id": "1", "transcript": "No."}}, said("No.")),
    ({"audio": {"id": "1"}}, said("", attachments=("audio",))),
    ({"content": "", "additional_kwargs": {"refusal": "No."}}, said("No.")),
    ({"additional_kwargs": {"tool_calls": CHAT[2]["tool_calls"]}}, CALLS),
    ({"additional_kwargs": OLD_CALL}, CALLS),
    # as Ragas writes the messages of a sample
    ({"content": {"text": "I look.", "tool_calls": _WRITTEN[2]["tool_calls"]}}, said("I look.", tool_calls=(CALL,))),
    ({"tool_calls": OBJECTS[2].tool_calls, "invalid_tool_calls": [{"name": "stop"}]},
     said("", tool_calls=(CALL, ToolCall(name="stop")))),
    ({"tool_calls": OBJECTS[2].tool_calls, "additional_kwargs": {"tool_calls": [1]}}, CALLS),
]  # fmt: skip
COMPLETION = ChatCompletionMessage.model_validate(CHAT[2])
BLOCKS = [
    SimpleNamespace(block_type="text", text="So."),
    SimpleNamespace(block_type="tool_call", tool_name="weather", tool_kwargs=CALL.arguments),
]


@pytest.mark.parametrize(
    "conversation",
    [
        *(CHAT, OLD_CHAT, ANTHROPIC, OBJECTS, BOTH, tuple(CHAT), [*CHAT[:2], *OBJECTS[2:]], GEMINI, BEDROCK),
        OPENTELEMETRY,
        *(BY_TYPE, SERIALISED, json.dumps(CHAT), "\n " + json.dumps({"messages": CHAT})),
        *({"messages": CHAT, "turns": 5}, {"messages": tuple(OBJECTS)}),
    ],
)
def test_every_form_reads_the_same(conversation: Any) -> None:
    assert read_messages(conversation) == TALK
    assert Sample(metadata={"messages": conversation}).response == "No rain."
    assert read_messages([]) == ()


@pytest.mark.parametrize(
    ("message", "read"),
    [
        *((talk, talk) for talk in TALK),
        (said(role="Human"), said(role="user")),
        *(
            ({"role": written, "content": "So."}, said(role=role))
            for role, names in {
                "user": "user User USER human Human",
                "assistant": "assistant Assistant ai AI model bot chatbot agent",
                "tool": "tool function ipython observation",
                "system": "system System developer",
            }.items()
            for written in names.split()
        ),
        (Spoken("So.", "AIMessageChunk"), said()),
        (Spoken("So.", "HumanMessageChunk"), said(role="user")),
        (Spoken("So.", "ToolMessageChunk"), said(role="tool")),
        (Spoken("So.", "SystemMessageChunk"), said(role="system")),
        (SimpleNamespace(role="tool", tool_call_results=[SimpleNamespace(result="So.")]), said(role="tool")),
        (SimpleNamespace(role="assistant", content="So.", blocks=BLOCKS), said(tool_calls=(CALL,))),
        ({"role": Role.ASSISTANT, "content": "So."}, said()),
        ({"role": "assistant", "text": "So."}, said()),
        ({"role": "ai", "tools_called": [{"tool_name": "weather", "arguments": ARGUMENTS}]}, CALLS),
        # What a judge cannot be shown is said to be there; thoughts are not said.
        *(
            ({"role": "assistant", "content": content}, said(text, attachments=attachments))
            for content, text, attachments in [
                ([{"type": "image_url", "image_url": {}}], "", ("image_url",)),
                ([{"text": "A"}, {"type": "input_audio"}, "B", {"type": "file"}], "A\nB", ("input_audio", "file")),
                ([{"inline_data": {}}, {"text": "A"}], "A", ("inline_data",)),
                ([SimpleNamespace(block_type="image", url="x"), BLOCKS[0]], "So.", ("image",)),
                ([Called("x", {}), {"type": "refusal", "refusal": "No."}], "No.", ("Called",)),
                ([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": ""}, None], "", ()),
                ("A", "A", ()),
                (None, "", ()),
                ([{"type": "text", "text": {"value": "A", "annotations": []}}], "A", ()),
                ([{"type": "audio", "transcript": "A"}, {"type": "audio", "transcript": None}], "A", ("audio",)),
                ({"text": "A"}, "A", ()),
                ({"degrees": 5}, "", ("degrees",)),
            ]
        ),
        # Refusals, speech, and calls that LangChain could not read or keeps apart; what it repeats counts once.
        *(
            (kind(**{"type": "ai", "content": None, **beside}), read)
            for kind in (dict, SimpleNamespace)
            for beside, read in BESIDE
        ),
        # What a tool returned as data is shown as JSON.
        *(
            ({"role": "user", "parts": [returned]}, said(text, "tool"))
            for returned, text in [
                ({"functionResponse": {"name": "f", "response": {"degrees": 5}}}, '{"degrees": 5}'),
                ({"toolResult": {"content": [{"json": {"degrees": 5}}, {"text": "Dry."}]}}, '{"degrees": 5}\nDry.'),
                ({"function_response": {"name": "f"}}, ""),
            ]
        ),
        # The objects that a client returns, and what they dump.
        *((message, TALK[2]) for message in (COMPLETION, COMPLETION.model_dump())),
        ({"type": "web_search_call", "id": "1"}, said("", attachments=("web_search_call",))),
    ],
)
def test_a_message_in_every_form(message: Any, read: Message) -> None:
    found = read_messages([message])
    assert found == (read,)
    assert found[0].attachments == read.attachments
    assert read_messages(found)[0].attachments == read.attachments


def test_a_turn_that_is_a_test_case() -> None:
    """So were those of DeepEval before 2.9: a question, its answer and the calls on the way."""
    turn = {"input": "Rain in Oslo?", "actual_output": "No.", "tools_called": [{"name": "stop"}]}
    answer = said("No.", tool_calls=(ToolCall(name="stop"),))
    for item in (turn, SimpleNamespace(**turn), {"llm_test_case": turn, "should_evaluate": None}):
        assert read_messages([item]) == (Message(role="user", text="Rain in Oslo?"), answer)
    assert read_messages([{**turn, "tools_called": None}])[1] == said("No.")


def test_items_of_the_responses_api() -> None:
    assert read_messages(RESPONSES) == (*TALK[:2], said("I look."), CALLS, *TALK[3:])


@pytest.mark.parametrize(
    ("conversation", "error", "message"),
    [
        ("Hello", TypeError, "messages must be a list of messages, not str"),
        ({"role": "user"}, TypeError, "messages must be a list of messages, not dict"),
        ("[{'role': 'user'}]", TypeError, "messages must be a list of messages, not str that is no JSON"),
        ('{"messages": "Hello"}', TypeError, "messages must be a list of messages, not str"),
        *(
            ([{"role": "user", "content": content}], TypeError, rf"\[0\].content is of type {kind}: give a text")
            for content, kind in [(5, "int"), (0.5, "float"), (b"Hi", "bytes"), (["Hi", True], "bool")]
        ),
        ([{"role": "ai", "message": "Hi"}], TypeError, r"\[0\] has no content, only the keys 'role', 'message': give"),
        ([{"type": "note", "content": "Hi"}], ValueError, r"\[0\] is of type 'note' and has no role: write one"),
        ([{"type": "message", "content": "Hi"}], TypeError, r"messages\[0\] has no role"),
        ([{"type": "ai", "invalid_tool_calls": [{"name": "f", "args": "Hi{"}]}], ValueError, "are not JSON: 'Hi{'"),
        (None, TypeError, "not NoneType"),
        (["Hello"], TypeError, r"messages\[0\] is of type str: give a message with role and content"),
        ([CHAT[0], {"content": "Hi"}], TypeError, r"messages\[1\] has no role"),
        ([{"type": ["x"], "content": "Hi"}], TypeError, r"messages\[0\] has no role"),
        ([CHAT[0], {"role": "critic"}], ValueError, r"\[1\] has the role 'critic': write one of system, user, assist"),
        ([{"role": "assistant", "tool_calls": [{}]}], TypeError, r"messages\[0\].tool_calls\[0\] has no name"),
        *(
            ([{"type": "function_call", "name": "f", "arguments": arguments}], ValueError, rf"messages\[0\]: .*{fault}")
            for arguments, fault in [
                ("{", "not JSON: '{'"),
                ("[1]", "a JSON object, not list"),
                ("[" * 100_000, "JSON"),
            ]
        ),
    ],
)
def test_what_is_no_conversation(conversation: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_messages(conversation)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"name": "stop"}, {}),
        ({"name": "stop", "arguments": ""}, {}),
        ({"name": "stop", "arguments": None}, {}),
        ({"name": "stop", "arguments": "null"}, {}),
        ({"name": "stop", "input_parameters": {"now": True}}, {"now": True}),
        (Called("stop", {"now": True}), {"now": True}),
        ({"type": "custom_tool_call", "name": "stop", "input": "at once"}, {"input": "at once"}),
        ({"type": "custom", "custom": {"name": "stop", "input": "at once"}}, {"input": "at once"}),
    ],
)
def test_a_call_in_every_form(call: Any, expected: dict[str, Any]) -> None:
    assert read_tool_calls([call]) == (ToolCall(name="stop", arguments=expected),)
    for lone in ("stop", {"name": "stop"}, 7):
        with pytest.raises(TypeError, match="expected must be a list of tool calls"):
            read_tool_calls(lone, name="expected")


#: A conversation, the fields given beside it, and the question and the response of the sample.
IN_FIELDS: list[tuple[Any, dict[str, str], str | None, str | None]] = [
    (CHAT, {}, "Rain in Oslo?", "No rain."),
    *((talk, {}, "Rain in Oslo?", "No rain.") for talk in (RESPONSES, ANTHROPIC, OBJECTS, TALK)),
    (np.array(TALK, dtype=object), {}, "Rain in Oslo?", "No rain."),
    (CHAT[:2], {}, "Rain in Oslo?", None),
    # a tool that is called or answers is no response
    (TALK[:3], {"response": "Dry."}, "Rain in Oslo?", "Dry."),
    (TALK[:4], {}, "Rain in Oslo?", None),
    ([*TALK[:2], CALLS], {}, "Rain in Oslo?", None),
    ([*TALK[:2], said(" ")], {}, "Rain in Oslo?", None),
    ([*TALK, TALK[1]], {}, "Rain in Oslo?", None),
    # the question came after the messages, and so did its answer
    (TALK, {"user_input": "And then?"}, "And then?", None),
    *((TALK, {"user_input": text}, text, "No rain.") for text in ("Rain in Oslo?", " Rain in Oslo?\n")),
    (TALK, {"response": "Sun."}, "Rain in Oslo?", "Sun."),
    (TALK[4:], {}, None, "No rain."),
    (TALK[4:], {"user_input": "Rain in Oslo?"}, "Rain in Oslo?", None),
    ([], {}, None, None),
]


@pytest.mark.parametrize(("talk", "given", "asked", "answered"), IN_FIELDS)
def test_the_question_and_the_answer(talk: Any, given: dict[str, str], asked: str | None, answered: str | None) -> None:
    rows: list[dict[str, Any]] = [{"messages": talk, **given}, {"metadata": {"messages": talk}, **given}]
    rows += [] if "user_input" in given else [{"user_input": talk, **given}, {"question": talk, **given}]
    for row in rows:
        sample = Sample.from_mapping(row)
        assert (sample.user_input, sample.response) == (asked, answered)
        assert read_messages(sample.metadata["messages"]) == read_messages(talk)
    assert Sample(**rows[1]) == Sample.from_mapping(rows[1])


@pytest.mark.parametrize("name", ["user_input", "question", "input"])
def test_a_conversation_in_a_row(name: str) -> None:
    sample = Sample.from_mapping({name: [*CHAT, {"role": "user", "content": "Sure?"}], "reference": "Dry."})
    assert sample.user_input == "Sure?"
    assert sample.metadata["messages"][:5] == CHAT
    assert Sample.from_mapping({name: []}).user_input is None
    with pytest.raises(TypeError, match=r"user_input\[0\] is of type int"):
        Sample.from_mapping({name: [7]})


@pytest.mark.parametrize("name", ["turns", "history", "chat_history", "conversation", "conversation_history"])
def test_a_conversation_under_another_name(name: str) -> None:
    for talk in (TALK, OBJECTS, json.dumps(CHAT), {"messages": CHAT}):
        sample = Sample.from_mapping({name: talk, "question": "And then?", "answer": "Sun."})
        assert (sample.user_input, sample.response, [*sample.metadata]) == ("And then?", "Sun.", ["messages"])
        assert read_messages(sample.metadata["messages"]) == TALK
    assert Sample.from_mapping({name: iter(CHAT)}).response == "No rain."
    others: list[Any] = [3, "a note", [], None]
    for other in others:
        assert Sample.from_mapping({name: other}).metadata == {name: other}
    assert Sample.from_mapping({name: CHAT, "messages": [CHAT[1]]}).metadata == {name: CHAT, "messages": [CHAT[1]]}
    with pytest.raises(TypeError, match=r"messages\[0\] is of type str"):
        read_messages(Sample.from_mapping({name: ["Hi"]}).metadata["messages"])


SPOKEN = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No."}]


@pytest.mark.parametrize(
    ("asked", "is_read"),
    [
        (json.dumps(SPOKEN), True),
        (" \n" + json.dumps(SPOKEN, indent=2), True),
        (json.dumps([{"type": "human", "content": "Rain?"}, {"type": "ai", "content": "No."}]), True),
        (json.dumps([{"role": who, "parts": [{"text": it}]} for who, it in (("user", "Rain?"), ("ai", "No."))]), True),
        (json.dumps([*SPOKEN[:1], {"role": "assistant", "tool_calls": [{"name": "sky"}]}, *SPOKEN[1:]]), True),
        *((json.dumps(other), False) for other in (SPOKEN[1:], {"messages": SPOKEN}, [*SPOKEN, "Rain?"])),
        *((json.dumps([{"role": role, "content": "Rain?"}]), False) for role in ("clerk", None)),
        *((json.dumps([other]), False) for other in ({"role": "user"}, {"type": "city", "text": "Oslo"})),
        *((json.dumps([other]), False) for other in ({"role": "user", "content": " "}, {"content": "Rain?"})),
        *((text, False) for text in (json.dumps(SPOKEN)[:-1], "[]", "[1, 2] is a list?", "[" * 100_000)),
        ("Rain? " + json.dumps(SPOKEN), False),
    ],
)
def test_a_question_that_is_json_text_of_a_conversation(asked: str, is_read: bool) -> None:
    for sample in (Sample(user_input=asked), Sample.from_mapping({"question": asked})):
        found = (sample.user_input, sample.response, "messages" in sample.metadata)
        assert found == (("Rain?", "No.", True) if is_read else (asked, None, False))


def test_an_iterator_of_messages_is_read_once() -> None:
    assert Sample(metadata={"messages": iter(CHAT)}).metadata["messages"] == CHAT
    assert Sample(metadata={"messages": iter([7])}).metadata["messages"] == [7]
