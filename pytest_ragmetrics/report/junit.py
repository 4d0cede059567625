"""Scores as junit properties: plain names and plain values that any XML reader takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ragmetrics.records import GateRecord, Record

# All that XML 1.0 does not allow, not even as a reference.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def properties(records: Sequence[Record]) -> list[tuple[str, object]]:
    """Return the properties of a test: its scores by metric, as plain floats, in the order they were made."""
    return [(_name(r.metric), "unscored" if r.score is None else r.score) for r in records]


def gate_properties(gate: GateRecord) -> list[tuple[str, object]]:
    """Return the properties of a test over a whole set: what it found, what was needed, and how it came out."""
    name = _name(gate.metric, f".{gate.statistic}")
    value = "unscored" if gate.value is None else gate.value
    return [(name, value), (f"{name}.bound", gate.bound), (f"{name}.outcome", gate.outcome)]


def _name(metric: str, statistic: str = "") -> str:
    return f"rag.{_FORBIDDEN.sub('', metric)}{statistic}"
