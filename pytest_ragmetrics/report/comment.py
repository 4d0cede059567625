"""The comment on a pull request, and the annotations of GitHub Actions at the lines of failing tests."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ragmetrics.metrics.base import digest
from pytest_ragmetrics.report.markdown import badness, render_markdown, why
from pytest_ragmetrics.runs.compare import RunComparison
from pytest_ragmetrics.runs.records import Document
from pytest_ragmetrics.runs.wording.runs import WRONG, gate_line, status_of
from pytest_ragmetrics.text.unicode import printable, shortened

# What a comment is found by, with a digest of the title. A text of a test cannot hold it: its ``<`` is escaped.
_MARKER = "<!-- pytest-ragmetrics: report comment {} -->"
#: GitHub refuses a longer comment.
COMMENT_LIMIT = 65_536

_CHANGES = 20
# GitHub shows no more annotations of one kind for a step.
_ANNOTATIONS = 10
_LENGTH = 300


def render_comment(document: Document, *, comparison: RunComparison | None = None, page: str | None = None) -> str:
    """Return the comment on a run: a line that marks those of its title, and its summary, tests linked to ``page``."""
    marker = _MARKER.format(digest(document.run.project))
    room = COMMENT_LIMIT - len(marker) - 1
    summary = render_markdown(document, comparison=comparison, page=page, changes=_CHANGES, limit=room)
    return f"{marker}\n{summary}"


def annotation_lines(document: Document) -> Iterator[str]:
    """Yield a workflow command for each of the worst tests that failed or are unscored, 10 at most, gates first.

    https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
    """
    found = (test for test in document.tests if status_of(test) in WRONG)
    wrong = sorted(found, key=lambda test: (test.gate is None, badness(test)))
    for test in wrong[:_ANNOTATIONS]:
        place = {"file": test.file, "line": "" if test.line is None else str(test.line), "title": test.id}
        values = {name: _data(value).replace(":", "%3A").replace(",", "%2C") for name, value in place.items() if value}
        properties = ",".join(f"{name}={value}" for name, value in values.items())
        message = why(test) if test.gate is None else gate_line(test.gate)
        yield f"::error {properties}::{_data(message)}"


def _data(text: str) -> str:
    return shortened(printable(text), _LENGTH).replace("%", "%25")
