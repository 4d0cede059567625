"""Ratings by a judge: two that are averaged, single ones, and the share of contexts that help."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_ragmetrics import metrics as m
from tests.scripted_judge import ScriptedJudge, rated, relevant

FIELDS: dict[str, Any] = {
    "user_input": "When do moths fly?",
    "response": "They fly at night.",
    "reference": "At night.",
    "retrieved_contexts": ["Moths fly at night. When?"],
}


@pytest.mark.parametrize(
    ("metric", "first_task", "second_task", "best", "rated_field"),
    [
        (m.ContextRelevance, "rate_contexts", "review_contexts", 2, "user_input"),
        (m.ResponseGroundedness, "rate_groundedness", "review_groundedness", 2, "response"),
        (m.AnswerAccuracy, "rate_agreement", "rate_agreement", 4, "response"),
    ],
)
@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 2), (1, 2), (2, 2)])
def test_it_is_the_mean_of_two_ratings(
    metric: Any, first_task: str, second_task: str, best: int, rated_field: str, first: int, second: int
) -> None:
    """Three steps each, spread evenly over 0 to 1; the response, if it is what is rated, has its place."""
    replies = [rated(first * best // 2, "First."), rated(second * best // 2, "Second.")]
    script: Any = {second_task: replies[1], first_task: replies}
    result = metric(judge=ScriptedJudge(**script)).score(**FIELDS)
    assert (result, result.reason) == ((first + second) / 4, f"rated {first / 2:.2f} and {second / 2:.2f}")
    end = len(FIELDS["response"]) if rated_field == "response" else None
    assert [(v.text, v.ok, v.reason, v.end) for v in result.verdicts] == [
        (FIELDS[rated_field], first == 2, "First.", end),
        (FIELDS[rated_field], second == 2, "Second.", end),
    ]


def test_the_two_ways_differ() -> None:
    """The instructions are two different texts; of the answers, each is once compared with the other."""
    judge = ScriptedJudge(rate_contexts=rated(1), review_contexts=rated(1), rate_agreement=rated(2))
    m.ContextRelevance(judge=judge).score(**FIELDS)
    m.AnswerAccuracy(judge=judge).score(**FIELDS)
    one, other, first, second = (request.messages[1]["content"] for request in judge.requests)
    assert one.partition("Your task:")[2] != other.partition("Your task:")[2]
    assert first.partition("Your task:")[2] == second.partition("Your task:")[2]
    assert first.index(FIELDS["response"]) < first.index(f"\n{FIELDS['reference']}")
    assert second.index(FIELDS["response"]) > second.index(f"\n{FIELDS['reference']}")


@pytest.mark.parametrize(("metric", "task"), [(m.Relevance, "rate_relevance"), (m.Correctness, "rate_correctness")])
@pytest.mark.parametrize("step", range(5))
def test_a_rating_is_brought_to_a_share(metric: Any, task: str, step: int) -> None:
    """Five steps, the middle one passable, and the judge's reason."""
    result = metric(judge=ScriptedJudge(**{task: rated(step, "Half of it.")})).score(**FIELDS)
    assert (result, result.reason, result.metric) == (step / 4, "Half of it.", metric.name)
    assert [(v.text, v.ok, v.reason) for v in result.verdicts] == [(FIELDS["response"], step >= 2, "Half of it.")]


def test_correctness_without_a_judge_is_the_f1_of_the_words() -> None:
    """Awaited or not, and nobody is asked; the words must be asked for."""
    metric, texts = m.Correctness(method="token_f1"), {"response": "in May 1903", "reference": "May 1903"}
    result, other = metric.score(**texts), m.TokenF1().score(**texts)
    assert (result.value, result.reason, result.judge, result.usage.calls) == (other.value, other.reason, None, 0)
    assert asyncio.run(metric.ascore(**texts)) == result.value
    assert metric.score(response=" ", reference="May") == 0.0
    with pytest.raises(Exception, match="this metric needs a judge"):
        m.Correctness().score(**texts)


@pytest.mark.parametrize("words", [[True], [False], [False, True], [True, False, True]])
def test_the_share_of_contexts_that_help(words: list[bool]) -> None:
    """In any order; one request, a verdict for each context."""
    judge = ScriptedJudge(judge_contexts=relevant(*words))
    contexts = [f"Context {letter}. And more." for letter in "abc"[: len(words)]]
    result = m.ContextPrecisionProportion(judge=judge).score(user_input="Why?", retrieved_contexts=contexts)
    assert (result, result.reason) == (sum(words) / len(words), f"{sum(words)} of {len(words)} contexts relevant")
    assert [(v.text, v.ok) for v in result.verdicts] == list(zip(contexts, words, strict=True))
    assert [[piece.text for piece in v.evidence] for v in result.verdicts] == [[v.text] * v.ok for v in result.verdicts]
