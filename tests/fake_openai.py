"""A server that speaks the OpenAI API (and Anthropic's messages) on 127.0.0.1, and misbehaves when asked to.

A test goes through a real socket:

    with FakeOpenAI() as server:
        judge = OpenAIJudge("fake", base_url=server.base_url, api_key="sk-fake")

Every request is answered by ``answer(body)``: a text, or a :class:`Reply` made by one of the functions below. The
default answers every task of the package sensibly. ``script(...)`` puts replies in front of it, used once each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tests.fake_answers import answer_sensibly, embed
from tests.fake_server import FakeServer, Recorded, Response

Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply(Response):
    """What to send back: a completion, or with ``error`` or ``does`` a failure."""

    text: str | None = ""
    finish: str = "stop"
    refusal: str | None = None
    error: Mapping[str, Any] | None = None
    usage: tuple[int, int] | None = None
    cached: int = 0
    written: int = 0
    #: The model and the fingerprint that it names; by default the model that was asked for alone.
    served: tuple[str, str | None] | None = None


def rate_limited(retry_after: float | None = 0.01) -> Reply:
    error = {"message": "Rate limit reached.", "type": "requests", "code": "rate_limit_exceeded"}
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Reply(status=429, error=error, headers=headers)


def out_of_quota() -> Reply:
    message = "You exceeded your current quota, please check your plan and billing details."
    return Reply(status=429, error={"message": message, "type": "insufficient_quota", "code": "insufficient_quota"})


def failing(status: int = 500, message: str = "The server had an error.", **details: str) -> Reply:
    """Answer with an error status; ``retry-after-ms`` keeps the client's pauses short."""
    error = {"message": message, "type": "server_error", "code": None, "param": None, **details}
    return Reply(status=status, error=error, headers={"retry-after-ms": "5"} if status >= 500 else {})


def dropped() -> Reply:
    return Reply(does="drop")


def silent() -> Reply:
    return Reply(does="hang")


def truncated(text: str = '{"claims": ["The first cl') -> Reply:
    return Reply(text=text, finish="length")


def filtered() -> Reply:
    return Reply(text=None, finish="content_filter")


def refused(text: str = "I cannot help with that.") -> Reply:
    return Reply(text=None, refusal=text)


@dataclass(kw_only=True)
class FakeOpenAI(FakeServer):
    """The server.

    ``refuses`` names what is rejected with 400: a sampling parameter, ``json_schema`` or ``json_object``. ``key``
    is the only key accepted, where one is given.
    """

    answer: Callable[[Body], str | Reply] = answer_sensibly
    refuses: frozenset[str] = frozenset()
    key: str | None = None
    dimensions: int = 64

    def reset(self) -> None:
        super().reset()
        self.answer, self.refuses, self.key = answer_sensibly, frozenset(), None

    async def respond(self, request: Recorded) -> Reply:
        reply = self.refusal(request) or self.reply_to(request)
        if reply.raw is not None or reply.does != "answer":
            return reply
        return replace(reply, raw=json.dumps(self.sent(reply, request.path, request.body)).encode())

    def refusal(self, request: Recorded) -> Reply | None:
        """Return why a request is not answered, if it is not."""
        headers = request.headers
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if self.key in (None, given):
            return None
        return failing(401, f"Incorrect API key provided: {given}.", code="invalid_api_key")

    def reply_to(self, request: Recorded) -> Reply:
        """Return the next reply of the script, else what ``answer`` says."""
        for name in sorted(self.refuses):
            if _asks_for(name, request.body):
                return _rejection(name)
        if self._script:
            made = self._script.popleft()
        elif request.path.endswith("/embeddings"):
            return Reply()
        elif request.path.endswith(("/chat/completions", "/messages")):
            made = self.answer(request.body)
        else:
            return failing(404, f"There is no {request.path} here.")
        return Reply(text=made) if isinstance(made, str) else made

    def sent(self, reply: Reply, path: str, body: Body) -> Body:
        """Return a reply as the route of a path sends it."""
        if reply.error is not None:
            return {"type": "error", "error": dict(reply.error)}
        if path.endswith("/embeddings"):
            return _embeddings(body, self.dimensions)
        return _message(reply, body) if path.endswith("/messages") else _completion(reply, body)


def _asks_for(name: str, body: Body) -> bool:
    return f'"{name}":' in json.dumps(body) or name == body.get("response_format", {}).get("type")


def _rejection(name: str) -> Reply:
    if name.startswith("json_"):
        message = f"Invalid parameter: 'response_format' of type '{name}' is not supported with this model."
        return failing(400, message, param="response_format")
    message = f"Unsupported value: '{name}' does not support this value with this model."
    return failing(400, message, param=name, code="unsupported_value")


def _tokens(reply: Reply, body: Body) -> tuple[int, int]:
    """Return prompt and completion tokens: those of the reply, else a token for every four characters."""
    said = sum(len(str(message["content"])) for message in body.get("messages", []))
    return reply.usage or (max(1, said // 4), max(1, len(reply.text or "") // 4))


def _completion(reply: Reply, body: Body) -> Body:
    prompt, completion = _tokens(reply, body)
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    details = {"cached_tokens": reply.cached, "cache_write_tokens": reply.written}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}
    model, fingerprint = reply.served or (body.get("model"), None)
    head = {"id": "chatcmpl-fake", "object": "chat.completion", "created": 0, "model": model}
    head |= {"system_fingerprint": fingerprint}
    more = {"usage": {**usage, "prompt_tokens_details": details}, "service_tier": "default"}
    return {**head, "choices": [choice], **more}


def _message(reply: Reply, body: Body) -> Body:
    prompt, completion = _tokens(reply, body)
    text = reply.text or reply.refusal or ""
    block: Body = {"type": "text", "text": text}
    with suppress(KeyError, ValueError):
        # A cut or refused answer is no tool call, for its input is not JSON.
        block = {"type": "tool_use", "id": "toolu_fake", "name": body["tools"][0]["name"], "input": json.loads(text)}
    stop = {"stop": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
    model = reply.served[0] if reply.served else body.get("model")
    head = {"id": "msg_fake", "type": "message", "role": "assistant", "model": model, "content": [block]}
    ended = {"stop_reason": "refusal" if reply.refusal else stop[reply.finish], "stop_sequence": None}
    usage = {
        "input_tokens": prompt - reply.cached - reply.written,
        "cache_read_input_tokens": reply.cached,
        "cache_creation_input_tokens": reply.written,
        "output_tokens": completion,
    }
    return {**head, **ended, "usage": usage}


def _embeddings(body: Body, dimensions: int) -> Body:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    as_base64 = body.get("encoding_format") == "base64"
    vectors = enumerate(embed(text, dimensions, as_base64=as_base64) for text in texts)
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in vectors]
    tokens = max(1, sum(map(len, texts)) // 4)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}
