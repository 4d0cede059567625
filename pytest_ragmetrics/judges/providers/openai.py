"""Judges behind the OpenAI API, or any server that speaks it, and its batches."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from http import HTTPStatus
from typing import Any, ClassVar, Literal

from pytest_ragmetrics.core.errors import warn_once
from pytest_ragmetrics.judges.batches.ledger import Batch
from pytest_ragmetrics.judges.batches.routes import BatchProgress, Bodies, Routes
from pytest_ragmetrics.judges.prices import estimated_tokens
from pytest_ragmetrics.judges.providers.bounds import bounded
from pytest_ragmetrics.judges.providers.connection import (
    FLEX,
    SHARED_NAME,
    ApiJudge,
    counted_reply,
    field_of,
    lacks_capacity,
    parts,
    refused_parameter,
    said_by,
    token_count,
)
from pytest_ragmetrics.judges.providers.errors import Problem, cut, no_text, unlike
from pytest_ragmetrics.judges.providers.vendor import OPENAI, Vendor
from pytest_ragmetrics.judges.transports.values import SERVICE_TIER, ChatMessage, Reply, Request

# Seconds before the file of a batch is looked for again, which is not always found at once.
_UPLOADING = (0.5, 2.0, 5.0)
# Seconds after each attempt for which the tier "flex" has no capacity; then the ordinary tier is asked.
_FLEX_PAUSES = (0.5, 2.0, 0.0)

# The parameters that limit the length of a reply, and the limit after a reply that met one which was not set here.
_LIMITS = ("max_completion_tokens", "max_tokens")
_ROOM = 16_384
# How servers call the end of a reply that met one.
_AT_LIMIT = ("length", "max_tokens")
_CACHE_OPTIONS, _BREAKPOINT, _CACHE_KEY = "prompt_cache_options", "prompt_cache_breakpoint", "prompt_cache_key"
# How many tokens it caches at least.
_LEAST = 1024
_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?\b")
# The first version that does.
_BILLING = (5, 6)

# How many of the longest prompts have one count of tokens, and by how much they differ; no window is smaller.
_PROMPTS, _LONGER, _SHORTEST_WINDOW = 3, 1.2, 1000

Form = Literal["json_schema", "json_object", "text"]
# Returns what is sent besides for a cache up to the marks.
Caching = Callable[[Sequence[ChatMessage], Sequence[int]], dict[str, Any]]

#: The form to try when a server refuses one.
_NEXT_FORM: Mapping[Form, Form] = {"json_schema": "json_object", "json_object": "text"}
_FORM_WORDS = re.compile(r"response[_ ]format|json_schema|json_object|json mode|structured output|grammar")
_WINDOW = re.compile(r"max(?:imum)?[ _](?:context|model)[ _]len|max_(?:completion_|new_)?tokens|maximum tokens")
# What llama.cpp, servers that pass a schema on to OpenAI, Gemini and OpenRouter say; its message says no more.
_BOUND_WORDS = re.compile(r"grammar|m(?:ax|in)items|maxlength|too many states|invalid argument|provider returned error")


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenAICapabilities:
    """The form of output that a server accepts, and the parameters it refuses.

    Where the server is not the provider's own, schemas are bounded until one is refused, and replies until an honest
    one, as of a model that thinks first, is cut short.
    """

    form: Form = "json_schema"
    refused: frozenset[str] = frozenset()
    has_bounds: bool = True
    is_brief: bool = True


class OpenAIJudge(ApiJudge[OpenAICapabilities]):
    """A model behind the OpenAI API; ``base_url`` names another server that speaks it.

    ``api_key`` and ``base_url`` default to ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``. The key is needed for the first
    request, not for replayed ones; it may be a function, also an asynchronous one, called before each attempt.
    ``parameters`` are the sampling parameters, by default a temperature of 0, and 1 for further samples of one request;
    those that the model refuses are left out. With ``{"service_tier": "flex"}`` an attempt may take 15 minutes. Use it
    in one event loop, and ``aclose`` it there.

    >>> OpenAIJudge("gpt-5.4-mini").name
    'openai:gpt-5.4-mini'
    """

    kind: ClassVar[str] = "openai"
    vendor: ClassVar[Vendor] = OPENAI
    offer: ClassVar[OpenAICapabilities] = OpenAICapabilities()

    @cached_property
    def _longest(self) -> _Longest:
        return _Longest()

    async def _send(self, client: Any, request: Request, terms: OpenAICapabilities) -> Any:
        answer = await self._post(client, self._body(request, terms))
        is_at_limit = field_of(_choice(answer), "finish_reason") in _AT_LIMIT
        if is_at_limit and self.terms.is_brief and (problem := self._problem(answer)) is not None and problem.is_cut:
            self.terms = replace(self.terms, is_brief=False)
        tokens = token_count(field_of(field_of(answer, "usage"), "prompt_tokens"))
        if self._longest.is_cut(tokens, estimated_tokens(*request.texts)):
            warn_once(
                f"{self.name}: the server counts {tokens} tokens for prompts of several lengths, and never more. It "
                "seems to cut them, and the judge misses texts: set a longer context (OLLAMA_CONTEXT_LENGTH)"
            )
        return answer

    async def _post(self, client: Any, body: dict[str, Any]) -> Any:
        if body.get(SERVICE_TIER) == FLEX:
            for pause in _FLEX_PAUSES:
                try:
                    return await client.post("/chat/completions", body=body, cast_to=object)
                except Exception as error:
                    if not lacks_capacity(error):
                        raise
                await asyncio.sleep(pause)
            body[SERVICE_TIER] = "default"
        return await client.post("/chat/completions", body=body, cast_to=object)

    def _body(self, request: Request, terms: OpenAICapabilities) -> dict[str, Any]:
        caching: Caching | None = None
        if self._connection.is_direct or request.asked is None:
            caching = None if self.cached_from is None else _marked if self._bills_writes else _keyed
        else:
            schema, most = bounded(request.schema, request.asked)
            if terms.has_bounds and terms.form == "json_schema":
                request = replace(request, schema=schema)
            # A limit among the judge's own parameters goes first.
            if terms.is_brief and not request.is_longer and request.parameters.keys().isdisjoint(_LIMITS):
                limit = _limited(request, terms.refused, most)
                request = replace(request, parameters={**request.parameters, **limit})
        asked = {**request.parameters, **(_room(request, terms.refused) if request.is_longer else {})}
        body = {name: value for name, value in asked.items() if name not in terms.refused}
        messages = request.messages if terms.form == "json_schema" else request.spelled_out()
        body |= {"model": request.model, "messages": messages}
        marks = () if caching is None else request.marks()
        if caching is not None:
            body |= caching(messages, marks)
        if terms.form != "json_schema":
            return body | ({"response_format": {"type": "json_object"}} if terms.form == "json_object" else {})
        name, form = (SHARED_NAME, request.shared_schema) if marks else (request.task, request.schema)
        named = {"name": name, "strict": True, "schema": form}
        return body | {"response_format": {"type": "json_schema", "json_schema": named}}

    def _cached_from(self, terms: OpenAICapabilities) -> int | None:
        needed = {_CACHE_OPTIONS, _BREAKPOINT} if self._bills_writes else {_CACHE_KEY}
        return None if needed & terms.refused else _LEAST

    @property
    def _bills_writes(self) -> bool:
        """Whether the model bills what it writes into its cache, and takes breakpoints."""
        version = _VERSION.match(self.model)
        return version is not None and (int(version[1]), int(version[2] or 0)) >= _BILLING

    def _concede(self, terms: OpenAICapabilities, request: Request, error: Any) -> OpenAICapabilities | None:
        said = said_by(error).lower()
        if terms.has_bounds and not self._connection.is_direct and _BOUND_WORDS.search(said):
            return replace(terms, has_bounds=False)
        limit = _limited(request, terms.refused, _ROOM) if request.is_longer or not self._connection.is_direct else ()
        names = [*request.parameters, *limit, _CACHE_OPTIONS, _BREAKPOINT, _CACHE_KEY]
        name = refused_parameter(error, [name for name in names if name not in terms.refused])
        about_form = error.param == "response_format" or _FORM_WORDS.search(said) is not None
        if name is not None and not about_form:
            return replace(terms, refused=terms.refused | {name})
        if limit and _WINDOW.search(said):
            # vLLM wants room for the prompt and for the longest reply.
            without = terms.refused.union(_LIMITS if request.is_longer else ())
            if terms.is_brief or without != terms.refused:
                return replace(terms, is_brief=False, refused=without)
        following = _NEXT_FORM.get(terms.form)
        return replace(terms, form=following) if about_form and following is not None else None

    def _problem(self, answer: object) -> Problem | None:
        choice = _choice(answer)
        message, finish = field_of(choice, "message"), field_of(choice, "finish_reason")
        if not isinstance(message, Mapping):
            return unlike("OpenAI", answer, "OPENAI_BASE_URL (it often ends in /v1)")
        if finish in _AT_LIMIT:
            return cut(self.name, _content(message) or field_of(message, "reasoning_content"))
        if finish == "model_length":
            # Mistral reports it.
            return Problem(text="was cut off by the context window of the model; give it shorter texts")
        if isinstance(finish, str) and finish.startswith("content_filter"):
            # Gemini names the filter behind a colon.
            return Problem(text="was stopped by the provider's content filter")
        refusal = field_of(message, "refusal")
        if isinstance(refusal, str) and refusal:
            return Problem(text=f"refused to answer: {refusal}")
        return no_text(_content(message))

    def _spent(self, answer: object) -> Reply:
        usage = field_of(answer, "usage")
        details = field_of(usage, "prompt_tokens_details")
        return counted_reply(
            self.name,
            prompt=field_of(usage, "prompt_tokens"),
            completion=field_of(usage, "completion_tokens"),
            cached=field_of(details, "cached_tokens"),
            written=field_of(details, "cache_write_tokens"),
            tier=field_of(answer, "service_tier"),
            # OpenRouter reports it, in dollars.
            billed=field_of(usage, "cost"),
        )

    def _text(self, answer: object) -> str:
        return str(_content(field_of(_choice(answer), "message")))


class _Longest:
    """The longest prompts of a judge by the count of its server, which stays the same where it cuts them."""

    def __init__(self) -> None:
        self._tokens = 0
        self._sizes: set[int] = set()

    def is_cut(self, tokens: int, size: int) -> bool:
        """Note a prompt of about ``size`` tokens; tell whether several of other lengths had its count, and none more.

        That the longest of uncut prompts have the same count is chance, and more so that they differ by a fifth.
        """
        if tokens > self._tokens:
            self._tokens, self._sizes = tokens, set()
        if tokens == self._tokens:
            self._sizes.add(size)
        is_known = tokens >= _SHORTEST_WINDOW and len(self._sizes) >= _PROMPTS
        return is_known and tokens == self._tokens and max(self._sizes) > _LONGER * min(self._sizes)


def _choice(answer: object) -> Any:
    choices = field_of(answer, "choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _content(message: object) -> object:
    """Return the content of a message; of parts, as Mistral's reasoning models send them, the texts."""
    content = field_of(message, "content")
    if not isinstance(content, list):
        return content
    texts = [field_of(part, "text") for part in content if field_of(part, "type") == "text"]
    return "".join(texts) if texts and all(isinstance(text, str) for text in texts) else content


def _room(request: Request, refused: frozenset[str]) -> dict[str, int]:
    """Return the limit of a second reply, after one that was cut off: twice the one that is set, or a wide one."""
    given = {name: request.parameters.get(name) for name in _LIMITS}
    doubled = {name: 2 * limit for name, limit in given.items() if isinstance(limit, int)}
    return doubled or _limited(request, refused, _ROOM)


def _limited(request: Request, refused: frozenset[str], most: int) -> dict[str, int]:
    """Return the parameter that limits a reply to ``most`` tokens, if the server has one."""
    # OpenAI's newer models refuse the name that other servers know, also where Azure has them.
    names = _LIMITS if request.url is None else _LIMITS[::-1]
    return next(({name: most} for name in names if name not in refused), {})


def _keyed(messages: Sequence[ChatMessage], marks: Sequence[int]) -> dict[str, Any]:
    """Return what brings requests that begin alike to one machine, where the model caches by itself at no charge."""
    if not marks:
        return {}
    start = f"{messages[0]['content']}{messages[1]['content'][: marks[0]]}"
    return {_CACHE_KEY: hashlib.sha256(start.encode("utf-8", "replace")).hexdigest()[:32]}


def _marked(messages: Sequence[ChatMessage], marks: Sequence[int]) -> dict[str, Any]:
    """Return what makes a model cache up to the marks; without any it bills no write, as it would by itself."""
    found: dict[str, Any] = {_CACHE_OPTIONS: {"mode": "explicit"}}
    if marks:
        first, second, *others = messages
        content = parts(second["content"], marks, {_BREAKPOINT: {"mode": "explicit"}})
        found["messages"] = [first, {"role": second["role"], "content": content}, *others]
    return found


class OpenAIRoutes(Routes):
    """``/v1/files`` and ``/v1/batches``; the name of a batch is in its metadata."""

    limits = (50_000, 190_000_000)
    path, after = "/batches", "after"
    _ENDPOINT = "/v1/chat/completions"

    async def _posted(self, name: str, bodies: Bodies) -> Any:
        lines = (
            {"custom_id": key, "method": "POST", "url": self._ENDPOINT, "body": body} for key, body in bodies.items()
        )
        content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        # A file is not paid for: it may be uploaded twice.
        file = await self._reach(lambda client: client.files.create(file=(f"{name}.jsonl", content), purpose="batch"))
        body = {"input_file_id": file.id, "endpoint": self._ENDPOINT, "completion_window": "24h"}
        body["metadata"] = {"ragmetrics": name}

        async def create(client: Any) -> Any:
            for pause in (*_UPLOADING, None):
                try:
                    return await client.post(self.path, body=body, cast_to=object)
                except Exception as error:
                    is_early = getattr(error, "status_code", None) == HTTPStatus.BAD_REQUEST
                    if pause is None or not is_early or "find file" not in said_by(error).lower():
                        raise
                    await self._pause(pause)
            return None

        return await self._reach(create, single=True)

    def _created(self, item: Any) -> datetime:
        return datetime.fromtimestamp(item.get("created_at", datetime.now(timezone.utc).timestamp()), timezone.utc)

    def _is_like(self, item: Any, batch: Batch) -> bool:
        return batch.name == str(field_of(item.get("metadata"), "ragmetrics"))

    def _progress(self, batch: Any) -> BatchProgress:
        counts, state = batch.get("request_counts") or {}, str(batch.get("status"))
        failure = None
        if state == "failed":
            errors = (batch.get("errors") or {}).get("data") or [{"message": "no reason given"}]
            texts = (f"line {e['line']}: {e.get('message')}" if e.get("line") else e.get("message") for e in errors[:3])
            failure = "; ".join(map(str, texts))
        return BatchProgress(
            ended=state in ("completed", "failed", "expired", "cancelled"),
            state=state,
            done=(counts.get("completed") or 0) + (counts.get("failed") or 0),
            total=counts.get("total") or 0,
            failure=failure,
        )

    def _files(self, batch: Any) -> list[str]:
        # One is null where all lines failed or none did, and may be empty.
        files = (batch.get("output_file_id"), batch.get("error_file_id"))
        return [f"/files/{file}/content" for file in files if file]

    def _read(self, row: Any) -> tuple[Any, Any]:
        response = field_of(row, "response")
        body = field_of(response, "body")
        if field_of(response, "status_code") == HTTPStatus.OK and isinstance(body, dict):
            return body, None
        return None, field_of(row, "error") or body or {"message": "no reply and no reason"}
