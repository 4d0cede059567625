"""How the time of a call grows with the size of what it is given."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

#: A shorter time than this cannot be measured well (seconds).
LEAST = 0.002
ATTEMPTS = 8


def is_linear(call: Callable[[int], object], *, short: int, long: int) -> bool:
    """Tell whether the long call takes at most three times what it should, were its time in proportion to its size.

    Least times are compared, and short and long calls are measured in turns: other processes slow single calls, some
    for seconds, but none makes a call faster. With ``long = 8 * short`` quadratic time would be 64 times, not 24.
    """
    call(min(short, 100))
    brief, lengthy = min(seconds(call, short) for _ in range(2)), float("inf")
    for _ in range(ATTEMPTS):
        lengthy = min(lengthy, seconds(call, long))
        if lengthy < 3 * max(brief, LEAST) * long / short:
            return True
        brief = min(brief, seconds(call, short))
    return False


def seconds(call: Callable[[int], object], size: int) -> float:
    """Return the processor time of a call, without that of going through what other tests left in memory."""
    gc.disable()
    try:
        began = time.process_time()
        call(size)
        return time.process_time() - began
    finally:
        gc.enable()
