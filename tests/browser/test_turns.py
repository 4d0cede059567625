"""Conversations in the browser: the strip of turns, contexts of earlier turns, the whole; on any screen and paper."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import OpenReport, check_views
from tests.documents import FILE
from tests.talk import LONG, talk

SECOND = f"#tests/{FILE}::test_row[pump-t2]"
WHOLE = f"#tests/{FILE}::test_row[pump]"


def test_the_strip_leads_through_the_conversation(open_report: OpenReport) -> None:
    """Each turn leads to its test, by mouse and by keys, and back; what is not scored is no link."""
    report = open_report(talk, SECOND)
    strip = report.showing("pump-t2").locator(".turns > li")
    texts = [" ".join(text.split()) for text in strip.all_inner_texts()]
    assert texts[0].startswith("turn 1 ✗ 0.00 I bought my pump")
    assert texts[1:] == ["turn 2 ✗ 0.67 And the KX-13, compared?", "turn 3 – ありがとう", "turn 4 Bye", "whole ✗ 0.50"]
    assert strip.nth(1).get_attribute("aria-current") == "true"
    assert strip.locator("a").count() == 3
    strip.nth(0).locator("a").focus()
    report.page.keyboard.press("Enter")
    report.showing("pump-t1")
    assert report.page.evaluate("document.activeElement.tagName") == "H2"
    report.page.go_back()
    report.showing("pump-t2")
    strip.last.locator("a").click()
    report.showing("test_row[pump]")
    expect(report.page.locator("#test .turns .current")).to_contain_text("whole")


def test_turns_in_one_test_are_scrolled_to(open_report: OpenReport) -> None:
    report = open_report(talk, f"#tests/{FILE}::test_talk", viewport={"width": 1440, "height": 500})
    test = report.showing("test_talk")
    test.locator(".turns a").nth(1).click()
    heading = test.locator(".sample h3", has_text="Turn 2").first
    assert heading.evaluate("e => e === document.activeElement")
    assert heading.bounding_box()["y"] < 120
    assert report.page.evaluate("document.documentElement.scrollTop") == 0


def test_evidence_of_an_earlier_turn_unfolds_its_context(open_report: OpenReport) -> None:
    report = open_report(talk, SECOND)
    test = report.showing("pump-t2")
    assert test.locator(".earlier > summary").inner_text() == "2 contexts of earlier turns"
    assert not test.locator(".earlier mark").is_visible()
    test.locator(".others > summary").click()
    test.locator("a.place", has_text="turn 1, contexts[1]").click()
    expect(test.locator(".earlier mark.evidence")).to_have_text("静かに開けます。")
    expect(test.locator(".earlier mark.evidence")).to_be_visible()
    # The number leads back to the words of the answer.
    report.page.keyboard.press("Enter")
    assert report.page.evaluate("document.activeElement.closest('.response') !== null")
    test.locator(".verdicts a", has_text="turn 2").first.click()
    assert report.page.evaluate("document.activeElement.textContent") == "Answer"
    looks = test.locator(".response mark").evaluate_all("marks => marks.map((mark) => mark.className)")
    assert looks == ["found", "found", "missing", "uncounted"]


def test_a_finding_on_the_whole_leads_to_its_turn(open_report: OpenReport) -> None:
    report = open_report(talk, WHOLE, viewport={"width": 1440, "height": 400})
    test = report.showing("test_row[pump]")
    finding = test.locator(".verdicts > li").first
    assert " ".join(finding.locator(".how").inner_text().split()) == "turn 2 not kept turn 2, assistant It does not."
    finding.locator(".place").first.click()
    expect(test.locator(".spoken h4.here")).to_have_text("Turn 2")
    expect(test.locator(".spoken h4.here")).to_be_in_viewport()
    finding.locator(".place").last.click()
    expect(test.locator(".spoken mark.against")).to_have_text(LONG)
    expect(test.locator(".spoken mark.against")).to_be_in_viewport()
    assert test.locator(".spoken .small", has_text="calls close(log=1)").count() == 1


def test_conversations_are_read_without_scripts(open_report: OpenReport) -> None:
    page = open_report(talk, "", java_script_enabled=False).page
    page.goto(f"{page.url.partition('#')[0]}{SECOND.replace('tests/', '', 1)}")
    test = page.locator(".test", has=page.locator(".id", has_text="pump-t2"))
    expect(test).to_be_in_viewport()
    test.locator("> summary").click()
    test.locator(".others > summary").click()
    test.locator("a.place", has_text="turn 1, contexts[1]").click()
    expect(test.locator(".earlier mark.evidence")).to_be_visible()
    test.locator(".turns a").first.click()
    expect(page.locator(".test", has=page.locator(".id", has_text="pump-t1"))).to_be_in_viewport()


def test_conversations_fit_on_a_phone_and_on_paper(open_report: OpenReport) -> None:
    report = open_report(talk, SECOND, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    test = report.showing("pump-t2")
    assert not test.locator(".turns small").first.is_visible()
    test.locator(".turns a").first.tap()
    report.showing("pump-t1")
    assert report.page.evaluate("document.documentElement.scrollWidth") == 390
    report.page.emulate_media(media="print")
    assert report.page.locator("#test .turns").is_visible()
    assert report.page.pdf().startswith(b"%PDF")


def test_axe_finds_nothing_in_conversations(open_report: OpenReport, axe: Any) -> None:
    for address in (SECOND, WHOLE):
        report = open_report(talk, address, bypass_csp=True)
        report.showing("pump")
        report.unfold()
        check_views(axe, report.page, ("light", 1440), ("dark", 390))
