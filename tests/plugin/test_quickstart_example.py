"""The example that a stranger runs first, run as its README says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "conftest_examples" / "quickstart"
WRONG = [
    "Decaffeinated beans roast faster and need a setting of 200 °C at most.",
    (
        "The drum and the drive motor are covered for five years if the roaster is used in a café, a shop or any other "
        "business."
    ),
    "The heating element must be rinsed with water or sprayed with oven cleaner.",
    "You may send the Rondel 2 back within 54 days of delivery, for any reason or for none.",
]


@pytest.fixture
def quickstart(pytester: pytest.Pytester) -> str:
    """Copy the example, without what earlier runs left in it, and return the path to give to pytest."""
    folder = pytester.path / "conftest_examples" / "quickstart"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.html"))
    return str(folder.relative_to(pytester.path))


def test_passes_with_its_wrong_answers_expected_to_fail(pytester: pytest.Pytester, quickstart: str) -> None:
    """The example passes as it is delivered: thirteen tests pass, the four wrong answers fail as expected."""
    result = pytester.runpytest_inprocess(quickstart, "-p", "ragmetrics")
    result.assert_outcomes(passed=13, xfailed=4)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["ragmetrics: judge local (heuristic), *", "judged by: local (heuristic)"])


def test_wrong_answers_fail_for_their_quotations(pytester: pytest.Pytester, quickstart: str) -> None:
    """Without the marks the four tests fail, and each failure gives score and count, then what the handbook says."""
    result = pytester.runpytest_inprocess(quickstart, "-p", "ragmetrics", "-p", "no:randomly", "--runxfail")
    result.assert_outcomes(passed=13, failed=4)
    result.stdout.fnmatch_lines(
        [
            "*quoted_spans_alignment 0.50 < 0.90: 1 of 2 quoted spans not found*",
            "*within 45 days of delivery*",
            "*quoted_spans_alignment 0.00 < 0.90: 1 of 1 quoted span*not found*",
            "*quoted_spans_alignment 0.50 < 0.90: 1 of 2 quoted spans not found*",
            "*must not be rinsed with water*",
            "*quoted_spans_alignment 0.00 < 0.90: 1 of 1 quoted span*not found*",
        ]
    )


def test_report_marks_the_wrong_quotations(pytester: pytest.Pytester, quickstart: str) -> None:
    """The page marks the four wrong quotations, and no other, as not found, and shows what the handbook says."""
    pytester.runpytest_inprocess(quickstart, "-p", "ragmetrics", "--rag-report=out.html")
    page = (pytester.path / "out.html").read_text(encoding="utf-8")
    marked = re.findall(r'<mark class="missing" data-n[^>]*>(.*?)</mark>', page, re.DOTALL)
    texts = sorted(re.sub(r"<[^>]+>", "", text) for text in marked)
    # Single words are those that the answer without quotations puts in its own way.
    assert [text for text in texts if " " in text] == WRONG
    assert "You may send the Rondel 2 back within 45 days of delivery" in page
