"""Tracebacks of failures: the code of the user, without the frames of this package."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_OWN = f"{Path(__file__).parents[1]}{os.sep}"
# What this package calls, until it calls code of the user again.
_LIBRARIES = f"{Path(os.__file__).parent}{os.sep}"
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_RUNNERS = re.compile(r"[/\\](?:_pytest|pluggy|(?:site|dist)-packages[/\\]pytest_\w+)[/\\]")


def hide_own_frames(found: pytest.ExceptionInfo[BaseException]) -> bool:
    """Take the frames of this package out of the tracebacks that pytest shows; return whether others are left.

    An error that has none of the test, such as that of a row, is shown with those of its cause in code of the user. The
    message says what to write; ``--full-trace`` shows them.
    """
    error, kept = found.value, _of_user(found.tb)
    if not kept:
        cause = error.__cause__
        kept = [] if cause is None else _of_user(cause.__traceback__)
        if cause is None or not kept:
            return False
        error.__cause__, error.__context__ = cause.__cause__, cause.__context__
        error.__suppress_context__ = cause.__suppress_context__
    found.traceback = type(found.traceback)(_chained(kept) or found.tb)
    error = found.value
    while (cause := error.__cause__) is not None:
        kept = _without_own(cause.__traceback__)
        is_own = cause.__traceback__ is not None or type(cause).__module__.startswith("pytest_ragmetrics")
        if is_own and not kept:
            error.__cause__ = cause.__cause__  # made here, and the message says what it was
        else:
            cause.__traceback__, error = _chained(kept), cause
    return True


def _of_user(traceback: TracebackType | None) -> list[TracebackType]:
    """Return the frames that are not of this package, none where the last is not of the user."""
    kept = _without_own(traceback)
    return [] if not kept or _RUNNERS.search(kept[-1].tb_frame.f_code.co_filename) else kept


def _without_own(traceback: TracebackType | None) -> list[TracebackType]:
    kept = []
    inside = False
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        is_library = path.startswith(_LIBRARIES) or _INSTALLED.search(path) is not None
        inside = path.startswith(_OWN) or (inside and is_library)
        if not inside:
            kept.append(traceback)
        traceback = traceback.tb_next
    return kept


def _chained(entries: Sequence[TracebackType]) -> TracebackType | None:
    made = None
    for entry in reversed(entries):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made
