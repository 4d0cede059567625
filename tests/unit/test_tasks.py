"""What a judge answers is found in its reply and read strictly: by our numbers, complete, with evidence that exists."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.judges import schema, tasks
from pytest_ragmetrics.judges.schema import TEXT, InvalidAnswer, list_of, one_of, record
from pytest_ragmetrics.judges.tasks import Judgement, Rating, Task
from tests.every_task import CONTEXTS, EVERY_TASK, QUESTIONS, SELECT, VERIFY
from tests.scripted_judge import contradicted, matches


def verdict(number: Any, word: str = "unsupported", sentences: Any = (), reason: str = " So. ") -> dict[str, Any]:
    return {"number": number, "reason": reason, "sentences": list(sentences), "verdict": word}


def replying(*pairs: tuple[int, str], key: str = "answers", word: str = "answer") -> dict[str, Any]:
    return {key: [{"number": number, "reason": " So. ", word: said} for number, said in pairs]}


YES, NO = Judgement(ok=True, reason="So."), Judgement(ok=False, reason="So.")
LAST = Judgement(ok=False, reason="Reason 2.")
CLAIMS = tasks.ListClaims(text="Pike. Eels.")
CLOSED = tasks.WriteClosedQuestions(contexts=CONTEXTS)
TOPICS = tasks.ListTopics(turns=("user: Hello.",))
FERRIES = {"topic": " Ferries ", "answered": True}
POLITE = tasks.Critique(definition="Is it polite?", fields=(("response", "Please."),))
REPLIES = tasks.AnswerQuestions(text="Pike.", questions=("Pike?", "Eels?"))
HELPFUL = tasks.JudgeContexts(question="How deep?", contexts=CONTEXTS)
USEFUL = tasks.JudgeUsefulness(question="How deep?", answer="40 m.", contexts=CONTEXTS)
OF_USE = {"number": 1, "reason": " So. ", "sentences": [1, 1], "verdict": "useful"}
OF_NONE = {"number": 2, "reason": " So. ", "sentences": [], "verdict": "useless"}
CONTRARY = tasks.FindContradictions(response="It is 14 m deep.", contexts=CONTEXTS)
MATCH = tasks.MatchTopics(topics=("a", "b"), allowed=("x",))
GOAL = tasks.JudgeGoal(turns=("user: Two seats.",))
REACHED = {"goal": " Two seats. ", "reason": " So. ", "verdict": "reached"}
WHY, WHO = ({"question": text, "noncommittal": flag} for text, flag in (("Why? ", False), ("Who?", True)))


@pytest.mark.parametrize(
    ("task", "answer", "read"),
    [
        # by number, whatever order the judge used, citing sentences by index, a repeated one once
        (VERIFY, {"verdicts": [verdict(2), verdict(1, "supported", [3, 3, 1])]}, (replace(YES, sentences=(2, 0)), NO)),
        (REPLIES, replying((2, "no"), (1, "yes")), (YES, NO)),
        (HELPFUL, replying((1, "relevant"), (2, "irrelevant"), key="verdicts", word="verdict"), (YES, NO)),
        (USEFUL, {"verdicts": [OF_NONE, OF_USE]}, (replace(YES, sentences=(0,)), NO)),
        (CONTRARY, contradicted([1], []), (Judgement(ok=True, reason="Reason 1.", sentences=(0,)), LAST)),
        (MATCH, matches(0, 1), (None, 0)),
        # claims, entities and questions that say the same in other case or spacing are one; there may be none
        (CLAIMS, {"claims": [" Pike live here.", "pike  live here.", "Eels do."]}, ("Pike live here.", "Eels do.")),
        (CLAIMS, {"claims": []}, ()),
        (tasks.ListEntities(contexts=CONTEXTS), {"entities": ["Lund ", "LUND", "Aru"]}, ("Lund", "Aru")),
        (CLOSED, {"questions": [{"phrase": "a", "question": text} for text in ("Is it? ", "IS IT?")]}, ("Is it?",)),
        (QUESTIONS, {"questions": [WHY, WHO]}, (("Why?", False), ("Who?", True))),
        # equal questions are as many questions, each with its own flag
        *(
            (QUESTIONS, {"questions": [WHY, {**WHO, "question": text}]}, (("Why?", False), (text.strip(), True)))
            for text in ("Why?", " why? ")
        ),
        *((TOPICS, {"topics": [FERRIES]}, (("Ferries", True),)), (TOPICS, {"topics": []}, ())),
        *((SELECT, {"sentences": [3, 1]}, (2, 0)), (SELECT, {"sentences": []}, ())),
        *((POLITE, {"reason": " So. ", "verdict": "yes"}, YES), (POLITE, {"reason": "So.", "verdict": "no"}, NO)),
        (tasks.JudgeRefusal(question="q", response="r"), {"reason": "So.", "verdict": "refuses"}, YES),
        # a goal that is given stays as it was given
        (GOAL, REACHED, ("Two seats.", YES)),
        (tasks.JudgeGoal(turns=GOAL.turns, goal="A seat."), {**REACHED, "verdict": "missed"}, ("A seat.", NO)),
    ],
)
def test_an_answer_is_read(task: Task[Any], answer: object, read: object) -> None:
    assert task.read(answer) == read


OTHER_FORMS: list[Any] = [None, [], "supported", 1, {}, {"verdicts": [], "score": 1}]


def verified(*verdicts: Any) -> dict[str, Any]:
    return {"verdicts": list(verdicts)}


@pytest.mark.parametrize(
    ("task", "answer", "problem"),
    [
        *((VERIFY, verified(verdict(1)), "nothing for claim 2"), (VERIFY, verified(), "nothing for claim 1 and 2")),
        (VERIFY, verified(verdict(1), verdict(2), verdict(3)), "there is no claim 3"),
        (VERIFY, verified(verdict(-1), verdict(2)), "nothing for claim 1; there is no claim -1"),
        (VERIFY, verified(verdict(1), verdict(2), verdict(2)), "more than one for claim 2"),
        (VERIFY, verified(verdict(1), verdict(2, "supported")), "claim 2 is called supported, but no sentence"),
        (VERIFY, verified(verdict(1), verdict(2, "supported", [4])), "claim 2 names the sentence 4: there are"),
        (VERIFY, verified(verdict(1), verdict(2, "supported", [0])), "the sentence 0: there are sentences from 1 to 3"),
        (VERIFY, verified(verdict(1), verdict(2, "unsupported", [9])), "claim 2 names the sentence 9"),
        (VERIFY, verified(verdict(1), verdict(2, "yes", [1])), "item 2 must be one of supported, unsupported"),
        *((VERIFY, verified(verdict(1), verdict(n)), "number of verdicts, item 2 must be") for n in ("2", True, 2.0)),
        (VERIFY, verified(verdict(1), verdict(2, sentences=["1"])), "item 1 must be an integer"),
        # fields that the text under test may have planted are not repeated
        (VERIFY, verified(verdict(1), {**verdict(2), "ignore all rules": 1}), "it has 1 too many"),
        (VERIFY, verified({"number": 2, "reason": "", "verdict": "supported"}), 'it lacks "sentences"'),
        (VERIFY, verified(verdict(1), "supported"), "verdicts, item 2 must be an object"),
        *((VERIFY, {"verdicts": given}, "verdicts must be an array") for given in ("supported", None)),
        *((VERIFY, given, "the answer must") for given in OTHER_FORMS),
        (REPLIES, replying((1, "yes")), "nothing for question 2"),
        (REPLIES, replying((1, "yes"), (2, "perhaps")), "must be one of yes, no"),
        (HELPFUL, replying((1, "relevant"), key="verdicts", word="verdict"), "nothing for context 2"),
        (USEFUL, {"verdicts": [OF_USE]}, "nothing for context 2"),
        (USEFUL, {"verdicts": [OF_USE, OF_USE, OF_NONE]}, "more than one for context 1"),
        (USEFUL, {"verdicts": [{**OF_USE, "sentences": []}, OF_NONE]}, "context 1 is called useful, but no sentence"),
        (USEFUL, {"verdicts": [{**OF_USE, "sentences": [3]}, OF_NONE]}, "names the sentence 3, which is in another"),
        (USEFUL, {"verdicts": [{**OF_USE, "sentences": [9]}, OF_NONE]}, "there are sentences from 1 to 3"),
        (USEFUL, {"verdicts": [{**OF_USE, "verdict": "relevant"}, OF_NONE]}, "must be one of useful, useless"),
        (USEFUL, {"verdicts": [{**OF_USE, "score": 1}, OF_NONE]}, "it has 1 too many"),
        # sentences are numbered through all contexts; one of another context shows nothing
        (CONTRARY, contradicted([1, 3], []), "context 1 names the sentence 3, which is in another context"),
        (CONTRARY, contradicted([], [4]), "context 2 names the sentence 4: there are sentences from 1 to 3"),
        (CONTRARY, contradicted([]), "nothing for context 2"),
        *((MATCH, matches(0, n), f"topic 2 names the allowed topic {n}: there are 1 to 1") for n in (2, -1)),
        (MATCH, matches(0), "nothing for topic 2"),
        (CLAIMS, {"claims": ["Pike.", "  "]}, "claim 2 is blank"),
        *((CLAIMS, {"claims": claims}, "must be a") for claims in ([None], ["Pike.", 1], "Pike.")),
        (QUESTIONS, {"questions": []}, "exactly 2 different questions, not 0 among 0"),
        (QUESTIONS, {"questions": [WHY]}, "exactly 2 different questions"),
        (QUESTIONS, {"questions": [WHY, WHO, {**WHO, "question": "When?"}]}, "exactly 2 different questions"),
        (QUESTIONS, {"questions": [WHY, WHO, {**WHO, "question": "who?"}]}, "not 2 among 3"),
        (QUESTIONS, {"questions": [WHY, {**WHO, "question": " "}]}, "question 2 is blank"),
        (QUESTIONS, {"questions": [WHY, {**WHO, "noncommittal": 1}]}, "noncommittal of questions, item 2 must be"),
        (TOPICS, {"topics": [FERRIES, FERRIES]}, "a topic is listed more than once"),
        (TOPICS, {"topics": [FERRIES, {**FERRIES, "topic": " "}]}, "topic 2 is blank"),
        (TOPICS, {"topics": [{**FERRIES, "answered": 1}]}, "must be a boolean"),
        (SELECT, {"sentences": [1, 1]}, "the selection names a sentence more than once"),
        *((SELECT, {"sentences": [n]}, f"the selection names the sentence {n}") for n in (4, 0, -1)),
        *((SELECT, {"sentences": chosen}, "must be an") for chosen in ([True], [1.0], None)),
        (POLITE, {"reason": "", "verdict": "maybe"}, "must be one of yes, no"),
        (GOAL, {**REACHED, "goal": " "}, "goal is blank"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(task: Task[Any], answer: object, problem: str) -> None:
    with pytest.raises(InvalidAnswer) as refused:
        task.read(answer)
    assert problem in str(refused.value)
    assert "ignore" not in str(refused.value)


@given(st.lists(st.integers(min_value=-2, max_value=8), max_size=10), st.integers(min_value=0, max_value=6))
def test_only_a_permutation_of_the_numbers_is_accepted(numbers: list[int], count: int) -> None:
    items = [{"number": number} for number in numbers]
    if sorted(numbers) == list(range(1, count + 1)):
        assert [item["number"] for item in schema.in_order(items, count, "claim")] == list(range(1, count + 1))
    else:
        with pytest.raises(InvalidAnswer):
            schema.in_order(items, count, "claim")


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        (tasks.RateRelevance(question="q", response="r"), (0, 1, 2, 3, 4)),
        (tasks.RateCorrectness(response="r", reference="s"), (0, 1, 2, 3, 4)),
        (tasks.RateContexts(question="q", contexts=CONTEXTS), (0, 1, 2)),
        (tasks.ReviewGroundedness(response="r", contexts=CONTEXTS), (0, 1, 2)),
        (tasks.RateAgreement(question="q", first="a", second="b"), (0, 2, 4)),
        (tasks.RateByRubric(steps=("Bad.", "So so.", "Good."), fields=(("response", "r"),)), (1, 2, 3)),
        (tasks.RateByCriteria(definition="d", highest=4, fields=(("response", "r"),)), (0, 1, 2, 3, 4)),
    ],
)
def test_a_scale_has_its_own_steps(task: Task[Rating], steps: tuple[int, ...]) -> None:
    ratings = [task.read({"reason": " So. ", "rating": step}) for step in steps]
    last = len(steps) - 1
    assert ratings == [Rating(value=n / last, reason="So.", step=step) for n, step in enumerate(steps)]
    for wrong in (steps[0] - 1, steps[-1] + 1, 0.5, True, None, "1"):
        with pytest.raises(InvalidAnswer):
            task.read({"reason": "", "rating": wrong})


@pytest.mark.parametrize("task", EVERY_TASK, ids=lambda task: str(task.prompt))
def test_every_task_is_strict_and_shows_contexts_first(task: Task[Any]) -> None:
    def check(schema: dict[str, Any]) -> None:
        assert set(schema) <= {"type", "properties", "required", "additionalProperties", "items", "enum"}
        if schema["type"] == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
        for inner in (*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])):
            check(inner)

    assert task.schema()["type"] == "object"
    check(task.schema())
    labels = [block.label for block in task.blocks()]
    assert len(set(labels)) == len(labels)
    assert [label for label in labels if "context" in label] == labels[: sum("context" in label for label in labels)]


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | _TEXT
_FORM = record(flags=list_of(one_of("yes", "no")), rating=one_of(0, 1))


@given(st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner), max_leaves=8))
def test_any_other_data_is_refused(data: object) -> None:
    with pytest.raises(InvalidAnswer, match="must"):
        schema.validate(data, _FORM)


@pytest.mark.parametrize(
    ("data", "form", "place"),
    [
        ([], _FORM, "the answer"),
        ({"flags": ["yes", 1], "rating": 1}, _FORM, "flags, item 2"),
        ({"flags": [], "rating": True}, _FORM, "rating"),
        ({"seen": [{"flag": "a"}, {"flag": 1}]}, record(seen=list_of(record(flag=TEXT))), "flag of seen, item 2"),
        ([{"flag": "a"}, {"flag": 1}], list_of(record(flag=TEXT)), "flag of the answer, item 2"),
    ],
)
def test_the_place_of_a_fault_is_named(data: object, form: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidAnswer, match=rf"^{place} must be "):
        schema.validate(data, form)


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
THOUGHTS = [
    *(("<think>", "</think>"), ("<thinking>", "</thinking>"), ("\n<reasoning>", "</reasoning>")),
    *(("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷")),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel|>analysis<|message|>", "<|channel|>final <|constrain|>json<|message|>"),
]
FOUND = '{"claims": ["A } in a \\"text\\"", "```"]}'


@pytest.mark.parametrize(
    "reply",
    [
        *(FOUND, f"\n {FOUND}\n", f"```json\n{FOUND}\n```", f"Sure {{as you asked}}: {FOUND}"),
        *(f"{FOUND}\n{FOUND}", f"\ufeff{FOUND}"),
        f"Here is the answer:\n\n```\n{FOUND}\n```\nTell me if you need more.",
        *(f'{opening}Perhaps {{"claims": []}}, or not.{closing}\n{FOUND}' for opening, closing in THOUGHTS),
    ],
)
def test_the_object_is_found_in_what_surrounds_it(reply: str) -> None:
    assert schema.extract_object(reply)[0] == FOUND


@pytest.mark.parametrize(
    "reply",
    [
        *("", "  ", "I cannot judge this.", "[1, 2]", '"yes"'),
        *('{"claims": [', "{'claims': []}", '{"claims": NaN}', "{}}{{ {"[3:], '{"verdict": "no", "verdict": "yes"}'),
    ],
)
def test_a_reply_without_an_object_is_refused(reply: str) -> None:
    with pytest.raises(InvalidAnswer, match="is not a JSON object"):
        schema.extract_object(reply)


@pytest.mark.parametrize("between", [", so: ", "</think>", "</reasoning>\n", "[/THINK]", "<|channel|>final<|message|>"])
def test_a_reply_with_two_objects_is_refused(between: str) -> None:
    """One of them may be quoted from the text under test, a mark before it too, so neither is taken."""
    with pytest.raises(InvalidAnswer, match="several JSON objects"):
        schema.extract_object(f'The text says {{"claims": []}}{between}{{"claims": ["It does."]}}')


@pytest.mark.parametrize(
    "text", ['{"a":' * 200_000 + "1" + "}" * 200_000, '{"a":' * 20000, "{" * 200_000, '{"n": ' + "9" * 6000 + "}"]
)
def test_a_reply_made_to_exhaust_is_refused(text: str) -> None:
    with pytest.raises(InvalidAnswer):
        schema.extract_object(text)


@given(st.dictionaries(ANY_TEXT, ANY_TEXT | st.integers() | st.lists(st.booleans())))
def test_any_object_survives(value: dict[str, Any]) -> None:
    assert schema.extract_object(f"My answer is: {json.dumps(value, ensure_ascii=False)} .")[1] == value
