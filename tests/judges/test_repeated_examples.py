"""A reply that repeats the example of its prompt is no answer, as a model too small to judge gives it to everything."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.examples import own_part
from pytest_ragmetrics.judges.judge import CustomJudge
from pytest_ragmetrics.judges.providers.bounds import bounded
from pytest_ragmetrics.judges.rendering import PromptBook, parted, render
from pytest_ragmetrics.judges.schema import NUMBER, TEXT, InvalidAnswer, json_objects, list_of, record
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.transports.limiter import Providers
from pytest_ragmetrics.judges.transports.values import Repair, Reply
from tests.asking import MemoryTransport, ask
from tests.every_task import CONTEXTS, EVERY_TASK, SELECT

REPEATED = "the answer repeats the example of the prompt"
#: Tasks of two items, so that their examples fit them.
TWO_ITEMS: tuple[Task[Any], ...] = (
    *(task for task in EVERY_TASK if task is not SELECT and not isinstance(task, tasks.MatchTopics)),
    tasks.MatchTopics(topics=("depth", "fish"), allowed=("lakes", "pike")),
)
NAMES = [task.prompt for task in TWO_ITEMS]


def prompt(task: Task[Any], folder: Path | None = None) -> str:
    return render(task, PromptBook(folder=folder))[1]


def examples(task: Task[Any], folder: Path | None = None) -> list[str]:
    return list(json_objects(parted(prompt(task, folder))[1]))


def own(task: Task[Any], answer: object) -> object:
    """Return what an answer says besides the example."""
    return own_part(answer, task.schema(), prompt(task))


def judge(*replies: str, asked: list[str] | None = None, **options: Any) -> CustomJudge:
    """Return a judge with these replies, the last one for ever, which notes what it is asked."""
    left, noted = list(replies), [] if asked is None else asked

    def own(text: str) -> str:
        noted.append(text)
        return left.pop(0) if len(left) > 1 else left[0]

    return CustomJudge(own, name="small", **options)


@pytest.mark.parametrize("task", TWO_ITEMS, ids=NAMES)
def test_the_example_is_no_answer(task: Task[Any]) -> None:
    for example in examples(task):
        asked: list[str] = []
        message = f"also after a repair: {REPEATED}: the model is too small.*ragmetrics probe"
        with pytest.raises(UnscoredError, match=message):
            ask(judge(example, asked=asked), task)
        _, repair = asked
        assert f"Your answer cannot be used: {REPEATED}. " in repair
        assert "too small" not in repair


@pytest.mark.parametrize("task", TWO_ITEMS, ids=NAMES)
def test_small_changes_make_no_answer_of_it(task: Task[Any]) -> None:
    (example, *_) = examples(task)
    for changed in (
        json.loads(json.dumps(json.loads(example), indent=4).replace('.",', '. ",')),
        json.loads(example, object_hook=lambda it: {k: _louder(v) for k, v in it.items()}),
        json.loads(example, parse_int=lambda _: 2),
    ):
        with pytest.raises(InvalidAnswer, match=REPEATED):
            own(task, changed)


def _louder(value: object) -> object:
    return value.upper() if isinstance(value, str) else list(map(_louder, value)) if isinstance(value, list) else value


RELEVANCE = tasks.RateRelevance(question="How deep?", response="40 m.")
REFUSAL = tasks.JudgeRefusal(question="How deep?", response="40 m.")
PIKE = tasks.VerifyClaims(claims=("Pike live in it.",), contexts=CONTEXTS)
ADA = "Ada Brandt was from Oslo. She was a potter."
OF_ADA = {"claims": ["Ada Brandt was from Oslo.", "Ada Brandt was a potter."]}


def pike(**said: Any) -> dict[str, Any]:
    return {"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [2], "verdict": "supported", **said}]}


@pytest.mark.parametrize(
    "text", ["{}\nnot.", "{}\tnot", "{} not:", "**{} not.**", "“{} not.”", "{} not！", "{} not\u200b.\u00a0"]
)
def test_what_stands_around_the_words_makes_no_answer_of_them(text: str) -> None:
    with pytest.raises(InvalidAnswer, match=REPEATED):
        own(RELEVANCE, {"reason": text.format("The year is given, the place is"), "rating": 4})


def test_the_contrary_verdict_with_the_reason_of_the_example_is_no_answer() -> None:
    with pytest.raises(InvalidAnswer, match=REPEATED):
        own(PIKE, pike(sentences=[], verdict="unsupported"))


@pytest.mark.parametrize(
    ("task", "answer", "kept"),
    [
        # As a step of the scale.
        (RELEVANCE, {"reason": "answers all that was asked", "rating": 4}, ...),
        # Of a claim that is there a good model says what the example says.
        (PIKE, pike(), ...),
        (PIKE, pike(reason=""), ...),
        # Whoever asks about the subject of an example is answered.
        (tasks.ListClaims(text=ADA), OF_ADA, {"claims": OF_ADA["claims"][:1]}),
        (tasks.ListClaims(text=f"{ADA} Ada Brandt was a potter!"), OF_ADA, ...),
        # A number behind what opens no block is no digest.
        (tasks.ListClaims(text="<<<EAN 400638133393\nMoths fly."), {"claims": ["The EAN is 400638133393."]}, ...),
        # That no sentence is needed is right for most contexts.
        (SELECT, {"sentences": []}, ...),
    ],
)
def test_what_is_no_repetition(task: Task[Any], answer: Any, kept: Any) -> None:
    assert own(task, answer) == (answer if kept is ... else kept)


@pytest.mark.parametrize(
    "form",
    [
        '{"reason": "<one short sentence>", "rating": <0-4>}',
        '{"reason": "<one short sentence>", "rating": 0|1|2|3|4}',
        '{"reason": "<one short sentence>", "rating": 2,}',
        '{"reason": "<one short sentence>", "rating": 2} // the rating',
    ],
)
def test_a_form_that_is_no_json_is_an_example(tmp_path: Path, form: str) -> None:
    (tmp_path / "rate_relevance.md").write_text(f"Rate it.\n\n{form}\n", "utf-8")
    with pytest.raises(InvalidAnswer, match=REPEATED):
        own_part({"reason": "One short sentence.", "rating": 3}, RELEVANCE.form, prompt(RELEVANCE, tmp_path))


def test_what_the_author_of_a_test_wrote_is_no_example() -> None:
    definition = 'Does it name a fault, as {"reason": "out of stock"} does?'
    task = tasks.Critique(definition=definition, fields=(("response", "We have none left."),))
    assert '"out of stock"' in prompt(task)
    assert ask(judge('{"reason": "Out of stock.", "verdict": "yes"}'), task)[0].answer.ok


@pytest.mark.parametrize("text", ["他去了北京开会", "Lundで会議があった", "Lunds hamn", "1903년에 Lund에서"])
def test_words_need_no_spaces_around_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "list_entities.md").write_text('List them.\n\n{"entities": ["Lund", "北京"]}\n', "utf-8")
    task = tasks.ListEntities(contexts=(text,))
    answer = {"entities": ["北京" if "北京" in text else "Lund"]}
    assert own_part(answer, task.form, prompt(task, tmp_path)) == answer


@pytest.mark.parametrize(
    ("instruction", "schema", "answer"),
    [
        ("Is it billing, shipping or other?", record(label=TEXT), {"label": "shipping"}),
        ("1: neutral. 2: kind.", record(explanation=TEXT, score=NUMBER), {"explanation": "Neutral.", "score": 1}),
        ("Tag it: question, complaint.", record(tags=list_of(TEXT)), {"tags": ["question", "complaint"]}),
    ],
)
def test_the_words_of_an_instruction_are_no_example(instruction: str, schema: Any, answer: Any) -> None:
    asked = prompt(tasks.ListClaims(text="It is late.")).rpartition("List every claim")[0] + instruction
    assert own_part(answer, schema, asked) == answer


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"const": "x"}, "c": {"enum": ["y"]}}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "array", "items": True}, "b": {"type": "array"}}},
        {"anyOf": [{"type": "object"}]},
    ],
)
def test_schemas_of_users_own_are_read_over(schema: Any) -> None:
    class Own(tasks.ListClaims):
        def schema(self) -> Any:
            return schema

    task = Own(text="It is late.")
    for answer in ({"a": "x", "b": ["y"]}, ["x"], "x", {"a": None}, {}):
        assert own_part(answer, schema, prompt(task)) == answer
    assert bounded(schema, task)[1] > 0
    # What a schema says of lengths goes first.
    items = {"type": "array", "items": {"type": "string", "maxLength": 7}, "minItems": 90}
    assert bounded({"type": "object", "properties": {"a": items}}, task)[0]["properties"]["a"] == items


def test_a_repetition_that_comes_once() -> None:
    (example,), task = examples(TWO_ITEMS[0]), TWO_ITEMS[0]
    small, memory = judge(example, '{"claims": ["Pike live in the lake."]}'), MemoryTransport()
    (answered,) = ask(small, task, transport=Repair(Providers()))
    assert (answered.answer, answered.usage.calls) == (("Pike live in the lake.",), 2)
    memory.kept.append((small.request(task), Reply(text=example)))
    with pytest.raises(UnscoredError, match=f"the recorded reply does not fit: {REPEATED}: the model is too small"):
        ask(small, task, transport=memory)


def test_the_examples_of_users_prompts_count(tmp_path: Path) -> None:
    late, none = {"reason": "It is late.", "verdict": "answers"}, {"reason": "No tram runs.", "verdict": "refuses"}
    text = f"Does it refuse?\n\n{json.dumps(late)}\n{json.dumps(none, indent=2)}\n"
    (tmp_path / "judge_refusal.md").write_text(text, "utf-8")
    prompts = PromptBook(folder=tmp_path)
    first, second = examples(REFUSAL, tmp_path)
    for reply in (first, second):
        with pytest.raises(UnscoredError, match=REPEATED):
            ask(judge(reply, prompts=prompts), REFUSAL)
    packaged = '{"reason": "It names an owner.", "verdict": "answers"}'
    assert not ask(judge(packaged, prompts=prompts), REFUSAL)[0].answer.ok


@pytest.mark.parametrize(
    ("task", "mine"),
    [
        (tasks.ListClaims(text="Moths fly."), "Moths fly."),
        (tasks.ListEntities(contexts=("Moths of Kent.",)), "Kent"),
        (tasks.WriteClosedQuestions(contexts=("Moths fly.",)), {"phrase": "Moths", "question": "Do moths fly?"}),
        (tasks.ListTopics(turns=("user: Moths?",)), {"topic": "Moths", "answered": True}),
    ],
)
def test_a_list_that_begins_with_the_example_counts_by_the_rest(task: Task[Any], mine: object) -> None:
    ((field, of_example),) = json.loads(examples(task)[0]).items()
    assert own(task, {field: [*of_example, mine]}) == {field: [mine]}
    assert own(task, {field: [mine, *of_example[:1]]}) == {field: [mine]}
    with pytest.raises(InvalidAnswer, match=REPEATED):
        own(task, {field: of_example[:1]})


def test_verdicts_that_begin_with_the_example_are_no_answer() -> None:
    task = tasks.AnswerQuestions(text="Pike live in the lake.", questions=("Pike?", "Eels?", "Crabs?"))
    reply: dict[str, Any] = json.loads(examples(task)[0])
    mine = {"number": 3, "reason": "Crabs are not mentioned.", "answer": "no"}
    with pytest.raises(InvalidAnswer, match=REPEATED):
        own(task, {"answers": [*reply["answers"], mine]})
    mixed = {"answers": [reply["answers"][0], {**mine, "number": 2}, mine]}
    assert own(task, mixed) == mixed


@pytest.mark.parametrize("text", ["Moths fly. {0}", "{0}", "<<<text {0}"])
def test_a_claim_with_the_digest_of_a_block_is_refused(text: str) -> None:
    task = tasks.ListClaims(text="Moths fly in 123456789012 gardens.")
    digest = prompt(task).partition("<<<text ")[2].partition("\n")[0]
    with pytest.raises(InvalidAnswer, match="repeats a delimiter"):
        own(task, {"claims": ["Moths fly.", text.format(digest)]})
    assert own(task, {"claims": ["Moths fly in 123456789012 gardens."]})


def test_honest_answers_that_quote_the_texts_are_none() -> None:
    draw = random.Random(7)
    shown_texts = " ".join(text for task in TWO_ITEMS for text in examples(task))
    words = sorted({*re.findall(r"[A-Za-z0-9]+", shown_texts)})
    for _ in range(500):
        task = draw.choice(EVERY_TASK)
        sentences = [" ".join(draw.sample(words, draw.randint(2, 7))).capitalize() + "." for _ in range(4)]
        shown = tasks.Critique(definition="Is it so?", fields=(("response", " ".join(sentences)),))
        answer = _filled(task.schema(), draw, sentences)
        # The prompt of the task, over other texts.
        asked = prompt(shown).replace(parted(prompt(shown))[1], parted(prompt(task))[1])
        assert own_part(answer, task.schema(), asked) == answer


def _filled(schema: Mapping[str, Any], draw: random.Random, texts: list[str]) -> Any:
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if schema["type"] == "object":
        return {name: _filled(field, draw, texts) for name, field in schema["properties"].items()}
    if schema["type"] == "array":
        return [_filled(schema["items"], draw, texts) for _ in range(draw.randint(1, 3))]
    return {"string": draw.choice(texts), "integer": draw.randint(1, 4), "boolean": draw.random() < 0.5}[schema["type"]]
