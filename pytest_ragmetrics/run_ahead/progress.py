"""The line in a terminal that says how far running ahead is, while a test waits for its row."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext

import pytest

# Seconds from the end of one line to the next: a slow judge must not fill the screen.
_PAUSE = 5.0


class Line:
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
