"""The page of a history in a browser."""

from __future__ import annotations

from typing import Any

from pytest_ragmetrics.report.page import render_history
from tests.browser.conftest import OpenReport, check_views
from tests.histories import hostile, month


def test_lines_are_drawn_and_axe_finds_nothing(open_page: OpenReport, axe: Any) -> None:
    page = open_page(render_history(month()), bypass_csp=True).page
    page.locator("details > summary").click()
    check_views(axe, page, ("light", 390), ("dark", 1440))
    assert page.locator("figure").first.locator("polyline.mean").count() == 2
    assert page.locator("figure").last.locator("circle.failed").count() == 4
    assert (page.locator("polyline.mean").first.bounding_box() or {"width": 0})["width"] > 100


def test_a_hostile_history_is_only_text(open_page: OpenReport, axe: Any) -> None:
    page = open_page(render_history(hostile()), bypass_csp=True).page
    page.locator("details > summary").click()
    check_views(axe, page, ("light", 390), ("dark", 1440))
    assert page.locator("script, img, iframe, [onload], [onerror]").count() == 0
