"""How far sentences cover a claim, by the words, numbers and negations they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytest_ragmetrics.result import Evidence
from pytest_ragmetrics.text.facts.content_words import telling_words
from pytest_ragmetrics.text.facts.dates import Date
from pytest_ragmetrics.text.facts.numbers import NumbersIn, find_numbers
from pytest_ragmetrics.text.sentences import sentence_table

_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|cannot|without|nicht|nie|kein\w*|ohne|ne|pas|jamais|nunca|não"
    r"|sin|non|mai|niet|geen)\b|n['\u2019]t\b|[不没無无非未]|\b(?:لا|لم|لن|ليس\w*|не|нет|नहीं)\b",
    re.IGNORECASE,
)
# Only a sentence that says nearly the same can be said to say the contrary.
_NEAR_COPY = 0.75


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """The sentences that cover a claim best, how much of its words they cover, and what speaks against them."""

    sentences: tuple[int, ...]
    coverage: float
    missing: tuple[str, ...] = ()
    negated: bool = False


def keys(text: str) -> frozenset[str]:
    """Return what a text is about: the keys of its telling words."""
    return frozenset(word.key for word in telling_words(text))


def coverage(wanted: frozenset[str], given: frozenset[str]) -> float:
    """Return the share of the wanted keys that are given; 0.0 where nothing is wanted.

    >>> coverage(frozenset("ab"), frozenset("bc"))
    0.5
    """
    return len(wanted & given) / len(wanted) if wanted else 0.0


class Sentences:
    """The sentences of some contexts, indexed by their words."""

    def __init__(self, table: Sequence[Evidence]) -> None:
        self._table = table
        self._keys = [keys(sentence.text) for sentence in table]
        self._having: dict[str, list[int]] = {}
        for index, sentence in enumerate(self._keys):
            for key in sentence:
                self._having.setdefault(key, []).append(index)

    def shared(self, wanted: Iterable[str]) -> Counter[int]:
        """Return how many of the wanted keys each sentence has, sentences without any left out."""
        return Counter(index for key in wanted for index in self._having.get(key, ()))

    def support(self, claim: str) -> Support:
        """Return the sentence that covers most of a claim, and the one that covers most of the rest."""
        wanted = keys(claim)
        best = self._best(wanted)
        if best is None:
            return Support(sentences=(), coverage=0.0)
        second = self._best(wanted - self._keys[best])
        chosen = (best,) if second is None else tuple(sorted((best, second)))
        said = "\n".join(self._table[index].text for index in chosen)
        numbers = NumbersIn(said)
        found = [number for number in find_numbers(claim) if isinstance(number, Date) or not number.plain]
        return Support(
            sentences=chosen,
            coverage=coverage(wanted, frozenset().union(*(self._keys[index] for index in chosen))),
            missing=tuple(number.text for number in found if numbers.locate(number) is None),
            negated=coverage(wanted, self._keys[best]) >= _NEAR_COPY
            and _is_negated(claim) != _is_negated(self._table[best].text),
        )

    def _best(self, wanted: Iterable[str]) -> int | None:
        """Return the sentence with most of the wanted keys, the first of equals."""
        shared = self.shared(wanted)
        return min(shared, key=lambda index: (-shared[index], index), default=None)


@lru_cache(maxsize=16)
def sentences_of(contexts: tuple[str, ...]) -> Sentences:
    """Return the sentences of contexts; several tasks ask for the same ones."""
    return Sentences(sentence_table(contexts))


def _is_negated(text: str) -> bool:
    return len(_NEGATION.findall(text)) % 2 == 1
