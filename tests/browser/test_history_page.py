"""The page of a history in a browser."""

from __future__ import annotations

from typing import Any

from pytest_ragmetrics.report.page import render_history
from tests.browser.conftest import OpenReport, complaints
from tests.histories import hostile, month

#: Each colour scheme at one width.
VIEWS: list[tuple[Any, int]] = [("light", 390), ("dark", 1440)]


def test_lines_are_drawn_and_axe_finds_nothing(open_page: OpenReport, axe: Any) -> None:
    page = open_page(render_history(month()), bypass_csp=True).page
    page.locator("details > summary").click()
    for scheme, width in VIEWS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert complaints(axe, page) == []
    assert page.locator("figure").first.locator("polyline.mean").count() == 2
    assert page.locator("figure").last.locator("circle.failed").count() == 4
    box = page.locator("polyline.mean").first.bounding_box()
    assert box is not None
    assert box["width"] > 100


def test_a_hostile_history_is_only_text(open_page: OpenReport) -> None:
    page = open_page(render_history(hostile())).page
    page.locator("details > summary").click()
    for _, width in VIEWS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("script, img, iframe, [onload], [onerror]").count() == 0
