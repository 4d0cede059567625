"""Connections of both HTTP clients: few for few requests, many for many, and what is said of those that fail."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import socket
import ssl
import struct
import weakref
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import pytest

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.providers.addresses import is_here
from pytest_ragmetrics.judges.providers.attempts import http_client
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.values import JudgeOutageError
from tests.asking import BOTH, KEY, ask, judge_at, use
from tests.fake_openai import FakeOpenAI
from tests.fake_server import FakeServer

pytestmark = pytest.mark.usefixtures("_both_clients", "_short_pauses")
CLAIMS = ListClaims(text="It climbs.")


@pytest.mark.parametrize(("together", "rounds"), [(1, 3), (101, 1)])
def test_as_many_connections_as_requests(together: int, rounds: int) -> None:
    """One for requests after one another; the limiter bounds the others, not a pool: aiohttp's has 100."""
    with FakeOpenAI(waves=[together] * rounds) as server:
        judge = judge_at(server)

        async def many() -> None:
            await asyncio.gather(*(judge.complete(judge.request(CLAIMS, vote=n)) for n in range(together)))

        use(judge, *(many() for _ in range(rounds)))
        assert (server.calls, server.in_flight_max, server.connections) == (rounds * together, together, together)


@BOTH
@pytest.mark.parametrize(("url", "checked"), [("https://judge.test/v1", True), ("http://judge.test/v1", False)])
def test_certificates_are_checked_where_there_are_some(kind: str, url: str, checked: bool) -> None:
    transport = http_client(import_module(kind), url)._transport
    context: ssl.SSLContext = getattr(transport, "ssl_context", None) or transport._pool._ssl_context
    wanted = (ssl.CERT_REQUIRED, True) if checked else (ssl.CERT_NONE, False)
    assert (context.verify_mode, context.check_hostname) == wanted


@dataclass(kw_only=True)
class Raw(FakeServer):
    """Answers each request with the next of these bytes, the last as often as asked, and closes the connection."""

    contents: list[bytes]

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readuntil(b"\r\n\r\n")
        if self.contents == [_RESET]:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        writer.write(self.contents.pop(0) if len(self.contents) > 1 else self.contents[0])
        return False


_RESET = b"reset the connection"
_SSH = b"SSH-2.0-OpenSSH_9.6\r\n\r\n"
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_TEXT = '{"claims": ["It climbs."]}'
_REPLY = json.dumps({"choices": [{"message": {"content": _TEXT}}], "content": [{"type": "text", "text": _TEXT}]})
_GOOD = _OK + f"Content-Length: {len(_REPLY)}\r\n\r\n{_REPLY}".encode()
_LOST = {
    "nothing": b"",
    "an error without a message": _RESET,
    "another protocol": _SSH,
    "half a head": _OK[:20],
    "an impossible length": _OK + b"Content-Length: many\r\n\r\n",
    "an impossible header": _OK + b"A b\x01: 1\r\nContent-Length: 0\r\n\r\n",
}


@BOTH
@pytest.mark.parametrize("name", _LOST)
def test_a_lost_connection_is_no_timeout(kind: str, name: str) -> None:
    with Raw(contents=[_LOST[name]]) as server:
        judge = judge_at(server, kind, base_url=f"{server.base_url}?token=t0ken")
        with pytest.raises(JudgeOutageError) as failed:
            ask(judge, CLAIMS)
    message = str(failed.value)
    assert f"{judge.name}: {server.base_url} " in message
    assert re.search(rf" \([\w\[].+\); start the server, or check the network and {judge.vendor.url_variable}", message)
    assert not any(hidden in message for hidden in ("no answer within", "t0ken", KEY))


@BOTH
def test_what_is_not_http_is_asked_again(kind: str) -> None:
    """As often as a lost connection, also where aiohttp has an error that OpenAI's SDK does not know."""
    with Raw(contents=[_SSH, _GOOD]) as server:
        assert ask(judge_at(server, kind, retries=1), CLAIMS)[0].answer == ("It climbs.",)
    with Raw(contents=[_SSH]) as server:
        judge = judge_at(server, kind, retries=1)
        with pytest.raises(JudgeOutageError, match=r"cannot be reached, after 1 retry \("):
            ask(judge, CLAIMS)
        with pytest.raises(JudgeOutageError, match=r"cannot be reached \("):
            use(judge, judge.complete(replace(judge.request(CLAIMS), is_single=True)))


@BOTH
def test_a_server_here_that_never_answered_is_tried_twice(kind: str) -> None:
    """It is not started; one that answered starts again, and one elsewhere may be out of reach for a moment."""
    with Raw(contents=[_GOOD]) as server:
        known = judge_at(server, kind, retries=3)
        ask(known, CLAIMS)
    never = judge_at(server, kind, retries=3)
    elsewhere = judge_at(server, kind, retries=3)
    elsewhere._connection._is_missing = is_here("http://10.0.0.7/v1")
    for judge, tried in ((known, "3 retries"), (never, "1 retry"), (elsewhere, "3 retries")):
        with pytest.raises(
            JudgeOutageError, match=rf"{server.port}\S* cannot be reached, after {tried} \(.+; start the"
        ):
            ask(judge, CLAIMS)


@pytest.mark.parametrize("closed", [True, False])
def test_a_client_ends_with_the_loop(caplog: pytest.LogCaptureFixture, closed: bool) -> None:
    async def once(judge: Judge) -> None:
        await judge.ask(CLAIMS)
        if closed:
            await judge.aclose()

    with FakeOpenAI() as server:
        judge = judge_at(server)
        connection = weakref.ref(judge._connection)
        loop.run(once(judge))
        del judge
        gc.collect()
        assert (connection() is None) is closed
        loop.stop()
        gc.collect()
    assert (connection(), caplog.messages) == (None, [])


def test_what_is_none_of_the_provider_keeps_its_cause() -> None:
    async def send(*_: Any) -> None:
        raise RuntimeError("no request") from KeyError("claims")

    with FakeOpenAI() as server:
        judge = judge_at(server)
        with pytest.raises(RuntimeError) as raised:
            use(judge, judge.reach(send))
    assert isinstance(raised.value.__cause__, KeyError)
