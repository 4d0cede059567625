"""Tasks about contexts: which of them, or of their sentences, help to answer a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_ragmetrics.judges.schema import (
    NUMBER,
    TEXT,
    InvalidAnswer,
    Schema,
    in_order,
    list_of,
    listed,
    one_of,
    record,
)
from pytest_ragmetrics.judges.tasks.task import Block, Judgement, Task, cited, indexes, show_contexts
from pytest_ragmetrics.text.sentences import sentence_table


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectSentences(Task[tuple[int, ...]]):
    """Choose the context sentences needed to answer a question: 0-based indexes, none if the contexts cannot."""

    prompt: ClassVar[str] = "select_sentences"
    shown: ClassVar[tuple[str, ...]] = ("contexts", "question")
    form: ClassVar[Schema] = record(sentences=list_of(NUMBER))
    question: str
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[int, ...]:
        return indexes(answer["sentences"], len(sentence_table(self.contexts)), "the selection")


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeContexts(Task[tuple[Judgement, ...]]):
    """Decide which contexts help to answer a question; one judgement a context, in order."""

    prompt: ClassVar[str] = "judge_contexts"
    shown: ClassVar[tuple[str, ...]] = ("contexts", "question")
    form: ClassVar[Schema] = record(
        verdicts=list_of(record(number=NUMBER, reason=TEXT, verdict=one_of("relevant", "irrelevant")))
    )
    question: str
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        verdicts = in_order(answer["verdicts"], len(self.contexts), "context")
        return tuple(Judgement(ok=item["verdict"] == "relevant", reason=item["reason"].strip()) for item in verdicts)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeUsefulness(Task[Judgement]):
    """Decide whether one context was of use to arrive at an answer, and by which of its sentences."""

    prompt: ClassVar[str] = "judge_usefulness"
    form: ClassVar[Schema] = record(reason=TEXT, sentences=list_of(NUMBER), verdict=one_of("useful", "useless"))
    question: str
    answer: str
    context: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the context, the question and the answer."""
        asked = (Block(label="question", text=self.question), Block(label="answer", text=self.answer))
        return (show_contexts((self.context,)), *asked)

    def _parse(self, answer: Mapping[str, Any]) -> Judgement:
        return cited(answer, "useful", last=len(sentence_table((self.context,))), subject="the context")


@dataclass(frozen=True, kw_only=True, slots=True)
class FindContradictions(Task[tuple[Judgement, ...]]):
    """Decide for each context whether a response contradicts it, and which of its sentences; ok when it does."""

    prompt: ClassVar[str] = "find_contradictions"
    shown: ClassVar[tuple[str, ...]] = ("contexts", "response")
    form: ClassVar[Schema] = record(
        verdicts=list_of(
            record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of("contradicted", "compatible"))
        )
    )
    response: str
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        table = sentence_table(self.contexts)
        judgements = []
        for index, verdict in enumerate(in_order(answer["verdicts"], len(self.contexts), "context")):
            subject = f"context {index + 1}"
            judgement = cited(verdict, "contradicted", last=len(table), subject=subject)
            elsewhere = [number + 1 for number in judgement.sentences if table[number].context != index]
            if elsewhere:
                msg = f"{subject} names the sentence {listed(elsewhere)}, which stands in another context"
                raise InvalidAnswer(msg)
            judgements.append(judgement)
        return tuple(judgements)
