"""FactualCorrectness: claims of either text held against the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import FactualCorrectness
from pytest_ragmetrics.metrics.base import f_beta
from tests.scripted_judge import Answer, ScriptedJudge, claims, verdicts


def comparing(said: list[bool], wanted: list[bool]) -> ScriptedJudge:
    """Return a judge by which these claims of the response, and these of the reference, are borne out."""

    def listed(prompt: str) -> Answer:
        side, held = ("R", said) if "The response." in prompt else ("S", wanted)
        return claims(*(f"{side}{number}" for number in range(len(held))))

    def verified(prompt: str) -> Answer:
        assert ("The reference." in prompt) == ("1. R0" in prompt)
        return verdicts(*([1] if holds else None for holds in (said if "1. R0" in prompt else wanted)))

    return ScriptedJudge(list_claims=listed, verify_claims=verified)


def score(judge: ScriptedJudge, **parameters: Any) -> Any:
    """Score a response against a reference."""
    return FactualCorrectness(judge=judge, **parameters).score(response="The response.", reference="The reference.")


@pytest.mark.parametrize(
    ("said", "wanted", "precision", "recall", "f1"),
    [
        ([True], [True], 1.0, 1.0, 1.0),
        ([True, True, True], [True, True], 1.0, 1.0, 1.0),
        ([False], [False], 0.0, 0.0, 0.0),
        ([True, False], [True, False], 0.5, 0.5, 0.5),
        # Ten claims of the response say over and over what is half of the reference.
        ([True] * 10, [True, False], 1.0, 0.5, 2 / 3),
        ([True, False, False, False], [True], 0.25, 1.0, 0.4),
        ([True], [False], 1.0, 0.0, 0.0),
    ],
)
def test_precision_recall_and_their_mean(
    said: list[bool], wanted: list[bool], precision: float, recall: float, f1: float
) -> None:
    """Each direction has its own true positives."""
    for mode, value in (("precision", precision), ("recall", recall), ("f1", f1)):
        assert score(comparing(said, wanted), mode=mode) == pytest.approx(value)


SHARES = st.tuples(st.integers(0, 60), st.integers(1, 60)).map(lambda counts: min(counts) / max(counts))


@given(SHARES, SHARES, st.just(0.0) | st.floats(0.01, 20))
def test_f_beta_is_the_definition(precision: float, recall: float, beta: float) -> None:
    """Against the formula as it is written."""
    below = beta**2 * precision + recall
    wanted = (1 + beta**2) * precision * recall / below if precision and recall and below else 0.0
    assert f_beta(precision, recall, beta) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("mode", "count"), [("precision", 1), ("recall", 1), ("f1", 2)])
def test_two_rounds_at_most(mode: str, count: int) -> None:
    """Only what a mode needs is asked, both sides at the same time."""
    judge = comparing([True], [False])
    score(judge, mode=mode)
    assert (judge.tasks, judge.depth) == (["list_claims"] * count + ["verify_claims"] * count, 2)


def test_verdicts_quote_the_other_text() -> None:
    """What bears a claim out is no place in the contexts, so the reason quotes it; a claim of the response has one."""
    judge = ScriptedJudge(
        list_claims=[claims("Moths fly."), claims("Moths live 9 weeks.")],
        verify_claims=[verdicts([1]), verdicts([1])],
    )
    result = FactualCorrectness(judge=judge).score(response="Moths fly. They live.", reference="Moths fly by night.")
    said, wanted = result.verdicts
    assert (said.start, said.end, said.evidence) == (0, 10, ())
    assert said.reason == 'Reason 1. (reference: "Moths fly by night.")'
    assert (wanted.start, wanted.suspicious) == (None, True)
    assert wanted.reason == 'Reason 1. (response: "Moths fly.")'
    assert result.reason == "1 of 1 claims of the response, 1 of 1 claims of the reference borne out"


@pytest.mark.parametrize(
    ("said", "wanted", "mode", "blank"),
    [
        (0, 1, "precision", "response"),
        (1, 0, "recall", "reference"),
        (1, 0, "f1", "reference"),
        (0, 0, "f1", "reference"),
    ],
)
def test_nothing_to_judge_is_no_score(said: int, wanted: int, mode: Any, blank: str) -> None:
    """Unless the caller says what it is worth."""
    with pytest.raises(UnscoredError, match=f"factual_correctness: the {blank} has no claims"):
        score(comparing([True] * said, [True] * wanted), mode=mode)
    assert score(comparing([True] * said, [True] * wanted), mode=mode, if_empty=0.5) == 0.5


def test_a_response_without_claims_says_nothing_of_the_reference() -> None:
    """A refusal where there is an answer scores 0.0, and nothing further is asked."""
    judge = comparing([], [True])
    assert score(judge) == 0.0
    assert judge.tasks == ["list_claims"] * 2


def test_inputs_and_parameters_are_checked() -> None:
    """What is missing, blank or out of range is named."""
    for field in ("response", "reference"):
        for value in (None, "\n"):
            with pytest.raises(ValueError, match=f"factual_correctness: {field} is (missing|blank)"):
                FactualCorrectness(judge=ScriptedJudge()).score(**{"response": "A.", "reference": "A.", field: value})
    with pytest.raises(ValueError, match="mode must be 'precision' or 'recall' or 'f1'"):
        FactualCorrectness(mode="f2")  # type: ignore[arg-type] # the error is the point
    for beta in (-1, float("nan"), float("inf"), True, "1"):
        with pytest.raises(ValueError, match="beta must be a number from 0 on"):
            FactualCorrectness(beta=beta)  # type: ignore[arg-type] # the error is the point
