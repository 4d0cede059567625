"""How alike the directions of vectors are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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
