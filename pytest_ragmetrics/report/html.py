"""The report of a run as one HTML file: a pure function of its document and the baseline's."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from pytest_ragmetrics.report.comparison import compare_documents
from pytest_ragmetrics.report.page import distribution
from pytest_ragmetrics.report.page.entries import FLAGS, STATUSES, list_entries
from pytest_ragmetrics.report.page.entry_view import WORDS
from pytest_ragmetrics.report.page.listing import list_tests
from pytest_ragmetrics.report.page.overview import look_over
from pytest_ragmetrics.report.page.visible import visible
from pytest_ragmetrics.report.records import Document

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "pytest_ragmetrics.report"
_TEMPLATES = "templates"


def render_html(document: Document, *, baseline: Document | None = None) -> str:
    """Return the report as a self-contained page, compared with a baseline if there is one: same documents, same text.

    The page asks for nothing from the network, runs no script but its own, and shows whatever stands in the
    document as text. It can be encoded as UTF-8 even if the document cannot.
    """
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    comparison = compare_documents(document, baseline) if baseline is not None else None
    entries = list_entries(document["tests"], comparison.by_record() if comparison else None)
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            policy=_policy(style=style, script=script),
            style=style,
            script=script,
            overview=look_over(document, entries, comparison),
            entries=entries,
            listing=list_tests(entries),
            statuses=[status for status in STATUSES if any(entry.status == status for entry in entries)],
            flags=[flag for flag in FLAGS if any(flag in entry.flags for entry in entries)],
            files=sorted({entry.file for entry in entries}),
            words=WORDS,
            drawing=distribution,
        )
    )


def _environment() -> Environment:
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
    # Our own files, the only text that is not escaped.
    environment.filters["verbatim"] = Markup
    environment.filters["query"] = _query
    environment.filters["fragment"] = _fragment
    return environment


def _query(values: Mapping[str, str]) -> str:
    """Return what the script reads a filter from; its values are compared with texts as they are shown."""
    return urlencode({name: visible(value) for name, value in values.items()})


def _fragment(anchor: str) -> str:
    """Return a test's deep link: its id, percent-encoded where an address needs it."""
    return "#" + quote(anchor, safe="/:")


def _asset(name: str) -> str:
    return (files(_PACKAGE) / _TEMPLATES / name).read_text(encoding="utf-8")


def _policy(*, style: str, script: str) -> str:
    """Return a content security policy under which nothing runs, loads or is styled but these two texts."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
