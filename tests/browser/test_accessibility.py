"""What axe-core has to say against a report: nothing, at any width, in either colour scheme, closed or opened."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import OpenReport, complaints, large
from tests.showcase import baseline, showcase


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_report: OpenReport, axe: Any, scheme: str) -> None:
    """Neither in the overview and the list nor, narrow and wide, in opened tests with all that folds unfolded."""
    # The policy of the page would keep the checker out.
    report = open_report(showcase, baseline=baseline, color_scheme=scheme, bypass_csp=True)
    for width in (768, 390, 1440):
        report.page.set_viewport_size({"width": width, "height": 900})
        assert complaints(axe, report.page) == [], width
        if width == 768:
            report.open_all()


def test_axe_finds_nothing_in_pages_of_a_large_list(open_report: OpenReport, axe: Any) -> None:
    """With the buttons that turn them."""
    assert complaints(axe, open_report(large, bypass_csp=True).page) == []
