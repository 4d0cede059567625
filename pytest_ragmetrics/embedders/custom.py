"""Embedders of one's own: an object with ``embed(texts)``, or a function from texts to vectors."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_ragmetrics.embedders.embedder import Embedder, as_vectors
from pytest_ragmetrics.errors import JudgeError, RagMetricsError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@runtime_checkable
class Embeds(Protocol):
    """What an embedder of one's own must offer."""

    def embed(self, texts: list[str]) -> Any:
        """Return one row of numbers a text."""


class CustomEmbedder(Embedder):
    """An embedder made of an object with ``embed(texts)`` or of a callable; what is not asynchronous runs in a thread.

    ``name`` stands in results and determines, with the text, which kept vector is used: change it when the model
    behind it changes.

    >>> import asyncio
    >>> embedder = CustomEmbedder(lambda texts: [[len(text), 1.0] for text in texts], name="lengths")
    >>> asyncio.run(embedder.aembed(["one", "four"])).tolist()
    [[3.0, 1.0], [4.0, 1.0]]
    """

    def __init__(
        self, target: Embeds | Callable[[list[str]], Any | Awaitable[Any]], *, name: str | None = None
    ) -> None:
        """Name the embedder after its target, unless a ``name`` is given."""
        embed = target.embed if isinstance(target, Embeds) else target
        if not callable(embed):
            msg = f"an embedder is an object with embed(texts) or a callable, not {type(target).__name__}"
            raise TypeError(msg)
        self.name = name or f"custom:{_name_of(target)}"
        self.kind = "custom"
        self.model = self.name
        self._target = target
        self._embed = embed

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text; raise ``JudgeError`` if the target fails or returns anything else."""
        try:
            values = await self._values(list(texts))
        except RagMetricsError:
            raise
        except Exception as error:
            msg = f"{self.name} failed: {type(error).__name__}: {error}"
            raise JudgeError(msg) from error
        return as_vectors(values, count=len(texts), name=self.name)

    async def aclose(self) -> None:
        """Close the target, if it has an ``aclose`` of its own."""
        close = getattr(self._target, "aclose", None)
        if close is not None:
            await close()

    async def _values(self, texts: list[str]) -> Any:
        if inspect.iscoroutinefunction(self._embed):
            return await self._embed(texts)
        values = await asyncio.to_thread(self._embed, texts)
        return await values if inspect.isawaitable(values) else values


def as_embedder(target: Any, *, name: str | None = None) -> Embedder:
    """Return the embedder that an object is or can be made into; raise ``TypeError`` if it is neither."""
    return target if isinstance(target, Embedder) else CustomEmbedder(target, name=name)


def _name_of(target: object) -> str:
    return str(getattr(target, "name", None) or getattr(target, "__qualname__", None) or type(target).__qualname__)
