"""What axe-core has to say against a report: nothing, in any view, at any width, in either colour scheme."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import OpenReport, complaints, large
from tests.showcase import baseline, showcase


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_report: OpenReport, axe: Any, scheme: str) -> None:
    """In the overview, in the list, and in tests with all that folds unfolded, on a phone and on a wide screen."""
    # The policy of the page would keep the checker out.
    report = open_report(showcase, "#overview", baseline=baseline, color_scheme=scheme, bypass_csp=True)
    assert complaints(axe, report.page) == []
    report.page.locator(".views a", has_text="Tests").click()
    for name in ("rent and water", "test_shed_size", "test_index_is_fresh"):
        report.opened(name)
        report.unfold()
        assert complaints(axe, report.page) == [], name
    report.page.set_viewport_size({"width": 390, "height": 844})
    assert complaints(axe, report.page) == []
    report.page.locator("#to-list").click()
    report.page.locator("#filters summary").click()
    assert complaints(axe, report.page) == []


def test_axe_finds_nothing_in_pages_of_a_large_list(open_report: OpenReport, axe: Any) -> None:
    """With the buttons that turn them, and groups."""
    report = open_report(large, bypass_csp=True)
    assert complaints(axe, report.page) == []
