"""Tasks about conversations as a whole, whose sentences are numbered, and whose answers name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from pytest_ragmetrics.judges.schema import (
    NUMBER,
    TEXT,
    InvalidAnswer,
    Schema,
    distinct,
    in_order,
    list_of,
    listed,
    one_of,
    record,
)
from pytest_ragmetrics.judges.tasks.task import A, Block, Judgement, Task, decided, indexes, on_one_line, show


class Sentence(NamedTuple):
    """A sentence of a conversation, or a call in it: its turn, who says it, and where.

    ``message`` is the place of the message in its turn, ``start`` and ``end`` are offsets in the text of that, both 0
    for what is no part of it.
    """

    turn: int
    speaker: str
    text: str
    message: int = 0
    start: int = 0
    end: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationTask(Task[A]):
    """A task on a conversation, before which some of its turns are shown as ``earlier`` ones: they are not judged.

    Its sentences are numbered through, those of the earlier turns first.
    """

    on_earlier: ClassVar[str] = (
        "The earlier turns come right before the conversation: read it as their continuation, and decide about the "
        "conversation alone."
    )
    conversation: tuple[Sentence, ...]
    earlier: tuple[Sentence, ...] = ()

    def blocks(self) -> tuple[Block, ...]:
        """Return the conversation, a line a sentence, and the other texts."""
        before = [] if not self.earlier else [Block(label="earlier turns", text=numbered(self.earlier))]
        after = Block(label="conversation", text=numbered(self.conversation, first=len(self.earlier) + 1))
        others = ((name, getattr(self, name)) for name in self.shown)
        shown = [(name, it if isinstance(it, str) else [*map(str, it)]) for name, it in others if it]
        return (*before, after, *(block for name, value in shown for block in show(name, value)))

    def note(self) -> str:
        """Say what the earlier turns are."""
        return self.on_earlier if self.earlier else ""

    def cited(self, numbers: Iterable[int], subject: str, *, since: int = 1, until: int | None = None) -> list[int]:
        """Return sentence numbers as indexes into the conversation.

        Raises :class:`InvalidAnswer` unless the assistant says all of them, from the turn ``since`` to ``until``.
        """
        table = (*self.earlier, *self.conversation)
        found = indexes(dict.fromkeys(numbers), len(table), subject)
        wrong = {
            "which the assistant does not say": [n for n in found if table[n].speaker != "assistant"],
            "of the earlier turns": [n for n in found if n < len(self.earlier)],
            f"which is before turn {since}": [n for n in found if table[n].turn < since],
            f"which is after turn {until}": [n for n in found if until is not None and table[n].turn > until],
        }
        for what, places in wrong.items():
            if places:
                raise InvalidAnswer(f"{subject} names the sentence {listed([n + 1 for n in places])}, {what}")
        return [n - len(self.earlier) for n in found]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswersTask(ConversationTask[tuple[Judgement, ...]]):
    """A task with a verdict on some ``answers`` of a conversation, given by the numbers of their turns, in order.

    One that is ``good`` is ok; where the judge cites, any other one names sentences of its turn.
    """

    numbered = "answers"
    good: ClassVar[tuple[str, ...]]
    answers: tuple[int, ...]

    def fill(self) -> Mapping[str, str]:
        """Say which turns are judged."""
        return {"turns": listed(self.answers, len(self.answers))}

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        return tuple(map(self._judgement, in_order(answer["turns"], self.answers, "turn", field="turn")))

    def _judgement(self, entry: Mapping[str, Any]) -> Judgement:
        turn, word = entry["turn"], entry["verdict"]
        ok = word in self.good
        sentences: tuple[int, ...] = ()
        if "sentences" in entry and not ok:
            sentences = tuple(self.cited(entry["sentences"], f"turn {turn}", since=turn, until=turn))
            if not sentences:
                raise InvalidAnswer(f"turn {turn} is called {word}, but no sentence that shows it is named")
        return Judgement(ok=ok, reason=entry["reason"].strip(), sentences=sentences, word=word)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeTurns(AnswersTask):
    """Decide how each answer takes up what the user says; ok unless it evades or misses it."""

    prompt = "judge_turns"
    favourable = "answers"
    good = ("answers", "asks back", "small talk")
    form = record(turns=list_of(record(turn=NUMBER, reason=TEXT, verdict=one_of(*good, "evades", "misses"))))


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRole(AnswersTask):
    """Decide which answers keep to the role of the assistant, and which sentences of the others do not."""

    prompt = "judge_role"
    favourable = "in role"
    good = ("in role",)
    form = record(
        turns=list_of(
            record(turn=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of("out of role", "in role"))
        )
    )
    role: str

    def fill(self) -> Mapping[str, str]:
        """Give the role, which the author of the test wrote, each line of it marked."""
        lines = self.role.strip().splitlines()
        return {**AnswersTask.fill(self), "role": "\n".join(f"> {line}".rstrip() for line in lines)}


def numbered(sentences: Sequence[Sentence], *, first: int = 1) -> str:
    """Return sentences with their numbers, under a heading for each turn of a speaker.

    >>> print(numbered([Sentence(1, "user", "Hello."), Sentence(1, "user", "Rain?"), Sentence(1, "assistant", "No.")]))
    Turn 1 user
    1 Hello.
    2 Rain?
    Turn 1 assistant
    3 No.
    """
    lines = []
    for (turn, speaker), group in groupby(enumerate(sentences, start=first), key=lambda it: it[1][:2]):
        lines += [f"Turn {turn} {speaker}", *(f"{number} {on_one_line(it.text)}" for number, it in group)]
    return "\n".join(lines)


class Told(NamedTuple):
    """What the user says or wants, the turn of it, and the one in which the user corrects it, if any."""

    turn: int
    text: str
    until: int | None = None

    def __str__(self) -> str:
        """Return it as a line of a prompt."""
        turns = f"turn {self.turn}" if self.until is None else f"turns {self.turn} to {self.until}"
        return f"{turns}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ListSaid(ConversationTask[tuple[Told, ...]]):
    """A task that lists what the user says, in order, and returns it after what is ``known`` from earlier turns.

    Its conversation has the turns of the user alone.
    """

    shown = ("known",)
    #: The names of an entry and of its text.
    noun: ClassVar[str]
    known: tuple[Told, ...] = ()

    def note(self) -> str:
        """Say what the earlier turns and the known entries are."""
        known = 'What is "known" is listed already: leave it out, and count on from its last number.'
        return " ".join(filter(None, [ConversationTask.note(self), known if self.known else ""]))

    def by_rule(self) -> tuple[Told, ...]:
        """Return the first sentence of each turn: something to judge, where a model is not asked."""
        first = {it.turn: Told(it.turn, it.text) for it in reversed(self.conversation)}
        return (*self.known, *(first[turn] for turn in sorted(first)))

    def _listed(self, answer: Mapping[str, Any]) -> tuple[Told, ...]:
        (entries,) = answer.values()
        texts = [entry[self.noun] for entry in entries]
        turns = {it.turn for it in self.conversation}
        last = 0
        distinct(texts, self.noun)
        for number, turn in enumerate((entry["turn"] for entry in entries), start=1):
            if turn not in turns:
                raise InvalidAnswer(f"{self.noun} {number} names turn {turn}, in which the user says nothing")
            if turn < last:
                raise InvalidAnswer(f"{self.noun} {number} is of turn {turn}, before turn {last}: list them in order")
            last = turn
        return tuple(Told(entry["turn"], text.strip()) for entry, text in zip(entries, texts, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class ListTold(ListSaid):
    """List the facts of the user that later answers must respect; a corrected fact holds until its correction."""

    prompt = "list_told"
    noun = "fact"
    form = record(facts=list_of(record(turn=NUMBER, fact=TEXT, replaces=NUMBER)))

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Told, ...]:
        facts = [*self.known]
        for fact, entry in zip(self._listed(answer), answer["facts"], strict=True):
            number = entry["replaces"]
            if not 0 <= number <= len(facts):
                there = f"before it there are 1 to {len(facts)}, and 0 is none" if facts else "it is the first: write 0"
                raise InvalidAnswer(f"fact {len(facts) + 1} replaces fact {number}: {there}")
            if number and facts[number - 1].until is None:
                facts[number - 1] = facts[number - 1]._replace(until=fact.turn)
            facts.append(fact)
        return tuple(facts)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListWishes(ListSaid):
    """List what the user wants to know or have done, each once."""

    prompt = "list_wishes"
    noun = "wish"
    form = record(wishes=list_of(record(turn=NUMBER, wish=TEXT)))

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Told, ...]:
        wishes = (*self.known, *self._listed(answer))
        if len(distinct([it.text for it in wishes], self.noun)) < len(wishes):
            raise InvalidAnswer("a wish is listed more than once")
        return wishes


def _verdicts(name: str, *words: str) -> Schema:
    entry = record(number=NUMBER, reason=TEXT, sentences=list_of(NUMBER), verdict=one_of(*words))
    return record(**{name: list_of(entry)})


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeSaid(ConversationTask[tuple[Judgement, ...]]):
    """A task with a verdict on each entry of a list, of which those that are not ``bare`` name sentences that show it.

    The assistant says these in the turn of the entry or later, and in the turn that corrects it at the latest.
    """

    noun: ClassVar[str]
    bare: ClassVar[tuple[str, ...]]

    def _parse(self, answer: Mapping[str, Any]) -> tuple[Judgement, ...]:
        ((field, entries),) = answer.items()
        said: tuple[Told, ...] = getattr(self, field)
        judgements = []
        for it, entry in zip(said, in_order(entries, len(said), self.noun), strict=True):
            subject, word = f"{self.noun} {entry['number']}", entry["verdict"]
            sentences: list[int] = []
            if word not in self.bare:
                sentences = self.cited(entry["sentences"], subject, since=it.turn, until=it.until)
                if not sentences:
                    raise InvalidAnswer(f"{subject} is called {word}, but no sentence that shows it is named")
            found = decided(entry, self.favourable or "")
            judgements.append(replace(found, sentences=tuple(sentences), word=word))
        return tuple(judgements)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeKept(JudgeSaid):
    """Decide whether the answers after each fact respect it; ok when they do."""

    prompt = "judge_kept"
    numbered = "facts"
    favourable = "kept"
    noun = "fact"
    bare = ("kept",)
    shown = ("facts",)
    form = _verdicts("facts", "kept", "asked again", "contradicted")
    facts: tuple[Told, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeWishes(JudgeSaid):
    """Decide whether each wish of the user is met, or withdrawn; ``reference`` is the intended outcome."""

    prompt = "judge_wishes"
    numbered = "wishes"
    favourable = "met"
    noun = "wish"
    bare = ("withdrawn", "unmet")
    shown = ("wishes", "reference")
    form = _verdicts("wishes", "met", "declined", "withdrawn", "unmet")
    wishes: tuple[Told, ...]
    reference: str | None = None
