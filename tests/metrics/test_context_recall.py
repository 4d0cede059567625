"""ContextRecall: the share of the reference that the contexts hold."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import ContextRecall
from tests.scripted_judge import ScriptedJudge, claims, verdicts

CONTEXTS = ["Moths fly at night. They like lamps."]


def score(judge: ScriptedJudge, reference: Any, contexts: Any = CONTEXTS, **parameters: Any) -> Any:
    """Score the recall of a reference."""
    return ContextRecall(judge=judge, **parameters).score(reference=reference, retrieved_contexts=contexts)


@pytest.mark.parametrize(
    ("reference", "cited", "value"),
    [
        ("Moths fly.", [[1]], 1.0),
        ("Moths fly.", [None], 0.0),
        ("Moths fly. They sing.", [[1], None], 0.5),
        ("Moths fly.\n\n\n\nThey sing.\n\n", [[1], None], 0.5),
        ("- Moths fly\n- They sing\n- They like light", [[1], None, [2]], 2 / 3),
        (["Moths fly.", "They sing."], [[1], None], 0.5),
        (("Moths fly", "They sing", "They like light"), [[1], None, [1]], 2 / 3),
        ("蛾在夜间飞行。它们唱歌。", [[1], None], 0.5),
        ("Die Motten fliegen nachts, z. B. im Mai. Sie singen nicht.", [[1], None], 0.5),
    ],
)
def test_it_is_the_share_of_sentences_found(reference: Any, cited: list[list[int] | None], value: float) -> None:
    """Sentences are split and counted here; blank lines are none, and several references are joined."""
    judge = ScriptedJudge(verify_claims=verdicts(*cited))
    result = score(judge, reference)
    assert result == value
    assert len(result.verdicts) == len(cited)
    assert (judge.tasks, judge.depth) == (["verify_claims"], 1)


def test_verdicts_keep_reason_and_evidence() -> None:
    """Each sentence has the judge's explanation and the sentence that holds it; its place is not in the response."""
    found, missing = score(ScriptedJudge(verify_claims=verdicts([2], None)), "They like light. They sing.").verdicts
    assert (found.text, found.reason, found.evidence[0].text) == ("They like light.", "Reason 1.", "They like lamps.")
    assert (missing.text, missing.reason, missing.evidence) == ("They sing.", "Reason 2.", ())
    assert found.start is missing.start is None


def test_claims_instead_of_sentences_take_two_requests() -> None:
    """The reference is split into claims first, with the question to resolve its pronouns."""
    judge = ScriptedJudge(list_claims=claims("Moths fly.", "Moths sing."), verify_claims=verdicts([1], None))
    metric = ContextRecall(judge=judge, unit="claims")
    result = metric.score(reference="They fly and sing.", retrieved_contexts=CONTEXTS, user_input="What do moths do?")
    assert result == 0.5
    assert result.reason == "1 of 2 claims of the reference found in the contexts"
    assert (judge.tasks, judge.depth) == (["list_claims", "verify_claims"], 2)
    assert "What do moths do?" in judge.prompt("list_claims")


@pytest.mark.parametrize("unit", ["sentences", "claims"])
@pytest.mark.parametrize("contexts", [[], [""], ["\n", " "]])
def test_empty_contexts_score_zero_without_a_request(unit: str, contexts: list[str]) -> None:
    """Nothing retrieved holds nothing; no judge is needed to say so, not even a configured one."""
    judge = ScriptedJudge()
    result = score(judge, "Moths fly. They sing.", contexts, unit=unit)
    assert (result, [verdict.ok for verdict in result.verdicts], judge.requests) == (0.0, [False, False], [])
    assert ContextRecall().score(reference="Moths fly.", retrieved_contexts=contexts) == 0.0


def test_a_reference_without_claims_has_no_score() -> None:
    """Unless the caller says what it is worth."""
    judge = ScriptedJudge(list_claims=claims())
    with pytest.raises(UnscoredError, match="context_recall: the reference has no claims"):
        score(judge, "Well.", unit="claims")
    assert score(judge, "Well.", unit="claims", if_empty=0.25) == 0.25


@pytest.mark.parametrize(
    ("reference", "contexts", "message"),
    [
        (" ", CONTEXTS, "reference is blank"),
        ([], CONTEXTS, "reference is blank"),
        (["", " "], CONTEXTS, "reference is blank"),
        (None, CONTEXTS, "reference is missing"),
        ("Moths fly.", None, "retrieved_contexts is missing"),
    ],
)
def test_a_blank_input_is_an_error(reference: Any, contexts: Any, message: str) -> None:
    """What is missing is named."""
    with pytest.raises(ValueError, match=f"context_recall: {message}"):
        score(ScriptedJudge(), reference, contexts)


@pytest.mark.parametrize("reference", [5, ["Moths fly.", 5]])
def test_a_reference_that_is_no_text_is_an_error(reference: Any) -> None:
    """The field and the type are named."""
    with pytest.raises(TypeError, match=r"reference must be a str, not (int|list)"):
        score(ScriptedJudge(), reference)
