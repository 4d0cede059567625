"""Holding a judge to human labels in a suite."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import RunPytest

MANUAL = "Open the valve slowly. The pump needs two minutes to fill. Never run the pump dry."
ANSWERS = (
    ("Open the valve slowly.", 1),
    ("The pump needs two minutes to fill.", 1),
    ("Never run the pump dry.", 1),
    ("The warranty covers broken hoses for eleven years.", 0),
    ("Paint the casing with blue enamel every spring.", 0),
    ("Call the dealer in Rotterdam about spare filters.", 0),
)

SUITE = """
from pathlib import Path

from pytest_ragmetrics import evaluate, rag_calibrated

LABELS = Path(__file__).parent / "labels.jsonl"

def test_the_judge(rag_judge):
    found = rag_calibrated("faithfulness", LABELS, min_kappa={floor}, threshold=0.5)
    run = evaluate([{{"response": "Open the valve slowly.", "contexts": [{manual!r}]}}] * 4, "faithfulness")
    print("corrected", run.corrected_mean("faithfulness", calibration=found).estimate)
"""


@pytest.fixture
def labels(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    """Write labelled answers beside the suite, one of which people see otherwise than the judge."""
    rows = [
        {"id": f"q{index}", "response": text, "contexts": [MANUAL], "label": label}
        for index, (text, label) in enumerate((*ANSWERS, ("Never run the pump dry, and open the valve slowly.", 0)))
    ]
    pytester.path.joinpath("labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return rows


def test_a_judge_that_agrees_enough_passes(run: RunPytest, labels: list[dict[str, Any]]) -> None:
    """The judge of the session is calibrated, and its calibration corrects what it says of other answers."""
    result = run("--rag-judge=local", "-s", test_it=SUITE.format(floor=0.6, manual=MANUAL))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*corrected 1.0*"])


def test_a_judge_that_does_not_fails_with_the_rows(run: RunPytest, labels: list[dict[str, Any]]) -> None:
    """The failure names the floor, the figures and the row that people see otherwise, also without rewriting."""
    result = run("--rag-judge=local", "--assert=plain", test_it=SUITE.format(floor=0.9, manual=MANUAL))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: kappa 0.72 < 0.90 (95 % interval *, n=7)",
            "E*faithfulness by local (heuristic) against 7 human labels: 3 good, 4 bad",
            "E*q6: people say bad (label 0), the judge passed it",
        ]
    )


def test_a_judge_is_not_skipped_for_want_of_one(
    run: RunPytest, labels: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a judge the test fails and says so."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "RAGMETRICS_JUDGE"):
        monkeypatch.delenv(variable, raising=False)
    suite = SUITE.format(floor=0.6, manual=MANUAL).replace("rag_judge", "")
    result = run(test_it=suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*this metric needs a judge*"])


def test_a_dry_run_decides_nothing(run: RunPytest, labels: list[dict[str, Any]]) -> None:
    """Scores that stand for others do not fail a judge."""
    suite = SUITE.format(floor=1.0, manual=MANUAL).partition("    run =")[0]
    run("--rag-judge=openai:gpt-5.4-mini", "--rag-dry-run", "-rs", test_it=suite).assert_outcomes(skipped=1)
