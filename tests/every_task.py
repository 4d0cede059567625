"""One task of each kind, with inputs of a sentence or two."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.tasks.conversations import Sentence, Told

CONTEXTS = ("The lake is 40 m deep. Pike live in it.", "The ferry crosses it twice a day.")
VERIFY = tasks.VerifyClaims(claims=("The lake is 40 m deep.", "The ferry is free."), contexts=CONTEXTS)
SELECT = tasks.SelectSentences(question="How deep is the lake?", contexts=CONTEXTS)
QUESTIONS = tasks.WriteQuestions(response="Pike live in the lake.", count=2)
TALK = (
    Sentence(1, "user", "A cabin for two, from Friday on."),
    Sentence(1, "assistant", "Cabin 7 has one bed."),
    Sentence(2, "user", "I need two."),
    Sentence(2, "assistant", "It is free on Friday."),
)
TOLD = (Told(1, "The user needs two beds."), Told(1, "The user comes on Friday.", 2))
_LISTED: tuple[Task[Any], ...] = (
    tasks.ListClaims(text="Pike live in it.", question="What lives in the lake?"),
    tasks.ListChosenClaims(text="Pike live in it.", question="What lives in it?", atomicity="low", coverage="low"),
    VERIFY,
    QUESTIONS,
    tasks.WriteClosedQuestions(contexts=CONTEXTS),
    tasks.AnswerQuestions(text="Pike live in the lake.", questions=("Do pike live in it?", "Is it deep?")),
    SELECT,
    tasks.Critique(definition="Is it polite?", fields=(("response", "Please."), ("retrieved_contexts", "None."))),
    tasks.RateRelevance(question="How deep?", response="40 m."),
    tasks.RateCorrectness(response="40 m.", reference="It is 40 m deep."),
    tasks.JudgeContexts(question="How deep is the lake?", contexts=CONTEXTS),
    tasks.FindContradictions(response="The lake is 14 m deep.", contexts=CONTEXTS),
    tasks.JudgeRefusal(question="How deep is the lake?", response="I cannot say."),
    tasks.ListEntities(contexts=CONTEXTS),
    tasks.RateContexts(question="How deep is the lake?", contexts=CONTEXTS),
    tasks.ReviewContexts(question="How deep is the lake?", contexts=CONTEXTS),
    tasks.RateGroundedness(response="It is 40 m deep.", contexts=CONTEXTS),
    tasks.ReviewGroundedness(response="It is 40 m deep.", contexts=CONTEXTS),
    tasks.RateAgreement(question="How deep is the lake?", first="40 m.", second="It is 40 m deep."),
    tasks.RateByRubric(steps=("Names no depth.", "Names a depth."), fields=(("response", "40 m."),)),
    tasks.RateByCriteria(definition="How deep is it?", highest=3, fields=(("response", "40 m."),)),
    tasks.JudgeGoal(turns=("user: A seat, please.", "assistant: Booked."), goal="A seat is booked."),
    tasks.ListTopics(turns=("user: How deep is the lake?", "assistant: 40 m.")),
    tasks.MatchTopics(topics=("depth",), allowed=("lakes", "pike")),
    tasks.JudgeTurns(conversation=TALK, answers=(1, 2)),
    tasks.JudgeRole(conversation=TALK, answers=(1, 2), role="A clerk who lets cabins."),
    tasks.JudgeUsefulness(question="How deep is the lake?", answer="40 m.", contexts=CONTEXTS),
    tasks.ListTold(conversation=TALK[::2]),
    tasks.JudgeKept(conversation=TALK, facts=TOLD),
    tasks.ListWishes(conversation=TALK[::2]),
    tasks.JudgeWishes(conversation=TALK, wishes=TOLD),
    tasks.WriteGoldenQuestion(passage=CONTEXTS[0], heading="Lakes"),
    tasks.WriteFollowUp(passage=CONTEXTS[0], earlier=("user: How deep is the lake?", "assistant: It is 40 m deep.")),
)


def _made(kind: type[Task[Any]]) -> Task[Any]:
    """Return a task by the types of its inputs."""
    declared: Any = kind
    needed = [it for it in fields(declared) if it.default is MISSING]
    return kind(**{it.name: CONTEXTS[0] if it.type == "str" else CONTEXTS for it in needed})


_KINDS = [kind for kind in vars(tasks).values() if isinstance(kind, type) and "prompt" in vars(kind)]
EVERY_TASK = (*_LISTED, *(_made(kind) for kind in _KINDS if kind not in map(type, _LISTED)))
