"""What axe-core has to say against a report: nothing, in any view, at any width, in either colour scheme."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import OpenReport, check_views, complaints, large
from tests.showcase import baseline, showcase


def test_axe_finds_nothing(open_report: OpenReport, axe: Any) -> None:
    report = open_report(showcase, "#overview", baseline=baseline, bypass_csp=True)
    page = report.page

    def check(*schemes: Any) -> None:
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            assert complaints(axe, page) == [], scheme

    check("light", "dark")
    # Who prefers dark pages gets one.
    colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(page.evaluate(colour)) < 40
    page.locator(".views a", has_text="Tests").click()
    for name, schemes in (("rent and water", ["dark"]), ("test_shed_size", ["dark", "light"])):
        report.opened(name)
        report.unfold()
        check(*schemes)
    report.opened("test_index_is_fresh")
    check_views(axe, page, ("light", 390))
    page.locator("#to-list").click()
    page.locator("#filters summary").click()
    check("light")


def test_axe_finds_nothing_in_pages_of_a_large_list(open_report: OpenReport, axe: Any) -> None:
    report = open_report(large, "#tests?page=13", bypass_csp=True)
    assert report.page.locator("#span").inner_text() == "1,201 to 1,210 of 1,210"
    assert complaints(axe, report.page) == []
