"""What every page of ours stands in: templates that escape all but our own files, and a policy that allows no more."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from pytest_ragmetrics.report.page.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "pytest_ragmetrics.report"
_TEMPLATES = "templates"


def environment() -> Environment:
    """Return the environment of our templates; the filter ``verbatim`` lets our own files through as they are."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    found = Environment(
        loader=PackageLoader(_PACKAGE, _TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["verbatim"] = Markup
    return found


def asset(name: str) -> str:
    """Return one of our own files, a style or a script."""
    return (files(_PACKAGE) / _TEMPLATES / name).read_text(encoding="utf-8")


def policy(*, style: str, script: str | None = None) -> str:
    """Return a content security policy under which nothing runs, loads or is styled but these texts."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            *([f"script-src '{_hash(script)}'"] if script is not None else []),
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
