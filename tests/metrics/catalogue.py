"""Every metric of the catalogue, made and scored: inputs that all of them take, and a judge that answers every task."""

from __future__ import annotations

from inspect import signature
from typing import Any, TypeVar

from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.local import LocalJudge
from pytest_ragmetrics.judges.tasks import JudgeKept, JudgeRole, JudgeTurns, JudgeWishes, Task
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import Answered, Transport
from pytest_ragmetrics.metrics import Metric
from pytest_ragmetrics.metrics.registry import built_in_metrics
from tests.fake_answers import by_words
from tests.scripted_judge import Entry, ScriptedJudge, claims, goal, matches, rated, says, topics

A = TypeVar("A")
KINDS = built_in_metrics()
_CALL = {"name": "timetable", "args": {"island": "Heron Island", "day": "Sunday"}}
#: The texts of one sample, in which most metrics score something between 0 and 1.
TEXTS: dict[str, Any] = {
    "user_input": "Who built the café of Heron Island, and what does a return ticket cost?",
    "response": (
        "Zoë Müller built the café in May 1903 [1]. A return ticket costs 14.50 euros, and “children travel free of "
        "charge” [2]. The ferry leaves at 9 from Lund Pier. It has a piano bar."
    ),
    "reference": "Zoë Müller built the café. A return ticket costs 14.50 euros. The last ferry leaves at 18:30.",
    "retrieved_contexts": [
        "Zoë Müller built the café on Heron Island in May 1903. It has 40 seats.",
        "A return ticket costs 14.50 euros. Children travel free of charge.",
        "The ferry does not leave on Mondays. The naïve heron nests by the pier.",
    ],
    "reference_contexts": [
        "Zoë Müller built the café on Heron Island in May 1903.",
        "A return ticket costs 14.50 euros. Dogs need a ticket, too.",
    ],
    "retrieved_context_ids": ["a", "b", "c"],
    "reference_context_ids": ["b", "d"],
}
INPUTS: dict[str, Any] = {
    **TEXTS,
    "metadata": {
        "messages": [
            {"role": "user", "content": "When does the ferry to Heron Island leave?"},
            {"role": "assistant", "content": "At 9.", "tool_calls": [_CALL]},
        ],
        "reference_tool_calls": [{"name": "timetable", "args": {"island": "Heron Island", "day": "Monday"}}],
        "reference_topics": ["ferries"],
        "chatbot_role": "A guide to the ferries.",
        "must_contain": ["14.50", ["Zoe Muller", "Zoë Müller"], "the last ferry"],
        "must_not_contain": ["I do not know"],
        "criteria": ["It names a price.", "It names the last ferry."],
        "latency": 0.84,
        "first_token": 0.31,
        "cost": 0.0031,
    },
}
_SCRIPT: dict[str, Entry] = {
    "list_chosen_claims": claims("Zoë Müller built the café."),
    "critique": says("yes"),
    "rate_by_rubric": rated(2),
    "rate_by_criteria": rated(2),
    "judge_goal": goal("reached"),
    "list_topics": topics(ferry=True),
    "match_topics": matches(1),
    "judge_kept": by_words(JudgeKept),
    "judge_wishes": by_words(JudgeWishes),
    "judge_turns": by_words(JudgeTurns),
    "judge_role": by_words(JudgeRole),
}
#: What a name alone does not make.
NEEDED: dict[str, dict[str, Any]] = {
    "AspectCritique": {"definition": "Is it polite?"},
    "Rubric": {"steps": ["Rude.", "Polite.", "Warm."]},
    "CriteriaMet": {"criteria": "It names a date."},
    "SimpleCriteria": {"definition": "How polite is it?"},
}


class CatalogueJudge(Judge):
    """The local judge, with a script for the tasks that it has no rule for."""

    def __init__(self) -> None:
        self.name = "catalogue"
        self._local, self._scripted = LocalJudge(), ScriptedJudge(**_SCRIPT)

    async def ask(self, task: Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:
        judge = self._scripted if task.prompt in _SCRIPT else self._local
        return await judge.ask(task, vote=vote, transport=transport)


def made(kind: type[Metric], **parameters: Any) -> Metric:
    taken = signature(kind).parameters.keys()
    asked = {"judge": CatalogueJudge(), "embedder": "local", **parameters}
    given = {name: value for name, value in asked.items() if name in taken or name in parameters.keys() - {"judge"}}
    return kind(**{**NEEDED.get(kind.__name__, {}), **given})
