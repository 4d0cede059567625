"""What an embedder is, embedders of one's own, and how alike the directions of vectors are."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_ragmetrics.errors import JudgeError, RagMetricsError
from pytest_ragmetrics.judges.transport import EmbeddingRequest, Reply

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Embedder(ABC):
    """Turns texts into vectors. ``name`` appears in results; ``kind`` and ``model`` determine the vector of a text."""

    name: str
    kind: str
    model: str
    #: How many numbers a vector has, where that can be chosen.
    dimensions: int | None = None
    #: Whether its vectors are worth storing: those that cost less than looking them up are not.
    is_kept: bool = True
    #: Whether a request to it costs somebody money.
    is_paid: bool = True
    #: How many texts and bytes a request may have, where texts that are embedded at the same time share requests.
    batch: tuple[int, int] | None = None

    @abstractmethod
    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text, in order, as an array of shape (n, d); raise ``JudgeError`` if there is none."""

    def request(self, texts: Sequence[str]) -> EmbeddingRequest:
        """Return the request that asks for the vectors of texts."""
        return EmbeddingRequest(
            kind=self.kind, model=self.model, texts=tuple(texts), dimensions=self.dimensions, provider=self
        )

    async def complete(self, request: EmbeddingRequest) -> Reply:
        """Return the vectors that a request asks for; raises as :meth:`aembed`."""
        vectors = as_vectors(await self.aembed(request.texts), count=len(request.texts), name=self.name)
        return Reply(vectors=vectors)

    async def aclose(self) -> None:  # noqa: B027 - many embedders have nothing to close
        """Close the client; the embedder must not be asked again."""


def as_vectors(values: Any, *, count: int, name: str) -> npt.NDArray[np.float32]:
    """Return what an embedder made as an array of shape (count, d); raise ``JudgeError`` if it is no such thing.

    >>> as_vectors([[1, 2], [3, 4]], count=2, name="mine").shape
    (2, 2)
    """
    import numpy as np

    try:
        vectors = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        msg = f"{name} did not return rows of numbers: {error}"
        raise JudgeError(msg) from error
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:  # noqa: PLR2004 - rows and columns
        msg = f"{name} returned an array of shape {vectors.shape} for {count} texts; it must be one row a text"
        raise JudgeError(msg)
    if not np.isfinite(vectors).all():
        msg = f"{name} returned a vector with a number that is not finite"
        raise JudgeError(msg)
    return vectors


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


# Float sums depend on their order; past these decimals they tell nothing, and a vector is as like itself as can be.
_DECIMALS = 12


def cosines(rows: npt.NDArray[np.float32], columns: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the cosine similarity of each row to each column vector, shapes (n, d) and (m, d) to (n, m).

    In [-1, 1]; a vector of zeros is like nothing, 0.0.

    >>> import numpy as np
    >>> cosines(np.array([[1, 0], [0, 0]]), np.array([[2, 0], [0, 3]])).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    products = _directions(rows) @ _directions(columns).T
    rounded: npt.NDArray[np.float64] = products.round(_DECIMALS).clip(-1.0, 1.0)
    return rounded


def _directions(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    import numpy as np

    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(lengths > 0, lengths, 1.0)
