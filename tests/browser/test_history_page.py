"""The page of a history in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.report.html import render_history
from tests.browser.conftest import complaints
from tests.histories import hostile, month

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_are_drawn_and_axe_finds_nothing(browser: Browser, axe: Any, tmp_path: Path, scheme: Any) -> None:
    """Wide and on a phone: nothing overflows, a break parts the lines, and a hostile history is only text."""
    said: list[str] = []
    page = browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()
    page.on("console", lambda message: said.append(message.text))
    for history in (month(), hostile()):
        file = tmp_path / "trend.html"
        file.write_text(render_history(history), "utf-8")
        page.goto(file.as_uri())
        page.locator("details > summary").click()
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert complaints(axe, page) == []
        assert page.evaluate("window.pwned") is None
        assert page.locator("script, img, iframe, [onload], [onerror]").count() == 0
        if history.branch == "main":
            assert page.locator("figure").first.locator("polyline.mean").count() == 2
            assert page.locator("figure").last.locator("circle.failed").count() == 4
            box = page.locator("polyline.mean").first.bounding_box()
            assert box is not None
            assert box["width"] > 100
    page.context.close()
    assert said == []
