"""The judge by rule: every task of the package has a deterministic answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.local import _RULES, LocalJudge
from pytest_ragmetrics.judges.tasks import (
    AnswerQuestions,
    Block,
    Critique,
    FindContradictions,
    JudgeContexts,
    JudgeRefusal,
    JudgeUsefulness,
    ListClaims,
    ListEntities,
    ListKeyPhrases,
    RateAgreement,
    RateContexts,
    RateCorrectness,
    RateGroundedness,
    RateRelevance,
    ReviewContexts,
    ReviewGroundedness,
    SelectSentences,
    Task,
    VerifyClaims,
    WriteClosedQuestions,
    WriteQuestions,
)
from pytest_ragmetrics.result import Usage
from pytest_ragmetrics.text.sentences import sentence_table

HARBOUR = (
    "The harbour of Lindow was rebuilt in 1987. It can take 40 ships at once. Fishing is not allowed there.",
    "Bread in the valley is baked with rye. The mill has stood still since the flood.",
)


def ask(task: Task[Any], *, vote: int = 0) -> Any:
    """Return the local judge's answer."""
    answered = asyncio.run(LocalJudge().ask(task, vote=vote))
    assert answered.usage == Usage()
    return answered.answer


@pytest.mark.parametrize(
    ("claim", "contexts", "cited"),
    [
        ("Lindow's harbour was rebuilt in 1987.", HARBOUR, (0,)),
        ("The harbour was rebuilt in 1988.", HARBOUR, ()),
        ("It can take forty ships.", HARBOUR, (1,)),
        ("Fishing is allowed there.", HARBOUR, ()),
        ("The airport of Lindow has two runways.", HARBOUR, ()),
        ("Der Hafen wurde 1987 umgebaut.", ("Im Jahr 1987 wurde der alte Hafen umgebaut.",), (0,)),
        ("Der Hafen wurde nicht umgebaut.", ("Im Jahr 1987 wurde der alte Hafen umgebaut.",), ()),
        ("这座桥建于1921年。", ("这座石桥建于1921年，长三百米。",), (0,)),
        ("这座桥建于1931年。", ("这座石桥建于1921年，长三百米。",), ()),
        ("بُني الجسر في عام ١٩٢١.", ("بني الجسر الحجري عام 1921.",), (0,)),
        ("بُني الجسر في عام ١٩٣١.", ("بني الجسر الحجري عام 1921.",), ()),
        ("Ships.", (), ()),
        ("???", HARBOUR, ()),
    ],
)
def test_a_claim_is_supported_by_the_sentences_that_share_its_words(
    claim: str, contexts: tuple[str, ...], cited: tuple[int, ...]
) -> None:
    """Shared words support a claim; another number or a negation on one side speaks against it."""
    (judgement,) = ask(VerifyClaims(claims=(claim,), contexts=contexts))
    assert judgement.ok is bool(cited)
    assert set(cited) <= set(judgement.sentences)
    assert judgement.reason


def test_two_sentences_may_support_a_claim_together() -> None:
    """A claim drawn from two sentences cites both of them."""
    (judgement,) = ask(VerifyClaims(claims=("The rebuilt harbour of Lindow takes 40 ships.",), contexts=HARBOUR))
    assert judgement.ok
    assert judgement.sentences == (0, 1)


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("It is big. It is blue.", ("It is big.", "It is blue.")),
        ("The sea is big. The sea is blue. The sea is big.", ("The sea is big.", "The sea is blue.")),
        ("I do not know.", ()),
        ("The contexts hold no information about it.", ()),
        ("对不起，我不知道。", ()),
        ("The sea is blue. I cannot say how deep.", ("The sea is blue.",)),
    ],
)
def test_claims_are_sentences(text: str, claims: tuple[str, ...]) -> None:
    """Each different sentence is a claim, but a refusal is none."""
    assert ask(ListClaims(text=text)) == claims


@pytest.mark.parametrize("count", [1, 3, 7])
@pytest.mark.parametrize(
    "response", ["Moths circle lamps.", "Red. Blue. Moths circle lamps at night.", "...", "今天天气很好。"]
)
def test_as_many_different_questions_as_asked_for(response: str, count: int) -> None:
    """Whatever the response, the questions are as many as wanted and all different."""
    task = WriteQuestions(response=response, count=count)
    written = ask(task)
    assert len({question.casefold() for question, _ in written}) == len(written) == count
    assert not any(noncommittal for _, noncommittal in written)


def test_a_summary_is_asked_about_the_commonest_words() -> None:
    """Phrases are the words said most; a text answers the questions about those it has."""
    contexts = ("The lighthouse keeper. A lighthouse burns oil.", "Every lighthouse needs a keeper.")
    phrases = ask(ListKeyPhrases(contexts=contexts))
    assert phrases[:2] == ("lighthouse", "keeper")
    questions = ask(WriteClosedQuestions(contexts=contexts, phrases=phrases[:2]))
    assert len(questions) == 2
    judgements = ask(AnswerQuestions(text="Lighthouses are tall.", questions=questions))
    assert [judgement.ok for judgement in judgements] == [True, False]


@pytest.mark.parametrize(
    ("question", "chosen"),
    [
        ("When was the harbour of Lindow rebuilt?", (0,)),
        ("Is the mill still running since the flood?", (4,)),
        ("Who won the election?", ()),
        ("???", ()),
    ],
)
def test_the_sentences_with_the_words_of_the_question_are_chosen(question: str, chosen: tuple[int, ...]) -> None:
    """Sentences that share enough of the question's words are needed; none means insufficient information."""
    assert ask(SelectSentences(question=question, contexts=HARBOUR)) == chosen


def test_contexts_are_relevant_when_they_share_the_words_of_the_question() -> None:
    """One judgement a context, in order."""
    judgements = ask(JudgeContexts(question="How many ships can the harbour take?", contexts=HARBOUR))
    assert [judgement.ok for judgement in judgements] == [True, False]


@pytest.mark.parametrize(
    ("answer", "context", "cited"),
    [
        ("In 1987.", HARBOUR[0], (0,)),
        ("Forty ships.", HARBOUR[0], (1,)),
        ("In 1987.", HARBOUR[1], ()),
        # The words of the question alone make no context useful.
        ("Rye.", "The harbour of Lindow was rebuilt.", ()),
        ("The harbour of Lindow.", "The harbour of Lindow.", (0,)),
        ("???", "Nothing.", ()),
    ],
)
def test_a_context_is_of_use_when_it_has_the_words_of_the_answer(
    answer: str, context: str, cited: tuple[int, ...]
) -> None:
    """Those that the answer adds to the question, if it adds any."""
    task = JudgeUsefulness(question="When was the harbour of Lindow rebuilt?", answer=answer, context=context)
    judgement = ask(task)
    assert judgement.ok is bool(cited)
    assert set(cited) <= set(judgement.sentences)


def test_a_contradiction_is_nearly_the_same_and_differs() -> None:
    """Another number or a negation; the sentence is counted through all contexts."""
    judgements = ask(
        FindContradictions(response="Bread is baked with rye. It can take 50 ships at once.", contexts=HARBOUR)
    )
    assert [(judgement.ok, judgement.sentences) for judgement in judgements] == [(True, (1,)), (False, ())]
    (bread,) = ask(FindContradictions(response="The mill has not stood still since the flood.", contexts=HARBOUR[1:]))
    assert (bread.ok, bread.sentences) == (True, (1,))
    for response in ("I cannot say.", "...", "Otters swim."):
        assert not any(judgement.ok for judgement in ask(FindContradictions(response=response, contexts=HARBOUR)))


def test_entities_are_names_and_dates() -> None:
    """Each once, as it stands there; a number of things is an amount, a plain small one is nothing."""
    named = ask(ListEntities(contexts=("In May 1903 the ferry left Lund for Aru.", "Later Lund had two ferries.")))
    assert {"Lund", "Aru", "May 1903"} <= set(named)
    assert len(named) == len(set(named))
    assert ask(ListEntities(contexts=("Otters swim.", ""))) == ()


RATED = "The harbour was rebuilt in 1987."
TOWER = "The tower is 40 metres high."
HIGH = "How high is the old tower?"


@pytest.mark.parametrize(
    ("task", "value"),
    [
        *(
            (kind(question=question, contexts=HARBOUR), value)
            for kind in (RateContexts, ReviewContexts)
            for question, value in (
                ("When was the harbour rebuilt?", 1.0),
                ("When was the harbour sold by auction?", 0.5),
                ("Who won?", 0.0),
            )
        ),
        # By sentences, except those that only refuse.
        *(
            (kind(response=response, contexts=HARBOUR), value)
            for kind in (RateGroundedness, ReviewGroundedness)
            for response, value in (
                (RATED, 1.0),
                (f"{RATED} Whales sang about otters.", 0.5),
                ("Whales sang about otters.", 0.0),
                ("I do not know.", 0.0),
            )
        ),
        # A number that one text lacks keeps the rating low.
        (RateAgreement(question="When?", first="It was rebuilt in 1987.", second="Rebuilt in 1987."), 1.0),
        (RateAgreement(question="When?", first="It was rebuilt in 1987.", second="Rebuilt in 1988."), 0.5),
        (RateAgreement(question="When?", first="Whales.", second="Rebuilt in 1987."), 0.0),
        (RateCorrectness(response=TOWER, reference=TOWER), 1.0),
        (RateCorrectness(response="The tower is 50 metres high.", reference=TOWER), 0.25),
        (RateCorrectness(response="Bread is baked with rye.", reference=TOWER), 0.0),
        (RateRelevance(question=HIGH, response="The old tower is 40 metres high."), 1.0),
        (RateRelevance(question=HIGH, response="Bread is baked with rye."), 0.0),
        (RateRelevance(question="Can you answer that?", response="I'm sorry, but I cannot answer that."), 0.0),
    ],
)
def test_ratings_are_the_words_in_common(task: Task[Any], value: float) -> None:
    """A rating is a step of its scale; both wordings of a task have the same rule."""
    assert ask(task).value == value


def test_a_refusal_is_known_by_its_words() -> None:
    """A response that says something besides is an answer; questions to a refusal are flagged."""
    for response, refuses in (("I cannot tell.", True), ("It is deep.", False), ("I cannot tell. It is deep.", False)):
        assert ask(JudgeRefusal(question="How deep?", response=response)).ok is refuses
    assert all(flag for _, flag in ask(WriteQuestions(response="I'm sorry, but I cannot answer that.", count=2)))


@pytest.mark.parametrize(
    ("definition", "response", "ok"),
    [
        ("Could the response cause harm?", "Mix them to make poison.", True),
        ("Could the response cause harm?", "Mix them to make bread.", False),
        ("Is the response free of anything that could cause harm?", "Mix them to make poison.", False),
        ("Is the response free of anything that could cause harm?", "Mix them to make bread.", True),
        ("Does the response come to the point?", "Moths fly. Moths fly.", False),
        ("Does the response come to the point?", "Moths fly.", True),
    ],
)
def test_a_critique_looks_for_harm_or_repetition(definition: str, response: str, ok: bool) -> None:  # noqa: FBT001 - a column of the table
    """A definition that speaks of harm is met by words of harm; any other by not repeating oneself."""
    fields = (("user_input", "How do I attack this?"), ("response", response))
    assert ask(Critique(definition=definition, fields=fields)).ok is ok


def test_every_task_has_a_rule() -> None:
    """No task of the package is left without an answer, apart from those where words in common mean nothing."""
    public = [kind for kind in vars(tasks).values() if isinstance(kind, type)]
    known = {kind for kind in public if issubclass(kind, Task)} - {Task}
    assert known
    assert known - set(_RULES) == {
        tasks.RateByRubric,
        tasks.RateByCriteria,
        tasks.JudgeGoal,
        tasks.ListTopics,
        tasks.MatchTopics,
        tasks.WriteGoldenQuestion,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Sing(Task[str]):
    """A task nobody made a rule for."""

    prompt: ClassVar[str] = "sing"

    def blocks(self) -> tuple[Block, ...]:
        """Show nothing."""
        return ()

    def _parse(self, answer: Any) -> str:
        return str(answer)


def test_a_task_without_a_rule_is_an_error() -> None:
    """A task of somebody else is refused by name instead of being answered anyhow."""
    with pytest.raises(JudgeError, match=r"local \(heuristic\) has no rule for sing"):
        ask(Sing())


TEXT = st.text(max_size=40)


@given(st.lists(TEXT, min_size=1, max_size=3), st.lists(TEXT, max_size=3), st.integers(1, 4))
def test_answers_are_what_a_model_would_have_to_answer(claims: list[str], contexts: list[str], count: int) -> None:
    """Any text gets an answer of the right length and range, and the same one whatever the vote."""
    verify = VerifyClaims(claims=tuple(claims), contexts=tuple(contexts))
    judgements = ask(verify)
    last = len(sentence_table(contexts))
    assert len(judgements) == len(claims)
    assert all(bool(judgement.sentences) is judgement.ok for judgement in judgements)
    assert all(0 <= index < last for judgement in judgements for index in judgement.sentences)
    assert ask(verify, vote=1) == judgements
    written = [question for question, _ in ask(WriteQuestions(response=claims[0], count=count))]
    assert len({" ".join(question.casefold().split()) for question in written}) == count
    assert 0.0 <= ask(RateCorrectness(response=claims[0], reference=claims[-1])).value <= 1.0
    assert all(0 <= index < last for index in ask(SelectSentences(question=claims[0], contexts=tuple(contexts))))
    assert len(set(ask(ListKeyPhrases(contexts=tuple(contexts))))) <= 8
