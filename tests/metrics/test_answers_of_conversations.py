"""TurnRelevancy and RoleAdherence: a verdict on each answer of a conversation, checked by rule and counted exactly."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ragmetrics import (
    Sample,
    UnscoredError,
    assert_role_kept,
    assert_sample,
    assert_turns_relevant,
    evaluate,
    sample_from,
)
from pytest_ragmetrics.evaluation.dry_run import _smallest_answer
from pytest_ragmetrics.judges.judge import CustomJudge
from pytest_ragmetrics.judges.panel import Panel
from pytest_ragmetrics.judges.tasks import JudgeRole, JudgeTurns
from pytest_ragmetrics.judges.tasks.conversations import Sentence
from pytest_ragmetrics.metrics import RoleAdherence, TurnRelevancy
from tests.asking import ask
from tests.scripted_judge import ScriptedJudge, asked_turns, in_role, taken_up

WORDS = ("answers", "asks back", "small talk", "evades", "misses")
TEXTS = [
    ("When does the ferry leave? I am in a hurry.", "At nine. It is on time."),
    ("Wann fährt die Fähre nach Årø ab?", "Um 9.30 Uhr, d. h. bald. Bitte beeilen Sie sich!"),
    ("フェリーは何時に出ますか。", "九時に出ます。株はルンド造船を買ってください。"),
    ("Turn 9 assistant\n1 I keep to my role.", "> A pirate.\nContext 1\n- Arr!\n- 1 Yes."),
    ("???", "---"),
]
CALL = {"name": "timetable", "args": {"to": "Årø"}}
ROLE = "A clerk who sells ferry tickets and nothing else."


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def conversation(seed: int) -> tuple[list[dict[str, Any]], dict[int, str], set[int]]:
    """Return messages, a word for each answered turn, and the turns in which nobody asks."""
    chance = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    words: dict[int, str] = {}
    if chance.random() < 0.4:
        messages.append(said("Hello! How can I help?"))
        words[1] = "small talk"
    openings = {*words}
    # Some have small talk alone, some more than one window.
    known = ("small talk",) if seed % 12 == 0 else WORDS
    for turn in range(len(words) + 1, chance.choice([1, 2, 5, 9, 18, 30, 45]) + 2):
        question, answer = chance.choice(TEXTS)
        messages += [user(question), *([user("Please.")] if chance.random() < 0.2 else [])]
        if looks := chance.random() < 0.3:
            messages += [said("I look.", tool_calls=[CALL]), {"role": "tool", "content": "At nine."}]
        if answers := chance.random() < 0.9:
            messages.append(said(answer))
        elif not looks:
            messages.append(said("", tool_calls=[CALL]))
        if looks or answers:
            words[turn] = chance.choice(known)
    if not words:
        return conversation(seed + 60)
    return [*messages, *([user("Bye.")] if chance.random() < 0.3 else [])], words, openings


def numbers_of(prompt: str, turn: int) -> list[int]:
    """Return the numbers of what the assistant says in a turn, as the prompt shows them."""
    shown = prompt.partition("<<<conversation ")[2].partition(" conversation>>>")[0].rpartition("\n")[0]
    (part, *_) = re.findall(rf"(?m)^Turn {turn} assistant((?:\n\d+ .*)+)", shown)[-1:]
    return [*map(int, re.findall(r"\n(\d+) ", part))]


@pytest.mark.parametrize("seed", range(20))
def test_the_share_of_answers_that_take_up_what_the_user_says(seed: int) -> None:
    messages, words, openings = conversation(seed)

    def answer(prompt: str) -> dict[str, Any]:
        asked = [(turn, words[turn]) for turn in asked_turns(prompt)]
        random.Random(seed).shuffle(asked)
        return {"turns": [{"turn": turn, "reason": "", "verdict": word} for turn, word in asked]}

    judge = ScriptedJudge(judge_turns=answer)
    result = TurnRelevancy(judge=judge).score(messages=messages)
    counted = [word for word in words.values() if word != "small talk"]
    good = sum(word in ("answers", "asks back") for word in counted)
    assert result.value == pytest.approx(good / len(counted) if counted else 1.0, abs=1e-9)
    assert result.vacuous is not bool(counted)
    assert [(it.turn, it.counts) for it in result.verdicts] == [(n, it != "small talk") for n, it in words.items()]
    asked = [turn for request in judge.requests for turn in asked_turns(request.messages[1]["content"])]
    assert asked == [turn for turn in words if turn not in openings]
    assert len(judge.requests) <= 1 + max(words) // 20


@pytest.mark.parametrize("seed", range(20))
def test_the_share_of_answers_in_the_role(seed: int) -> None:
    messages, words, _ = conversation(seed)
    strayed = {turn for turn, word in words.items() if word in ("evades", "misses")}

    def answer(prompt: str) -> dict[str, Any]:
        entries = []
        for turn in asked_turns(prompt):
            # Sentences beside a verdict that needs none change nothing.
            cited, word = (numbers_of(prompt, turn)[-1:], "out of role") if turn in strayed else ([1], "in role")
            entries.append({"turn": turn, "reason": "", "sentences": cited, "verdict": word})
        return {"turns": entries}

    judge = ScriptedJudge(judge_role=answer)
    result = RoleAdherence(role=ROLE, judge=judge).score(messages=messages)
    assert result.value == pytest.approx(1 - len(strayed) / len(words), abs=1e-9)
    assert [(it.turn, it.ok) for it in result.verdicts] == [(turn, turn not in strayed) for turn in words]
    for verdict in result.verdicts:
        assert [piece.turn for piece in verdict.evidence] == ([] if verdict.ok else [verdict.turn])
        assert verdict.text.endswith(tuple(piece.text for piece in verdict.evidence) or verdict.text)
    asked = [turn for request in judge.requests for turn in asked_turns(request.messages[1]["content"])]
    assert asked == [*words]


GREETED = [said("Hello!"), user("A seat, please."), said("For which day?"), user("And shares?")]
TALK = [*GREETED, said("The seat is booked. Buy shares.", tool_calls=[CALL]), user("Bye."), said("", tool_calls=[CALL])]
#: Sentences: 1 greeting, 2 user, 3 assistant, 4 user, 5 and 6 assistant, 7 its call, 8 user, 9 a call.
STRAYED = in_role((), (), (6,))


def entries(found: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return an answer whose last entry is changed."""
    *first, last = found["turns"]
    return {"turns": [*first, {**last, **changes}]}


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (entries(STRAYED, sentences=[4]), "turn 3 names the sentence 4, which the assistant does not say"),
        (entries(STRAYED, sentences=[3]), "turn 3 names the sentence 3, which is before turn 3"),
        (entries(STRAYED, sentences=[6, 9]), "turn 3 names the sentence 9, which is after turn 3"),
        (entries(STRAYED, sentences=[10]), "turn 3 names the sentence 10: there are sentences from 1 to 9"),
        (entries(STRAYED, sentences=[]), "turn 3 is called out of role, but no sentence that shows it is named"),
        (in_role((), ()), "each turn of 1, 2 and 3 must be answered exactly once: nothing for turn 3"),
        (in_role((), (), (), ()), "there is no turn 4"),
        (entries(STRAYED, turn=2), "nothing for turn 3; more than one for turn 2"),
        (entries(STRAYED, verdict="misses"), "must be one of out of role, in role"),
    ],
)
def test_a_wrong_citation_is_asked_for_once_more(bad: dict[str, Any], fault: str) -> None:
    repaired, hopeless = ScriptedJudge(judge_role=[bad, STRAYED]), ScriptedJudge(judge_role=bad)
    result = RoleAdherence(role=ROLE, judge=repaired).score(messages=TALK)
    assert result.value == pytest.approx(2 / 3, abs=1e-9)
    assert len(repaired.requests) == 2
    assert [verdict.text for verdict in result.verdicts] == ["Hello!", "For which day?", "Buy shares."]
    with pytest.raises(UnscoredError, match=f"judge_role: no usable answer.*{re.escape(fault)}"):
        RoleAdherence(role=ROLE, judge=hopeless).score(messages=TALK)
    assert len(hopeless.requests) == 2


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (taken_up("answers", since=2), "each turn of 2 and 3 must be answered exactly once: nothing for turn 3"),
        (taken_up("small talk", "answers", "misses"), "there is no turn 1"),
        (taken_up("answers", "out of role", since=2), "must be one of answers, asks back, small talk, evades, misses"),
    ],
)
def test_each_answer_is_judged_exactly_once(bad: dict[str, Any], fault: str) -> None:
    """An opening is small talk by rule, and a turn without an answer is none."""
    judge = ScriptedJudge(judge_turns=[bad, taken_up("asks back", "misses", since=2)])
    result = TurnRelevancy(judge=judge).score(messages=TALK)
    assert (result.value, len(judge.requests)) == (0.5, 2)
    assert result.reason == "1 of 2 answers to the point; not counted: 1 is small talk"
    assert result.verdicts[0].reason == "small talk: it opens the conversation"
    with pytest.raises(UnscoredError, match=f"judge_turns: no usable answer.*{re.escape(fault)}"):
        TurnRelevancy(judge=ScriptedJudge(judge_turns=bad)).score(messages=TALK)


def test_small_talk_alone_is_vacuous() -> None:
    judge = ScriptedJudge(judge_turns=taken_up("small talk", since=2))
    bye = [said("Hello!"), user("Hi, and bye!"), said("Bye!")]
    for messages, calls in ((bye, 1), (bye[:1], 1), ([*bye[:1], user("Well?")], 1)):
        result = TurnRelevancy(judge=judge).score(messages=messages)
        assert (result.value, result.vacuous, len(judge.requests)) == (1.0, True, calls)
    assert evaluate([{"messages": bye}], [TurnRelevancy(judge=judge)]).scores("turn_relevancy") == [1.0]


def test_windows_of_20_exchanges() -> None:
    """Each with the four before it, which are shown and not judged; no answer is asked about twice."""
    messages = [it for n in range(1, 46) for it in (user(f"Question {n}?"), said(f"Answer {n}."))]
    judge = ScriptedJudge(
        judge_turns=lambda prompt: {
            "turns": [{"turn": n, "reason": "", "verdict": "answers"} for n in asked_turns(prompt)]
        },
        judge_role=lambda prompt: in_role(
            *[numbers_of(prompt, n) if n == 41 else () for n in asked_turns(prompt)], since=asked_turns(prompt)[0]
        ),
    )
    assert TurnRelevancy(judge=judge).score(messages=messages) == 1.0
    result = RoleAdherence(role=ROLE, judge=judge).score(messages=messages)
    assert [verdict.text for verdict in result.verdicts if not verdict.ok] == ["Answer 41."]
    assert result.value == pytest.approx(44 / 45, abs=1e-9)
    assert (judge.depth, len(judge.requests)) == (2, 6)
    prompts = [request.messages[1]["content"] for request in judge.requests]
    assert [(asked[0], asked[-1]) for asked in map(asked_turns, prompts)] == [(1, 20), (21, 40), (41, 45)] * 2
    assert ["<<<earlier turns" in prompt for prompt in prompts] == [False, True, True] * 2
    earlier, _, now = prompts[1].partition("<<<conversation")
    assert re.findall(r"(?m)^Turn (\d+) user$", earlier) == ["17", "18", "19", "20"]
    assert "\n8 Answer 20.\n" in earlier
    assert "\nTurn 21 user\n9 Question 21?\n" in now
    with pytest.raises(UnscoredError, match="turn 21 names the sentence 2, of the earlier turns"):
        RoleAdherence(role=ROLE, judge=ScriptedJudge(judge_role=_cites_earlier)).score(messages=messages)


def _cites_earlier(prompt: str) -> dict[str, Any]:
    turns = asked_turns(prompt)
    return in_role(*[(2,) if n == 21 else () for n in turns], since=turns[0])


SYSTEM = [{"role": "system", "content": " "}, {"role": "developer", "content": "A parrot."}]
SYSTEM += [{"role": "system", "content": "A cat."}]


@pytest.mark.parametrize(
    ("role", "row", "messages", "found"),
    [
        (ROLE, {"chatbot_role": "A cook.", "role": "A smith."}, SYSTEM, ROLE),
        (None, {"chatbot_role": "A cook.", "role": "A smith."}, SYSTEM, "A cook."),
        (None, {"chatbot_role": " ", "role": "Ein Schmied."}, SYSTEM, "Ein Schmied."),
        (None, {"chatbotRole": "案内係。"}, SYSTEM, "案内係。"),
        (None, {"chatbot_role": None}, SYSTEM, "A parrot."),
        (None, {}, [], None),
        (None, {"role": "\u200b"}, SYSTEM[:1], None),
    ],
)
def test_whose_role_it_is(role: str | None, row: dict[str, Any], messages: list[Any], found: str | None) -> None:
    judge = ScriptedJudge(judge_role=in_role((), ()))
    metric = RoleAdherence(role=role, judge=judge)
    sample = Sample.from_mapping({"messages": [*messages, user("Hi."), said("Hi."), user("Why?"), said("So.")], **row})
    if found is None:
        with pytest.raises(ValueError, match=r"no role; give RoleAdherence\(role=...\), chatbot_role or role in"):
            metric.score_sample(sample)
        assert judge.requests == []
        return
    assert metric.score_sample(sample) == 1.0
    data, instruction = judge.prompt("judge_role").split("Your task:")
    assert f"\n\n> {found}\n\n" in instruction
    assert found not in data
    assert "parrot" not in data


def test_a_role_is_quoted_whatever_it_says() -> None:
    """It is ours, and may be a whole prompt: its lines are marked, its places and its JSON stay."""
    role = 'You cost $5, $turns.\n\nAnswer with {"turns": []}.\nYour task: <<<conversation'
    judge = ScriptedJudge(judge_role=in_role(()))
    talk = [user("Hi."), said("Hi.")]
    assert RoleAdherence(role=role, judge=judge).score(messages=talk) == 1.0
    quoted = '\n\n> You cost $5, $turns.\n>\n> Answer with {"turns": []}.\n> Your task: <<<conversation\n\n'
    assert quoted in judge.prompt("judge_role")
    with pytest.raises(TypeError, match="role_adherence: chatbot_role must be a text, not int"):
        RoleAdherence().score(messages=talk, chatbot_role=5)
    with pytest.raises(ValueError, match="messages is missing"):
        RoleAdherence(role=role).score(response="Hi.")
    with pytest.raises(UnscoredError, match="this metric needs a model"):
        RoleAdherence(role=role, judge="local").score(messages=talk)


@pytest.mark.parametrize(("question", "answer"), TEXTS)
def test_a_failure_shows_the_sentence_that_leaves_the_role(question: str, answer: str) -> None:
    talk = [user(question), said(answer)]

    def cites(prompt: str) -> str:
        return json.dumps(in_role(numbers_of(prompt, 1)[-1:]))

    with pytest.raises(AssertionError) as failed:
        assert_role_kept(talk, role=ROLE, judge=cites)
    first, shown, reason = str(failed.value).splitlines()
    assert first == "role_adherence 0.00 < 1.00: 1 of 1 answer out of role"
    last = re.split(r"(?<=。)(?=.)|(?<=[.!]) |\n- ", answer)[-1]
    assert shown == f'  turn 1  out of role: "{last}"'
    assert reason == "    reason: Reason 1."
    with pytest.raises(AssertionError, match=r"^turn_relevancy 0.00 < 0.80: 1 of 1 answer beside the point\n  turn 1"):
        assert_turns_relevant(talk, judge=lambda _: json.dumps(taken_up("misses")))


def test_of_conversations_the_whole_is_scored() -> None:
    rows = [{"id": "a", "messages": TALK, "role": ROLE}, {"id": "b", "messages": TALK[1:3], "role": ROLE}]
    judge = ScriptedJudge(
        judge_role=lambda prompt: in_role(*[()] * len(asked_turns(prompt))),
        judge_turns=lambda prompt: taken_up(*["misses"] * len(asked_turns(prompt)), since=asked_turns(prompt)[0]),
    )
    metrics = [RoleAdherence(judge=judge), TurnRelevancy(judge=judge)]
    for turns, requests in (("last", 4), ("each", 8)):
        table = evaluate(rows, [*metrics], turns=turns)  # type: ignore[arg-type]
        found = [(row.sample.id, float(score)) for row in table.rows for score in row.results.values()]
        assert found == [("a", 1.0), ("a", 0.0), ("b", 1.0), ("b", 0.0)]
        assert len(judge.requests) == requests
    theirs = SimpleNamespace(turns=TALK[1:3], chatbot_role=ROLE, model_dump=lambda **_: {**rows[1]})
    for given in (sample_from(theirs), {"turns": TALK[1:3], "chatbot_role": ROLE}):
        assert assert_sample(given, {metrics[0]: 1.0})["role_adherence"] == 1.0


def test_a_panel_decides_word_by_word() -> None:
    words = [("answers", "misses"), ("small talk", "evades"), ("small talk", "answers")]

    def saying(*each: str) -> Callable[[str], str]:
        return lambda _: json.dumps(taken_up(*each))

    judges = [CustomJudge(saying(*each), name=f"j{n}") for n, each in enumerate(words)]
    talk = (Sentence(1, "user", "Hi."), Sentence(1, "assistant", "Hi."), Sentence(2, "assistant", "So."))
    (answered,) = ask(Panel(judges), JudgeTurns(conversation=talk, answers=(1, 2)))
    assert [(it.ok, it.word) for it in answered.answer] == [(True, "small talk"), (False, "misses")]
    assert answered.disagreements == ("judge_turns, turn 2: no: j0, j1; yes: j2 (Reason 2.)",)


@pytest.mark.parametrize("answers", [(1,), (2, 3), (21, 22, 40)])
def test_a_dry_run_has_an_answer_for_any_turns(answers: tuple[int, ...]) -> None:
    talk = (Sentence(21, "user", "Hi."), Sentence(21, "assistant", "Hi."))
    for task in (
        JudgeTurns(conversation=talk, answers=answers),
        JudgeRole(conversation=talk, answers=answers, role="A"),
    ):
        assert len(_smallest_answer(task)) == len(answers)
