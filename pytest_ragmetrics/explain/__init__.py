"""The only place where a failure is worded: the first line says how much, the rest says where."""

from __future__ import annotations

from pytest_ragmetrics.explain.results import explain, explain_comparison, explain_sample, headline, shortcoming
from pytest_ragmetrics.explain.sets import explain_changes, explain_not_worse, explain_standing, explain_unscored

__all__ = [
    "explain",
    "explain_changes",
    "explain_comparison",
    "explain_not_worse",
    "explain_sample",
    "explain_standing",
    "explain_unscored",
    "headline",
    "shortcoming",
]
