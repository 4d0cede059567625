"""Posting over the HTTP client of a provider's SDK, with as little of the SDK as a reply without fault needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from typing import Any, NoReturn
from urllib.request import getproxies

from pytest_ragmetrics.judges.providers.attempts import Call, attempt, once, plain_response, read, responded, stay

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
            if outcome:
                return outcome.pop()(request)
            send = super().send
            return await attempt(lambda call: responded(send, request, options, call), request)

    return HttpClient


@dataclass(frozen=True, kw_only=True, slots=True)
class _Head:
    """The request to a path that the SDK has built, without a body, and what aiohttp takes of it, where it sends."""

    request: Any
    headers: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)


class Wire:
    """Posts JSON over ``http``, the HTTP client of ``client``, which is the SDK's; for one event loop.

    The SDK builds the first request to a path, and those that follow have the same head: URL, headers and timeouts. A
    reply of success in JSON is returned at once. Every other outcome becomes that of the SDK's own first attempt:
    retries, pauses and errors are the SDK's. This takes half of the processor that the SDK takes for a request, and a
    quarter where ``http`` sends over a session of aiohttp, to which requests are given past httpx.
    """

    def __init__(self, client: Any, http: Any) -> None:
        #: The SDK's, for all else.
        self.client = client
        self._http = http
        self._session, self._errors = _session_of(http)
        self._heads: dict[str, _Head] = {}
        self._learning = asyncio.Lock()

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the value of the answer, as JSON builtins; a text where it is no JSON. Raises as the SDK."""
        head = self._heads.get(path) or await self._head(path)
        try:
            content = _ENCODER.encode(body).encode()
        except TypeError:
            # The SDK knows how to write more types.
            return await self._sent(path, body)
        try:
            answer = await self._answer(head, content)
        except Exception as error:  # noqa: BLE001 - which of them are tried again, the SDK says
            return await self._sent(path, body, _failing(error))
        if isinstance(answer, bytes):
            return json.loads(answer)
        if answer.is_success and _is_json(answer.headers):
            return answer.json()
        return await self._sent(path, body, lambda _: answer)

    async def _answer(self, head: _Head, content: bytes) -> Any:
        """Return the content of an answer of success in JSON, or the response of httpx."""
        request = head.request
        if self._session is not None:
            answer = await attempt(lambda call: self._over_aiohttp(head, content, call), request)
            if isinstance(answer, bytes) or not answer.has_redirect_location:
                return answer
            await stay(answer)
            # httpx follows it, and those of all other requests.
            self._session = None
        same = {"headers": request.headers, "extensions": request.extensions, "cookies": self._http.cookies}
        return await self._http.send(type(request)(request.method, request.url, content=content, **same))

    async def _over_aiohttp(self, head: _Head, content: bytes, call: Call) -> Any:
        headers, cookies = head.headers, self._http.cookies
        if call.key is not None or cookies:
            headers = headers.copy()
            await call.put_key(headers)
            own = type(head.request)(head.request.method, head.request.url, cookies=cookies).headers
            headers.update({"cookie": own["cookie"]} if "cookie" in own else {})
        with self._errors():
            async with self._session.post(data=content, headers=headers, **head.options) as answer:
                status, parts = answer.status, answer.content.iter_any()
                said = await read(parts, answer.headers, status, call.most)
        is_success = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
        if is_success and _is_json(answer.headers) and "set-cookie" not in answer.headers:
            return said
        response = plain_response(head.request, status, answer.headers.items(), said)
        cookies.extract_cookies(response)
        if not is_success:
            call.tell(response)
        return response

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
                    head = _Head(request=built.request) if self._session is None else _for_aiohttp(built.request)
                    self._heads[path] = head
        return self._heads[path]


def _session_of(http: Any) -> tuple[Any, Any]:
    """Return the session of aiohttp over which an HTTP client sends, and what makes httpx's errors of aiohttp's.

    ``None`` where it sends otherwise, or with an account that httpx puts in.
    """
    transport: Any = getattr(http, "_transport", None)
    errors = getattr(import_module(type(transport).__module__), "map_aiohttp_exceptions", None)
    if errors is None or http.auth is not None:
        return None, None
    transport.client = transport.get_client()
    return transport.client, errors


def _for_aiohttp(request: Any) -> _Head:
    aiohttp, multidict, yarl = map(import_module, ("aiohttp", "multidict", "yarl"))
    limits = request.extensions["timeout"]
    seconds = {"sock_connect": limits["connect"], "sock_read": limits["read"], "connect": limits["pool"]}
    options = {"url": yarl.URL(str(request.url)), "timeout": aiohttp.ClientTimeout(**seconds), "allow_redirects": False}
    return _Head(request=request, headers=multidict.CIMultiDict(request.headers.items()), options=options)


def _is_json(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].endswith("json")


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
