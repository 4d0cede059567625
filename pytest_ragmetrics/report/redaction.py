"""Taking out of a report what must not be stored or shown, without taking its form."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

Redact = Callable[[str], str]


def redact_report(report: pytest.TestReport, redact: Redact) -> None:
    """Redact what a report says of a failure, of a skip, and of what was captured.

    The representation of a failure keeps its parts, of which pytest makes the short summary. Where a text that is to
    go runs from one part into another, the whole becomes a plain text.
    """
    report.sections[:] = [(title, redact(text)) for title, text in report.sections]
    if isinstance(report.longrepr, tuple):
        file, line, reason = report.longrepr
        report.longrepr = (file, line, redact(reason))
    elif redact(report.longreprtext) != report.longreprtext:
        # Another plugin may have representations of its own, whose parts cannot be changed.
        with suppress(AttributeError):
            report.longrepr = _redacted(report.longrepr, redact, set())
        text = report.longreprtext
        if redact(text) != text:
            report.longrepr = redact(text)


def _redacted(part: Any, redact: Redact, seen: set[int]) -> Any:
    """Return a text or some parts redacted; a part with fields is changed where it stands, and once."""
    if isinstance(part, str):
        return redact(part)
    if isinstance(part, (list, tuple)):
        items = [_redacted(item, redact, seen) for item in part]
        return tuple(items) if isinstance(part, tuple) else items
    if is_dataclass(part) and id(part) not in seen:
        seen.add(id(part))
        for field in fields(part):
            setattr(part, field.name, _redacted(getattr(part, field.name), redact, seen))
    return part
