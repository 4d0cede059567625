"""Writing what a run leaves behind: whole files or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_ragmetrics.report.html import render_html
from pytest_ragmetrics.report.records import Document
from pytest_ragmetrics.writing import write_atomically


def render_json(document: Document) -> str:
    """Return the document as JSON text."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


RENDERERS: Mapping[str, Callable[[Document], str]] = {"report": render_html, "json": render_json}


def write_files(document: Document, files: Mapping[str, Path]) -> list[str]:
    """Write the asked-for files and return one line on each; a file that cannot be written harms no other.

    ``files`` maps the names of :data:`RENDERERS` to paths. Without any score nothing is written, so that a run
    that selected no such test does not replace a report by an empty one.
    """
    if not any(row["records"] for row in document["tests"]):
        return [f"{path}: not written, no test scored anything" for path in files.values()]
    return [_write(path, RENDERERS[name](document)) for name, path in files.items()]


def _write(path: Path, text: str) -> str:
    try:
        write_atomically(path, text)
    except OSError as error:
        return f"{path}: NOT written, {error.strerror or error}"
    return f"{path}: written"
