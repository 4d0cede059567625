"""Putting texts that are asked for at the same time into as few requests as a server's limits allow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Vector: TypeAlias = asyncio.Future[npt.NDArray[np.float32]]

#: How long the first text waits for others, in seconds.
_WINDOW = 0.005


class Batches:
    """Collects the texts of concurrent calls, for a moment and until what was sent before is back, to send each once.

    What does not fit into one batch is sent in several at the same time.
    ``send`` returns one vector for each of its texts; what it raises reaches the calls that wait for one of them.
    ``max_texts`` and ``max_bytes`` bound a batch; a longer text goes alone. Belongs to one event loop.
    """

    def __init__(
        self,
        send: Callable[[Sequence[str]], Awaitable[npt.NDArray[np.float32]]],
        *,
        max_texts: int,
        max_bytes: int,
    ) -> None:
        self._send = send
        self._max_texts = max_texts
        self._max_bytes = max_bytes
        self._waiting: dict[str, asyncio.Future[npt.NDArray[np.float32]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        """Return the vectors of the texts in order."""
        if texts and not self._waiting:
            self._start(self._collect())
        futures = [self._enqueue(text) for text in texts]
        if futures:
            # Not gather: a call that is cancelled must not cancel what others wait for.
            await asyncio.wait(futures)
        return [future.result() for future in futures]

    async def aclose(self) -> None:
        """Cancel what is under way."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _enqueue(self, text: str) -> _Vector:
        if text not in self._waiting:
            self._waiting[text] = asyncio.get_running_loop().create_future()
        return self._waiting[text]

    def _start(self, coro: Coroutine[None, None, None]) -> None:
        # The loop itself keeps no hold on its tasks.
        task = asyncio.ensure_future(coro)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _collect(self) -> None:
        await asyncio.sleep(_WINDOW)
        async with self._under_way:
            waiting, self._waiting = self._waiting, {}
            batches = [{text: waiting[text] for text in texts} for texts in self._batches(waiting)]
            await asyncio.gather(*map(self._deliver, batches))

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            length = len(text.encode("utf-8", "replace"))
            if batch and (len(batch) == self._max_texts or size + length > self._max_bytes):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += length
        if batch:
            yield batch

    async def _deliver(self, batch: Mapping[str, _Vector]) -> None:
        try:
            vectors = await self._send(list(batch))
        except asyncio.CancelledError:
            for future in batch.values():
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it is raised where the vectors are awaited
            for future in batch.values():
                future.set_exception(error)
                future.exception()  # seen, should nobody wait for it any more
        else:
            for future, vector in zip(batch.values(), vectors, strict=True):
                future.set_result(vector)
