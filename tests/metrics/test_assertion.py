"""The helpers take texts in the order of speech, pass parameters on, compare with a threshold, and explain failures."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from typing import Any

import pytest

import pytest_ragmetrics as rag
from pytest_ragmetrics import MetricResult, Sample, assert_metric, assert_quoted_spans_aligned
from pytest_ragmetrics.metrics import Metric
from tests.scripted_judge import (
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

SOURCE = "Open the valve slowly. The pump needs two minutes to fill."
TWO = 'It says "open the valve slowly" and "the pump needs nine minutes to fill".'


class Fixed(Metric):
    """A metric that reads its score off the response."""

    name = "fixed"

    def measure(self, sample: Sample) -> MetricResult:
        """Return the response as a number."""
        return MetricResult(float(sample.response or 0), metric=self.name)


def test_a_result_is_returned_and_what_falls_short_is_explained() -> None:
    """The error's first line has score, threshold and counts; the quotation found is not listed."""
    result = assert_quoted_spans_aligned(TWO, [SOURCE], min=0.5)
    assert (result.value, [verdict.ok for verdict in result.verdicts]) == (0.5, [True, False])
    with pytest.raises(AssertionError) as caught:
        assert_quoted_spans_aligned(TWO, [SOURCE])
    lines = str(caught.value).splitlines()
    assert lines[0] == "quoted_spans_alignment 0.50 < 0.90: 1 of 2 quoted spans not found"
    assert "nine minutes" in lines[1]
    assert "open the valve" not in str(caught.value)


@pytest.mark.parametrize(
    ("bounds", "holds"),
    [
        ({"min": 0.5}, True),
        ({"min": 0.51}, False),
        ({"max": 0.5}, True),
        ({"max": 0.49}, False),
        ({"min": 0.4, "max": 0.6}, True),
        ({"min": 0.6, "max": 0.7}, False),
    ],
)
def test_both_bounds_hold(bounds: dict[str, Any], holds: bool) -> None:
    """A score must be at least min and at most max, the bounds included."""
    with nullcontext() if holds else pytest.raises(AssertionError, match=r"^fixed 0\.50 [<>] "):
        assert assert_metric(Fixed(), Sample(response="0.5"), **bounds) == 0.5


@pytest.mark.parametrize(
    ("bounds", "error", "said"),
    [
        ({}, ValueError, "give min= or max="),
        ({"min": None}, ValueError, "give min= or max="),
        ({"min": "0.9"}, TypeError, "min must be a number, not '0.9'"),
        ({"max": True}, TypeError, "max must be a number, not True"),
        ({"min": float("nan")}, ValueError, "min must be a finite number, not nan"),
        ({"min": float("-inf")}, ValueError, "min must be a finite number, not -inf"),
        (
            {"min": 90},
            ValueError,
            "min=90 is outside of the scale of fixed, 0 to 1: write 0.9, or give your own metric",
        ),
        ({"min": 0.5, "max": 1.01}, ValueError, "max=1.01 is outside of the scale of fixed, 0 to 1: write a number on"),
        ({"max": -0.1}, ValueError, "max=-0.1 is outside of the scale of fixed, 0 to 1: write a number on it"),
        ({"min": 101}, ValueError, "min=101 is outside of the scale of fixed, 0 to 1: write a number on it"),
    ],
)
def test_wrong_bounds_are_refused_before_scoring(bounds: dict[str, Any], error: type[Exception], said: str) -> None:
    """A wrong threshold is an error that names it; nothing is scored, so nothing is paid."""
    with pytest.raises(error, match=said):
        assert_metric(Fixed(), Sample(response="not even a number"), **bounds)


# Assertions over a whole set or several metrics have other bounds.
OTHERS = {"assert_mean", "assert_pass_rate", "assert_no_regression", "assert_not_worse", "assert_sample"}
HELPERS = [name for name in dir(rag) if name.startswith("assert_") and name not in OTHERS]


@pytest.mark.parametrize("name", HELPERS)
def test_every_helper_has_the_same_shape(name: str) -> None:
    """Texts first, everything else by keyword."""
    parameters = inspect.signature(getattr(rag, name)).parameters
    positional = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert 1 <= len(positional) <= 3
    assert all(p.default is p.empty for p in positional)
    assert {"min", "max", "definition"} & parameters.keys()


LAMP = ["Moths fly at night. They like lamps."]
MOTHS = ["Moths fly at night.", "They like lamps."]
TALK = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "At nine."}]
SAMPLE = {"question": "Why?", "answer": "So."}
LISTED: dict[str, Entry] = {"list_claims": claims("Moths fly.", "They sing."), "verify_claims": verdicts([1], None)}
NOISE: dict[str, Entry] = {
    "list_claims": claims("They sing."),
    "verify_claims": lambda prompt: verdicts(None) if "Because." in prompt else verdicts([1], [1]),
}
SUMMARY: dict[str, Entry] = {
    "write_closed_questions": questions("Do moths fly?", "Do they like lamps?"),
    "answer_questions": answers("yes", "no"),
}
USELESS = useful([], [2])
EMBEDDER = ScriptedEmbedder({"Why?": [1.0, 0.0], "How?": [4.0, 3.0], "When?": [0.0, 1.0], "Where?": [4.0, 3.0]})
ALIKE = ScriptedEmbedder({"So.": [1.0], "Because.": [1.0]})


def no_lamp(first: str, second: str) -> dict[str, Entry]:
    """Return a script of two ratings, the higher one first."""
    return {first: rated(2), second: rated(0, "No lamp.")}


NO_CLAIM: dict[str, Entry] = {"verify_claims": verdicts(None)}
ONE_NAMED: Entry = lambda prompt: entities() if "lamps" in prompt else entities("Lund", "Aru")  # noqa: E731
REFUSED: dict[str, Entry] = {"judge_refusal": says("refuses"), "select_sentences": chosen(1)}
ANY_EVASIVE = {"strictness": 1, "noncommittal": "any"}
AGREEING = {"min": 0.6, "strictness": 3, "agreement": "jaccard"}
WHY, WHEN, SO = ("Why?", "So."), ("When?", MOTHS, "At night."), ("So.", "Because.")
# Calls that fail: the helper, its texts, what the judge says, and the parameters.
CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Entry], dict[str, Any]]] = [
    (rag.assert_faithful, ("They do.", LAMP), LISTED, {}),
    (rag.assert_answer_relevant, WHY, {"write_questions": written("How?", "When?", "Where?")}, {"embedder": EMBEDDER}),
    (rag.assert_answer_relevant, WHY, {"write_questions": written("How?", evasive=[1])}, ANY_EVASIVE),
    (rag.assert_summarizes, ("Moths fly.", LAMP), SUMMARY, {"length_penalty": False, "min": 0.6}),
    (rag.assert_context_relevant, ("When?", LAMP), {"select_sentences": chosen(1)}, AGREEING),
    (rag.assert_context_recalled, (LAMP, ["Moths fly.", "Moths sing."]), LISTED, {}),
    (rag.assert_relevant, WHY, {"rate_relevance": rated(1, "It evades.")}, {"min": 0.5}),
    (rag.assert_correct, SO, {"rate_correctness": rated(1)}, {"min": 0.5}),
    (rag.assert_contexts_precise, ("Why?", MOTHS), {"judge_contexts": relevant(True, False)}, {"min": 0.6}),  # noqa: FBT003 - two verdicts
    (rag.assert_context_precision, WHEN, {"judge_usefulness": USELESS}, {}),
    (rag.assert_context_utilization, WHEN, {"judge_usefulness": USELESS}, {}),
    (rag.assert_context_relevance, ("Why?", MOTHS), no_lamp("rate_contexts", "review_contexts"), {"min": 0.75}),
    (rag.assert_grounded, ("So.", MOTHS), no_lamp("rate_groundedness", "review_groundedness"), {"min": 0.75}),
    (rag.assert_answer_accurate, (*WHY, "Because."), {"rate_agreement": [rated(4), rated(0)]}, {"min": 0.75}),
    (rag.assert_not_hallucinated, ("By day.", MOTHS), {"find_contradictions": contradicted([1], [])}, {}),
    (rag.assert_entities_recalled, (MOTHS, "Lund, Aru."), {"list_entities": ONE_NAMED}, {}),
    (rag.assert_factually_correct, SO, LISTED, {"mode": "precision"}),
    (rag.assert_answer_correct, SO, LISTED, {"embedder": ALIKE}),
    (rag.assert_noise_resisted, ("So.", MOTHS, "Because."), NOISE, {}),
    (rag.assert_citations_recalled, ("Moths fly [1].", MOTHS), NO_CLAIM, {}),
    (rag.assert_citations_precise, ("Moths fly [1].", MOTHS), NO_CLAIM, {}),
    (rag.assert_refusal_correct, ("When?", "I cannot say.", MOTHS), REFUSED, {}),
    (rag.assert_rubric, (SAMPLE, ["Rude.", "Polite."]), {"rate_by_rubric": rated(1, "No please.")}, {}),
    (rag.assert_criteria, (SAMPLE, "How kind?"), {"rate_by_criteria": rated(1, "No please.")}, {}),
    (rag.assert_goal_reached, (TALK,), {"judge_goal": goal("missed")}, {}),
    (rag.assert_topics_kept, (TALK, ["ferries"]), {"list_topics": topics(Votes=True), "match_topics": matches(0)}, {}),
]
# The first line of the failure of each call: what is counted, and what is wrong with it.
FAILURES = """
faithfulness 0.50 < 0.80: 1 of 2 claims not supported
answer_relevancy 0.53 < 0.70: mean similarity of 3 generated questions; the least alike is "When?"
answer_relevancy 0.00 < 0.70: 1 of 1 generated question noncommittal
summary_score 0.50 < 0.60: 1 of 2 questions not answered by the summary
context_relevancy 0.50 < 0.60: 1 of 2 context sentences not needed
context_recall 0.50 < 0.80: 1 of 2 statements not in the contexts
relevance 0.25 < 0.50: 1 of 1 response hardly relevant
correctness 0.25 < 0.50: 1 of 1 response hardly correct
context_precision_proportion 0.50 < 0.60: 1 of 2 contexts not relevant
context_precision 0.50 < 0.70: 1 of 2 contexts of no use
context_utilization 0.50 < 0.70: 1 of 2 contexts of no use
context_relevance 0.50 < 0.75: 1 of 2 ratings not the highest
response_groundedness 0.50 < 0.75: 1 of 2 ratings not the highest
answer_accuracy 0.50 < 0.75: 1 of 2 ratings not the highest
hallucination 0.50 > 0.00: 1 of 2 contexts contradicted
context_entity_recall 0.00 < 0.80: 2 of 2 names not in the contexts
factual_correctness 0.50 < 0.70: 1 of 2 claims not borne out
answer_correctness 0.62 < 0.70: 2 of 3 statements wrong or missing
noise_sensitivity 1.00 > 0.20: 1 of 1 claim wrong as contexts have it
citation_recall 0.00 < 0.80: 1 of 1 sentence not supported by the contexts cited
citation_precision 0.00 < 0.80: 1 of 1 citation of no use
refusal_correctness 0.00 < 0.50: 1 of 1 response wrong to refuse or to answer
rubric 0.00 < 0.50: 1 of 1 step low
simple_criteria 0.20 < 0.50: 1 of 1 judgement low
agent_goal_accuracy 0.00 < 0.50: 1 of 1 goal missed
topic_adherence 0.00 < 0.80: 1 of 1 topic wrongly dealt with or declined
"""


@pytest.mark.parametrize(
    ("call", "failure"),
    list(zip(CALLS, FAILURES.strip().splitlines(), strict=True)),
    ids=[call[0].__name__ for call in CALLS],
)
def test_a_failure_of_a_judged_metric(call: Any, failure: str) -> None:
    """The helper words it; with a low bound it passes."""
    helper, texts, script, parameters = call
    with pytest.raises(AssertionError) as caught:
        helper(*texts, judge=ScriptedJudge(**script), **parameters)
    assert str(caught.value).splitlines()[0] == failure
    bound = {"max": 1.0} if " > " in failure else {"min": 0.0}
    result = helper(*texts, judge=ScriptedJudge(**script), **{**parameters, **bound})
    assert result.metric == failure.partition(" ")[0]


@pytest.mark.parametrize("call", CALLS, ids=[call[0].__name__ for call in CALLS])
def test_every_helper_refuses_a_bound_outside_of_the_scale(call: Any) -> None:
    """A percentage is an error before the judge is asked."""
    helper, texts, script, parameters = call
    judge = ScriptedJudge(**script)
    bound = "min" if "min" in inspect.signature(helper).parameters else "max"
    with pytest.raises(ValueError, match=rf"^{bound}=90 is outside of the scale of \w+, -?\d to \d: write 0\.9, or"):
        helper(*texts, judge=judge, **{**parameters, bound: 90})
    assert judge.requests == []


def test_parameters_of_judged_metrics_are_passed_on() -> None:
    """Units, weights, scales, and what a sample with nothing to judge is worth."""
    judge = ScriptedJudge(
        list_claims=claims(),
        verify_claims=verdicts([1]),
        rate_by_rubric=rated(1),
        rate_by_criteria=rated(1),
        list_entities=entities(),
        list_topics=topics(),
        **SUMMARY,
    )
    assert rag.assert_faithful("Moths fly.", LAMP[0], question="Do they?", unit="sentences", judge=judge) == 1.0
    assert rag.assert_faithful("I cannot say.", LAMP, if_empty=1.0, judge=judge).vacuous
    assert rag.assert_summarizes("Moths fly.", LAMP, coeff=0.0, judge=judge) == 0.5
    assert rag.assert_entities_recalled(MOTHS, "Well.", if_empty=1.0, judge=judge).vacuous
    assert rag.assert_citations_precise("Moths fly.", MOTHS, if_empty=1.0, judge=judge).vacuous
    assert rag.assert_citations_recalled("...", MOTHS, if_empty=1.0, judge=judge).vacuous
    assert rag.assert_topics_kept(TALK, ["ferries"], mode="recall", if_empty=1.0, judge=judge).vacuous
    assert rag.assert_rubric(SAMPLE, {1: "Rude.", 2: "Polite."}, name="manners", min=0, judge=judge).metric == "manners"
    assert rag.assert_criteria(SAMPLE, "How kind?", highest=1, judge=judge) == 1.0
    assert rag.assert_correct("So.", "So!", min=1.0, method="token_f1") == 1.0
    asked = ScriptedJudge(list_claims=claims("They sing."), verify_claims=verdicts(None))
    rag.assert_context_recalled(LAMP, "They sing.", question="Why?", unit="claims", min=0.0, judge=asked)
    assert "Why?" in asked.prompt("list_claims")
    correct = ScriptedJudge(**LISTED)
    assert rag.assert_answer_correct("So.", "Because.", weights=(1, 0), min=0.5, judge=correct) == 0.5
    assert rag.assert_noise_resisted("So.", MOTHS, "Because.", mode="irrelevant", judge=ScriptedJudge(**NOISE)) == 0.0
    reached = ScriptedJudge(judge_goal=goal("missed"))
    assert rag.assert_goal_reached(TALK, reference="A seat.", min=0, judge=reached).verdicts[0].text == "A seat."


def test_votes_are_passed_on() -> None:
    """Three independent judgements, of which two decide."""
    judge = ScriptedJudge(judge_goal=[goal("reached"), goal("missed"), goal("reached")])
    assert rag.assert_goal_reached(TALK, votes=3, judge=judge).samples == (1.0, 0.0, 1.0)
    judge = ScriptedJudge(rate_contexts=rated(2), review_contexts=rated(2))
    assert rag.assert_context_relevance("Why?", MOTHS, votes=3, judge=judge) == 1.0


@pytest.mark.parametrize(
    ("helper", "texts", "failure"),
    [
        (rag.assert_lexically_grounded, ("Moths fly.", ["Nothing."]), "lexical_grounding .* of 2 words in no context"),
        (rag.assert_numbers_aligned, ("It has 12 lamps.", "Nothing."), "numbers_aligned .* of 1 number in no context"),
        (rag.assert_names_aligned, ("It was Ada Novak.", "Nothing."), "names_aligned .* of 1 name in no context"),
        (rag.assert_lexically_recalled, (["Nothing."], "Zebras."), "lexical_context_recall .* of 1 word in no context"),
    ],
)
def test_helpers_without_a_judge(helper: Any, texts: tuple[Any, ...], failure: str) -> None:
    """Words, numbers and names of one text that the other lacks."""
    assert helper(*texts, min=0.0) == 0.0
    with pytest.raises(AssertionError, match=failure):
        helper(*texts, min=0.1)
