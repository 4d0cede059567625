"""Embedders behind the OpenAI API, or any server that speaks it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.embedders.batches import Batches
from pytest_ragmetrics.embedders.embedder import Embedder, as_vectors
from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.connection import OPENAI, Connection
from pytest_ragmetrics.judges.negotiation import Negotiation, refused_parameter
from pytest_ragmetrics.judges.prices import estimated_tokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_ragmetrics.budget import Budget

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
        self._encoding = Negotiation("base64")
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
