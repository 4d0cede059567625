"""One error per cause, all under one name."""

from __future__ import annotations

import pytest

import pytest_ragmetrics
from pytest_ragmetrics import DatasetError, RagMetricsError


@pytest.mark.parametrize(
    "name",
    ["UnscoredError", "JudgeError", "JudgeNotConfiguredError", "CacheMissError", "BudgetExceededError", "DatasetError"],
)
def test_every_error_is_ours(name: str) -> None:
    """One except clause catches all that this package raises on purpose."""
    assert issubclass(getattr(pytest_ragmetrics, name), RagMetricsError)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "bad"),
        ({"file": "a.jsonl"}, "a.jsonl: bad"),
        ({"file": "a.jsonl", "line": 3}, "a.jsonl:3: bad"),
        ({"file": "a.jsonl", "line": 3, "field": "response"}, "a.jsonl:3: field 'response': bad"),
        ({"line": 3}, "line 3: bad"),
        ({"field": "id"}, "field 'id': bad"),
    ],
)
def test_a_dataset_error_says_where(place: dict[str, object], text: str) -> None:
    """The message starts with file, line and field, as far as they are known, and they can be read off."""
    error = DatasetError("bad", **place)  # type: ignore[arg-type]
    assert str(error) == text
    assert (error.file, error.line, error.field) == tuple(place.get(name) for name in ("file", "line", "field"))
