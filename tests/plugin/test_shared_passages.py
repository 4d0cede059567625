"""Regression gates over rows that share passages: in one process, with workers, in shards, and told otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_ragmetrics.cli import main
from tests.plugin.conftest import MANY, SERIAL, RunPytest

#: Thirty rows on six passages: those of the first LOST rows fail.
SUITE = """
    import os
    LOST = int(os.environ.get("LOST", "0"))
    @metric
    def points(sample): return float(int(sample.id) >= LOST)
    @metric
    def others(sample): return points_of(sample)
    def points_of(sample): return float(int(sample.id) >= LOST)
    ROWS = [{"id": f"{n}", "answer": "Moss.", "reference_contexts": [f"Passage {n // 5}."]} for n in range(30)]
    @pytest.mark.rag_gate("points", regression=True)
    @pytest.mark.rag_gate("others", regression=True)
    @pytest.mark.rag_gate("points", mean=0.3, confidence=0.9)
    @pytest.mark.rag_dataset(ROWS, metrics=[points, others])
    def test_shared(rag_sample): pass
"""
NOTE = (
    "others, points: 30 rows share passages in 6 groups, which count as dependent; "
    'name groups with metadata["cluster"], or set rag_clusters = named'
)
INTERVAL = (
    "points: 30 rows share passages in 6 groups, and the interval counts each row alone; "
    'where such rows fail together it is too narrow: name groups with metadata["cluster"]'
)
AGAINST = "--rag-baseline=before.json"


def gates(tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({**test, "duration": 0, "line": 0} for test in tests if test["gate"]), key=lambda test: test["id"])


def test_rows_that_share_passages_count_once(run: RunPytest, capsys: pytest.CaptureFixture[str]) -> None:
    def written(name: str) -> list[dict[str, Any]]:
        return gates(json.loads(before.text(name))["tests"])

    lost = {"LOST": "10"}
    before = run("--rag-json=before.json", test_suite=SUITE)
    for how, name in ((SERIAL, "alone.json"), (MANY, "many.json")):
        ran = run(*how, AGAINST, f"--rag-json={name}", "--rag-markdown=out.md", env=lost)
        ran.assert_outcomes(passed=33)
        assert [line for line in ran.outlines if "share passages" in line] == [NOTE, INTERVAL]
        assert "30 rows share passages in 6 groups" in ran.text("out.md")
    for name, part in (("one.json", "1"), ("two.json", "not 1")):
        run(AGAINST, f"--rag-json={name}", "-k", part, env=lost)
    assert main(["report", "merge", "one.json", "two.json", "--baseline", "before.json", "-o", "merged.json"]) == 0
    capsys.readouterr()
    assert written("alone.json") == written("many.json") == written("merged.json")
    assert {test["gate"]["groups"] for test in written("alone.json")} == {6}


def test_a_run_may_take_each_row_alone(run: RunPytest) -> None:
    run("--rag-json=before.json", test_suite=SUITE)
    ran = run(AGAINST, "-o", "rag_clusters=named", "--rag-json=out.json", env={"LOST": "10"})
    ran.assert_outcomes(passed=31, failed=2)
    assert "share passages" not in ran.stdout.str()
    wrong = run(AGAINST, "--rag-clusters=documents")
    assert wrong.ret != 0
    assert "'documents' is not one of passages, named" in wrong.stderr.str() + wrong.stdout.str()
