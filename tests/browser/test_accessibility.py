"""What axe-core has to say against a report: nothing, at any width, in either colour scheme, closed or opened."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import OpenReport, complaints
from tests.documents import crowd
from tests.showcase import baseline, showcase


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1440])
def test_axe_finds_nothing(open_report: OpenReport, axe: Any, width: int, scheme: str) -> None:
    """Neither in the overview and the list nor in opened tests with all that folds unfolded."""
    viewport = {"width": width, "height": 900}
    # The policy of the page would keep the checker out.
    report = open_report(showcase(), baseline=baseline(), viewport=viewport, color_scheme=scheme, bypass_csp=True)
    assert complaints(axe, report.page) == []
    report.open_all()
    assert complaints(axe, report.page) == []


def test_axe_finds_nothing_in_pages_of_a_large_list(open_report: OpenReport, axe: Any) -> None:
    """With the buttons that turn them."""
    assert complaints(axe, open_report(crowd(150, length=80), bypass_csp=True).page) == []
