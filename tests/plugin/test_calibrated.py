"""Holding a judge to human labels in a suite."""

from __future__ import annotations

import json

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
    found = rag_calibrated("faithfulness", LABELS, min_kappa={floor}, threshold=0.5, by="estimate")
    run = evaluate([{{"response": "Open the valve slowly.", "contexts": [{manual!r}]}}] * 4, "faithfulness")
    print("corrected", run.corrected_mean("faithfulness", calibration=found).estimate)
"""


@pytest.fixture(autouse=True)
def labels(pytester: pytest.Pytester, no_provider: None) -> None:
    """Write labelled answers beside the suite; people see one of them otherwise than the judge."""
    rows = [
        {"id": f"q{index}", "response": text, "contexts": [MANUAL], "label": label}
        for index, (text, label) in enumerate((*ANSWERS, ("Never run the pump dry, and open the valve slowly.", 0)))
    ]
    pytester.path.joinpath("labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def test_a_judge_passes_that_agrees_enough(run: RunPytest) -> None:
    """The judge of the session is calibrated, and its calibration corrects its scores of other answers.

    Below the floor the failure names it, the figures and the row that people see otherwise, also without rewriting.
    """
    fails = SUITE.format(floor=0.9, manual=MANUAL)
    options = ("--rag-judge=local", "-s", "--assert=plain")
    result = run(*options, test_it=SUITE.format(floor=0.6, manual=MANUAL), test_more=fails)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*corrected 1.0*",
            "E*AssertionError: kappa 0.72 < 0.90 (95 % interval *, n=7)",
            "E*faithfulness by local (heuristic) against 7 human labels: 3 good, 4 bad",
            "E*q6: people say bad (label 0), the judge passed it",
        ]
    )


def test_a_judge_is_not_skipped_for_want_of_one(run: RunPytest) -> None:
    """Without a judge the test fails and says so; scores of a dry run fail no judge."""
    result = run(test_it=SUITE.format(floor=0.6, manual=MANUAL).replace("rag_judge", ""))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*this metric needs a judge*"])
    suite = SUITE.format(floor=1.0, manual=MANUAL).partition("    run =")[0]
    run("--rag-judge=openai:gpt-5.4-mini", "--rag-dry-run", "-rs", test_it=suite).assert_outcomes(skipped=1)
