"""The page to label answers in, in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics import Sample
from pytest_ragmetrics.calibration.queue import LabelFile, label_queue
from pytest_ragmetrics.report.html import render_labels
from tests.browser.conftest import complaints
from tests.documents import HOSTILE, document, record, row
from tests.showcase import showcase

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SHOWN = label_queue(showcase(), "answer_relevancy")
OpenPage = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[OpenPage]:
    """Write the page of a queue and open it; a page that complained or asked for anything fails the test."""
    said: list[str] = []
    opened = []

    def open_it(queue: Any = SHOWN, **settings: Any) -> Page:
        file = tmp_path / "label.html"
        file.write_text(render_labels(queue, total=len(queue)), encoding="utf-8")
        page = browser.new_context(**settings).new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request", lambda request: None if request.url.startswith(("file:", "blob:")) else said.append(request.url)
        )
        page.goto(file.as_uri())
        page.locator("html[data-ready=true]").wait_for(state="attached")
        opened.append(page)
        return page

    yield open_it
    for page in opened:
        page.context.close()
    assert said == []


def exported(page: Page, folder: Path) -> Path:
    """Press the button and return the file."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export labels").click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def test_answers_are_labelled_by_keyboard_and_the_file_is_taken_up(open_page: OpenPage, tmp_path: Path) -> None:
    """One answer at a time; the labels outlive the page, and the exported lines are those of the command."""
    page = open_page()
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
    page.reload()
    page.locator("html[data-ready=true]").wait_for(state="attached")
    assert page.locator("article:visible").get_attribute("data-place") == "5"
    file = exported(page, tmp_path)
    with LabelFile(tmp_path / "labelled.jsonl", SHOWN) as labels:
        assert labels.take(file) == 4
        assert labels.labels == {1: 1, 2: 0, 3: 1, 4: None}
    assert (tmp_path / "labelled.jsonl").read_bytes() == file.read_bytes()
    for _ in SHOWN[4:]:
        page.get_by_role("button", name="Good").click()
    assert page.locator("article:visible").inner_text().startswith("All answers on this page are labelled")
    page.keyboard.press("1")
    page.get_by_role("button", name="Undo").click()
    assert status.text_content() == f"{len(SHOWN) - 2} labelled, 1 skipped, 1 left"


def test_a_queue_of_another_seed_has_other_labels(open_page: OpenPage) -> None:
    """The browser keeps them apart, and rows that the page no longer has are in no count."""
    page = open_page()
    page.keyboard.press("1")
    file = Path(page.url.removeprefix("file://"))
    for queue, left in ((label_queue(showcase(), "answer_relevancy", seed=1), len(SHOWN)), (SHOWN[1:], len(SHOWN) - 1)):
        file.write_text(render_labels(queue, total=len(SHOWN)), encoding="utf-8")
        page.reload()
        page.locator("html[data-ready=true]").wait_for(state="attached")
        assert page.get_by_role("status").text_content() == f"0 labelled, 0 skipped, {left} left"
        assert page.get_by_role("button", name="Undo").is_disabled()


def test_hostile_texts_are_texts(open_page: OpenPage, tmp_path: Path) -> None:
    """In every field of a sample; the export has them as they were."""
    records = [
        replace(
            record("answer_relevancy", 0.5, reason=text),
            sample=Sample(user_input=text, response=text, retrieved_contexts=[text], id=text, metadata={text: text}),
        )
        for text in HOSTILE
    ]
    queue = label_queue(document(row("test", *records)), "answer_relevancy")
    page = open_page(queue)
    for _ in queue:
        page.keyboard.press("0")
    assert page.evaluate("window.pwned") is None
    lines = exported(page, tmp_path).read_text("utf-8").split("\n")[:-1]
    assert [json.loads(line) for line in lines] == [json.loads('{"label": 0, ' + row_.rest) for row_ in queue]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page: OpenPage, axe: Any, scheme: str) -> None:
    """At the first answer and at the end, narrow and wide; the page is as wide as the screen."""
    page = open_page(SHOWN[:3], color_scheme=scheme, bypass_csp=True)
    for keys in ("", "11", "1"):
        for key in keys:
            page.keyboard.press(key)
        for width in (320, 390, 1440):
            page.set_viewport_size({"width": width, "height": 844})
            assert complaints(axe, page) == [], width
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_without_scripts_the_page_names_the_command(browser: Browser, tmp_path: Path) -> None:
    """Where labels are given instead."""
    file = tmp_path / "label.html"
    file.write_text(render_labels(SHOWN, total=len(SHOWN)), encoding="utf-8")
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(file.as_uri())
    assert "ragmetrics label RUN.json --metric answer_relevancy" in page.locator("noscript").inner_text()
    page.context.close()
