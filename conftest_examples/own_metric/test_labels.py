"""The labels of a nursery are short, and say what their checklist asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics import assert_metric, assert_sample

if TYPE_CHECKING:
    from pytest_ragmetrics.metrics import Metric
    from pytest_ragmetrics.plugin.rows.dataset_tests import Scores

QUESTION = "How do I keep mint?"
ANSWER = "Mint grows in sun and in shade. Keep its roots in a pot."


def test_it_is_a_metric_like_any_other(brevity: Metric) -> None:
    """A metric of your own goes where any other goes."""
    assert_metric(brevity, {"question": QUESTION, "answer": ANSWER}, min=1.0)


def test_it_is_known_by_its_name() -> None:
    """Beside metrics of the plugin, all of them scored at the same time."""
    checklist = ["Does mint grow in shade?", "Are the roots in a pot?"]
    row = {"question": QUESTION, "answer": ANSWER, "checklist": checklist}
    assert_sample(row, {"brevity": 1.0, "checklist": 1.0}, answer_relevancy=0.1)


@pytest.mark.rag_gate("checklist", mean=0.8)
@pytest.mark.rag_dataset("labels.jsonl", metrics=["brevity", "checklist"])
def test_label(rag_scores: Scores) -> None:
    """One test for each row, scored ahead, and a gate over all of them."""
    assert rag_scores["brevity"] >= 1.0


# The label says nothing about frost. The test is expected to fail, so that the example passes and the report still
# explains it; in your own suite it would simply be a failure.


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="nothing is said about frost")
def test_a_label_with_a_gap() -> None:
    """The failure lists what fell short, with the question that is not answered."""
    row = {"question": QUESTION, "answer": ANSWER, "checklist": ["Does mint grow in shade?", "Does it survive frost?"]}
    assert_sample(row, {"brevity": 0.5, "checklist": 1.0})
