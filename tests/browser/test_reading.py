"""Reading a report: what stands where, with a mouse, with keys, on a phone, without scripts, in the dark."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenReport
from tests.documents import crowd, document, evidence, record, row, verdict
from tests.showcase import showcase

_PHONE = {"width": 390, "height": 844}

# Every text on the page against the background it stands on; returns the pairs under the AA minimum.
_CONTRAST = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = channels(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  document.querySelectorAll("details").forEach((element) => { element.open = true; });
  document.querySelectorAll(".test").forEach((element) => { element.style.contentVisibility = "visible"; });
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest("script")) continue;
    const [a, b] = [channels(getComputedStyle(element).color), ground(element)].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${element.className || element.tagName} ${ratio.toFixed(2)} ${walker.currentNode.data}`);
  }
  return low;
}"""


def test_the_outcome_is_the_headline(open_report: OpenReport) -> None:
    """The first thing on the page is a sentence that says how the run came out."""
    report = open_report(showcase())
    heading = report.page.get_by_role("heading", level=1)
    assert heading.inner_text() == "6 of 28 tests fell short, 1 broke off with an error, 1 could not be scored"
    assert heading.evaluate("e => e.getBoundingClientRect().top") < 100


def test_the_worst_test_is_open_and_the_rest_closed(open_report: OpenReport) -> None:
    """Whoever opens the page after a failure reads the worst one without a click."""
    report = open_report(showcase())
    assert report.page.locator(".test[open] .name > bdi").all_inner_texts() == ["test_quotes_are_real[rent and water]"]
    assert report.shown()[0] == "test_quotes_are_real[rent and water]"


def test_the_text_of_a_mark_leads_to_its_evidence(open_report: OpenReport) -> None:
    """A click on a found span brings its passage into sight and lights it up."""
    report = open_report(showcase())
    test = report.opened("rent and water")
    test.locator(".response mark.found a").click()
    target = test.locator(".context .n.evidence a")
    assert target.evaluate("e => e === document.activeElement && e.classList.contains('here')")
    assert test.locator(".context mark.evidence").evaluate("e => e.classList.contains('hot')")
    assert report.page.evaluate("location.hash") == "#" + target.get_attribute("id")


def test_the_number_of_a_mark_leads_to_its_verdict_and_back(open_report: OpenReport) -> None:
    """From mark 2 to verdict 2, from verdict 2 to the mark."""
    report = open_report(showcase())
    test = report.opened("rent and water")
    test.locator(".response").get_by_role("link", name="2, not found", exact=True).click()
    assert "Nearest:" in report.page.evaluate("document.activeElement.innerText")
    report.page.keyboard.press("Tab")
    report.page.keyboard.press("Enter")
    assert report.page.evaluate("document.activeElement.matches('.response .missing a')")


def test_evidence_in_a_long_context_is_in_sight(open_report: OpenReport) -> None:
    """The text before and after a passage is folded, so that it can be read without looking for it."""
    context = "Nothing of interest. " * 400 + "The gate is locked at ten." + " Nothing either." * 400
    response = "It says “The gate is locked at ten.”"
    quoted = verdict(
        "The gate is locked at ten.",
        ok=True,
        response=response,
        evidence=[evidence("The gate is locked at ten.", [context], 0)],
    )
    scored = record(sample={"response": response, "retrieved_contexts": [context]}, verdicts=[quoted])
    report = open_report(document(row("test_gate", scored)))
    test = report.opened("test_gate")
    assert test.locator(".context mark").is_visible()
    assert test.locator(".context .text").bounding_box()["height"] < 500
    test.locator(".context .fold summary").first.click()
    assert test.locator(".context .fold").first.inner_text().count("Nothing of interest.") > 300


def test_an_evidence_link_opens_what_hides_it(open_report: OpenReport) -> None:
    """Closed contexts open when something in them is asked for."""
    report = open_report(showcase())
    test = report.opened("rent and water")
    context = test.locator(".context").nth(1)
    context.locator("summary").first.click()
    assert not context.locator("mark").is_visible()
    test.get_by_role("link", name="contexts[1][148:185]").click()
    assert context.locator("mark").is_visible()


def test_the_focus_brings_evidence_into_the_pane(open_report: OpenReport) -> None:
    """Going through the marks with the keyboard scrolls the contexts beside them along."""
    passages = [
        f"Passage {number} of the minutes. " + "More of it. " * 60 + f"Decision {number} was taken."
        for number in range(9)
    ]
    response = " ".join(f"“Decision {number} was taken.”" for number in range(9))
    verdicts = [
        verdict(
            f"Decision {number} was taken.",
            ok=True,
            response=response,
            evidence=[evidence(f"Decision {number} was taken.", passages, number)],
        )
        for number in range(9)
    ]
    scored = record(sample={"response": response, "retrieved_contexts": passages}, verdicts=verdicts)
    report = open_report(document(row("test_decisions", scored)))
    test = report.opened("test_decisions")
    last = test.locator("mark.evidence").last
    pane = test.locator(".sources").bounding_box()
    assert last.bounding_box()["y"] > pane["y"] + pane["height"]
    top = report.page.evaluate("scrollY")
    test.locator(".response .n a").last.focus()
    assert last.bounding_box()["y"] < pane["y"] + pane["height"]
    assert report.page.evaluate("scrollY") == top


def test_everything_works_with_keys(open_report: OpenReport) -> None:
    """The skip link, the list with arrow keys, opening and closing with Enter, always with a visible focus."""
    report = open_report(showcase())
    page = report.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the tests"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "search"
    first = page.locator(".test > summary").first
    first.focus()
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.parentElement.querySelector('.name > bdi').textContent")
    assert second == report.shown()[1]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator(".test").nth(1).get_attribute("open") is not None
    page.keyboard.press("ArrowUp")
    assert first.evaluate("e => e === document.activeElement")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast_enough(open_report: OpenReport, scheme: str) -> None:
    """Every text stands out from its background by 4.5 to 1 or more, in both colour schemes."""
    report = open_report(showcase(), color_scheme=scheme)
    report.page.locator(".tiles a").first.click()
    assert report.page.evaluate(_CONTRAST) == []


def test_the_dark_scheme_is_dark(open_report: OpenReport) -> None:
    """Who prefers dark pages gets one."""
    report = open_report(showcase(), color_scheme="dark")
    red, green, blue = report.page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    )
    assert max(red, green, blue) < 40


@pytest.mark.parametrize("width", [320, 390, 768, 1024, 1440])
def test_no_width_needs_scrolling_sideways(open_report: OpenReport, width: int) -> None:
    """Whatever is open, the page is as wide as the screen."""
    report = open_report(showcase(), viewport={"width": width, "height": 844})
    report.page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert report.page.evaluate("document.documentElement.scrollWidth") == width


def test_a_phone_shows_contexts_below_the_response(open_report: OpenReport) -> None:
    """In one column, a mark still leads to its evidence."""
    report = open_report(showcase(), viewport=_PHONE, has_touch=True, is_mobile=True)
    test = report.opened("rent and water")
    response, sources = (test.locator(part).bounding_box() for part in (".response", ".sources"))
    assert sources["y"] > response["y"] + response["height"]
    test.locator(".response mark.found a").tap()
    box = test.locator(".context mark.evidence").bounding_box()
    assert 0 <= box["y"] < _PHONE["height"]


def test_right_to_left_texts_run_right_to_left(open_report: OpenReport) -> None:
    """An Arabic response starts at the right edge and its number does not turn it around."""
    report = open_report(showcase())
    response = report.opened("العربية").locator(".response")
    assert response.evaluate("e => getComputedStyle(e).direction") == "rtl"
    first, second = (response.locator("mark").nth(number).bounding_box() for number in (0, 1))
    assert first["x"] > second["x"]


def test_without_scripts_everything_can_be_read(open_report: OpenReport) -> None:
    """With scripts off there is no toolbar, and marks, tests and tiles are plain links and disclosures."""
    report = open_report(showcase(), java_script_enabled=False)
    page = report.page
    assert not page.locator("#toolbar").is_visible()
    page.locator(".tiles .unscored a").click()
    assert page.url.endswith(page.locator(".test.unscored").get_attribute("id") or "none")
    test = report.opened("العربية")
    test.locator(".response mark.missing a").click()
    target = test.locator(".context .n.nearest a")
    assert page.url.endswith(target.get_attribute("id"))
    assert 0 <= target.bounding_box()["y"] < 900
    assert test.locator("dd ins").count() == 2


def test_print_shows_no_controls(open_report: OpenReport) -> None:
    """On paper there is nothing to click, and no pane cuts off a context."""
    report = open_report(showcase())
    report.page.emulate_media(media="print")
    assert not report.page.locator("#toolbar").is_visible()
    assert report.page.locator(".sources").first.evaluate("e => getComputedStyle(e).maxHeight") == "none"


def test_two_thousand_tests_stay_usable(open_report: OpenReport) -> None:
    """A large run opens, finds while one types, and sorts."""
    report = open_report(crowd(2000))
    page = report.page
    page.locator("#search").fill("plot-1234")
    expect(page.locator("#count")).to_have_text("1 of 2000 tests", timeout=30_000)
    page.locator("#search").fill("")
    page.locator("#sort").select_option("slowest")
    assert page.locator(".test .took").first.inner_text() == "4.0 s"
