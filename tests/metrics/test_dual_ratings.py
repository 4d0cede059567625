"""Metrics of two ratings: both are needed, and the mean counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.metrics import AnswerAccuracy, ContextRelevance, ResponseGroundedness
from tests.scripted_judge import Answer, ScriptedJudge, rated

CONTEXTS = ["Moths fly at night."]
FIELDS: dict[str, Any] = {
    "user_input": "When do moths fly?",
    "response": "They fly at night.",
    "reference": "At night.",
    "retrieved_contexts": CONTEXTS,
}


class Case(NamedTuple):
    """A metric, the tasks it asks, the best rating, and the fields it needs."""

    metric: Any
    names: tuple[str, str]
    best: int
    fields: tuple[str, ...]


METRICS: list[Case] = [
    Case(ContextRelevance, ("rate_contexts", "review_contexts"), 2, ("user_input", "retrieved_contexts")),
    Case(ResponseGroundedness, ("rate_groundedness", "review_groundedness"), 2, ("response", "retrieved_contexts")),
    Case(AnswerAccuracy, ("rate_agreement", "rate_agreement"), 4, ("user_input", "response", "reference")),
]


def judging(names: tuple[str, str], first: Answer, second: Answer) -> ScriptedJudge:
    """Return a judge with one answer for each of the two requests."""
    if names[0] == names[1]:
        return ScriptedJudge(**{names[0]: [first, second]})
    return ScriptedJudge(**{names[0]: first, names[1]: second})


@pytest.mark.parametrize("case", METRICS)
@pytest.mark.parametrize(
    ("first", "second", "value"), [(0, 0, 0.0), (0, 2, 0.5), (1, 2, 0.75), (1, 1, 0.5), (2, 2, 1.0)]
)
def test_it_is_the_mean_of_two_ratings(case: Case, first: int, second: int, value: float) -> None:
    """Three steps each, spread evenly over 0 to 1; two requests at the same time."""
    judge = judging(case.names, rated(first * case.best // 2, "First."), rated(second * case.best // 2, "Second."))
    result = case.metric(judge=judge).score(**{field: FIELDS[field] for field in case.fields})
    assert result == value
    assert [verdict.reason for verdict in result.verdicts] == ["First.", "Second."]
    assert [verdict.ok for verdict in result.verdicts] == [first == 2, second == 2]
    assert result.reason == f"rated {first / 2:.2f} and {second / 2:.2f}"
    assert (sorted(judge.tasks), judge.depth) == (sorted(case.names), 1)


@pytest.mark.parametrize("case", METRICS)
def test_one_rating_alone_is_no_score(case: Case) -> None:
    """The other one does not stand in for it, whichever is missing, and its cost is counted."""
    for answers in ((rated(case.best), JudgeError("out of ink")), (JudgeError("out of ink"), rated(case.best))):
        with pytest.raises(UnscoredError, match="out of ink") as caught:
            case.metric(judge=judging(case.names, *answers)).score(**FIELDS)
        assert caught.value.usage is not None
        assert caught.value.usage.calls == 1


def test_the_two_ways_differ() -> None:
    """The instructions are two different texts; of the answers, each is once the one that is held to the other."""
    judge = ScriptedJudge(rate_contexts=rated(1), review_contexts=rated(1), rate_agreement=rated(2))
    ContextRelevance(judge=judge).score(**FIELDS)
    AnswerAccuracy(judge=judge).score(**FIELDS)
    one, other, first, second = (request.messages[1]["content"] for request in judge.requests)
    assert one.partition("Your task:")[2] != other.partition("Your task:")[2]
    assert first.partition("Your task:")[2] == second.partition("Your task:")[2]
    assert first.index(FIELDS["response"]) < first.index(f"\n{FIELDS['reference']}")
    assert second.index(FIELDS["response"]) > second.index(f"\n{FIELDS['reference']}")


def test_a_context_that_is_part_of_the_question_is_asked_about_like_any_other() -> None:
    """There are no special cases: the judge decides."""
    judge = ScriptedJudge(rate_contexts=rated(2), review_contexts=rated(2), rate_agreement=rated(0))
    metric = ContextRelevance(judge=judge)
    assert metric.score(user_input="Moths fly at night. When?", retrieved_contexts=CONTEXTS) == 1.0
    assert AnswerAccuracy(judge=judge).score(user_input="When?", response="Now.", reference="Now.") == 0.0
