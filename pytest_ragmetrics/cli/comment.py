"""`ragmetrics report comment`: the options, and where the comment and the annotations go."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from pytest_ragmetrics.cli.command import checked
from pytest_ragmetrics.core.errors import ArgumentError
from pytest_ragmetrics.core.files import write_atomically

if TYPE_CHECKING:
    from pytest_ragmetrics.runs.compare import RunComparison
    from pytest_ragmetrics.runs.records import Document


def take_comment(parser: argparse.ArgumentParser) -> None:
    """Add the options of the comment beside the files."""
    parser.add_argument("--page", type=checked(_page), metavar="URL", help="where the page is: tests link to it")
    parser.add_argument(
        "--annotations", action="store_true", help="with -o: print workflow commands of GitHub at the 10 worst tests"
    )


def comment(arguments: argparse.Namespace, document: Document, comparison: RunComparison | None) -> list[str]:
    """Print or write the comment on a run."""
    from pytest_ragmetrics.report.comment import annotation_lines, render_comment

    body = render_comment(document, comparison=comparison, page=arguments.page)
    if arguments.output is None:
        if arguments.annotations:
            raise ArgumentError("--annotations: standard output is the comment: write that to a file, -o FILE")
        return body.splitlines()
    write_atomically(arguments.output, body)
    annotations = annotation_lines(document) if arguments.annotations else ()
    return [*annotations, f"{arguments.output}: written"]


def _page(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.fragment:
        raise ValueError(f"{text!r} is no address of a page: write https://..., without #")
    # Parentheses, brackets and blanks would end the link in Markdown, a bar the row of a table.
    return quote(text, safe=":/?@!$&*+,;=%~")
