"""One model, one thread: what several tasks ask at the same time is answered in common batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

T = TypeVar("T")

Pair = tuple[str, str]
#: The numbers of a model for one pair, one a class.
Logits = Sequence[float]


class Scorer(Protocol):
    """A model that scores pairs of premise and hypothesis; it is used by one thread alone."""

    @property
    def labels(self) -> Sequence[str]:
        """What its classes are called, in the order of its numbers."""

    @property
    def limit(self) -> int:
        """How many tokens premise and hypothesis may have together."""

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return how many tokens each text has."""

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Logits]:
        """Return the numbers for each pair, in order."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    pairs: Sequence[Pair]
    answer: Future[list[Logits]] = field(default_factory=Future)


class Bench:
    """Where a scorer works, loaded by ``load`` when it is first needed and in its own thread.

    While it works on a batch, the pairs of other tasks gather, and are the next one; ``width`` of them are scored in
    one go, those of similar length together. A batch that fails is tried again task by task, so that none fails
    because of another.
    """

    def __init__(self, load: Callable[[], Scorer], *, width: int = 32) -> None:
        self._load = load
        self._width = width
        self._scorer: Scorer | None = None
        self._failure: Exception | None = None
        self._waiting: deque[_Asked] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nli")

    async def run(self, function: Callable[[Scorer], T]) -> T:
        """Return what a function makes of the scorer; raise what loading it raises."""
        return await asyncio.wrap_future(self._thread.submit(lambda: function(self._loaded())))

    async def score(self, pairs: Sequence[Pair]) -> list[Logits]:
        """Return the numbers for each pair; raise what the scorer raises."""
        if not pairs:
            return []
        asked = _Asked(pairs)
        self._waiting.append(asked)
        self._thread.submit(self._answer)
        return await asyncio.wrap_future(asked.answer)

    def close(self) -> None:
        """Do what is begun and no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        while self._waiting:
            self._waiting.popleft().answer.cancel()

    def _loaded(self) -> Scorer:
        if self._failure is not None:
            # To try again would take its time for every task, and come to the same.
            raise self._failure
        if self._scorer is None:
            try:
                self._scorer = self._load()
            except Exception as error:
                self._failure = error
                raise
        return self._scorer

    def _answer(self) -> None:
        """Score all that waits; who was called off in the meantime is left out."""
        batch = []
        while self._waiting:
            asked = self._waiting.popleft()
            if asked.answer.set_running_or_notify_cancel():
                batch.append(asked)
        try:
            self._score(batch)
        except Exception:  # noqa: BLE001 - it may be any one's fault; each is told its own below
            for asked in batch:
                self._score_alone(asked)

    def _score_alone(self, asked: _Asked) -> None:
        try:
            self._score([asked])
        except Exception as error:  # noqa: BLE001 - it is raised where the pairs were asked about
            asked.answer.set_exception(error)

    def _score(self, batch: Sequence[_Asked]) -> None:
        # The same pair is scored once, in the order of length: short ones are not padded to long ones.
        pairs = sorted({pair for asked in batch for pair in asked.pairs}, key=lambda pair: (sum(map(len, pair)), pair))
        scored: dict[Pair, Logits] = {}
        for start in range(0, len(pairs), self._width):
            some = pairs[start : start + self._width]
            scored.update(zip(some, self._loaded().logits(some), strict=True))
        for asked in batch:
            asked.answer.set_result([scored[pair] for pair in asked.pairs])
