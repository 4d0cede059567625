"""Spans as the collector of OpenTelemetry writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Fields = dict[str, Any]


def any_value(value: object) -> Fields:
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": key_values(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    return {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}


def key_values(values: Mapping[str, Any]) -> list[Fields]:
    return [{"key": name, "value": any_value(value)} for name, value in values.items()]


def otlp(*spans: Fields) -> Fields:
    """Return spans as the collector writes them; their attributes are given as a mapping."""
    written = [
        {
            **span,
            "attributes": key_values(span["attributes"]),
            "events": [{**event, "attributes": key_values(event["attributes"])} for event in span.get("events", ())],
        }
        for span in spans
    ]
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": written}]}]}


def span(id: str, parent: str | None, time: int, name: str = "", trace: str = "7c", **more: Any) -> Fields:
    found = {"traceId": trace, "spanId": id, "name": name, "startTimeUnixNano": str(1_700_000_000_000_000_000 + time)}
    return {**found, **({"parentSpanId": parent} if parent else {}), "attributes": {}, **more}


def parts(role: str, text: str) -> Fields:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def chat_trace(id: str, question: str, answer: str | None, passage: str) -> Fields:
    """Return the spans of a retriever and of a model that asked and answered; ``None`` was not recorded."""
    said = {} if answer is None else {"gen_ai.output.messages": json.dumps([parts("assistant", answer)])}
    talk = {"gen_ai.input.messages": json.dumps([parts("user", question)]), **said}
    documents = {"gen_ai.retrieval.documents": json.dumps([{"id": "p1", "content": passage}])}
    return otlp(
        span("r", "c", 2, trace=id, attributes={"gen_ai.operation.name": "retrieval", **documents}),
        span("c", None, 1, trace=id, attributes={"gen_ai.operation.name": "chat", **talk}),
    )
