"""Texts that are out to do something: a report shows them and does nothing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from playwright.sync_api import Browser

from pytest_ragmetrics.report.page import visible
from pytest_ragmetrics.runs.records import Document
from pytest_ragmetrics.runs.wording.figures import named
from tests.browser.conftest import OpenReport, Report, page_of
from tests.documents import HOSTILE, document, giant, hostile, record, row
from tests.showcase import showcase

#: A phone, and a screen on which list and test stand side by side.
_VIEWPORTS: list[Any] = [{"width": 390, "height": 844}, {"width": 1440, "height": 844}]
_OPEN = "document.querySelectorAll('#test details').forEach((it) => { it.open = it.className !== 'fold'; })"
_SIZES = (
    "[document.documentElement.scrollWidth, document.querySelector('#pane').scrollWidth, "
    "document.querySelector('#pane').scrollHeight]"
)
_FOREIGN = "iframe, base, img, link, object, embed, textarea, form[action], [onload], [onerror], [style]"
#: Where every text of a hostile test is shown whole, within the test and on the page around it.
_PARTS = (
    *(".id", ".metric", ".verdicts .reason", ".near dd", "pre", ".rest dt", ".rest dd", ".score .small"),
    *(".exchanges h4", ".exchanges pre"),
)
_AROUND = (
    *("footer dt", "footer dd", "footer li", ".gates h3", ".metrics th", "#metric", "#file"),
    *("#list .q", "#list bdi"),
)


def test_nothing_runs_and_nothing_leaves_the_page(browser: Browser) -> None:
    url = "http://report.example/report.html"
    report = Report(page=browser.new_page(viewport={"width": 1440, "height": 900}))
    report.page.route("**/*", lambda route: route.fulfill(body=page_of(hostile), content_type="text/html"))
    report.go(f"{url}#tests")
    for each in report.page.locator("#list .row").all():
        each.click()
        report.unfold()
    for mark in report.page.locator(".response mark").all()[:6]:
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
    assert [report.page.locator(each).count() for each in ("script:not([type])", _FOREIGN)] == [1, 0]
    assert report.page.evaluate("[...document.links].every((link) => link.getAttribute('href').startsWith('#'))")
    report.page.close()
    assert ([request.partition("#")[0] for request in report.requests], report.complaints) == ([url], [])


def test_without_scripts_hostile_texts_are_texts_too(open_report: OpenReport) -> None:
    report = open_report(hostile, java_script_enabled=False)
    counts = [report.page.locator(each).count() for each in (".test", _FOREIGN, "svg:not([class])")]
    assert counts == [2 * len(HOSTILE), 0, 0]
    assert visible(HOSTILE[0]) in report.page.locator(".test .q").all_text_contents()[0]


def test_every_text_is_shown_as_text(open_report: OpenReport) -> None:
    report = open_report(hostile)
    around = read(report.page, _AROUND)
    for text in HOSTILE:
        shown = visible(text)
        words = " ".join(shown.split())
        test = report.opened(f"test_it[{shown}")
        report.unfold()
        assert test.locator(".response").inner_text().startswith(shown)
        assert test.locator(".context mark").first.inner_text() == shown
        assert [part for part, shown in read(report.page, _PARTS, "#test ").items() if words not in shown] == [], text
        assert [part for part, shown in around.items() if words not in shown] == []


def read(page: Any, parts: tuple[str, ...], within: str = "") -> dict[str, str]:
    """Return the words of all elements of each kind."""
    texts = "parts => parts.map(part => [...document.querySelectorAll(part)].map(it => it.textContent).join(' '))"
    found = page.evaluate(texts, [within + part for part in parts])
    return {part: " ".join(text.split()) for part, text in zip(parts, found, strict=True)}


def test_a_hostile_gate_is_shown_as_text(open_report: OpenReport) -> None:
    report = open_report(hostile, "#overview")
    for number, text in enumerate(HOSTILE):
        report.page.locator(".gates h3 a").nth(number).click()
        assert f"mean {visible(named(text))} 0.830" in report.page.locator("#test .score").inner_text()
        report.page.go_back()


def test_hostile_texts_do_not_widen_the_page(open_report: OpenReport) -> None:
    for make in (hostile, giant):
        report = open_report(make, "#overview", viewport=_VIEWPORTS[0])
        page = report.page
        for view, viewport in itertools.product(("overview", "tests"), _VIEWPORTS):
            page.evaluate(f"location.hash = '{view}'")
            page.set_viewport_size(viewport)
            assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        for each in page.locator("#list .row").all():
            each.click()
            page.locator("#test .id").wait_for()
            page.evaluate(_OPEN)
            # The next row is clicked where list and test stand side by side.
            for viewport in _VIEWPORTS:
                page.set_viewport_size(viewport)
                width, pane, height = page.evaluate(_SIZES)
                assert pane <= width == viewport["width"]
                assert height < 60_000
        if make is giant:
            # The whole line can be had.
            assert len(page.locator("#test .response").text_content() or "") > 2_000_000


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


REFUSED = {
    "<img src=x>": "no tag of this page",
    "<script></script>": "not an element of this page: script",
    '<p onclick="pwn()"></p>': "not an attribute of this page: onclick",
    '<a href="javascript:pwn()"></a>': "not an attribute of this page: href",
    '<a href="http://example.org"></a>': "not an attribute of this page: href",
    '<input type="image">': "not an attribute of this page: type",
}


def test_the_script_builds_nothing_but_the_elements_of_the_page(
    open_report: OpenReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that was packed without being escaped is an error, and no element."""
    from markupsafe import Markup

    from pytest_ragmetrics.report import page as html

    def unescaped_reasons() -> Document:
        return document(*(row(f"test_{n}.", record(reason=packed)) for n, packed in enumerate(REFUSED)))

    monkeypatch.setattr(html, "visible", lambda text: Markup(text) if text in REFUSED else text)
    report = open_report(unescaped_reasons, "#overview")
    for number, refused in enumerate(REFUSED.values()):
        with report.page.expect_event("pageerror", lambda error, refused=refused: refused in str(error)):
            report.page.evaluate(f"location.hash = 'tests/tests/test_assistant.py::test_{number}.'")
        assert report.page.locator("#test img, #test [onclick]").count() == 0
    report.complaints.clear()
