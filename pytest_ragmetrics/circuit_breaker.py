"""How long providers are asked that do not answer, while many rows wait: one rule for tables and for running ahead."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_ragmetrics.context import EmbeddingTransport, Scoring, Session
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.judge import (
    CachedReply,
    Fetch,
    Judge,
    JudgeOutageError,
    JudgeUnavailableError,
    Reply,
    Request,
    Transport,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_ragmetrics.embedders.embedder import Embedder
    from pytest_ragmetrics.metrics.base import Metric

T = TypeVar("T")
Provider = tuple[str, str]

# With few requests in flight, a few questions that take too long are not yet an outage.
_FEWEST = 3
# Seconds from one attempt to ask again a provider that was given up to the next.
_TRUCE = 60.0


class CircuitBreaker:
    """Gives up a provider whose next request will fail as well, so that rows do not fail one by one after long retries.

    At once where no request can succeed (no credit, wrong key); after as many requests in a row that got no answer as
    ``width`` may be in flight, and three at least. What is kept is handed out all the same.
    """

    def __init__(self, width: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        #: How many requests in a row it takes that got no answer.
        self.most = max(_FEWEST, width)
        self._clock = clock
        self._unanswered: Counter[Provider] = Counter()
        self._given_up: dict[Provider, JudgeError] = {}
        self._next_try = clock()

    @property
    def is_out(self) -> bool:
        """Whether a provider was given up."""
        return bool(self._given_up)

    async def ask(self, provider: Provider, fetch: Callable[[], Awaitable[T]]) -> T:
        """Return what ``fetch`` does; raise what it raises, or why its provider, given up before, is not asked."""
        if provider in self._given_up:
            raise self._given_up[provider]
        try:
            answer = await fetch()
        except (JudgeUnavailableError, JudgeOutageError) as error:
            self._failed(provider, error)
            raise
        del self._unanswered[provider]
        return answer

    def relent(self) -> None:
        """Ask those anew that were given up, once each and not all the time: nobody has the patience of before."""
        if self._clock() >= self._next_try and self._given_up:
            self._next_try = self._clock() + _TRUCE
            self._unanswered.update(dict.fromkeys(self._given_up, self.most))
            self._given_up.clear()

    def _failed(self, provider: Provider, error: JudgeError) -> None:
        self._unanswered[provider] += 1
        if isinstance(error, JudgeUnavailableError):
            self._given_up.setdefault(provider, error)
        elif self._unanswered[provider] >= self.most:
            told = f"not asked any more, as {self.most} requests in a row went unanswered; the last: {error}"
            self._given_up.setdefault(provider, JudgeOutageError(told))


class GuardedSession:
    """A session as the metrics see it whose providers are asked with patience, and no longer than that."""

    def __init__(self, running: Session, patience: CircuitBreaker) -> None:
        self._running = running
        self._patience = patience

    def scored(self, scoring: Scoring) -> None:
        """Take note of a scoring."""
        self._running.scored(scoring)

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return a given judge, or that of a spec, or of the session."""
        return self._running.judge(given)

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        """Return a given embedder, or that of the run."""
        return self._running.embedder(given)

    @property
    def concurrency(self) -> int:
        """How many requests may be in flight."""
        return self._running.concurrency

    @property
    def votes(self) -> int:
        """How many judgements make a score."""
        return self._running.votes

    @property
    def dry_run(self) -> bool:
        """Whether requests are forecast and none is made."""
        return self._running.dry_run

    @property
    def metrics(self) -> Sequence[Metric | type[Metric]]:
        """The metrics that others registered."""
        return self._running.metrics

    @property
    def baseline(self) -> Path | None:
        """The file with the scores of an earlier run."""
        return self._running.baseline

    @property
    def desk(self) -> Transport:
        """Where requests to a judge are handed in."""
        return _GuardedTransport(self._running.desk, self._patience)

    @property
    def embedding_desk(self) -> EmbeddingTransport:
        """Where texts to embed are handed in."""
        return _GuardedEmbeddingTransport(self._running.embedding_desk, self._patience)


class _GuardedTransport:
    def __init__(self, desk: Transport, patience: CircuitBreaker) -> None:
        self._desk = desk
        self._patience = patience

    async def obtain(self, request: Request, fetch: Fetch) -> CachedReply:
        def fetched() -> Awaitable[Reply]:
            return self._patience.ask((request.kind, request.model), fetch)

        return await self._desk.obtain(request, fetched)


class _GuardedEmbeddingTransport:
    def __init__(self, desk: EmbeddingTransport, patience: CircuitBreaker) -> None:
        self._desk = desk
        self._patience = patience

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        patient = cast("Embedder", _GuardedEmbedder(embedder, self._patience))
        return await self._desk.embed(patient, texts)


class _GuardedEmbedder:
    """An embedder in every respect, but for how long it is asked."""

    def __init__(self, embedder: Embedder, patience: CircuitBreaker) -> None:
        self._embedder = embedder
        self._patience = patience

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        embedder = self._embedder
        return await self._patience.ask((embedder.kind, embedder.model), lambda: embedder.aembed(texts))
