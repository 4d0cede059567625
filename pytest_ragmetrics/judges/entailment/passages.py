"""The passages of the contexts that a claim is held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pytest_ragmetrics.judges.overlap import keys, sentences_of
from pytest_ragmetrics.text.sentences import sentence_table

# Of the sentences that share most words with a claim: how many are tried alone, and how many together.
_ALONE = 3
_TOGETHER = 6

#: Returns how many tokens each of some texts has.
Lengths = Callable[[Sequence[str]], Sequence[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """Some sentences of the contexts as one premise; ``sentences`` are 0-based indexes into their sentence table."""

    sentences: tuple[int, ...]
    text: str


class Passages:
    """The sentences of some contexts, cut into passages of at most ``room`` tokens.

    A longer sentence is a passage of its own.
    """

    def __init__(self, contexts: tuple[str, ...], *, lengths: Lengths, room: int) -> None:
        self._table = sentence_table(contexts)
        self._texts = [plain(sentence.text) for sentence in self._table]
        self._index = sentences_of(contexts)
        self._lengths = lengths(self._texts) if self._texts else ()
        self._room = room
        #: All sentences, those of a context in order, each passage beginning in the middle of the one before.
        self.running = tuple(
            passage
            for _, rows in groupby(range(len(self._table)), key=lambda index: self._table[index].context)
            for passage in self._run(list(rows))
        )

    def candidates(self, claim: str, *, most: int, context: int | None = None) -> tuple[Passage, ...]:
        """Return the passages to hold a claim against, of all contexts or of one; empty where there is no sentence.

        They are: the sentences that share most words with the claim, each alone; these together, wherever they stand;
        and the running passages, those ``most`` that share most words with it where there are more.
        """
        shared = self._index.shared(keys(claim))
        near = [
            index for index in sorted(shared, key=lambda index: (-shared[index], index)) if self._is_in(index, context)
        ]
        chosen = [self._passage((index,)) for index in near[:_ALONE]]
        gathered = self._fitting(near[:_TOGETHER])
        if len(gathered) > 1:
            chosen.append(self._passage(gathered))
        running = [passage for passage in self.running if self._is_in(passage.sentences[0], context)]
        # Sorting is stable: where nothing is shared, the first ones are taken.
        running.sort(key=lambda passage: -sum(shared[index] for index in passage.sentences))
        unique = {passage.sentences: passage for passage in (*chosen, *running[:most])}
        return tuple(unique.values())

    def sharing(self, claim: str, sentences: Sequence[int]) -> tuple[int, ...]:
        """Return those of some sentences that share words with a claim."""
        shared = self._index.shared(keys(claim))
        return tuple(index for index in sentences if index in shared)

    def _run(self, inside: Sequence[int]) -> Sequence[Passage]:
        passages = []
        start = 0
        while start < len(inside):
            end, room = start + 1, self._room - self._lengths[inside[start]]
            while end < len(inside) and self._lengths[inside[end]] <= room:
                room -= self._lengths[inside[end]]
                end += 1
            passages.append(self._passage(tuple(inside[start:end])))
            start = len(inside) if end == len(inside) else max(start + 1, (start + end) // 2)
        return passages

    def _fitting(self, ranked: Sequence[int]) -> tuple[int, ...]:
        """Return the first of some sentences that fit together, in the order of the contexts."""
        chosen, room = [], self._room
        for index in ranked:
            if self._lengths[index] <= room:
                chosen.append(index)
                room -= self._lengths[index]
        return tuple(sorted(chosen))

    def _passage(self, sentences: tuple[int, ...]) -> Passage:
        return Passage(sentences=sentences, text=" ".join(self._texts[index] for index in sentences))

    def _is_in(self, index: int, context: int | None) -> bool:
        return context is None or self._table[index].context == context


def plain(text: str) -> str:
    r"""Return a text on one line, as the model is given it and as its answer is kept.

    >>> plain("Ivy\n  climbs.")
    'Ivy climbs.'
    """
    return " ".join(text.split())
