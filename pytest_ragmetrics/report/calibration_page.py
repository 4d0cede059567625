"""A calibration as one HTML file that runs nothing and asks for nothing."""

from __future__ import annotations

from pytest_ragmetrics.calibration.result import Calibration
from pytest_ragmetrics.calibration.text import (
    disagreement_line,
    evidence_lines,
    figure_lines,
    headline,
    left_out,
    suggestion_lines,
    threshold_line,
)
from pytest_ragmetrics.report.html import render

_WORST = 50


def render_calibration(calibration: Calibration, *, worst: int = _WORST) -> str:
    """Return a calibration as a self-contained page: the same figures, the same text.

    The page has no script, and its policy allows none; the texts of the rows are shown as text.
    """
    differing = calibration.disagreements()
    return render(
        "calibration.html.jinja",
        style="calibration.css",
        headline=headline(calibration),
        left_out=[line.strip() for line in left_out(calibration)],
        threshold=threshold_line(calibration),
        confidence=f"{calibration.figures.auroc.confidence * 100:g} %",
        figures=figure_lines(calibration),
        counts=calibration.figures.agreement,
        suggestion=[line.strip() for line in suggestion_lines(calibration)],
        bins=calibration.figures.reliability,
        differing=len(differing),
        disagreements=[
            (disagreement_line(calibration, row), "\n".join(evidence_lines(calibration, row)))
            for row in differing[:worst]
        ],
    )
