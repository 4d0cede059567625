"""How the time of a call grows with the size of what it is given."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

#: A shorter time than this cannot be measured well (seconds).
LEAST = 0.002
ATTEMPTS = 5


def is_linear(call: Callable[[int], object], *, short: int, long: int) -> bool:
    """Tell whether the long call takes at most three times what it should, were its time in proportion to its size."""
    call(min(short, 100))
    least = max(min(seconds(call, short) for _ in range(3)), LEAST)
    # A busy machine slows single attempts, not all of them.
    return any(seconds(call, long) < 3 * least * long / short for _ in range(ATTEMPTS))


def seconds(call: Callable[[int], object], size: int) -> float:
    """Return the processor time of a call, without that of going through what other tests left in memory."""
    gc.disable()
    try:
        began = time.process_time()
        call(size)
        return time.process_time() - began
    finally:
        gc.enable()
