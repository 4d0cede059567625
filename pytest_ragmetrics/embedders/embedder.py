"""What every embedder is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.errors import JudgeError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Embedder(ABC):
    """Turns texts into vectors. ``name`` stands in results; ``kind`` and ``model`` determine the vector of a text."""

    name: str
    kind: str
    model: str
    #: Whether its vectors are worth keeping: those that cost less than looking them up are not.
    is_kept: bool = True
    #: Whether asking it is a request that somebody is paid for.
    is_paid: bool = True

    @abstractmethod
    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text, in order, as an array of shape (n, d); raise ``JudgeError`` if there is none."""

    async def aclose(self) -> None:  # noqa: B027 - many embedders hold nothing
        """Give back what the embedder holds; it must not be asked again."""


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
