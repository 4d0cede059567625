"""Texts that are out to do something: a report shows them and does nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from pytest_ragmetrics.report.html import visible
from tests.browser.conftest import OpenReport, Report, page_of
from tests.documents import HOSTILE, giant, hostile
from tests.showcase import showcase

_FOREIGN = "iframe, base, img, link, object, embed, textarea, form[action], [onload], [onerror], [style]"
#: Where every text of a hostile test is shown whole, within the test and on the page around it.
_PARTS = (
    ".name", ".metric", ".verdicts .reason", ".near dd", "pre", ".rest dt", ".rest dd", ".score .small",
    ".exchanges h4", ".exchanges pre", ".score.failed p",
)  # fmt: skip
_AROUND = ("footer dt", "footer dd", "footer li", ".gates h3", ".metrics th", "#metric", "#file")


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """Serve the hostile report; returns its address and the list of paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page_of(hostile).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/report.html", asked
        http.shutdown()
        thread.join()


def test_nothing_runs_and_nothing_leaves_the_page(browser: Browser, server: tuple[str, list[str]]) -> None:
    """Opened, hovered, clicked and searched, the report runs no text, and asks for itself and nothing else."""
    url, asked = server
    report = Report(page=browser.new_page())
    report.go(url)
    report.open_all()
    for link in report.page.locator(".response mark a").all()[:20]:
        link.hover()
        link.click()
    report.page.locator("#metric").select_option(index=1)
    report.page.locator("#search").fill("<script>")
    report.page.keyboard.press("Enter")
    assert report.page.evaluate("window.pwned") is None
    assert report.page.locator("script:not([type])").count() == 1
    assert report.page.locator(_FOREIGN).count() == 0
    assert report.page.evaluate("[...document.links].every((link) => link.getAttribute('href').startsWith('#'))")
    report.page.close()
    assert asked == ["/report.html"]
    assert report.requests == [url]
    assert report.complaints == []


def test_without_scripts_hostile_texts_are_texts_too(open_report: OpenReport) -> None:
    """The part of the page for readers without scripts has no elements of the texts and asks for nothing."""
    report = open_report(hostile, java_script_enabled=False)
    assert report.page.locator(".test").count() == len(HOSTILE)
    assert report.page.locator(_FOREIGN).count() == 0
    assert report.page.locator("svg:not(.histogram, .interval, .dots)").count() == 0
    assert visible(HOSTILE[0]) in report.page.locator(".test .name").first.inner_text()


def test_every_text_is_shown_as_text(open_report: OpenReport) -> None:
    """What was written is what is read, with escapes for what cannot be seen; also after it was unpacked."""
    report = open_report(hostile)
    report.open_all()
    around = {part: " ".join(" ".join(report.page.locator(part).all_text_contents()).split()) for part in _AROUND}
    for number, text in enumerate(HOSTILE):
        test, shown = report.page.locator(".test").nth(number), visible(text)
        assert test.locator(".text").first.inner_text() == shown
        assert test.locator(".context mark").first.inner_text() == shown
        words = " ".join(shown.split())
        for part in _PARTS:
            assert words in " ".join(" ".join(test.locator(part).all_inner_texts()).split()), (text, part)
        assert [part for part, shown in around.items() if words not in shown] == []


def test_hostile_texts_do_not_widen_the_page(open_report: OpenReport) -> None:
    """Words without a place to break are broken."""
    report = open_report(hostile)
    report.open_all()
    for width in (390, 1440):
        report.page.set_viewport_size({"width": width, "height": 844})
        assert report.page.evaluate("document.documentElement.scrollWidth") == width


def test_a_line_of_a_megabyte_folds(open_report: OpenReport) -> None:
    """The page stays as wide as the screen and short enough to scroll, and the whole line can be had."""
    report = open_report(giant)
    test = report.opened("one long line")
    for width in (390, 1440):
        report.page.set_viewport_size({"width": width, "height": 844})
        assert report.page.evaluate("document.documentElement.scrollWidth") == width
        assert report.page.evaluate("document.documentElement.scrollHeight") < 60_000
    assert len(test.locator(".text").first.text_content()) > 1_000_000


def test_the_policy_would_stop_what_escaping_missed(open_report: OpenReport) -> None:
    """A script or a style that got onto the page would not take effect, and markup cannot be set from text."""
    report = open_report(showcase)
    report.page.evaluate("""() => {
      const script = document.createElement("script");
      try { script.textContent = "window.pwned = 1"; } catch { /* refused even earlier */ }
      document.body.append(script);
      const style = document.createElement("style");
      style.textContent = "h1 { display: none }";
      document.head.append(style);
      try { document.body.insertAdjacentHTML("beforeend", "<p onclick>"); window.pwned = 2; } catch { /* refused */ }
    }""")
    assert report.page.evaluate("window.pwned") is None
    assert report.page.locator("h1").is_visible()
    assert report.complaints
    report.complaints.clear()


@pytest.mark.parametrize(
    ("packed", "refused"),
    [
        ("<img src=x>", "no tag of this page"),
        ("<script></script>", "not an element of this page: script"),
        ('<p onclick="pwn()"></p>', "not an attribute of this page: onclick"),
        ('<a href="javascript:pwn()"></a>', "not an attribute of this page: href"),
    ],
)
def test_the_script_builds_nothing_but_the_elements_of_the_page(
    open_report: OpenReport, monkeypatch: pytest.MonkeyPatch, packed: str, refused: str
) -> None:
    """A text that was packed without being escaped is an error, and no element."""
    from markupsafe import Markup

    from pytest_ragmetrics.report import html

    unescaped = Markup(packed)  # noqa: S704 - what the test is about
    monkeypatch.setattr(html, "visible", lambda text: unescaped if text == "Can I keep hens?" else text)
    report = open_report(showcase())
    with report.page.expect_event("pageerror", lambda error: refused in str(error)):
        report.test("test_no_quotes").locator("summary").first.click()
    assert report.page.locator(".test .body img, .test .body [onclick]").count() == 0
    report.complaints.clear()
