"""Telling whether a question asks what another asks already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pytest_ragmetrics.text.facts.content_words import telling_words
from pytest_ragmetrics.text.facts.tokens import word_tokens

# Of a hundred: how alike two questions are that ask the same, and two spellings of one word.
_ALIKE = 80


_Drawer = tuple[tuple[str, ...], frozenset[str]]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with its words, and the stems of those that carry its content."""

    text: str
    words: tuple[str, ...]
    keys: frozenset[str]

    @property
    def said(self) -> str:
        return " ".join(self.words)

    @property
    def drawer(self) -> _Drawer:
        """What two questions that ask the same have in common: their first word and their numbers."""
        return self.words[:1], frozenset(key for key in self.keys if any(map(str.isdigit, key)))


class Asked:
    """The questions that a golden set has, to find one that asks the same in nearly the same words.

    Those that begin with another word (when, where) or differ in a name or a number are others.

    >>> asked = Asked(["How deep is the lake Aru?", "When was it dug in 1887?"])
    >>> asked.same("How deep is lake Aru?"), asked.same("How deep is the lake Oro?")
    ('How deep is the lake Aru?', None)
    """

    def __init__(self, questions: Iterable[str] = ()) -> None:
        self._drawers: defaultdict[_Drawer, list[_Question]] = defaultdict(list)
        for question in questions:
            self.add(question)

    def add(self, question: str) -> None:
        """Take in a question."""
        read = _read(question)
        self._drawers[read.drawer].append(read)

    def same(self, question: str) -> str | None:
        """Return a question that asks the same, if there is one."""
        from rapidfuzz import fuzz

        mine = _read(question)
        others = self._drawers.get(mine.drawer, ())
        return next((other.text for other in others if _is_same(mine, other, fuzz.ratio)), None)


def _read(question: str) -> _Question:
    keys = frozenset(word.key for word in telling_words(question))
    return _Question(question, tuple(word_tokens(question)), keys)


def _is_same(one: _Question, other: _Question, alike: Callable[[str, str], float]) -> bool:
    if one.words == other.words:
        return True
    mine, theirs = one.keys - other.keys, other.keys - one.keys
    return (
        _are_spellings(mine, theirs, alike)
        and _are_spellings(theirs, mine, alike)
        and alike(one.said, other.said) >= _ALIKE
    )


def _are_spellings(words: frozenset[str], others: frozenset[str], alike: Callable[[str, str], float]) -> bool:
    """Tell whether each word is nearly one of the others."""
    return all(any(alike(word, other) >= _ALIKE for other in others) for word in words)
