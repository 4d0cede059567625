"""One attempt of a request: bounded as a whole in time and in the size of its reply, and kept to its host."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from typing import Any, NoReturn, TypeAlias, TypeVar

from pytest_ragmetrics.core.errors import JudgeError, RagMetricsError
from pytest_ragmetrics.core.running import workers
from pytest_ragmetrics.judges.transports.values import (
    JudgeOutageError,
    JudgeUnavailableError,
    UnusableReplyError,
    current_place,
)

T = TypeVar("T")
#: A key, or what is asked for one before every attempt; one that is not asynchronous in a thread.
ApiKey: TypeAlias = "str | Callable[[], str | Awaitable[str]]"

#: What the SDK gets in place of a key that is asked for: replaced in the headers of each attempt.
ASKED = "asked-for-before-each-attempt"
#: The most bytes of a reply with text.
MOST = 10_000_000
# The ports of https and http, between which a host may move a request.
_PORTS = {"https": 443, "http": 80}


def _ignore(_: Any) -> None:
    pass


class SentCalls:
    """The calls to one server whose attempts are under way."""

    def __init__(self) -> None:
        self._calls: set[Call] = set()

    @contextmanager
    def sent(self, call: Call) -> Iterator[None]:
        """Count a call among them; each is crowded that was there with another, also of another worker of xdist."""
        self._calls.add(call)
        call.is_crowded = False
        if len(self._calls) > 1 or workers() > 1:
            for each in self._calls:
                each.is_crowded = True
        try:
            yield
        finally:
            self._calls.discard(call)


@dataclass(kw_only=True, slots=True, eq=False)
class Call:
    """What each attempt of a call may take, and how many there were.

    ``timeout`` is in seconds, ``most`` in bytes, ``None`` where there is no limit. ``key`` returns the key, ``tell``
    is called with each response that is no success. A ``single`` call has one attempt; a ``steady`` one would be
    answered alike each time, so that after two time-outs without others ``in_flight`` it is not tried again.
    """

    timeout: float | None = None
    most: int | None = None
    key: Callable[[], Awaitable[str]] | None = None
    tell: Callable[[Any], None] = _ignore
    single: bool = False
    steady: bool = False
    in_flight: SentCalls = field(default_factory=SentCalls)
    made: int = 0
    #: Whether other calls were in flight during the last attempt, and how many timed out without.
    is_crowded: bool = False
    alone: int = 0

    async def put_key(self, headers: MutableMapping[str, str]) -> None:
        """Put the key in its place in headers, where it is asked for."""
        if self.key is not None:
            key = await self.key()
            for name, value in tuple(headers.items()):
                if ASKED in value:
                    headers[name] = value.replace(ASKED, key)


class FinalError(BaseException):
    """A failure after which nothing is tried again; no ``Exception``, for which an SDK would."""

    def __init__(self, error: RagMetricsError) -> None:
        super().__init__()
        self.error = error


#: The call that is made.
current: ContextVar[Call | None] = ContextVar("call", default=None)


async def attempt(make: Callable[[Call], Awaitable[T]], request: Any) -> T:
    """Return what ``make(call)`` does with a request of an HTTP library, within the limits of the current call.

    Raises ``FinalError`` beyond them.
    """
    call, place = current.get() or Call(), current_place.get()
    try:
        if place is not None:
            await place.attempt(timeout=call.timeout, is_first=not call.made)
    except JudgeError as error:
        raise FinalError(error) from None
    call.made += 1
    try:
        with call.in_flight.sent(call):
            return await within(call.timeout, make(call))
    except asyncio.TimeoutError:
        if place is not None:
            place.timed_out(is_crowded=call.is_crowded)
        call.alone += not call.is_crowded
        # A second attempt is made: a server may load its model for the first.
        if call.steady and call.alone > 1:
            raise FinalError(JudgeOutageError()) from None
        # One that the SDK knows, and tries again.
        raise library_of(request).ReadTimeout(f"no answer within {call.timeout:g} s", request=request) from None
    except Exception as error:
        if type(error).__name__ == "TooManyRedirects":
            raise FinalError(JudgeUnavailableError("redirects in a circle")) from None
        raise


def once() -> dict[str, int]:
    """Return the options of an SDK for the current call."""
    call = current.get()
    return {"max_retries": 0} if call is not None and call.single else {}


async def within(seconds: float | None, waiting: Awaitable[T]) -> T:
    """Return what is awaited; raise ``asyncio.TimeoutError`` after a time."""
    if seconds is None:
        return await waiting
    if sys.version_info < (3, 11):
        return await asyncio.wait_for(waiting, seconds)
    # Unlike wait_for() in 3.11, this makes no task.
    async with asyncio.timeout(seconds):
        return await waiting


async def asked_for(key: Callable[[], str | Awaitable[str]]) -> object:
    """Return what a function returns or a coroutine function, the former called in a thread."""
    call = getattr(key, "__call__", key)  # noqa: B004 - its own, to see whether it is asynchronous
    if inspect.iscoroutinefunction(key) or inspect.iscoroutinefunction(call):
        return await key()  # type: ignore[misc] # a coroutine
    given = await asyncio.to_thread(key)
    return await given if inspect.isawaitable(given) else given


async def stay(response: Any) -> None:
    """Raise ``FinalError`` for a redirect to another host; to be called with each response before it is followed."""
    if not response.has_redirect_location:
        return
    here = response.request.url
    try:
        there = here.join(response.headers["location"])
    except Exception:  # noqa: BLE001 - of any address that is none; the HTTP library has its own error for it
        return
    if _origin(there) == _origin(here) or (there.host, there.scheme, _origin(here)[1]) == (here.host, "https", 80):
        return
    other = there.host if there.port is None else f"{there.host}:{there.port}"
    raise FinalError(JudgeUnavailableError(f"redirects to {there.scheme}://{other}, where nothing is sent"))


def _origin(url: Any) -> tuple[str, int | None]:
    return url.host, url.port or _PORTS.get(url.scheme)


def library_of(request: Any) -> Any:
    """Return the HTTP library of a request."""
    return import_module(type(request).__module__.partition(".")[0])


async def responded(send: Callable[..., Awaitable[Any]], request: Any, options: dict[str, Any], call: Call) -> Any:
    """Return the response to a request, read; ``send(request, **options)`` is that of an HTTP client."""
    await call.put_key(request.headers)
    if call.most is None or options.get("stream"):
        response = await send(request, **options)
    else:
        response = await send(request, **{**options, "stream": True})
        try:
            content = await read(response.aiter_bytes(), response.headers, response.status_code, call.most)
        finally:
            await response.aclose()
        # aread() would have read any size; what it keeps is private.
        response = plain_response(request, response.status_code, response.headers.multi_items(), content)
    if not response.is_success:
        call.tell(response)
    return response


async def read(parts: AsyncIterable[bytes], headers: Mapping[str, str], status: int, most: int | None) -> bytes:
    """Return the content of an answer; raise ``FinalError`` for one of more bytes, and where it breaks off."""
    try:
        stated = headers.get("content-length", "")
        if most is not None and stated.isdecimal() and int(stated) > most:
            _refuse(f"sent a reply of {int(stated):,} bytes, of which at most {most:,} are read")
        found, size = [], 0
        async for part in parts:
            found.append(part)
            size += len(part)
            if most is not None and size > most:
                _refuse(f"sent a reply of more than {most:,} bytes, which was read no further")
    except Exception as error:
        # One that is paid for: not to be asked for as often as a server that answers nothing.
        if status >= HTTPStatus.MULTIPLE_CHOICES or "Timeout" in type(error).__name__:
            raise
        what = "cannot be decompressed" if type(error).__name__ in _UNDECODED else "broke off"
        raise FinalError(
            UnusableReplyError(f"sent a reply that {what} ({str(error) or type(error).__name__})")
        ) from None
    return b"".join(found)


def plain_response(request: Any, status: int, headers: Iterable[tuple[str, str]], content: bytes) -> Any:
    """Return the response of an HTTP library to its request, with content that is decompressed."""
    kept = [pair for pair in headers if pair[0].lower() not in _OF_THE_STREAM]
    return library_of(request).Response(status, headers=kept, content=content, request=request)


def _refuse(said: str) -> NoReturn:
    raise FinalError(UnusableReplyError(said))


#: The headers that say how a content was sent.
_OF_THE_STREAM = frozenset(("content-encoding", "content-length", "transfer-encoding"))
# Of httpx and aiohttp.
_UNDECODED = frozenset(("DecodingError", "ContentEncodingError"))
