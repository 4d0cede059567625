"""What a run leaves behind, in the process that reports: the cassette, the files, the summary on the terminal."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics.files.paths import portable
from pytest_ragmetrics.report.recording import Collector, Setting

if TYPE_CHECKING:
    from pytest_ragmetrics.report.comparison import Comparison
    from pytest_ragmetrics.report.records import Document
    from pytest_ragmetrics.run.running import Running
    from pytest_ragmetrics.settings import Settings

#: Where things are kept on this machine, and what may be secret: none of it has a bearing on a score.
_UNTOLD = {"cache_dir", "cache_salt", "cassette_keep", "report", "json", "markdown"}


class Leavings:
    """Gathers reports and makes of them, at the end, what was asked for.

    Raises ``pytest.UsageError`` for a baseline that cannot be read.
    """

    def __init__(self, running: Running, root: Path) -> None:
        self._running = running
        self._root = root
        self._collector = Collector()
        self._baseline = _read_baseline(running.settings.baseline)
        self._comparison: Comparison | None = None
        self._notes: list[str] = []
        self._lines: tuple[str, ...] = ()
        #: What standard error is to say where no summary does.
        self._unheard: tuple[str, ...] = ()

    @property
    def collector(self) -> Collector:
        """What was gathered so far."""
        return self._collector

    def add(self, report: pytest.TestReport) -> None:
        """Take in a report, made here or by a worker."""
        self._collector.add(report)

    def finish(self, exit_status: int) -> int:
        """Write the cassette and the files, and return the exit status of the run.

        A run whose files could not be written has not passed: whoever reads them would read old ones.
        """
        self._running.add_silent_workers()
        self._notes = [*self._running.save_cassette(exit_status), *self._running.allowance.notes()]
        files = self._running.settings.files()
        if not files or self._running.dry_run:
            return exit_status
        from pytest_ragmetrics.report.files import write_files

        document = self._document(exit_status)
        written = write_files(document, files, comparison=self._compared(document))
        self._lines = written.lines
        self._unheard = written.lines if written.failed else ()
        failed = written.failed and exit_status == pytest.ExitCode.OK
        return pytest.ExitCode.TESTS_FAILED if failed else exit_status

    def tell(self, reporter: pytest.TerminalReporter, exit_status: int) -> None:
        """Show the table of metrics, what changed since the baseline, and where the files are."""
        from pytest_ragmetrics.report.terminal import write_summary

        self._unheard = ()
        document = self._document(exit_status)
        write_summary(reporter, document, [*self._notes, *self._lines], comparison=self._compared(document))

    def close(self) -> None:
        """Say on standard error which files could not be written, where pytest showed no summary that does."""
        if self._unheard:
            sys.stderr.write("".join(f"ragmetrics: {line}\n" for line in self._unheard))

    def _compared(self, document: Document) -> Comparison | None:
        """Return what changed since the baseline; once all tests have ended, it stays the same."""
        if self._comparison is None and self._baseline is not None:
            from pytest_ragmetrics.report.comparison import compare_documents

            self._comparison = compare_documents(document, self._baseline)
        return self._comparison

    def _document(self, exit_status: int) -> Document:
        settings = self._running.settings
        notes = [portable_note(note, settings, self._root) for note in self._notes]
        return self._collector.document(exit_status, settings=settings_row(settings, self._root), notes=notes)


def settings_row(settings: Settings, root: Path) -> dict[str, Setting]:
    """Return the settings that a report shows, the same on every machine: no folders outside of the project."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in _UNTOLD}
    return {name: portable(value, root) if isinstance(value, (str, Path)) else value for name, value in values.items()}


def portable_note(note: str, settings: Settings, root: Path) -> str:
    """Return a note with the files of the settings named as :func:`settings_row` names them."""
    for value in (getattr(settings, field.name) for field in fields(settings)):
        if isinstance(value, Path):
            note = note.replace(str(value), portable(value, root))
    return note


def _read_baseline(file: Path | None) -> Document | None:
    if file is None:
        return None
    from pytest_ragmetrics.report.documents import DocumentError, read_document

    try:
        return read_document(file)
    except DocumentError as error:
        msg = f"--rag-baseline: {error}"
        raise pytest.UsageError(msg) from error
