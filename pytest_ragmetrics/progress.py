"""The line in a terminal that says how far a long piece of work is."""

from __future__ import annotations

import sys
import time

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
