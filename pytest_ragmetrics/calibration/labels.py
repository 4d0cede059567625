"""The labels that people gave to the answers of a data set."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics.errors import DatasetError
from pytest_ragmetrics.sample import Sample

_HIGHEST = frozenset({"true", "yes", "pass", "passed", "good"})
_LOWEST = frozenset({"false", "no", "fail", "failed", "bad"})
#: Where the name of the group stands, unless a field is named.
GROUP_FIELDS = ("group", "cluster")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelScale:
    """How labels are written: in which field of the ``metadata``, from ``low`` (bad) to ``high`` (good).

    An answer is good from the label ``good_from`` on, the middle of the scale unless it is given. Raises ``ValueError``
    for a scale without a length, and a ``good_from`` on it that leaves no answer bad.
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
        """Return the label of a sample on a scale from 0 to 1, ``None`` where it has none.

        Raises ``DatasetError`` naming file, line and field for what is no label.

        >>> LabelScale(low=1, high=5).read(Sample(metadata={"label": 4}))
        0.75
        """
        written = sample.metadata.get(self.field)
        if written is None or (isinstance(written, str) and not written.strip()):
            return None
        value = self._number(written)
        if value is None or not self.low <= value <= self.high:
            msg = f"a label is a number from {self.low:g} to {self.high:g}, or true or false, not {_shown(written)}"
            raise DatasetError(msg, file=file, line=line, field=self.field)
        return (value - self.low) / (self.high - self.low)

    def is_good(self, label: float) -> bool:
        """Tell whether a label from 0 to 1 is one of a good answer."""
        start = 0.5 if self.good_from is None else (self.good_from - self.low) / (self.high - self.low)
        return label >= start

    def _number(self, written: Any) -> float | None:
        if isinstance(written, bool):
            return self.high if written else self.low
        if isinstance(written, (int, float)):
            return float(written) if abs(written) <= max(abs(self.low), abs(self.high)) else None
        if not isinstance(written, str):
            return None
        word = written.strip().lower()
        if word in _HIGHEST or word in _LOWEST:
            return self.high if word in _HIGHEST else self.low
        try:
            return float(word)
        except ValueError:
            return None


def group_of(sample: Sample, field: str | None = None) -> Hashable | None:
    """Return what names the group of a sample: ``field`` of its metadata, else ``group``, else ``cluster``.

    >>> group_of(Sample(metadata={"cluster": "manual.pdf"}))
    "'manual.pdf'"
    """
    for name in GROUP_FIELDS if field is None else (field,):
        value = sample.metadata.get(name)
        if value is not None:
            return repr(value)
    return None


def _shown(written: object) -> str:
    text = repr(written)
    return text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004 - enough to find it
