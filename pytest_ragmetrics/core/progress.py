"""A line of progress on standard error, for commands and evaluations outside pytest."""

from __future__ import annotations

import sys
import time

# Seconds between two states of the line.
_INTERVAL = 0.1


class Progress:
    """Shows ``label`` and how many of ``total`` are done, on one line of standard error; silent if that is no terminal.

    ``done`` is the count to begin with; ``total`` is ``None`` where it is not known.
    """

    def __init__(self, label: str, total: int | None, *, done: int = 0, wanted: bool = True) -> None:
        self._label = label
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
            self._next = time.monotonic() + _INTERVAL
            self._show("")

    def finish(self) -> None:
        """Show how far it came, and end the line."""
        if self._shown:
            self._show("\n")

    def _show(self, end: str) -> None:
        self._shown = True
        count = f"{self._done:,}" if self._total is None else f"{self._done}/{self._total}"
        sys.stderr.write(f"\r{self._label} {count}{self._note}{end}")
        sys.stderr.flush()
