"""Commands are run as in the tests of units."""

from __future__ import annotations

from tests.unit.conftest import ragmetrics, server

__all__ = ["ragmetrics", "server", "told"]


def told(found: tuple[int, str, str], status: int, *said: str) -> str:
    """Check the status of a command, and that it printed each text or said it of errors; return all of that."""
    text = found[1] + found[2]
    assert (found[0], [each for each in said if each not in text]) == (status, []), text
    return text
