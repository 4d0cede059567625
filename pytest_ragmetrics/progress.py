"""The line in a terminal that says how far running ahead is, while a test waits for its row."""

from __future__ import annotations

import math
import sys
import time
from contextlib import nullcontext

import pytest

# Seconds between two states of the line.
_BEAT = 0.1


class Progress:
    """Shows how much of a number is done, on one line of standard error; silent where that is no terminal.

    ``done`` is what was there before.
    """

    def __init__(self, said: str, total: int, *, done: int = 0, wanted: bool = True) -> None:
        self._said = said
        self._total = total
        self._done = done
        self._note = ""
        self._wanted = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._shown = False
        self._next = 0.0

    def advance(self, number: int = 1, *, note: str = "") -> None:
        """Count so many more, with a remark behind the count."""
        self._done += number
        self._note = note
        if self._wanted and time.monotonic() >= self._next:
            self._next = time.monotonic() + _BEAT
            self._show("")

    def finish(self) -> None:
        """Show how far it came, and end the line."""
        if self._shown:
            self._show("\n")

    def _show(self, end: str) -> None:
        self._shown = True
        sys.stderr.write(f"\r{self._said} {self._done}/{self._total}{self._note}{end}")
        sys.stderr.flush()


# Seconds from the end of one line to the next: a slow judge must not fill the screen.
_PAUSE = 5.0


class ProgressLine:
    """Shows itself in a terminal alone, on a line of its own; nowhere else, and not where the run is to be quiet."""

    def __init__(self, config: pytest.Config) -> None:
        reporter: pytest.TerminalReporter | None = config.pluginmanager.getplugin("terminalreporter")
        wanted = reporter is not None and reporter.isatty and reporter.verbosity >= 0
        self._reporter = reporter if wanted else None
        self._capture = config.pluginmanager.getplugin("capturemanager")
        self._shown = False
        self._next = -math.inf

    def show(self, done: int, total: int) -> None:
        """Write how many rows are done, over what this line said before."""
        reporter = self._reporter
        if reporter is None or time.monotonic() < self._next:
            return
        with self._capture.global_and_fixture_disabled() if self._capture is not None else nullcontext():
            if not self._shown:
                reporter.ensure_newline()
            reporter.rewrite(f"ragmetrics: {done} of {total} rows done ahead", erase=True)
            reporter.flush()
        self._shown = True

    def end(self) -> None:
        """Leave the line as it is: whatever the reporter writes next begins another."""
        if self._shown:
            self._shown = False
            self._next = time.monotonic() + _PAUSE
