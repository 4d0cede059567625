"""The answers of a whole data set, judged at night at half the price."""

from __future__ import annotations

import pytest

from pytest_ragmetrics import Sample


@pytest.mark.rag_gate("faithfulness", mean=0.9)
@pytest.mark.rag_dataset("answers.jsonl", metrics=["faithfulness"])
def test_answers_keep_to_their_passages(rag_sample: Sample) -> None:
    """Rows with a response: an application that is asked again may answer otherwise, and that is another request."""
    assert rag_sample.response
