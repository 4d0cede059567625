"""Reading a test: what is where, with a mouse, with keys, on a phone, without scripts, on paper, in the dark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from playwright.sync_api import Browser, expect

from tests.browser.conftest import OpenReport, Report, large, page_of
from tests.documents import document, evidence, record, row, verdict
from tests.showcase import baseline, showcase

_PHONE = {"width": 390, "height": 844}
_SHIFT = (
    "new Promise((done) => { setTimeout(() => done(0), 200); new PerformanceObserver((list) => done(list.getEntries()"
    ".reduce((sum, entry) => sum + entry.value, 0))).observe({ type: 'layout-shift', buffered: true }); })"
)


def focused(report: Report) -> str:
    """Return the address that the focused link leads to, as it reads."""
    return unquote(
        report.page.evaluate("document.activeElement.getAttribute('href') ?? document.activeElement.tagName")
    )


def test_the_worst_test_is_read_without_a_click(open_report: OpenReport) -> None:
    """Question, answer and scores in the list, beside it the worst test; the address names one that was opened."""
    report = open_report(showcase)
    assert " ".join(report.row("rent and water").inner_text().split()) == (
        "What does a plot cost, and when can I lose it? ✗ 0.33 … for a half plot”. You may lose it when it is “left "
        "uncultivated for six weeks in the summer”, and it says that “hoses may be used at any time of the day”, so "
        "… quoted_spans_alignment needs ≥ 0.90"
    )
    assert report.row("rent and water").locator("mark.missing").count() == 2
    assert report.showing("rent and water").locator("h2").inner_text().startswith("What does a plot cost")
    assert report.page.url.endswith("#tests")
    assert report.page.locator("#position").inner_text() == "1 of 28"
    report.opened("test_index_is_fresh")
    assert report.page.locator("#test .message[open] pre").inner_text().count("ConnectionRefusedError") == 1
    # An Arabic response starts at the right edge, and its number does not turn it around.
    response = report.opened("العربية").locator(".response")
    assert response.evaluate("e => getComputedStyle(e).direction") == "rtl"
    first, second = (response.locator("mark").nth(number).bounding_box() for number in (0, 1))
    assert first["x"] > second["x"]


def test_a_mark_leads_to_its_evidence_and_its_verdict(open_report: OpenReport) -> None:
    """Its words into the context, which opens, its number to the verdict, and that back to the mark."""
    report = open_report(showcase)
    test = report.opened("rent and water")
    test.locator(".response mark.missing", has_text="left uncultivated").click()
    target = test.locator(".context .n.nearest a").first
    assert target.evaluate("e => e === document.activeElement && e.classList.contains('here')")
    assert test.locator(".context mark.nearest").first.evaluate("e => e.classList.contains('hot')")
    test.locator(".response").get_by_role("link", name="1, not found", exact=True).click()
    assert "nearest contexts[0]" in report.page.evaluate("document.activeElement.innerText")
    report.page.keyboard.press("Tab")
    report.page.keyboard.press("Enter")
    assert report.page.evaluate("document.activeElement.matches('.response .missing a')")
    context = test.locator(".context").nth(1)
    context.locator("summary").first.click()
    assert not context.locator("mark").is_visible()
    test.get_by_role("link", name="contexts[1][148:185]").click()
    assert context.locator("mark").is_visible()


def test_what_is_supported_is_marked_when_it_is_asked_for(open_report: OpenReport) -> None:
    """Folded and unmarked until then; marks have their number once, after their words."""
    test = open_report(showcase).opened("rent and water")
    found = test.locator(".response mark.found")
    tint = "e => getComputedStyle(e).backgroundColor"
    assert found.evaluate(tint) == "rgba(0, 0, 0, 0)"
    assert test.locator(".response sup:visible").all_inner_texts() == ["1", "2"]
    test.locator(".others summary").click()
    assert found.evaluate(tint) != "rgba(0, 0, 0, 0)"
    assert test.locator(".response sup:visible").all_inner_texts() == ["3", "1", "2"]
    assert test.locator(".response mark.found + sup").count() == 1


def test_one_metric_is_shown_at_a_time(open_report: OpenReport) -> None:
    """The worst that failed first; its findings and its marks go when another one is chosen with a click or a digit."""
    response = "Cedar is common and dear."
    words = [verdict(word, ok=False, response=response) for word in ("Cedar", "common", "dear")]
    claims = [verdict("Cedar is common", ok=False, response=response, reason="None says so.")]
    sample = {"response": response, "retrieved_contexts": ["Oak.", "Ash."]}
    scored = [
        record("grounding", 0.7, at_least=0.5, sample=sample, verdicts=words),
        record("faithfulness", 0.5, outcome="failed", sample=sample, verdicts=claims, judge="local"),
    ]
    report = open_report(lambda: document(row("test_wood", *scored, outcome="failed")))
    test = report.opened("test_wood")
    marked = "marks => marks.filter((mark) => mark.className).map((mark) => `${mark.className} ${mark.textContent}`)"
    marks = test.locator(".response mark")
    assert test.locator(".switch .metric").all_inner_texts() == ["faithfulness", "grounding"]
    assert marks.evaluate_all(marked) == ["missing Cedar", "missing  is ", "missing common"]
    assert test.locator(".verdicts > li:visible").count() == 1
    report.page.keyboard.press("2")
    assert marks.evaluate_all(marked) == ["missed Cedar", "missed common", "missed dear"]
    assert test.locator(".words").inner_text() == "Not found: Cedar, common, dear"
    assert test.locator(".verdicts > li:visible").count() == 0
    assert report.page.url.endswith("?show=grounding")
    report.go()
    assert report.page.locator(".switch :checked").input_value() == "1"
    report.page.locator(".switch label").first.click()
    assert marks.evaluate_all(marked) == ["missing Cedar", "missing  is ", "missing common"]
    report.page.keyboard.press("ArrowRight")
    assert marks.evaluate_all(marked) == ["missed Cedar", "missed common", "missed dear"]


def test_passages_with_a_finding_are_open_the_others_folded_away(open_report: OpenReport) -> None:
    """In one line together; of a long passage what is around the finding is in sight."""
    passages = ["Nothing of interest. " * 200 + "The gate is locked at ten." + " Nothing either." * 200, "A.", "B."]
    response = "It says “The gate is locked at ten.”"
    where = evidence("The gate is locked at ten.", passages, 0)
    quoted = verdict(where.text, ok=False, response=response, evidence=[where])
    sample = {"response": response, "retrieved_contexts": passages}
    scored = record(score=0.0, outcome="failed", sample=sample, verdicts=[quoted])
    test = open_report(lambda: document(row("test_gate", scored))).opened("test_gate")
    assert test.locator(".context mark").is_visible()
    assert test.locator(".context .text").first.bounding_box()["height"] < 200
    assert test.locator(".untouched > summary").inner_text() == "2 more without a finding"
    assert test.locator(".context:visible").count() == 1
    test.locator(".context .fold summary").first.click()
    assert test.locator(".context .fold").first.inner_text().count("Nothing of interest.") > 150


def test_a_long_answer_is_cut_around_its_first_fault(open_report: OpenReport) -> None:
    """Until all of it is asked for, or something in it has the focus."""
    claims = [f"{word} is said here." for word in ("One", "Two", "Three", "Four", "Five", "Six", "Seven")]
    response = ("All is well. " * 30).join(claims)
    verdicts = [verdict(claim, ok=claim < "S", response=response) for claim in claims]
    scored = record(score=0.5, outcome="failed", sample={"response": response}, verdicts=verdicts)
    report = open_report(lambda: document(row("test_a", scored), row("test_b", scored)))
    test = report.opened("test_a")
    answer = test.locator(".response")
    assert answer.bounding_box()["height"] < 320
    expect(answer.locator("mark.missing").first).to_be_in_viewport()
    test.get_by_role("button", name="Show the whole answer").click()
    assert answer.bounding_box()["height"] > 320
    report.opened("test_b").locator(".verdicts .n a").first.click()
    assert answer.bounding_box()["height"] > 320


def test_hovering_a_claim_shows_its_evidence_and_back(open_report: OpenReport) -> None:
    """A claim lights up the sentences it cites; a sentence lights up all claims that cite it."""
    report = open_report(showcase)
    test = report.opened("test_watering")
    report.page.keyboard.press("2")
    report.unfold()
    lit = ".context mark.hot"
    test.locator(".verdicts li").first.hover()
    assert test.locator(lit).all_inner_texts() == ["Water is turned on from April to October."]
    test.locator(".verdicts li").nth(1).hover()
    assert len(test.locator(lit).all()) == 2
    test.locator(".context mark.evidence").first.hover()
    assert len(test.locator(".verdicts li.hot").all()) == 2


def test_everything_works_with_keys(open_report: OpenReport) -> None:
    """At most five Tabs to the first test, one stop for the list; arrows or j and k, Enter into it, Escape out."""
    report = open_report(showcase)
    page, ids = report.page, report.ids()
    stops = []
    for _ in range(3):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.id || document.activeElement.name || 'row'"))
    assert stops == ["search", "kind", "row"]
    assert ids[0] in focused(report)
    for key, index in (("ArrowDown", 1), ("j", 2), ("ArrowUp", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        report.showing(ids[index].partition("::")[2])
        assert ids[index] in focused(report)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert page.locator("#list .row[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    assert ids[1] in focused(report)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("j/k")
    assert page.locator("#search").input_value() == "j/k"
    expect(page.locator("#list .row")).to_have_count(0)
    page.locator("#search").fill("")
    expect(page.locator("#list .row")).to_have_count(len(ids))
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#keys p").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys p").is_visible()
    page.keyboard.press("?")
    page.locator("#letters").uncheck()
    page.locator("#list .row").first.focus()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.className") == "row"
    report.go()
    assert not page.locator("#letters").is_checked()


def test_a_list_that_is_drawn_anew_keeps_the_focus(open_report: OpenReport) -> None:
    """What was typed filters the list 120 ms later."""
    report = open_report(showcase)
    row = report.page.locator("#list .row").first
    report.page.locator("#search").fill(report.ids()[0].partition("::")[2])
    row.focus()
    expect(report.page.locator("#count")).to_contain_text(" of ")
    assert report.page.evaluate("document.activeElement.className") == "row"


def test_the_skip_link_is_first_and_leads_to_the_list(open_report: OpenReport) -> None:
    """One Tab and Enter from the top of any view; the views are one stop, with arrows between them."""
    report = open_report(showcase, "#overview")
    page = report.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert report.ids()[0] in focused(report)
    page.go_back()
    page.locator(".skip").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Overview"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#tests")).to_be_visible()
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert report.ids()[0] in focused(report)


def test_the_ends_of_a_page_lead_on(open_report: OpenReport) -> None:
    """The next test of the last one on a page is the first on the next."""
    report = open_report(large)
    page, span = report.page, report.page.locator("#span")
    page.locator("#list .row").first.focus()
    page.keyboard.press("k")
    assert span.inner_text() == "1 to 100 of 1,210"
    page.locator("#list .row").last.click()
    page.keyboard.press("j")
    expect(span).to_have_text("101 to 200 of 1,210")
    page.keyboard.press("k")
    expect(span).to_have_text("1 to 100 of 1,210")
    assert page.locator("#position").inner_text() == "100 of 1,210"


def test_a_judged_score_shows_votes_suspicion_and_exchanges(open_report: OpenReport) -> None:
    """Votes as dots with their numbers, the words that evidence lacks, and folded what was asked and replied."""
    report = open_report(showcase, baseline=baseline)
    test = report.opened("test_shed_size")
    assert "was 0.90, 0.40 worse" in test.locator(".cell.failed").inner_text()
    votes = test.get_by_role("img", name="3 votes: 0.25, 0.90, 0.35; 2 of 3 fell short")
    assert votes.locator("circle.short").count() == 2
    assert votes.locator("circle.held").count() == 1
    assert "flaky: the votes lie on both sides of the threshold" in test.inner_text()
    exchanges = test.locator(".exchanges")
    assert not exchanges.locator("pre").first.is_visible()
    exchanges.locator("summary").click()
    assert exchanges.locator("pre").first.inner_text().startswith("Which of these claims")
    assert '"supported": true' in exchanges.locator("pre").nth(1).inner_text()
    assert exchanges.locator(".none").inner_text() == "Nothing that could be used."
    test.locator(".others:visible summary").click()
    labels = test.locator(".verdicts .label").all_inner_texts()
    assert "suspicious: the evidence lacks 1908, Allotment Act" in labels


def test_marks_of_the_judge_are_kept_and_saved(open_report: OpenReport, tmp_path: Path) -> None:
    """By click and by key, taken back by a second one; the file has a line of JSON for each."""
    report = open_report(showcase)
    page = report.page
    test = report.opened("test_shed_size")
    first, second = (test.locator(".verdicts > li").nth(n) for n in (0, 1))
    first.get_by_role("button", name="wrong").click()
    second.get_by_role("button", name="right").click()
    second.get_by_role("button", name="right").focus()
    page.keyboard.press("r")
    assert page.locator("#marked").inner_text() == "1 mark not saved yet"
    for key in ("u", "r"):
        page.keyboard.press(key)
    assert page.locator("#marked").inner_text() == "2 marks not saved yet"
    report.go()
    assert report.showing("test_shed_size").locator("[aria-pressed=true]").all_inner_texts() == ["wrong", "right"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Save marks").click()
    download.value.save_as(tmp_path / "marks.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "marks.jsonl").read_text("utf-8").splitlines()]
    assert lines[0] == {
        "id": "tests/test_assistant.py::test_shed_size",
        "metric": "faithfulness",
        "finding": "Most members choose cedar for their shed.",
        "ok": False,
        "label": "wrong",
        "judge": "openai:gpt-5-mini",
        "run": "2026-03-02T16:41:07+00:00",
    }
    assert [line["label"] for line in lines] == ["wrong", "right"]
    assert page.locator("#marked").inner_text() == "2 marks saved"


def test_what_is_copied(open_report: OpenReport) -> None:
    """The id, a command for a shell, and the sample as JSON, as it is shown."""
    report = open_report(showcase, permissions=["clipboard-read", "clipboard-write"])
    report.opened("rent and water")

    def copied(name: str) -> str:
        button = report.page.locator(".copies button").nth(["test id", "command", "sample as JSON"].index(name))
        assert button.inner_text() == f"Copy {name}"
        button.click()
        expect(button).to_have_text("Copied")
        return str(report.page.evaluate("navigator.clipboard.readText()"))

    test = showcase().tests[0]
    assert copied("test id") == test.id
    assert copied("command") == f"pytest '{test.id}'"
    sample: dict[str, Any] = {k: v for k, v in test.records[0].sample.to_mapping().items() if v}
    assert json.loads(copied("sample as JSON")) == sample


def test_no_width_needs_scrolling_sideways_and_nothing_moves(open_report: OpenReport) -> None:
    """Whatever is open, the page is as wide as the screen; while it loads nothing is shifted."""
    for fragment in ("#overview", "#tests"):
        report = open_report(showcase, fragment, baseline=baseline)
        assert report.page.evaluate(_SHIFT) == 0
        for name in ("rent and water", "test_shed_size") if fragment == "#tests" else ("",):
            if name:
                report.page.set_viewport_size({"width": 1440, "height": 844})
                report.opened(name)
                report.unfold()
            for width in (320, 390, 768, 1024, 1440):
                report.page.set_viewport_size({"width": width, "height": 844})
                assert report.page.evaluate("document.documentElement.scrollWidth") == width


def test_on_a_phone_list_and_test_are_two_screens(open_report: OpenReport) -> None:
    """In one column; the way back leads to the row, and a mark still leads to its evidence."""
    report = open_report(showcase, viewport=_PHONE, has_touch=True, is_mobile=True)
    assert not report.page.locator("#pane").is_visible()
    test = report.opened("rent and water")
    assert not report.page.locator("#list").is_visible()
    response, sources = (test.locator(part).bounding_box() for part in (".response", ".sources"))
    assert sources["y"] > response["y"] + response["height"]
    test.locator(".response mark.missing").first.tap()
    assert 0 <= test.locator(".context mark.nearest").first.bounding_box()["y"] < _PHONE["height"]
    report.page.locator("#next").tap()
    report.showing("test_library_hours")
    report.page.locator("#to-list").tap()
    expect(report.page.locator("#list")).to_be_visible()
    assert "test_library_hours" in focused(report)
    report.page.go_back()
    expect(report.page.locator("#pane")).to_be_visible()


def test_without_scripts_everything_can_be_read(open_report: OpenReport) -> None:
    """With scripts off there are no controls, all views follow each other, and marks and tests are links."""
    page = open_report(showcase, java_script_enabled=False).page
    for control in ("#toolbar", "#filters", "#pane"):
        assert not page.locator(control).is_visible()
    assert page.locator("#overview h1").is_visible()
    assert page.locator(".test").count() == 31
    page.goto(f"{page.url.partition('#')[0]}#tests/test_assistant.py::test_bees")
    expect(page.locator(".test.unscored")).to_be_in_viewport()
    test = page.locator(".test", has_text="العربية").first
    test.locator("summary").first.click()
    test.locator(".response sup.missing a").click()
    target = test.locator(".verdicts li.missing")
    assert page.url.endswith(str(target.get_attribute("id")))
    expect(target).to_be_in_viewport()
    assert test.locator("dd ins").count() == 2
    test.locator(".verdicts .place").first.click()
    assert test.locator(".context mark.nearest").is_visible()


def test_without_scripts_a_large_run_says_what_is_left_out(open_report: OpenReport) -> None:
    """The worst tests in full, each of the others in a line with outcome, scores and reason."""
    page = open_report(large, java_script_enabled=False).page
    full, brief = page.locator(".test").count(), page.locator(".brief").count()
    assert full + brief == 1_210
    assert page.locator("noscript .warning, .warning").first.inner_text() == (
        f"{full:,} of 1,210 tests are here in full, the worst first; of the others a line each."
    )
    assert page.locator(".test").first.get_attribute("class") == "test failed"
    assert "answer_relevancy 0." in page.locator(".brief").last.inner_text()


def test_print_shows_no_controls(open_report: OpenReport) -> None:
    """On paper there is nothing to click, nothing is cut; the opened test is printed, else those that went wrong."""
    report = open_report(showcase)
    wrong = report.page.locator(".paper .test > .body")
    for view in ("tests", "overview"):
        report.page.evaluate(f"location.hash = '{view}'")
        report.page.emulate_media(media="print")
        expect(wrong).to_have_count(11)
        assert all(body.is_visible() for body in [report.page.locator("#overview"), *wrong.all()])
        assert not report.page.locator("#test").is_visible()
        report.page.emulate_media(media="screen")
        expect(wrong).to_have_count(0)
    report.page.evaluate("location.hash = 'tests'")
    report.opened("test_shed_size")
    report.page.emulate_media(media="print")
    for control in ("#toolbar", "#filters", "#list", ".steps", ".verdicts .judge", ".copies"):
        assert not report.page.locator(control).first.is_visible()
    assert report.page.locator("#test .body").is_visible()
    assert report.page.locator("#pane").evaluate("e => getComputedStyle(e).overflowY") == "visible"
    assert report.page.pdf().startswith(b"%PDF")


def test_a_browser_that_cannot_unpack_says_so(browser: Browser, tmp_path: Path) -> None:
    """An old browser shows the way to the plain list, and is never ready."""
    file = tmp_path / "report.html"
    file.write_text(page_of(showcase), encoding="utf-8")
    page = browser.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(file.as_uri())
    expect(page.locator("#list")).to_contain_text("With scripts switched off the page shows it plainly.")
    assert page.locator("html[data-ready]").count() == 0
    page.close()
