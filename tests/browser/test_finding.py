"""Finding a test: tiles, filters, search, sorting, and links that keep all that."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenReport, Report
from tests.documents import crowd, document, record, row
from tests.showcase import showcase


def search(report: Report, words: str) -> list[str]:
    """Type into the search box, wait until all texts are read, and return what is left."""
    report.page.locator("#search").fill(words)
    report.page.keyboard.press("Enter")
    expect(report.page.locator("#count")).to_have_text(re.compile(r"tests?$"))
    return report.shown()


def test_a_tile_shows_what_it_counts(open_report: OpenReport) -> None:
    """A click on the failed tests leaves these, says how many, and a second click brings all back."""
    report = open_report(showcase())
    tile = report.page.locator(".tiles .failed a")
    tile.click()
    assert len(report.shown()) == 8
    assert report.page.locator("#count").inner_text() == "8 of 31 tests"
    assert report.page.locator("#outcome").input_value() == "failed"
    assert tile.get_attribute("aria-current") == "true"
    assert report.page.evaluate("document.activeElement.closest('.test').open")
    tile.click()
    assert len(report.shown()) == 31
    assert tile.get_attribute("aria-current") is None


def test_every_tile_counts_what_it_shows(open_report: OpenReport) -> None:
    """The number on a tile or a line is the number of tests behind it."""
    report = open_report(showcase())
    for link in report.page.locator(".overview [data-filter]").all():
        link.click()
        assert len(report.shown()) == int(link.inner_text().split()[0])


def test_a_metrics_failures_are_a_click_away(open_report: OpenReport) -> None:
    """The count of a metric shows the tests in which this metric fell short, also where that was expected."""
    report = open_report(showcase())
    line = report.page.locator(".metrics:not(.gates) tbody tr", has_text="faithfulness")
    line.locator("td.failed a").click()
    assert report.shown() == ["test_shed_size", "test_greenhouse"]
    line.locator("td.unscored a").click()
    assert report.shown() == ["test_bees"]
    line.locator("th a").click()
    assert len(report.shown()) == 5
    assert report.shown()[-1] == "test_bees"


def test_outcome_and_metric_go_together(open_report: OpenReport) -> None:
    """Filters narrow each other down."""
    report = open_report(showcase())
    report.page.locator("#metric").select_option("answer_relevancy")
    assert len(report.shown()) == 16
    report.page.locator("#outcome").select_option("failed")
    assert report.shown() == ["test_shed_size", "test_golden[row-0]", "test_golden[row-1]"]


def test_search_reads_all_foreign_texts(open_report: OpenReport) -> None:
    """Name, question, answer, reason, context, metadata and pytest's words are searched, in any case and script."""
    report = open_report(showcase())
    assert search(report, "AMENDMENT greenhouse") == ["test_greenhouse"]
    assert search(report, "gewerbeschule SCHÜLERN") == ["test_chronicle[Sitzbank vor dem Gemeindehaus]"]
    assert search(report, "test_golden[row-3]") == ["test_golden[row-3]"]
    assert search(report, "connectionrefused") == ["test_index_is_fresh"]
    assert search(report, "الخميس") == ["test_library_hours[العربية]"]
    assert search(report, "mira") == ["test_quotes_are_real[rent and water]"]
    assert search(report, "  ") == search(report, "")


def test_search_reads_across_marks(open_report: OpenReport) -> None:
    """A phrase is found although a mark with its number begins in the middle of it."""
    report = open_report(showcase())
    assert search(report, "“62") == ["test_quotes_are_real[rent and water]", "test_length"]


def test_search_does_not_find_the_pages_own_words(open_report: OpenReport) -> None:
    """Labels such as "characters" stand in every test and are not what somebody looks for."""
    report = open_report(showcase())
    assert search(report, "characters") == []
    assert report.page.locator("#nothing").is_visible()
    report.page.locator("#clear").click()
    assert len(report.shown()) == 31
    assert report.page.locator("#search").input_value() == ""


def test_sorting_by_score_name_and_duration(open_report: OpenReport) -> None:
    """Tests without a score come last; numbers in names count as numbers; the first order comes back."""
    report = open_report(showcase())
    first = report.shown()
    sort = report.page.locator("#sort")
    sort.select_option("lowest")
    assert report.shown()[:2] == ["test_watering", "test_quotes_are_real[rent and water]"]
    unscored = {"test_index_is_fresh", "test_bees", *(name for name in first if "test_gate" in name)}
    assert set(report.shown()[-5:]) == unscored
    sort.select_option("highest")
    assert set(report.shown()[-5:]) == unscored
    sort.select_option("name")
    names = report.shown()
    assert names.index("test_golden[row-9]") < names.index("test_golden[row-10]")
    sort.select_option("slowest")
    assert report.shown()[:2] == ["test_index_is_fresh", "test_bees"]
    sort.select_option("")
    assert report.shown() == first


def test_scores_sort_by_the_chosen_metric(open_report: OpenReport) -> None:
    """With a metric chosen, only its scores count."""
    low, high = (record("a", score, at_least=None, outcome="measured") for score in (0.1, 0.9))
    other = record("b", 0.5, at_least=None, outcome="measured")
    report = open_report(document(row("test_high", high), row("test_low", low, other)))
    report.page.locator("#sort").select_option("highest")
    assert report.shown() == ["test_high", "test_low"]
    report.page.locator("#metric").select_option("b")
    assert report.shown() == ["test_low"]


def test_the_address_keeps_what_is_shown(open_report: OpenReport) -> None:
    """A copied or reloaded address shows the same tests; one that makes no sense shows all."""
    report = open_report(showcase())
    report.page.locator("#metric").select_option("answer_relevancy")
    report.page.locator("#sort").select_option("highest")
    search(report, "golden row")
    shown = report.shown()
    report.page.reload()
    assert report.shown() == shown
    assert report.page.locator("#search").input_value() == "golden row"
    for nonsense in ("#?outcome=nonsense&metric=%zz&colour=red&page=-7", "#%zz", "#nowhere?page=99"):
        assert len(open_report(showcase(), nonsense).shown()) == 31


def test_the_id_of_a_test_is_its_link(open_report: OpenReport) -> None:
    """``report.html#tests/test_a.py::test_b[c]``, as a terminal prints it, shows that test open and in sight."""
    for fragment in ("#tests/test_golden.py::test_golden[row-14]", "#tests/test_golden.py::test_golden%5Brow-14%5D"):
        report = open_report(showcase(), fragment)
        linked = report.test("row-14")
        assert linked.locator(".body").is_visible()
        assert 0 <= linked.bounding_box()["y"] < 300
        assert report.page.evaluate("document.activeElement.parentElement.open")


def test_an_open_test_is_in_the_address(open_report: OpenReport) -> None:
    """Copying the address of an open test, in any script, copies the link to it and to the list around it."""
    report = open_report(showcase())
    report.page.locator("#outcome").select_option("failed")
    report.opened("العربية")
    expect(report.page).to_have_url(re.compile("outcome=failed"))
    again = open_report(showcase(), report.page.evaluate("location.hash"))
    assert again.test("العربية").get_attribute("open") is not None
    assert len(again.shown()) == 8


def test_an_id_with_a_question_mark_is_a_link_too(open_report: OpenReport) -> None:
    """What looks like a filter inside an id is part of the id."""
    report = open_report(document(row("test_a[why?sort=name#x]", record()), row("test_b", record())))
    report.opened("why?")
    fragment = report.page.evaluate("location.hash")
    again = open_report(document(row("test_a[why?sort=name#x]", record()), row("test_b", record())), fragment)
    assert again.test("why?").get_attribute("open") is not None
    raw = open_report(
        document(row("test_a[why?sort=name]", record())), "#tests/test_assistant.py::test_a[why?sort=name]"
    )
    assert raw.test("why?").get_attribute("open") is not None


def test_a_link_to_a_hidden_test_shows_it(open_report: OpenReport) -> None:
    """Going to a test that a filter hides takes the filter away."""
    report = open_report(showcase())
    report.page.locator(".tiles .passed a").click()
    assert "test_shed_size" not in report.shown()
    report.page.evaluate("location.hash = 'tests/test_assistant.py::test_shed_size'")
    expect(report.page.locator("#count")).to_have_text("31 tests")
    expect(report.test("test_shed_size").locator(".body")).to_be_visible()


def test_back_undoes_step_by_step(open_report: OpenReport) -> None:
    """Filtering, opening and closing are steps; the browser's buttons walk back and forth through them."""
    report = open_report(showcase())
    report.page.locator(".tiles .unscored a").click()
    test = report.opened("test_bees")
    expect(report.page).to_have_url(re.compile("test_bees"))
    report.page.go_back()
    expect(test).not_to_have_attribute("open", "")
    assert report.shown() == ["test_bees"]
    report.page.go_back()
    expect(report.page.locator("#count")).to_have_text("31 tests")
    report.page.go_forward()
    report.page.go_forward()
    expect(report.test("test_bees").locator(".body")).to_be_visible()
    assert report.shown() == ["test_bees"]


def test_marked_tests_and_files_can_be_picked(open_report: OpenReport) -> None:
    """Flaky, suspicious and vacuous tests, and the tests of a file, are filters; a tile shows the flaky ones."""
    report = open_report(showcase())
    report.page.locator(".tiles .flaky a").click()
    assert report.shown() == ["test_shed_size"]
    report.page.locator("#mark").select_option("vacuous")
    assert report.shown() == ["test_no_quotes"]
    report.page.locator("#mark").select_option("")
    report.page.locator("#file").select_option("tests/test_golden.py")
    assert len(report.shown()) == 18


def test_the_dearest_tests_come_first_with_what_they_cost(open_report: OpenReport) -> None:
    """The bill at the top leads to what made it."""
    report = open_report(showcase())
    assert not report.page.locator(".test .cost").first.is_visible()
    report.page.locator(".bill").get_by_role("link", name="dearest first").click()
    assert report.shown()[0] == "test_shed_size"
    assert report.page.locator(".test .cost").first.inner_text() == "$0.0038"
    report.page.locator(".bill").get_by_role("link", name="slowest first").click()
    assert report.shown()[0] == "test_index_is_fresh"


def test_a_large_run_is_a_list_of_pages(open_report: OpenReport) -> None:
    """However many tests there are, a hundred stand on the page; all of them can be found and reached."""
    report = open_report(crowd(10_000, contexts=1, length=120))
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
    assert rows.count() == 100
    page.go_back()
    expect(page.locator("#span")).to_have_text("1 to 100 of 10,000")
    page.evaluate("location.hash = 'tests/test_assistant.py::test_minutes[plot-7777]'")
    expect(report.test("plot-7777").locator(".body")).to_be_visible()
    assert rows.count() == 100
    assert page.locator(".test .body").count() <= 2
