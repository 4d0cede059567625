"""The page of answers in two or three columns in a browser."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics.report.columns import compare_runs
from pytest_ragmetrics.report.page import render_columns
from tests.browser.conftest import OpenReport, check_views
from tests.documents import HOSTILE, document, record, row


def page_of(names: tuple[str, ...]) -> str:
    """Return the page of runs with an ordinary row and a hostile one each; the first wins one row, the second one."""
    runs = []
    for place, name in enumerate(names):
        tests = []
        for number, text in enumerate(["How high?", *HOSTILE]):
            sample = {"id": text, "user_input": text, "response": f"{text} {place}"}
            score = 0.9 - place / 10 if number else 0.5 + place / 10
            records = record("faithfulness", score, sample=sample), record("brevity", 1.0, sample=sample)
            tests.append(row(f"test_{number}", *records))
        runs.append((name, document(*tests)))
    return render_columns(compare_runs(runs))


@pytest.mark.parametrize("setting", [("light", 390, 3), ("dark", 1440, 2)])
def test_rows_are_filtered_by_winner_and_metric(open_page: OpenReport, axe: Any, setting: Any) -> None:
    scheme, width, columns = setting
    report = open_page(page_of(("monday", HOSTILE[0], HOSTILE[2])[:columns]), bypass_csp=True)
    page = report.page
    check_views(axe, page, (scheme, width))
    shown = page.locator("#rows > li:visible")
    assert shown.count() == 1 + len(HOSTILE)
    page.get_by_label("monday wins").focus()
    page.keyboard.press("Space")
    assert shown.count() == len(HOSTILE)
    assert page.locator(".cell.wins:visible h4").first.inner_text().startswith("monday")
    page.locator("#metric").select_option("brevity")
    assert (shown.count(), page.url.partition("#")[2]) == (0, "winner=0&metric=0")
    assert page.locator("#nothing").is_visible()
    page.go_back()
    assert shown.count() == len(HOSTILE)
    page.evaluate(f"location.hash = 'winner={columns - 1}'")
    report.go()
    assert shown.locator("h3").all_inner_texts() == ["How high?"]
