"""Helpers about the tools that an agent called."""

from __future__ import annotations

from typing import Literal

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.agents import ToolCallAccuracy, ToolCallF1
from pytest_ragmetrics.metrics.base import check_choice
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample


def assert_tools_called(
    messages: object,
    reference_tool_calls: object,
    *,
    metric: Literal["accuracy", "f1"] = "accuracy",
    strict_order: bool = True,
    min: float = 1.0,
) -> MetricResult:
    """Assert that the calls of tools in a conversation are, to the degree ``min``, those of the reference.

    ``messages`` are those of OpenAI, Anthropic, LangChain or Ragas. See
    :class:`~pytest_ragmetrics.metrics.ToolCallAccuracy`, which ``strict_order`` is for, and
    :class:`~pytest_ragmetrics.metrics.ToolCallF1`.

    >>> call = {"name": "weather", "args": {"city": "Oslo"}}
    >>> assert_tools_called([{"role": "assistant", "tool_calls": [call]}], [call]).value
    1.0
    """
    __tracebackhide__ = True
    chosen = check_choice("metric", metric, ("accuracy", "f1"))
    made = ToolCallF1() if chosen == "f1" else ToolCallAccuracy(strict_order=strict_order)
    return assert_metric(
        made, Sample(metadata={"messages": messages, "reference_tool_calls": reference_tool_calls}), min=min
    )
