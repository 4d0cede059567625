"""The report of a run as one HTML file: a pure function of its document and of what changed since the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from pytest_ragmetrics.comparison import RunComparison
from pytest_ragmetrics.explain.runs import STATUSES, WORDS
from pytest_ragmetrics.records import Document
from pytest_ragmetrics.report.page import distribution
from pytest_ragmetrics.report.page.entries import FLAGS, list_entries
from pytest_ragmetrics.report.page.frame import asset, environment, policy
from pytest_ragmetrics.report.page.listing import list_tests
from pytest_ragmetrics.report.page.overview import build_overview
from pytest_ragmetrics.report.page.visible import visible


def render_html(document: Document, *, comparison: RunComparison | None = None) -> str:
    """Return the report as a self-contained page, with what changed since a baseline if that is known.

    The same document gives the same text. The page asks for nothing from the network, runs no script but its own, and
    shows whatever stands in the document as text. It can be encoded as UTF-8 even if the document cannot.
    """
    style, script = asset("palette.css") + asset("report.css"), asset("report.js")
    entries = list_entries(document.tests, comparison.by_record() if comparison else None)
    templates = environment()
    templates.filters["query"] = _query
    templates.filters["fragment"] = _fragment
    return templates.get_template("report.html.jinja").render(
        policy=policy(style=style, script=script),
        style=style,
        script=script,
        overview=build_overview(document, entries, comparison),
        entries=entries,
        listing=list_tests(entries),
        statuses=[status for status in STATUSES if any(entry.status == status for entry in entries)],
        flags=[flag for flag in FLAGS if any(flag in entry.flags for entry in entries)],
        files=sorted({entry.file for entry in entries}),
        words=WORDS,
        drawing=distribution,
    )


def _query(values: Mapping[str, str]) -> str:
    """Return what the script reads a filter from; its values are compared with texts as they are shown."""
    return urlencode({name: visible(value) for name, value in values.items()})


def _fragment(anchor: str) -> str:
    """Return a test's deep link: its id, percent-encoded where an address needs it."""
    return "#" + quote(anchor, safe="/:")
