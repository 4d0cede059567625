"""Reading a report: what is where, with a mouse, with keys, on a phone, without scripts, in the dark."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import OpenReport, large, page_of
from tests.documents import document, evidence, record, row, verdict
from tests.showcase import baseline, showcase

_PHONE = {"width": 390, "height": 844}
_FOCUSED = "document.activeElement.parentElement.querySelector('.name > bdi').textContent"


def test_the_outcome_is_the_headline_and_the_worst_test_is_open(open_report: OpenReport) -> None:
    """Whoever opens the page after a failure reads how the run came out, and the worst test without a click."""
    report = open_report(showcase)
    heading = report.page.get_by_role("heading", level=1)
    assert heading.inner_text() == "8 of 31 tests fell short, 1 broke off with an error, 1 could not be scored"
    assert heading.evaluate("e => e.getBoundingClientRect().top") < 100
    assert report.page.locator(".test[open] .name > bdi").all_inner_texts() == ["test_quotes_are_real[rent and water]"]
    assert report.shown()[0] == "test_quotes_are_real[rent and water]"


def test_a_mark_leads_to_its_evidence_and_its_verdict(open_report: OpenReport) -> None:
    """Its text into the context, which opens, its number to the verdict, and that back to the mark."""
    report = open_report(showcase)
    test = report.opened("rent and water")
    test.locator(".response mark.found a").click()
    target = test.locator(".context .n.evidence a")
    assert target.evaluate("e => e === document.activeElement && e.classList.contains('here')")
    assert test.locator(".context mark.evidence").evaluate("e => e.classList.contains('hot')")
    test.locator(".response").get_by_role("link", name="2, not found", exact=True).click()
    assert "Nearest:" in report.page.evaluate("document.activeElement.innerText")
    report.page.keyboard.press("Tab")
    report.page.keyboard.press("Enter")
    assert report.page.evaluate("document.activeElement.matches('.response .missing a')")
    context = test.locator(".context").nth(1)
    context.locator("summary").first.click()
    assert not context.locator("mark").is_visible()
    test.get_by_role("link", name="contexts[1][148:185]").click()
    assert context.locator("mark").is_visible()


def test_evidence_in_a_long_context_is_in_sight(open_report: OpenReport) -> None:
    """The text before and after a passage is folded, so that it can be read without looking for it."""
    context = "Nothing of interest. " * 400 + "The gate is locked at ten." + " Nothing either." * 400
    response = "It says “The gate is locked at ten.”"
    where = evidence("The gate is locked at ten.", [context], 0)
    quoted = verdict(where.text, ok=True, response=response, evidence=[where])
    scored = record(sample={"response": response, "retrieved_contexts": [context]}, verdicts=[quoted])
    test = open_report(document(row("test_gate", scored))).opened("test_gate")
    assert test.locator(".context mark").is_visible()
    assert test.locator(".context .text").bounding_box()["height"] < 500
    test.locator(".context .fold summary").first.click()
    assert test.locator(".context .fold").first.inner_text().count("Nothing of interest.") > 300


def test_the_focus_brings_evidence_into_the_pane(open_report: OpenReport) -> None:
    """Going through the marks with the keyboard scrolls the contexts beside them along."""
    decisions = [f"Decision {number} was taken." for number in range(9)]
    passages = [f"Passage of the minutes. {'More of it. ' * 60}{decision}" for decision in decisions]
    response = " ".join(f"“{decision}”" for decision in decisions)
    verdicts = [
        verdict(decision, ok=True, response=response, evidence=[evidence(decision, passages, number)])
        for number, decision in enumerate(decisions)
    ]
    scored = record(sample={"response": response, "retrieved_contexts": passages}, verdicts=verdicts)
    report = open_report(document(row("test_decisions", scored)))
    test = report.opened("test_decisions")
    last = test.locator("mark.evidence").last
    pane = test.locator(".sources").bounding_box()
    assert last.bounding_box()["y"] > pane["y"] + pane["height"]
    test.locator(".response .n a").last.focus()
    assert last.bounding_box()["y"] < pane["y"] + pane["height"]


def test_hovering_a_claim_shows_its_evidence_and_back(open_report: OpenReport) -> None:
    """A claim lights up the sentences it cites; a sentence lights up all claims that cite it."""
    test = open_report(showcase).opened("test_watering")
    lit = ".context mark.hot"
    test.locator(".verdicts li").first.hover()
    assert test.locator(lit).all_inner_texts() == ["Water is turned on from April to October."]
    test.locator(".verdicts li").last.hover()
    assert len(test.locator(lit).all()) == 2
    test.locator(".context mark.evidence").first.hover()
    assert len(test.locator(".verdicts li.hot").all()) == 2


def test_everything_works_with_keys(open_report: OpenReport) -> None:
    """The skip link, then the list with arrows or j and k, Enter to open, Escape to close, / to search."""
    report = open_report(showcase)
    page = report.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the tests"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    assert page.evaluate(_FOCUSED) == report.shown()[0]
    for key, index in (("ArrowDown", 1), ("j", 2), ("ArrowUp", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        assert page.evaluate(_FOCUSED) == report.shown()[index]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    second = page.locator(".test").nth(1)
    expect(second.locator(".body")).to_be_visible()
    second.locator(".body a").first.focus()
    page.keyboard.press("Escape")
    expect(second.locator(".body")).not_to_be_visible()
    assert page.evaluate(_FOCUSED) == report.shown()[1]
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("j/k")
    assert page.locator("#search").input_value() == "j/k"


def test_single_keys_can_be_switched_off(open_report: OpenReport) -> None:
    """Who dictates to the computer is not to jump about; the arrows stay."""
    report = open_report(showcase)
    report.page.locator("#letters").uncheck()
    report.page.locator(".row").first.focus()
    report.page.keyboard.press("j")
    report.page.keyboard.press("/")
    assert report.page.evaluate(_FOCUSED) == report.shown()[0]
    report.page.keyboard.press("ArrowDown")
    assert report.page.evaluate(_FOCUSED) == report.shown()[1]


def test_the_list_is_one_stop_for_the_tab_key(open_report: OpenReport) -> None:
    """Of all rows the one that was looked at last is reached with Tab; the pages' ends lead on to the next page."""
    report = open_report(large)
    page, span = report.page, report.page.locator("#span")
    assert page.locator(".row[tabindex='0']").count() == 1
    page.locator(".row").first.focus()
    page.keyboard.press("k")
    assert span.inner_text() == "1 to 100 of 10,000"
    page.locator(".row").last.focus()
    page.keyboard.press("j")
    assert span.inner_text() == "101 to 200 of 10,000"
    assert page.evaluate("document.activeElement === document.querySelector('.row')")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement === [...document.querySelectorAll('.row')].at(-1)")
    assert span.inner_text() == "1 to 100 of 10,000"
    assert page.locator(".row[tabindex='0']").count() == 1


def test_a_judged_score_shows_votes_suspicion_and_exchanges(open_report: OpenReport) -> None:
    """Votes as dots with their numbers, the words that evidence lacks, and folded what was asked and replied."""
    test = open_report(showcase).opened("test_shed_size")
    votes = test.get_by_role("img", name="3 votes: 0.25, 0.90, 0.35; 2 of 3 fell short")
    assert votes.locator("circle.short").count() == 2
    assert votes.locator("circle.held").count() == 1
    assert "flaky: the votes lie on both sides of the threshold" in test.inner_text()
    labels = test.locator(".verdicts .label").all_inner_texts()
    assert "suspicious: the evidence lacks 1908, Allotment Act" in labels
    exchanges = test.locator(".exchanges")
    assert not exchanges.locator("pre").first.is_visible()
    exchanges.locator("summary").click()
    assert exchanges.locator("pre").first.inner_text().startswith("Which of these claims")
    assert '"supported": true' in exchanges.locator("pre").nth(1).inner_text()
    assert exchanges.locator(".none").inner_text() == "Nothing that could be used."


def test_the_run_says_how_it_was_set(open_report: OpenReport) -> None:
    """Notes in the open, settings folded."""
    footer = open_report(showcase).page.locator("footer")
    assert "budget: $0.0098 of $0.50 spent" in footer.inner_text()
    assert "rag_votes" not in footer.inner_text()
    footer.locator("summary").click()
    assert "rag_votes\n3" in footer.inner_text()
    assert "rag_cassette\nnot set" in footer.inner_text()


def test_the_dark_scheme_is_dark(open_report: OpenReport) -> None:
    """Who prefers dark pages gets one."""
    page = open_report(showcase, color_scheme="dark").page
    colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(page.evaluate(colour)) < 40


def test_no_width_needs_scrolling_sideways(open_report: OpenReport) -> None:
    """Whatever is open, the page is as wide as the screen."""
    report = open_report(showcase, baseline=baseline)
    report.open_all()
    for width in (320, 390, 768, 1024, 1440):
        report.page.set_viewport_size({"width": width, "height": 844})
        assert report.page.evaluate("document.documentElement.scrollWidth") == width


def test_a_phone_shows_contexts_below_the_response(open_report: OpenReport) -> None:
    """In one column, a mark still leads to its evidence."""
    test = open_report(showcase, viewport=_PHONE, has_touch=True, is_mobile=True).opened("rent and water")
    response, sources = (test.locator(part).bounding_box() for part in (".response", ".sources"))
    assert sources["y"] > response["y"] + response["height"]
    test.locator(".response mark.found a").tap()
    assert 0 <= test.locator(".context mark.evidence").bounding_box()["y"] < _PHONE["height"]


def test_right_to_left_texts_run_right_to_left(open_report: OpenReport) -> None:
    """An Arabic response starts at the right edge and its number does not turn it around."""
    response = open_report(showcase).opened("العربية").locator(".response")
    assert response.evaluate("e => getComputedStyle(e).direction") == "rtl"
    first, second = (response.locator("mark").nth(number).bounding_box() for number in (0, 1))
    assert first["x"] > second["x"]


def test_without_scripts_everything_can_be_read(open_report: OpenReport) -> None:
    """With scripts off there is no toolbar, and marks, tests and causes are plain links and disclosures."""
    report = open_report(showcase, java_script_enabled=False)
    page = report.page
    assert not page.locator("#toolbar").is_visible()
    assert not page.locator("#keys").is_visible()
    assert page.locator(".test").count() == 31
    page.locator(".causes .run a").first.click()
    assert page.url.endswith("#tests/test_assistant.py::test_bees")
    expect(page.locator(".test.unscored")).to_be_in_viewport()
    test = report.opened("العربية")
    test.locator(".response mark.missing a").click()
    target = test.locator(".context .n.nearest a")
    assert page.url.endswith(target.get_attribute("id"))
    assert 0 <= target.bounding_box()["y"] < 900
    assert test.locator("dd ins").count() == 2


def test_without_scripts_a_large_run_says_what_is_left_out(open_report: OpenReport) -> None:
    """The worst tests in full, each of the others in a line with outcome, scores and reason."""
    page = open_report(large, java_script_enabled=False).page
    full, brief = page.locator(".test").count(), page.locator(".brief").count()
    assert full + brief == 10_000
    assert page.locator("noscript .warning, .warning").first.inner_text() == (
        f"Without scripts, {full:,} of 10,000 tests are here in full, the worst first; of the others a line each."
    )
    assert page.locator(".test").first.get_attribute("class") == "test failed"
    assert "answer_relevancy 0." in page.locator(".brief").last.inner_text()


def test_print_shows_no_controls(open_report: OpenReport) -> None:
    """On paper there is nothing to click, no pane cuts off a context, and what is open is printed."""
    report = open_report(showcase)
    report.page.emulate_media(media="print")
    for control in ("#toolbar", "#keys"):
        assert not report.page.locator(control).is_visible()
    assert report.page.locator(".sources").first.evaluate("e => getComputedStyle(e).maxHeight") == "none"
    assert report.page.locator(".test .body").first.is_visible()
    assert report.page.locator(".test:visible").count() == 31
    assert report.page.pdf().startswith(b"%PDF")


def test_a_browser_that_cannot_unpack_says_so(browser: Browser, tmp_path: Path) -> None:
    """An old browser shows the overview and the way to the plain list, and is never ready."""
    file = tmp_path / "report.html"
    file.write_text(page_of(showcase), encoding="utf-8")
    page = browser.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(file.as_uri())
    assert page.locator("h1").is_visible()
    expect(page.locator("#list")).to_contain_text("With scripts switched off the page shows it plainly.")
    assert page.locator("html[data-ready]").count() == 0
    page.close()
