"""Answers of a judge that do not fit what it was asked: repaired once, then no score; never 0.0 or 1.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from pytest_ragmetrics import UnscoredError, metrics
from tests.scripted_judge import (
    Answer,
    Entry,
    ScriptedEmbedder,
    ScriptedJudge,
    answers,
    chosen,
    claims,
    contradicted,
    entities,
    goal,
    matches,
    phrases,
    questions,
    rated,
    relevant,
    says,
    topics,
    useful,
    verdicts,
    written,
)

TWO = ["Moths fly at night. They like lamps.", "Bats hunt them."]
TEXTS = {"user_input": "Do moths fly?", "response": "They fly.", "reference": "Moths fly. They sing."}
SAMPLE: dict[str, Any] = {**TEXTS, "retrieved_contexts": TWO, "reference_contexts": TWO}
TALK = {"messages": [{"role": "user", "content": "When?"}], "reference_topics": ["x", "y"]}
EMBEDDER = ScriptedEmbedder(dict.fromkeys(["Do moths fly?", "One?", "Two?", "Three?"], (1.0,)))

YES, NO = [True], [False]
YES_NO = verdicts([1], None)
YES_YES: Any = verdicts([1], [1])["verdicts"]
MISCOUNTED: list[Answer] = [verdicts([1]), verdicts(), verdicts([1], [1], [1])]
UNFIT: list[Answer] = [
    *MISCOUNTED,
    {"verdicts": [{**each, "number": 1} for each in YES_YES]},
    {"verdicts": [{**each, "number": each["number"] - 1} for each in YES_YES]},
    # sentences that are not there, or none
    *(verdicts(cited, [1]) for cited in ([4], [0], [-1], [])),
    {"verdicts": [{**each, "verdict": -1} for each in YES_YES]},
    {"verdicts": [{**each, "verdict": "maybe"} for each in YES_YES]},
    {**verdicts([1], [1]), "score": 1.0},
    "All claims are supported.",
    '{"verdicts": [{"number": 1, "rea',
]
#: No step of a scale from 0 to the highest.
BESIDE: list[Answer] = [rated(-1), rated(10), {"rating": 2}, {"reason": "", "rating": 0.5}, "2 out of 10"]


class Case(NamedTuple):
    """A metric, the task that is answered badly, an answer that is good, and the score that it leads to."""

    metric: Callable[..., metrics.Metric]
    task: str
    bad: list[Answer]
    good: Answer
    value: float
    others: Mapping[str, Entry] = {}
    parameters: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] = SAMPLE


LISTED = {"list_claims": claims("It flies.", "It swims.")}
ASKED = {"list_key_phrases": phrases("moths"), "write_closed_questions": questions("One?", "Two?")}
SINGLE = {"response": "Ants dig [1].", "retrieved_contexts": ["Ants dig."]}
ONE = {**SAMPLE, "retrieved_contexts": ["Moths fly at night."]}
CASES = [
    Case(metrics.Faithfulness, "verify_claims", UNFIT, YES_NO, 0.5, LISTED),
    Case(
        metrics.FactualCorrectness,
        "verify_claims",
        [*MISCOUNTED, verdicts([1], [4])],
        YES_NO,
        0.5,
        LISTED,
        {"mode": "precision"},
    ),
    Case(metrics.AnswerCorrectness, "verify_claims", MISCOUNTED, YES_NO, 0.5, LISTED, {"weights": (1, 0)}),
    Case(metrics.NoiseSensitivity, "verify_claims", [*MISCOUNTED, verdicts([], [1])], YES_NO, 0.0, LISTED),
    Case(metrics.ContextRecall, "verify_claims", [*MISCOUNTED, verdicts([1], [4])], YES_NO, 0.5),
    Case(
        metrics.Hallucination,
        "find_contradictions",
        [
            contradicted([1]),
            contradicted([1], [], []),
            # the sentence is one of the other context, or of none
            contradicted([3], []),
            contradicted([4], []),
            {"verdicts": [{**each, "verdict": "contradicted"} for each in contradicted([], [])["verdicts"]]},
            {"verdicts": [{**each, "number": 1} for each in contradicted([], [])["verdicts"]]},
            {**contradicted([], []), "score": 1.0},
        ],
        contradicted([1], []),
        0.5,
    ),
    Case(
        metrics.ContextPrecision,
        "judge_usefulness",
        [{**useful(1), "sentences": []}, useful(2), {**useful(1), "verdict": "yes"}, "useful"],
        useful(1),
        1.0,
        inputs=ONE,
    ),
    Case(
        metrics.ContextRelevancy,
        "select_sentences",
        [chosen(0), chosen(5), chosen(1, 1), chosen(-1), {"sentences": ["1"]}, "Insufficient."],
        chosen(1),
        1 / 3,
    ),
    Case(
        metrics.ContextEntityRecall, "list_entities", [{"entities": [1]}, {"names": []}, "Lund"], entities("Lund"), 1.0
    ),
    Case(
        metrics.ContextPrecisionProportion,
        "judge_contexts",
        [relevant(*YES), relevant(*YES * 3)],
        relevant(*YES, *NO),
        0.5,
    ),
    Case(metrics.Relevance, "rate_relevance", [*BESIDE, rated(5)], rated(3), 0.75),
    Case(metrics.Correctness, "rate_correctness", [*BESIDE, rated(5)], rated(3), 0.75),
    Case(metrics.ContextRelevance, "rate_contexts", [*BESIDE, rated(3)], rated(2), 0.5, {"review_contexts": rated(0)}),
    Case(metrics.ContextRelevance, "review_contexts", [*BESIDE, rated(3)], rated(2), 0.5, {"rate_contexts": rated(0)}),
    Case(metrics.ResponseGroundedness, "rate_groundedness", BESIDE, rated(2), 0.5, {"review_groundedness": rated(0)}),
    Case(metrics.ResponseGroundedness, "review_groundedness", BESIDE, rated(2), 0.5, {"rate_groundedness": rated(0)}),
    Case(metrics.AnswerAccuracy, "rate_agreement", [*BESIDE, rated(3)], rated(4), 1.0),
    Case(metrics.Coherence, "critique", [says("maybe"), {"verdict": "yes"}, "yes"], says("no"), 0.0),
    Case(
        metrics.Rubric, "rate_by_rubric", [*BESIDE, rated(0), rated(4)], rated(2), 0.5, {}, {"steps": ["A", "B", "C"]}
    ),
    Case(
        metrics.SimpleCriteria,
        "rate_by_criteria",
        [*BESIDE, rated(6), {"reason": "", "rating": True}],
        rated(5),
        1.0,
        {},
        {"definition": "Kind?"},
    ),
    Case(
        metrics.SummaryScore,
        "answer_questions",
        [answers("yes"), answers("yes", "no", "yes"), answers("yes", "perhaps"), "yes, yes"],
        answers("yes", "no"),
        0.5,
        ASKED,
        {"length_penalty": False},
    ),
    Case(
        metrics.CitationRecall, "verify_claims", [verdicts(), verdicts([9]), "yes"], verdicts([1]), 1.0, inputs=SINGLE
    ),
    Case(metrics.CitationPrecision, "verify_claims", [verdicts(), verdicts([])], verdicts([1]), 1.0, inputs=SINGLE),
    Case(
        metrics.AgentGoalAccuracy,
        "judge_goal",
        [goal("maybe"), goal("reached", " "), {"verdict": "reached"}, "yes"],
        goal("reached"),
        1.0,
        inputs=TALK,
    ),
    Case(
        metrics.TopicAdherence,
        "match_topics",
        [matches(1), matches(1, 1, 1), matches(1, 3), matches(-1, 0), {"matches": []}],
        matches(1, 2),
        1.0,
        {"list_topics": topics(a=True, b=True)},
        inputs=TALK,
    ),
    Case(
        metrics.AnswerRelevancy,
        "write_questions",
        [
            *(written(*asked) for asked in (["One?"], ["One?"] * 3, ["One?", " ", "Two?"], [])),
            written("One?", "Two?", "Three?", "Four?"),
            {"questions": ["One?", "Two?", "Three?"]},
            {"questions": [{"question": "One?", "noncommittal": 2}] * 3},
        ],
        written("One?", "Two?", "Three?"),
        1.0,
        {},
        {"embedder": EMBEDDER},
    ),
]


@pytest.mark.parametrize(("case", "bad"), [(case, bad) for case in CASES for bad in case.bad])
def test_an_answer_that_does_not_fit(case: Case, bad: Answer) -> None:
    """The judge is asked again once, and its second answer counts; if it is no better, the error says what it was."""
    repaired = ScriptedJudge(**case.others, **{case.task: [bad, case.good]})

    assert case.metric(judge=repaired, **case.parameters).score(**case.inputs) == pytest.approx(case.value)
    hopeless = ScriptedJudge(**case.others, **{case.task: bad})
    with pytest.raises(UnscoredError, match=rf"(?s)scripted, {case.task}: no usable answer.*it replied"):
        case.metric(judge=hopeless, **case.parameters).score(**case.inputs)
