"""Writing the reports of a run: each file is replaced atomically, and a failure of one does not affect the others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ragmetrics.core.files import STEP_SUMMARY, a_path, write_atomically
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.runs.records import Document, GateRecord, Record, render_json

if TYPE_CHECKING:
    from pytest_ragmetrics.report.history import History
    from pytest_ragmetrics.runs.compare import RunComparison

#: GitHub Actions drops a step summary that is larger than this.
STEP_SUMMARY_LIMIT = 1024 * 1024


def render(name: str, document: Document, comparison: RunComparison | None, history: History | None) -> str:
    """Return the file of a setting (report, json or markdown), with what changed since the baseline."""
    if name == "json":  # a run that writes it alone loads nothing else
        return render_json(document)
    if name == "markdown":
        from pytest_ragmetrics.report.markdown import render_markdown

        return render_markdown(document, comparison=comparison)
    from pytest_ragmetrics.report.page import render_html

    return render_html(document, comparison=comparison, history=history)


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A line on each file, and whether one could not be written."""

    lines: tuple[str, ...] = ()
    failed: bool = False


def write_files(
    document: Document,
    files: Mapping[str, Path],
    *,
    comparison: RunComparison | None = None,
    history: History | None = None,
    others: Mapping[Path, Callable[[], object]] | None = None,
) -> Written:
    """Write the files; one that cannot be written does not affect the others.

    ``files`` maps the names of :func:`render` to paths; ``others`` are written by functions. Without any score and any
    decided gate nothing is written, so that a run that selected no such test does not replace a report by an empty one.
    """
    if not any(row.records or is_decided(row.gate) for row in document.tests):
        paths = (*files.values(), *(others or {}))
        return Written(lines=tuple(f"{path}: not written, no test scored anything" for path in paths))
    works: dict[Path, Callable[[], object]] = {
        path: partial(_write, path, name, document, comparison, history) for name, path in files.items()
    }
    states = {path: _state(work) for path, work in {**works, **(others or {})}.items()}
    lines = tuple(f"{path}: {state}" for path, state in states.items())
    return Written(lines=lines, failed=any(state.startswith("NOT") for state in states.values()))


def is_decided(gate: GateRecord | None) -> bool:
    """Tell whether there is a gate that was not skipped as incomplete."""
    return gate is not None and gate.outcome != "skipped"


def _write(path: Path, name: str, document: Document, comparison: RunComparison | None, history: History | None) -> str:
    """Write a file and return what is missing in it, in words."""
    text = missing = ""
    try:
        text = render(name, document, comparison, history)
    except MemoryError:
        if name != "report":
            raise
    if not text:  # not in the handler, which holds what was made so far
        text, missing = render(name, *_lean(document, comparison), history), f", {_NO_ROOM}"
    step_summary = os.environ.get(STEP_SUMMARY, "").strip()
    if name == "markdown" and step_summary and a_path(step_summary, Path()) == path:
        _append(path, text)
    else:
        write_atomically(path, text)
    return missing


_NO_ROOM = "without the texts of tests that passed: there was too little memory"


def _lean(document: Document, comparison: RunComparison | None) -> tuple[Document, RunComparison | None]:
    """Return a document whose passed tests have their scores alone, and its comparison."""

    def scores(record: Record) -> Record:
        return replace(record, sample=Sample(id=record.sample.id), verdicts=(), exchanges=(), reason=_NO_ROOM)

    lean = replace(
        document,
        tests=tuple(
            replace(test, records=tuple(map(scores, test.records))) if test.outcome == "passed" else test
            for test in document.tests
        ),
    )
    if comparison is None:
        return lean, None
    both = zip(document.tests, lean.tests, strict=True)
    records = [pair for test, now in both for pair in zip(test.records, now.records, strict=True)]
    pairs = {**comparison.pairs, **{id(now): comparison.pairs[id(record)] for record, now in records}}
    return lean, replace(comparison, pairs=pairs)


def _state(work: Callable[[], object]) -> str:
    """Write a file and return that it is written, or what went wrong."""
    try:
        return f"written{work() or ''}"
    except OSError as error:
        return f"NOT written, {error.strerror or error}"
    except Exception as error:  # noqa: BLE001 - an error in one report must not lose the results of the run
        return f"NOT written, {type(error).__name__}: {error}"


def _append(path: Path, text: str) -> None:
    """Add to the step summary, which other steps of the job write to as well."""
    data = f"\n{text}".encode("utf-8", "replace")
    size = path.stat().st_size if path.exists() else 0
    if size + len(data) > STEP_SUMMARY_LIMIT:
        raise OSError(errno.EFBIG, "the step summary would be larger than the 1 MiB that GitHub shows")
    with path.open("ab") as stream:
        stream.write(data)
