"""Entities are proper names, dates and amounts."""

from __future__ import annotations

from pytest_ragmetrics.judges.rules.words import distinct
from pytest_ragmetrics.judges.tasks import ListEntities
from pytest_ragmetrics.text.facts.dates import Date
from pytest_ragmetrics.text.facts.names import find_names
from pytest_ragmetrics.text.facts.numbers import find_numbers


def list_entities(task: ListEntities) -> tuple[str, ...]:
    """Take the names, the dates, and the numbers that are said of nothing in particular left out."""
    text = "\n\n".join(task.contexts)
    numbers = (number.text for number in find_numbers(text) if isinstance(number, Date) or not number.plain)
    return distinct([*(name.text for name in find_names(text)), *numbers])
