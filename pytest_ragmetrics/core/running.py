"""The sessions that run in this process: a stack, because a test may run pytest inside pytest."""

from __future__ import annotations

import os
from typing import Any

#: Each is a :class:`~pytest_ragmetrics.judges.context.Session`, whose module imports this one.
_running: list[Any] = []


def enter(session: Any) -> None:
    """Make this the running session."""
    _running.append(session)


def leave(session: Any) -> None:
    """End this session; the one around it, if any, runs again."""
    _running.remove(session)


def innermost() -> Any:
    """Return the running session."""
    return _running[-1] if _running else None


def workers() -> int:
    """Return how many workers of xdist share this run."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
