"""Many connections to one provider without going through all of them for every request.

A pool of the HTTP library asks the system about each of its idle connections whenever a request begins or ends. With
dozens of requests in flight that is a fifth of all the work; a few connections in each of several pools are not.
"""

from __future__ import annotations

from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

if TYPE_CHECKING:
    from typing_extensions import Self

# Requests in flight in one pool.
_POOL = 4
# Seconds that a connection is kept without a request, as between two slow tests.
_IDLE = 60.0


def pooled_transport(sdk: Any, *, secure: bool) -> Any:
    """Return a transport of several pools, or ``None`` where there is a proxy, which is the client's business.

    ``sdk`` is built on httpx, under one name or another; ``secure`` says whether the address is an https one.
    """
    httpx = import_module(sdk.DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0])
    return None if getproxies() else _Pools(httpx, secure=secure)


class _Pools:
    """Sends a request through the first pool that is not busy, so that few in flight need few connections."""

    def __init__(self, httpx: Any, *, secure: bool) -> None:
        self._httpx = httpx
        self._pools: list[Any] = []
        self._busy: list[int] = []
        # To load the certificates takes a while: once is enough, and in the clear there are none.
        self._verify = httpx.create_ssl_context() if secure else False
        self._limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=_IDLE)

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request and return the response, whose body is still to be read."""
        number = next((number for number, busy in enumerate(self._busy) if busy < _POOL), len(self._busy))
        if number == len(self._busy):
            self._open()
        self._busy[number] += 1
        try:
            return await self._pools[number].handle_async_request(request)
        finally:
            self._busy[number] -= 1

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await pool.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _open(self) -> None:
        self._pools.append(self._httpx.AsyncHTTPTransport(verify=self._verify, limits=self._limits))
        self._busy.append(0)
