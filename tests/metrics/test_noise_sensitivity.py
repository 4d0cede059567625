"""NoiseSensitivity: claims that are wrong because a context has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import NoiseSensitivity
from tests.scripted_judge import Answer, ScriptedJudge, claims, verdicts

Row = Sequence[bool]


def table(correct: Row, said: Sequence[Row], wanted: Sequence[Row]) -> ScriptedJudge:
    """Return a judge by tables: which claims the reference supports, and which of either text each context does."""

    def listed(prompt: str) -> Answer:
        side, count = ("R", len(correct)) if "The response." in prompt else ("S", len(wanted[0]))
        return claims(*(f"{side}{number}" for number in range(count)))

    def verified(prompt: str) -> Answer:
        row = said if "1. R0" in prompt else wanted
        found = re.search(r"Source (\d+)\.", prompt)
        return verdicts(*([1] if holds else None for holds in (row[int(found[1])] if found else correct)))

    return ScriptedJudge(list_claims=listed, verify_claims=verified)


def score(judge: ScriptedJudge, count: int, **parameters: Any) -> Any:
    """Score a response over so many contexts."""
    sources = [f"Source {number}." for number in range(count)]
    fields = {"response": "The response.", "reference": "The reference.", "retrieved_contexts": sources}
    return NoiseSensitivity(judge=judge, **parameters).score(**fields)


@pytest.mark.parametrize(
    ("correct", "said", "wanted", "relevant", "irrelevant"),
    [
        # One relevant context has both claims, one of them wrong.
        ([True, False], [[True, True]], [[True]], 0.5, 0.0),
        # The wrong claim comes from a context that supports nothing of the reference.
        ([True, False], [[True, False], [False, True]], [[True], [False]], 0.0, 0.5),
        # It stands in both kinds: the relevant one is blamed.
        ([False], [[True], [True]], [[True], [False]], 1.0, 0.0),
        # No context has it: the model made it up, and noise is not to blame.
        ([False, False], [[False, False]], [[True]], 0.0, 0.0),
        # No context is relevant.
        ([False, True], [[True, True]], [[False]], 0.0, 0.5),
        ([True, True], [[True, True]], [[True]], 0.0, 0.0),
        ([False, False], [[True, True]], [[True]], 1.0, 0.0),
    ],
)
def test_it_is_the_share_of_claims_wrong_by_noise(
    correct: Row, said: list[Row], wanted: list[Row], relevant: float, irrelevant: float
) -> None:
    """By hand, in both modes."""
    for mode, value in (("relevant", relevant), ("irrelevant", irrelevant)):
        result = score(table(correct, said, wanted), len(said), mode=mode)
        assert result == value
        assert sum(not verdict.ok for verdict in result.verdicts) == value * len(correct)


TABLES = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)).flatmap(
    lambda sizes: st.tuples(
        st.lists(st.booleans(), min_size=sizes[0], max_size=sizes[0]),
        st.lists(st.lists(st.booleans(), min_size=sizes[0], max_size=sizes[0]), min_size=sizes[2], max_size=sizes[2]),
        st.lists(st.lists(st.booleans(), min_size=sizes[1], max_size=sizes[1]), min_size=sizes[2], max_size=sizes[2]),
    )
)


@settings(deadline=None, max_examples=60)
@given(TABLES, st.sampled_from(["relevant", "irrelevant"]))
def test_it_is_the_published_formula(tables: tuple[list[bool], list[list[bool]], list[list[bool]]], mode: str) -> None:
    """Against the formula as it is written, over tables at random."""
    correct, said, wanted = tables
    relevant = [any(row) for row in wanted]
    total = 0
    for i, is_correct in enumerate(correct):
        by_relevant = any(relevant[j] and said[j][i] for j in range(len(said)))
        by_irrelevant = any(not relevant[j] and said[j][i] for j in range(len(said)))
        if mode == "relevant":
            total += by_relevant and not is_correct
        else:
            total += by_irrelevant and not by_relevant and not is_correct
    assert score(table(correct, said, wanted), len(said), mode=mode) == total / len(correct)


def test_five_contexts_take_two_rounds() -> None:
    """Both texts are split at the same time, then everything is held against everything at the same time."""
    judge = table([True, False], [[True, False]] * 5, [[True]] * 5)
    score(judge, 5)
    assert (judge.tasks, judge.depth) == (["list_claims"] * 2 + ["verify_claims"] * 11, 2)


def test_a_claim_shows_which_contexts_have_it() -> None:
    """Evidence points into the contexts, and the reason says who is to blame."""
    judge = table([True, False], [[True, False], [False, False], [False, True]], [[True], [False], [True]])
    good, bad = score(judge, 3).verdicts
    assert (good.text, good.ok, [piece.context for piece in good.evidence]) == ("R0", True, [0])
    assert (bad.ok, [(piece.context, piece.text) for piece in bad.evidence]) == (False, [(2, "Source 2.")])
    assert bad.reason == "context 3 has it, the reference does not. Reason 2."


def test_evidence_that_does_not_bear_a_claim_out_is_suspicious() -> None:
    """A number that the cited sentence lacks is noticed, and a claim has its place in the response."""
    judge = ScriptedJudge(
        list_claims=[claims("Moths live 9 weeks."), claims("Moths fly.")],
        verify_claims=lambda prompt: verdicts([1]) if "They fly." in prompt else verdicts(None),
    )
    metric = NoiseSensitivity(judge=judge)
    result = metric.score(response="Moths live 9 weeks.", reference="Moths.", retrieved_contexts=["They fly."])
    (verdict,) = result.verdicts
    assert (verdict.suspicious, verdict.start, verdict.end, result) == (True, 0, 19, 1.0)


def test_blank_contexts_have_nothing() -> None:
    """No request is spent on them, and those that follow keep their index."""
    judge = table([False], [[True]], [[True]])
    fields = {"response": "The response.", "reference": "The reference."}
    result = NoiseSensitivity(judge=judge).score(**fields, retrieved_contexts=[" ", "Source 0."])
    assert (result, result.verdicts[0].evidence[0].context, len(judge.requests)) == (1.0, 1, 5)


@pytest.mark.parametrize(("said", "wanted", "blank"), [([], ["S"], "response"), (["R"], [], "reference")])
def test_texts_without_claims_have_no_score(said: list[str], wanted: list[str], blank: str) -> None:
    """Unless the caller says what they are worth."""
    judge = ScriptedJudge(list_claims=[claims(*said), claims(*wanted)])
    with pytest.raises(UnscoredError, match=f"noise_sensitivity: the {blank} has no claims"):
        score(judge, 1)
    again = ScriptedJudge(list_claims=[claims(*said), claims(*wanted)])
    assert score(again, 1, if_empty=0.0).vacuous


def test_inputs_and_mode_are_checked() -> None:
    """What is missing or blank is named, and so are the modes there are; lower is better."""
    fields: dict[str, Any] = {"response": "So.", "reference": "So.", "retrieved_contexts": ["So."]}
    for field in fields:
        values: list[Any] = [None, " ", *([[]] if field == "retrieved_contexts" else [])]
        for value in values:
            with pytest.raises(ValueError, match=f"{field} is (missing|blank)"):
                NoiseSensitivity(judge=ScriptedJudge()).score(**{**fields, field: value})
    with pytest.raises(ValueError, match="mode must be 'relevant' or 'irrelevant', not 'both'"):
        NoiseSensitivity(mode="both")  # type: ignore[arg-type] # the error is the point
    assert NoiseSensitivity.better == "lower"
