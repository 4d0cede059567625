"""Tasks about conversations of an agent: its goal and its topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_ragmetrics.judges.schema import (
    FLAG,
    NUMBER,
    TEXT,
    InvalidAnswer,
    Schema,
    distinct,
    in_order,
    list_of,
    one_of,
    record,
)
from pytest_ragmetrics.judges.tasks.task import Block, Judgement, Task, show_numbered


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeGoal(Task[tuple[str, Judgement]]):
    """Decide whether a conversation, a turn an item, reached a goal, the user's own unless given; return it too."""

    prompt: ClassVar[str] = "judge_goal"
    form: ClassVar[Schema] = record(goal=TEXT, reason=TEXT, verdict=one_of("reached", "missed"))
    turns: tuple[str, ...]
    goal: str | None = None

    def blocks(self) -> tuple[Block, ...]:
        """Show the conversation, and the goal if there is one."""
        wanted = () if self.goal is None else (Block(label="goal", text=self.goal),)
        return (show_numbered("conversation", self.turns), *wanted)

    def _parse(self, answer: Mapping[str, Any]) -> tuple[str, Judgement]:
        goal = answer["goal"].strip()
        if not goal:
            msg = "goal is blank"
            raise InvalidAnswer(msg)
        judgement = Judgement(ok=answer["verdict"] == "reached", reason=answer["reason"].strip())
        return self.goal or goal, judgement


@dataclass(frozen=True, kw_only=True, slots=True)
class ListTopics(Task[tuple[tuple[str, bool], ...]]):
    """List the topics that the user of a conversation brought up, each with whether the assistant dealt with it."""

    prompt: ClassVar[str] = "list_topics"
    form: ClassVar[Schema] = record(topics=list_of(record(topic=TEXT, answered=FLAG)))
    turns: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the conversation."""
        return (show_numbered("conversation", self.turns),)

    def _parse(self, answer: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
        listed = answer["topics"]
        texts = distinct([item["topic"] for item in listed], "topic")
        if len(texts) < len(listed):
            msg = "a topic is listed more than once"
            raise InvalidAnswer(msg)
        return tuple((text, item["answered"]) for text, item in zip(texts, listed, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchTopics(Task[tuple[int | None, ...]]):
    """Decide for each topic to which of the allowed ones it belongs: its 0-based index, or ``None``."""

    prompt: ClassVar[str] = "match_topics"
    form: ClassVar[Schema] = record(matches=list_of(record(number=NUMBER, reason=TEXT, allowed=NUMBER)))
    topics: tuple[str, ...]
    allowed: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show both lists, numbered."""
        return (show_numbered("allowed topics", self.allowed), show_numbered("topics", self.topics))

    def _parse(self, answer: Mapping[str, Any]) -> tuple[int | None, ...]:
        matches = in_order(answer["matches"], len(self.topics), "topic")
        for match in matches:
            if not 0 <= match["allowed"] <= len(self.allowed):
                known = f"there are 1 to {len(self.allowed)}, and 0 for none"
                msg = f"topic {match['number']} names the allowed topic {match['allowed']}: {known}"
                raise InvalidAnswer(msg)
        return tuple(match["allowed"] - 1 if match["allowed"] else None for match in matches)
