"""Two metrics of one's own, and the hook that makes them known by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError, Verdict, metric
from pytest_ragmetrics.judges.tasks import AnswerQuestions
from pytest_ragmetrics.metrics import Ask, Metric


@metric
def brevity(response: str) -> float:
    """Return 1.0 for what fits on the label of a pot, 120 characters, and less the longer it is."""
    return min(1.0, 120 / len(response))


@metric
async def checklist(response: str, metadata: Mapping[str, Any], ask: Ask) -> list[Verdict]:
    """Return a verdict for each question on the checklist of a row: whether the response answers it with yes."""
    questions = tuple(metadata.get("checklist", ()))
    if not questions:
        msg = "checklist: the row has none"
        raise UnscoredError(msg)
    answers = await ask(AnswerQuestions(text=response, questions=questions))
    return [
        Verdict(text=question, ok=answer.ok, reason=answer.reason)
        for question, answer in zip(questions, answers, strict=True)
    ]


def pytest_ragmetrics_register_metrics() -> list[Metric]:
    """Return what is to be known as ``"brevity"`` and ``"checklist"``, wherever metrics are named."""
    return [brevity, checklist]


@pytest.fixture(name="brevity")
def _brevity() -> Metric:
    """Hand the metric itself to a test; in your own suite it may stand in a module that tests import."""
    return brevity
