"""The failures of a run in a few short lines each, for a reader that pays by the token."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.core.result import Verdict, WordChange
from pytest_ragmetrics.runs.records import Record, natural_order, result_of
from pytest_ragmetrics.runs.wording.failures import check_of, failed_verdicts, held_line, turn_text
from pytest_ragmetrics.runs.wording.figures import SHOWN, and_more, named, quoted, readable
from pytest_ragmetrics.runs.wording.runs import errors_in, gist

# How many characters a line has of an error, and of the reason of a piece.
_MORE, _REASON = 160, 100
_CHANGES_SHOWN = 4
_PLACES_SHOWN = 4
_LINES_SHOWN = 2 * SHOWN
# How many characters are repeated in full.
_REPEATED = 40
# What pytest writes on where an error passed: "tests/test_bot.py:12: KeyError".
_PLACE = re.compile(r"^(?!E )([^\s>][^\n]*?):(\d+): ", re.MULTILINE)
# Code that is not of the project.
_INSTALLED = re.compile(r"[/\\](?:site-packages|dist-packages|pytest_ragmetrics|lib[/\\]python[\d.]+)[/\\]")
# Lines of a rewritten assertion that explain its values, which the line in the file says as well.
_WHERE = re.compile(r"\+\s+(?:where|and) ")
# A row in the text of a gate.
_ROW = re.compile(r"  -?[\d.]+  (.*?)(?=: |$)")
_ERROR_LINE = re.compile(r"^E(?: (.*)|$)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A failure that pytest reported: its test, the phase unless it is the test itself, pytest's text, the scores."""

    test: str
    line: int | None
    phase: str
    message: str
    records: Sequence[Record]

    @property
    def file(self) -> str:
        """The file of the test."""
        return self.test.partition("::")[0]

    @property
    def name(self) -> str:
        """The name of the test in its file, "" of the file itself."""
        return named(self.test[len(self.file) + 2 :])

    @property
    def line_of_error(self) -> int | None:
        """The first line in the file of the test that the error passed, the line of the test if it passed none."""
        lines = [int(line) for path, line in _PLACE.findall(errors_in(self.message)[-1]) if path == self.file]
        return lines[0] if lines else self.line

    def head(self, before: Failure | None) -> str:
        """Return what a line on it begins with; of the same function as the one ``before`` it is the parameters."""
        function, bracket, parameters = self.test.partition("[")
        same = before is not None and bracket and before.test.startswith(function + bracket)
        name = named(bracket + parameters) if same else f"{self.line_of_error or ''} {self.name}".strip()
        return f"{name} {self.phase}".strip()


def digest(failures: Iterable[Failure]) -> list[str]:
    """Return the lines on some failures: under the name of each file its tests, and under each test what failed.

    A line on a test has the line of its file, its name, and per metric the score, the bound and the reason; below it
    is a line on each piece that failed, with its place in the response, the place in the contexts to look at and the
    words that differ. Another error has its message and the places that it passed. Others that failed alike refer to
    the first test with these lines.
    """
    listed = sorted(failures, key=lambda it: (it.file, it.line or 0, natural_order(it.test)))
    rows = {failure.test.partition("[")[2].removesuffix("]") for failure in listed}
    first_of: dict[tuple[str, ...], Failure] = {}
    lines: list[str] = []
    for last, failure in zip([None, *listed], listed, strict=False):
        if last is None or failure.file != last.file:
            lines.append(named(failure.file))
        head = failure.head(last)
        for block in _blocks(failure, rows):
            first, *rest = block
            before = first_of.setdefault(tuple(block), failure)
            if before is not failure and len("".join(block)) > _REPEATED:
                first, rest = f"as {before.name if before.file == failure.file else named(before.test)}", []
            lines += [f"{head} {first}", *(f" {line}" for line in rest)]
            head = ""
    return lines


def _blocks(failure: Failure, rows: Container[str]) -> Iterator[list[str]]:
    *causes, error = errors_in(failure.message)
    for record in failure.records:
        if record.outcome in ("failed", "unscored"):
            yield _record_lines(record)
    # The lines of a score say its error already.
    text = " ".join(_ERROR_LINE.sub(r"\1", error).split())
    unscored = (it.reason or "" for it in failure.records if it.outcome == "unscored")
    failed = (held_line(result_of(it), check_of(it)) for it in failure.records if it.outcome == "failed")
    if any(" ".join(reason.split()) in text for reason in unscored) or any(line in text for line in failed):
        return
    texts = [match[1] or "" for match in _ERROR_LINE.finditer(error)]
    # Rows that failed themselves are left out of the text of a gate.
    texts = texts or [line for line in error.splitlines() if not ((row := _ROW.match(line)) and row[1] in rows)]
    texts = [text for text in texts if text.strip() and not _WHERE.match(text.strip())] or ["failed"]
    lines = [readable(texts[0]), *(readable(text, _MORE) for text in texts[1:_LINES_SHOWN])]
    lines += and_more(len(texts), shown=_LINES_SHOWN, indent="")
    lines += [f"from {readable(gist(cause))}" for cause in causes[:1]]
    # The places in code of the project that the error passed, without the line of its test.
    found = [place for place in _PLACE.findall(failure.message) if not _INSTALLED.search(place[0])]
    here = (failure.file, str(failure.line_of_error))
    names = {f"line {line}" if path == failure.file else f"{named(path)}:{line}": (path, line) for path, line in found}
    places = [name for name, place in names.items() if place != here]
    lines[0] += f" at {', '.join(places[-_PLACES_SHOWN:])}" if places else ""
    yield lines


def _record_lines(record: Record) -> list[str]:
    if record.score is None:
        return [f"{named(record.metric)} unscored: {readable(record.reason or '')}"]
    failed = failed_verdicts(record)
    total = sum(verdict.counts for verdict in record.verdicts)
    reason = f"{len(failed)}/{total} {record.complaint}" if failed else readable(record.reason or "", _REASON)
    lines = [f"{held_line(result_of(record), check_of(record))}{reason and f': {reason}'}"]
    lines += [_verdict_text(verdict, record.complaint) for verdict in failed[:SHOWN]]
    lines += and_more(len(failed), indent="")
    lines += [f"judges: {readable(text, _REASON)}" for text in record.disagreements[:SHOWN]]
    return lines


def _verdict_text(verdict: Verdict, complaint: str) -> str:
    place = f" response[{verdict.start}:{verdict.end}]" if verdict.start is not None else ""
    notes = [" suspicious"] if verdict.suspicious else []
    changes = [] if verdict.nearest is None else [it for it in verdict.nearest.changes if it.kind != "same"]
    if (near := verdict.nearest) is not None:
        texts = [_change_text(change) for change in changes[:_CHANGES_SHOWN]]
        texts += [f"{len(changes) - _CHANGES_SHOWN} more"] if len(changes) > _CHANGES_SHOWN else []
        end = f": {', '.join(texts)}" if texts else f"[{near.start}:{near.end}]"
        notes.append(f" contexts[{near.context}]{end}")
    if verdict.reason and not changes and not verdict.reason.endswith(complaint):
        notes.append(f": {readable(verdict.reason, _REASON)}")
    return f"{turn_text(verdict)}{quoted(verdict.text)}{place}{''.join(notes)}"


def _change_text(change: WordChange) -> str:
    response, source = readable(change.said, _REASON), readable(change.source, _REASON)
    return {"replaced": f"{response} -> {source}", "added": f"+{response}"}.get(change.kind, f"-{source}")
