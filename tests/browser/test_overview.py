"""The overview: news, counts, causes, gates, groups and history, wide and narrow, dark and light, without scripts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from playwright.sync_api import expect

from pytest_ragmetrics.runs.records import Document, MutantRecord
from tests.browser.conftest import OpenReport
from tests.documents import document, record, row
from tests.showcase import baseline, showcase


def by_topic() -> Document:
    """Return a run whose tests have two keys in their metadata, and one with two scores and none."""
    rows = []
    for n in range(12):
        metadata = {"topic": f"t{n % 3}", "language": "de" if n % 2 else "en"}
        outcome: Any = "passed" if n % 3 else "failed"
        rows.append(row(f"test_{n}", record(outcome=outcome, sample={"metadata": metadata}), outcome=outcome))
    twice = [record(score=0.5, outcome="failed", sample={"response": answer}) for answer in ("Yes.", "No.")]
    return document(*rows, row("test_twice", *twice, outcome="failed"))


def test_the_overview_says_what_changed(open_report: OpenReport) -> None:
    page = open_report(showcase, "#overview", baseline=baseline).page
    assert page.locator("#overview h1").inner_text() == page.title().removeprefix("✗ ").partition(" · ")[0]
    numbers = page.locator(".counts b").all_inner_texts()
    assert sum(map(int, numbers)) == 28  # tests, without the gates
    gate = page.locator(".gates li", has_text="mean faithfulness")
    said = "mean faithfulness 0.750, needed >= 0.7: inconclusive: too few rows to tell (n 4, 95% interval "
    assert (gate.get_by_role("img").get_attribute("aria-label") or "").startswith(said)
    assert gate.locator(".value").inner_text().split()[0] == "?"


def test_a_number_opens_as_many_tests(open_report: OpenReport) -> None:
    page = open_report(by_topic, "#overview", viewport={"width": 390, "height": 844}).page
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    links = page.locator(".counts a, .causes p a, .where table:visible a, .metrics td a").all()
    numbers = [(link, found[1]) for link in links if (found := re.match(r"(?:all )?(\d+)", link.inner_text()))]
    assert len(numbers) > 4
    assert page.locator(".metrics .failed").inner_text().split() == ["6", "in", "5", "tests"]
    for link, number in numbers:
        link.click()
        expect(page.locator("#count")).to_have_text(re.compile(rf"^{number}\b"))
        page.go_back()
        expect(page.locator("#overview")).to_be_visible()


def test_many_tests_of_mutants_fit(open_report: OpenReport) -> None:
    verdicts = {f"test_{n}_of_{'answers_' * 6}": n < 9 for n in range(18)}
    mutants = (MutantRecord(kind="number", text="5 for 6", verdicts=verdicts),)
    plain = document(row("test_0_of_answers", record()))
    run = replace(plain, run=replace(plain.run, mutants=mutants))
    for width in (1440, 800, 390):
        page = open_report(lambda: run, "#overview", viewport={"width": width, "height": 844}).page
        assert page.get_by_text("1 of 1 planted fault noticed").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_choice_of_a_table_needs_no_script(open_report: OpenReport) -> None:
    page = open_report(by_topic, java_script_enabled=False).page
    where = page.locator(".where")
    expect(where.locator("table:visible")).to_have_count(1)
    keys = where.locator(".keys input")
    keys.first.focus()
    page.keyboard.press("ArrowRight")
    expect(where.locator("table:visible caption")).to_contain_text(where.locator(".keys label").nth(1).inner_text())
