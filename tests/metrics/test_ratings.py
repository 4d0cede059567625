"""The metrics of one request: ratings on five steps, and the share of contexts that help."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_ragmetrics.metrics import ContextPrecisionProportion, Correctness, Relevance
from tests.scripted_judge import ScriptedJudge, rated, relevant

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


@pytest.mark.parametrize(
    ("response", "reference", "value"),
    [
        ("May 1903", "May 1903", 1.0),
        ("in May 1903", "May 1903", 0.8),
        ("the answer", "answer", 1.0),
        ("Answer!", "“answer”", 1.0),
        ("never", "May 1903", 0.0),
        # every word as often as it stands there
        ("no no no", "no no", 0.8),
        ("no", "no no no", 0.5),
        ("red red blue", "red blue blue", 2 / 3),
        ("", "", 1.0),
        ("", "May", 0.0),
        ("May", " \n", 0.0),
        ("the a an", "…", 1.0),
        ("东京塔", "东京", 0.8),
        ("برج طوكيو", "برج", 2 / 3),
        ("Der Köder", "der ko\u0308der", 1.0),
    ],
)
def test_correctness_without_a_judge_is_the_f1_of_the_words(response: str, reference: str, value: float) -> None:
    """As in SQuAD: without case, punctuation and articles; blank texts have a value too."""
    result = Correctness(method="token_f1").score(response=response, reference=reference)
    assert result.value == pytest.approx(value)
    assert (result.judge, result.usage.calls) == (None, 0)
    assert asyncio.run(Correctness(method="token_f1").ascore(response=response, reference=reference)) == result.value


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
    assert [piece.text for v in result.verdicts for piece in v.evidence] == [
        text for text, word in zip(contexts, words, strict=True) if word
    ]
    assert result.reason == f"{sum(words)} of {len(words)} contexts relevant"
    assert (judge.tasks, judge.depth) == (["judge_contexts"], 1)
