"""A server that speaks the OpenAI API (and Anthropic's messages) on 127.0.0.1, and misbehaves when asked to.

It is a real HTTP server in a thread of its own, so that a test goes through the official SDK and a real socket:

    with FakeOpenAI() as server:
        judge = OpenAIJudge("fake", base_url=server.base_url, api_key="sk-fake")

Every request is answered by ``answer(body)``: a text, or a :class:`Reply` made by one of the functions below. The
default answers every task of the package sensibly. ``script(...)`` puts replies in front of it, used once each.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tests.fake_answers import answer_sensibly, embed

if TYPE_CHECKING:
    from typing_extensions import Self

Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What to send back: a completion, or with ``error`` or ``does`` a failure."""

    text: str | None = ""
    finish: str = "stop"
    refusal: str | None = None
    status: int = 200
    error: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    does: Literal["answer", "drop", "hang"] = "answer"
    raw: bytes | None = None
    usage: tuple[int, int] | None = None
    cached: int = 0
    written: int = 0
    latency: float = 0.0


def rate_limited(retry_after: float | None = 0.01) -> Reply:
    """Ask the client to slow down, with the pause to make."""
    error = {"message": "Rate limit reached.", "type": "requests", "code": "rate_limit_exceeded"}
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Reply(status=429, error=error, headers=headers)


def out_of_quota() -> Reply:
    """Say that the account has no credit left."""
    message = "You exceeded your current quota, please check your plan and billing details."
    return Reply(status=429, error={"message": message, "type": "insufficient_quota", "code": "insufficient_quota"})


def failing(status: int = 500, message: str = "The server had an error.", **details: str) -> Reply:
    """Answer with an error status; ``retry-after-ms`` keeps the client's pauses short."""
    error = {"message": message, "type": "server_error", "code": None, "param": None, **details}
    return Reply(status=status, error=error, headers={"retry-after-ms": "5"} if status >= 500 else {})


def dropped() -> Reply:
    """Close the connection without a word."""
    return Reply(does="drop")


def silent() -> Reply:
    """Never answer."""
    return Reply(does="hang")


def truncated(text: str = '{"claims": ["The first cl') -> Reply:
    """Stop at the length limit."""
    return Reply(text=text, finish="length")


def filtered() -> Reply:
    """Stop at the content filter."""
    return Reply(text=None, finish="content_filter")


def refused(text: str = "I cannot help with that.") -> Reply:
    """Refuse, as structured output does."""
    return Reply(text=None, refusal=text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A request as it came in, and the status it got (``None``: no answer)."""

    path: str
    headers: Mapping[str, str]
    body: Body
    status: int | None


@dataclass(kw_only=True)
class FakeOpenAI:
    """The server; a context manager that runs while its block does.

    ``refuses`` names what is rejected with 400: a sampling parameter, ``json_schema`` or ``json_object``. ``key``
    is the only key accepted, where one is given. ``latency`` is added to every answer, in seconds. ``waves`` says how
    many requests must be there at the same time before any of them is answered, one number for each round.
    """

    answer: Callable[[Body], str | Reply] = answer_sensibly
    latency: float = 0.0
    refuses: frozenset[str] = frozenset()
    key: str | None = None
    dimensions: int = 64
    requests: list[Recorded] = field(default_factory=list, repr=False)
    in_flight: int = 0
    in_flight_max: int = 0
    waves: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the parts that are not given."""
        self._script: deque[str | Reply] = deque()
        self._waiting: list[asyncio.Event] = []
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="fake-openai", daemon=True)

    def script(self, *replies: str | Reply) -> None:
        """Use these replies for the next requests, in order, before ``answer`` is asked again."""
        self._script.extend(replies)

    def reset(self) -> None:
        """Answer as a new server does, and forget the requests."""
        self._script.clear()
        self.requests.clear()
        self.answer, self.latency, self.refuses, self.key = answer_sensibly, 0.0, frozenset(), None
        self.in_flight_max, self.waves = 0, []

    def release(self) -> None:
        """Answer all that a round holds back, and hold back nothing more."""

        def let_go() -> None:
            self.waves.clear()
            for each in self._waiting:
                each.set()

        self._loop.call_soon_threadsafe(let_go)

    @property
    def base_url(self) -> str:
        """The address to give to an OpenAI client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def root_url(self) -> str:
        """The address to give to an Anthropic client."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def calls(self) -> int:
        """How many requests came in."""
        return len(self.requests)

    @property
    def answered(self) -> int:
        """How many requests were answered with success: what a provider would bill."""
        return sum(request.status == 200 for request in self.requests)

    @property
    def duplicates(self) -> int:
        """How many successful requests repeated an earlier one."""
        bodies = Counter(json.dumps(request.body, sort_keys=True) for request in self.requests if request.status == 200)
        return sum(count - 1 for count in bodies.values())

    def __enter__(self) -> Self:
        self._server = self._start()
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _start(self) -> asyncio.Server:
        return self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _stop(self) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        # A transport is closed one turn of the loop after it was asked to.
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            msg = "a connection is served by a task"
            raise RuntimeError(msg)
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client left, or the server stops.
            return
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        body: Body = json.loads(content) if content else {}
        with self._counted():
            reply = self._reply(path, headers, body)
            await asyncio.sleep(self.latency + reply.latency)
            await self._wave()
            status = None if reply.does != "answer" else reply.status
            self.requests.append(Recorded(path=path, headers=headers, body=body, status=status))
            if reply.does == "hang":
                # Until the client gives up.
                await reader.read()
            if reply.does != "answer":
                return False
            writer.write(_http(reply, path, body, self.dimensions))
            await writer.drain()
        return reply.headers.get("connection") != "close"

    async def _wave(self) -> None:
        """Hold a request back until its round is complete; one that never is stays in ``waves`` and is let go."""
        if not self.waves:
            return
        self._waiting.append(asyncio.Event())
        mine = self._waiting[-1]
        if len(self._waiting) == self.waves[0]:
            del self.waves[0]
            while self._waiting:
                self._waiting.pop().set()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(mine.wait(), 20)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        try:
            yield
        finally:
            self.in_flight -= 1

    def _reply(self, path: str, headers: Mapping[str, str], body: Body) -> Reply:
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if self.key is not None and given != self.key:
            return failing(401, f"Incorrect API key provided: {given}.", code="invalid_api_key")
        for name in sorted(self.refuses):
            if _asks_for(name, body):
                return _rejection(name)
        if self._script:
            made = self._script.popleft()
        elif path.endswith("/embeddings"):
            return Reply()
        elif path.endswith(("/chat/completions", "/messages")):
            made = self.answer(body)
        else:
            return failing(404, f"There is no {path} here.")
        return Reply(text=made) if isinstance(made, str) else made


def _asks_for(name: str, body: Body) -> bool:
    return f'"{name}":' in json.dumps(body) or name == body.get("response_format", {}).get("type")


def _rejection(name: str) -> Reply:
    if name.startswith("json_"):
        message = f"Invalid parameter: 'response_format' of type '{name}' is not supported with this model."
        return failing(400, message, param="response_format")
    message = f"Unsupported value: '{name}' does not support this value with this model."
    return failing(400, message, param=name, code="unsupported_value")


def _http(reply: Reply, path: str, body: Body, dimensions: int) -> bytes:
    if reply.raw is not None:
        content = reply.raw
    elif reply.error is not None:
        content = json.dumps({"type": "error", "error": dict(reply.error)}).encode()
    elif path.endswith("/embeddings"):
        content = json.dumps(_embeddings(body, dimensions)).encode()
    elif path.endswith("/messages"):
        content = json.dumps(_message(reply, body)).encode()
    else:
        content = json.dumps(_completion(reply, body)).encode()
    headers = {"content-type": "application/json", "content-length": str(len(content)), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} Status", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + content


def _tokens(reply: Reply, body: Body) -> tuple[int, int]:
    """Return prompt and completion tokens: those of the reply, else a token for every four characters."""
    said = sum(len(str(message["content"])) for message in body.get("messages", []))
    return reply.usage or (max(1, said // 4), max(1, len(reply.text or "") // 4))


def _completion(reply: Reply, body: Body) -> Body:
    prompt, completion = _tokens(reply, body)
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": reply.cached, "cache_write_tokens": reply.written},
        },
        "service_tier": "default",
    }


def _message(reply: Reply, body: Body) -> Body:
    prompt, completion = _tokens(reply, body)
    text = reply.text or reply.refusal or ""
    block: Body = {"type": "text", "text": text}
    with suppress(KeyError, ValueError):
        # A cut or refused answer is no tool call, for its input is not JSON.
        block = {"type": "tool_use", "id": "toolu_fake", "name": body["tools"][0]["name"], "input": json.loads(text)}
    stop = {"stop": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [block],
        "stop_reason": "refusal" if reply.refusal else stop[reply.finish],
        "stop_sequence": None,
        "usage": {
            "input_tokens": prompt - reply.cached - reply.written,
            "cache_read_input_tokens": reply.cached,
            "cache_creation_input_tokens": reply.written,
            "output_tokens": completion,
        },
    }


def _embeddings(body: Body, dimensions: int) -> Body:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    as_base64 = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": embed(text, dimensions, as_base64=as_base64)}
        for index, text in enumerate(texts)
    ]
    tokens = max(1, sum(map(len, texts)) // 4)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}
