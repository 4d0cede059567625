"""Human labels of answers: how they are written in the ``metadata`` of a sample."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics.errors import DatasetError
from pytest_ragmetrics.sample import Sample

_GOOD = frozenset({"true", "yes", "pass", "passed", "good"})
_BAD = frozenset({"false", "no", "fail", "failed", "bad"})
#: Fields of the metadata that name the group of a row, unless another field is given.
GROUP_FIELDS = ("group", "cluster")
# How much of a wrong label an error shows (characters).
_SHOWN = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelScale:
    """How labels are written: in which ``field`` of the ``metadata``, from ``low`` (bad) to ``high`` (good).

    An answer is good from the label ``good_from`` on, by default the middle of the scale. Raises ``ValueError`` for a
    scale without a length, and for a ``good_from`` outside of it or at its low end.
    """

    field: str = "label"
    low: float = 0.0
    high: float = 1.0
    good_from: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            msg = f"the scale of labels goes from a lower to a higher number, not from {self.low:g} to {self.high:g}"
            raise ValueError(msg)
        if self.good_from is not None and not self.low < self.good_from <= self.high:
            msg = (
                f"an answer is good from a label above {self.low:g} and up to {self.high:g} on, not {self.good_from:g}"
            )
            raise ValueError(msg)

    def read(self, sample: Sample, *, file: str | None = None, line: int | None = None) -> float | None:
        """Return the label of a sample on a scale from 0 to 1, ``None`` if it has none.

        Raises ``DatasetError`` naming file, line and field for a value that is not a label.

        >>> LabelScale(low=1, high=5).read(Sample(metadata={"label": 4}))
        0.75
        """
        written = sample.metadata.get(self.field)
        if written is None or (isinstance(written, str) and not written.strip()):
            return None
        value = self._number(written)
        if value is None or not self.low <= value <= self.high:
            text = repr(written)
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            msg = f"a label is a number from {self.low:g} to {self.high:g}, or true or false, not {shown}"
            raise DatasetError(msg, file=file, line=line, field=self.field)
        return (value - self.low) / (self.high - self.low)

    def is_good(self, label: float) -> bool:
        """Return whether a label from 0 to 1 is that of a good answer."""
        start = 0.5 if self.good_from is None else (self.good_from - self.low) / (self.high - self.low)
        return label >= start

    def _number(self, written: Any) -> float | None:
        if isinstance(written, str):
            written = written.strip().lower()
            if written in _GOOD or written in _BAD:
                return self.high if written in _GOOD else self.low
        elif isinstance(written, bool):
            return self.high if written else self.low
        elif not isinstance(written, (int, float)):
            return None
        try:
            return float(written)
        except (ValueError, OverflowError):
            return None


def group_of(sample: Sample, field: str | None = None) -> Hashable | None:
    """Return the group of a sample: ``field`` of its metadata, by default ``group``, else ``cluster``.

    >>> group_of(Sample(metadata={"cluster": "manual.pdf"}))
    "'manual.pdf'"
    """
    names = GROUP_FIELDS if field is None else (field,)
    return next((repr(sample.metadata[name]) for name in names if sample.metadata.get(name) is not None), None)
