"""Tasks about claims, entities and contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

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
from pytest_ragmetrics.judges.tasks.task import Judgement, ListTexts, Task, decided, indexes
from pytest_ragmetrics.text.sentences import sentence_table


def _verdicts(*words: str) -> Schema:
    return record(
        verdicts=list_of(record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of(*words)))
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedVerdicts(Task[tuple[Judgement, ...]]):
    """A task with a verdict on each of its ``numbered`` items; one that is ``word`` names the sentences that show it.

    A context is judged by sentences of its own.
    """

    envelope = _verdicts("supported", "unsupported", "useful", "useless", "contradicted", "compatible")
    numbered: ClassVar[str]
    word: ClassVar[str]
    contexts: tuple[str, ...]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        table = sentence_table(self.contexts)
        noun = self.numbered.removesuffix("s")
        judgements = []
        for index, verdict in enumerate(in_order(answer["verdicts"], len(getattr(self, self.numbered)), noun)):
            subject = f"{noun} {index + 1}"
            # A judge may cite one sentence twice; that changes nothing.
            sentences = indexes(dict.fromkeys(verdict["sentences"]), len(table), subject)
            if verdict["verdict"] == self.word and not sentences:
                raise InvalidAnswer(f"{subject} is called {self.word}, but no sentence that shows it is named")
            elsewhere = [number + 1 for number in sentences if table[number].context != index]
            if elsewhere and noun == "context":
                raise InvalidAnswer(f"{subject} names the sentence {listed(elsewhere)}, which is in another context")
            judgements.append(replace(decided(verdict, self.word), sentences=sentences))
        return tuple(judgements)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListClaims(ListTexts):
    """List the claims of a text, each understandable alone; the question resolves pronouns."""

    prompt = "list_claims"
    shown = ("earlier", "question", "text")
    noun = "claim"
    form = record(claims=list_of(TEXT))
    text: str
    question: str | None = None
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ListChosenClaims(ListTexts):
    """List claims of a chosen ``atomicity`` and ``coverage``, which are high in :class:`ListClaims`."""

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
class VerifyClaims(CitedVerdicts):
    """Decide which claims the contexts support, and by which sentences; one judgement a claim, in order."""

    prompt = "verify_claims"
    numbered = "claims"
    favourable = "supported"
    word = "supported"
    shown = ("contexts", "claims")
    form = _verdicts("supported", "unsupported")
    claims: tuple[str, ...]


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
    """Choose the context sentences needed to answer a question: 0-based indexes, none if the contexts cannot answer."""

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


# In one request: one for each context takes 7,100 tokens for eight of 2,000 characters instead of 4,100.
@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeUsefulness(CitedVerdicts):
    """Decide which contexts were of use to arrive at an answer, and which of their sentences, in order."""

    prompt = "judge_usefulness"
    numbered = "contexts"
    favourable = "useful"
    word = "useful"
    shown = ("contexts", "earlier", "question", "answer")
    form = _verdicts("useful", "useless")
    question: str
    answer: str
    earlier: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FindContradictions(CitedVerdicts):
    """Decide which contexts a response contradicts, and by which sentences; ok when it does.

    After earlier turns the question is shown.
    """

    prompt = "find_contradictions"
    numbered = "contexts"
    favourable = "compatible"
    word = "contradicted"
    shown = ("contexts", "earlier", "question", "response")
    form = _verdicts("contradicted", "compatible")
    response: str
    question: str | None = None
    earlier: tuple[str, ...] | None = None
