"""The helpers of the judged metrics: texts in the order of speech, parameters passed on, failures with the evidence."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import (
    assert_answer_accurate,
    assert_answer_correct,
    assert_citations_precise,
    assert_citations_recalled,
    assert_context_precision,
    assert_context_relevance,
    assert_context_utilization,
    assert_criteria,
    assert_entities_recalled,
    assert_factually_correct,
    assert_goal_reached,
    assert_grounded,
    assert_noise_resisted,
    assert_not_hallucinated,
    assert_refusal_correct,
    assert_rubric,
    assert_topics_kept,
)
from tests.scripted_judge import (
    ScriptedEmbedder,
    ScriptedJudge,
    chosen,
    claims,
    contradicted,
    entities,
    goal,
    matches,
    rated,
    says,
    topics,
    useful,
    verdicts,
)

CONTEXTS = ["Moths fly at night.", "They like lamps."]
TALK = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "At nine."}]
SAMPLE = {"question": "Why?", "answer": "So."}


def failure(helper: Any, *texts: Any, **parameters: Any) -> list[str]:
    """Return the lines of the failure of a helper."""
    with pytest.raises(AssertionError) as caught:
        helper(*texts, **parameters)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("helper", [assert_context_precision, assert_context_utilization])
def test_the_order_of_the_contexts(helper: Any) -> None:
    """Question, contexts, then the answer they are of use for."""
    judge = ScriptedJudge(judge_usefulness=[useful(), useful(1)] * 2)
    assert helper("When?", CONTEXTS, "At night.", min=0.5, judge=judge) == 0.5
    assert "At night." in judge.prompt("judge_usefulness")
    name = helper.__name__.removeprefix("assert_")
    judge = ScriptedJudge(judge_usefulness=[useful(), useful(1)])
    assert failure(helper, "When?", CONTEXTS, "At night.", judge=judge) == [
        f"{name} 0.50 < 0.70: 1 of 2 contexts of no use",
        '  of no use: "Moths fly at night."',
        "    reason: So it is.",
    ]


def test_ratings_in_two_ways() -> None:
    """Each helper takes what its metric needs, and shows the lower rating."""
    judge = ScriptedJudge(
        rate_contexts=rated(2),
        review_contexts=rated(0, "No lamp."),
        rate_groundedness=rated(2),
        review_groundedness=rated(0, "No lamp."),
        rate_agreement=[rated(4), rated(0, "No lamp.")] * 2,
    )
    cases: list[tuple[Any, tuple[Any, ...], str]] = [
        (assert_context_relevance, ("Why?", CONTEXTS), "Why?"),
        (assert_grounded, ("So.", CONTEXTS), "So."),
        (assert_answer_accurate, ("Why?", "So.", "Because."), "So."),
    ]
    for helper, texts, shown in cases:
        assert helper(*texts, min=0.5, judge=judge) == 0.5
        lines = failure(helper, *texts, min=0.75, judge=judge)
        assert " 0.50 < 0.75: 1 of 2 ratings not the highest" in lines[0]
        assert lines[1].startswith(f'  not the highest: "{shown}"')
        assert lines[2] == "    reason: No lamp."


def test_contradictions_and_entities() -> None:
    """What is contradicted and what is not named stands in the failure."""
    judge = ScriptedJudge(
        find_contradictions=contradicted([1], []), list_entities=[entities("Lund", "Aru"), entities()]
    )
    assert failure(assert_not_hallucinated, "By day.", CONTEXTS, judge=judge)[:2] == [
        "hallucination 0.50 < 1.00: 1 of 2 contexts contradicted",
        '  contradicted: "Moths fly at night."',
    ]
    assert assert_not_hallucinated("By day.", CONTEXTS, min=0.5, judge=judge) == 0.5
    assert failure(assert_entities_recalled, CONTEXTS, "Lund, Aru.", judge=judge) == [
        "context_entity_recall 0.00 < 0.80: 2 of 2 names not in the contexts",
        '  not in the contexts: "Lund"',
        '  not in the contexts: "Aru"',
    ]
    assert assert_entities_recalled(CONTEXTS, "Well.", if_empty=1.0, judge=ScriptedJudge(list_entities=entities())) == 1


def test_claims_against_a_reference() -> None:
    """Response, then reference; the failure shows what is wrong or missing."""
    script: dict[str, Any] = {"list_claims": claims("Moths fly.", "They sing."), "verify_claims": verdicts([1], None)}
    embedder = ScriptedEmbedder({"So.": [1.0], "Because.": [1.0]})
    assert assert_factually_correct("So.", "Because.", question="Why?", min=0.5, judge=ScriptedJudge(**script)) == 0.5
    assert failure(assert_factually_correct, "So.", "Because.", mode="precision", judge=ScriptedJudge(**script)) == [
        "factual_correctness 0.50 < 0.70: 1 of 2 claims not borne out",
        '  not borne out: "They sing."',
        "    reason: Reason 2.",
    ]
    lines = failure(assert_answer_correct, "So.", "Because.", judge=ScriptedJudge(**script), embedder=embedder)
    assert lines[0] == "answer_correctness 0.62 < 0.70: 2 of 3 statements wrong or missing"
    judge = ScriptedJudge(**script)
    assert assert_answer_correct("So.", "Because.", weights=(1, 0), min=0.5, judge=judge) == 0.5


def test_noise_has_an_upper_bound() -> None:
    """Lower is better, so the helper takes ``max``."""

    def judge() -> ScriptedJudge:
        return ScriptedJudge(
            list_claims=claims("They sing."),
            verify_claims=lambda prompt: verdicts(None) if "Because." in prompt else verdicts([1]),
        )

    assert assert_noise_resisted("So.", CONTEXTS, "Because.", mode="irrelevant", judge=judge()) == 0.0
    lines = failure(assert_noise_resisted, "So.", CONTEXTS, "Because.", judge=judge())
    assert lines == [
        "noise_sensitivity 1.00 > 0.20: 1 of 1 claim wrong as contexts have it",
        '  wrong as contexts have it: "They sing."',
        "    reason: contexts 1 and 2 have it, the reference does not. Reason 1.",
    ]


def test_citations() -> None:
    """Response, then contexts, counted from 1."""
    judge = ScriptedJudge(verify_claims=verdicts(None))
    assert failure(assert_citations_recalled, "Moths fly [1].", CONTEXTS, judge=judge)[:2] == [
        "citation_recall 0.00 < 0.80: 1 of 1 sentence not supported by the contexts cited",
        '  not supported by the contexts cited: "Moths fly." (response[0:14])',
    ]
    assert failure(assert_citations_precise, "Moths fly [1].", CONTEXTS, judge=judge)[:2] == [
        "citation_precision 0.00 < 0.80: 1 of 1 citation of no use",
        '  of no use: "[1] Moths fly." (response[0:14])',
    ]
    assert assert_citations_precise("Moths fly.", CONTEXTS, if_empty=1.0, judge=judge).vacuous
    assert assert_citations_recalled("...", CONTEXTS, if_empty=1.0, judge=judge).vacuous


def test_a_refusal_where_there_is_an_answer() -> None:
    """Question, response, contexts."""
    judge = ScriptedJudge(judge_refusal=says("refuses"), select_sentences=chosen(1))
    assert failure(assert_refusal_correct, "When?", "I cannot say.", CONTEXTS, judge=judge) == [
        "refusal_correctness 0.00 < 0.50: 1 of 1 response wrong to refuse or to answer",
        '  wrong to refuse or to answer: "I cannot say." (response[0:13])',
        "    reason: Because.",
    ]
    assert assert_refusal_correct("When?", "Sorry.", [], judge=judge) == 1.0


def test_scales_of_ones_own() -> None:
    """A sample or its fields, then the scale."""
    judge = ScriptedJudge(rate_by_rubric=rated(1, "No please."), rate_by_criteria=rated(1, "No please."))
    assert failure(assert_rubric, SAMPLE, ["Rude.", "Polite."], name="manners", judge=judge)[0] == (
        "manners 0.00 < 0.50: 1 of 1 verdict failed"
    )
    assert assert_rubric(SAMPLE, {1: "Rude.", 2: "Polite."}, min=0.0, judge=judge) == 0.0
    assert failure(assert_criteria, SAMPLE, "How kind?", judge=judge)[0] == (
        "simple_criteria 0.20 < 0.50: 1 of 1 judgement low"
    )
    assert assert_criteria(SAMPLE, "How kind?", highest=1, judge=judge) == 1.0


def test_conversations() -> None:
    """The messages, then what they are held against."""
    judge = ScriptedJudge(judge_goal=goal("missed"), list_topics=topics(Votes=True), match_topics=matches(0))
    assert failure(assert_goal_reached, TALK, judge=judge) == [
        "agent_goal_accuracy 0.00 < 0.50: 1 of 1 goal missed",
        '  missed: "Book a seat."',
        "    reason: So it is.",
    ]
    assert failure(assert_goal_reached, TALK, reference="A seat.", judge=judge)[1] == '  missed: "A seat."'
    assert failure(assert_topics_kept, TALK, ["ferries"], judge=judge) == [
        "topic_adherence 0.00 < 0.80: 1 of 1 topic wrongly dealt with or declined",
        '  wrongly dealt with or declined: "Votes"',
        "    reason: dealt with, and not allowed",
    ]
    assert assert_topics_kept(TALK, ["ferries"], mode="recall", if_empty=1.0, judge=judge).vacuous


def test_votes_are_passed_on() -> None:
    """Three independent judgements, of which two decide."""
    judge = ScriptedJudge(judge_goal=[goal("reached"), goal("missed"), goal("reached")])
    assert assert_goal_reached(TALK, votes=3, judge=judge).samples == (1.0, 0.0, 1.0)
    judge = ScriptedJudge(rate_contexts=rated(2), review_contexts=rated(2))
    assert assert_context_relevance("Why?", CONTEXTS, votes=3, judge=judge) == 1.0
