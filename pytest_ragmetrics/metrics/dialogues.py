"""Metrics of conversations as a whole, by a judge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from pytest_ragmetrics.core.result import Evidence, MetricResult
from pytest_ragmetrics.core.sample import Sample, Turn, read_turns
from pytest_ragmetrics.judges.tasks.conversations import Sentence
from pytest_ragmetrics.metrics.base import is_blank
from pytest_ragmetrics.metrics.conversations import beside_text, conversation, untrusted_turns
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.text.sentences import split_sentences

# A request shows so many exchanges at most, and so many before them.
_WINDOW, _BEFORE = 20, 4


class Window(NamedTuple):
    """The exchanges of a conversation that one request is about, by their sentences, and some before them.

    ``answers`` are the numbers of the turns that the assistant answers.
    """

    conversation: tuple[Sentence, ...]
    earlier: tuple[Sentence, ...]
    answers: tuple[int, ...]


class DialogueMetric(JudgedMetric):
    """A metric that shows a conversation to a judge, sentence by sentence.

    Takes ``messages``: an input of ``score()``, or in the ``metadata`` of a sample, whose question and response come
    after them. See :func:`~pytest_ragmetrics.core.messages.read_messages` for the forms. More than 20 exchanges are
    shown in several requests.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    extra_inputs: ClassVar[tuple[str, ...]] = ("messages",)
    of_conversation = True

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` when nothing is answered in a conversation, ``TypeError`` for what is no message."""
        if sample.metadata.get("messages") is None:
            raise ValueError(f"{self.name}: messages is missing; give it to score(), or in the metadata of the sample")
        if not any(map(_is_answered, read_turns(sample))):
            raise ValueError(f"{self.name}: the assistant says nothing in the messages; it needs an answer")

    def untrusted_texts(self, sample: Sample) -> Iterator[tuple[str, str]]:
        """Yield what was said and given to tools; the other fields are not shown."""
        yield from (("messages", text) for text in untrusted_turns(conversation(sample)))

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of the conversation."""
        return await self.judged_windows(windows_of(sample), sample, ask)

    @abstractmethod
    async def judged_windows(self, windows: Sequence[Window], sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of a conversation."""


def windows_of(sample: Sample) -> tuple[Window, ...]:
    """Return the exchanges of a conversation, 20 at a time, each with the 4 before them.

    >>> talk = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No. Sun."}]
    >>> [window.answers for window in windows_of(Sample(metadata={"messages": talk * 21}))]
    [(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20), (21,)]
    """
    turns = read_turns(sample)
    return tuple(
        Window(
            conversation=sentences_of(turns[start : start + _WINDOW]),
            earlier=sentences_of(turns[max(start - _BEFORE, 0) : start]),
            answers=tuple(turn.number for turn in turns[start : start + _WINDOW] if _is_answered(turn)),
        )
        for start in range(0, len(turns), _WINDOW)
    )


def sentences_of(turns: Iterable[Turn]) -> tuple[Sentence, ...]:
    """Return the sentences of some turns, with calls of tools and what is attached as sentences of their own.

    >>> talk = [{"role": "user", "content": "Hi. Rain?"}, {"role": "assistant", "tool_calls": [{"name": "look"}]}]
    >>> [tuple(it) for it in sentences_of(read_turns(Sample(metadata={"messages": talk})))]
    [(1, 'user', 'Hi.', 0, 0, 3), (1, 'user', 'Rain?', 0, 4, 9), (1, 'assistant', 'calls look()', 1, 0, 0)]
    """
    found = []
    for turn in turns:
        for place, (message, *_) in enumerate(turn.said):
            text, said_by = message.text, (turn.number, message.role)
            found += [Sentence(*said_by, text[start:end], place, start, end) for start, end in split_sentences(text)]
            found += [Sentence(*said_by, line, place) for line in beside_text(message)]
    return tuple(found)


def evidence_of(sentence: Sentence) -> Evidence:
    """Return a sentence of a conversation as evidence: its context is the message, by its place in the turn."""
    return Evidence(
        context=sentence.message, start=sentence.start, end=sentence.end, text=sentence.text, turn=sentence.turn
    )


def _is_answered(turn: Turn) -> bool:
    return turn.answer is not None and not is_blank(turn.said[turn.answer].message.text)
