"""What every judged metric does with a judge's answers: good ones, one that does not fit, and none at all.

An answer that does not fit is repaired once; then there is no score, and never 0.0 or 1.0 instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from pytest_ragmetrics import JudgeError, UnscoredError
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
SINGLE = {"response": "Ants dig [1].", "retrieved_contexts": ["Ants dig."]}
EMBEDDER = ScriptedEmbedder(dict.fromkeys(["Do moths fly?", "One?", "Two?", "Three?"], (1.0,)))


class Case(NamedTuple):
    """A metric, the task that is answered badly, how, a good answer, and the score and the requests it leads to."""

    metric: Callable[..., m.Metric]
    task: str
    bad: Answer
    good: Answer
    value: float
    #: How many requests there are, and how many of them wait for one another.
    asked: tuple[int, int]
    others: Mapping[str, Entry] = {}
    parameters: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] = SAMPLE


NO_CONTEXT = {**SAMPLE, "retrieved_contexts": ["---"]}
YES_NO, ONE = verdicts([1], None), verdicts([1])
THREE = written("One?", "Two?", "Three?")
LISTED = {"list_claims": claims("It flies.", "It swims.")}
ASKED = {"write_closed_questions": questions("One?", "Two?")}
TOPICS = {"list_topics": topics(a=True, b=True)}
SHARE = {"length_penalty": False}
STEPS = {"steps": ["A", "B", "C"]}
CASES = [
    Case(m.Faithfulness, "verify_claims", "All are supported.", YES_NO, 0.5, (2, 2), LISTED),
    Case(m.FactualCorrectness, "verify_claims", ONE, YES_NO, 0.5, (2, 2), LISTED, {"mode": "precision"}),
    Case(m.AnswerCorrectness, "verify_claims", ONE, YES_NO, 0.5, (4, 2), LISTED, {"weights": (1, 0)}),
    # Without a sentence in a context: there all claims are asked about, and here those of the response.
    Case(m.NoiseSensitivity, "verify_claims", verdicts([], [1]), YES_NO, 0.0, (3, 2), LISTED, inputs=NO_CONTEXT),
    Case(m.ContextRecall, "verify_claims", verdicts([1], [4]), YES_NO, 0.5, (1, 1)),
    Case(m.Hallucination, "find_contradictions", contradicted([3], []), contradicted([1], []), 0.5, (1, 1)),
    Case(m.ContextPrecision, "judge_usefulness", useful([1]), useful([1], []), 1.0, (1, 1)),
    Case(m.ContextUtilization, "judge_usefulness", useful([], [1]), useful([], [3]), 0.5, (1, 1)),
    Case(m.ContextRelevancy, "select_sentences", chosen(1, 1), chosen(1), 1 / 3, (1, 1)),
    Case(m.ContextEntityRecall, "list_entities", {"names": []}, entities("Lund"), 1.0, (2, 1)),
    Case(m.ContextPrecisionProportion, "judge_contexts", relevant(*[True]), relevant(*[True, False]), 0.5, (1, 1)),
    Case(m.Relevance, "rate_relevance", rated(5), rated(3), 0.75, (1, 1)),
    Case(m.Correctness, "rate_correctness", "2 out of 10", rated(3), 0.75, (1, 1)),
    Case(m.ContextRelevance, "rate_contexts", rated(3), rated(2), 0.5, (2, 1), {"review_contexts": rated(0)}),
    Case(m.ContextRelevance, "review_contexts", rated(3), rated(2), 0.5, (2, 1), {"rate_contexts": rated(0)}),
    Case(m.ResponseGroundedness, "rate_groundedness", "", rated(2), 0.5, (2, 1), {"review_groundedness": rated(0)}),
    Case(m.ResponseGroundedness, "review_groundedness", "", rated(2), 0.5, (2, 1), {"rate_groundedness": rated(0)}),
    Case(m.AnswerAccuracy, "rate_agreement", rated(3), rated(4), 1.0, (2, 1)),
    Case(m.Coherence, "critique", {"verdict": "yes"}, says("no"), 0.0, (1, 1)),
    Case(m.Rubric, "rate_by_rubric", rated(4), rated(2), 0.5, (1, 1), {}, STEPS),
    Case(m.SimpleCriteria, "rate_by_criteria", rated(6), rated(5), 1.0, (1, 1), {}, {"definition": "Kind?"}),
    Case(m.SummaryScore, "answer_questions", answers("yes"), answers("yes", "no"), 0.5, (2, 2), ASKED, SHARE),
    Case(m.CitationRecall, "verify_claims", verdicts([9]), ONE, 1.0, (1, 1), inputs=SINGLE),
    Case(m.CitationPrecision, "verify_claims", verdicts([]), ONE, 1.0, (1, 1), inputs=SINGLE),
    Case(m.AgentGoalAccuracy, "judge_goal", goal("reached", " "), goal("reached"), 1.0, (1, 1), inputs=TALK),
    Case(m.TopicAdherence, "match_topics", matches(1, 3), matches(1, 2), 1.0, (2, 2), TOPICS, inputs=TALK),
    Case(m.AnswerRelevancy, "write_questions", written("One?"), THREE, 1.0, (1, 1), {}, {"embedder": EMBEDDER}),
    Case(
        m.RefusalCorrectness,
        "judge_refusal",
        says("yes"),
        says("refuses"),
        0.0,
        (2, 1),
        {"select_sentences": chosen(1)},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.metric.name}-{case.task}")
def test_an_answer_counts_is_repaired_or_leaves_no_score(case: Case) -> None:
    """A good answer takes no more requests than needed, a bad one is asked for once more, and no answer is no score."""
    good, repaired, hopeless, failing = (
        ScriptedJudge(**case.others, **{case.task: entry})
        for entry in (case.good, [case.bad, case.good], case.bad, JudgeError("out of ink"))
    )
    for judge in (good, repaired):
        assert case.metric(judge=judge, **case.parameters).score(**case.inputs) == pytest.approx(case.value)
    assert (len(good.requests), good.depth) == case.asked
    assert len(repaired.requests) == len(good.requests) + 1
    with pytest.raises(UnscoredError, match=rf"(?s)scripted, {case.task}: no usable answer.*it replied"):
        case.metric(judge=hopeless, **case.parameters).score(**case.inputs)
    with pytest.raises(UnscoredError, match=r": out of ink$") as caught:
        case.metric(judge=failing, **case.parameters).score(**case.inputs)
    assert isinstance(caught.value.__cause__, JudgeError)
    assert caught.value.usage is not None
    assert caught.value.usage.calls == len([task for task in failing.tasks if task != case.task])
