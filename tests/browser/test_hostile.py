"""Texts that are out to do something: a report shows them and does nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from pytest_ragmetrics.report.html import render_html
from pytest_ragmetrics.report.page.visible import visible
from tests.browser.conftest import OpenReport, Report
from tests.documents import HOSTILE, giant, hostile
from tests.showcase import showcase


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """Serve the hostile report; returns its address and the list of paths that were asked for."""
    asked: list[str] = []
    body = render_html(hostile()).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/report.html", asked
        http.shutdown()
        thread.join()


def handle(report: Report) -> None:
    """Do what a reader does: open, hover, click, search."""
    report.open_all()
    for link in report.page.locator(".response mark a").all()[:20]:
        link.hover()
        link.click()
    report.page.locator("#metric").select_option(index=1)
    report.page.locator("#search").fill("<script>")
    report.page.keyboard.press("Enter")


def test_nothing_hostile_runs(open_report: OpenReport) -> None:
    """No script of a text runs, no dialog opens, nothing is blocked because nothing is tried."""
    report = open_report(hostile())
    handle(report)
    assert report.page.evaluate("window.pwned") is None
    assert report.page.locator("script:not([type])").count() == 1
    assert (
        report.page.locator(
            "iframe, base, img, link, object, embed, form[action], [onload], [onerror], [style]"
        ).count()
        == 0
    )
    assert report.page.evaluate("[...document.links].every((link) => link.getAttribute('href').startsWith('#'))")


def test_nothing_leaves_the_page(browser: Browser, server: tuple[str, list[str]]) -> None:
    """Served over HTTP the report asks for itself and for nothing else, not even for an icon."""
    url, asked = server
    page = browser.new_page()
    report = Report(page=page)
    report.watch()
    page.goto(url)
    handle(report)
    page.close()
    assert asked == ["/report.html"]
    assert report.requests == [url]
    assert report.complaints == []


def test_without_scripts_hostile_texts_are_texts_too(open_report: OpenReport) -> None:
    """What stands on the page for readers without scripts makes no elements and asks for nothing."""
    report = open_report(hostile(), java_script_enabled=False)
    assert report.page.locator(".test").count() == len(HOSTILE)
    assert report.page.locator("iframe, base, img, link, object, embed, textarea, form[action]").count() == 0
    assert report.page.locator("svg:not(.histogram, .interval, .dots)").count() == 0
    assert visible(HOSTILE[0]) in report.page.locator(".test .name").first.inner_text()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_every_text_is_shown_as_text(open_report: OpenReport, text: str) -> None:
    """What was written is what is read, with escapes for what cannot be seen."""
    report = open_report(hostile())
    report.open_all()
    test = report.page.locator(".test").nth(HOSTILE.index(text))
    shown = visible(text)
    assert test.locator(".text").first.inner_text() == shown
    assert test.locator(".context mark").first.inner_text() == shown
    for part in (
        ".name", ".metric", ".findings .reason", ".near dd", "pre", ".rest dt", ".rest dd", ".score .small",
        ".exchanges h4", ".exchanges pre", ".score.failed p",
    ):  # fmt: skip
        assert " ".join(shown.split()) in " ".join(" ".join(test.locator(part).all_inner_texts()).split())
    for part in ("footer dt", "footer dd", "footer li", ".gates th", ".metrics th", "#metric", "#file"):
        told = " ".join(" ".join(report.page.locator(part).all_text_contents()).split())
        assert " ".join(shown.split()) in told, part


@pytest.mark.parametrize("width", [390, 1440])
def test_hostile_texts_do_not_widen_the_page(open_report: OpenReport, width: int) -> None:
    """Words without a place to break are broken."""
    report = open_report(hostile(), viewport={"width": width, "height": 844})
    report.open_all()
    assert report.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", [390, 1440])
def test_a_line_of_a_megabyte_folds(open_report: OpenReport, width: int) -> None:
    """The page stays as wide as the screen and short enough to scroll, and the whole line can be had."""
    report = open_report(giant(), viewport={"width": width, "height": 844})
    test = report.opened("one long line")
    assert report.page.evaluate("document.documentElement.scrollWidth") == width
    assert report.page.evaluate("document.documentElement.scrollHeight") < 60_000
    assert len(test.locator(".text").first.text_content()) > 1_000_000


def test_the_policy_would_stop_what_escaping_missed(open_report: OpenReport) -> None:
    """A script or a style that got onto the page would not take effect, and markup cannot be set from text."""
    report = open_report(showcase())
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
