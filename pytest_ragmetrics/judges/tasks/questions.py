"""Questions: writing them, and answering them from a text."""

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
from pytest_ragmetrics.judges.tasks.task import Judgement, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteQuestions(Task[tuple[tuple[str, bool], ...]]):
    """Write ``count`` different questions that a response answers, each with whether it is noncommittal there."""

    prompt: ClassVar[str] = "write_questions"
    # Not the question that was asked: it must not be seen.
    shown: ClassVar[tuple[str, ...]] = ("response",)
    form: ClassVar[Schema] = record(questions=list_of(record(question=TEXT, noncommittal=FLAG)))
    response: str
    count: int

    def fill(self) -> Mapping[str, str]:
        """Say how many questions are wanted."""
        return {"count": str(self.count)}

    def _parse(self, answer: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
        written = answer["questions"]
        texts = distinct([item["question"] for item in written], "question")
        if not len(texts) == len(written) == self.count:
            msg = f"there must be exactly {self.count} different questions, not {len(texts)} among {len(written)}"
            raise InvalidAnswer(msg)
        return tuple((text, item["noncommittal"]) for text, item in zip(texts, written, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class ListKeyPhrases(Task[tuple[str, ...]]):
    """List the phrases that a summary of the contexts should cover."""

    prompt: ClassVar[str] = "list_key_phrases"
    shown: ClassVar[tuple[str, ...]] = ("contexts",)
    form: ClassVar[Schema] = record(phrases=list_of(TEXT))
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct(answer["phrases"], "phrase")


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteClosedQuestions(Task[tuple[str, ...]]):
    """Write yes-or-no questions about the key phrases whose answer, from the contexts, is yes."""

    prompt: ClassVar[str] = "write_closed_questions"
    shown: ClassVar[tuple[str, ...]] = ("contexts", "phrases")
    form: ClassVar[Schema] = record(questions=list_of(TEXT))
    contexts: tuple[str, ...]
    phrases: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct(answer["questions"], "question")


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerQuestions(Task[tuple[Judgement, ...]]):
    """Answer yes-or-no questions from a text alone; a judgement is ok when the text answers yes."""

    prompt: ClassVar[str] = "answer_questions"
    shown: ClassVar[tuple[str, ...]] = ("text", "questions")
    form: ClassVar[Schema] = record(answers=list_of(record(number=NUMBER, reason=TEXT, answer=one_of("yes", "no"))))
    text: str
    questions: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        answers = in_order(answer["answers"], len(self.questions), "question")
        return tuple(Judgement(ok=item["answer"] == "yes", reason=item["reason"].strip()) for item in answers)
