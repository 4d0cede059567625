"""What a run made use of: counted, and remembered for the cassette."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_ragmetrics.cache.entry import Entry


@dataclass(kw_only=True, slots=True)
class Counts:
    """Requests made, and answers found instead of making one."""

    calls: int = 0
    cached: int = 0


@dataclass(kw_only=True, slots=True)
class Used:
    """The keys that were asked for, with the test that asked first, and the entries that no store holds.

    Crosses processes as JSON builtins.
    """

    tests: dict[str, str] = field(default_factory=dict)
    loose: dict[str, Entry] = field(default_factory=dict)

    def note(self, key: str, test: str | None) -> None:
        """Remember that a key was asked for."""
        self.tests.setdefault(key, test or "")

    def add(self, other: Used) -> None:
        """Take over what another process used."""
        for key, test in other.tests.items():
            self.note(key, test)
        self.loose.update(other.loose)

    def to_row(self) -> dict[str, Any]:
        """Return it as JSON builtins."""
        return {"tests": dict(self.tests), "loose": [entry.to_row() for entry in self.loose.values()]}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Used:
        """Read what :meth:`to_row` made."""
        entries = [Entry.from_row(item) for item in row["loose"]]
        return cls(tests=dict(row["tests"]), loose={entry.key: entry for entry in entries})
