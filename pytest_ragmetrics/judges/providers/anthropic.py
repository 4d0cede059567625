"""Judges behind the Anthropic API, and its batches; needs ``pip install "pytest-ragmetrics[anthropic]"``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any, ClassVar

from pytest_ragmetrics.judges.batches.ledger import Batch
from pytest_ragmetrics.judges.batches.routes import BatchProgress, Bodies, Routes
from pytest_ragmetrics.judges.providers.connection import (
    SHARED_NAME,
    ApiJudge,
    counted_reply,
    field_of,
    parts,
    refused_parameter,
    token_count,
)
from pytest_ragmetrics.judges.providers.errors import Problem, cut, no_text, unlike
from pytest_ragmetrics.judges.providers.vendor import ANTHROPIC, Vendor
from pytest_ragmetrics.judges.transports.values import Reply, Request

#: The API requires a limit; no answer to a task of ours comes near it.
_MAX_TOKENS = 8192
#: Forces the form of the answer; a model that always thinks may refuse it, and then answers in text.
_TOOL = "tool_choice"
_MARK = "cache_control"
# How many tokens it caches at least, by what is in the name of the model.
_LEAST = (
    (re.compile(r"(?:haiku-4-5|opus-4-[56])\b"), 4096),
    (re.compile(r"(?:opus-4-7|sonnet-4-6)\b"), 2048),
    (re.compile(r"(?:opus-[5-9]|sonnet-5-[5-9]|haiku-5-[5-9]|(?:fable|mythos)-[5-9])\b"), 512),
    (re.compile(""), 1024),
)


class AnthropicJudge(ApiJudge[frozenset[str]]):
    """A model behind the Anthropic API, made to answer in the form of the schema by a tool it must call.

    ``api_key`` and ``base_url`` default to ``ANTHROPIC_API_KEY`` and ``ANTHROPIC_BASE_URL``; otherwise as
    :class:`OpenAIJudge`.

    >>> AnthropicJudge("claude-haiku-5-5").name
    'anthropic:claude-haiku-5-5'
    """

    kind: ClassVar[str] = "anthropic"
    vendor: ClassVar[Vendor] = ANTHROPIC
    #: What the model refuses.
    offer: ClassVar[frozenset[str]] = frozenset()
    needed: ClassVar[Mapping[str, Any]] = MappingProxyType({"max_tokens": _MAX_TOKENS})

    async def _send(self, client: Any, request: Request, terms: frozenset[str]) -> Any:
        return await client.post("/v1/messages", body=self._body(request, terms), cast_to=object)

    def _body(self, request: Request, terms: frozenset[str]) -> dict[str, Any]:
        body = {name: value for name, value in request.parameters.items() if name not in terms}
        if request.is_longer:
            body["max_tokens"] = 2 * body["max_tokens"]
        forced = _TOOL not in terms
        messages = request.messages if forced else request.spelled_out()
        turns: list[Any] = [message for message in messages if message["role"] != "system"]
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        body = {"model": request.model, "system": system, "messages": turns, **body}
        if forced:
            marks = request.marks() if _MARK not in terms else ()
            name, schema = (SHARED_NAME, request.shared_schema) if marks else (request.task, request.schema)
            body["tools"] = [{"name": name, "description": "Give the answer.", "input_schema": schema}]
            body[_TOOL] = {"type": "tool", "name": name}
            if marks:
                content = parts(turns[0]["content"], marks, {_MARK: {"type": "ephemeral"}})
                turns[0] = {"role": turns[0]["role"], "content": content}
        return body

    def _cached_from(self, terms: frozenset[str]) -> int | None:
        if terms & {_MARK, _TOOL}:
            return None
        return next(tokens for names, tokens in _LEAST if names.search(self.model))

    def _concede(self, terms: frozenset[str], request: Request, error: Any) -> frozenset[str] | None:
        droppable = {_TOOL, _MARK, *request.parameters} - terms - {"max_tokens"}
        name = refused_parameter(error, sorted(droppable))
        return None if name is None else terms | {name}

    def _problem(self, answer: object) -> Problem | None:
        blocks = field_of(answer, "content")
        if not isinstance(blocks, list):
            return unlike("Anthropic", answer, "ANTHROPIC_BASE_URL")
        stopped = field_of(answer, "stop_reason")
        if stopped == "max_tokens":
            return cut(self.name, self._text(answer))
        if stopped == "model_context_window_exceeded":
            return Problem(text="was cut off by the context window of the model; give it shorter texts")
        text = self._text(answer)
        if stopped == "refusal":
            return Problem(text=f"refused to answer: {text}".rstrip(": "))
        are_texts = all(isinstance(field_of(block, "text"), str) for block in blocks)
        return None if text.strip() else no_text(text if are_texts else blocks)

    def _spent(self, answer: object) -> Reply:
        usage = field_of(answer, "usage")
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        new, read, written, completion = (token_count(field_of(usage, name)) for name in names)
        return counted_reply(
            self.name,
            # Unlike OpenAI's, its input tokens are those that have nothing to do with the cache.
            prompt=new + read + written,
            completion=completion,
            cached=read,
            written=written,
            written_1h=field_of(field_of(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
            tier=field_of(usage, "service_tier"),
        )

    def _text(self, answer: object) -> str:
        blocks = field_of(answer, "content")
        for block in blocks:
            if field_of(block, "type") == "tool_use":
                return json.dumps(field_of(block, "input"), ensure_ascii=False)
        texts = [field_of(block, "text") for block in blocks if field_of(block, "type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))


class AnthropicRoutes(Routes):
    """``/v1/messages/batches``; it keeps no name, so a batch is found again by its time and size."""

    limits = (100_000, 240_000_000)
    path, after = "/v1/messages/batches", "after_id"

    async def _posted(self, name: str, bodies: Bodies) -> Any:  # noqa: ARG002 - there is no place for the name
        body = {"requests": [{"custom_id": key, "params": body} for key, body in bodies.items()]}
        return await self._reach(lambda client: client.post(self.path, body=body, cast_to=object), single=True)

    def _created(self, item: Any) -> datetime:
        return datetime.fromisoformat(item["created_at"].replace("Z", "+00:00")).astimezone(timezone.utc)

    def _is_like(self, item: Any, batch: Batch) -> bool:
        return len(batch.keys) == int(sum(item["request_counts"].values()))

    def _progress(self, batch: Any) -> BatchProgress:
        counts, state = batch["request_counts"], str(batch["processing_status"])
        total = sum(counts.values())
        ended = state == "ended" and bool(batch.get("results_url"))
        return BatchProgress(ended=ended, state=state, done=total - counts.get("processing", 0), total=total)

    def _files(self, batch: Any) -> list[str]:
        return [batch["results_url"]]

    def _read(self, row: Any) -> tuple[Any, Any]:
        result = field_of(row, "result")
        if field_of(result, "type") == "succeeded":
            return field_of(result, "message"), None
        error = field_of(field_of(result, "error"), "error")
        return None, error or {"message": f"the request is {field_of(result, 'type') or 'without a result'}"}
