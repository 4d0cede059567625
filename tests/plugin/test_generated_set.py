"""A golden set that `ragmetrics generate` made is a data set."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_ragmetrics.cli import main
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest


def test_a_generated_set_runs_as_it_is(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, scored: Callable[[], dict[str, dict[str, Any]]]
) -> None:
    """One test a row, under the row's id, with the reference and the ids of the passages it came from."""
    del server
    folder = pytester.mkdir("docs")
    for name, year in (("Aru", 1887), ("Bela", 1902)):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe crane of {name} was built in {year}.\n", encoding="utf-8")
    assert main(["generate", "docs", "-o", "golden.jsonl", "--questions", "2"]) == 0
    ids = [json.loads(line)["id"] for line in (pytester.path / "golden.jsonl").read_text(encoding="utf-8").splitlines()]
    result = run(
        "--rag-json=out.json",
        test_golden="""
        import pytest

        @pytest.fixture
        def rag_respond():
            return lambda sample: {
                "response": sample.reference,
                "retrieved_contexts": sample.reference_contexts,
                "retrieved_context_ids": sample.reference_context_ids,
            }

        @pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness", "context_recall", "id_based_context_recall"])
        def test_golden(rag_sample, rag_scores):
            assert rag_sample.metadata["support"] == [rag_sample.reference]
            assert all(score == 1.0 for score in rag_scores.values())
        """,
    )
    result.assert_outcomes(passed=2)
    assert sorted(scored()) == [f"test_golden.py::test_golden[{number}]" for number in sorted(ids)]
