"""A real HTTP server on 127.0.0.1, in a thread of its own, that every fake provider stands on.

A provider says in :meth:`FakeServer.respond` what a request gets. The server keeps connections open, counts what comes
in, holds requests back where a test wants many of them there at once, and has a script of replies.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """What goes over the wire, ``latency`` seconds after it was asked for."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    does: Literal["answer", "drop", "hang"] = "answer"
    latency: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A request as it came in, and the status it got (``None``: no answer). A body that is no JSON is bytes."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    status: int | None = None


@dataclass(kw_only=True)
class FakeServer:
    """The server; a context manager that runs while its block does.

    ``latency`` is added to every response, in seconds. ``waves`` says how many requests must be there at the same time
    before any of them is answered, one number for each round.
    """

    latency: float = 0.0
    requests: list[Recorded] = field(default_factory=list, repr=False)
    connections: int = 0
    in_flight: int = 0
    in_flight_max: int = 0
    waves: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._script: deque[Any] = deque()
        self._held: list[asyncio.Event] = []
        self._open: set[asyncio.Task[None]] = set()

    async def respond(self, request: Recorded) -> Response:
        """Return what a request gets."""
        raise NotImplementedError

    def script(self, *replies: Any) -> None:
        """Use these replies for the next requests, in order, before anything else is asked."""
        self._script.extend(replies)

    def reset(self) -> None:
        self._script.clear()
        self.requests.clear()
        self.latency, self.in_flight_max, self.waves = 0.0, 0, []

    def restart(self) -> None:
        """Begin anew at another port, where nobody asks who is left from before."""
        for step in (self._stop, self._start):
            asyncio.run_coroutine_threadsafe(step(), self._loop).result()
        self.connections = 0
        self.reset()

    async def hold(self) -> None:
        """Hold a request back until ``release`` or the last of its round, at most 20 seconds."""
        self._held.append(asyncio.Event())
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._held[-1].wait(), 20)

    def release(self) -> None:
        """Answer all that is held back, and hold back no further round."""
        self.waves.clear()
        self._loop.call_soon_threadsafe(self._let_go)

    @property
    def root_url(self) -> str:
        """The address to give to an Anthropic client."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """The address to give to an OpenAI client."""
        return f"{self.root_url}/v1"

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def answered(self) -> int:
        """How many requests were answered with success: what a provider would bill."""
        return sum(request.status == 200 for request in self.requests)

    @property
    def duplicates(self) -> int:
        bodies = Counter(json.dumps(request.body, sort_keys=True) for request in self.requests if request.status == 200)
        return sum(count - 1 for count in bodies.values())

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._start())
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-server", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        # A transport is closed one turn of the loop after it was asked to.
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        # The client may leave, or the server stop.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self.exchange(reader, writer):
                pass
        self._open.discard(task)
        writer.close()

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        is_form = headers.get("content-type", "").startswith("multipart/")
        body = content if is_form else json.loads(content or b"{}")
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        try:
            return await self._answer(Recorded(method=method, path=path, headers=headers, body=body), reader, writer)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: Recorded, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        response = await self.respond(request)
        await asyncio.sleep(self.latency + response.latency)
        await self._wave()
        status = response.status if response.does == "answer" else None
        self.requests.append(replace(request, status=status))
        if response.does == "hang":
            # Until the client gives up.
            await reader.read()
        if response.does != "answer":
            return False
        content = response.raw or b""
        headers = {"content-type": "application/json", "content-length": str(len(content)), **response.headers}
        lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + content)
        await writer.drain()
        return response.headers.get("connection") != "close"

    async def _wave(self) -> None:
        """Hold a request back until its round is complete; one that never is stays in ``waves`` and is let go."""
        if not self.waves:
            return
        if len(self._held) + 1 < self.waves[0]:
            await self.hold()
        else:
            del self.waves[0]
            self._let_go()

    def _let_go(self) -> None:
        while self._held:
            self._held.pop().set()
