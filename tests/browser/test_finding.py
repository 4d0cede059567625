"""Finding a test: tiles, filters, search, sorting, and links that keep all that."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenReport, Report
from tests.documents import document, record, row
from tests.showcase import showcase


def search(report: Report, words: str) -> list[str]:
    """Type into the search box and return what is left."""
    report.page.locator("#search").fill(words)
    report.page.keyboard.press("Enter")
    return report.shown()


def test_a_tile_shows_what_it_counts(open_report: OpenReport) -> None:
    """A click on the failed tests leaves these, says how many, and a second click brings all back."""
    report = open_report(showcase())
    tile = report.page.locator(".tiles .failed a")
    tile.click()
    assert len(report.shown()) == 6
    assert report.page.locator("#count").inner_text() == "6 of 28 tests"
    assert report.page.locator("#outcome").input_value() == "failed"
    assert tile.get_attribute("aria-current") == "true"
    assert report.page.evaluate("document.activeElement.closest('.test').open")
    tile.click()
    assert len(report.shown()) == 28
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
    line = report.page.locator(".metrics tbody tr", has_text="faithfulness")
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
    assert len(report.shown()) == 28
    assert report.page.locator("#search").input_value() == ""


def test_sorting_by_score_name_and_duration(open_report: OpenReport) -> None:
    """Tests without a score come last; numbers in names count as numbers; the first order comes back."""
    report = open_report(showcase())
    first = report.shown()
    sort = report.page.locator("#sort")
    sort.select_option("lowest")
    assert report.shown()[:2] == ["test_watering", "test_quotes_are_real[rent and water]"]
    assert set(report.shown()[-2:]) == {"test_index_is_fresh", "test_bees"}
    sort.select_option("highest")
    assert set(report.shown()[-2:]) == {"test_index_is_fresh", "test_bees"}
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
    nonsense = open_report(showcase(), "#outcome=nonsense&metric=%zz&colour=red")
    assert len(nonsense.shown()) == 28


def test_a_deep_link_opens_its_test(open_report: OpenReport) -> None:
    """The address of a test, as the page itself gives it, shows that test open and in sight."""
    first = open_report(showcase())
    test = first.opened("row-14")
    test.get_by_role("link", name="Link to this test").click()
    fragment = first.page.evaluate("location.hash")
    report = open_report(showcase(), fragment)
    linked = report.test("row-14")
    assert linked.get_attribute("open") is not None
    assert 0 <= linked.bounding_box()["y"] < 300


def test_a_link_into_a_hidden_test_shows_it(open_report: OpenReport) -> None:
    """Going back to a test that a filter hides takes the filter away."""
    report = open_report(showcase())
    anchor = report.test("test_shed_size").get_attribute("id")
    report.page.locator(".tiles .passed a").click()
    assert "test_shed_size" not in report.shown()
    report.page.evaluate("(anchor) => { location.hash = anchor; }", anchor)
    expect(report.page.locator("#count")).to_have_text("28 tests")
    assert report.test("test_shed_size").get_attribute("open") is not None


def test_back_returns_to_the_filtered_list(open_report: OpenReport) -> None:
    """Following a mark is a step that the browser's back button undoes; the filter stays."""
    report = open_report(showcase())
    report.page.locator(".tiles .failed a").click()
    report.opened("rent and water").locator(".response mark.found a").click()
    report.page.go_back()
    assert report.page.evaluate("location.hash") == "#outcome=failed"
    assert len(report.shown()) == 6
