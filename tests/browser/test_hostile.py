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
    ".id", ".metric", ".verdicts .reason", ".near dd", "pre", ".rest dt", ".rest dd", ".score .small",
    ".exchanges h4", ".exchanges pre",
)  # fmt: skip
_AROUND = (
    "footer dt",
    "footer dd",
    "footer li",
    ".gates h3",
    ".metrics th",
    "#metric",
    "#file",
    "#list .q",
    "#list bdi",
)


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
    report = Report(page=browser.new_page(viewport={"width": 1440, "height": 900}))
    report.go(f"{url}#tests")
    for row in report.page.locator("#list .row").all():
        row.click()
        report.unfold()
    for mark in report.page.locator(".response mark").all()[:20]:
        mark.hover()
        mark.click()
    for button in ("right", "Copy sample as JSON", "Copy command"):
        report.page.get_by_role("button", name=button).first.click()
    report.page.evaluate("document.querySelector('#filters details').open = true")
    report.page.locator("#metric").select_option(index=1)
    report.page.locator("#search").fill("<script>")
    report.page.keyboard.press("Enter")
    report.page.goto(f"{url}#overview")
    assert report.page.evaluate("window.pwned") is None
    assert report.page.locator("script:not([type])").count() == 1
    assert report.page.locator(_FOREIGN).count() == 0
    assert report.page.evaluate("[...document.links].every((link) => link.getAttribute('href').startsWith('#'))")
    report.page.close()
    assert asked == ["/report.html"]
    assert {request.partition("#")[0] for request in report.requests} == {url}
    assert report.complaints == []


def test_without_scripts_hostile_texts_are_texts_too(open_report: OpenReport) -> None:
    """The part of the page for readers without scripts has no elements of the texts and asks for nothing."""
    report = open_report(hostile, java_script_enabled=False)
    assert report.page.locator(".test").count() == 2 * len(HOSTILE)
    assert report.page.locator(_FOREIGN).count() == 0
    assert report.page.locator("svg:not([class])").count() == 0
    assert visible(HOSTILE[0]) in report.page.locator(".test .q").all_text_contents()[0]


def test_every_text_is_shown_as_text(open_report: OpenReport) -> None:
    """What was written is what is read, with escapes for what cannot be seen; also after it was unpacked."""
    report = open_report(hostile)
    around = {part: " ".join(" ".join(report.page.locator(part).all_text_contents()).split()) for part in _AROUND}
    for text in HOSTILE:
        shown = visible(text)
        words = " ".join(shown.split())
        test = report.opened(f"test_it[{shown}")
        report.unfold()
        assert test.locator(".response").inner_text().startswith(shown)
        assert test.locator(".context mark").first.inner_text() == shown
        for part in _PARTS:
            assert words in " ".join(" ".join(test.locator(part).all_text_contents()).split()), (text, part)
        assert [part for part, shown in around.items() if words not in shown] == []


def test_a_hostile_gate_is_shown_as_text(open_report: OpenReport) -> None:
    """A gate is opened by its link."""
    report = open_report(hostile, "#overview")
    for number, text in enumerate(HOSTILE):
        shown = " ".join(visible(text).split())
        report.page.locator(".gates h3 a").nth(number).click()
        assert shown in " ".join(report.page.locator("#test .score").inner_text().split())
        report.page.go_back()


@pytest.mark.parametrize("width", [390, 1440])
def test_hostile_texts_do_not_widen_the_page(open_report: OpenReport, width: int) -> None:
    """Words without a place to break are broken, and the page stays as wide as the screen in every view."""
    for make in (hostile, giant):
        report = open_report(make, viewport={"width": width, "height": 844})
        for row in report.page.locator("#list .row").all():
            assert report.page.evaluate("document.documentElement.scrollWidth") == width
            row.click()
            report.page.locator("#test .id").wait_for()
            report.page.evaluate(
                "document.querySelectorAll('#test details').forEach((it) => { it.open = it.className !== 'fold'; })"
            )
            assert report.page.evaluate("document.documentElement.scrollWidth") == width
            assert report.page.evaluate("document.querySelector('#pane').scrollWidth") <= width
            assert report.page.evaluate("document.querySelector('#pane').scrollHeight") < 60_000
            if width < 1100:
                report.page.locator("#to-list").click()
        report.page.goto(report.page.url.partition("#")[0] + "#overview")
        assert report.page.evaluate("document.documentElement.scrollWidth") == width


def test_a_line_of_a_megabyte_folds(open_report: OpenReport) -> None:
    """The whole line can be had."""
    test = open_report(giant).opened("one long line")
    assert len(test.locator(".response").text_content()) > 2_000_000


def test_the_policy_would_stop_what_escaping_missed(open_report: OpenReport) -> None:
    """A script or a style that got onto the page would not take effect, and markup cannot be set from text."""
    report = open_report(showcase)
    report.page.evaluate("""() => {
      const script = document.createElement("script");
      try { script.textContent = "window.pwned = 1"; } catch { /* refused even earlier */ }
      document.body.append(script);
      const style = document.createElement("style");
      style.textContent = "h2 { display: none }";
      document.head.append(style);
      try { document.body.insertAdjacentHTML("beforeend", "<p onclick>"); window.pwned = 2; } catch { /* refused */ }
    }""")
    assert report.page.evaluate("window.pwned") is None
    assert report.page.locator("#test h2").is_visible()
    assert report.complaints
    report.complaints.clear()


@pytest.mark.parametrize(
    ("packed", "refused"),
    [
        ("<img src=x>", "no tag of this page"),
        ("<script></script>", "not an element of this page: script"),
        ('<p onclick="pwn()"></p>', "not an attribute of this page: onclick"),
        ('<a href="javascript:pwn()"></a>', "not an attribute of this page: href"),
        ('<a href="http://example.org"></a>', "not an attribute of this page: href"),
        ('<input type="image">', "not an attribute of this page: type"),
    ],
)
def test_the_script_builds_nothing_but_the_elements_of_the_page(
    open_report: OpenReport, monkeypatch: pytest.MonkeyPatch, packed: str, refused: str
) -> None:
    """A text that was packed without being escaped is an error, and no element."""
    from markupsafe import Markup

    from pytest_ragmetrics.report import html

    unescaped = Markup(packed)
    monkeypatch.setattr(
        html, "visible", lambda text: unescaped if text == "No quoted spans found in response" else text
    )
    report = open_report(showcase())
    with report.page.expect_event("pageerror", lambda error: refused in str(error)):
        report.row("test_no_quotes").click()
    assert report.page.locator("#test img, #test [onclick]").count() == 0
    report.complaints.clear()
