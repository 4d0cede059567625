"""What became of each test since the baseline, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragmetrics.records import TestRecord
from pytest_ragmetrics.report.outcomes import CAUSES, TEST_KINDS, gone_tests, paired_tests
from pytest_ragmetrics.result import Evidence, Nearest, Verdict, WordChange
from pytest_ragmetrics.run_comparison import compare_documents
from tests.documents import document, gate, record, row

SAMPLE = {"id": "q1", "user_input": "When?", "response": "On Monday.", "retrieved_contexts": ["Monday.", "Paint."]}
CLAIM = Verdict(text="It is on Monday.", ok=False, reason="stands nowhere")
FOUND = Verdict(text="Monday", ok=True, evidence=(Evidence(context=0, start=0, end=6, text="Monday"),))
NEAR = Nearest(
    context=0,
    start=0,
    end=6,
    text="Monday",
    similarity=0.8,
    changes=(WordChange(kind="replaced", said="Sunday", source="Monday"),),
)
ALTERED = Verdict(text="Sunday", ok=False, kind="not found", nearest=NEAR)


def scored(
    score: float | None = 0.5, *, verdicts: Sequence[Verdict] = (), votes: Any = (), **fields: Any
) -> TestRecord:
    """Return a test with one score; ``fields`` are those of its sample or its threshold."""
    at_least = fields.pop("at_least", 0.8)
    outcome = "unscored" if score is None else "passed" if score >= at_least else "failed"
    kept = record(
        "faithfulness", score, at_least=at_least, votes=votes, sample=SAMPLE | fields, outcome=outcome, reason="why"
    )
    kept = replace(kept, verdicts=tuple(verdicts))
    return row("test_bot[q1]", kept, outcome="passed" if outcome == "passed" else "failed")


def became(now: TestRecord, before: TestRecord | None) -> tuple[str, str | None, str]:
    """Return kind, cause and detail of a test against its counterpart."""
    this, baseline = document(now), document(*([] if before is None else [before]))
    (pair,) = paired_tests(this, compare_documents(this, baseline))
    assert pair.before == before
    return pair.kind, pair.cause, pair.detail


HELD, SHORT, NONE = scored(1.0), scored(0.5), scored(None)
OTHER: dict[str, Any] = {"response": "On Sunday."}
SKIPPED = row("test_bot[q1]", outcome="skipped")


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (HELD, HELD, ("passes as before", None, "")),
        (HELD, SHORT, ("fixed", None, "")),
        (HELD, NONE, ("fixed", None, "")),
        (HELD, None, ("passes, new", None, "")),
        (HELD, SKIPPED, ("passes, new", None, "")),
        (SKIPPED, HELD, ("skipped", None, "")),
        (SHORT, SHORT, ("fails as before", None, "")),
        (NONE, HELD, ("no score", "run", "why")),
        (NONE, NONE, ("no score", "run", "why")),
        (SHORT, HELD, ("newly fails", "judge", "")),
        (SHORT, NONE, ("newly fails", "judge", "")),
        (scored(votes=(0.5, 0.9), **OTHER), HELD, ("newly fails", "judge", "")),
        (scored(0.9, at_least=0.95), scored(0.9), ("newly fails", "bound", "")),
        (scored(verdicts=[ALTERED], **OTHER), HELD, ("newly fails", "altered", "Sunday")),
        (
            scored(verdicts=[CLAIM], retrieved_contexts=["Paint."]),
            scored(1.0, verdicts=[FOUND]),
            ("newly fails", "retrieval", "Monday."),
        ),
        # What is no longer retrieved was no evidence.
        (
            scored(verdicts=[CLAIM], retrieved_contexts=["Monday."]),
            scored(1.0, verdicts=[FOUND]),
            ("newly fails", "answer", "It is on Monday."),
        ),
        (scored(verdicts=[CLAIM], **OTHER), HELD, ("newly fails", "answer", "It is on Monday.")),
        (scored(verdicts=[CLAIM]), None, ("fails, new", "answer", "It is on Monday.")),
        (row("test_bot[q1]", outcome="error"), HELD, ("newly fails", "error", "")),
    ],
)
def test_a_test_has_one_kind_and_one_cause(
    now: TestRecord, before: TestRecord | None, expected: tuple[str, str | None, str]
) -> None:
    """The first rule that holds decides."""
    assert became(now, before) == expected
    assert expected[0] in TEST_KINDS
    assert expected[1] is None or expected[1] in CAUSES


def test_without_a_baseline_tests_fail_or_pass() -> None:
    """Gates are not counted."""
    run = document(HELD, scored(verdicts=[ALTERED]), NONE, SKIPPED, row("test_gate", gate=gate()))
    found = [(pair.kind, pair.cause) for pair in paired_tests(run)]
    assert found == [("passes", None), ("fails", "altered"), ("no score", "run"), ("skipped", None)]


def test_moved_and_gone_tests_are_found() -> None:
    """Scores that moved take their tests along; what has no counterpart is gone, once for each test of one id."""
    moved = replace(SHORT, id="tests/test_other.py::test_bot[q1]", file="tests/test_other.py")
    plain = row("test_plain", outcome="failed")
    baseline = document(HELD, plain, plain, row("test_gone"), row("test_gate", gate=gate()))
    now = document(moved, plain)
    comparison = compare_documents(now, baseline)
    assert [(pair.before and pair.before.id, pair.kind) for pair in paired_tests(now, comparison)] == [
        (HELD.id, "newly fails"),
        (plain.id, "fails as before"),
    ]
    assert [test.id for test in gone_tests(comparison)] == [plain.id, "tests/test_assistant.py::test_gone"]
