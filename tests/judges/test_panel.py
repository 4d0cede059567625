"""Panels: several models behind one server, what they answer, and what the panel makes of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import pytest

from pytest_ragmetrics.core import errors, loop
from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.panel import Panel
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.transports import values
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import Answered, AnyRequest, JudgeUnavailableError, Reply, Transport
from pytest_ragmetrics.metrics import RefusalCorrectness
from tests import fake_openai
from tests.asking import MemoryTransport, ask, judge_at
from tests.every_task import CONTEXTS, EVERY_TASK, SELECT, VERIFY
from tests.fake_openai import Body, FakeOpenAI, dropped, failing, out_of_quota
from tests.scripted_judge import chosen, contradicted, goal, matches, rated, says, useful, verdicts

Said = Mapping[str, Any] | fake_openai.Reply
CRITIQUE = tasks.Critique(definition="Is it polite?", fields=(("response", "Please."),))
CRITERIA = tasks.RateByCriteria(definition="How deep is it?", highest=10, fields=(("response", "40 m."),))
GOAL = tasks.JudgeGoal(turns=("user: A seat, please.", "assistant: Booked."))
TOPICS = tasks.MatchTopics(topics=("depth", "fish"), allowed=("lakes", "pike"))


def ask_panel(server: FakeOpenAI, task: Task[Any], *said: Said) -> Answered[Any]:
    script = {
        model: made if isinstance(made, fake_openai.Reply) else json.dumps(made)
        for model, made in zip("abcde", said, strict=False)
    }
    server.answer = lambda body: script[body["model"]]
    (answered,) = ask(panel(server, *script), task)
    return answered


def panel(server: FakeOpenAI, *models: str) -> Panel:
    return Panel(judge_at(server, model=model) for model in models)


@pytest.mark.parametrize(
    ("words", "ok", "disagreement"),
    [
        ("yyn", True, "critique: yes: openai:a, openai:b; no: openai:c (Not by c.)"),
        ("nyn", False, "critique: no: openai:a, openai:c; yes: openai:b (Not by b.)"),
        ("yynny", True, "critique: yes: openai:a, openai:b, openai:e; no: openai:c (Not by c.), openai:d (Not by d.)"),
        ("yyy", True, None),
        ("nn", False, None),
    ],
)
def test_verdicts_go_by_majority(server: FakeOpenAI, words: str, ok: bool, disagreement: str | None) -> None:
    said = [says("yes" if word == "y" else "no", f"Not by {name}.") for name, word in zip("abcde", words, strict=False)]
    answered = ask_panel(server, CRITIQUE, *said)
    assert (answered.answer.ok, answered.disagreements) == (ok, (disagreement,) if disagreement else ())
    assert answered.answer.reason == f"Not by {'abcde'[words.index('y' if ok else 'n')]}."
    assert answered.usage.calls == len(words)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("yn", r"^the judges are split: critique: yes: openai:a; no: openai:b \(So\.\)$"),
        ("nyny", "^the judges are split: critique: yes: openai:b, openai:d; no: openai:a"),
        ("yn--", "^the judges are split: "),
        ("y--", "^critique: 1 of 3 judges answered, and 2 must: openai:b: .*status 400.*; openai:c: .*status 400"),
        ("--", "^critique: 0 of 2 judges answered"),
    ],
)
def test_without_a_majority_there_is_no_answer(server: FakeOpenAI, words: str, problem: str) -> None:
    said = [failing(400) if word == "-" else says("yes" if word == "y" else "no", "So.") for word in words]
    with pytest.raises(UnscoredError, match=problem) as caught:
        ask_panel(server, CRITIQUE, *said)
    usage: Any = caught.value.usage
    assert usage.calls == len(words.replace("-", ""))
    # A score would depend on which of several verdicts is left out.
    with pytest.raises(UnscoredError, match=r"^the judges are split: verify_claims, claim 2 .*yes: openai:b; no: open"):
        ask_panel(server, VERIFY, verdicts([1], None), verdicts([1], [3]))


def test_judges_that_fail_leave_the_others_to_decide(server: FakeOpenAI) -> None:
    answered = ask_panel(server, CRITIQUE, says("yes"), fake_openai.Reply(text="Hm."), says("yes"))
    (failure,) = answered.disagreements
    assert answered.answer.ok
    assert failure.startswith("critique: no answer of openai:b (openai:b, critique: no usable answer, also after a rep")
    assert answered.usage.calls == 4


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        *(([first, out_of_quota()], JudgeUnavailableError) for first in (out_of_quota(), says("yes"))),
        ([dropped(), says("yes"), dropped()], values.JudgeOutageError),
        ([says("yes"), out_of_quota(), failing(400)], UnscoredError),
    ],
)
def test_a_run_is_to_stop_where_too_few_judges_can_answer(server: FakeOpenAI, replies: list[Said], kind: type) -> None:
    with pytest.raises(RagMetricsError, match="judges answered, and 2 must") as caught:
        ask_panel(server, CRITIQUE, *replies)
    assert caught.type is kind


@pytest.mark.parametrize(
    ("steps", "value", "listed"),
    [
        ([2, 9, 10], 0.9, "rated 0.20 by openai:a, 0.90 by openai:b, 1.00 by openai:c"),
        ([4, 6], 0.5, None),
        ([1, 9], 0.5, "rated 0.10 by openai:a, 0.90 by openai:b"),
        ([9, 1, 5], 0.5, "rated 0.90 by openai:a, 0.10 by openai:b, 0.50 by openai:c"),
        ([10, 3, 8, 9], 0.85, "rated 1.00 by openai:a, 0.30 by openai:b, 0.80 by openai:c, 0.90 by openai:d"),
        ([0, 5], 0.25, None),
        ([7, 7, 7], 0.7, None),
        ([3, None, 5], 0.4, None),
    ],
)
def test_ratings_go_by_the_median(server: FakeOpenAI, steps: Any, value: float, listed: str | None) -> None:
    replies = [failing(400) if step is None else rated(step, f"A {step}.") for step in steps]
    answered = ask_panel(server, CRITERIA, *replies)
    assert answered.answer.value == pytest.approx(value)
    told = [text for text in answered.disagreements if "no answer" not in text]
    assert told == ([f"rate_by_criteria: {listed}"] if listed else [])


def test_the_step_of_a_mean_is_one_of_the_scale(server: FakeOpenAI) -> None:
    deep, flat = rated(9, "Deep."), rated(4, "Flat.")
    between = ask_panel(server, CRITERIA, deep, flat).answer
    assert (between.step, between.reason) == (6, "between the middle ratings, steps 4 and 9: Flat.")
    given = ask_panel(server, CRITERIA, deep, flat, rated(5, "So so.")).answer
    assert (given.step, given.reason) == (5, "So so.")


CONTRADICTIONS = tasks.FindContradictions(response="The lake is 14 m deep.", contexts=CONTEXTS)
USEFULNESS = tasks.JudgeUsefulness(question="How deep?", answer="40 m.", contexts=CONTEXTS)
#: The sentences of two contexts that each of three judges cites.
CITED: tuple[tuple[list[int], list[int]], ...] = ([1], []), ([], []), ([2], [])
YES_AC = "yes: openai:a, openai:c; no: openai:b"
CONTEXT_1 = f'context 1 "{CONTEXTS[0]}": {YES_AC} (Reason 1.)'
CLAIM_1 = 'verify_claims, claim 1 "The lake is 40 m deep.": yes: openai:a, openai:b; no: openai:c (Reason 1.)'
CLAIM_2 = 'verify_claims, claim 2 "The ferry is free.": no: openai:a, openai:c; yes: openai:b (Reason 2.)'
TOPIC_2 = 'match_topics, topic 2 "fish": no: openai:a, openai:b; yes: openai:c'
BOTH_OF_ONE = [(True, (0, 1)), (False, ())]
#: A task, what three judges answer, the merged answer in short, and the disagreements.
MERGED: list[tuple[Task[Any], list[Said], object, list[str]]] = [
    (VERIFY, [verdicts([1], None), verdicts([1, 2], [3]), verdicts(None, None)], BOTH_OF_ONE, [CLAIM_1, CLAIM_2]),
    (CONTRADICTIONS, [contradicted(*each) for each in CITED], BOTH_OF_ONE, [f"find_contradictions, {CONTEXT_1}"]),
    (USEFULNESS, [useful(*each) for each in CITED], BOTH_OF_ONE, [f"judge_usefulness, {CONTEXT_1}"]),
    (SELECT, [chosen(1, 2), chosen(1), chosen(1, 2)], (0, 1), [f"select_sentences, sentence 2: {YES_AC}"]),
    (SELECT, [chosen(), chosen(), chosen()], (), []),
    (TOPICS, [matches(1, 0), matches(2, 0), matches(2, 1)], (1, None), [TOPIC_2]),
    (
        GOAL,
        [goal("missed", "Hold a seat."), goal("reached", "Book a seat."), goal("reached", "Sit.")],
        ("Book a seat.", True),
        ["judge_goal: yes: openai:b, openai:c; no: openai:a (So it is.)"],
    ),
]


@pytest.mark.parametrize(("task", "said", "merged", "told"), MERGED)
def test_answers_are_merged_verdict_by_verdict(
    server: FakeOpenAI, task: Task[Any], said: list[Said], merged: object, told: list[str]
) -> None:
    answered = ask_panel(server, task, *said)
    found: Any = answered.answer if isinstance(answered.answer, tuple) else (answered.answer,)
    if isinstance(found[0] if found else None, tasks.Judgement):
        found = [(each.ok, each.sentences) for each in found]
    elif found and isinstance(found[-1], tasks.Judgement):
        found = (found[0], found[1].ok)
    assert (found, answered.disagreements) == (merged, tuple(told))


@pytest.mark.parametrize("task", EVERY_TASK, ids=lambda task: task.prompt)
def test_judges_of_one_mind_answer_as_one_does(server: FakeOpenAI, task: Task[Any]) -> None:
    (alone,) = ask(panel(server, "a", "b").judges[0], task)
    (together,) = ask(panel(server, "a", "b", "c"), task)
    assert (together.answer, together.disagreements) == (alone.answer, ())


@pytest.mark.parametrize("task", [task for task in EVERY_TASK if task.prompt.startswith(("list_", "write_"))])
def test_the_first_judge_that_answers_writes(server: FakeOpenAI, task: Task[Any]) -> None:
    (answered,) = ask(panel(server, "a", "b", "c"), task)
    assert [request.body["model"] for request in server.requests] == ["a"]
    server.reset()
    server.script(failing(400))
    (again,) = ask(panel(server, "a", "b", "c"), task)
    assert [request.body["model"] for request in server.requests] == ["a", "b"]
    assert again.answer == answered.answer
    assert again.disagreements[0].startswith(f"{task.prompt}: no answer of openai:a (")
    server.script(*[failing(400)] * 3)
    with pytest.raises(UnscoredError, match="0 of 3 judges answered, and 1 must"):
        ask(panel(server, "a", "b", "c"), task)


@pytest.mark.parametrize("vote", [0, 1])
def test_answers_are_kept_as_those_of_each_judge_alone(server: FakeOpenAI, vote: int) -> None:
    kept = MemoryTransport()
    for judge in panel(server, "a", "b").judges:
        ask(judge, CRITIQUE, transport=kept, votes=vote + 1)
    before = server.calls
    *_, cached = ask(panel(server, "a", "b"), CRITIQUE, transport=kept, votes=vote + 1)
    assert (server.calls, cached.usage.calls, cached.usage.cached_calls) == (before, 0, 2)
    *_, mixed = ask(panel(server, "c", "b", "a"), CRITIQUE, transport=kept, votes=vote + 1)
    assert (server.calls, mixed.usage.calls, mixed.usage.cached_calls) == (before + vote + 1, 1, 2)


@pytest.mark.parametrize("error", [errors.CacheMissError, errors.BudgetExceededError])
def test_what_no_judge_can_help_is_raised(server: FakeOpenAI, error: type[RagMetricsError]) -> None:
    class Refusing:
        async def send(self, request: AnyRequest) -> Reply:
            if request.model == "b":
                raise error("It is spent.")
            return Reply(text=json.dumps(says("yes")))

    with pytest.raises(error, match=r"It is spent\."):
        ask(panel(server, "a", "b", "c"), CRITIQUE, transport=Refusing())


def test_answers_of_a_kind_unknown_here(server: FakeOpenAI) -> None:
    class Depth(tasks.Critique):
        read: Callable[..., Any] = lambda _, __: 40

    with pytest.raises(UnscoredError, match="critique: a panel cannot merge answers of the type int; ask one judge"):
        ask_panel(server, Depth(definition="How deep?", fields=()), says("yes"), says("yes"))


def test_one_judge_that_may_vary_makes_the_panel_vary(server: FakeOpenAI) -> None:
    judges = panel(server, "a", "b").judges
    for number in range(3):
        assert (Panel(judges).is_varied, Panel(judges).is_paid) == (number < 2, number < 2)
        judges[number % 2].is_varied = judges[number % 2].is_paid = False


def test_a_panel_has_two_judges_or_more() -> None:
    a, b, c = (OpenAIJudge(model) for model in "abc")
    for judges in ([a], [], [Panel([a, b]), c]):
        with pytest.raises(errors.JudgeNotConfiguredError, match="a panel has two judges or more, and no other panel"):
            Panel(judges)


def test_disagreements_are_in_an_order_that_is_no_chance(server: FakeOpenAI) -> None:
    def answer(body: Body) -> fake_openai.Reply:
        is_slow = body["response_format"]["json_schema"]["name"] == "judge_refusal"
        is_against = body["model"] == "b"
        said = says("answers" if is_against else "refuses") if is_slow else chosen(*([] if is_against else [1]))
        return fake_openai.Reply(text=json.dumps(said), latency=0.1 if is_slow else 0.0)

    server.answer = answer
    judge = panel(server, "a", "b", "c")
    fields = {"user_input": "How deep?", "response": "40 m.", "retrieved_contexts": ["A lake."]}
    result = RefusalCorrectness(judge=judge).score(**fields)
    loop.run(judge.aclose())
    assert [text.partition(" ")[0] for text in result.disagreements] == ["judge_refusal:", "select_sentences,"]


class Fixed(Judge):
    def __init__(self, name: str, answer: object) -> None:
        self.name, self.answer = name, answer

    async def ask(self, task: Any, *, vote: int = 0, transport: Transport = DIRECT) -> Answered[Any]:
        return Answered(answer=self.answer, usage=Usage(calls=1))


def test_any_number_of_any_answers_is_merged_as_counting_and_sorting_would() -> None:
    chance = random.Random(7)
    for _ in range(100):
        steps = [chance.randrange(11) for _ in range(chance.randint(2, 7))]
        ratings = [tasks.Rating(value=step / 10, reason="", step=step) for step in steps]
        (rated_,) = ask(Panel(Fixed(f"{n}", each) for n, each in enumerate(ratings)), CRITERIA)
        assert rated_.answer.value == pytest.approx(median(steps) / 10)
        assert bool(rated_.disagreements) == (max(steps) - min(steps) > 5)
        words = [chance.random() < 0.6 for _ in steps]
        said = (tasks.Judgement(ok=word, reason="") for word in words)
        panel_ = Panel(Fixed(f"{n}", each) for n, each in enumerate(said))
        if sum(words) * 2 == len(words):
            with pytest.raises(UnscoredError, match="the judges are split"):
                ask(panel_, CRITIQUE)
            continue
        (judged,) = ask(panel_, CRITIQUE)
        assert (judged.answer.ok, bool(judged.disagreements)) == (median(words) == 1, len(set(words)) == 2)
        assert judged.usage == Usage(calls=len(words))
