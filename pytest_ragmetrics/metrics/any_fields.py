"""Metrics by a definition of one's own, which look at whatever fields a sample has."""

from __future__ import annotations

from typing import ClassVar

from pytest_ragmetrics.metrics.judged import JudgedMetric
from pytest_ragmetrics.metrics.metric import is_blank
from pytest_ragmetrics.metrics.provided import JudgeLike
from pytest_ragmetrics.sample import Sample

_FIELDS = ("user_input", "response", "retrieved_contexts", "reference", "reference_contexts")


class AnyFieldsMetric(JudgedMetric):
    """A metric that shows a judge all the texts of a sample, and whose ``name`` tells it from others of its class."""

    requires: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, name: str | None = None, judge: JudgeLike | None = None) -> None:
        super().__init__(judge=judge)
        if name:
            # What a metric is called belongs to its class; only here each instance may have its own.
            vars(self)["name"] = name

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` when the sample has nothing to judge."""
        if not fields_of(sample):
            msg = f"{self.name}: all fields are missing or blank; it needs one of {', '.join(_FIELDS)}"
            raise ValueError(msg)


def fields_of(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Return the fields that hold text, contexts numbered one by one.

    >>> fields_of(Sample(response="Moths fly.", retrieved_contexts=["Moths fly at night.", " "]))
    (('response', 'Moths fly.'), ('retrieved_contexts 1', 'Moths fly at night.'))
    """
    fields: list[tuple[str, str]] = []
    for name in _FIELDS:
        value = getattr(sample, name) or ()
        if isinstance(value, str):
            fields.append((name, value))
        else:
            fields += [(f"{name} {number}", text) for number, text in enumerate(value, start=1)]
    return tuple((name, text) for name, text in fields if not is_blank(text))
