"""The page of a calibration in a browser."""

from __future__ import annotations

from typing import Any

from pytest_ragmetrics.evaluation.calibration.calibrate import calibrate
from pytest_ragmetrics.metrics import LexicalGrounding
from pytest_ragmetrics.report.page import render_calibration
from tests.browser.conftest import OpenReport, check_views

CONTEXT = "Plots are let for one year from the first of March."
ANSWERS = [("Plots are let for one year.", 1), ("Sheds may be painted in any colour.", 0)] * 6
ROWS = [
    {"response": response, "retrieved_contexts": [CONTEXT], "label": label, "id": f"</p><b>{number}"}
    for number, (response, label) in enumerate([*ANSWERS, ("Plots are let from March.", 0)])
]


def test_no_word_of_a_table_is_broken_and_axe_finds_nothing(open_page: OpenReport, axe: Any) -> None:
    page = open_page(render_calibration(calibrate(LexicalGrounding(), ROWS, threshold=0.5)), bypass_csp=True).page
    cut = "cells => cells.filter(e => e.scrollWidth > e.clientWidth).length"
    lines = "e => { const r = new Range(); r.selectNodeContents(e); return r.getClientRects().length }"
    for view in (("light", 320), ("dark", 390), ("light", 1440)):
        check_views(axe, page, view)
        assert page.locator("th, td").evaluate_all(cut) == 0
        assert page.get_by_role("rowheader", name="AUROC").evaluate(lines) == 1
    # A metric without a judge is named instead of one.
    assert page.locator("h1").inner_text() == "lexical_grounding (no judge) against 13 human labels: 6 good, 7 bad"
    assert page.locator("thead").nth(1).inner_text().strip().endswith("The metric passed\tThe metric failed")
    assert page.locator(".row").inner_text().endswith("people say bad (label 0), the metric passed it")
