"""The line that scores are drawn on: from 0 to 1, or between whole numbers around what lies outside."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """What a line begins and ends with."""

    low: int
    high: int

    @classmethod
    def around(cls, values: Iterable[float]) -> Scale:
        """Return the scale that holds these values.

        >>> Scale.around([0.2, 0.9]), Scale.around([-0.5, 3.2])
        (Scale(low=0, high=1), Scale(low=-1, high=4))
        """
        known = list(values)
        return cls(low=min([0, *map(math.floor, known)]), high=max([1, *map(math.ceil, known)]))

    def place(self, value: float, width: float = 1.0) -> float:
        """Return where a value lies on a line of this width.

        >>> Scale(low=0, high=1).place(0.25, 200)
        50.0
        """
        # Halves, because the distance of two large numbers need not be one.
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2) * width
