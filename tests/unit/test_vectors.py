"""Vectors as text: each comes back as it was, and anything else is an error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.cache.entry import read_vector, vector_text
from pytest_ragmetrics.core.errors import CacheError


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_a_vector_comes_back_as_it_was(numbers: list[float]) -> None:
    text = vector_text(np.array(numbers, dtype=np.float32))
    assert text.isascii()
    assert read_vector(text).tolist() == numbers


@pytest.mark.parametrize(
    "text",
    [
        *("AACAPwAAAL8", "AACA", "AACA PwAA", "äöü", "=", "{}"),
        *(vector_text(np.array(numbers, dtype=np.float32)) for numbers in ([], [np.nan], [1.0, -np.inf])),
    ],
)
def test_a_text_that_is_no_vector_is_an_error(text: str) -> None:
    # Python 3.10 decodes "=" to nothing, later versions refuse it.
    with pytest.raises(CacheError, match=r"its vector is (not the base64 of 32-bit floats|empty or not finite)"):
        read_vector(text)
