"""Metrics of the catalogue: what they need is named, and those that ask a judge ask it through a real server."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import metrics
from pytest_ragmetrics.metrics import Metric
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_for
from tests.fake_openai import FakeOpenAI
from tests.scripted_judge import ScriptedJudge

FIELDS: dict[str, Any] = {
    "user_input": "Do moths fly?",
    "response": "They do.",
    "reference": "Moths fly.",
    "retrieved_contexts": ["Moths fly at night."],
    "reference_contexts": ["Moths fly at night."],
    "retrieved_context_ids": ["a"],
    "reference_context_ids": ["a"],
}
NEEDED = [(kind, field) for kind in built_in_metrics() for field in kind.requires]


@pytest.mark.parametrize(("kind", "field"), NEEDED, ids=[f"{kind.name}-{field}" for kind, field in NEEDED])
def test_a_field_that_is_missing_or_blank_is_named(kind: type[Metric], field: str) -> None:
    """By the name of the metric and of the field, and no judge is asked; a list may be empty where that has a value."""
    judge = ScriptedJudge()
    blank: list[Any] = [[], [" "]] if field.endswith("s") and not field.endswith("_ids") else [[]]
    for value in [None, *(blank if isinstance(FIELDS[field], list) else ["", " \n"])]:
        if value is not None and field in kind.may_be_empty:
            continue
        with pytest.raises(ValueError, match=f"^{kind.name}: {field} is {'missing' if value is None else 'blank'}; it"):
            metric_for(kind.name, judge=judge, embedder="local").score(**{**FIELDS, field: value})
    assert judge.requests == []


MOTHS = ["Moths fly at night. They like lamps.", "Bats eat moths."]
PIKE = {"user_input": "What do pike eat?", "response": "Pike eat fish. Rain is wet.", "reference": "Pike eat fish."}


@pytest.mark.parametrize(
    ("kind", "fields", "value", "calls"),
    [
        (metrics.Faithfulness, {"response": "Moths fly at night. Whales sing.", "retrieved_contexts": MOTHS}, 0.5, 2),
        (metrics.AnswerCorrectness, {**PIKE, "response": "Pike eat fish."}, 1.0, 5),
        (metrics.Hallucination, {"response": "Moths fly by day.", "retrieved_contexts": MOTHS}, 0.0, 1),
        (metrics.RefusalCorrectness, {**PIKE, "retrieved_contexts": ["Pike eat fish."]}, 1.0, 2),
        (metrics.ContextPrecision, {**PIKE, "retrieved_contexts": ["Pike eat small fish.", "Rain is wet."]}, 1.0, 2),
        (metrics.ContextEntityRecall, {"reference": "Ada Brandt left Lund.", "retrieved_contexts": MOTHS}, 0.0, 2),
        (metrics.Relevance, {"user_input": "Do moths fly?", "response": "Moths fly."}, 1.0, 1),
        (
            metrics.ContextPrecisionProportion,
            {"user_input": "Do they like lamps?", "retrieved_contexts": MOTHS},
            0.5,
            1,
        ),
        (metrics.AnswerRelevancy, {"user_input": "Who pays tax?", "response": "I do not know."}, 0.0, 1),
    ],
)
def test_a_judge_behind_a_server(  # noqa: PLR0917 - a row of the table and three fixtures
    kind: type[Metric],
    fields: dict[str, Any],
    value: float,
    calls: int,
    server: FakeOpenAI,
    openai_judge: Any,
    openai_embedder: Any,
) -> None:
    """The score, whom it asked, and how many requests that took, one for vectors among them."""
    result = metric_for(kind.name, judge=openai_judge, embedder=openai_embedder).score(**fields)
    assert result == pytest.approx(value)
    assert server.calls == calls
    assert str(result.judge).startswith("openai:fake")
    assert result.usage.prompt_tokens > 0
