"""The page of a calibration in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.calibration.calibrate import calibrate
from pytest_ragmetrics.metrics import LexicalGrounding
from pytest_ragmetrics.report.html import render_calibration
from tests.browser.conftest import complaints

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CONTEXT = "Plots are let for one year from the first of March."
ROWS = [
    {"response": response, "retrieved_contexts": [CONTEXT], "label": label, "id": f"{response} {number}"}
    for number in range(6)
    for response, label in (("Plots are let for one year.", 1), ("Sheds may be painted in any colour.", 0))
] + [{"response": "Plots are let from March.", "retrieved_contexts": [CONTEXT], "label": 0, "id": "</p><b>odd"}]

OpenCalibration = Callable[..., "Page"]


@pytest.fixture
def open_calibration(browser: Browser, tmp_path: Path) -> Iterator[OpenCalibration]:
    """Write the page of a calibration and open it; a page that complained about anything fails the test."""
    file = tmp_path / "calibration.html"
    file.write_text(render_calibration(calibrate(LexicalGrounding(), ROWS, threshold=0.5)), encoding="utf-8")
    said: list[str] = []
    opened = []

    def open_it(**settings: Any) -> Page:
        page = browser.new_context(**settings).new_page()
        page.on("console", lambda message: said.append(message.text))
        page.goto(file.as_uri())
        opened.append(page)
        return page

    yield open_it
    for page in opened:
        page.context.close()
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_calibration: OpenCalibration, axe: Any, scheme: str) -> None:
    """Contrast, headings and tables are in order."""
    assert complaints(axe, open_calibration(color_scheme=scheme, bypass_csp=True)) == []


@pytest.mark.parametrize("width", [320, 390, 1440])
def test_no_word_of_a_table_is_broken(open_calibration: OpenCalibration, width: int) -> None:
    """Columns are as wide as their longest word, and the page is as wide as the screen."""
    page = open_calibration(viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("th, td").evaluate_all("cells => cells.filter(e => e.scrollWidth > e.clientWidth).length") == 0
    name = page.get_by_role("rowheader", name="AUROC")
    assert (
        name.evaluate("e => { const r = new Range(); r.selectNodeContents(e); return r.getClientRects().length }") == 1
    )
