"""Finding a test: chips, filters, groups, search, sorting, and addresses that keep all that."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from pytest_ragmetrics.runs.records import Document
from tests.browser.conftest import OpenReport, Report, large
from tests.documents import document, record, row
from tests.showcase import baseline, showcase


def search(report: Report, words: str) -> list[str]:
    """Type into the search box, wait until all texts are read, and return what is left."""
    report.page.locator("#search").fill(words)
    report.page.keyboard.press("Enter")
    expect(report.page.locator("#count")).to_have_text(re.compile(r"tests?$"))
    return report.shown()


def choose(report: Report, name: str, value: str) -> list[str]:
    """Choose a value of a filter and return what is left."""
    report.page.evaluate("document.querySelector('#more').open = true")
    report.page.locator(f"#{name}").select_option(value)
    return report.shown()


def test_every_chip_shows_what_it_counts(open_report: OpenReport) -> None:
    report = open_report(showcase, baseline=baseline)
    counts = []
    for chip in report.page.locator("#chips label:visible").all():
        label, _, figure = chip.inner_text().rpartition(" ")
        chip.click()
        assert len(report.shown()) == int(figure), label
        counts.append((label, int(figure)))
    assert counts[:3] == [("All", 28), ("Fail as before", 7), ("No score", 1)]
    assert sum(count for _, count in counts[1:]) == counts[0][1]
    assert report.page.url.endswith("#tests?kind=skipped")
    assert not any("test_gate" in name for name in report.shown())


def test_filters_narrow_each_other_down_and_are_taken_away_one_by_one(open_report: OpenReport) -> None:
    report = open_report(showcase)
    assert len(choose(report, "metric", "answer_relevancy")) == 16
    assert choose(report, "outcome", "score-failed") == ["test_golden[row-0]", "test_golden[row-1]"]
    assert choose(report, "file", "tests/test_assistant.py") == []
    report.page.get_by_role("button", name="Remove the filter answer_relevancy").click()
    assert len(report.shown()) == 4
    report.page.locator("#chips label", has_text="Pass").click()
    assert report.shown() == ["test_greenhouse"]
    choose(report, "outcome", "")
    assert choose(report, "mark", "vacuous") == ["test_no_quotes"]
    assert choose(report, "outcome", "scored") == []
    report.page.get_by_role("button", name="Show all tests").click()
    assert len(report.shown()) == 28
    assert choose(report, "mark", "flaky") == ["test_shed_size"]


def test_tests_are_grouped_by_their_metadata(open_report: OpenReport) -> None:
    tests = []
    for n, (topic, score) in enumerate([("pets", 1.0), ("rent", 0.1), ("pets", 0.05), ("rent", 0.3)]):
        outcome: Any = "passed" if score == 1.0 else "failed"
        scored = record(sample={"metadata": {"topic": topic, "n": n}}, score=score, outcome=outcome)
        tests.append(row(f"test_{n}", scored, outcome=outcome))
    report = open_report(lambda: document(*tests, row("test_other", record())), "#tests?by=topic")
    assert report.page.locator("#list .group").all_inner_texts() == ["rent\n2", "pets\n2", "no topic\n1"]
    assert report.shown() == ["test_1", "test_3", "test_2", "test_0", "test_other"]
    assert report.page.locator("#by option").all_inner_texts() == ["no groups", "by topic"]
    report.page.evaluate("location.hash = '#tests?by=topic&in=pets'")
    expect(report.page.locator("#count")).to_have_text("2 of 5 tests")
    report.page.get_by_role("button", name="Remove the filter topic: pets").click()
    assert len(report.shown()) == 5


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
        "summer”, and": ["test_quotes_are_real[rent and water]"],  # a mark ends with its number in between
        "characters": [],
    }.items():
        assert search(report, words) == found, words
    assert report.page.locator("#nothing").is_visible()
    report.page.locator("#clear").click()
    assert (len(report.shown()), report.page.locator("#search").input_value()) == (28, "")
    assert len(search(report, "  ")) == 28


def test_sorting_by_score_name_duration_and_cost(open_report: OpenReport) -> None:
    report = open_report(showcase)
    first, last = report.shown(), {"test_index_is_fresh", "test_bees", "test_no_quotes"}
    assert choose(report, "sort", "lowest")[:2] == ["test_watering", "test_quotes_are_real[rent and water]"]
    assert set(report.shown()[-3:]) == set(choose(report, "sort", "highest")[-3:]) == last
    names = choose(report, "sort", "name")
    assert names.index("test_golden[row-9]") < names.index("test_golden[row-10]")
    assert choose(report, "sort", "dearest")[0] == "test_shed_size"
    assert choose(report, "sort", "slowest")[:2] == ["test_index_is_fresh", "test_bees"]
    assert choose(report, "sort", "") == first


def test_a_chosen_metric_sorts_and_is_shown(open_report: OpenReport) -> None:
    a, b, c, worse = (
        record(metric, score, outcome="measured", sample={"response": "No."})
        for metric, score in (("a", 0.1), ("a", 0.9), ("b", 0.5), ("b", 0.4))
    )
    report = open_report(lambda: document(row("test_low", a, c), row("test_high", b, worse)))
    assert choose(report, "sort", "highest") == ["test_high", "test_low"]
    assert choose(report, "metric", "b") == ["test_low", "test_high"]
    report.opened("test_low")
    assert report.page.locator(".switch label:has(:checked) .metric").inner_text() == "b"


def test_the_address_keeps_what_is_shown(open_report: OpenReport) -> None:
    report = open_report(showcase)
    choose(report, "metric", "answer_relevancy")
    choose(report, "sort", "highest")
    search(report, "golden row")
    shown = report.shown()
    report.go()
    expect(report.page.locator("#count")).to_have_text(re.compile(r"tests$"))
    assert report.shown() == shown
    assert report.page.locator("#search").input_value() == "golden row"
    nonsense = {"#?outcome=nonsense&metric=%zz&page=-7": 28, "#tests/nowhere?in=x&page=99": 28, "#tests?kind=bad": 0}
    for fragment, found in nonsense.items():
        assert len(open_report(showcase, fragment).shown()) == found
    assert open_report(showcase, "#%zz").page.locator("#overview").is_visible()


def test_the_id_of_a_test_is_its_link(open_report: OpenReport) -> None:
    """``report.html#tests/test_a.py::test_b[c]``, as a terminal prints it, shows that test."""
    for fragment in ("test_golden[row-14]", "test_golden%5Brow-14%5D"):
        report = open_report(showcase, f"#tests/test_golden.py::{fragment}")
        assert report.showing("row-14").is_visible()
        assert report.row("row-14").get_attribute("aria-current") == "true"
        expect(report.row("row-14")).to_be_in_viewport()


def test_ids_that_read_like_others_are_links_too(open_report: OpenReport) -> None:
    names = ["test_a[why?sort=name#x]", "test_b[why?sort=name]", "test_c", "test_d"]
    run = document(*(row(name, record()) for name in names), row("test_c", record(), file="test_assistant.py"))

    def odd() -> Document:
        return run

    report = open_report(odd)
    for number, test in enumerate(run.tests):
        report.page.locator("#list .row").nth(number).click()
        again = open_report(odd, report.page.evaluate("location.hash"))
        for each in (report, again):
            shown = [each.page.locator(f"#test {part}").last.inner_text() for part in (".id", ".meta bdi")]
            assert shown == [test.id.partition("::")[2], f"{test.file}:12"]
    raw = open_report(odd, "#tests/test_assistant.py::test_b[why?sort=name]")
    assert raw.showing("test_b").is_visible()


def test_an_open_test_is_in_the_address(open_report: OpenReport) -> None:
    report = open_report(showcase)
    choose(report, "outcome", "failed")
    report.opened("العربية")
    expect(report.page).to_have_url(re.compile("#tests/.*hours.*outcome=failed"))
    again = open_report(showcase, report.page.evaluate("location.hash"))
    assert again.showing("العربية").is_visible()
    assert len(again.shown()) == 6


def test_a_link_to_a_hidden_test_shows_it(open_report: OpenReport) -> None:
    """Going to a test that a filter hides takes the filter away; a gate is in no list."""
    report = open_report(showcase, "#tests?kind=passes")
    assert "test_shed_size" not in report.shown()
    report.page.evaluate("location.hash = 'tests/test_assistant.py::test_shed_size'")
    report.showing("test_shed_size")
    assert report.page.locator("#count").inner_text() == "28 tests"
    report.page.evaluate("location.hash = 'tests/test_golden.py::test_gate[faithfulness]'")
    report.showing("test_gate")
    assert (len(report.shown()), report.page.locator("#position").inner_text()) == (28, "")


def test_back_undoes_step_by_step(open_report: OpenReport) -> None:
    """Views, filters and tests are steps; the browser's buttons walk back and forth; typing and j are no steps."""
    report = open_report(showcase, "#overview")
    page = report.page
    page.locator(".views a", has_text="Tests").click()
    page.locator("#list .row").first.click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#position")).to_have_text("3 of 28")
    page.go_back()
    expect(page).to_have_url(re.compile(r"#tests$"))
    page.locator("#chips label", has_text="No score").click()
    report.opened("test_bees")
    search(report, "bees")
    expect(page).to_have_url(re.compile("search=bees"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"#tests\?kind=no\+score$"))
    assert report.shown() == ["test_bees"]
    page.go_back()
    expect(page.locator("#count")).to_have_text("28 tests")
    page.go_back()
    expect(page.locator("#overview")).to_be_visible()
    assert page.evaluate("document.activeElement.textContent") == "Tests 28"
    page.go_forward()
    page.go_forward()
    expect(page.locator("#count")).to_have_text("1 of 28 tests")


def test_a_large_run_is_a_list_of_pages(open_report: OpenReport) -> None:
    report = open_report(large)
    page = report.page
    rows = page.locator("#list .row")
    assert rows.count() == 100
    assert page.locator("#count").inner_text() == "1,210 tests"
    assert search(report, "plot-987") == ["test_minutes[plot-987]"]
    assert "test_minutes[plot-432]" in search(report, "numbered 432")
    assert "test_minutes[plot-433]" not in search(report, "numbered 433")
    search(report, "")
    choose(report, "sort", "name")
    page.locator("#later").click()
    assert report.shown()[0] == "test_minutes[plot-100]"
    assert page.locator("#span").inner_text() == "101 to 200 of 1,210"
    page.go_back()
    expect(page.locator("#span")).to_have_text("1 to 100 of 1,210")
    page.evaluate("location.hash = 'tests/test_assistant.py::test_minutes[plot-777]'")
    report.showing("plot-777")
    assert rows.count() == 100
    assert page.locator("#position").inner_text().endswith(" of 1,210")
