"""A background loop whose clock jumps to the next timer: seconds that are slept pass at once, and exactly."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from pytest_ragmetrics.core import loop


class Clock(selectors.DefaultSelector):
    """Tells the time, and lets it pass instead of waiting for it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what other threads sent at once; without a timer wait for it."""
        ready = super().select(0)
        if ready or timeout is None:
            return ready or super().select(None)
        self.now += timeout
        return []


@contextmanager
def virtual_time() -> Iterator[Clock]:
    """Have the package use such a loop inside the block."""
    clock = Clock()
    made = asyncio.SelectorEventLoop(clock)
    with (
        mock.patch.object(made, "time", clock),
        mock.patch.object(asyncio, "new_event_loop", return_value=made),
        mock.patch.object(loop, "_background", None),
    ):
        try:
            yield clock
        finally:
            loop.stop()
