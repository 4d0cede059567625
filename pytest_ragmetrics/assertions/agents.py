"""Helpers about conversations of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pytest_ragmetrics.assertions.metric import assert_metric
from pytest_ragmetrics.metrics.agents import AgentGoalAccuracy, TopicAdherence
from pytest_ragmetrics.metrics.judged import JudgeLike
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample


def assert_goal_reached(
    messages: object,
    *,
    reference: str | None = None,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that a conversation reached its goal, the ``reference`` if given; several ``votes`` decide by majority.

    See :class:`~pytest_ragmetrics.metrics.AgentGoalAccuracy`.
    """
    __tracebackhide__ = True
    sample = Sample(reference=reference, metadata={"messages": messages})
    return assert_metric(AgentGoalAccuracy(judge=judge), sample, min=min, votes=votes)


def assert_topics_kept(
    messages: object,
    topics: Sequence[str],
    *,
    mode: Literal["precision", "recall", "f1"] = "f1",
    min: float = 0.8,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that an agent deals with the allowed ``topics``, and no others, to the degree ``min``.

    Raises ``AssertionError`` that shows the topics it strayed to or declined; see
    :class:`~pytest_ragmetrics.metrics.TopicAdherence`.
    """
    __tracebackhide__ = True
    sample = Sample(metadata={"messages": messages, "reference_topics": topics})
    return assert_metric(TopicAdherence(mode=mode, if_empty=if_empty, judge=judge), sample, min=min, votes=votes)
