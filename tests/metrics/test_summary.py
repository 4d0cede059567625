"""SummaryScore: how many questions about the contexts a summary answers, and how much shorter it is."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import SummaryScore
from tests.asking import MemoryTransport
from tests.metrics.fake_session import FakeSession
from tests.scripted_judge import Answer, ScriptedJudge, answers, phrases, questions

CONTEXTS = ["Moths fly at night.", "They like lamps."]  # 19 + 1 + 16 = 36 characters
ASKED = ["Do moths fly?", "At night?", "Do they like lamps?", "Is that all?"]


def judge_of(*words: str, **changes: Answer | list[Answer]) -> ScriptedJudge:
    """Return a judge that asks as many questions as there are words, and answers with these."""
    script: dict[str, Any] = {
        "list_key_phrases": phrases("moths", "lamps"),
        "write_closed_questions": questions(*ASKED[: len(words)]),
        "answer_questions": answers(*words),
    }
    return ScriptedJudge(**{**script, **changes})


@pytest.mark.parametrize(
    ("words", "summary", "parameters", "value"),
    [
        # conciseness of "Moths fly." is 1 - 10/36
        (["yes"], "Moths fly.", {}, 0.5 * 1.0 + 0.5 * (26 / 36)),
        (["yes", "no"], "Moths fly.", {}, 0.5 * 0.5 + 0.5 * (26 / 36)),
        (["no", "no"], "Moths fly.", {}, 0.5 * (26 / 36)),
        (["yes", "yes", "yes", "no"], "Moths fly.", {"coeff": 0.25}, 0.75 * 0.75 + 0.25 * (26 / 36)),
        (["yes"], "Moths fly.", {"coeff": 0.0}, 1.0),
        (["yes"], "Moths fly.", {"coeff": 1.0}, 26 / 36),
        # longer than the contexts: conciseness is 0
        (["yes", "yes"], "Moths fly. " * 10, {}, 0.5),
        # not halved without the penalty
        (["yes"], "Moths fly.", {"length_penalty": False}, 1.0),
        (["yes", "no", "no", "no"], "Moths fly.", {"length_penalty": False, "coeff": 0.9}, 0.25),
    ],
)
def test_the_formula(words: list[str], summary: str, parameters: dict[str, Any], value: float) -> None:
    """Answered questions and conciseness, weighed by coeff; without the penalty the questions alone."""
    judge = judge_of(*words)
    result = SummaryScore(judge=judge, **parameters).score(response=summary, reference_contexts=CONTEXTS)
    assert result.value == pytest.approx(value, abs=1e-9)
    assert [(v.text, v.ok, v.reason) for v in result.verdicts] == [
        (ASKED[index], word == "yes", f"Reason {index + 1}.") for index, word in enumerate(words)
    ]
    assert (len(judge.tasks), judge.depth) == (3, 3)


def test_the_reason_has_both_parts() -> None:
    """What was answered and how short it is."""
    result = SummaryScore(judge=judge_of("yes", "no")).score(response="Moths fly.", reference_contexts=CONTEXTS)
    assert result.reason == "1 of 2 questions answered by the summary, conciseness 0.72"


def test_length_counts_characters_in_every_script() -> None:
    """Two of eight Chinese characters are a quarter."""
    judge = judge_of("yes")
    result = SummaryScore(judge=judge, coeff=1.0).score(response="蛾飞", reference_contexts=["蛾在夜间飞行吗吗"])
    assert result.value == pytest.approx(0.75)


def test_a_changed_summary_costs_one_request() -> None:
    """Key phrases and questions depend on the contexts alone, and are kept."""
    session = FakeSession(transport=MemoryTransport())
    judge = judge_of("yes", "no")
    with session.running():
        cold = SummaryScore(judge=judge).score(response="Moths fly.", reference_contexts=CONTEXTS)
        warm = SummaryScore(judge=judge).score(response="Moths fly well.", reference_contexts=CONTEXTS)
    assert (cold.usage.calls, cold.usage.cached_calls) == (3, 0)
    assert (warm.usage.calls, warm.usage.cached_calls) == (1, 2)
    assert judge.tasks[3:] == ["answer_questions"]


@pytest.mark.parametrize(
    ("changes", "tasks"),
    [
        ({"list_key_phrases": phrases()}, ["list_key_phrases"]),
        ({"write_closed_questions": questions()}, ["list_key_phrases", "write_closed_questions"]),
    ],
)
def test_without_questions_there_is_no_score(changes: dict[str, Answer | list[Answer]], tasks: list[str]) -> None:
    """Nothing to ask about is unscored, not a division by zero, and no further request."""
    judge = judge_of("yes", **changes)
    with pytest.raises(UnscoredError, match="summary_score: there is nothing to ask about the contexts"):
        SummaryScore(judge=judge).score(response="Moths fly.", reference_contexts=CONTEXTS)
    assert judge.tasks == tasks
    result = SummaryScore(judge=judge_of("yes", **changes), if_empty=0.0).score(
        response="Moths fly.", reference_contexts=CONTEXTS
    )
    assert (result, result.vacuous) == (0.0, True)


@pytest.mark.parametrize("coeff", [-0.1, 1.1, "0.5", True, float("nan")])
def test_coeff_is_a_share(coeff: Any) -> None:
    """A weight outside of 0 to 1 is an error when the metric is made."""
    with pytest.raises(ValueError, match="coeff must be a number from 0 to 1"):
        SummaryScore(coeff=coeff)
