"""A line of progress on standard error, for commands and evaluations outside pytest."""

from __future__ import annotations

import sys
import time

# Seconds between two states of the line.
_INTERVAL = 0.1


# The line that is shown.
_shown: list[Progress] = []
#: What the run waits for, in words.
waiting = ""


def waits(reason: str) -> None:
    """Show behind the count of the line that is there what the run waits for; "" for nothing any more."""
    global waiting  # noqa: PLW0603 - there is one terminal
    waiting = reason
    for line in _shown if reason else ():
        line.refresh()


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
        self._text = ""
        self._next = 0.0
        if self._wanted:
            _shown.append(self)

    def advance(self, number: int = 1, *, note: str = "") -> None:
        """Count so many more, with a remark behind the count."""
        self._done += number
        self._note = note
        self.refresh()

    def refresh(self) -> None:
        """Show it as it is now, if the last time is long enough ago."""
        if self._wanted and time.monotonic() >= self._next:
            self._next = time.monotonic() + _INTERVAL
            self._show(f"; {waiting}" if waiting else "")

    def finish(self) -> None:
        """Show how far it came, and end the line."""
        if self._text:
            self._show("", end="\n")
        if self in _shown:
            _shown.remove(self)

    def _show(self, waiting: str, *, end: str = "") -> None:
        count = f"{self._done:,}" if self._total is None else f"{self._done}/{self._total}"
        # Blanks over the rest of a longer line before.
        before, self._text = self._text, f"{self._label} {count}{self._note}{waiting}"
        sys.stderr.write(f"\r{self._text.ljust(len(before.rstrip()))}{end}")
        sys.stderr.flush()
