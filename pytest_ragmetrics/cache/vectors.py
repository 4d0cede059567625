"""Vectors as text: base64 of 32-bit floats, little end first."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from pytest_ragmetrics.cache.entry import CacheError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def vector_text(vector: npt.NDArray[np.float32]) -> str:
    """Return a vector as text.

    >>> import numpy as np
    >>> vector_text(np.array([1.0, -0.5], dtype=np.float32))
    'AACAPwAAAL8='
    """
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def read_vector(text: str) -> npt.NDArray[np.float32]:
    """Return the vector of a text; raise :class:`CacheError` if it is none.

    >>> read_vector("AACAPwAAAL8=").tolist()
    [1.0, -0.5]
    """
    import numpy as np

    try:
        vector = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)
    except ValueError as error:
        msg = f"a kept vector cannot be read: {error}"
        raise CacheError(msg) from error
    if not vector.size or not np.isfinite(vector).all():
        msg = "a kept vector is empty or not finite"
        raise CacheError(msg)
    return vector
