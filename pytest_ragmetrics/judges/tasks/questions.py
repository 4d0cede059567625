"""Tasks about questions, and about the goals and topics of conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics.judges.schema import (
    FLAG,
    NUMBER,
    TEXT,
    InvalidAnswer,
    distinct,
    in_order,
    list_of,
    one_of,
    record,
)
from pytest_ragmetrics.judges.tasks.task import Judgement, ListTexts, Task, decided, indexes
from pytest_ragmetrics.text.sentences import sentence_table


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteQuestions(Task[tuple[tuple[str, bool], ...]]):
    """Write ``count`` questions that a response answers, each with whether the response is noncommittal.

    Equal questions are allowed, because a short response may answer only one.
    """

    prompt = "write_questions"
    # Not the question that was asked: it must not be seen.
    shown = ("earlier", "response")
    on_earlier = (
        "The response answers the next turn of that conversation, the question, which is not shown: write each "
        "question as it could be asked there, not as one that stands alone."
    )
    filled = ("count",)
    form = record(questions=list_of(record(question=TEXT, noncommittal=FLAG)))
    response: str
    count: int
    earlier: tuple[str, ...] | None = None

    def entries(self) -> int:
        """Return how many questions there are to be."""
        return self.count

    def _parse(self, answer: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
        written = answer["questions"]
        different = distinct([item["question"] for item in written], "question")
        if len(written) != self.count:
            msg = f"there must be exactly {self.count} different questions, not {len(different)} among {len(written)}"
            raise InvalidAnswer(msg)
        return tuple((item["question"].strip(), item["noncommittal"]) for item in written)


# In one request: two, for phrases and questions, take 8,300 tokens for eight contexts of 2,000 characters, not 4,200.
@dataclass(frozen=True, kw_only=True, slots=True)
class WriteClosedQuestions(ListTexts):
    """Write yes-or-no questions about the key phrases of the contexts, which the contexts answer with yes."""

    prompt = "write_closed_questions"
    shown = ("contexts",)
    noun = "question"
    form = record(questions=list_of(record(phrase=TEXT, question=TEXT)))
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct([item["question"] for item in answer["questions"]], self.noun)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerQuestions(Task[tuple[Judgement, ...]]):
    """Answer yes-or-no questions from a text alone; ok when the answer is yes."""

    prompt = "answer_questions"
    numbered = "questions"
    favourable = "yes"
    shown = ("text", "questions")
    form = record(answers=list_of(record(number=NUMBER, reason=TEXT, answer=one_of("yes", "no"))))
    text: str
    questions: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        answers = in_order(answer["answers"], len(self.questions), "question")
        return tuple(decided(item, "yes", field="answer") for item in answers)


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenQuestion:
    """A question with its answer; ``sentences`` are 0-based indexes into the sentence table of the passage."""

    question: str
    answer: str
    sentences: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteGoldenQuestion(Task[GoldenQuestion | None]):
    """Write a question that a passage answers, with its answer and the supporting sentences; ``None`` without one.

    ``heading`` has the headings above the passage; ``language`` defaults to the passage's; ``written`` are the existing
    questions about it. A question about two passages needs both.
    """

    prompt = "write_golden_question"
    shown = ("passage", "heading", "written")
    form = record(askable=FLAG, question=TEXT, sentences=list_of(NUMBER), answer=TEXT)
    passage: str | tuple[str, ...]
    heading: str | None = None
    language: str | None = None
    written: tuple[str, ...] | None = None

    def fill(self) -> Mapping[str, str]:
        """Say in which language to write."""
        return {"language": self.language or "their language"}

    def note(self) -> str:
        """Say which questions are not wanted: those that are written, and those that one of two passages answers."""
        notes = []
        if len(self.passages) > 1:
            notes.append(
                "The question must need a fact of each context, joined by what they share: nobody who has one of the "
                'contexts alone can answer it. Cite sentences of each. "askable" is false if there is no such question.'
            )
        if self.written:
            notes.append(
                "The questions already written are not wanted again: ask for a fact that none of them asks for. "
                '"askable" is false if there is none left.'
            )
        return " ".join(notes)

    @property
    def passages(self) -> tuple[str, ...]:
        """The texts that the sentences are numbered through."""
        return (self.passage,) if isinstance(self.passage, str) else self.passage

    def _parse(self, answer: Mapping[str, Any]) -> GoldenQuestion | None:
        if not answer["askable"]:
            return None
        # A sentence may be cited twice.
        last = len(sentence_table(self.passages))
        sentences = indexes(dict.fromkeys(answer["sentences"]), last, "the answer")
        question, reply = answer["question"].strip(), answer["answer"].strip()
        for name, text in (("question", question), ("answer", reply)):
            if not any(map(str.isalnum, text)):
                raise InvalidAnswer(f"{name} is blank, but askable is true")
        if not sentences:
            raise InvalidAnswer("no sentence that states the answer is named")
        return GoldenQuestion(question=question, answer=reply, sentences=tuple(sorted(sentences)))


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteFollowUp(WriteGoldenQuestion):
    """Write the next question of a conversation about a passage, which only the ``earlier`` turns make clear.

    The answer is as of :class:`WriteGoldenQuestion`.
    """

    prompt = "write_follow_up"
    shown = ("passage", "heading", "earlier")
    earlier: tuple[str, ...]

    def note(self) -> str:
        """Return nothing: the instruction says what the turns are for."""
        return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeGoal(Task[tuple[str, Judgement]]):
    """Decide whether a conversation reached its goal, the user's own unless given; return the goal too."""

    prompt = "judge_goal"
    shown = ("turns", "goal")
    form = record(goal=TEXT, reason=TEXT, verdict=one_of("reached", "missed"))
    turns: tuple[str, ...]
    goal: str | None = None

    def _parse(self, answer: Mapping[str, Any]) -> tuple[str, Judgement]:
        goal = answer["goal"].strip()
        if not goal:
            raise InvalidAnswer("goal is blank")
        return self.goal or goal, decided(answer, "reached")


@dataclass(frozen=True, kw_only=True, slots=True)
class ListTopics(Task[tuple[tuple[str, bool], ...]]):
    """List the topics of the user, each with whether the assistant dealt with it."""

    prompt = "list_topics"
    shown = ("turns",)
    form = record(topics=list_of(record(topic=TEXT, answered=FLAG)))
    turns: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
        listed = answer["topics"]
        texts = distinct([item["topic"] for item in listed], "topic")
        if len(texts) < len(listed):
            raise InvalidAnswer("a topic is listed more than once")
        return tuple((text, item["answered"]) for text, item in zip(texts, listed, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchTopics(Task[tuple[int | None, ...]]):
    """Decide to which allowed topic each topic belongs: its 0-based index, or ``None``."""

    prompt = "match_topics"
    numbered = "topics"
    shown = ("allowed", "topics")
    form = record(matches=list_of(record(number=NUMBER, reason=TEXT, allowed=NUMBER)))
    topics: tuple[str, ...]
    allowed: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[int | None, ...]:
        matches = in_order(answer["matches"], len(self.topics), "topic")
        for match in matches:
            if not 0 <= match["allowed"] <= len(self.allowed):
                known = f"there are 1 to {len(self.allowed)}, and 0 for none"
                raise InvalidAnswer(f"topic {match['number']} names the allowed topic {match['allowed']}: {known}")
        return tuple(match["allowed"] - 1 if match["allowed"] else None for match in matches)
