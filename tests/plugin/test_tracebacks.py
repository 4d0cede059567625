"""A failure shows the user's code and a message, and no code of this package."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import RunPytest

SUITE = """
    import pytest
    from pytest_ragmetrics import assert_metric, assert_sample, evaluate, metric, rag_calibrated
    from pytest_ragmetrics.metrics import Faithfulness
    from texts import SOURCE, FALSE

    ROW = {"id": "pump", "question": "How long?", "answer": FALSE, "contexts": [SOURCE]}

    @metric
    async def kindness(response, ask):
        return await ask("Is it kind?")

    def test_evaluate():
        evaluate([ROW], ["faithfulness"])

    def test_rag_evaluate(rag_evaluate):
        rag_evaluate([ROW], ["faithfulness"])

    def test_sample():
        assert_sample(ROW, faithfulness=0.8)

    def test_score():
        assert Faithfulness().score(response=FALSE, retrieved_contexts=[SOURCE]) >= 0.8

    def test_calibrated():
        rag_calibrated("faithfulness", "labels.jsonl", min_kappa=0.6)

    def test_rag_file(rag_evaluate):
        rag_evaluate("labels.jsonl", ["faithfulness"])

    def test_unknown():
        evaluate([ROW], ["faithfullness"])

    @pytest.mark.rag_dataset([ROW], metrics=["quoted_spans_alignment"])
    def test_rows(rag_scores):
        assert rag_scores["number_aligned"] >= 0.9

    def test_own():
        assert_metric(kindness, ROW, min=0.5)
"""
SAID = {
    "test_evaluate": "openai:m needs a key: set OPENAI_API_KEY",
    "test_rag_evaluate": "openai:m needs a key: set OPENAI_API_KEY",
    "test_sample": "openai:m needs a key: set OPENAI_API_KEY",
    "test_score": "openai:m needs a key: set OPENAI_API_KEY",
    "test_calibrated": "labels.jsonl: there is no such file",
    "test_rag_file": "labels.jsonl: there is no such file",
    "test_unknown": "did you mean faithfulness?",
    "test_rows": "there is no metric 'number_aligned': did you mean numbers_aligned or names_aligned?",
    "test_own": "write await ask(Critique(definition='Is it kind?'",
}


@pytest.mark.usefixtures("no_provider")
def test_frames_of_this_package_are_hidden(run: RunPytest) -> None:
    """Of a missing key, a wrong name, a missing file and a slip in a metric; --full-trace shows them."""
    result = run("--rag-judge=openai:m", test_it=SUITE)
    result.assert_outcomes(failed=len(SAID))
    _, *sections = result.stdout.str().partition("FAILURES")[2].partition("= RAG metrics")[0].split("\n_____")
    assert len(sections) == len(SAID)
    for section in sections:
        name = section.strip("_ ").partition(" ")[0].partition("[")[0]
        assert SAID[name] in section
        assert "pytest_ragmetrics/" not in section
        assert "concurrent" not in section
        assert len(section.splitlines()) < 25
    assert "public_names.py" in run("--rag-judge=openai:m", "--full-trace", "-k", "test_evaluate").stdout.str()
