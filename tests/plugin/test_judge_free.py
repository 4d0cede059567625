"""Metrics that ask nobody, from a test to what a run leaves behind."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import RunPytest, Scored

SUITE = """
    from pytest_ragmetrics import (
        assert_citations_valid, assert_contexts_alike, assert_exact_match, assert_retrieved, assert_text_alike,
        assert_tools_called,
    )

    class Spoken:
        # a message as a framework has it, which JSON has no word for
        type = "ai"
        content = ""
        tool_calls = [{"name": "weather", "args": {"city": "Oslo"}}]

    def test_retrieved():
        assert_retrieved([7, 8, 9], [7, 9, 4], k=3, min=0.9)

    def test_graded():
        assert_retrieved([7, 8], {7: 3, 8: 1}, metric="ndcg")

    def test_cited():
        assert_citations_valid("Otters float [1]. They dive [3].", ["Otters float.", "Otters <b>dive</b>."])

    def test_called():
        assert_tools_called([Spoken()], [{"name": "weather", "args": {"city": "Rome"}}])

    def test_alike():
        assert_contexts_alike(["Whales sing."], ["Moths fly."])

    def test_texts():
        assert_text_alike("moth", "moths", min=0.8)
        assert_exact_match("moth", "moths")
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n2")])
def test_what_a_run_leaves_behind(
    run: RunPytest, scored: Scored, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    """Failures say what is missing; records and page have every score, and no judge was needed."""
    result = run("--rag-json=out.json", "--rag-report=out.html", *workers, test_suite=SUITE)
    result.assert_outcomes(passed=1, failed=5)
    result.stdout.fnmatch_lines_random(
        [
            "*recall_at_k 0.67 < 0.90: 1 of 3 reference ids missed*",
            "*citation_validity 0.50 < 1.00: 1 of 2 citations without a context*",
            "*tool_call_accuracy 0.00 < 1.00: 1 of 1 tool call not as in the reference*",
            "*non_llm_context_recall 0.?? < 0.80: 1 of 1 reference context not retrieved*",
            "*exact_match 0.00 < 1.00: 1 of 1 response not the reference*",
        ]
    )
    rows = {key.partition("::")[2]: row["records"] for key, row in scored().items()}
    assert [record["metric"] for record in rows["test_texts"]] == ["non_llm_string_similarity", "exact_match"]
    (cited,) = rows["test_cited"]
    assert [(verdict["text"], verdict["start"], verdict["ok"]) for verdict in cited["verdicts"]] == [
        ("[1]", 13, True),
        ("[3]", 28, False),
    ]
    (called,) = rows["test_called"]
    assert called["sample"]["metadata"]["reference_tool_calls"] == [{"name": "weather", "args": {"city": "Rome"}}]
    assert called["verdicts"][0]["reason"] == 'city is "Oslo"'
    page = (pytester.path / "out.html").read_text("utf-8")
    assert "citation_validity" in page
    assert "<b>dive</b>" not in page
