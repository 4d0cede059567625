"""A calibration as one HTML file that runs nothing and asks for nothing."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from pytest_ragmetrics.calibration.calibration import Calibration
from pytest_ragmetrics.calibration.text import (
    disagreement_line,
    evidence_lines,
    figure_lines,
    headline,
    left_out,
    suggestion_lines,
    threshold_line,
)
from pytest_ragmetrics.report.page.visible import visible

_PACKAGE = "pytest_ragmetrics.report"
_TEMPLATES = "templates"
_WORST = 50


def render_calibration(calibration: Calibration, *, worst: int = _WORST) -> str:
    """Return a calibration as a self-contained page: the same figures, the same text.

    The page holds no script, and its policy allows none; whatever stands in the rows is shown as text.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=PackageLoader(_PACKAGE, _TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (files(_PACKAGE) / _TEMPLATES / "calibration.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    differing = calibration.disagreements()
    return environment.get_template(
        "calibration.html.jinja"
    ).render(
        # Our own file, the only text that is not escaped.
        style=Markup(style),  # noqa: S704
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
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
