"""Rows from traces: one for each, of what its spans say was asked, retrieved, called and answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pytest_ragmetrics.datasets.rows import Raw, RowError
from pytest_ragmetrics.datasets.spans import (
    Said,
    Span,
    Talk,
    id_of,
    is_trace,
    read_span,
    seconds_between,
    spans_of,
    value_of,
)

# How many broken rows are read to find the first that is none.
_FIRST = 256
_NO_ANSWER = (
    "the trace has no answer: no span of a model or an agent has a text as gen_ai.output.messages, output.value or "
    "output. Instrumentations of OpenTelemetry write texts only where "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is SPAN_ONLY, older ones where it is true"
)
_NO_TRACE = "no trace has a span of a model, an agent or a retriever, or one with an input and an output"


@dataclass(kw_only=True, slots=True)
class _Trace:
    line: int | None
    fault: str | None = None
    spans: dict[object, Span] = field(default_factory=dict)
    #: The earliest and the latest span with messages. Models are sent all earlier ones: those between need no place.
    talks: list[Span] = field(default_factory=list)

    def add(self, span: Span) -> None:
        """Add a span, unless it was exported twice."""
        if self.spans.setdefault(object() if span.id is None else span.id, span) is not span or not span.talk:
            return
        self.talks = sorted([*self.talks, span], key=lambda span: span.time)
        for between in self.talks[1:-1]:
            between.talk = []
        del self.talks[1:-1]


def rows_of_traces(raws: Iterable[Raw]) -> Iterator[Raw]:
    """Yield a row for each trace where the first row that can be read is one of spans; any other rows as they are.

    The spans of a trace may be anywhere among the rows: all are read before the first trace is yielded. Traces come in
    the order of their first spans. Broken rows are yielded as they are, a trace without an answer as a broken row.
    Traces of which no span has to do with a model, a retriever or an agent are left out.
    """
    rows, head = iter(raws), list[Raw]()
    for raw in rows:
        head.append(raw)
        if raw.fault is None or len(head) == _FIRST:
            break
    if not head or not is_trace(head[-1].values):
        yield from chain(head, rows)
        return
    traces: dict[str, _Trace] = {}
    for raw in chain(head, rows):
        if raw.fault is not None or not isinstance(raw.values, Mapping) or not is_trace(raw.values):
            yield raw
        else:
            yield from _taken(raw.values, raw.line, traces)
    made = [row for id, trace in traces.items() if (row := _row(id, trace)) is not None]
    yield from made or ([Raw(line=head[-1].line, fault=RowError(_NO_TRACE), text=_NO_TRACE)] if traces else [])


def _taken(row: Mapping[str, Any], line: int | None, traces: dict[str, _Trace]) -> Iterator[Raw]:
    """Add the spans of a row to their traces, and yield a broken row for each that has none."""
    for fields in spans_of(row):
        id = id_of(given := value_of(fields, "trace"))
        if id is None:
            yield Raw(line=line, fault=RowError(f"the trace id of a span is a text, not {type(given).__name__}"))
            continue
        trace = traces.setdefault(id, _Trace(line=line))
        try:
            trace.add(read_span(fields))
        except RecursionError:
            trace.fault = "a span of the trace is nested too deeply"


def _row(id: str, trace: _Trace) -> Raw | None:
    """Return the row of a trace, ``None`` for one that has nothing to do with models."""
    spans = sorted(trace.spans.values(), key=lambda span: span.time)
    placed = [(depth, span) for depth, span in _by_depth(spans) if span.kind != "aside"]
    questions = _outermost((depth, span, span.question) for depth, span in placed)
    answers = _outermost((depth, span, span.answer) for depth, span in placed)
    values: dict[str, Any] = {"id": id, **({"user_input": questions[0]} if questions else {})}
    if trace.fault or not answers:
        is_known = any(span.kind in ("model", "agent", "retriever", "reranker") for _, span in placed)
        fault = RowError(trace.fault or _NO_ANSWER)
        return (
            Raw(values=values, line=trace.line, fault=fault, text=id) if trace.fault or questions or is_known else None
        )
    values["response"] = answers[-1]
    values.update(_retrieved([span for span in spans if span.kind != "aside"]))
    before, steps = _around_question(trace, spans, values.get("user_input"))
    if calls := [call for message in steps for call in message.get("tool_calls", ())]:
        values["tool_calls"] = calls
    if before or steps:
        asked = [{"role": "user", "content": text} for text in questions[:1]]
        values["messages"] = [*before, *asked, *steps, {"role": "assistant", "content": answers[-1]}]
    values.update(_took(placed))
    for span in reversed(spans):
        values.update(span.metadata)
    # Traces of one session depend on each other.
    return Raw(values={**values, **({"cluster": values["session"]} if "session" in values else {})}, line=trace.line)


def _took(placed: Sequence[tuple[int, Span]]) -> dict[str, Any]:
    """Return what an answer took: the time from the first to the last moment of the outermost spans, and the tokens.

    A model inside of a model is the same request.
    """
    outer, inner = ([span for depth, span in placed if bool(depth) is is_inner] for is_inner in (False, True))
    start = min((span.time for span in outer), default="")
    # A trace of Langfuse's has no end of its own.
    end = max((span.end for span in outer), default="") or max((span.end for span in inner), default="")
    first = max((span.first for span in (*outer, *inner)), default="")
    found = {"latency": seconds_between(start, end), "first_token": seconds_between(start, first)}
    models = {span.id for _, span in placed if span.kind == "model"}
    usage = [span.usage for _, span in placed if span.kind == "model" and span.parent not in models]
    took: dict[str, Any] = {name: round(it, 6) for name, it in found.items() if it is not None and it >= 0}
    return {**took, "usage": usage} if usage and all({"prompt_tokens", "cost"} & it.keys() for it in usage) else took


def _by_depth(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """Yield spans from the outermost on; those in a circle come last, and those inside of an aside are one too."""
    ids = {span.id for span in spans}
    children: defaultdict[str | None, list[Span]] = defaultdict(list)
    for span in spans:
        children[span.parent if span.parent in ids else None].append(span)
    depth, level = 0, children.pop(None, [])
    while level:
        inner: list[Span] = []
        for span in level:
            yield depth, span
            for child in children.pop(span.id, ()):
                child.kind = "aside" if span.kind == "aside" else child.kind
                inner.append(child)
        depth, level = depth + 1, inner
    yield from ((depth, span) for each in children.values() for span in each)


def _outermost(texts: Iterable[tuple[int, Span, Said | None]]) -> list[str]:
    """Return the texts of the outermost spans that have one, in order of time; of spans of a known kind, if any has."""
    found = [((said[0], depth, not span.kind), span.time, said[1]) for depth, span, said in texts if said is not None]
    least = min((rank for rank, _, _ in found), default=None)
    return [text for rank, _, text in sorted(found, key=lambda it: it[1]) if rank == least]


def _around_question(trace: _Trace, spans: Iterable[Span], question: str | None) -> tuple[Talk, Talk]:
    """Return the messages before the question, and the calls of tools and their results between it and the answer."""
    tools = [span for span in spans if span.kind == "tool"]
    # The span of a client is around that of the server for the same call.
    around = {span.id: span.name for span in tools}
    steps = [message for span in tools if around.get(span.parent) != span.name for message in span.steps]
    if not trace.talks:
        return [], steps
    first, last = trace.talks[0], trace.talks[-1]
    asked, latest = ([n for n, message in enumerate(it.talk) if message["role"] == "user"] for it in (first, last))
    is_asked = asked and first.question is not None and first.question[1] == question
    behind = last.talk[latest[-1] + 1 :] if latest and not steps else []
    return first.talk[: asked[-1]] if is_asked else [], steps or [it for it in behind if it["role"] != "system"]


def _retrieved(spans: Iterable[Span]) -> dict[str, Any]:
    """Return the contexts, only those ranked anew where any are; and the ids, where every document has one."""
    listed = [(span.kind, span.documents) for span in spans if span.documents is not None]
    passed = {"retriever"} if any(kind == "reranker" and documents for kind, documents in listed) else set()
    ids: dict[object, str | int | None] = {}
    texts: dict[str, None] = {}
    for id, text in (document for kind, documents in listed if kind not in passed for document in documents):
        key = (id, None) if text is None else text
        ids[key] = id if ids.get(key) is None else ids[key]
        texts.update({text: None} if text else {})
    # Documents of which only ids are written have texts that are not known.
    found: dict[str, Any] = {"retrieved_contexts": [*texts]} if texts or (listed and not ids) else {}
    return {**found, "retrieved_context_ids": [*ids.values()]} if ids and None not in ids.values() else found
