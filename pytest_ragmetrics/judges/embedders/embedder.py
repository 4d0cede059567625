"""Embedders: the base class, embedders that users write, and the cosine similarity of vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_ragmetrics.core.errors import JudgeError, UnscoredError
from pytest_ragmetrics.judges.transports.values import EmbeddingRequest, Reply, failures_of, full_name, result_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Embedder(ABC):
    """Turns texts into vectors. ``name`` appears in results; ``kind`` and ``model`` determine the vector of a text."""

    name: str
    kind: str
    model: str
    #: The length of a vector, for models that allow a choice.
    dimensions: int | None = None
    #: Whether its vectors are stored: not if making them takes less time than looking them up.
    is_kept: bool = True
    #: Whether a request to it costs money.
    is_paid: bool = True
    #: The address of its server where that is not the provider's own.
    url: str | None = None
    #: The most texts and bytes of a request, if texts that are embedded at the same time share requests.
    batch: tuple[int, int] | None = None

    @abstractmethod
    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text, in order, as an array of shape (n, d); raise ``JudgeError`` if there is none."""

    def request(self, texts: Sequence[str]) -> EmbeddingRequest:
        """Return the request that asks for the vectors of texts."""
        return EmbeddingRequest(
            kind=self.kind,
            model=self.model,
            texts=tuple(texts),
            dimensions=self.dimensions,
            provider=self,
            url=self.url,
        )

    async def complete(self, request: EmbeddingRequest) -> Reply:
        """Return the vectors that a request asks for; raises as :meth:`aembed`."""
        vectors = as_vectors(await self.aembed(request.texts), count=len(request.texts), name=self.name)
        return Reply(vectors=vectors)

    async def aclose(self) -> None:  # noqa: B027 - many embedders have nothing to close
        """Close the client; the embedder must not be asked again."""


def as_vectors(values: Any, *, count: int, name: str) -> npt.NDArray[np.float32]:
    """Return the vectors of an embedder as an array of shape (count, d); raise ``JudgeError`` for anything else.

    >>> as_vectors([[1, 2], [3, 4]], count=2, name="mine").shape
    (2, 2)
    """
    import numpy as np

    try:
        # A number over the largest float32 becomes infinite, which is refused below.
        with np.errstate(over="ignore"):
            vectors = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise JudgeError(f"{name} did not return rows of numbers: {error}") from error
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:  # noqa: PLR2004 - rows and columns
        msg = f"{name} returned an array of shape {vectors.shape} for {count} texts; it must be one row a text"
        raise JudgeError(msg)
    if not np.isfinite(vectors).all():
        raise JudgeError(f"{name} returned a vector with a number that is not finite")
    return vectors


@runtime_checkable
class Embeds(Protocol):
    """An object that :class:`CustomEmbedder` can ask."""

    def embed(self, texts: list[str]) -> Any:
        """Return one row of numbers a text."""


class CustomEmbedder(Embedder):
    """An embedder made of an object with ``embed(texts)`` or of a callable; what is not asynchronous runs in a thread.

    ``name`` is shown in results and determines, with the text, which stored vector is used: change it when the model
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
            what = "a spec such as 'openai:MODEL', a callable or an object with embed(texts)"
            raise TypeError(f"an embedder is {what}, not {type(target).__name__}")
        given = getattr(target, "name", None) or getattr(target, "__qualname__", None)
        self.name = name or f"custom:{given or type(target).__qualname__}"
        self.kind = "custom"
        self.model = self.name
        self._target = target
        self._embed = embed

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text; raise ``JudgeError`` if the target fails or returns anything else."""
        with failures_of(self.name):
            values = await result_of(self._embed, list(texts))
        return as_vectors(values, count=len(texts), name=self.name)

    async def aclose(self) -> None:
        """Close the target, if it has an ``aclose`` of its own."""
        close = getattr(self._target, "aclose", None)
        if close is not None:
            await close()


def as_embedder(target: Any, *, name: str | None = None) -> Embedder:
    """Return an embedder, or the one made of an object, known by a ``name`` and its own; ``TypeError`` for another."""
    return target if isinstance(target, Embedder) else CustomEmbedder(target, name=full_name(name, target))


# Float sums depend on their order: rounded, so that the similarity of a vector to itself is 1.
_DECIMALS = 12


def cosines(rows: npt.NDArray[np.float32], columns: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the cosine similarity of each row to each column vector, shapes (n, d) and (m, d) to (n, m).

    In [-1, 1]; raises ``UnscoredError`` for a vector of zeros, which has no direction.

    >>> import numpy as np
    >>> cosines(np.array([[1, 0], [0, 1]]), np.array([[2, 0], [0, -3]])).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    rounded: npt.NDArray[np.float64] = (_directions(rows) @ _directions(columns).T).round(_DECIMALS)
    return rounded


def _directions(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    import numpy as np

    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not lengths.all():
        raise UnscoredError("a vector of zeros has no cosine similarity")
    directions: npt.NDArray[np.float64] = wide / lengths
    return directions
