"""The password of an address or of a proxy is sent where it belongs, and shown nowhere."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from dataclasses import dataclass

import pytest

from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.judges.judge import PromptedJudge
from pytest_ragmetrics.judges.providers.addresses import secrets_of, shown_address, split_account, without
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims
from tests.asking import use
from tests.fake_server import FakeServer, Recorded, Response

PASSWORD = "hunt3r@two"
QUOTED = "hunt3r%40two"
IN_HEADER = base64.b64encode(f"joe:{PASSWORD}".encode()).decode()


@dataclass(kw_only=True)
class Echoing(FakeServer):
    """Sends back what was sent: in an error, as the reply of a model (200) or as what is none (202)."""

    status: int

    async def respond(self, request: Recorded) -> Response:
        sent = [request.headers.get(name, "") for name in ("authorization", "proxy-authorization")]
        said = " ".join([*sent, *(base64.b64decode(each[6:]).decode() for each in sent if each[:5] == "Basic")])
        message = {"role": "assistant", "content": json.dumps({"claims": [said]})}
        bodies = {
            200: {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]},
            202: {"data": [{"pad": "x" * 90, "sent": said}]},
            400: {"error": {"message": said}},
        }
        return Response(status=self.status, raw=json.dumps(bodies[self.status]).encode())


def judge(url: str, key: str = "sk-key0") -> OpenAIJudge:
    return OpenAIJudge("fake", base_url=url, api_key=key, retries=0)


def outcome(judge: PromptedJudge) -> str:
    try:
        return str(use(judge, judge.complete(judge.request(ListClaims(text="It hums."))))[0].text)
    except RagMetricsError as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True, compact=True).format())


@pytest.mark.parametrize("status", [200, 202, 400])
@pytest.mark.parametrize("place", ["address", "proxy"])
@pytest.mark.usefixtures("_both_clients")
def test_a_server_that_echoes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int, place: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with Echoing(status=status) as server:
        url = server.root_url.replace("//", f"//joe:{QUOTED}@")
        if place == "proxy":
            monkeypatch.setenv("http_proxy", url)
        shown = outcome(judge(url if place == "address" else "http://example.test/v1")) + caplog.text
    secrets = (PASSWORD, QUOTED, IN_HEADER, *(["sk-key0"] if status == 400 else []))
    assert [text for text in ("Basic ***", "joe:***", *secrets) if text in shown] == ["Basic ***", "joe:***"]


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(("key", "is_word"), [("Kaffee-Kanne-n7-x", False), ("gemma-3-it", True), ("k" * 16, True)])
def test_a_server_that_echoes_the_key(status: int, key: str, is_word: bool) -> None:
    with Echoing(status=status) as server:
        assert (key in outcome(judge(server.root_url, key))) == (is_word and status == 200)


@pytest.mark.parametrize("proxy", ["ftp://joe:hunt3r%40two@host", "http://joe:hunt3r%40two@host:port", "socks5://h:1"])
def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    shown = outcome(judge("http://127.0.0.1:9"))
    assert "JudgeNotConfiguredError: openai:fake: no connection to http://127.0.0.1:9 can be made (" in shown
    assert ("the proxies" in shown, "hunt3r" in shown) == (True, False)


@pytest.mark.parametrize(
    ("url", "without", "shown", "account"),
    [
        *((plain, plain, plain, None) for plain in ("http://h/v1", "http://h:80")),
        ("http://h/@cf/v1?a=b@c", "http://h/@cf/v1?a=b@c", "http://h/@cf/v1", None),
        ("http://joe@h:80/v1", "http://h:80/v1", "http://***@h:80/v1", ("joe", "")),
        ("https://joe:pass@h/v1?t=1", "https://h/v1?t=1", "https://***@h/v1", ("joe", "pass")),
        ("http://joe:p@ss@h/@cf", "http://h/@cf", "http://***@h/@cf", ("joe", "p@ss")),
        ("http://joe:p/s?s#@h/v1", "http://h/v1", "http://***@h/v1", ("joe", "p/s?s#")),
        ("joe:pass@h/v1", "h/v1", "***@h/v1", ("joe", "pass")),
        ("http://j%40e:%E2%82%AC@h", "http://h", "http://***@h", ("j@e", "€")),
    ],
)
def test_the_account_of_an_address(url: str, without: str, shown: str, account: tuple[str, str] | None) -> None:
    """It ends at the last sign before the host, also in a password that was not quoted; a port begins none."""
    assert (split_account(url), shown_address(url)) == ((without, account), shown)


def test_the_forms_of_a_password() -> None:
    """As it is, quoted, and in a header; a short one would be found in words."""
    assert {PASSWORD, QUOTED, IN_HEADER} <= set(secrets_of([f"http://joe:{QUOTED}@host"]))
    assert secrets_of(["http://host", "http://joe:of@host"]) == [base64.b64encode(b"joe:of").decode()]


@pytest.mark.parametrize(
    ("key", "said", "shown"),
    [
        ("x", "extra text: max 8 exits, fix it: the key x", "extra text: max 8 exits, fix it: the key ***"),
        ("ollama", "ollamas run; wrong key: ollama.", "ollamas run; wrong key: ***."),
        ("none", "nonetheless none", "nonetheless ***"),
        ("k\u00f6", "K\u00f6ln k\u00f6nnte; key=k\u00f6", "K\u00f6ln k\u00f6nnte; key=***"),
        ("a.b", "aXb a.b", "aXb ***"),
        *(("of-7-in", "xof-7-inx of-7-in", "xof-7-inx ***"), ("of-8-inx", "xof-8-inxx of-8-inx", "x***x ***")),
        ("sk-0123456789abcdef", "Bearersk-0123456789abcdefX", "Bearer***X"),
        ("token-123456", "token-1234567 and mytoken-123456", "***7 and my***"),
    ],
)
def test_a_short_key_is_masked_as_a_word_of_its_own(key: str, said: str, shown: str) -> None:
    assert without({"said": [said]}, [key]) == {"said": [shown]}
