"""RefusalCorrectness: to refuse exactly when the contexts cannot answer."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.metrics import RefusalCorrectness
from tests.scripted_judge import Answer, ScriptedJudge, chosen, says

FIELDS: dict[str, Any] = {
    "user_input": "When do moths fly?",
    "response": "At night.",
    "retrieved_contexts": ["Bats hunt. Moths fly at night."],
}


def score(judge: Any, **inputs: Any) -> Any:
    """Score a response about moths."""
    return RefusalCorrectness(judge=judge).score(**{**FIELDS, **inputs})


@pytest.mark.parametrize(
    ("word", "sentences", "value", "reason"),
    [
        ("answers", [2], 1.0, "it gives an answer, and the contexts can answer the question"),
        ("refuses", [], 1.0, "it refuses, and the contexts cannot answer the question"),
        ("refuses", [2], 0.0, "it refuses, and the contexts can answer the question"),
        ("answers", [], 0.0, "it gives an answer, and the contexts cannot answer the question"),
    ],
)
def test_refusing_and_being_able_to_answer_exclude_each_other(
    word: str, sentences: list[int], value: float, reason: str
) -> None:
    """Two requests at the same time; the verdict shows the sentences that answer."""
    judge = ScriptedJudge(judge_refusal=says(word), select_sentences=chosen(*sentences))
    result = score(judge)
    assert (result, result.reason) == (value, reason)
    (verdict,) = result.verdicts
    assert (verdict.ok, verdict.reason, verdict.start, verdict.end) == (bool(value), "Because.", 0, 9)
    assert [piece.text for piece in verdict.evidence] == ["Moths fly at night."] * len(sentences)
    assert (sorted(judge.tasks), judge.depth) == (["judge_refusal", "select_sentences"], 1)


@pytest.mark.parametrize("contexts", [[], [""], [" \n"]])
def test_without_contexts_the_right_thing_is_to_refuse(contexts: list[str]) -> None:
    """Nothing retrieved cannot answer, and nobody is asked whether it can."""
    for word, value in (("refuses", 1.0), ("answers", 0.0)):
        judge = ScriptedJudge(judge_refusal=says(word))
        assert score(judge, retrieved_contexts=contexts) == value
        assert judge.tasks == ["judge_refusal"]


@pytest.mark.parametrize(
    "script",
    [
        {"judge_refusal": says("yes"), "select_sentences": chosen()},
        {"judge_refusal": says("answers"), "select_sentences": chosen(3)},
        {"judge_refusal": JudgeError("out of ink"), "select_sentences": chosen()},
        {"judge_refusal": says("answers"), "select_sentences": JudgeError("out of ink")},
    ],
)
def test_one_judgement_alone_is_no_score(script: dict[str, Answer]) -> None:
    """Whichever is missing, and what was paid for is counted."""
    with pytest.raises(UnscoredError, match=r"no usable answer|out of ink") as caught:
        score(ScriptedJudge(**script))
    assert caught.value.usage is not None
    assert caught.value.usage.calls in (1, 3)


def test_the_local_judge_knows_the_usual_words() -> None:
    """By rule: words of refusal, and the sentences with the words of the question."""
    assert score("local", response="Moths fly at night.") == 1.0
    assert score("local", response="I do not know.") == 0.0
    assert score("local", response="I do not know.", user_input="Who owns the old mill?") == 1.0
