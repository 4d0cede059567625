"""The assistant of a greenhouse quotes its handbook; the scores go where the conftest sends them."""

from __future__ import annotations

import pytest

from pytest_ragmetrics import assert_quoted_spans_aligned

HANDBOOK = "Tomatoes want six hours of sun a day. Water them in the morning, and never over their leaves."


@pytest.mark.parametrize(
    "answer",
    [
        'The handbook says: "Water them in the morning, and never over their leaves."',
        'In the shade they sulk, for "tomatoes want six hours of sun a day".',
    ],
    ids=["water", "sun"],
)
def test_quotations_are_real(answer: str) -> None:
    """Whatever the answer puts in quotation marks stands in the handbook."""
    assert_quoted_spans_aligned(answer, HANDBOOK, min=1.0)
