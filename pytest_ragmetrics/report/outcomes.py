"""How tests came out: each in a word, why in a line, and all of them in a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

from pytest_ragmetrics.report.figures import counted
from pytest_ragmetrics.report.records import RunRow, TestRow

#: How a test came out, the worst first; a test that failed for want of a score is unscored.
Status = Literal["failed", "error", "unscored", "xpassed", "xfailed", "passed", "skipped"]
STATUSES: tuple[Status, ...] = get_args(Status)

#: The statuses as labels.
WORDS: Mapping[Status, str] = {
    "failed": "failed",
    "error": "error",
    "unscored": "unscored",
    "xpassed": "passed unexpectedly",
    "xfailed": "failed as expected",
    "passed": "passed",
    "skipped": "skipped",
}
#: What the tests of a status did, for one and for several.
_DID: Mapping[Status, tuple[str, str]] = {
    "failed": ("fell short", "fell short"),
    "error": ("broke off with an error", "broke off with an error"),
    "unscored": ("could not be scored", "could not be scored"),
    "xpassed": ("passed against expectation", "passed against expectation"),
    "xfailed": ("fell short as expected", "fell short as expected"),
    "passed": ("passed", "passed"),
    "skipped": ("was skipped", "were skipped"),
}
# What stands between an error and its cause.
_AFTER_CAUSE = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):$",
    re.MULTILINE,
)
#: The exit statuses of pytest for a run that was interrupted, and for one that broke.
_CUT_SHORT = (2, 3)
#: The statuses of tests that went wrong, and those of the others.
WRONG: tuple[Status, ...] = ("failed", "error", "unscored")
_FINE: tuple[Status, ...] = ("passed", "xpassed", "xfailed", "skipped")


def status_of(test: TestRow) -> Status:
    """Return how a test came out."""
    outcomes = {record["outcome"] for record in test["records"]}
    if test["outcome"] in ("failed", "error") and "unscored" in outcomes and "failed" not in outcomes:
        return "unscored"
    return test["outcome"]


def gist(message: str | None) -> str:
    r"""Return the line of pytest's message that says the most: the first of the error, else the first.

    Of an error with causes it is that of the error itself, which stands last.

    >>> gist(">   assert 41 < 20\nE   assert 41 < 20"), gist("Skipped: no data"), gist(None)
    ('assert 41 < 20', 'Skipped: no data', '')
    """
    own = _AFTER_CAUSE.split(message or "")[-1]
    lines = [line for line in own.splitlines() if line.strip()]
    return next((line[1:].strip() for line in lines if re.match(r"E\s", line)), lines[0].strip() if lines else "")


def is_cut_short(run: RunRow) -> bool:
    """Tell whether a run stopped before its last test: it was interrupted, or broke."""
    return run["exit_status"] in _CUT_SHORT


def headline(counts: Mapping[Status, int], *, cut_short: bool = False) -> str:
    """Return the outcome of a run in one sentence, which says so where it stopped early.

    >>> headline({"failed": 3, "passed": 23, "unscored": 1})
    '3 of 27 tests fell short, 1 could not be scored'
    >>> headline({"passed": 12, "skipped": 1})
    'No test fell short: 12 passed, 1 was skipped'
    >>> headline({"passed": 12}, cut_short=True)
    'All 12 tests passed, then the run stopped early'
    """
    return f"{_outcome(counts)}{', then the run stopped early' if cut_short else ''}"


def _outcome(counts: Mapping[Status, int]) -> str:
    total = sum(counts.values())
    if not total:
        return "No test was recorded"
    wrong = [status for status in WRONG if counts.get(status)]
    if wrong:
        first, *others = wrong
        start = f"{counts[first]:,} of {counted(total, 'test')} {_did(first, counts[first])}"
        return ", ".join([start, *(f"{counts[status]:,} {_did(status, counts[status])}" for status in others)])
    if counts.get("passed", 0) == total:
        return f"All {total:,} tests passed" if total > 1 else "The test passed"
    told = [status for status in _FINE if counts.get(status)]
    return "No test fell short: " + ", ".join(f"{counts[status]:,} {_did(status, counts[status])}" for status in told)


def _did(status: Status, number: int) -> str:
    return _DID[status][number != 1]
