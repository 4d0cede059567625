"""Posting over the HTTP client of a provider's SDK, with as little of the SDK as a reply without fault needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NoReturn
from urllib.request import getproxies

from pytest_ragmetrics.judges.attempts import attempt, once, stay

# Seconds that a connection is kept without a request, as between two slow tests.
_IDLE = 60.0
# The limiter bounds the requests; aiohttp would take no limit for one of 100 connections.
_CONNECTIONS = 100_000
# As the SDKs write bodies.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

#: What the SDK gets for its next attempt instead of having it sent: a function of its request, if there is one.
_outcome: ContextVar[list[Callable[[Any], Any]] | None] = ContextVar("outcome", default=None)


def http_client(sdk: Any, url: str, *, account: tuple[str, str] | None = None, **options: Any) -> Any:
    """Return the HTTP client of an SDK for an address: on aiohttp, for which a request takes 0.6 of the processor.

    On httpx where aiohttp is not installed, and for a proxy: aiohttp knows no SOCKS proxies. Both read
    ``SSL_CERT_FILE``. ``account`` is sent instead of the key; the address is logged, and has none.
    """
    limits = type(sdk.DEFAULT_CONNECTION_LIMITS)(max_connections=_CONNECTIONS, keepalive_expiry=_IDLE)
    # Certificates take long to load: not at all without TLS.
    options |= {"limits": limits, "verify": url.startswith("https:"), "event_hooks": {"response": [stay]}}
    options["auth"] = account
    if getproxies().keys() - {"no"}:
        return _answering(sdk.DefaultAsyncHttpxClient)(**options)
    try:
        return _answering(sdk.DefaultAioHttpClient)(**options)
    except RuntimeError:
        return _answering(sdk.DefaultAsyncHttpxClient)(**options)


def _answering(base: Any) -> Any:
    class HttpClient(base):  # type: ignore[misc]  # one of the SDK's
        """A client of the SDK; every attempt passes :meth:`send`."""

        async def send(self, request: Any, **options: Any) -> Any:
            outcome = _outcome.get()
            return outcome.pop()(request) if outcome else await attempt(super().send, request, options)

    return HttpClient


class Wire:
    """Posts JSON over ``http``, the HTTP client of ``client``, which is the SDK's; for one event loop.

    The SDK builds the first request to a path, and those that follow have the same head: URL, headers and timeouts. A
    reply of success in JSON is returned at once. Every other outcome becomes that of the SDK's own first attempt:
    retries, pauses and errors are the SDK's. This takes half of the processor that the SDK takes for a request.
    """

    def __init__(self, client: Any, http: Any) -> None:
        #: The SDK's, for all else.
        self.client = client
        self._http = http
        self._heads: dict[str, Any] = {}
        self._learning = asyncio.Lock()

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the value of the answer, as JSON builtins; a text where it is no JSON. Raises as the SDK."""
        head = self._heads.get(path) or await self._head(path)
        try:
            content = _ENCODER.encode(body).encode()
        except TypeError:
            # The SDK knows how to write more types.
            return await self._sent(path, body)
        same = {"headers": head.headers, "extensions": head.extensions, "cookies": self._http.cookies}
        request = type(head)(head.method, head.url, content=content, **same)
        try:
            response = await self._http.send(request)
        except Exception as error:  # noqa: BLE001 - which of them are tried again, the SDK says
            return await self._sent(path, body, _failing(error))
        if response.is_success and response.headers.get("content-type", "").partition(";")[0].endswith("json"):
            return response.json()
        return await self._sent(path, body, lambda _: response)

    async def _sent(self, path: str, body: dict[str, Any], outcome: Callable[[Any], Any] | None = None) -> Any:
        """Return what the SDK makes of a body, whose first attempt is not sent where it has an outcome."""
        before = _outcome.set(outcome and [outcome])
        try:
            return await self.client.post(path, body=body, cast_to=object, options=once())
        finally:
            _outcome.reset(before)

    async def _head(self, path: str) -> Any:
        async with self._learning:
            if path not in self._heads:
                try:
                    await self._sent(path, {}, _stop)
                except _Built as built:
                    del built.request.headers["content-length"]
                    self._heads[path] = built.request
        return self._heads[path]


class _Built(BaseException):
    """A request that the SDK has built; no ``Exception``, for which an SDK would try again."""

    def __init__(self, request: Any) -> None:
        super().__init__()
        self.request = request


def _stop(request: Any) -> NoReturn:
    raise _Built(request)


def _failing(error: Exception) -> Callable[[Any], NoReturn]:
    def fail(_: Any) -> NoReturn:
        raise error

    return fail
