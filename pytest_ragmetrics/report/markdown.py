"""The summary of a run in Markdown: short enough for a pull request, the worst first, texts of tests escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from pytest_ragmetrics.report.page import visible
from pytest_ragmetrics.runs.compare import RunComparison
from pytest_ragmetrics.runs.origin import origin_parts
from pytest_ragmetrics.runs.records import Document, Record, RunRecord, TestRecord
from pytest_ragmetrics.runs.wording.blame import blame_lines
from pytest_ragmetrics.runs.wording.comparisons import change_line, counts_text, incomparable_lines
from pytest_ragmetrics.runs.wording.failures import shortcoming
from pytest_ragmetrics.runs.wording.figures import score_text, threshold_text
from pytest_ragmetrics.runs.wording.runs import (
    STATUSES,
    TALLY_HEAD,
    WRONG,
    MetricTally,
    beside_lines,
    blamed,
    checked_lines,
    flaky_lines,
    gate_line,
    gist,
    judges_of,
    margin,
    outcome_of,
    paid_usages,
    spent_text,
    status_of,
    tallies,
)
from pytest_ragmetrics.text.unicode import ZERO_WIDTH_SPACE, printable, shortened

_METRICS = 12
_GATES = 6
_TESTS = 12
_CHANGES = 4
_STRANGERS = 3
_NOTES = 3
_LENGTH = 300
_LINK = 1000
# Parentheses, brackets and blanks would end a link, a bar the row of a table.
_ADDRESS = ":/?#@!$&*+,;=%~"

# Characters with a meaning in Markdown, HTML, GitHub or its workflow commands. No line starts with foreign text, so
# those that matter only there are left out, as are an underscore inside a word and a colon at its end; but notes are
# lines, and a slash at the start of one is a quick action of GitLab.
_ACTIVE = re.compile(
    rf"[&<>\[\]\\`*|~$#@{ZERO_WIDTH_SPACE}]|\A/|:(?=\S)|(?<=www)\.|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE
)
# Mentions and references (@user, #1, GH-1; of GitLab also !1 and &1) are looked for in the text that Markdown made,
# where an entity is its character: only a blank without width keeps them from notifying somebody.
_REFERENCE = re.compile(r"(?<=[@#])(?=\w)|(?<=[!&])(?=[0-9])|(?<=\bGH)(?=-[0-9])", re.IGNORECASE)
#: A test id that needs no escaping in a code span of a table or a list.
_ORDINARY = re.compile(r"(?:[\w ./:,=()-]|\[(?!\[)|\])+")


def render_markdown(
    document: Document,
    *,
    comparison: RunComparison | None = None,
    page: str | None = None,
    changes: int = _CHANGES,
    limit: int | None = None,
) -> str:
    """Return the summary of a run, at most about 60 lines for any size, with the changes since a baseline.

    With ``page``, the quoted address of the run's page, tests link into it. ``changes`` is how many scores that became
    worse are named, ``limit`` how many UTF-16 code units the summary may have: lines before the cost are left out.
    """
    tests = sorted(document.tests, key=badness)
    of_project = f" of {escaped(document.run.project)}" if document.run.project else ""
    blocks = [
        [f"## RAG metrics{of_project}: {outcome_of(document)}"],
        _origin(document.run),
        _metric_table(tallies(document)),
        _list("Gates", list(_gates(tests, page)), _GATES),
        _list("What went wrong", list(_wrong(tests, page)), _TESTS),
        [] if comparison is None else _changes(comparison, page, changes),
    ]
    text = "\n\n".join("\n".join(block) for block in blocks if block)
    ending = [*_ending(document)]
    tail = "".join(f"{line}\n" for line in ["", *ending]) if ending else ""
    return (text if limit is None else _cut(text, limit - _size(tail) - 1)) + f"\n{tail}"


def _cut(text: str, limit: int) -> str:
    """Return the first lines of a text within a limit, and how many are left out."""
    lines, left_out = text.split("\n"), 0
    while _size(text) > limit:
        lines.pop()
        left_out += 1
        text = "\n".join([*lines, "", f"and {left_out} more lines"])
    return text


def _size(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def escaped(text: str, length: int = _LENGTH) -> str:
    r"""Return a text as Markdown that shows it and does nothing else: no markup, no HTML, no link, no mention.

    >>> escaped("**bold** <b> @you ::error::x")
    '&#42;&#42;bold&#42;&#42; &#60;b&#62; &#64;&#8203;you &#58;&#58;error&#58;&#58;x'
    """
    parted = _REFERENCE.sub(ZERO_WIDTH_SPACE, shortened(printable(text), length))
    return _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", parted)


def _code(test_id: str) -> str:
    name = shortened(printable(test_id), _LENGTH)
    return f"`{name}`" if _ORDINARY.fullmatch(name) and name.strip() == name else escaped(name)


def _linked(text: str, test_id: str, page: str | None) -> str:
    """Return Markdown without a link as a link to a test on the page, unless its address is very long."""
    target = "" if page is None else f"{page}#{quote(visible(test_id), safe='/:')}"
    return f"[{text}]({target})" if 0 < len(target) <= _LINK else text


def badness(test: TestRecord) -> tuple[int, float, str]:
    """Return the key that sorts tests, the worst first."""
    return STATUSES.index(status_of(test)), min(map(margin, test.records), default=0.0), test.id


def _origin(run: RunRecord) -> list[str]:
    """Return the line on branch, commit and CI run, with links; nothing where none is known."""
    parts = [(escaped(text), quote(link, safe=_ADDRESS)) for text, link in origin_parts(run)]
    line = ", ".join(f"[{text}]({link})" if 0 < len(link) <= _LINK else text for text, link in parts)
    return [line[:1].upper() + line[1:]] if line else []


def _metric_table(found: Sequence[MetricTally]) -> list[str]:
    rows = sorted(found, key=lambda t: (-t.failing, -t.unscored, t.metric))
    if not rows:
        return []
    lines = [f"| {' | '.join(TALLY_HEAD)} |", "|---|--:|--:|--:|--:|--:|"]
    lines += [f"| {' | '.join(map(escaped, tally.cells))} |" for tally in rows[:_METRICS]]
    if len(rows) > _METRICS:
        lines.append(f"| and {len(rows) - _METRICS} more | | | | | |")
    checked = checked_lines(rows[:_METRICS])
    return [*lines, *([""] if checked else []), *(f"- {escaped(line)}" for line in checked)]


def _list(title: str, lines: Sequence[str], limit: int) -> list[str]:
    if not lines:
        return []
    more = [f"- and {len(lines) - limit} more"] if len(lines) > limit else []
    return [f"### {title}", "", *(f"- {line}" for line in lines[:limit]), *more]


def _gates(tests: Sequence[TestRecord], page: str | None) -> Iterator[str]:
    order = ("failed", "inconclusive", "skipped", "passed")
    found = [(test.gate, test.id) for test in tests if test.gate is not None]
    for gate, name in sorted(found, key=lambda pair: order.index(pair[0].outcome)):
        yield f"{escaped(gate_line(gate), 2 * _LENGTH)} {_linked(_code(name), name, page)}"


def _wrong(tests: Sequence[TestRecord], page: str | None) -> Iterator[str]:
    """Yield the tests that failed or are unscored, each with its worst record; gates are listed above."""
    for test in tests:
        if status_of(test) in WRONG and test.gate is None:
            place = test.file if test.line is None else f"{test.file}:{test.line}"
            yield f"{_linked(_code(test.id), test.id, page)} ({_code(place)}): {escaped(why(test))}"


def why(test: TestRecord) -> str:
    """Return why a test failed or is unscored: its worst record, else what pytest said."""
    if bad := blamed(test):
        return _shortfall(min(bad, key=margin))
    return gist(test.message) or test.outcome


def _shortfall(record: Record) -> str:
    threshold, score, said, reason = record.threshold, record.score, "unscored", record.reason
    if score is not None and threshold is not None:
        shown = score_text(score, threshold.bound, unit=record.unit)
        said, reason = f"{shown}, needed {threshold_text(threshold, record.unit)}", shortcoming(record)
    return f"{record.metric} {said}" + (f": {reason}" if reason else "")


def _changes(comparison: RunComparison, page: str | None, shown: int) -> list[str]:
    strangers = incomparable_lines(comparison)
    if len(strangers) > _STRANGERS:
        strangers[_STRANGERS:] = [f"and {len(strangers) - _STRANGERS} more that were not compared"]
    bad = comparison.of("unscored", "worse")
    named = [f"- {_linked(escaped(change_line(change)), change.id, page)}" for change in bad[:shown]]
    more = [f"- and {len(bad) - shown} more"] if len(bad) > shown else []
    others = [f"- {escaped(line)}" for line in strangers]
    blame = [line for text in blame_lines(comparison)[:1] for line in (escaped(text), "")]
    return ["### Against the baseline", "", escaped(counts_text(comparison)), "", *blame, *named, *more, *others]


def _ending(document: Document) -> Iterator[str]:
    records = [record for test in document.tests for record in test.records]
    parts = [spent_text(paid_usages(document))]
    judges = judges_of(records)
    if judges:
        parts.append(f"judged by {', '.join(judges)}")
    parts += [*beside_lines(document.tests), *flaky_lines(document.tests)]
    for line in [*filter(None, parts), *document.run.warnings[:_NOTES], *document.run.notes[:_NOTES]]:
        yield f"{escaped(line)}  "
