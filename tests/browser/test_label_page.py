"""The page to label answers in, in a browser."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics import Sample
from pytest_ragmetrics.evaluation.calibration.queue import label_file, label_queue
from pytest_ragmetrics.report.page import render_labels
from tests.browser.conftest import OpenReport, check_views
from tests.documents import HOSTILE, document, record, row
from tests.showcase import showcase

if TYPE_CHECKING:
    from playwright.sync_api import Page

SHOWN = label_queue(showcase(), "answer_relevancy")
PAGE = render_labels(SHOWN, total=len(SHOWN))


def exported(page: Page, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export labels").click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def test_answers_are_labelled_by_keyboard_and_the_file_is_taken_up(open_page: OpenReport, tmp_path: Path) -> None:
    report = open_page(PAGE)
    page = report.page
    status = page.get_by_role("status")
    assert status.text_content() == f"0 labelled, 0 skipped, {len(SHOWN)} left"
    assert page.get_by_role("button", name="Export labels").is_disabled()
    for key in "10Su1":
        page.keyboard.press(key)
    page.keyboard.press("Control+1")
    assert status.text_content() == f"3 labelled, 0 skipped, {len(SHOWN) - 3} left"
    page.keyboard.press("s")
    assert page.locator("article:visible").get_attribute("data-place") == "5"
    assert page.evaluate("document.activeElement.closest('article').dataset.place") == "5"
    report.go()
    assert page.locator("article:visible").get_attribute("data-place") == "5"
    file = exported(page, tmp_path)
    with label_file(tmp_path / "labelled.jsonl", SHOWN) as labels:
        assert labels.take(file) == 4
        assert labels.labels == {1: 1, 2: 0, 3: 1, 4: None}
    assert (tmp_path / "labelled.jsonl").read_bytes() == file.read_bytes()
    for _ in SHOWN[4:]:
        page.get_by_role("button", name="Good").click()
    assert page.locator("article:visible").inner_text().startswith("All answers on this page are labelled")
    page.keyboard.press("1")
    page.get_by_role("button", name="Undo").click()
    assert status.text_content() == f"{len(SHOWN) - 2} labelled, 1 skipped, 1 left"


def test_a_queue_of_another_seed_has_other_labels(open_page: OpenReport) -> None:
    """The browser keeps them apart, and rows that the page no longer has are in no count."""
    open_page(PAGE).page.keyboard.press("1")
    for queue in (label_queue(showcase(), "answer_relevancy", seed=1), SHOWN[1:]):
        page = open_page(render_labels(queue, total=len(SHOWN))).page
        assert page.get_by_role("status").text_content() == f"0 labelled, 0 skipped, {len(queue)} left"
        assert page.get_by_role("button", name="Undo").is_disabled()
    assert open_page(PAGE).page.get_by_role("status").text_content() == f"1 labelled, 0 skipped, {len(SHOWN) - 1} left"


def test_hostile_texts_are_texts(open_page: OpenReport, tmp_path: Path) -> None:
    records = [
        replace(
            record("answer_relevancy", 0.5, reason=text),
            sample=Sample(user_input=text, response=text, retrieved_contexts=[text], id=text, metadata={text: text}),
        )
        for text in HOSTILE
    ]
    queue = label_queue(document(row("test", *records)), "answer_relevancy")
    page = open_page(render_labels(queue, total=len(queue))).page
    for _ in queue:
        page.keyboard.press("0")
    lines = exported(page, tmp_path).read_text("utf-8").split("\n")[:-1]
    assert [json.loads(line) for line in lines] == [json.loads('{"label": 0, ' + row_.rest) for row_ in queue]


def test_axe_finds_nothing(open_page: OpenReport, axe: Any) -> None:
    page = open_page(render_labels(SHOWN[:3], total=3), bypass_csp=True).page
    for keys, scheme, width in (("", "light", 390), ("11", "dark", 320), ("1", "light", 1440)):
        for key in keys:
            page.keyboard.press(key)
        check_views(axe, page, (scheme, width))


def test_without_scripts_the_page_names_the_command(open_page: OpenReport) -> None:
    page = open_page(PAGE, java_script_enabled=False).page
    assert "ragmetrics label RUN.json --metric answer_relevancy" in page.locator("noscript").inner_text()
