"""ContextPrecision, ContextRecall, ContextRelevancy and ContextEntityRecall."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics import metrics as m
from tests.scripted_judge import Answer, ScriptedEmbedder, ScriptedJudge, chosen, claims, entities, useful, verdicts

FIELDS = {"user_input": "When do moths fly?", "reference": "At night."}
CONTEXTS = ["Moths fly at night. They like lamps."]
FOUR = ["One. Two.", "Three. Four."]
# Cosines: One-Two 0.8, One-Three 0.0, Two-Three 0.6, One-Four -1.0, Two-Four -0.8, Three-Four 0.0.
VECTORS = {"One.": [1.0, 0.0], "Two.": [0.8, 0.6], "Three.": [0.0, 1.0], "Four.": [-1.0, 0.0]}


def contexts(count: int) -> list[str]:
    return [f"Moth {number} flies at night." for number in range(1, count + 1)]


def judging(verdicts: list[bool]) -> ScriptedJudge:
    def answer(prompt: str) -> Answer:
        shown = re.findall(r"(\d+) Moth (\d+) flies", prompt)
        return useful(*([int(place)] if verdicts[int(number) - 1] else [] for place, number in shown))

    return ScriptedJudge(judge_usefulness=answer)


@pytest.mark.parametrize(
    ("verdicts", "value"), [([True, True, False], 1.0), ([False, True, True], (1 / 2 + 2 / 3) / 2), ([False] * 3, 0.0)]
)
def test_it_is_the_average_precision(verdicts: list[bool], value: float) -> None:
    """By rank, in one request that shows the contexts as they are ranked; a verdict has the sentences of use."""
    for order in (1, -1):
        result = m.ContextPrecision(judge=judging(verdicts)).score(**FIELDS, retrieved_contexts=contexts(3)[::order])
        assert [verdict.ok for verdict in result.verdicts] == verdicts[::order]
        assert [bool(verdict.evidence) for verdict in result.verdicts] == verdicts[::order]
        assert result.reason == f"{sum(verdicts)} of 3 contexts of use"
        assert order == -1 or result == value


@pytest.mark.parametrize("metric", [m.ContextPrecision, m.ContextUtilization])
def test_without_contexts_it_is_zero_and_nobody_is_asked(metric: Any) -> None:
    """Nothing retrieved is nothing of use; a blank context is never of use either, and keeps its rank."""
    judge = judging([True])
    assert metric(judge=judge).score(**FIELDS, response="So.", retrieved_contexts=[]) == 0.0
    blank = metric(judge=judge).score(**FIELDS, response="So.", retrieved_contexts=["", " \n"])
    assert (blank, [verdict.reason for verdict in blank.verdicts]) == (0.0, ["It has no sentence."] * 2)
    assert judge.requests == []
    between = metric(judge=judge).score(**FIELDS, response="So.", retrieved_contexts=["", *contexts(1), "\n"])
    assert (between, len(judge.requests)) == (0.5, 1)
    assert [piece.context for verdict in between.verdicts for piece in verdict.evidence] == [1]


def test_use_is_judged_by_the_reference_or_by_the_response() -> None:
    for metric, answer in ((m.ContextPrecision, "At night."), (m.ContextUtilization, "At noon.")):
        judge = judging([True])
        metric(judge=judge).score(**FIELDS, response="At noon.", retrieved_contexts=contexts(1))
        assert {"At night.", "At noon."} & {*judge.prompt("judge_usefulness").splitlines()} == {answer}


def recall_score(judge: ScriptedJudge, reference: Any, **parameters: Any) -> Any:
    fields = {"retrieved_contexts": CONTEXTS, "user_input": "What do moths do?"}
    return m.ContextRecall(judge=judge, **parameters).score(reference=reference, **fields)


@pytest.mark.parametrize(
    ("reference", "cited", "value"),
    [
        ("Moths fly.\n\n\n\nThey sing.\n\n", [[1], None], 0.5),
        ("- Moths fly\n- They sing\n- They like light", [[1], None, [2]], 2 / 3),
        (["Moths fly.", "They sing."], [[1], None], 0.5),
        (("Moths fly", "They sing", "They like light"), [[1], None, [1]], 2 / 3),
        ("蛾在夜间飞行。它们唱歌。", [[1], None], 0.5),
    ],
)
def test_it_is_the_share_of_sentences_found(reference: Any, cited: list[list[int] | None], value: float) -> None:
    result = recall_score(ScriptedJudge(verify_claims=verdicts(*cited)), reference)
    found = [numbers is not None for numbers in cited]
    said = f"{sum(found)} of {len(cited)} sentences of the reference found in the contexts"
    assert (result, result.reason) == (value, said)
    assert [(v.ok, v.start, len(v.evidence)) for v in result.verdicts] == [
        (is_found, None, is_found) for is_found in found
    ]
    assert [v.reason for v in result.verdicts] == [f"Reason {number}." for number in range(1, len(cited) + 1)]


def test_claims_instead_of_sentences_take_two_requests() -> None:
    judge = ScriptedJudge(list_claims=claims("Moths fly.", "Moths sing."), verify_claims=verdicts([2], None))
    result = recall_score(judge, "They fly and sing.", unit="claims")
    assert (result, result.reason) == (0.5, "1 of 2 claims of the reference found in the contexts")
    assert (judge.depth, "What do moths do?" in judge.prompt("list_claims")) == (2, True)


@pytest.mark.parametrize("contexts", [[], ["\n", " "]])
def test_empty_contexts_score_zero_without_a_request(contexts: list[str]) -> None:
    for unit in ("sentences", "claims"):
        result = m.ContextRecall(unit=unit).score(reference="Moths fly. They sing.", retrieved_contexts=contexts)
        assert (result, [verdict.ok for verdict in result.verdicts]) == (0.0, [False, False])
        assert (result.reason or "").endswith("found in the contexts: there is no context")
    with pytest.raises(ValueError, match="context_recall: reference is blank"):
        m.ContextRecall().score(reference=["", " "], retrieved_contexts=contexts)
    assert m.ContextRecall(if_empty=1).score(reference="---", retrieved_contexts=contexts).verdicts[0].text == "---"
    entities = m.ContextEntityRecall().score(reference="Lund.", retrieved_contexts=contexts)
    assert (entities, entities.reason) == (0.0, "there is no context")


def relevancy_score(*samples: Answer, **parameters: Any) -> Any:
    judge = ScriptedJudge(select_sentences=list(samples))
    metric = m.ContextRelevancy(judge=judge, embedder=ScriptedEmbedder(VECTORS), strictness=len(samples), **parameters)
    result = metric.score(user_input="How many?", retrieved_contexts=FOUR)
    assert (len(judge.tasks), judge.depth) == (len(samples), 1)
    assert [request.vote for request in judge.requests] == list(range(len(samples)))
    return result


@pytest.mark.parametrize("numbers", [[1], [4, 1, 3], [1, 2, 3, 4], []])
def test_one_sample_is_the_share_of_sentences(numbers: list[int]) -> None:
    result = relevancy_score(chosen(*numbers))
    assert result == len(numbers) / 4
    assert [verdict.ok for verdict in result.verdicts] == [number in numbers for number in (1, 2, 3, 4)]
    assert result.reason == f"{len(numbers)} of 4 context sentences needed"


@pytest.mark.parametrize(
    ("samples", "overlap", "shared", "alike"),
    [
        ([[1], [1]], 1 / 4, 1.0, 1.0),
        ([[2], [1]], 1 / 4, 0.0, 0.8),
        # one way 1.0; the other way One finds itself and Three finds nothing: (1 + 0) / 2
        ([[1, 3], [1]], 3 / 8, 1 / 2, (1.0 + 0.5) / 2),
        # One: Two 0.8, Two: Two 1.0; Two: Two 1.0, Three: Two 0.6
        ([[1, 2], [2, 3]], 2 / 4, 1 / 3, (0.9 + 0.8) / 2),
        # opposite directions do not count below nothing
        ([[1], [4]], 1 / 4, 0.0, 0.0),
        ([[], []], 0.0, 1.0, 1.0),
        ([[1], []], 1 / 8, 0.0, 0.0),
        ([[1], [1], [2]], 1 / 4, 1 / 3, (1 + 0.8 + 0.8) / 3),
        ([[1], [2], []], 1 / 6, 0.0, (0.8 + 0 + 0) / 3),
    ],
)
def test_agreement(samples: list[list[int]], overlap: float, shared: float, alike: float) -> None:
    """The mean over all pairs: shared / chosen by either; or the similarity of each sentence to the best, both ways."""
    for name, agreement in (("jaccard", shared), ("jaccard_score", shared), ("bert_score", alike)):
        result = relevancy_score(*(chosen(*numbers) for numbers in samples), agreement=name)
        assert result.value == pytest.approx(overlap * agreement)
        assert f"in {len(samples)} samples, agreement {agreement:.2f}" in result.reason


def test_complete_agreement_needs_no_embedder() -> None:
    judge = ScriptedJudge(select_sentences=chosen(1, 2, 3, 4))
    result = m.ContextRelevancy(judge=judge, strictness=3).score(user_input="How many?", retrieved_contexts=FOUR)
    assert result.value == 1.0


def test_the_majority_decides_which_sentences_are_shown_as_needed() -> None:
    one, *others = relevancy_score(chosen(1, 3), chosen(1), chosen(1, 3), chosen(2), agreement="jaccard").verdicts
    assert (one.text, one.ok, one.evidence[0].start) == ("One.", True, 0)
    assert [(v.text, v.ok, v.evidence) for v in others] == [(text, False, ()) for text in ("Two.", "Three.", "Four.")]


def test_one_sample_that_fails_leaves_no_score() -> None:
    judge = ScriptedJudge(select_sentences=[chosen(1), "no", "no", "no", "no", "no"])
    with pytest.raises(UnscoredError, match="no usable answer"):
        m.ContextRelevancy(judge=judge, strictness=3).score(user_input="How many?", retrieved_contexts=FOUR)


def entity_score(wanted: list[str], given: list[str]) -> Any:
    listing = ScriptedJudge(list_entities=lambda prompt: entities(*(given if "Rain." in prompt else wanted)))
    contexts = ["Rain.", "ADA BRANDT was a potter. Later she went to Aru."]
    reference = "In May 1903 the potter Ada Brandt left Lund."
    return m.ContextEntityRecall(judge=listing).score(reference=reference, retrieved_contexts=contexts)


@pytest.mark.parametrize(
    ("wanted", "given", "value"),
    [
        (["Ada Brandt", "Lund"], ["Lund", "Ada Brandt", "Aru"], 1.0),
        (["Ada Brandt"], ["ada  BRANDT"], 1.0),
        (["\uff21da Brandt\u2019s mill"], ["Ada Brandt's mill"], 1.0),
        (["Straße"], ["STRASSE"], 1.0),
        (["Lund", "LUND", "Aru"], ["Lund"], 0.5),
        (["Lund"], ["Lunden"], 0.0),
        (["1903"], [], 0.0),
    ],
)
def test_it_is_the_share_of_entities_found(wanted: list[str], given: list[str], value: float) -> None:
    assert entity_score(wanted, given) == value
    result = entity_score(["Ada Brandt", "May 1903", "Rome"], ["ADA BRANDT", "rome"])
    found, missing, elsewhere = result.verdicts
    (piece,) = found.evidence
    assert (piece.context, piece.start, piece.end, piece.text) == (1, 0, 10, "ADA BRANDT")
    assert [(verdict.ok, verdict.evidence) for verdict in (missing, elsewhere)] == [(False, ()), (True, ())]
    assert result.reason == "2 of 3 entities of the reference found in the contexts"
