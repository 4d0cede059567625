"""Tasks about conversations as a whole, whose sentences are numbered, and whose answers name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import ClassVar, NamedTuple

from pytest_ragmetrics.judges.schema import InvalidAnswer, listed
from pytest_ragmetrics.judges.tasks.task import A, Block, Task, indexes, on_one_line, show


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


class ConversationTask(Task[A]):
    """A task on a conversation, before which some of its turns are shown as ``earlier`` ones: they are not judged.

    Its sentences are numbered through, those of the earlier turns first.
    """

    __slots__ = ()

    on_earlier: ClassVar[str] = (
        "The earlier turns come right before the conversation: read it as their continuation, and decide about the "
        "conversation alone."
    )
    conversation: tuple[Sentence, ...]
    earlier: tuple[Sentence, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Return the conversation, a line a sentence, and the other texts."""
        before = [] if not self.earlier else [Block(label="earlier turns", text=numbered(self.earlier))]
        after = Block(label="conversation", text=numbered(self.conversation, first=len(self.earlier) + 1))
        others = ((name, getattr(self, name)) for name in self.shown)
        return (*before, after, *(block for name, value in others if value for block in show(name, value)))

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
