"""Answers of a judge that do not fit what it was asked: repaired once, then no score; never 0.0 or 1.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics import metrics as m
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

    metric: Callable[..., m.Metric]
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
UNCONTRADICTED: Any = contradicted([], [])
CONTRADICTIONS: list[Answer] = [
    contradicted([1]),
    contradicted([1], [], []),
    # the sentence is one of the other context, or of none
    contradicted([3], []),
    contradicted([4], []),
    {"verdicts": [{**each, "verdict": "contradicted"} for each in UNCONTRADICTED["verdicts"]]},
    {"verdicts": [{**each, "number": 1} for each in UNCONTRADICTED["verdicts"]]},
    {**UNCONTRADICTED, "score": 1.0},
]
USES: list[Answer] = [{**useful(1), "sentences": []}, useful(2), {**useful(1), "verdict": "yes"}, "useful"]
CHOICES: list[Answer] = [chosen(0), chosen(5), chosen(1, 1), chosen(-1), {"sentences": ["1"]}, "Insufficient."]
NUMBERS: list[Answer] = [*BESIDE, rated(6), {"reason": "", "rating": True}]
REPLIES: list[Answer] = [answers("yes"), answers("yes", "no", "yes"), answers("yes", "perhaps"), "yes, yes"]
GOALS: list[Answer] = [goal("maybe"), goal("reached", " "), {"verdict": "reached"}, "yes"]
MATCHES: list[Answer] = [matches(1), matches(1, 1, 1), matches(1, 3), matches(-1, 0), {"matches": []}]
TOPICS = {"list_topics": topics(a=True, b=True)}
HELPS: list[Answer] = [relevant(*YES), relevant(*YES * 3)]
ENTITIES: list[Answer] = [{"entities": [1]}, {"names": []}, "Lund"]
QUESTIONS: list[Answer] = [
    *(written(*asked) for asked in (["One?"], ["One?"] * 3, ["One?", " ", "Two?"], [])),
    written("One?", "Two?", "Three?", "Four?"),
    {"questions": ["One?", "Two?", "Three?"]},
    {"questions": [{"question": "One?", "noncommittal": 2}] * 3},
]
THREE = written("One?", "Two?", "Three?")
CITED: list[Answer] = [*MISCOUNTED, verdicts([1], [4])]
CASES = [
    Case(m.Faithfulness, "verify_claims", UNFIT, YES_NO, 0.5, LISTED),
    Case(m.FactualCorrectness, "verify_claims", CITED, YES_NO, 0.5, LISTED, {"mode": "precision"}),
    Case(m.AnswerCorrectness, "verify_claims", MISCOUNTED, YES_NO, 0.5, LISTED, {"weights": (1, 0)}),
    Case(m.NoiseSensitivity, "verify_claims", [*MISCOUNTED, verdicts([], [1])], YES_NO, 0.0, LISTED),
    Case(m.ContextRecall, "verify_claims", CITED, YES_NO, 0.5),
    Case(m.Hallucination, "find_contradictions", CONTRADICTIONS, contradicted([1], []), 0.5),
    Case(m.ContextPrecision, "judge_usefulness", USES, useful(1), 1.0, inputs=ONE),
    Case(m.ContextRelevancy, "select_sentences", CHOICES, chosen(1), 1 / 3),
    Case(m.ContextEntityRecall, "list_entities", ENTITIES, entities("Lund"), 1.0),
    Case(m.ContextPrecisionProportion, "judge_contexts", HELPS, relevant(*YES, *NO), 0.5),
    Case(m.Relevance, "rate_relevance", [*BESIDE, rated(5)], rated(3), 0.75),
    Case(m.Correctness, "rate_correctness", [*BESIDE, rated(5)], rated(3), 0.75),
    Case(m.ContextRelevance, "rate_contexts", [*BESIDE, rated(3)], rated(2), 0.5, {"review_contexts": rated(0)}),
    Case(m.ContextRelevance, "review_contexts", [*BESIDE, rated(3)], rated(2), 0.5, {"rate_contexts": rated(0)}),
    Case(m.ResponseGroundedness, "rate_groundedness", BESIDE, rated(2), 0.5, {"review_groundedness": rated(0)}),
    Case(m.ResponseGroundedness, "review_groundedness", BESIDE, rated(2), 0.5, {"rate_groundedness": rated(0)}),
    Case(m.AnswerAccuracy, "rate_agreement", [*BESIDE, rated(3)], rated(4), 1.0),
    Case(m.Coherence, "critique", [says("maybe"), {"verdict": "yes"}, "yes"], says("no"), 0.0),
    Case(m.Rubric, "rate_by_rubric", [*BESIDE, rated(0), rated(4)], rated(2), 0.5, {}, {"steps": ["A", "B", "C"]}),
    Case(m.SimpleCriteria, "rate_by_criteria", NUMBERS, rated(5), 1.0, {}, {"definition": "Kind?"}),
    Case(m.SummaryScore, "answer_questions", REPLIES, answers("yes", "no"), 0.5, ASKED, {"length_penalty": False}),
    Case(m.CitationRecall, "verify_claims", [verdicts(), verdicts([9]), "yes"], verdicts([1]), 1.0, inputs=SINGLE),
    Case(m.CitationPrecision, "verify_claims", [verdicts(), verdicts([])], verdicts([1]), 1.0, inputs=SINGLE),
    Case(m.AgentGoalAccuracy, "judge_goal", GOALS, goal("reached"), 1.0, inputs=TALK),
    Case(m.TopicAdherence, "match_topics", MATCHES, matches(1, 2), 1.0, TOPICS, inputs=TALK),
    Case(m.AnswerRelevancy, "write_questions", QUESTIONS, THREE, 1.0, {}, {"embedder": EMBEDDER}),
]


@pytest.mark.parametrize(("case", "bad"), [(case, bad) for case in CASES for bad in case.bad])
def test_an_answer_that_does_not_fit(case: Case, bad: Answer) -> None:
    """The judge is asked again once, and its second answer counts; if it is no better, the error says what it was."""
    repaired = ScriptedJudge(**case.others, **{case.task: [bad, case.good]})

    assert case.metric(judge=repaired, **case.parameters).score(**case.inputs) == pytest.approx(case.value)
    hopeless = ScriptedJudge(**case.others, **{case.task: bad})
    with pytest.raises(UnscoredError, match=rf"(?s)scripted, {case.task}: no usable answer.*it replied"):
        case.metric(judge=hopeless, **case.parameters).score(**case.inputs)
