"""The metrics that implementations of the hook ``pytest_ragmetrics_register_metrics`` return, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isabstract
from typing import Any, Protocol

from pytest_ragmetrics.metrics.metric import Metric

HOOK = "pytest_ragmetrics_register_metrics"


class Implementation(Protocol):
    """An implementation of the hook, as pluggy describes it: who it belongs to, and what to call."""

    @property
    def plugin_name(self) -> str:
        """The name of the plugin, or the path of the conftest.py."""

    @property
    def function(self) -> Callable[..., Any]:
        """The hook."""


def registered_metrics(implementations: Iterable[Implementation]) -> list[Metric | type[Metric]]:
    """Return the metrics of all implementations; raise ``ValueError`` naming the one that returned anything else.

    Two of one name are refused: which of them is meant would depend on what is loaded already.
    """
    found: dict[str, tuple[str, Metric | type[Metric]]] = {}
    for implementation in implementations:
        owner = implementation.plugin_name
        for metric in _metrics_of(implementation):
            other, known = found.setdefault(metric.name, (owner, metric))
            if known is not metric:
                msg = f"{owner}: {HOOK} returned {metric.name!r}, which is also a metric of {other}; rename one of them"
                raise ValueError(msg)
    return [metric for _, metric in found.values()]


def _metrics_of(implementation: Implementation) -> list[Metric | type[Metric]]:
    try:
        returned = implementation.function()
    except Exception as error:
        msg = f"{implementation.plugin_name}: {HOOK} raised {type(error).__name__}: {error}"
        raise ValueError(msg) from error
    listed = [] if returned is None else returned
    if not isinstance(listed, (list, tuple)):
        msg = f"{implementation.plugin_name}: {HOOK} returned {returned!r:.80}; return a list of metrics"
        raise ValueError(msg)  # noqa: TRY004 - whoever looks up a name expects this one
    for item in listed:
        complaint = _complaint(item)
        if complaint:
            msg = f"{implementation.plugin_name}: {HOOK} returned {item!r:.80}, which {complaint}"
            raise ValueError(msg)
    return list(listed)


def _complaint(item: object) -> str:
    """Return what is wrong with what should be a metric."""
    if not isinstance(item, Metric) and not (isinstance(item, type) and issubclass(item, Metric)):
        hint = "; write @metric above it" if callable(item) and not isinstance(item, type) else ""
        return f"is no metric and no class of metrics{hint}"
    if isabstract(item):
        return "cannot score; implement measure() or judged()"
    name = getattr(item, "name", None)
    return "" if isinstance(name, str) and name.strip() else "has no name; give the class a name"
