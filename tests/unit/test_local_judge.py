"""The judge by rule: every task of the package has a deterministic answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.local import _RULES, LocalJudge
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.metrics import Faithfulness
from pytest_ragmetrics.text.sentences import sentence_table
from tests.every_task import EVERY_TASK

HARBOUR = (
    "The harbour of Lindow was rebuilt in 1987. It can take 40 ships at once. Fishing is not allowed there.",
    "Bread in the valley is baked with rye. The mill has stood still since the flood.",
)


def ask(task: Task[Any], *, vote: int = 0) -> Any:
    answered = asyncio.run(LocalJudge().ask(task, vote=vote))
    assert answered.usage == Usage()
    return answered.answer


@pytest.mark.parametrize(
    ("claim", "contexts", "cited", "reason"),
    [
        ("Lindow's harbour was rebuilt in 1987.", HARBOUR, (0,), "100% of its words"),
        ("The harbour was rebuilt in 1988.", HARBOUR, (), "but not 1988"),
        ("It can take forty ships.", HARBOUR, (1,), "67%"),
        # Negations are not seen.
        ("Fishing is allowed there.", HARBOUR, (2,), "100%"),
        ("The airport of Lindow has two runways.", HARBOUR, (), "25%"),
        # A claim drawn from two sentences cites both.
        ("The rebuilt harbour of Lindow takes 40 ships.", HARBOUR, (0, 1), "100%"),
        ("Der Hafen wurde 1987 umgebaut.", ("Im Jahr 1987 wurde der alte Hafen umgebaut.",), (0,), "100%"),
        ("这座桥建于1921年。", ("这座石桥建于1921年，长三百米。",), (0,), "%"),
        ("这座桥建于1931年。", ("这座石桥建于1921年，长三百米。",), (), "but not"),
        ("بُني الجسر في عام ١٩٢١.", ("بني الجسر الحجري عام 1921.",), (0,), "%"),
        ("بُني الجسر في عام ١٩٣١.", ("بني الجسر الحجري عام 1921.",), (), "but not"),
        ("Ships.", (), (), "0% of its words"),
        ("???", HARBOUR, (), "0% of its words"),
    ],
)
def test_a_claim_is_supported_by_sentences(claim: str, contexts: Any, cited: tuple[int, ...], reason: str) -> None:
    (judgement,) = ask(tasks.VerifyClaims(claims=(claim,), contexts=contexts))
    assert judgement.ok is bool(cited)
    assert set(cited) <= set(judgement.sentences)
    assert reason in judgement.reason


CLAIMS = {
    "Big waves came. Big waves came.": ("Big waves came.",),
    "对不起，我不知道。": (),
    "The sea is blue. I cannot say how deep.": ("The sea", "is blue."),
    "In 1987 Lindow, with its forty-first ship, sank.": ("In 1987 Lindow", "with its forty-first ship", "sank."),
    "这座桥建于1921年，长三百米。": ("这座桥建", "于1921", "年，长三百米。"),
    "ห้องสมุดเปิดทุกวัน ยกเว้นวันอาทิตย์": ("ห้องสมุดเปิดทุกวัน ยกเว้นวันอาทิตย์",),
}


def test_claims_are_phrases() -> None:
    assert {text: ask(tasks.ListClaims(text=text)) for text in CLAIMS} == CLAIMS


@pytest.mark.parametrize("count", [1, 3, 7])
@pytest.mark.parametrize(
    "response", ["Moths circle lamps.", "Red. Blue. Moths circle lamps at night.", "...", "今天天气很好。"]
)
def test_as_many_different_questions_as_asked_for(response: str, count: int) -> None:
    written = ask(tasks.WriteQuestions(response=response, count=count))
    assert len({question.casefold() for question, _ in written}) == len(written) == count
    assert not any(noncommittal for _, noncommittal in written)


def test_a_summary_is_asked_about_the_commonest_words() -> None:
    contexts = ("The lighthouse keeper. A lighthouse burns oil.", "Every lighthouse needs a keeper.")
    questions = ask(tasks.WriteClosedQuestions(contexts=contexts))[:2]
    assert questions == ("Does the text mention lighthouse?", "Does the text mention keeper?")
    judgements = ask(tasks.AnswerQuestions(text="Lighthouses are tall.", questions=questions))
    assert [judgement.ok for judgement in judgements] == [True, False]


@pytest.mark.parametrize(
    ("question", "chosen", "relevant"),
    [
        ("When was the harbour of Lindow rebuilt?", (0,), [True, False]),
        ("Is the mill still running since the flood?", (4,), [False, True]),
        ("Who won the election?", (), [False, False]),
        ("???", (), [False, False]),
    ],
)
def test_sentences_with_words_of_the_question(question: str, chosen: tuple[int, ...], relevant: list[bool]) -> None:
    assert ask(tasks.SelectSentences(question=question, contexts=HARBOUR)) == chosen
    assert [found.ok for found in ask(tasks.JudgeContexts(question=question, contexts=HARBOUR))] == relevant


@pytest.mark.parametrize(
    ("answer", "context", "cited"),
    [
        ("In 1987.", HARBOUR[0], (0,)),
        ("Forty ships.", HARBOUR[0], (1,)),
        ("In 1987.", HARBOUR[1], ()),
        # The words of the question alone make no context useful.
        ("The harbour was rebuilt with rye.", "The harbour of Lindow was rebuilt.", ()),
        ("The harbour of Lindow.", "The harbour of Lindow.", (0,)),
        ("???", "Nothing.", ()),
    ],
)
def test_a_context_is_useful_if_it_has_words_of_the_answer(answer: str, context: str, cited: tuple[int, ...]) -> None:
    question = "When was the harbour of Lindow rebuilt?"
    task = tasks.JudgeUsefulness(question=question, answer=answer, contexts=("Wind blows. It rains.", context))
    before, judgement = ask(task)
    assert (before.ok, judgement.ok) == (False, bool(cited))
    # The sentences are those of all contexts, numbered through.
    assert {2 + index for index in cited} <= set(judgement.sentences)


@pytest.mark.parametrize(
    ("response", "found"),
    [
        ("Bread is baked with rye. It can take 50 ships at once.", [(True, (1,)), (False, ())]),
        *((response, [(False, ()), (False, ())]) for response in ("I cannot say.", "...", "Otters swim.")),
    ],
)
def test_a_contradiction_is_nearly_the_same_and_differs(response: str, found: list[tuple[bool, Any]]) -> None:
    judgements = ask(tasks.FindContradictions(response=response, contexts=HARBOUR))
    assert [(judgement.ok, judgement.sentences) for judgement in judgements] == found


def test_entities_are_names_and_dates() -> None:
    contexts = ("In May 1903 the ferry left Lund for Aru.", "Later Lund had two ferries.")
    assert ask(tasks.ListEntities(contexts=contexts)) == ("Lund", "Aru", "May 1903")
    assert ask(tasks.ListEntities(contexts=("Otters swim.", ""))) == ()


RATED = "The harbour was rebuilt in 1987."
WHALES = "Whales sang about otters."
SORRY = "I'm sorry, but I cannot answer that."
TOWER = "The tower is 40 metres high."
HIGH = "How high is the old tower?"
CONTEXTS = {"When was the harbour rebuilt?": 1.0, "When was the harbour sold by auction?": 0.5, "Who won?": 0.0}
#: By sentences, except those that only refuse.
GROUNDED = {RATED: 1.0, f"{RATED} {WHALES}": 0.5, WHALES: 0.0, "I do not know.": 0.0}


@pytest.mark.parametrize(
    ("task", "value"),
    [
        *((tasks.RateContexts(question=text, contexts=HARBOUR), value) for text, value in CONTEXTS.items()),
        *((tasks.ReviewContexts(question=text, contexts=HARBOUR), value) for text, value in CONTEXTS.items()),
        *((tasks.RateGroundedness(response=text, contexts=HARBOUR), value) for text, value in GROUNDED.items()),
        *((tasks.ReviewGroundedness(response=text, contexts=HARBOUR), value) for text, value in GROUNDED.items()),
        # A number that one text lacks keeps the rating low.
        (tasks.RateAgreement(question="When?", first=RATED, second="Rebuilt in 1987."), 1.0),
        (tasks.RateAgreement(question="When?", first=RATED, second="Rebuilt in 1988."), 0.5),
        (tasks.RateAgreement(question="When?", first="Whales.", second="Rebuilt in 1987."), 0.0),
        (tasks.RateCorrectness(response=TOWER, reference=TOWER), 1.0),
        (tasks.RateCorrectness(response="The tower is 50 metres high.", reference=TOWER), 0.25),
        (tasks.RateCorrectness(response="Bread is baked with rye.", reference=TOWER), 0.0),
        (tasks.RateRelevance(question=HIGH, response="The old tower is 40 metres high."), 1.0),
        (tasks.RateRelevance(question=HIGH, response="Bread is baked with rye."), 0.0),
        (tasks.RateRelevance(question="Can you answer that?", response=SORRY), 0.0),
    ],
)
def test_ratings_are_the_words_in_common(task: Task[Any], value: float) -> None:
    assert ask(task).value == value


def test_a_refusal_is_known_by_its_words() -> None:
    for response, refuses in (("I cannot tell.", True), ("It is deep.", False), ("I cannot tell. It is deep.", False)):
        assert ask(tasks.JudgeRefusal(question="How deep?", response=response)).ok is refuses
    assert all(flag for _, flag in ask(tasks.WriteQuestions(response=SORRY, count=2)))


def test_a_critique_searches_harm_or_repetition() -> None:
    for definition, failing, passing in (
        ("Is the response free of anything that could cause harm?", "Mix them to make poison.", "Make bread."),
        ("Could the response cause harm?", "Mix them to make bread.", "Mix them to make poison."),
        ("Does the response come to the point?", "Moths fly. Moths fly.", "Moths fly."),
    ):
        for response, ok in ((failing, False), (passing, True)):
            fields = (("user_input", "How do I attack this?"), ("response", response))
            assert ask(tasks.Critique(definition=definition, fields=fields)).ok is ok, response


def test_every_task_has_a_rule() -> None:
    kinds = [type(task) for task in EVERY_TASK if type(task).by_rule is Task.by_rule]
    without = "RateByRubric RateByCriteria JudgeGoal ListTopics MatchTopics WriteGoldenQuestion ListChosenClaims"
    without += " JudgeKept JudgeWishes JudgeTurns JudgeRole WriteFollowUp"
    assert {kind.__name__ for kind in kinds} - {kind.__name__ for kind in _RULES} == {*without.split()}
    with pytest.raises(JudgeError, match=r"local \(heuristic\) has no rule for sing"):
        ask(type("Sing", (Task,), {"prompt": "sing", "blocks": lambda _: (), "_parse": lambda _, answer: answer})())


TEXT = st.text(st.characters(exclude_categories=()), max_size=40)


@given(st.lists(TEXT, min_size=1, max_size=3), st.lists(TEXT, max_size=3), st.integers(1, 4))
def test_answers_are_what_a_model_would_have_to_answer(claims: list[str], contexts: list[str], count: int) -> None:
    verify = tasks.VerifyClaims(claims=tuple(claims), contexts=tuple(contexts))
    judgements = ask(verify)
    last = len(sentence_table(contexts))
    assert len(judgements) == len(claims)
    assert all(bool(judgement.sentences) is judgement.ok for judgement in judgements)
    assert all(0 <= index < last for judgement in judgements for index in judgement.sentences)
    assert ask(verify, vote=1) == judgements
    written = [question for question, _ in ask(tasks.WriteQuestions(response=claims[0], count=count))]
    assert len({" ".join(question.casefold().split()) for question in written}) == count
    assert 0.0 <= ask(tasks.RateCorrectness(response=claims[0], reference=claims[-1])).value <= 1.0
    assert all(0 <= index < last for index in ask(tasks.SelectSentences(question=claims[0], contexts=tuple(contexts))))
    assert len(set(ask(tasks.WriteClosedQuestions(contexts=tuple(contexts))))) <= 8


#: Questions about texts whose words have no spaces between them: context and answer.
ROWS = json.loads((Path(__file__).parents[1] / "data" / "southeast_asian.json").read_text("utf-8"))
ROWS["Chinese, Japanese"] = [
    {"context": "这座石桥建于1921年，长三百米，连接老城和火车站。", "answer": "石桥长三百米，连接火车站和老城。"},
    {"context": "図書館は土曜日まで開いていて、本は二週間借りられます。", "answer": "図書館の本は二週間借りられます。"},
]


@pytest.mark.parametrize("language", ["Thai", "Lao", "Khmer", "Burmese", "Chinese, Japanese"])
def test_answers_without_spaces_are_supported_by_their_own_subject(language: str) -> None:
    metric = Faithfulness(judge="local")
    for row in ROWS[language]:
        others = [other["context"] for other in ROWS[language] if other is not row]
        assert metric.score(response=row["answer"], retrieved_contexts=[row["context"], *others]) >= 0.5
        assert metric.score(response=row["answer"], retrieved_contexts=others) == 0.0
