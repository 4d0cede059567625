"""Ratings by a judge: two that are averaged, single ones, and the share of contexts that help."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.metrics import (
    AnswerAccuracy,
    ContextPrecisionProportion,
    ContextRelevance,
    Correctness,
    Relevance,
    ResponseGroundedness,
)
from tests.scripted_judge import Answer, ScriptedJudge, rated, relevant

# Dual ratings


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


# Ratings


YES, NO = [True], [False]
RATINGS: list[tuple[Any, str, dict[str, str]]] = [
    (Relevance, "rate_relevance", {"user_input": "Do moths fly?", "response": "They do."}),
    (Correctness, "rate_correctness", {"response": "They do.", "reference": "Moths fly."}),
]


@pytest.mark.parametrize(("metric", "task", "inputs"), RATINGS)
@pytest.mark.parametrize(("step", "value"), [(0, 0.0), (1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)])
def test_a_rating_is_brought_to_a_share(
    metric: Any, task: str, inputs: dict[str, str], step: int, value: float
) -> None:
    """Five steps, one request, and the judge's reason."""
    judge = ScriptedJudge(**{task: rated(step, "Half of it.")})
    result = metric(judge=judge).score(**inputs)
    assert (result, result.reason, result.metric) == (value, "Half of it.", metric.name)
    assert [(v.text, v.ok, v.reason) for v in result.verdicts] == [("They do.", value >= 0.5, "Half of it.")]
    assert (judge.tasks, judge.depth) == ([task], 1)


def test_correctness_without_a_judge_is_the_f1_of_the_words() -> None:
    """The value is that of TokenF1, awaited or not, and nobody is asked."""
    metric, texts = Correctness(method="token_f1"), {"response": "in May 1903", "reference": "May 1903"}
    result = metric.score(**texts)
    assert result.value == pytest.approx(0.8)
    assert (result.judge, result.usage.calls) == (None, 0)
    assert asyncio.run(metric.ascore(**texts)) == result.value


@pytest.mark.parametrize("field", ["response", "reference"])
def test_correctness_without_a_judge_still_needs_both_texts(field: str) -> None:
    """A text that is not there at all is not an empty one."""
    inputs = {"response": "May", "reference": "May", field: None}
    with pytest.raises(ValueError, match=f"correctness_rating: {field} is missing"):
        Correctness(method="token_f1").score(**inputs)


def test_words_never_stand_in_for_a_judge_by_themselves() -> None:
    """Without a judge the rating fails; the F1 of the words is something to be asked for."""
    with pytest.raises(Exception, match="this metric needs a judge"):
        Correctness().score(response="May", reference="May")
    with pytest.raises(ValueError, match="method must be 'judge' or 'token_f1'"):
        Correctness(method="f1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "value"),
    [([True], 1.0), ([False], 0.0), ([True, False], 0.5), ([False, True], 0.5), ([True, False, True], 2 / 3)],
)
def test_the_share_of_contexts_that_help(words: list[bool], value: float) -> None:
    """Whatever their order; one request, a verdict for each context."""
    judge = ScriptedJudge(judge_contexts=relevant(*words))
    contexts = [f"Context {letter}. And more." for letter in "abc"[: len(words)]]
    result = ContextPrecisionProportion(judge=judge).score(user_input="Why?", retrieved_contexts=contexts)
    assert result == value
    assert [(v.text, v.ok) for v in result.verdicts] == list(zip(contexts, words, strict=True))
    assert [[piece.text for piece in v.evidence] for v in result.verdicts] == [[v.text] * v.ok for v in result.verdicts]
    assert result.reason == f"{sum(words)} of {len(words)} contexts relevant"
    assert (judge.tasks, judge.depth) == (["judge_contexts"], 1)
