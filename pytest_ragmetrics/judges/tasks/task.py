"""The base class of tasks, the blocks of text they show, and the parts of their answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.judges.schema import InvalidAnswer, Schema, distinct, listed, validate
from pytest_ragmetrics.text.sentences import sentence_table


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A piece of text under test: data, never an instruction."""

    label: str
    text: str


#: What prompts call a field whose name they do not use.
_LABELS = {
    "turns": "conversation",
    "earlier": "conversation before the question",
    "allowed": "allowed topics",
    "passage": "contexts",
    "written": "questions already written",
    "first": "first answer",
    "second": "second answer",
}


_ON_TURNS = (
    "The submission is a conversation, turn by turn: its response is all that the assistant says and calls in it, its "
    "question the last turn of the user."
)


def show(name: str, value: Any) -> tuple[Block, ...]:
    """Return the blocks that show a field of a task.

    Contexts are shown as their sentences, numbered through, under a heading for each context; other texts numbered
    from 1. Each line of text under test begins with a number of ours, so it cannot pass for a heading or another line.
    Numbers of sentences are bare: brackets are two tokens more a sentence, and look like the citations of a text.
    The ``(name, text)`` of ``fields`` are a block each, contexts first; of a conversation each turn is one.

    >>> print(show("contexts", ("Basil wilts. It likes sun.", "[1] Ivy climbs."))[0].text)
    Context 1
    1 Basil wilts.
    2 It likes sun.
    Context 2
    3 [1] Ivy climbs.
    >>> print(show("claims", ("Basil wilts.", "Ivy climbs."))[0].text)
    1. Basil wilts.
    2. Ivy climbs.
    """
    if name == "fields":
        ordered = sorted(value, key=lambda field: "context" not in field[0])
        return tuple(Block(label=label, text=text) for label, text in ordered)
    label = _LABELS.get(name, name)
    if label == "contexts":
        return (_contexts((value,) if isinstance(value, str) else value),)
    if not isinstance(value, str):
        value = "\n".join(f"{number}. {on_one_line(text)}" for number, text in enumerate(value, start=1))
    return (Block(label=label, text=value),)


# Several tasks show the contexts of the same sample.
@lru_cache(maxsize=64)
def _contexts(contexts: tuple[str, ...]) -> Block:
    lines = [[f"Context {number}"] for number in range(1, len(contexts) + 1)]
    for number, sentence in enumerate(sentence_table(contexts), start=1):
        lines[sentence.context].append(f"{number} {on_one_line(sentence.text)}")
    return Block(label="contexts", text="\n".join(line for group in lines for line in group))


def on_one_line(text: str) -> str:
    """Return a text with single blanks for its white space."""
    return " ".join(text.split())


A = TypeVar("A")


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """A yes or no with its reason; ``sentences`` are 0-based indexes into the sentence table of the contexts.

    ``word`` is the verdict if there are more than two; then the sentences are of a conversation.
    """

    ok: bool
    reason: str
    sentences: tuple[int, ...] = ()
    word: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rating:
    """A step of an enumerated scale, brought to [0, 1], with its reason; ``step`` is its number on the scale."""

    value: float
    reason: str
    step: int = 0


class Task(ABC, Generic[A]):
    """One question to a judge whose answer has the type ``A``.

    >>> from pytest_ragmetrics.judges.tasks import ListClaims
    >>> task = ListClaims(text="Basil wilts when it is cold.")
    >>> task.read({"claims": ["Basil wilts when it is cold."]})
    ('Basil wilts when it is cold.',)
    """

    __slots__ = ()

    #: The name of the prompt, which is also the name of its file.
    prompt: ClassVar[str]

    #: The schema of the answer.
    form: ClassVar[Schema]

    #: The names of the fields with the texts under test, in the order a prompt shows them, the contexts first.
    shown: ClassVar[tuple[str, ...]] = ()

    #: What a prompt says of the turns before the question, where there are some.
    on_earlier: ClassVar[str] = (
        "The question is the next turn of the conversation before it: read the question, and what answers it, as said "
        "there."
    )

    #: The verdict on an item that needs no reason where reasons are wanted for the others alone; none for other tasks.
    favourable: ClassVar[str | None] = None

    #: The field whose items are numbered, where the answer has an entry for each of them.
    numbered: ClassVar[str | None] = None

    #: A form that has room for the answers of several tasks, which providers cache together only if it is the same.
    envelope: ClassVar[Schema | None] = None

    #: The names of the fields for the ``$name`` places of the prompt file: the author of the test wrote them.
    filled: ClassVar[tuple[str, ...]] = ()

    def blocks(self) -> tuple[Block, ...]:
        """Return the texts under test in the order of the prompt, without fields that are ``None``."""
        fields = ((name, getattr(self, name)) for name in self.shown)
        return tuple(block for name, value in fields if value is not None for block in show(name, value))

    def note(self) -> str:
        """Return what a prompt says of these texts, "" unless there is a conversation."""
        given = {name: getattr(self, name) for name in self.shown}
        if given.get("earlier") is not None:
            return self.on_earlier
        return _ON_TURNS if any(name.startswith("turn ") for name, _ in given.get("fields") or ()) else ""

    def fill(self) -> Mapping[str, str]:
        """Return the trusted values for the ``$name`` places of the prompt file."""
        return {name: str(getattr(self, name)) for name in self.filled}

    def schema(self) -> Schema:
        """Return the JSON schema of the answer."""
        return self.form

    def entries(self) -> int | None:
        """Return how many entries the answer has, ``None`` if the judge decides that."""
        return None if self.numbered is None else len(getattr(self, self.numbered))

    def read(self, data: object) -> A:
        """Return the answer in parsed JSON; raise :class:`InvalidAnswer` naming the fault."""
        return self._parse(validate(data, self.schema()))

    def by_rule(self) -> A:
        """Return the answer of the local judge; raise :class:`JudgeError` if it has no rule."""
        raise JudgeError(f"local (heuristic) has no rule for {self.prompt}; this metric needs a model")

    @abstractmethod
    def _parse(self, answer: Mapping[str, Any]) -> A:
        """Return what an answer of the right form says; raise :class:`InvalidAnswer` if its content is wrong."""


class ListTexts(Task[tuple[str, ...]]):
    """A task whose answer is one list of texts, each called ``noun``; those that say the same again are left out."""

    __slots__ = ()

    noun: ClassVar[str]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        (texts,) = answer.values()
        return distinct(texts, self.noun)


def indexes(numbers: Iterable[int], last: int, place: str) -> tuple[int, ...]:
    """Return sentence numbers as 0-based indexes; raise unless each exists and none is named twice."""
    chosen = tuple(numbers)
    unknown = [number for number in chosen if not 1 <= number <= last]
    if unknown:
        raise InvalidAnswer(f"{place} names the sentence {listed(unknown)}: there are sentences from 1 to {last}")
    if len(set(chosen)) < len(chosen):
        raise InvalidAnswer(f"{place} names a sentence more than once")
    return tuple(number - 1 for number in chosen)


def decided(answer: Mapping[str, Any], word: str, *, field: str = "verdict") -> Judgement:
    """Return whether the answer in a field is ``word``, with its reason."""
    return Judgement(ok=answer[field] == word, reason=answer["reason"].strip())
