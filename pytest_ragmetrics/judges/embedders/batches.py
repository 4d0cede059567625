"""Joining texts that are embedded at the same time into few requests: a link of the transports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.prices import known_sum
from pytest_ragmetrics.judges.transports.values import AnyRequest, EmbeddingRequest, Reply, Transport

if TYPE_CHECKING:
    _Vector: TypeAlias = "asyncio.Future[Reply]"

#: How long the first text waits for others, in seconds.
_WINDOW = 0.005


class Batches:
    """Collects the texts for each embedder that takes batches, and sends each text once.

    A batch is sent after a few milliseconds, and after the reply to the one before; what does not fit into one request
    is sent in several at the same time. The tokens of a batch are shared out over its texts by their bytes, and are in
    the reply to the one that asked for a text first. Belongs to one event loop.
    """

    def __init__(self, following: Transport) -> None:
        self._following = following
        self._collectors: WeakKeyDictionary[Any, _BatchCollector] = WeakKeyDictionary()
        in_child(self, _collectors=WeakKeyDictionary)

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; errors of a batch are raised in all callers that wait for one of its texts."""
        batch = getattr(request.provider, "batch", None)
        if not isinstance(request, EmbeddingRequest) or batch is None:
            return await self._following.send(request)
        import numpy as np

        # Sent together with the texts of other callers, it cannot be cancelled.
        request.started()
        collector = self._collectors.get(request.provider)
        if collector is None:
            collector = self._collectors[request.provider] = _BatchCollector(self._following, *batch)
        found, own = await collector.embedded(request)
        new = [found[text] for text in own]
        return Reply(
            vectors=np.stack([cast("Any", found[text].vectors) for text in request.texts]),
            prompt_tokens=sum(embedded.prompt_tokens for embedded in new),
            billed=known_sum(embedded.billed for embedded in new),
        )

    async def aclose(self) -> None:
        """Cancel all requests."""
        for collector in tuple(self._collectors.values()):
            await collector.aclose()


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def split(
    texts: Iterable[str], most: int, most_size: int, size: Callable[[str], int] = _bytes
) -> Iterator[tuple[str, ...]]:
    """Yield texts in batches of at most so many texts and bytes, or another ``size``; a larger text goes alone.

    >>> list(split(["one", "two", "three"], 2, 100))
    [('one', 'two'), ('three',)]
    """
    batch: list[str] = []
    total = 0
    for text in texts:
        length = size(text)
        if batch and (len(batch) == most or total + length > most_size):
            yield tuple(batch)
            batch, total = [], 0
        batch.append(text)
        total += length
    if batch:
        yield tuple(batch)


def _shared_out(texts: Sequence[str], reply: Reply) -> Iterator[Reply]:
    """Yield each text with its vector and its share, which add up to what the reply says."""
    # One more each, for the empty text.
    sizes = [1 + _bytes(text) for text in texts]
    total, end, given = sum(sizes), 0, 0
    for size, vector in zip(sizes, () if reply.vectors is None else reply.vectors, strict=True):
        end += size
        tokens = reply.prompt_tokens * end // total - given
        given += tokens
        yield Reply(vectors=vector, prompt_tokens=tokens, billed=reply.billed and reply.billed * size / total)


class _BatchCollector:
    """The texts that wait for one embedder."""

    def __init__(self, following: Transport, max_texts: int, max_bytes: int) -> None:
        self._following = following
        self._limits = max_texts, max_bytes
        self._waiting: dict[str, _Vector] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()

    async def embedded(self, request: EmbeddingRequest) -> tuple[dict[str, Reply], list[str]]:
        """Return what each text of a request got, and the texts that nobody else was waiting for."""
        if request.texts and not self._waiting:
            # The loop itself keeps no reference to its tasks.
            task = asyncio.ensure_future(self._collect(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        new_future = asyncio.get_running_loop().create_future
        texts = tuple(dict.fromkeys(request.texts))
        own = [text for text in texts if text not in self._waiting]
        futures = {text: self._waiting.get(text) or self._waiting.setdefault(text, new_future()) for text in texts}
        if futures:
            # Not gather: a call that is cancelled must not cancel what others wait for.
            await asyncio.wait(futures.values())
        return {text: future.result() for text, future in futures.items()}, own

    async def aclose(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _collect(self, request: EmbeddingRequest) -> None:
        await asyncio.sleep(_WINDOW)
        async with self._sending:
            waiting, self._waiting = self._waiting, {}
            batches = (replace(request, texts=texts) for texts in split(waiting, *self._limits))
            await asyncio.gather(*(self._deliver(batch, waiting) for batch in batches))

    async def _deliver(self, batch: EmbeddingRequest, waiting: dict[str, _Vector]) -> None:
        futures = [waiting[text] for text in batch.texts]
        try:
            found = list(_shared_out(batch.texts, await self._following.send(batch)))
        except asyncio.CancelledError:
            for future in futures:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it is raised where the vectors are awaited
            for future in futures:
                future.set_exception(error)
                future.exception()  # retrieved: asyncio logs errors that are not
        else:
            for future, embedded in zip(futures, found, strict=True):
                future.set_result(embedded)
