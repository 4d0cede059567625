"""Tasks about claims, entities and contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_ragmetrics.judges.schema import (
    NUMBER,
    TEXT,
    InvalidAnswer,
    in_order,
    list_of,
    listed,
    one_of,
    record,
)
from pytest_ragmetrics.judges.tasks.task import Judgement, ListTexts, Task, cited, decided, indexes
from pytest_ragmetrics.text.sentences import sentence_table

_WORDS = ("supported", "unsupported", "useful", "useless", "contradicted", "compatible")
#: The answers of all tasks that cite sentences for the verdicts on numbered items.
_VERDICTS = record(
    verdicts=list_of(record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of(*_WORDS)))
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListClaims(ListTexts):
    """List the claims of a text, each understandable alone; the question helps to resolve its pronouns."""

    prompt = "list_claims"
    shown = ("earlier", "question", "text")
    noun = "claim"
    form = record(claims=list_of(TEXT))
    text: str
    question: str | None = None
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ListChosenClaims(ListTexts):
    """List claims of a text like :class:`ListClaims`, which is of high ``atomicity`` and ``coverage``."""

    prompt = "list_chosen_claims"
    shown = ("earlier", "question", "text")
    filled = ("atomicity", "coverage")
    noun = "claim"
    form = record(claims=list_of(TEXT))
    text: str
    atomicity: Literal["low", "high"]
    coverage: Literal["low", "high"]
    question: str | None = None
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyClaims(Task[tuple[Judgement, ...]]):
    """Decide which claims the contexts support, and by which of their sentences; one judgement a claim, in order."""

    prompt = "verify_claims"
    numbered = "claims"
    favourable = "supported"
    envelope = _VERDICTS
    shown = ("contexts", "claims")
    form = record(
        verdicts=list_of(
            record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of("supported", "unsupported"))
        )
    )
    claims: tuple[str, ...]
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        last = len(sentence_table(self.contexts))
        verdicts = in_order(answer["verdicts"], len(self.claims), "claim")
        return tuple(
            cited(verdict, "supported", last=last, subject=f"claim {verdict['number']}") for verdict in verdicts
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ListEntities(ListTexts):
    """List the entities that some contexts name, each once."""

    prompt = "list_entities"
    shown = ("contexts",)
    noun = "entity"
    form = record(entities=list_of(TEXT))
    contexts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectSentences(Task[tuple[int, ...]]):
    """Choose the context sentences needed to answer a question: 0-based indexes, none if the contexts cannot."""

    prompt = "select_sentences"
    shown = ("contexts", "earlier", "question")
    form = record(sentences=list_of(NUMBER))
    question: str
    contexts: tuple[str, ...]
    earlier: tuple[str, ...] | None = None

    def _parse(self, answer: Mapping[str, Any]) -> tuple[int, ...]:
        return indexes(answer["sentences"], len(sentence_table(self.contexts)), "the selection")


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeContexts(Task[tuple[Judgement, ...]]):
    """Decide which contexts help to answer a question; one judgement a context, in order."""

    prompt = "judge_contexts"
    numbered = "contexts"
    favourable = "relevant"
    shown = ("contexts", "earlier", "question")
    form = record(verdicts=list_of(record(number=NUMBER, reason=TEXT, verdict=one_of("relevant", "irrelevant"))))
    question: str
    contexts: tuple[str, ...]
    earlier: tuple[str, ...] | None = None

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        verdicts = in_order(answer["verdicts"], len(self.contexts), "context")
        return tuple(decided(verdict, "relevant") for verdict in verdicts)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeUsefulness(Task[tuple[Judgement, ...]]):
    """Decide for each context whether it was of use to arrive at an answer, and which of its sentences, in order.

    One request for all: one for each would repeat instruction, question and answer, 7,100 tokens for eight contexts of
    2,000 characters instead of 4,100.
    """

    prompt = "judge_usefulness"
    numbered = "contexts"
    favourable = "useful"
    envelope = _VERDICTS
    shown = ("contexts", "earlier", "question", "answer")
    form = record(
        verdicts=list_of(
            record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of("useful", "useless"))
        )
    )
    question: str
    answer: str
    contexts: tuple[str, ...]
    earlier: tuple[str, ...] | None = None

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        return _by_context(answer, "useful", self.contexts)


@dataclass(frozen=True, kw_only=True, slots=True)
class FindContradictions(Task[tuple[Judgement, ...]]):
    """Decide for each context whether a response contradicts it, and which of its sentences; ok when it does."""

    prompt = "find_contradictions"
    numbered = "contexts"
    favourable = "compatible"
    envelope = _VERDICTS
    shown = ("contexts", "response")
    form = record(
        verdicts=list_of(
            record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of("contradicted", "compatible"))
        )
    )
    response: str
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        return _by_context(answer, "contradicted", self.contexts)


def _by_context(answer: Mapping[str, Any], word: str, contexts: tuple[str, ...]) -> tuple[Judgement, ...]:
    """Return whether each context is ``word``; raise unless each has one verdict, with sentences of its own."""
    table = sentence_table(contexts)
    judgements = []
    for index, verdict in enumerate(in_order(answer["verdicts"], len(contexts), "context")):
        subject = f"context {index + 1}"
        judgement = cited(verdict, word, last=len(table), subject=subject)
        elsewhere = [number + 1 for number in judgement.sentences if table[number].context != index]
        if elsewhere:
            raise InvalidAnswer(f"{subject} names the sentence {listed(elsewhere)}, which is in another context")
        judgements.append(judgement)
    return tuple(judgements)
