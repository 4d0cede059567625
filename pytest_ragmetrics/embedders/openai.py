"""Embedders behind the OpenAI API, or any server that speaks it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_ragmetrics.embedders.embedder import Embedder, as_vectors
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.api import OPENAI, Capabilities, Connection, refused_parameter
from pytest_ragmetrics.prices import estimated_tokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_ragmetrics.budget import Budget

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


# What the API takes in one request: inputs, and tokens, of which a text has at most as many as bytes.
_MAX_TEXTS = 2048
_MAX_BYTES = 300_000


class OpenAIEmbedder(Embedder):
    """A model behind the OpenAI API; ``base_url`` names another server that speaks it.

    ``api_key`` and ``base_url`` default to ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``; the key is needed when the
    first request is made. Texts asked for within a few milliseconds of one another share a request. Ask it from one
    event loop, and :meth:`aclose` it there.

    >>> OpenAIEmbedder("text-embedding-3-small").name
    'openai:text-embedding-3-small'
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60,
        retries: int = 5,
        deadline: float | None = None,
        dimensions: int | None = None,
    ) -> None:
        """Ask for vectors of ``dimensions`` numbers where the model lets one choose; times are those of the judge."""
        self.name = f"openai:{model}"
        self.kind = "openai"
        self.model = model
        self.dimensions = dimensions
        #: Called whenever the provider says that it is asked too fast.
        self.on_rate_limit: Callable[[], None] | None = None
        #: Entered around each request, of which one serves many calls.
        self.limit: AbstractAsyncContextManager[object] = nullcontext()
        #: What is asked before each request.
        self.budget: Budget | None = None
        self._encoding = Capabilities("base64")
        self._batches = Batches(self._send, max_texts=_MAX_TEXTS, max_bytes=_MAX_BYTES)
        self._connection = Connection(
            OPENAI,
            model=model,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            retries=retries,
            deadline=deadline,
            rate_limited=self._rate_limited,
        )

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text; raise ``JudgeError`` if the provider fails or sends anything else."""
        return as_vectors(await self._batches.embed(texts), count=len(texts), name=self.name)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._batches.aclose()
        await self._connection.aclose()

    def _rate_limited(self) -> None:
        if self.on_rate_limit is not None:
            self.on_rate_limit()

    async def _send(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        async with self.limit:
            response = await self._paid(texts)
        found: dict[Any, Any] = {row.index: row.embedding for row in getattr(response, "data", None) or ()}
        if sorted(found) != list(range(len(texts))):
            msg = f"{self.name}: asked for the vectors of {len(texts)} texts, the server sent {len(found)} of them"
            raise JudgeError(msg)
        return as_vectors([_decoded(found[index]) for index in range(len(texts))], count=len(texts), name=self.name)

    async def _paid(self, texts: Sequence[str]) -> Any:
        """Make a request within the budget of the run, if it has one."""
        if self.budget is None:
            return await self._asked(texts)
        with self.budget.request(self.name, kind=self.kind, model=self.model) as receipt:
            response = await self._asked(texts)
            told = getattr(getattr(response, "usage", None), "prompt_tokens", None)
            receipt.took(told if isinstance(told, int) and told else estimated_tokens(*texts))
        return response

    async def _asked(self, texts: Sequence[str]) -> Any:
        # The API refuses empty texts, and nothing can encode half a surrogate pair.
        sent = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        chosen = {} if self.dimensions is None else {"dimensions": self.dimensions}
        return await self._connection.call(
            lambda client: self._encoding.reach(
                lambda encoding: client.embeddings.create(
                    model=self.model, input=sent, encoding_format=encoding, **chosen
                ),
                lambda encoding, error: (
                    "float" if encoding != "float" and refused_parameter(error, ["encoding_format"]) else None
                ),
            )
        )


def _decoded(embedding: Any) -> Any:
    """Return the numbers of a vector, which some servers send as such whatever they were asked for."""
    import numpy as np

    if not isinstance(embedding, str):
        return embedding
    return np.frombuffer(base64.b64decode(embedding), dtype="<f4")
