"""Spans of traces as a data set: a row for each trace, whatever wrote them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.files import packaged_text
from pytest_ragmetrics.core.sample import FIGURES, Sample
from pytest_ragmetrics.datasets import DatasetRow, read_dataset
from pytest_ragmetrics.datasets.rows import Columns
from pytest_ragmetrics.datasets.streaming import stream_rows
from pytest_ragmetrics.metrics import Cost, ToolCallAccuracy
from tests.spans import Fields, otlp, parts, span

QUESTION, ANSWER, INSTRUCTION = "Wie lange braucht die 給水ポンプ?", "Zwei Minuten.", "Antworte kurz."
TEXTS = ("Die Pumpe braucht zwei Minuten.", "Erst das Ventil öffnen.")
CALL = {"name": "weather", "args": {"city": "Oslo"}}
TALK = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": QUESTION}]
STEPS = [
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "name": "weather", "content": "rain"},
    {"role": "assistant", "content": ANSWER},
]


def gen_ai(write: Callable[[Any], Any], *, chat: Fields | None = None, **more: Any) -> list[Fields]:
    """Return the spans of an agent behind a web server, in the order in which they end."""
    name, tool = "gen_ai.operation.name", "gen_ai.tool"
    documents = [{"id": id, "score": 0.9, "content": text} for id, text in zip(("p7", "p9"), TEXTS, strict=True)]
    call = {f"{tool}.name": "weather", f"{tool}.call.arguments": write({"city": "Oslo"}), f"{tool}.call.result": "rain"}
    talk = {
        "gen_ai.input.messages": write([parts("system", INSTRUCTION), parts("user", QUESTION)]),
        "gen_ai.output.messages": write([{**parts("assistant", ANSWER), "finish_reason": "stop"}]),
    }
    return [
        span("r", "a", 2, attributes={name: "retrieval", "gen_ai.retrieval.documents": write(documents)}),
        span("e", "r", 2, attributes={name: "embeddings", "input.value": "Pumpe", "output.value": "[0.1]"}),
        span("x", "a", 4, "execute_tool weather", attributes={name: "execute_tool", **call}),
        span("c", "a", 5, attributes={name: "chat", **(talk if chat is None else chat)}, **more),
        span("a", "h", 1, attributes={name: "invoke_agent", "gen_ai.conversation.id": "s1", "user.id": "u1"}),
        span("h", "elsewhere", 0, "POST /chat", attributes={"http.route": "/chat", "tag.tags": ["beta"]}),
    ]


EVENTS = [
    {"name": "gen_ai.system.message", "attributes": {"content": INSTRUCTION}},
    {"name": "gen_ai.user.message", "attributes": {"gen_ai.event.content": json.dumps({"content": QUESTION})}},
    {"name": "gen_ai.choice", "attributes": {"index": 0, "message": json.dumps({"content": ANSWER})}},
    {"name": "exception", "attributes": {"exception.message": "none of it"}},
]
OLD_EVENTS = [
    {"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": json.dumps(TALK)}},
    {"name": "gen_ai.content.completion", "attributes": {"gen_ai.completion": json.dumps([STEPS[-1]])}},
]
STRANDS = [
    EVENTS[0],
    {"name": "gen_ai.user.message", "attributes": {"content": json.dumps([{"text": QUESTION}])}},
    {"name": "gen_ai.choice", "attributes": {"message": json.dumps([{"text": ANSWER}]), "finish_reason": "end"}},
]
OPENLLMETRY = {
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": INSTRUCTION,
    "llm.request.type": "chat",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": json.dumps([{"type": "text", "text": QUESTION}]),
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": ANSWER,
}
VERCEL = {"ai.prompt": json.dumps({"messages": TALK}), "ai.response.text": ANSWER}
PYDANTIC_AI = {
    "pydantic_ai.all_messages": json.dumps([parts("system", INSTRUCTION), parts("user", QUESTION)]),
    "final_result": ANSWER,
}


def sdk(spans: Sequence[Fields]) -> list[Fields]:
    """Return spans as ``ReadableSpan.to_json`` of OpenTelemetry's SDK for Python has them."""
    return [
        {
            "name": each["name"],
            "context": {"trace_id": each["traceId"], "span_id": each["spanId"], "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": each.get("parentSpanId"),
            "start_time": f"2026-10-01T12:00:0{each['startTimeUnixNano'][-1]}.5Z",
            "attributes": each["attributes"],
            "events": [],
        }
        for each in spans
    ]


def phoenix(*, message: Callable[[int, Fields], Fields], document: Callable[[int, Fields], Fields]) -> list[Fields]:
    """Return spans of OpenInference, with messages and documents as each export of Phoenix writes them."""
    kind, tool = "openinference.span.kind", {"tool.name": "weather", "input.value": '{"city": "Oslo"}'}
    documents: Fields = {}
    for n, (id, text) in enumerate(zip(("p7", "p9"), TEXTS, strict=True)):
        documents = merged(documents, document(n, {"id": id, "content": text, "score": 0.9}))
    talk: Fields = {}
    for n, said in enumerate(TALK):
        talk = merged(talk, message(n, said))
    values = {"input.value": QUESTION, "output.value": json.dumps({"answer": ANSWER})}
    rows = [
        ("r", "a", 2, {kind: "RETRIEVER", "input.value": "Pumpe", **documents}),
        ("x", "a", 4, {kind: "TOOL", **tool, "output.value": "rain"}),
        ("c", "a", 5, {kind: "LLM", **talk, "output.value": '{"choices": []}'}),
        ("j", "v", 7, {kind: "LLM", "input.value": "Is it right?", "output.value": "Yes."}),
        ("v", "a", 6, {kind: "EVALUATOR", "output.value": "1.0"}),
        ("a", None, 1, {kind: "CHAIN", **values, "session.id": "s1", "user.id": "u1", "tag.tags": ["beta"]}),
    ]
    return sdk([span(id, parent, time, attributes=attributes) for id, parent, time, attributes in rows])


def merged(one: Fields, other: Fields) -> Fields:
    """Return two mappings as one, with their lists one behind the other and mappings in them merged."""
    found = {**one, **other}
    for name in one.keys() & other.keys():
        is_list = isinstance(one[name], list)
        found[name] = [*one[name], *other[name]] if is_list else merged(one[name], other[name])
    return found


def flat(prefix: str, layer: str) -> Callable[[int, Fields], Fields]:
    return lambda n, fields: {f"{prefix}.{n}.{layer}.{name}": value for name, value in fields.items()}


def listed(prefix: str, layer: str) -> Callable[[int, Fields], Fields]:
    return lambda n, fields: {prefix: [{f"{layer}.{name}": value for name, value in fields.items()}]}


def nested(outer: str, inner: str, layer: str) -> Callable[[int, Fields], Fields]:
    return lambda n, fields: {outer: {inner: [{layer: fields}]}}


FLAT = phoenix(message=flat("llm.input_messages", "message"), document=flat("retrieval.documents", "document"))
COLUMNS = [
    {
        **{f"context.{name}": value for name, value in each["context"].items()},
        "parent_id": each["parent_id"],
        "start_time": each["start_time"],
        "name": each["name"],
        **{f"attributes.{name}": value for name, value in each["attributes"].items()},
    }
    for each in phoenix(
        message=listed("llm.input_messages", "message"), document=listed("retrieval.documents", "document")
    )
]
NESTED = phoenix(
    message=nested("llm", "input_messages", "message"), document=nested("retrieval", "documents", "document")
)


def langfuse(write: Callable[[Any], Any]) -> list[Fields]:
    """Return observations of Langfuse, with the names that its interface has."""
    documents = [{"page_content": text, "metadata": {"id": id}} for id, text in zip(("p7", "p9"), TEXTS, strict=True)]
    rows = [
        ("r", "a", 2, "RETRIEVER", "Pumpe", documents),
        ("x", "a", 4, "TOOL", CALL["args"], "rain"),
        ("c", "a", 5, "GENERATION", TALK, {"role": "assistant", "content": ANSWER}),
        ("a", None, 1, "SPAN", {"question": QUESTION}, {"answer": ANSWER, "time": 3}),
    ]
    return [
        {
            "id": id,
            "traceId": "7c",
            "parentObservationId": parent,
            "type": kind,
            "name": "weather",
            "startTime": f"2026-10-01 12:00:0{time}.123000",
            "input": write(asked),
            "output": write(said),
            "metadata": {},
            "sessionId": "s1",
            "userId": "u1",
            "tags": ["beta"],
        }
        for id, parent, time, kind, asked, said in rows
    ]


def snake(observation: Fields) -> Fields:
    names = {"traceId": "trace_id", "parentObservationId": "parent_observation_id", "startTime": "start_time"}
    names.update(sessionId="session_id", userId="user_id")
    return {names.get(name, name): value for name, value in observation.items()}


BARE = [{n: v for n, v in it.items() if n not in ("sessionId", "userId")} for it in langfuse(lambda v: v)]
WHOLE = {"id": "7c", "timestamp": "2026-10-01 12:00:00", "input": {"question": QUESTION}, "output": {"answer": ANSWER}}
OF_SESSION = {"sessionId": "s1", "userId": "u1", "tags": ["beta"]}

SHAPES: dict[str, Any] = {
    "gen_ai, JSON": [otlp(*gen_ai(json.dumps))],
    "gen_ai, values": [otlp(*gen_ai(lambda value: value))],
    "a document a span, backwards": [otlp(each) for each in reversed(gen_ai(json.dumps))],
    "exported twice": [otlp(*gen_ai(json.dumps)), otlp(*gen_ai(json.dumps))],
    "snake case": [json.loads(json.dumps(otlp(*gen_ai(json.dumps))).replace("scopeSpans", "scope_spans"))],
    "events": [otlp(*gen_ai(json.dumps, chat={}, events=EVENTS))],
    "events of 2024": [otlp(*gen_ai(json.dumps, chat={}, events=OLD_EVENTS))],
    "Strands": [otlp(*gen_ai(json.dumps, chat={}, events=STRANDS))],
    "OpenLLMetry": [otlp(*gen_ai(json.dumps, chat=OPENLLMETRY))],
    "Vercel": [otlp(*gen_ai(json.dumps, chat=VERCEL))],
    "Pydantic AI": [otlp(*gen_ai(json.dumps, chat=PYDANTIC_AI))],
    "SDK": sdk(gen_ai(json.dumps)),
    "Phoenix, REST": FLAT,
    "Phoenix, columns": COLUMNS,
    "Phoenix, nested": NESTED,
    "Langfuse": langfuse(lambda value: value),
    "Langfuse, blob storage": [*map(snake, langfuse(lambda v: v if isinstance(v, str) else json.dumps(v)))],
    "Langfuse, trace": [{"trace": {**WHOLE, **OF_SESSION}, "observations": BARE}],
    "Langfuse, trace of the interface": [{**WHOLE, **OF_SESSION, "observations": langfuse(lambda value: value)}],
}


def lines(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def sample(row: DatasetRow) -> Sample:
    assert row.sample is not None, row.error
    return row.sample


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trace_is_a_row(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(SHAPES[shape]), "utf-8")
    (row,) = read_dataset("traces.jsonl", base=tmp_path)
    found = sample(row)
    assert (row.id, row.line, found.user_input, found.response) == ("7c", 1, QUESTION, ANSWER)
    assert (found.retrieved_contexts, found.retrieved_context_ids) == (TEXTS, ("p7", "p9"))
    assert found.metadata["tool_calls"] == [CALL]
    assert found.metadata["messages"] == [*TALK, *STEPS]
    assert {"session": "s1", "user": "u1", "tags": ["beta"], "cluster": "s1"}.items() <= found.metadata.items()
    (logged,) = stream_rows([path])
    assert logged.sample == found
    assert ToolCallAccuracy().score_sample(Sample(metadata={**found.metadata, "expected_tools": [CALL]})).value == 1.0


def timed(id: str, parent: str | None, start: int, end: int | None, **attributes: Any) -> Fields:
    """Return a span of OTLP that began and ended at so many milliseconds."""
    ends = {} if end is None else {"endTimeUnixNano": str(1_700_000_000_000_000_000 + end * 10**6)}
    return span(id, parent, start * 10**6, attributes=attributes, **ends)


AGENT = {"gen_ai.operation.name": "invoke_agent", "input.value": QUESTION, "output.value": ANSWER}
CHAT: Fields = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-5.4-mini"}
CHAT |= {"gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 40}
MINI = {"model": "gpt-5.4-mini", "prompt_tokens": 900, "completion_tokens": 40}
OF_LANGFUSE: Fields = {"id": "c", "traceId": "7c", "type": "GENERATION", "model": "mine"}
OF_LANGFUSE |= {"input": QUESTION, "output": ANSWER}
OF_LANGFUSE |= {"startTime": "2026-10-01T09:00:00.25Z", "endTime": "2026-10-01T09:00:02Z", "totalCost": 0.0031}
OF_LANGFUSE |= {"completionStartTime": "2026-10-01T09:00:00.75Z", "usageDetails": {"input": 900, "output": 40}}
BILLED = {**MINI, "model": "mine", "cost": 0.0031}
OF_PHOENIX: Fields = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5.4-mini", "llm.token_count.prompt": 900}
OF_PHOENIX |= {"llm.token_count.completion": 40, "input.value": QUESTION, "output.value": ANSWER}


@pytest.mark.parametrize(
    ("spans", "took"),
    [
        (
            [otlp(timed("a", None, 0, 1840, **AGENT), timed("c", "a", 9, 1700, **CHAT))],
            {"latency": 1.84, "usage": [MINI]},
        ),
        # A model inside of a model is the same request; what evaluates the answer afterwards is not of it.
        (
            [
                otlp(
                    timed("a", None, 0, 1500, **AGENT),
                    *(timed(id, parent, 9, 900, **CHAT) for id, parent in (("c", "a"), ("d", "c"), ("e", "a"))),
                    timed("g", None, 1500, 9000, **{"openinference.span.kind": "EVALUATOR"}),
                )
            ],
            {"latency": 1.5, "usage": [MINI, MINI]},
        ),
        ([otlp(timed("a", None, 0, None, **AGENT))], {}),
        # Of a request without tokens nothing is known of the cost of the whole.
        ([otlp(timed("a", None, 5, 4, **AGENT), timed("c", "a", 1, 2, **{"gen_ai.operation.name": "chat"}))], {}),
        ([OF_LANGFUSE], {"latency": 1.75, "first_token": 0.5, "usage": [BILLED]}),
        (
            [{"id": "7c", "timestamp": "2026-10-01T09:00:00Z", "output": ANSWER, "observations": [OF_LANGFUSE]}],
            {"latency": 2.0, "first_token": 0.75, "usage": [BILLED]},
        ),
        (
            [
                {
                    "context": {"trace_id": "7c", "span_id": "a"},
                    "start_time": "2026-10-01T09:00:00+00:00",
                    "end_time": "2026-10-01T09:00:00.5+00:00",
                    "attributes": OF_PHOENIX,
                }
            ],
            {"latency": 0.5, "usage": [MINI]},
        ),
    ],
)
def test_a_trace_says_what_its_answer_took(tmp_path: Path, spans: Sequence[Fields], took: Fields) -> None:
    (tmp_path / "traces.jsonl").write_text(lines(spans), "utf-8")
    (row,) = read_dataset("traces.jsonl", base=tmp_path)
    found = sample(row)
    assert {name: found.metadata[name] for name in FIGURES if name in found.metadata} == took
    if "usage" in took:
        assert Cost().score_sample(found).value > 0


SPANS = gen_ai(json.dumps)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("traces.json", json.dumps(otlp(*SPANS), indent=1)),
        ("traces.json", lines([otlp(each) for each in SPANS])),
        ("traces.json", "\n".join(json.dumps(each, indent=4) for each in sdk(SPANS))),  # as on the console
        ("traces.json", json.dumps(FLAT)),
        ("traces.json", json.dumps({"data": FLAT, "next_cursor": None})),
        ("traces.json", json.dumps({"trace": WHOLE, "observations": BARE})),
        ("traces.ndjson.gz", lines([otlp(*SPANS)])),
        ("traces.json.gz", lines([otlp(*SPANS)])),
    ],
)
def test_files_of_spans(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert [sample(row).response for row in read_dataset(name, base=tmp_path)] == [ANSWER]
    assert [row.sample and row.sample.response for row in stream_rows([path])] == [ANSWER]


def test_spans_in_memory() -> None:
    pandas = pytest.importorskip("pandas")
    for source in (otlp(*SPANS), FLAT, [otlp(*SPANS)], {"data": FLAT}, pandas.DataFrame(COLUMNS)):
        assert [sample(row).response for row in read_dataset(source, base=Path())] == [ANSWER]


def read(*rows: Any) -> tuple[DatasetRow, ...]:
    return read_dataset(list(rows), base=Path())


def chat(id: str, parent: str | None, time: int, asked: Any, said: Any, **more: Any) -> Fields:
    values = {"gen_ai.operation.name": "chat", "input.value": asked, "output.value": said}
    return span(id, parent, time, attributes={name: it for name, it in values.items() if it is not None}, **more)


def tool(id: str, parent: str | None, time: int, name: str, asked: Any = None, said: Any = None) -> Fields:
    values = {"gen_ai.operation.name": "execute_tool", "input.value": asked, "output.value": said}
    return span(id, parent, time, f"execute_tool {name}", attributes={k: v for k, v in values.items() if v is not None})


LOOP = [
    [{"role": "user", "content": "Rain?"}],
    [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "weather", "arguments": '{"day": 1}'}}]},
        {"role": "tool", "tool_call_id": "1", "content": "dry"},
    ],
]
EARLIER = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": [{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {}}]},
]
LANGCHAIN = [
    {"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Why?"}},
    {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": "So."}},
]
CASES: dict[str, tuple[list[Fields], Fields]] = {
    "the outermost text counts": (
        [chat("b", "a", 2, "Rewrite: Why?", "Why so?"), chat("a", None, 1, "Why?", "So."), chat("c", "a", 3, "x", "y")],
        {"user_input": "Why?", "response": "So."},
    ),
    "siblings: the first question, the last answer": (
        [chat("b", None, 3, "Second", "Two"), chat("a", None, 2, "First", "One")],
        {"user_input": "First", "response": "Two"},
    ),
    "a circle": (
        [chat("a", "b", 1, "Why?", None), chat("b", "a", 2, None, "So."), chat("c", "c", 3, None, None)],
        {"user_input": "Why?", "response": "So."},
    ),
    "no ids": (
        [{**chat("", None, 1, "Why?", None), "spanId": None}, {**chat("", None, 2, None, "So."), "spanId": None}],
        {"user_input": "Why?", "response": "So."},
    ),
    "data counts after text": (
        [chat("a", None, 1, '{"day": 1}', '{"status": 200}'), chat("b", "a", 2, "Why?", "So.")],
        {"user_input": "Why?", "response": "So."},
    ),
    "data alone": (
        [chat("a", None, 1, {"day": 1}, '{"rain": true}')],
        {"user_input": '{"day": 1}', "response": '{"rain": true}'},
    ),
    "arguments of a function": (
        [chat("a", None, 1, '{"args": [], "kwargs": {"query": "Why?"}}', '{"result": {"text": "So."}}')],
        {"user_input": "Why?", "response": "So."},
    ),
    "messages of LangChain": (
        [chat("a", None, 1, json.dumps({"messages": [LANGCHAIN[:1]]}), json.dumps({"messages": LANGCHAIN}))],
        {"user_input": "Why?", "response": "So."},
    ),
    "a text that looks like JSON": (
        [chat("a", None, 1, "[1] Moths fly?", "{yes}")],
        {"user_input": "[1] Moths fly?", "response": "{yes}"},
    ),
    "messages of which one cannot be read": (
        [chat("a", None, 1, [{"role": "clerk", "content": "x"}, 5, {"role": "user", "content": "Why?"}], "So.")],
        {"user_input": "Why?", "response": "So."},
    ),
    "tools called by the model alone": (
        [chat("a", None, 1, LOOP[0], None), chat("c", None, 3, LOOP[1], "No."), chat("b", None, 2, LOOP[1], None)],
        {"user_input": "Rain?", "response": "No.", "tool_calls": [{"id": "1", "name": "weather", "args": {"day": 1}}]},
    ),
    "earlier turns, a picture": (
        [chat("a", None, 1, EARLIER, "Yes.")],
        {
            "user_input": "And this?",
            "messages": [
                *EARLIER[:2],
                {"role": "user", "content": "And this?"},
                {"role": "assistant", "content": "Yes."},
            ],
        },
    ),
    "a call traced on both sides": (
        [chat("a", None, 1, "Why?", "So."), tool("x", "a", 2, "find", "pump", 7), tool("y", "x", 3, "find", "pump", 7)],
        {"tool_calls": [{"name": "find", "args": {"input": "pump"}}]},
    ),
    "a tool that returns documents, and others": (
        [
            chat("a", None, 1, "Why?", "So."),
            tool("x", "a", 2, "find", None, [{"text": "It is so.", "id": 3, "url": "/3"}]),
            tool("y", "a", 3, "names", None, ["Ann", "Bob"]),
            tool("z", "a", 4, "none"),
        ],
        {"retrieved_contexts": ("It is so.",), "retrieved_context_ids": (3,)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_trace_says(case: str) -> None:
    spans, wanted = CASES[case]
    (row,) = read(otlp(*(spans)))
    found = {**sample(row).metadata, **sample(row).to_mapping()}
    assert {
        name: tuple(it) if "contexts" in name or "ids" in name else it for name, it in found.items() if name in wanted
    } == wanted


def retriever(id: str, time: int, kind: str, documents: Any) -> Fields:
    return span(id, "a", time, attributes={"openinference.span.kind": kind, "output.value": documents})


@pytest.mark.parametrize(
    ("spans", "contexts", "ids"),
    [
        ([retriever("r", 1, "RETRIEVER", "One.")], ["One."], None),
        ([retriever("r", 1, "RETRIEVER", "[]")], [], None),
        ([retriever("r", 1, "RETRIEVER", '{"documents": ["One.", "Two."]}')], ["One.", "Two."], None),
        ([retriever("r", 1, "RETRIEVER", '[{"id": "a", "score": 1}, {"id": true}]')], None, ["a"]),
        ([retriever("r", 1, "RETRIEVER", '{"found": 3}')], None, None),
        (
            [retriever("s", 2, "RETRIEVER", [{"id": "a", "text": "One."}]), retriever("r", 1, "RETRIEVER", ["One."])],
            ["One."],
            ["a"],
        ),
        (
            [retriever("r", 1, "RETRIEVER", ["One.", "Two."]), retriever("s", 2, "RERANKER", ["Two."])],
            ["Two."],
            None,
        ),
    ],
)
def test_what_was_retrieved(spans: list[Fields], contexts: list[str] | None, ids: list[str] | None) -> None:
    (row,) = read(otlp(chat("a", None, 0, "Why?", "So."), *spans))
    found = sample(row).to_mapping()
    assert (found.get("retrieved_contexts"), found.get("retrieved_context_ids")) == (contexts, ids)


HEALTH = span("h", None, 1, "GET /health", trace="aa")
DEEP: Any = "x"
for _ in range(20_000):
    DEEP = {"arrayValue": {"values": [DEEP]}}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([otlp(chat("a", None, 1, "Why?", None), HEALTH)], "row 7c: the trace has no answer: no span of a model"),
        ([otlp(chat("a", None, 1, None, None))], "row 7c: the trace has no answer"),
        ([otlp(chat("a", None, 1, "Why?", " "))], "row 7c: the trace has no answer"),
        ([otlp(HEALTH)], "no trace has a span of a model, an agent or a retriever"),
        ([{"traceId": [7], "spanId": "a", "attributes": {}}], "the trace id of a span is a text, not list"),
        (
            [otlp({**HEALTH, "traceId": "7c"}), span("b", None, 1, attributes=[{"key": "input", "value": DEEP}])],
            "row 7c: a span of the trace is nested too deeply",
        ),
    ],
)
def test_traces_without_an_answer(rows: list[Any], reason: str) -> None:
    (row,) = read(*rows)
    assert row.sample is None
    assert reason in str(row.error)


def test_broken_lines_and_other_rows_among_spans(tmp_path: Path) -> None:
    rows = ["{", json.dumps(otlp(*SPANS[:2])), "5", json.dumps({"question": "Why?"}), json.dumps(otlp(*SPANS[2:]))]
    (tmp_path / "traces.jsonl").write_text("\n".join(rows), "utf-8")
    found = read_dataset("traces.jsonl", base=tmp_path)
    assert [(row.line, row.error is None) for row in found] == [(1, False), (3, False), (4, True), (2, True)]
    assert sample(found[3]).response == ANSWER


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Why?", "answer": "So.", "traceId": "7c", "spanId": "a", "name": "chat"},
        {"input": "Why?", "actual_output": "So.", "trace_id": "7c", "span_id": "a", "start_time": "2026-10-01"},
        {"input": "Why?", "context": ["So."], "trace_id": "7c", "span_id": "a", "type": "GENERATION", "timestamp": 3},
        {"input": "Why?", "type": "generation", "trace_id": "7c"},
        {"input": "Why?", "observations": ["wet"], "trace_id": "7c"},
    ],
)
def test_rows_with_the_id_of_a_trace_are_no_spans(row: Fields) -> None:
    (found,) = read(row)
    assert sample(found).user_input == "Why?"
    assert sample(found).metadata["trace_id" if "trace_id" in row else "traceId"] == "7c"


def test_columns_are_not_those_of_spans() -> None:
    with pytest.raises(DatasetError, match="columns names 'ask', which no row has; there are"):
        read_dataset(FLAT, base=Path(), columns=Columns.of({"question": "ask"}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("role", "content", "parts", "type", "text", "message", "id", "0", "")), inner
        )
    ),
    max_leaves=5,
)
FIELDS = ("name", "parentSpanId", "startTimeUnixNano", "events", "context", "type", "input", "output", "tags")
ATTRIBUTES = [name for names in json.loads(packaged_text("datasets/spans.json"))["names"].values() for name in names]
ATTRIBUTES += ["llm.input_messages.0.message", "gen_ai.prompt.0.tool_calls.0.name", "retrieval.documents.7.document.id"]


@given(
    st.lists(
        st.builds(
            lambda fields, attributes: {**fields, "traceId": "7c", "attributes": attributes},
            st.dictionaries(st.sampled_from((*FIELDS, "spanId")), JSON),
            JSON | st.dictionaries(st.sampled_from(ATTRIBUTES), JSON | JSON.map(json.dumps)),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_spans_of_any_values_are_rows(spans: list[Fields]) -> None:
    rows = [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]
    assert all(row.sample is not None or row.error is not None for row in read(*rows, *spans))
