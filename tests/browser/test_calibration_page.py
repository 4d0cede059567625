"""The page of a calibration in a browser."""

from __future__ import annotations

from typing import Any

from pytest_ragmetrics.evaluation.calibration.calibrate import calibrate
from pytest_ragmetrics.metrics import LexicalGrounding
from pytest_ragmetrics.report.page import render_calibration
from tests.browser.conftest import OpenReport, complaints

CONTEXT = "Plots are let for one year from the first of March."
ROWS = [
    {"response": response, "retrieved_contexts": [CONTEXT], "label": label, "id": f"{response} {number}"}
    for number in range(6)
    for response, label in (("Plots are let for one year.", 1), ("Sheds may be painted in any colour.", 0))
] + [{"response": "Plots are let from March.", "retrieved_contexts": [CONTEXT], "label": 0, "id": "</p><b>odd"}]


def test_no_word_of_a_table_is_broken_and_axe_finds_nothing(open_page: OpenReport, axe: Any) -> None:
    page = open_page(render_calibration(calibrate(LexicalGrounding(), ROWS, threshold=0.5)), bypass_csp=True).page
    cut = "cells => cells.filter(e => e.scrollWidth > e.clientWidth).length"
    lines = "e => { const r = new Range(); r.selectNodeContents(e); return r.getClientRects().length }"
    for width in (320, 390, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("th, td").evaluate_all(cut) == 0
        assert page.get_by_role("rowheader", name="AUROC").evaluate(lines) == 1
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert complaints(axe, page) == []
