"""Finding a test: filters, search, sorting, and links that keep all that."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenReport, Report, large
from tests.documents import document, record, row
from tests.showcase import showcase


def search(report: Report, words: str) -> list[str]:
    """Type into the search box, wait until all texts are read, and return what is left."""
    report.page.locator("#search").fill(words)
    report.page.keyboard.press("Enter")
    expect(report.page.locator("#count")).to_have_text(re.compile(r"tests?$"))
    return report.shown()


def test_filters_narrow_each_other_down(open_report: OpenReport) -> None:
    """Outcome, metric, marks and file; a count of a metric shows the tests it counts, expected failures too."""
    report = open_report(showcase)
    line = report.page.locator(".metrics tbody tr", has_text="faithfulness")
    line.locator("td.failed a").click()
    assert report.shown() == ["test_shed_size", "test_greenhouse"]
    line.locator("td.unscored a").click()
    assert report.shown() == ["test_bees"]
    line.locator("th a").click()
    assert (len(report.shown()), report.shown()[-1]) == (5, "test_bees")
    report.page.locator("#sort").select_option("")
    report.page.locator("#metric").select_option("answer_relevancy")
    assert len(report.shown()) == 16
    report.page.locator("#outcome").select_option("failed")
    assert report.shown() == ["test_shed_size", "test_golden[row-0]", "test_golden[row-1]"]
    report.page.locator("#file").select_option("tests/test_golden.py")
    assert report.shown() == ["test_golden[row-0]", "test_golden[row-1]"]
    report.page.locator(".marks a >> nth=0").click()
    assert report.shown() == ["test_shed_size"]
    report.page.locator("#mark").select_option("vacuous")
    assert report.shown() == ["test_no_quotes"]
    report.page.locator(".metrics tbody tr", has_text="quoted_spans_alignment").locator("td a").last.click()
    assert report.shown() == ["test_no_quotes"]
    assert report.test("test_no_quotes").locator(".chip b").inner_text() == "nothing to check"
    report.page.locator("#outcome").select_option("scored")
    assert "test_no_quotes" not in report.shown()


def test_search_reads_all_texts_from_outside(open_report: OpenReport) -> None:
    """In any case and script, also across marks; the page's own words are in every test and are not searched."""
    report = open_report(showcase)
    for words, found in {
        "AMENDMENT greenhouse": ["test_greenhouse"],  # the name, and what pytest said
        "gewerbeschule SCHÜLERN": ["test_chronicle[Sitzbank vor dem Gemeindehaus]"],  # a context
        "test_golden[row-3]": ["test_golden[row-3]"],
        "connectionrefused": ["test_index_is_fresh"],
        "الخميس": ["test_library_hours[العربية]"],  # the response
        "mira": ["test_quotes_are_real[rent and water]"],  # metadata
        "“62": ["test_quotes_are_real[rent and water]", "test_length"],  # a mark with its number begins in between
        "characters": [],
    }.items():
        assert search(report, words) == found
    assert report.page.locator("#nothing").is_visible()
    report.page.locator("#clear").click()
    assert len(report.shown()) == 31
    assert report.page.locator("#search").input_value() == ""
    assert len(search(report, "  ")) == 31


def test_sorting_by_score_name_duration_and_cost(open_report: OpenReport) -> None:
    """Tests without a score that counts come last; numbers in names count as numbers; the first order comes back."""
    report = open_report(showcase)
    first = report.shown()
    sort = report.page.locator("#sort")
    sort.select_option("lowest")
    assert report.shown()[:2] == ["test_watering", "test_quotes_are_real[rent and water]"]
    last = {"test_index_is_fresh", "test_bees", "test_no_quotes", *(name for name in first if "test_gate" in name)}
    assert set(report.shown()[-6:]) == last
    sort.select_option("highest")
    assert set(report.shown()[-6:]) == last
    sort.select_option("name")
    names = report.shown()
    assert names.index("test_golden[row-9]") < names.index("test_golden[row-10]")
    assert not report.page.locator(".test .cost").first.is_visible()
    report.page.locator(".bill").get_by_role("link", name="dearest first").click()
    assert report.shown()[0] == "test_shed_size"
    assert report.page.locator(".test .cost").first.inner_text() == "$0.0038"
    report.page.locator(".bill").get_by_role("link", name="slowest first").click()
    assert report.shown()[:2] == ["test_index_is_fresh", "test_bees"]
    sort.select_option("")
    assert report.shown() == first


def test_scores_sort_by_the_chosen_metric(open_report: OpenReport) -> None:
    """With a metric chosen, only its scores count."""
    a, b, c = (record(metric, score, outcome="measured") for metric, score in (("a", 0.1), ("a", 0.9), ("b", 0.5)))
    worse = record("b", 0.4, outcome="measured")
    report = open_report(document(row("test_low", a, c), row("test_high", b, worse)))
    report.page.locator("#sort").select_option("highest")
    assert report.shown() == ["test_high", "test_low"]
    report.page.locator("#metric").select_option("b")
    assert report.shown() == ["test_low", "test_high"]


def test_the_address_keeps_what_is_shown(open_report: OpenReport) -> None:
    """A copied or reloaded address shows the same tests; one that makes no sense shows all."""
    report = open_report(showcase)
    report.page.locator("#metric").select_option("answer_relevancy")
    report.page.locator("#sort").select_option("highest")
    search(report, "golden row")
    shown = report.shown()
    report.go()
    expect(report.page.locator("#count")).to_have_text(re.compile(r"tests$"))
    assert report.shown() == shown
    assert report.page.locator("#search").input_value() == "golden row"
    for nonsense in ("#?outcome=nonsense&metric=%zz&colour=red&page=-7", "#%zz", "#nowhere?page=99"):
        assert len(open_report(showcase, nonsense).shown()) == 31


@pytest.mark.parametrize("fragment", ["test_golden[row-14]", "test_golden%5Brow-14%5D"])
def test_the_id_of_a_test_is_its_link(open_report: OpenReport, fragment: str) -> None:
    """``report.html#tests/test_a.py::test_b[c]``, as a terminal prints it, shows that test open and in sight."""
    report = open_report(showcase, f"#tests/test_golden.py::{fragment}")
    linked = report.test("row-14")
    assert linked.locator(".body").is_visible()
    assert 0 <= linked.bounding_box()["y"] < 300
    assert report.page.evaluate("document.activeElement.parentElement.open")


def test_an_open_test_is_in_the_address(open_report: OpenReport) -> None:
    """Copying the address of an open test, in any script, copies the link to it and to the list around it."""
    report = open_report(showcase)
    report.page.locator("#outcome").select_option("failed")
    report.opened("العربية")
    expect(report.page).to_have_url(re.compile("hours.*outcome=failed"))
    again = open_report(showcase, report.page.evaluate("location.hash"))
    assert again.test("العربية").get_attribute("open") is not None
    assert len(again.shown()) == 8


def test_an_id_with_a_question_mark_is_a_link_too(open_report: OpenReport) -> None:
    """What looks like a filter inside an id is part of the id, encoded or not."""
    run = document(row("test_a[why?sort=name#x]", record()), row("test_b[why?sort=name]", record()))
    report = open_report(run)
    report.opened("name#x")
    expect(report.page).to_have_url(re.compile("#."))
    again = open_report(run, report.page.evaluate("location.hash"))
    assert again.test("name#x").get_attribute("open") is not None
    raw = open_report(run, "#tests/test_assistant.py::test_b[why?sort=name]")
    assert raw.test("test_b").get_attribute("open") is not None


def test_a_link_to_a_hidden_test_shows_it(open_report: OpenReport) -> None:
    """Going to a test that a filter hides takes the filter away."""
    report = open_report(showcase)
    report.page.locator("#outcome").select_option("passed")
    assert "test_shed_size" not in report.shown()
    report.page.evaluate("location.hash = 'tests/test_assistant.py::test_shed_size'")
    expect(report.page.locator("#count")).to_have_text("31 tests")
    expect(report.test("test_shed_size").locator(".body")).to_be_visible()


def test_back_undoes_step_by_step(open_report: OpenReport) -> None:
    """Filtering, opening and closing are steps; the browser's buttons walk back and forth through them."""
    report = open_report(showcase)
    report.page.locator(".metrics .unscored a").click()
    test = report.opened("test_bees")
    expect(report.page).to_have_url(re.compile("test_bees"))
    report.page.go_back()
    expect(test).not_to_have_attribute("open", "")
    assert report.shown() == ["test_bees"]
    report.page.go_back()
    expect(report.page.locator("#count")).to_have_text("31 tests")
    report.page.go_forward()
    expect(report.page.locator("#count")).to_have_text("1 of 31 tests")
    report.page.go_forward()
    expect(report.test("test_bees").locator(".body")).to_be_visible()
    assert report.shown() == ["test_bees"]


def test_a_large_run_is_a_list_of_pages(open_report: OpenReport) -> None:
    """However many tests there are, a hundred stand on the page; all of them can be found and reached."""
    report = open_report(large)
    page = report.page
    rows = page.locator(".test")
    assert rows.count() == 100
    assert page.locator("#count").inner_text() == "10,000 tests"
    assert search(report, "plot-9876") == ["test_minutes[plot-9876]"]
    assert "test_minutes[plot-4328]" in search(report, "numbered 4328")
    assert "test_minutes[plot-4321]" not in search(report, "numbered 4321")
    search(report, "")
    page.locator("#sort").select_option("name")
    page.locator("#later").click()
    assert report.shown()[0] == "test_minutes[plot-100]"
    assert page.locator("#span").inner_text() == "101 to 200 of 10,000"
    page.go_back()
    expect(page.locator("#span")).to_have_text("1 to 100 of 10,000")
    page.evaluate("location.hash = 'tests/test_assistant.py::test_minutes[plot-7777]'")
    expect(report.test("plot-7777").locator(".body")).to_be_visible()
    assert rows.count() == 100
    assert page.locator(".test .body").count() <= 2
