"""What a metric may ask a judge.

A task is a frozen value: its inputs, the name of its prompt, the schema of its answer, and how to read that answer.
Texts, claims and contexts are numbered here and come back by number; whatever does not match is refused, so that
nothing is ever counted that a judge merely happened to return.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pytest_ragmetrics.judges.blocks import Block, show_contexts, show_numbered
from pytest_ragmetrics.judges.schema import (
    FLAG,
    NUMBER,
    TEXT,
    InvalidAnswer,
    Schema,
    distinct,
    hold,
    in_order,
    list_of,
    listed,
    one_of,
    record,
)
from pytest_ragmetrics.text.sentences import sentence_table

__all__ = [
    "AnswerQuestions",
    "Block",
    "Critique",
    "InvalidAnswer",
    "JudgeContexts",
    "Judgement",
    "ListClaims",
    "ListKeyPhrases",
    "RateCorrectness",
    "RateRelevance",
    "Rating",
    "SelectSentences",
    "Task",
    "VerifyClaims",
    "WriteClosedQuestions",
    "WriteQuestions",
]

A = TypeVar("A")

#: The best rating a judge may give; its steps are enumerated, and divided by this one here.
TOP_RATING = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """A yes or no with its reason; ``sentences`` are 0-based indexes into the sentence table of the contexts."""

    ok: bool
    reason: str
    sentences: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rating:
    """A step of an enumerated scale, brought to [0, 1], with its reason."""

    value: float
    reason: str


class Task(ABC, Generic[A]):
    """One question to a judge whose answer has the type ``A``.

    >>> task = ListClaims(text="Basil wilts when it is cold.")
    >>> task.read({"claims": ["Basil wilts when it is cold."]})
    ('Basil wilts when it is cold.',)
    """

    __slots__ = ()

    #: The name of the prompt, which is also the name of its file.
    prompt: ClassVar[str]

    #: The schema of the answer.
    form: ClassVar[Schema]

    @abstractmethod
    def blocks(self) -> tuple[Block, ...]:
        """Return the texts under test in the order a prompt shows them, the contexts first."""

    def fill(self) -> Mapping[str, str]:
        """Return the trusted values for the ``$name`` places of the prompt file."""
        return {}

    def schema(self) -> Schema:
        """Return the JSON schema of the answer."""
        return self.form

    def read(self, data: object) -> A:
        """Return the answer that stands in parsed JSON; raise :class:`InvalidAnswer` saying what is wrong with it."""
        return self._settle(hold(data, self.schema()))

    @abstractmethod
    def _settle(self, answer: Mapping[str, Any]) -> A:
        """Return what an answer of the right form says; raise :class:`InvalidAnswer` if its content is wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListClaims(Task[tuple[str, ...]]):
    """List the claims of a text, each understandable alone; the question helps to resolve its pronouns."""

    prompt: ClassVar[str] = "list_claims"
    form: ClassVar[Schema] = record(claims=list_of(TEXT))
    text: str
    question: str | None = None

    def blocks(self) -> tuple[Block, ...]:
        """Show the question, if there is one, and the text."""
        asked = () if self.question is None else (Block(label="question", text=self.question),)
        return (*asked, Block(label="text", text=self.text))

    def _settle(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct(answer["claims"], "claim")


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyClaims(Task[tuple[Judgement, ...]]):
    """Decide which claims the contexts support, and by which of their sentences; one judgement a claim, in order."""

    prompt: ClassVar[str] = "verify_claims"
    form: ClassVar[Schema] = record(
        verdicts=list_of(
            record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of("supported", "unsupported"))
        )
    )
    claims: tuple[str, ...]
    contexts: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the contexts and the numbered claims."""
        return (show_contexts(self.contexts), show_numbered("claims", self.claims))

    def _settle(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        last = len(sentence_table(self.contexts))
        verdicts = in_order(answer["verdicts"], len(self.claims), "claim")
        return tuple(_supported(verdict, last) for verdict in verdicts)


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteQuestions(Task[tuple[tuple[str, bool], ...]]):
    """Write ``count`` different questions that a response answers, each with whether it is noncommittal there."""

    prompt: ClassVar[str] = "write_questions"
    form: ClassVar[Schema] = record(questions=list_of(record(question=TEXT, noncommittal=FLAG)))
    response: str
    count: int

    def blocks(self) -> tuple[Block, ...]:
        """Show the response alone: the question it was given to must not be seen."""
        return (Block(label="response", text=self.response),)

    def fill(self) -> Mapping[str, str]:
        """Say how many questions are wanted."""
        return {"count": str(self.count)}

    def _settle(self, answer: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
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
    form: ClassVar[Schema] = record(phrases=list_of(TEXT))
    contexts: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the contexts."""
        return (show_contexts(self.contexts),)

    def _settle(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct(answer["phrases"], "phrase")


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteClosedQuestions(Task[tuple[str, ...]]):
    """Write yes-or-no questions about the key phrases whose answer, from the contexts, is yes."""

    prompt: ClassVar[str] = "write_closed_questions"
    form: ClassVar[Schema] = record(questions=list_of(TEXT))
    contexts: tuple[str, ...]
    phrases: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the contexts and the phrases."""
        return (show_contexts(self.contexts), show_numbered("phrases", self.phrases))

    def _settle(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        return distinct(answer["questions"], "question")


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerQuestions(Task[tuple[Judgement, ...]]):
    """Answer yes-or-no questions from a text alone; a judgement is ok when the text answers yes."""

    prompt: ClassVar[str] = "answer_questions"
    form: ClassVar[Schema] = record(answers=list_of(record(number=NUMBER, reason=TEXT, answer=one_of("yes", "no"))))
    text: str
    questions: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the text and the numbered questions."""
        return (Block(label="text", text=self.text), show_numbered("questions", self.questions))

    def _settle(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        answers = in_order(answer["answers"], len(self.questions), "question")
        return tuple(Judgement(ok=item["answer"] == "yes", reason=item["reason"].strip()) for item in answers)


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectSentences(Task[tuple[int, ...]]):
    """Choose the context sentences needed to answer a question: 0-based indexes, none if the contexts cannot."""

    prompt: ClassVar[str] = "select_sentences"
    form: ClassVar[Schema] = record(sentences=list_of(NUMBER))
    question: str
    contexts: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the contexts and the question."""
        return (show_contexts(self.contexts), Block(label="question", text=self.question))

    def _settle(self, answer: Mapping[str, Any]) -> tuple[int, ...]:
        return _indexes(answer["sentences"], len(sentence_table(self.contexts)), "the selection")


@dataclass(frozen=True, kw_only=True, slots=True)
class Critique(Task[Judgement]):
    """Decide whether a definition applies to a submission, given as ``(name, text)`` fields; ok when it does."""

    prompt: ClassVar[str] = "critique"
    form: ClassVar[Schema] = record(reason=TEXT, verdict=one_of("yes", "no"))
    definition: str
    fields: tuple[tuple[str, str], ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the fields, contexts among them first."""
        ordered = sorted(self.fields, key=lambda field: "context" not in field[0])
        return tuple(Block(label=name, text=text) for name, text in ordered)

    def fill(self) -> Mapping[str, str]:
        """Give the definition, which the author of the test wrote."""
        return {"definition": self.definition}

    def _settle(self, answer: Mapping[str, Any]) -> Judgement:
        return Judgement(ok=answer["verdict"] == "yes", reason=answer["reason"].strip())


_RATED = record(reason=TEXT, rating=one_of(*range(TOP_RATING + 1)))


@dataclass(frozen=True, kw_only=True, slots=True)
class RateRelevance(Task[Rating]):
    """Rate how well a response addresses the question."""

    prompt: ClassVar[str] = "rate_relevance"
    form: ClassVar[Schema] = _RATED
    question: str
    response: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the question and the response."""
        return (Block(label="question", text=self.question), Block(label="response", text=self.response))

    def _settle(self, answer: Mapping[str, Any]) -> Rating:
        return _rating(answer)


@dataclass(frozen=True, kw_only=True, slots=True)
class RateCorrectness(Task[Rating]):
    """Rate how far a response says what the reference says."""

    prompt: ClassVar[str] = "rate_correctness"
    form: ClassVar[Schema] = _RATED
    response: str
    reference: str

    def blocks(self) -> tuple[Block, ...]:
        """Show the reference and the response."""
        return (Block(label="reference", text=self.reference), Block(label="response", text=self.response))

    def _settle(self, answer: Mapping[str, Any]) -> Rating:
        return _rating(answer)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeContexts(Task[tuple[Judgement, ...]]):
    """Decide which contexts help to answer a question; one judgement a context, in order."""

    prompt: ClassVar[str] = "judge_contexts"
    form: ClassVar[Schema] = record(
        verdicts=list_of(record(number=NUMBER, reason=TEXT, verdict=one_of("relevant", "irrelevant")))
    )
    question: str
    contexts: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Show the contexts and the question."""
        return (show_contexts(self.contexts), Block(label="question", text=self.question))

    def _settle(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        verdicts = in_order(answer["verdicts"], len(self.contexts), "context")
        return tuple(Judgement(ok=item["verdict"] == "relevant", reason=item["reason"].strip()) for item in verdicts)


def _supported(verdict: Mapping[str, Any], last: int) -> Judgement:
    claim = f"claim {verdict['number']}"
    # A judge may cite one sentence twice; that changes nothing.
    sentences = _indexes(dict.fromkeys(verdict["sentences"]), last, claim)
    ok = verdict["verdict"] == "supported"
    if ok and not sentences:
        msg = f"{claim} is called supported, but no sentence that supports it is named"
        raise InvalidAnswer(msg)
    return Judgement(ok=ok, reason=verdict["reason"].strip(), sentences=sentences)


def _indexes(numbers: Iterable[int], last: int, place: str) -> tuple[int, ...]:
    chosen = tuple(numbers)
    unknown = [number for number in chosen if not 1 <= number <= last]
    if unknown:
        msg = f"{place} names the sentence {listed(unknown)}: there are sentences from 1 to {last}"
        raise InvalidAnswer(msg)
    if len(set(chosen)) < len(chosen):
        msg = f"{place} names a sentence more than once"
        raise InvalidAnswer(msg)
    return tuple(number - 1 for number in chosen)


def _rating(answer: Mapping[str, Any]) -> Rating:
    return Rating(value=answer["rating"] / TOP_RATING, reason=answer["reason"].strip())
