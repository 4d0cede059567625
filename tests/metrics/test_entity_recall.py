"""ContextEntityRecall: what the reference names, the contexts name."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import ContextEntityRecall
from tests.scripted_judge import Answer, ScriptedJudge, entities

FIELDS: dict[str, Any] = {
    "reference": "Ada Brandt left Lund in May 1903.",
    "retrieved_contexts": ["Rain.", "ADA BRANDT was a potter. She left Lund."],
}


def score(judge: Any, **inputs: Any) -> Any:
    """Score the entities of a reference."""
    parameters = {name: inputs.pop(name) for name in ("if_empty",) if name in inputs}
    return ContextEntityRecall(judge=judge, **parameters).score(**{**FIELDS, **inputs})


def naming(wanted: Answer, given: Answer) -> ScriptedJudge:
    """Return a judge that lists entities of the reference and of the contexts."""
    return ScriptedJudge(list_entities=lambda prompt: given if "Rain." in prompt else wanted)


@pytest.mark.parametrize(
    ("wanted", "given", "value"),
    [
        (["Ada Brandt", "Lund"], ["Lund", "Ada Brandt", "Aru"], 1.0),
        (["Ada Brandt", "Lund"], ["Lund"], 0.5),
        (["Ada Brandt"], ["ada  BRANDT"], 1.0),
        (["\uff21da Brandt\u2019s mill"], ["Ada Brandt's mill"], 1.0),
        (["Straße"], ["STRASSE"], 1.0),
        (["Lund", "LUND"], ["Lund"], 1.0),
        (["Lund", "LUND", "Aru"], ["Lund"], 0.5),
        (["Lund"], [], 0.0),
        (["Lund"], ["Lunden"], 0.0),
        (["1903"], ["1904"], 0.0),
    ],
)
def test_it_is_the_share_of_entities_found(wanted: list[str], given: list[str], value: float) -> None:
    """After folding, each counted once; two requests at the same time."""
    judge = naming(entities(*wanted), entities(*given))
    assert score(judge) == value
    assert (judge.tasks, judge.depth) == (["list_entities"] * 2, 1)


def test_verdicts_show_where_an_entity_stands() -> None:
    """The first place in the contexts, where the judge wrote it as it stands there."""
    result = score(naming(entities("Ada Brandt", "May 1903", "Aru"), entities("ADA BRANDT", "aru")))
    found, missing, elsewhere = result.verdicts
    assert [(piece.context, piece.start, piece.end, piece.text) for piece in found.evidence] == [
        (1, 0, 10, "ADA BRANDT")
    ]
    assert (missing.ok, missing.evidence) == (False, ())
    assert (elsewhere.ok, elsewhere.evidence) == (True, ())
    assert result.reason == "2 of 3 entities of the reference found in the contexts"


@pytest.mark.parametrize("contexts", [[], [""], [" \n"]])
def test_without_contexts_it_is_zero_and_nobody_is_asked(contexts: list[str]) -> None:
    """Nothing retrieved names nothing."""
    judge = ScriptedJudge()
    assert score(judge, retrieved_contexts=contexts) == 0.0
    assert judge.requests == []


def test_a_reference_without_entities_has_no_score() -> None:
    """Unless the caller says what it is worth."""
    with pytest.raises(UnscoredError, match="context_entity_recall: the reference has no entities"):
        score(naming(entities(), entities("Lund")))
    assert score(naming(entities(), entities("Lund")), if_empty=1.0).vacuous


def test_the_local_judge_takes_names_and_dates() -> None:
    """By rule: proper names, dates, and amounts."""
    reference = "In May 1903 the potter Ada Brandt left Lund."
    result = score("local", reference=reference, retrieved_contexts=["Later the potter Ada Brandt went to Aru."])
    assert {verdict.text: verdict.ok for verdict in result.verdicts} == {
        "Ada Brandt": True,
        "Lund": False,
        "May 1903": False,
    }
