"""The helpers take the texts in the order a person would say them, and pass their parameters on."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import pytest_ragmetrics
from pytest_ragmetrics import (
    assert_answer_relevant,
    assert_context_recalled,
    assert_context_relevant,
    assert_contexts_precise,
    assert_correct,
    assert_faithful,
    assert_lexically_grounded,
    assert_lexically_recalled,
    assert_names_aligned,
    assert_numbers_aligned,
    assert_relevant,
    assert_summarizes,
)
from tests.scripted_judge import (
    ScriptedEmbedder,
    ScriptedJudge,
    answers,
    chosen,
    claims,
    phrases,
    questions,
    rated,
    relevant,
    verdicts,
    written,
)

CONTEXTS = ["Moths fly at night. They like lamps."]
EMBEDDER = ScriptedEmbedder({"Why?": [1.0, 0.0], "How?": [4.0, 3.0], "When?": [0.0, 1.0], "Where?": [4.0, 3.0]})


class Document:
    """A passage as a framework hands it out."""

    page_content = CONTEXTS[0]


@pytest.mark.parametrize("contexts", [CONTEXTS, CONTEXTS[0], [Document()], Document()])
def test_faithful(contexts: Any) -> None:
    """The response and its contexts, in whatever form; the failure shows the claim that is not supported, and why."""
    judge = ScriptedJudge(list_claims=claims("Moths fly.", "Moths sing."), verify_claims=verdicts([1], None))
    assert assert_faithful("They do.", contexts, question="Do moths?", min=0.5, judge=judge) == 0.5
    assert "Do moths?" in judge.prompt("list_claims")
    with pytest.raises(AssertionError) as caught:
        assert_faithful("They do.", contexts, judge=judge)
    assert str(caught.value).splitlines() == [
        "faithfulness 0.50 < 0.80: 1 of 2 claims not supported",
        '  not supported: "Moths sing."',
        "    reason: Reason 2.",
    ]


def test_faithful_takes_the_parameters_of_the_metric() -> None:
    """Sentences instead of claims, and a score for a refusal."""
    judge = ScriptedJudge(list_claims=claims(), verify_claims=verdicts([1]))
    assert assert_faithful("Moths fly.", CONTEXTS, unit="sentences", judge=judge) == 1.0
    assert assert_faithful("I cannot say.", CONTEXTS, if_empty=1.0, judge=judge).vacuous


def test_answer_relevant() -> None:
    """Question, then response; the failure names the question that the response seems to answer."""
    judge = ScriptedJudge(write_questions=written("How?", "When?", "Where?"))
    result = assert_answer_relevant("Why?", "So.", min=0.5, judge=judge, embedder=EMBEDDER)
    assert result == pytest.approx(1.6 / 3)
    with pytest.raises(AssertionError) as caught:
        assert_answer_relevant("Why?", "So.", judge=judge, embedder=EMBEDDER)
    assert str(caught.value) == (
        'answer_relevancy 0.53 < 0.70: mean similarity of 3 generated questions; the least alike is "When?"'
    )
    evasive = ScriptedJudge(write_questions=written("How?", evasive=[1]))
    with pytest.raises(AssertionError, match=r"answer_relevancy 0\.00 < 0\.70: 1 of 1 generated question noncommittal"):
        assert_answer_relevant("Why?", "So.", strictness=1, noncommittal="any", judge=evasive)


def test_summarizes() -> None:
    """Summary, then what it sums up; the failure shows the question it leaves open."""
    judge = ScriptedJudge(
        list_key_phrases=phrases("moths"),
        write_closed_questions=questions("Do moths fly?", "Do they like lamps?"),
        answer_questions=answers("yes", "no"),
    )
    assert assert_summarizes("Moths fly.", CONTEXTS, judge=judge).value == pytest.approx(0.25 + 0.5 * 26 / 36)
    with pytest.raises(AssertionError) as caught:
        assert_summarizes("Moths fly.", CONTEXTS, length_penalty=False, min=0.6, judge=judge)
    assert str(caught.value).splitlines()[:2] == [
        "summary_score 0.50 < 0.60: 1 of 2 questions not answered by the summary",
        '  not answered by the summary: "Do they like lamps?"',
    ]
    assert assert_summarizes("Moths fly.", CONTEXTS, coeff=0.0, judge=judge) == 0.5


def test_context_relevant() -> None:
    """Question, then contexts; the threshold has no default that would suit every corpus."""
    judge = ScriptedJudge(select_sentences=chosen(1))
    assert assert_context_relevant("When?", CONTEXTS, min=0.5, judge=judge) == 0.5
    with pytest.raises(AssertionError) as caught:
        assert_context_relevant("When?", CONTEXTS, min=0.6, strictness=3, agreement="jaccard", judge=judge)
    assert str(caught.value).splitlines() == [
        "context_relevancy 0.50 < 0.60: 1 of 2 context sentences not needed",
        '  not needed: "They like lamps."',
    ]


def test_context_recalled() -> None:
    """Contexts, then the reference, which may be several; the failure shows what is not in the contexts."""
    judge = ScriptedJudge(list_claims=claims("Moths sing."), verify_claims=[verdicts([1], None), verdicts(None)])
    with pytest.raises(AssertionError) as caught:
        assert_context_recalled(CONTEXTS, ["Moths fly.", "Moths sing."], judge=judge)
    assert str(caught.value).splitlines()[:2] == [
        "context_recall 0.50 < 0.80: 1 of 2 statements not in the contexts",
        '  not in the contexts: "Moths sing."',
    ]
    assert assert_context_recalled(CONTEXTS, "They sing.", question="Why?", unit="claims", min=0.0, judge=judge) == 0.0
    assert "Why?" in judge.prompt("list_claims")


def test_relevant_correct_and_precise() -> None:
    """The ratings and the share of contexts."""
    judge = ScriptedJudge(
        rate_relevance=rated(1, "It evades."),
        rate_correctness=rated(3),
        judge_contexts=relevant(*[True, False]),
    )
    with pytest.raises(AssertionError) as caught:
        assert_relevant("Why?", "So.", min=0.5, judge=judge)
    assert str(caught.value).splitlines() == [
        "relevance 0.25 < 0.50: 1 of 1 response hardly relevant",
        '  hardly relevant: "So." (response[0:3])',
        "    reason: It evades.",
    ]
    assert assert_correct("So.", "Because.", min=0.75, judge=judge) == 0.75
    assert assert_correct("So.", "So!", min=1.0, method="token_f1") == 1.0
    with pytest.raises(
        AssertionError, match=r"context_precision_proportion 0\.50 < 0\.60: 1 of 2 contexts not relevant"
    ):
        assert_contexts_precise("Why?", ["One.", "Two."], min=0.6, judge=judge)


def test_helpers_without_a_judge() -> None:
    """Words, numbers and names of the response stand in the contexts."""
    assert assert_lexically_grounded("Moths fly.", CONTEXTS) == 1.0
    assert assert_lexically_recalled(CONTEXTS, ["Moths fly.", "Lamps."], min=0.9) == 1.0
    assert assert_numbers_aligned("It has 12 lamps.", "There are 12 lamps.") == 1.0
    assert assert_names_aligned("The painter was Ada Novak.", "A portrait by Ada Novak.") == 1.0
    for helper in (assert_lexically_grounded, assert_numbers_aligned, assert_names_aligned):
        with pytest.raises(AssertionError, match=r" 0\.00 < .*in no context"):
            helper("In London, Zoe Quill counted 777 zebras.", ["Nothing."])
    with pytest.raises(AssertionError, match=r"lexical_context_recall 0\.00 < 0\.10: 1 of 1 word in no context"):
        assert_lexically_recalled(["Nothing."], "Zebras.", min=0.1)


# What holds a whole set, or several metrics at once, has other bounds.
OTHERS = {"assert_mean", "assert_pass_rate", "assert_not_worse", "assert_sample"}
HELPERS = [name for name in dir(pytest_ragmetrics) if name.startswith("assert_") and name not in OTHERS]


@pytest.mark.parametrize("name", HELPERS)
def test_every_helper_has_the_same_shape(name: str) -> None:
    """Texts first, everything else by keyword, and every helper is in the package's list of names."""
    parameters = list(inspect.signature(getattr(pytest_ragmetrics, name)).parameters.values())
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert 1 <= len(positional) <= 3
    assert all(p.default is p.empty for p in positional)
    assert {"min", "max", "definition"} & {p.name for p in parameters}


@pytest.mark.parametrize("bound", ["0.8", True, None])
def test_a_bound_that_is_no_number_is_an_error_before_anybody_is_asked(bound: Any) -> None:
    """A slip in the threshold costs nothing."""
    judge = ScriptedJudge()
    with pytest.raises((TypeError, ValueError)):
        assert_faithful("They do.", CONTEXTS, min=bound, judge=judge)
    assert judge.requests == []
