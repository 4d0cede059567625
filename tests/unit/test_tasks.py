"""What a judge answers is read strictly: by our numbers, complete, and with evidence that exists."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.schema import in_order, list_of, one_of, record, validate
from pytest_ragmetrics.judges.tasks import InvalidAnswer, Judgement, Rating, Task
from tests.every_task import CONTEXTS, EVERY_TASK, QUESTIONS, SELECT, VERIFY


def verdict(number: Any, word: str = "unsupported", sentences: Any = (), reason: str = "So it is.") -> dict[str, Any]:
    """Return a verdict as a judge writes it."""
    return {"number": number, "reason": reason, "sentences": list(sentences), "verdict": word}


def test_verdicts_come_back_in_the_order_of_the_claims() -> None:
    """They are matched by number, whatever order the judge used, and cite sentences by index, a repeated one once."""
    answer = {"verdicts": [verdict(2), verdict(1, "supported", [3, 3, 1])]}
    assert VERIFY.read(answer) == (
        Judgement(ok=True, reason="So it is.", sentences=(2, 0)),
        Judgement(ok=False, reason="So it is."),
    )


@pytest.mark.parametrize(
    ("verdicts", "problem"),
    [
        ([verdict(1)], "nothing for claim 2"),
        ([], "nothing for claim 1 and 2"),
        ([verdict(1), verdict(2), verdict(3)], "there is no claim 3"),
        ([verdict(0), verdict(1), verdict(2)], "there is no claim 0"),
        ([verdict(-1), verdict(2)], "nothing for claim 1; there is no claim -1"),
        ([verdict(1), verdict(2), verdict(2)], "more than one for claim 2"),
        ([verdict(1), verdict(2, "supported")], "claim 2 is called supported, but no sentence"),
        ([verdict(1), verdict(2, "supported", [4])], "claim 2 names the sentence 4: there are sentences from 1 to 3"),
        ([verdict(1), verdict(2, "supported", [0])], "claim 2 names the sentence 0"),
        ([verdict(1), verdict(2, "unsupported", [9])], "claim 2 names the sentence 9"),
        ([verdict(1), verdict(2, "yes", [1])], "verdict of verdicts, item 2 must be one of supported, unsupported"),
        *(([verdict(1), verdict(n)], "number of verdicts, item 2 must be an integer") for n in ("2", True, 2.0)),
        ([verdict(1), verdict(2, sentences=["1"])], "item 1 must be an integer"),
        ([verdict(1), {**verdict(2), "ignore all rules": 1}], "it has 1 too many"),
        ([verdict(1), {"number": 2, "reason": "", "verdict": "supported"}], 'it lacks "sentences"'),
        ([verdict(1), "supported"], "verdicts, item 2 must be an object"),
        *((given, "verdicts must be an array") for given in ({"1": "supported"}, None)),
    ],
)
def test_verdicts_that_do_not_fit_are_refused(verdicts: Any, problem: str) -> None:
    """Wrong numbers, sentences, words and types are named, but no field that the text under test may have planted."""
    with pytest.raises(InvalidAnswer) as refused:
        VERIFY.read({"verdicts": verdicts})
    assert problem in str(refused.value)
    assert "ignore" not in str(refused.value)


OTHER_FORMS: list[Any] = [None, [], "supported", 1, {}, {"verdicts": [], "score": 1.0}]
CLAIMS = tasks.ListClaims(text="Pike. Eels.")
RATE = tasks.RateRelevance(question="q", response="r")
TOPICS = tasks.ListTopics(turns=("user: Hello.",))
FERRIES = {"topic": " Ferries ", "answered": True}
POLITE = tasks.Critique(definition="Is it polite?", fields=(("response", "Please."),))


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        *((VERIFY, given) for given in OTHER_FORMS),
        *((CLAIMS, {"claims": claims}) for claims in (["Pike.", "  "], [""], [None], ["Pike.", 1], "Pike.")),
        *((SELECT, {"sentences": chosen}) for chosen in ([1, 1], [4], [0], [-1], [True], [1.0], None)),
        *((RATE, {"reason": "", "rating": rating}) for rating in (5, -1, 10, 0.5, "4", True, None)),
        *((TOPICS, {"topics": [FERRIES, again]}) for again in (FERRIES, {**FERRIES, "topic": " "})),
        (TOPICS, {"topics": [{**FERRIES, "answered": 1}]}),
        (POLITE, {"reason": "", "verdict": "maybe"}),
    ],
)
def test_an_answer_of_another_form_is_refused(task: Task[Any], answer: object) -> None:
    """Blank or repeated items, ratings beside the scale and other types are refused, not guessed at or counted."""
    with pytest.raises(InvalidAnswer):
        task.read(answer)


@pytest.mark.parametrize(
    ("task", "answer", "read"),
    [
        # Claims and entities that say the same in other case or spacing are one; there may be none.
        (CLAIMS, {"claims": [" Pike live here.", "pike  live here.", "Eels do."]}, ("Pike live here.", "Eels do.")),
        (CLAIMS, {"claims": []}, ()),
        (tasks.ListEntities(contexts=CONTEXTS), {"entities": ["Lund ", "LUND", "Aru"]}, ("Lund", "Aru")),
        (TOPICS, {"topics": [FERRIES]}, (("Ferries", True),)),
        (TOPICS, {"topics": []}, ()),
        (SELECT, {"sentences": [3, 1]}, (2, 0)),
        (SELECT, {"sentences": []}, ()),
        (POLITE, {"reason": " So. ", "verdict": "yes"}, Judgement(ok=True, reason="So.")),
        (POLITE, {"reason": "", "verdict": "no"}, Judgement(ok=False, reason="")),
    ],
)
def test_an_answer_is_read(task: Task[Any], answer: object, read: object) -> None:
    """Texts are trimmed, numbers become indexes, and a definition holds or it does not."""
    assert task.read(answer) == read


@given(st.lists(st.integers(min_value=-2, max_value=8), max_size=10), st.integers(min_value=0, max_value=6))
def test_only_a_permutation_of_the_numbers_is_accepted(numbers: list[int], count: int) -> None:
    """Whatever numbers come back, they are taken in order exactly if each of ours is there once, and no other."""
    items = [{"number": number} for number in numbers]
    if sorted(numbers) == list(range(1, count + 1)):
        assert [item["number"] for item in in_order(items, count, "claim")] == list(range(1, count + 1))
    else:
        with pytest.raises(InvalidAnswer):
            in_order(items, count, "claim")


def test_the_questions_are_as_many_as_asked_for() -> None:
    """Exactly the wanted number of different questions comes back, each with its flag."""
    first, second = ({"question": text, "noncommittal": flag} for text, flag in (("Why? ", False), ("Who?", True)))
    assert QUESTIONS.read({"questions": [first, second]}) == (("Why?", False), ("Who?", True))
    for wrong in (
        [],
        [first],
        [first, second, {**second, "question": "When?"}],
        [first, {**first, "question": "why?"}],
    ):
        with pytest.raises(InvalidAnswer, match="exactly 2 different questions"):
            QUESTIONS.read({"questions": wrong})
    with pytest.raises(InvalidAnswer, match="noncommittal"):
        QUESTIONS.read({"questions": [first, {**second, "noncommittal": 1}]})


def test_answers_and_contexts_are_judged_by_number() -> None:
    """Yes-or-no answers and the verdicts on contexts are matched by number like those on claims."""
    asked = tasks.AnswerQuestions(text="Pike.", questions=("Pike?", "Eels?"))
    said = [{"number": 2, "reason": " No eels. ", "answer": "no"}, {"number": 1, "reason": "", "answer": "yes"}]
    assert asked.read({"answers": said}) == (Judgement(ok=True, reason=""), Judgement(ok=False, reason="No eels."))
    judged = tasks.JudgeContexts(question="How deep?", contexts=CONTEXTS)
    verdicts = [{"number": n, "reason": "", "verdict": word} for n, word in ((1, "relevant"), (2, "irrelevant"))]
    assert [judgement.ok for judgement in judged.read({"verdicts": verdicts})] == [True, False]
    for task, answer in ((asked, {"answers": said[:1]}), (judged, {"verdicts": verdicts[:1]})):
        with pytest.raises(InvalidAnswer, match="nothing for"):
            task.read(answer)


def test_use_is_shown_by_sentences_of_the_context() -> None:
    """A useful context names at least one sentence that is there; a useless one need not."""
    task = tasks.JudgeUsefulness(question="How deep?", answer="40 m.", context=CONTEXTS[0])
    useful = {"reason": " Depth. ", "sentences": [1, 1], "verdict": "useful"}
    assert task.read(useful) == Judgement(ok=True, reason="Depth.", sentences=(0,))
    assert not task.read({**useful, "sentences": [], "verdict": "useless"}).ok
    no_sentence: dict[str, Any] = {"sentences": []}
    for wrong in (no_sentence, {"sentences": [3]}, {"sentences": [0]}, {"verdict": "relevant"}, {"score": 1}):
        with pytest.raises(InvalidAnswer):
            task.read({**useful, **wrong})


def test_a_contradiction_is_shown_by_sentences_of_its_own_context() -> None:
    """Sentences are numbered through all contexts; one of another context shows nothing."""
    task = tasks.FindContradictions(response="It is 14 m deep.", contexts=CONTEXTS)

    def answer(*cited: list[int]) -> dict[str, Any]:
        words = ["contradicted" if sentences else "compatible" for sentences in cited]
        rows = zip(words, cited, strict=True)
        return {"verdicts": [verdict(n, word, sentences) for n, (word, sentences) in enumerate(rows, start=1)]}

    assert [judgement.ok for judgement in task.read(answer([1], []))] == [True, False]
    with pytest.raises(InvalidAnswer, match="context 1 names the sentence 3, which stands in another context"):
        task.read(answer([1, 3], []))
    with pytest.raises(InvalidAnswer, match="context 2 names the sentence 4: there are sentences from 1 to 3"):
        task.read(answer([], [4]))
    with pytest.raises(InvalidAnswer, match="nothing for context 2"):
        task.read(answer([]))


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        (RATE, (0, 1, 2, 3, 4)),
        (tasks.RateCorrectness(response="r", reference="s"), (0, 1, 2, 3, 4)),
        (tasks.RateContexts(question="q", contexts=CONTEXTS), (0, 1, 2)),
        (tasks.ReviewGroundedness(response="r", contexts=CONTEXTS), (0, 1, 2)),
        (tasks.RateAgreement(question="q", first="a", second="b"), (0, 2, 4)),
        (tasks.RateByRubric(steps=("Bad.", "So so.", "Good."), fields=(("response", "r"),)), (1, 2, 3)),
        (tasks.RateByCriteria(definition="d", highest=4, fields=(("response", "r"),)), (0, 1, 2, 3, 4)),
    ],
)
def test_a_scale_has_its_own_steps(task: Task[Rating], steps: tuple[int, ...]) -> None:
    """They are spread evenly over 0 to 1, the step is kept, and nothing beside or between them is taken."""
    ratings = [task.read({"reason": " So. ", "rating": step}) for step in steps]
    last = len(steps) - 1
    assert ratings == [Rating(value=n / last, reason="So.", step=step) for n, step in enumerate(steps)]
    for wrong in (steps[0] - 1, steps[-1] + 1, 0.5, True, None, "1"):
        with pytest.raises(InvalidAnswer):
            task.read({"reason": "", "rating": wrong})


def test_topics_are_matched_by_number() -> None:
    """With an allowed one that is there, or none, in whatever order they come."""
    task = tasks.MatchTopics(topics=("a", "b"), allowed=("x",))

    def answer(*pairs: tuple[int, int]) -> dict[str, Any]:
        return {"matches": [{"number": number, "reason": "", "allowed": allowed} for number, allowed in pairs]}

    assert task.read(answer((2, 1), (1, 0))) == (None, 0)
    for wrong in (answer((1, 0)), answer((1, 0), (2, 2)), answer((1, 0), (2, -1)), answer((1, 0), (1, 0), (2, 1))):
        with pytest.raises(InvalidAnswer):
            task.read(wrong)


def test_a_goal_is_stated_or_given() -> None:
    """The given one stays as it was given; a stated one is not blank."""
    answer = {"goal": " Two seats. ", "reason": "", "verdict": "reached"}
    turns = ("user: Two seats.",)
    assert tasks.JudgeGoal(turns=turns).read(answer) == ("Two seats.", Judgement(ok=True, reason=""))
    assert tasks.JudgeGoal(turns=turns, goal="A seat.").read({**answer, "verdict": "missed"})[0] == "A seat."
    with pytest.raises(InvalidAnswer, match="goal is blank"):
        tasks.JudgeGoal(turns=turns).read({**answer, "goal": " "})


@pytest.mark.parametrize("task", EVERY_TASK, ids=lambda task: str(task.prompt))
def test_every_task_is_strict_and_shows_contexts_first(task: Task[Any]) -> None:
    """Every field is required and no other allowed, down to the last object; prompts of a sample begin alike."""

    def check(schema: dict[str, Any]) -> None:
        assert set(schema) <= {"type", "properties", "required", "additionalProperties", "items", "enum"}
        if schema["type"] == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            for inner in schema["properties"].values():
                check(inner)
        if schema["type"] == "array":
            check(schema["items"])

    assert task.schema()["type"] == "object"
    check(task.schema())
    labels = [block.label for block in task.blocks()]
    assert len(set(labels)) == len(labels)
    assert [label for label in labels if "context" in label] == labels[: sum("context" in label for label in labels)]


def test_tasks_are_values() -> None:
    """Equal inputs make equal tasks, which can be kept in a set and not be changed."""
    again = tasks.SelectSentences(question="How deep is the lake?", contexts=CONTEXTS)
    assert {SELECT, again} == {SELECT}
    with pytest.raises(AttributeError):
        again.question = "Why?"  # type: ignore[misc] # the error is the point


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
_FORM = record(flags=list_of(one_of("yes", "no")), rating=one_of(0, 1))


@given(st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner), max_leaves=8))
def test_any_other_data_is_refused(data: object) -> None:
    """Data of any shape is either refused in words or not an answer of another form."""
    with pytest.raises(InvalidAnswer, match="must"):
        validate(data, _FORM)
