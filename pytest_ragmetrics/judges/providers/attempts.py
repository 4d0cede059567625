"""One attempt of a request: bounded as a whole in time and in the size of its reply, and kept to its host.

The SDKs are given an HTTP client of their own making whose ``send`` keeps these bounds; retries, pauses and errors are
the SDK's. What is beyond a bound becomes a response that no SDK tries again, and its error is kept in the call.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from typing import Any, TypeAlias, TypeVar
from urllib.request import getproxies

from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.running import workers
from pytest_ragmetrics.judges.providers.limits import allowances
from pytest_ragmetrics.judges.transports.limiter import current_place
from pytest_ragmetrics.judges.transports.values import JudgeOutageError, JudgeUnavailableError, UnusableReplyError

T = TypeVar("T")
#: A key, or what is asked for one before every attempt; one that is not asynchronous in a thread.
ApiKey: TypeAlias = "str | Callable[[], str | Awaitable[str]]"

#: What the SDK gets in place of a key that is asked for: replaced in the headers of each attempt.
ASKED = "asked-for-before-each-attempt"
#: The most bytes of a reply with text.
MOST = 10_000_000
# Seconds that a connection is kept without a request, as between two slow tests.
_IDLE = 60.0
# The limiter bounds the requests; aiohttp would take no limit for one of 100 connections.
_CONNECTIONS = 100_000
# The ports of https and http, between which a host may move a request.
_PORTS = {"https": 443, "http": 80}
# The headers that say how a content was sent.
_OF_THE_STREAM = frozenset(("content-encoding", "content-length", "transfer-encoding"))
# What aiohttp and httpx call an address at which no server listens.
_REFUSED = frozenset(("ClientConnectorError", "ConnectError"))
# What httpx and aiohttp call a content that cannot be decompressed.
_UNDECODED = frozenset(("DecodingError", "ContentEncodingError"))


@dataclass(kw_only=True, slots=True, eq=False)
class Call:
    """What each attempt of a call may take, and how many there were.

    ``timeout`` is in seconds, ``most`` in bytes, ``None`` where there is no limit. ``key`` returns the key, ``tell``
    is called with each response that is no success. ``in_flight`` are the calls to one server whose attempts are under
    way. A ``steady`` call would be answered alike each time, so that after two time-outs without others in flight it is
    not tried again; one of a server that is ``missing`` so far, on this machine, not after two attempts to connect.
    ``final`` is why nothing more is tried.
    """

    timeout: float | None = None
    most: int | None = None
    key: Callable[[], Awaitable[str]] | None = None
    tell: Callable[[Any], object] = id
    steady: bool = False
    missing: bool = False
    in_flight: set[Call] = field(default_factory=set)
    final: RagMetricsError | None = None
    made: int = 0
    #: Whether other calls were in flight during the last attempt, and how many timed out without.
    is_crowded: bool = False
    alone: int = 0
    #: How many attempts found no connection.
    refused: int = 0

    def lose(self, error: BaseException) -> None:
        """Count an attempt that found no connection; raise ``JudgeOutageError`` if the next one would find none."""
        self.refused += type(error).__name__ in _REFUSED
        # A second attempt is made: a server may be starting.
        if self.missing and self.refused > 1:
            raise JudgeOutageError(str(error) or type(error).__name__) from None


#: The call that is made.
current: ContextVar[Call | None] = ContextVar("call", default=None)


def http_client(sdk: Any, url: str, *, account: tuple[str, str] | None = None) -> Any:
    """Return the HTTP client of an SDK for an address: on aiohttp where it is installed, else on httpx.

    On aiohttp a request takes 0.6 of the processor. A proxy has httpx: aiohttp knows no SOCKS proxies. Both read
    ``SSL_CERT_FILE``. ``account`` is sent instead of the key; the address is logged, and has none.
    """
    limits = type(sdk.DEFAULT_CONNECTION_LIMITS)(max_connections=_CONNECTIONS, keepalive_expiry=_IDLE)
    # Certificates take long to load: not at all without TLS.
    options = {"limits": limits, "verify": url.startswith("https:"), "event_hooks": {"response": [_stay]}}
    if not getproxies().keys() - {"no"}:
        try:
            return _bounded(sdk.DefaultAioHttpClient)(**options, auth=account)
        except RuntimeError:
            pass
    return _bounded(sdk.DefaultAsyncHttpxClient)(**options, auth=account)


def _bounded(base: Any) -> Any:
    class HttpClient(base):  # type: ignore[misc]  # one of the SDK's
        """A client of the SDK, of which every attempt passes :meth:`send`."""

        async def send(self, request: Any, **options: Any) -> Any:
            call, send = current.get() or Call(), super().send
            try:
                return await attempt(call, lambda: _responded(send, request, options, call), request)
            except RagMetricsError as error:
                call.final = error
                no_retry = {"x-should-retry": "false"}
                return _http(request).Response(HTTPStatus.NOT_IMPLEMENTED, headers=no_retry, request=request)

    return HttpClient


async def attempt(call: Call, make: Callable[[], Awaitable[T]], request: Any) -> T:
    """Return what ``make()`` does with a request of an HTTP library; raise an error of ours beyond the limits."""
    place = current_place.get()
    if place is not None:
        await place.attempt(timeout=call.timeout, is_first=not call.made)
    call.made += 1
    call.in_flight.add(call)
    call.is_crowded = False
    if len(call.in_flight) > 1 or workers() > 1:
        # Other workers of xdist may ask the same server.
        for each in call.in_flight:
            each.is_crowded = True
    try:
        return await within(call.timeout, make())
    except Exception as error:
        name = type(error).__name__
        # The HTTP library has the same limit, and may be the first to reach it.
        if call.timeout is not None and (isinstance(error, asyncio.TimeoutError) or name == "ReadTimeout"):
            if place is not None:
                place.timed_out(is_crowded=call.is_crowded)
            call.alone += not call.is_crowded
            # A second attempt is made: a server may load its model for the first.
            if call.steady and call.alone > 1:
                raise JudgeOutageError from None
            # One that the SDK knows, and tries again.
            raise _http(request).ReadTimeout(f"no answer within {call.timeout:g} s", request=request) from None
        if name == "TooManyRedirects":
            raise JudgeUnavailableError("redirects in a circle") from None
        # The SDK calls a connection that aiohttp loses a time-out, and knows not all of its errors.
        lost = error.__cause__ or error
        call.lose(lost)
        if type(lost).__module__.startswith("aiohttp.") and not isinstance(lost, asyncio.TimeoutError):
            # Some have an object in place of a message.
            message = "" if str(lost).startswith("<Raw") else str(lost)
            raise _http(request).ConnectError(message or type(lost).__name__, request=request) from lost
        raise
    finally:
        call.in_flight.discard(call)


async def within(seconds: float | None, waiting: Awaitable[T]) -> T:
    """Return what is awaited; raise ``asyncio.TimeoutError`` after a time."""
    if seconds is None:
        return await waiting
    if sys.version_info < (3, 11):
        return await asyncio.wait_for(waiting, seconds)
    # Unlike wait_for() in 3.11, this makes no task.
    async with asyncio.timeout(seconds):
        return await waiting


async def _stay(response: Any) -> None:
    """Refuse a redirect to another host; called by the client with each response before it is followed."""
    if not response.has_redirect_location:
        return
    here = response.request.url
    try:
        there = here.join(response.headers["location"])
    except Exception:  # noqa: BLE001 - the address is none; the HTTP library has its own error for it
        return
    if _origin(there) == _origin(here) or (there.host, there.scheme, _origin(here)[1]) == (here.host, "https", 80):
        return
    other = there.host if there.port is None else f"{there.host}:{there.port}"
    raise JudgeUnavailableError(f"redirects to {there.scheme}://{other}, where nothing is sent")


def _origin(url: Any) -> tuple[str, int | None]:
    return url.host, url.port or _PORTS.get(url.scheme)


def _http(request: Any) -> Any:
    """Return the HTTP library of a request."""
    return import_module(type(request).__module__.partition(".")[0])


async def _responded(send: Callable[..., Awaitable[Any]], request: Any, options: dict[str, Any], call: Call) -> Any:
    """Return the response to a request, read; ``send(request, **options)`` is that of an HTTP client."""
    if call.key is not None:
        key = await call.key()
        for name, value in tuple(request.headers.items()):
            if ASKED in value:
                request.headers[name] = value.replace(ASKED, key)
    if call.most is None or options.get("stream"):
        response = await send(request, **options)
    else:
        response = await send(request, **{**options, "stream": True})
        try:
            content = await _read(response, call.most)
        finally:
            await response.aclose()
        # aread() would have read any size; what it keeps is private.
        headers = [pair for pair in response.headers.multi_items() if pair[0].lower() not in _OF_THE_STREAM]
        response = type(response)(response.status_code, headers=headers, content=content, request=response.request)
    call.missing = False
    if (place := current_place.get()) is not None:
        place.hear(allowances(response.headers))
    if not response.is_success:
        call.tell(response)
    return response


async def _read(response: Any, most: int) -> bytes:
    """Return the content of an answer; raise ``UnusableReplyError`` for one of more bytes, and where it breaks off."""
    stated, found, size = response.headers.get("content-length", ""), [], 0
    if stated.isdecimal() and int(stated) > most:
        raise UnusableReplyError(f"sent a reply of {int(stated):,} bytes, of which at most {most:,} are read")
    try:
        async for part in response.aiter_bytes():
            found.append(part)
            size += len(part)
            if size > most:
                break
    except Exception as error:
        # One that is paid for: not to be asked for as often as a server that answers nothing.
        name = type(error).__name__
        if not response.is_success or "Timeout" in name:
            raise
        what = "cannot be decompressed" if name in _UNDECODED else "broke off"
        raise UnusableReplyError(f"sent a reply that {what} ({str(error) or name})") from None
    if size > most:
        raise UnusableReplyError(f"sent a reply of more than {most:,} bytes, which was read no further")
    return b"".join(found)
